package client_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/client"
	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/serve"
)

// wires are servers of one frontier, at http://frontier.invalid:1 and the ports after it.
type wires []*wire

func (ws wires) addresses() string {
	var all []string
	for i := range ws {
		all = append(all, fmt.Sprintf("http://frontier.invalid:%d", i+1))
	}
	return strings.Join(all, ", ")
}

func (ws wires) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	for i, w := range ws {
		if strings.HasSuffix(addr, fmt.Sprint(":", i+1)) {
			return w.dial(ctx, network, addr)
		}
	}
	return nil, fmt.Errorf("no server is at %s", addr)
}

func (ws wires) client(t *testing.T, o client.Options) *client.Client {
	if o.Dial == nil {
		o.Dial = ws.dial
	}
	c, err := client.New(ws.addresses(), o)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, c.Close()) })
	return c
}

// several runs a test in a bubble with n servers of one frontier.
func several(t *testing.T, n int, test func(t *testing.T, f *frontier.Frontier, ws wires)) {
	synctest.Test(t, func(t *testing.T) {
		o := serve.Frontier(frontier.Options{Delay: frontier.FixedDelay(time.Second), LeaseTime: time.Minute})
		o.KeepOpen = false
		f := opened(t, o)
		h := serverOf(t, f)
		var ws wires
		for range n {
			ws = append(ws, wireOf(t, f, h))
		}
		test(t, f, ws)
	})
}

// Servers are killed and come back in the middle of a crawl. Each page is fetched once, and ends once.
func TestCrawlWhoseServersAreKilled(t *testing.T) {
	for _, n := range []int{2, 3} {
		t.Run(fmt.Sprint(n, " servers"), func(t *testing.T) {
			several(t, n, func(t *testing.T, f *frontier.Frontier, ws wires) {
				const pages = 200
				c := ws.client(t, client.Options{})
				added(t, c, "http://h0.example/0")
				var mu sync.Mutex
				asks := map[string]int{}
				require.NoError(t, c.Work(t.Context(), 10, func(_ context.Context, l frontier.Lease) (frontier.Outcome, error) {
					mu.Lock()
					defer mu.Unlock()
					asks[l.Entry.URL]++
					if i := len(asks); i%20 == 0 { // all others are there
						w := ws[i/20%n]
						w.kill()
						time.AfterFunc(9*time.Second, func() { w.down.Store(false) })
					}
					var links []frontier.Entry
					for i := len(asks); i < min(pages, len(asks)+20); i++ {
						links = append(links, frontier.Entry{URL: fmt.Sprintf("http://h%d.example/%d", i%20, i)})
					}
					return frontier.Outcome{Add: links}, nil
				}))
				assert.Len(t, asks, pages)
				for u, n := range asks {
					assert.Equal(t, 1, n, u)
				}
				s := f.Stats()
				assert.EqualValues(t, []int64{pages, pages, 0}, []int64{s.Known, s.Done[frontier.Visited], s.Leased})
				for i, w := range ws {
					assert.Positive(t, w.requests.Load(), "server %d", i)
				}
			})
		})
	}
}

// A lease that one server gave is kept and ended at another, and a call of Next waits on there.
func TestLeasesMoveOver(t *testing.T) {
	several(t, 2, func(t *testing.T, f *frontier.Frontier, ws wires) {
		c := ws.client(t, client.Options{})
		added(t, c, "http://a.example/1")
		l, err := c.Next(t.Context())
		require.NoError(t, err)
		began := time.Now()
		time.AfterFunc(5*time.Second, ws[0].kill)
		time.AfterFunc(10*time.Second, func() {
			_, err := f.Add(t.Context(), frontier.Entry{URL: "http://b.example/"})
			assert.NoError(t, err)
		})
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		m, err := c.Next(ctx)
		require.NoError(t, err)
		assert.Equal(t, 10*time.Second, time.Since(began), "the first lease keeps the call waiting")
		require.NoError(t, c.Extend(&l, 5*time.Minute))
		time.Sleep(4 * time.Minute)
		require.NoError(t, c.Done(l, frontier.Outcome{}))
		assert.ErrorIs(t, c.Done(m, frontier.Outcome{}), frontier.ErrNotLeased)
		assert.EqualValues(t, 1, f.Stats().Done[frontier.Visited])
	})
}

// What one server did before its answer was lost is not done again by the next.
func TestAnswerLostBeforeTheMove(t *testing.T) {
	several(t, 2, func(t *testing.T, f *frontier.Frontier, ws wires) {
		c := ws.client(t, client.Options{})
		added(t, c, "http://a.example/1", "http://a.example/2", "http://b.example/")
		l, err := c.Next(t.Context())
		require.NoError(t, err)
		ws[0].deaf.Store(1)
		require.NoError(t, c.Done(l, frontier.Outcome{Add: []frontier.Entry{{URL: "http://c.example/"}}}))
		assert.EqualValues(t, 1, f.Stats().Done[frontier.Visited])
		assert.EqualValues(t, 3, f.Stats().Waiting)
		assert.EqualValues(t, 1, ws[1].requests.Load())
		ws[1].deaf.Store(1)
		n, err := c.Delete(t.Context(), scope.All())
		require.NoError(t, err)
		assert.EqualValues(t, 4, n, "the finished one, too")
	})
}

// A server that says that it is stopping is left, as one that is gone.
func TestServerThatCannotNow(t *testing.T) {
	several(t, 2, func(t *testing.T, f *frontier.Frontier, ws wires) {
		c := ws.client(t, client.Options{})
		ws[0].instead = func(to http.ResponseWriter, r *http.Request) bool {
			to.Header().Set("Retry-After", "1")
			to.WriteHeader(http.StatusServiceUnavailable)
			problem(to, "busy", http.StatusServiceUnavailable)
			return true
		}
		began := time.Now()
		added(t, c, "http://a.example/", "http://b.example/")
		assert.Equal(t, 500*time.Millisecond, time.Since(began), "half of what it asks for, for each of two")
		assert.EqualValues(t, []int64{1, 2}, []int64{ws[0].requests.Load(), ws[1].requests.Load()}, "the second answered last")
		ws[0].instead = nil
		ws[1].kill()
		added(t, c, "http://c.example/")
		assert.EqualValues(t, 2, ws[0].requests.Load())
		assert.EqualValues(t, 3, f.Stats().Waiting)
	})
}

// An error says in one line what each address said.
func TestErrorNamesEachAddress(t *testing.T) {
	several(t, 3, func(t *testing.T, _ *frontier.Frontier, ws wires) {
		c := ws.client(t, client.Options{})
		ws[0].down.Store(true)
		ws[1].instead = func(to http.ResponseWriter, r *http.Request) bool {
			to.WriteHeader(http.StatusServiceUnavailable)
			problem(to, "busy", http.StatusServiceUnavailable)
			return true
		}
		_, _, err := c.TryNext()
		require.ErrorIs(t, err, frontier.ErrExhausted, "the third answers")
		ws[2].kill()
		const (
			third = "http://frontier.invalid:3: connection refused"
			all   = "http://frontier.invalid:1: connection refused; http://frontier.invalid:2: the server answers 503: it is so; " + third
		)
		for patience, tried := range map[time.Duration]string{time.Millisecond: third, time.Minute: all} {
			ws[2].down.Store(false)
			added(t, c, "http://a.example/")
			ws[2].kill()
			ctx, stop := context.WithTimeout(t.Context(), patience)
			defer stop()
			_, err = c.Add(ctx, frontier.Entry{URL: "http://b.example/"})
			assert.ErrorIs(t, err, context.DeadlineExceeded)
			assert.EqualError(t, err, "context deadline exceeded; client: no server answers: "+tried)
		}
		_, _, err = c.TryNext()
		assert.EqualError(t, err, "client: no server answers: "+all)
	})
}

// A machine that is off answers nothing, and leaves a call without a context time for the others.
func TestMachineThatIsOff(t *testing.T) {
	several(t, 3, func(t *testing.T, f *frontier.Frontier, ws wires) {
		c := ws.client(t, client.Options{Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
			if !strings.HasSuffix(addr, ":3") {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return ws.dial(ctx, network, addr)
		}})
		began := time.Now()
		require.NoError(t, c.SetStanding("a.example", 1))
		assert.WithinRange(t, time.Now(), began.Add(20*time.Second), began.Add(21*time.Second))
		h, err := inspect.New(f).Host(t.Context(), "a.example")
		require.NoError(t, err)
		assert.Equal(t, 1, h.Standing)
	})
}

// A caller that has no more time says nothing of the server.
func TestCancelledCallStays(t *testing.T) {
	several(t, 2, func(t *testing.T, _ *frontier.Frontier, ws wires) {
		c := ws.client(t, client.Options{})
		ws[0].instead = func(_ http.ResponseWriter, r *http.Request) bool {
			if ws[0].requests.Load() == 1 {
				_, _ = io.Copy(io.Discard, r.Body) // else the server does not see that the connection ends
				<-r.Context().Done()
			}
			return false
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		_, err := c.Add(ctx, frontier.Entry{URL: "http://a.example/"})
		require.ErrorIs(t, err, context.Canceled)
		added(t, c, "http://b.example/")
		assert.Zero(t, ws[1].requests.Load())
	})
}

func TestNewRefusesAnAddressOfSeveral(t *testing.T) {
	for address, want := range map[string]string{
		"http://a:1,b:2":                  `the address is "b:2"`,
		"http://a:99999":                  `the address is "http://a:99999"`,
		"http://a:0":                      `the address is "http://a:0"`,
		"http://a:1,,http://b:2":          `the address is ""`,
		"http://a:1, unix:":               `the address is "unix:"`,
		"http://a:1, http://a:1/":         `the address "http://a:1/" is there twice`,
		"unix:/x,http://b:2/p?q, unix:/x": `the address is "http://b:2/p?q"`,
	} {
		_, err := client.New(address, client.Options{})
		assert.ErrorContains(t, err, want)
	}
	c, err := client.New(" http://a:1 ,https://a:1/p/,unix:/x,unix:/y", client.Options{})
	require.NoError(t, err)
	require.NoError(t, c.Close())
}
