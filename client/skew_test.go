package client_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"regexp"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/client"
	"github.com/seed-7440039f/frontier/serve"
)

// otherClock moves the dates that a client and the server exchange, as a clock of the client's machine does
// that is ahead of the server's by ahead().
type otherClock struct {
	over  http.RoundTripper
	ahead func() time.Duration
}

var dates = regexp.MustCompile(`"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"`)

func moved(b []byte, by time.Duration) []byte {
	return dates.ReplaceAllFunc(b, func(b []byte) []byte {
		t, err := time.Parse(`"`+time.RFC3339Nano+`"`, string(b))
		if err != nil || t.IsZero() {
			return b
		}
		return t.Add(by).AppendFormat(nil, `"2006-01-02T15:04:05.000Z"`)
	})
}

func (c *otherClock) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		b = moved(b, c.ahead())
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(b)), int64(len(b))
	}
	res, err := c.over.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(res.Body)
	res.Body.Close()
	b = moved(b, -c.ahead())
	res.Body, res.ContentLength = io.NopCloser(bytes.NewReader(b)), int64(len(b))
	return res, err
}

// site is a web that notes when its hosts are contacted.
type site struct {
	mu       sync.Mutex
	ended    map[string]time.Time // guarded by mu; zero: a contact goes on
	contacts int                  // guarded by mu
	early    int                  // guarded by mu
}

const siteDelay = 1500 * time.Millisecond

// fetch contacts a host for some time, unless ctx ends first. It returns when that began and ended.
func (s *site) fetch(ctx context.Context, host string) (began, ended time.Time) {
	began = time.Now()
	s.mu.Lock()
	last, known := s.ended[host]
	s.contacts++
	if known && (last.IsZero() || began.Sub(last) < siteDelay) {
		s.early++
	}
	s.ended[host] = time.Time{}
	s.mu.Unlock()
	select {
	case <-time.After(rand.N(3 * time.Second)):
	case <-ctx.Done():
	}
	ended = time.Now()
	s.mu.Lock()
	s.ended[host] = ended
	s.mu.Unlock()
	time.Sleep(rand.N(2 * time.Second)) // the page is parsed
	return began, ended
}

var long = flag.Bool("frontier.long", false, "make 1,000 contacts by each clock, not 200")

// Gaps are right whatever the clock of the client's machine says, and whenever it is set.
func TestTheClocksOfTwoMachines(t *testing.T) {
	const hosts = 20
	contacts := 200
	if *long {
		contacts = 1000
	}
	clocks := map[string]func() time.Duration{
		"right":            func() time.Duration { return 0 },
		"1.5 s behind":     func() time.Duration { return -1500 * time.Millisecond },
		"60 s ahead":       func() time.Duration { return time.Minute },
		"an hour ahead":    func() time.Duration { return time.Hour },
		"set all the time": func() time.Duration { return rand.N(4*time.Second) - 2*time.Second },
	}
	for name, ahead := range clocks {
		for by, crawl := range map[string]func(*testing.T, *wire, *site, func() time.Duration){"client": crawlByClient, "http": crawlByHTTP} {
			t.Run(by+", "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := wireTo(t, serve.Frontier(frontier.Options{Delay: frontier.FixedDelay(siteDelay), LeaseTime: 10 * time.Second}))
					for i := range contacts {
						_, err := w.f.Add(t.Context(), frontier.Entry{URL: fmt.Sprintf("http://h%d.example/%d", i%hosts, i)})
						require.NoError(t, err)
					}
					web := &site{ended: map[string]time.Time{}}
					began := time.Now()
					crawl(t, w, web, ahead)
					t.Logf("%d contacts, %d early, in %v", web.contacts, web.early, time.Since(began).Round(time.Second))
					assert.Equal(t, []int{contacts, 0}, []int{web.contacts, web.early})
					assert.Less(t, time.Since(began), time.Duration(contacts/hosts*2)*(siteDelay+3*time.Second), "a host waits for its delay, and not for more")
				})
			})
		}
	}
}

func crawlByClient(t *testing.T, w *wire, web *site, ahead func() time.Duration) {
	c := w.client(t, client.Options{Wait: 5 * time.Second})
	client.Over(c, func(over http.RoundTripper) http.RoundTripper { return &otherClock{over, ahead} })
	require.NoError(t, c.Work(t.Context(), 40, func(ctx context.Context, l frontier.Lease) (frontier.Outcome, error) {
		began, ended := web.fetch(ctx, l.Host)
		return frontier.Outcome{Ended: ended, Duration: ended.Sub(began)}, nil
	}))
}

// crawlByHTTP does what docs/http.md says.
func crawlByHTTP(t *testing.T, w *wire, web *site, ahead func() time.Duration) {
	base := &http.Transport{DialContext: w.dial, MaxIdleConnsPerHost: 64}
	defer base.CloseIdleConnections()
	c := &http.Client{Transport: &otherClock{base, ahead}}
	ask := func(path, body string, x any) bool {
		r, err := c.Post("http://frontier.invalid"+path, "application/json", bytes.NewReader([]byte(body)))
		if !assert.NoError(t, err) {
			return false
		}
		defer r.Body.Close()
		return assert.Equal(t, http.StatusOK, r.StatusCode) && assert.NoError(t, json.NewDecoder(r.Body).Decode(x))
	}
	var workers sync.WaitGroup
	for range 40 {
		workers.Go(func() {
			for {
				var got struct {
					Leases []struct {
						Lease, Host string
						Left        float64 `json:"lease_s"`
					}
					Exhausted bool
				}
				if !ask("/v1/leases", `{"wait_s":5}`, &got) || got.Exhausted {
					return
				}
				for _, l := range got.Leases {
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(l.Left*float64(time.Second)))
					began, ended := web.fetch(ctx, l.Host)
					cancel()
					done := fmt.Sprintf(`{"ended_ago_s":%.6f,"duration_s":%.6f}`, time.Since(ended).Seconds(), ended.Sub(began).Seconds())
					ask("/v1/leases/"+l.Lease+"/done", done, &struct{}{})
				}
			}
		})
	}
	workers.Wait()
}

// What a client reckons from its own clock comes after that span at the server.
func TestWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := wireTo(t, serve.Frontier(frontier.Options{Delay: frontier.FixedDelay(time.Second)}))
		c := w.client(t, client.Options{})
		client.Over(c, func(over http.RoundTripper) http.RoundTripper {
			return &otherClock{over, func() time.Duration { return time.Hour }}
		})
		began, minute := time.Now(), 60*time.Second
		_, err := c.Add(t.Context(), frontier.Entry{URL: "http://a.example/", NotBefore: began.Add(minute)})
		require.NoError(t, err)
		l, err := c.Next(t.Context())
		require.NoError(t, err)
		assert.Equal(t, minute, time.Since(began))
		assert.Equal(t, time.Now(), l.LeasedAt)
		assert.WithinDuration(t, time.Now().Add(30*time.Second), l.Deadline, time.Millisecond)
		require.NoError(t, c.Done(l, frontier.Outcome{Result: frontier.PutOff, Next: time.Now().Add(minute)}))
		l, err = c.Next(t.Context())
		require.NoError(t, err)
		assert.Equal(t, 2*minute, time.Since(began))
		require.NoError(t, c.Done(l, frontier.Outcome{}))
		info, err := c.Host(t.Context(), "a.example")
		require.NoError(t, err)
		assert.WithinDuration(t, time.Now().Add(time.Second), info.Due, 2*time.Millisecond)
		_, _, err = c.TryNext()
		require.ErrorIs(t, err, frontier.ErrExhausted)
	})
}

// slowly lets answers be under way for a while.
type slowly struct{ over http.RoundTripper }

func (s slowly) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := s.over.RoundTrip(r)
	time.Sleep(7 * time.Second)
	return res, err
}

// A lease whose answer was under way for long lasts no longer than the server says.
func TestALeaseThatComesLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := wireTo(t, serve.Frontier(frontier.Options{LeaseTime: 30 * time.Second}))
		c := w.client(t, client.Options{})
		time.AfterFunc(10*time.Second, func() { added(t, w.client(t, client.Options{}), "http://a.example/") })
		client.Over(c, func(over http.RoundTripper) http.RoundTripper { return slowly{over} })
		began := time.Now()
		l, err := c.Next(t.Context())
		require.NoError(t, err)
		assert.WithinDuration(t, began.Add(17*time.Second), time.Now(), time.Millisecond)
		assert.WithinDuration(t, began.Add(40*time.Second), l.Deadline, 2*time.Millisecond)
		require.NoError(t, c.Extend(&l, time.Minute))
		assert.WithinDuration(t, began.Add(77*time.Second), l.Deadline, 2*time.Millisecond)
		require.NoError(t, c.Done(l, frontier.Outcome{}))
	})
}
