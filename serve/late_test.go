package serve

import (
	"fmt"
	"net/http"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/inspect"
)

// story is how the leases of a bundle of a.example end.
type story struct {
	failed int      // contacts before
	bodies []string // of the ends, one second apart
}

// rest ends a contact with a host.
func rest(t *testing.T, f *frontier.Frontier, host string, o frontier.Outcome) {
	l, err := f.Contact(t.Context(), host)
	require.NoError(t, err)
	require.NoError(t, f.Done(l, o))
}

// told returns the server's final state of a.example, and how long it then leaves the host alone. killed:
// an earlier server handed the leases out. early: the host could not be contacted before the last end.
func (x story) told(t *testing.T, killed, early bool) (h inspect.Host, wait time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		before := func(f *frontier.Frontier) {
			for range x.failed {
				rest(t, f, "a.example", frontier.Outcome{Result: frontier.Failed, Failure: frontier.FailureUnavailable})
			}
		}
		s := bornAfter(t, Options{Contacts: filepath.Join(t.TempDir(), "contacts")}, before)
		for i := range x.bodies {
			_, err := s.f.Add(t.Context(), frontier.Entry{URL: fmt.Sprint("http://a.example/more", i)})
			require.NoError(t, err)
		}
		leases, err := s.Take(t.Context(), "bot", frontier.TakeOptions{Host: "a.example", PerHost: len(x.bodies), Wait: time.Hour, Lease: 2 * time.Hour})
		require.NoError(t, err)
		require.Len(t, leases, len(x.bodies))
		code := http.StatusOK
		if killed {
			code = http.StatusConflict
			s = s.killedBefore(func(f *frontier.Frontier) {
				before(f)
				if early && x.failed == 0 {
					rest(t, f, "a.example", frontier.Outcome{RetryAfter: time.Duration(len(x.bodies))*time.Second + 500*time.Millisecond})
				}
			})
			if !early {
				time.Sleep(time.Second << (x.failed + 1)) // its back-off is over
			}
		}
		for i, l := range leases {
			time.Sleep(time.Second)
			require.Equal(t, code, s.ask("/v1/leases/"+l.ID()+"/done", x.bodies[i]), x.bodies[i])
		}
		ended := time.Now()
		synctest.Wait()
		h, err = s.views.Host(t.Context(), "a.example")
		require.NoError(t, err)
		require.Equal(t, killed && early, h.Awaited)
		wait = h.Due.Sub(ended)
		_, err = s.f.Add(t.Context(), frontier.Entry{URL: "http://a.example/last"})
		require.NoError(t, err)
		require.NotEmpty(t, s.hosts(frontier.TakeOptions{Host: "a.example", Wait: time.Hour}))
		require.WithinDuration(t, h.Due, time.Now(), 20*time.Millisecond, "it is left alone no longer than its clock says")
	})
	return h, wait
}

// What clients report to a server whose predecessor was killed counts as if it had handed the leases out.
func TestReportsCountAfterAStart(t *testing.T) {
	const down = `{"result":"failed","failure":"unavailable"}`
	ends := []string{
		`{}`, `{"retry_after_s":20}`, `{"crawl_delay_s":7}`, `{"crawl_delay_s":0}`, `{"result":"requeue","uncontacted":true,"retry_after_s":30}`,
		`{"result":"failed"}`, `{"result":"failed","failure":"dns"}`, `{"result":"failed","failure":"connect"}`, `{"result":"failed","failure":"timeout"}`,
		`{"result":"failed","failure":"server"}`, down, `{"result":"failed","failure":"too_many_requests","retry_after_s":20,"crawl_delay_s":7}`,
	}
	stories := []story{
		{0, []string{down, down, down, down}}, {0, []string{down, `{}`, `{}`, `{}`}}, {0, []string{ends[6], ends[6], ends[6]}},
		{4, []string{down}}, {4, []string{`{}`}}, {4, []string{ends[6]}}, {7, []string{down}},
	}
	for _, first := range ends {
		stories = append(stories, story{0, []string{first}})
		for _, last := range ends {
			stories = append(stories, story{0, []string{first, last}})
		}
	}
	const jitter = 0.11
	for _, x := range stories {
		live, want := x.told(t, false, false)
		got, wait := x.told(t, true, false)
		name := fmt.Sprint(x)
		if assert.Equal(t, live.Backoff, got.Backoff, name); live.Backoff.Step == 0 {
			assert.Equal(t, want, wait, name)
		}
		assert.InEpsilon(t, want, wait, jitter, name)
		assert.Equal(t, live.CrawlDelay, got.CrawlDelay, name)

		got, wait = x.told(t, true, true) // in doubt such a host is slower
		assert.Equal(t, live.Backoff.Step, got.Backoff.Step, name)
		assert.Contains(t, []int{0, 1}, got.Backoff.Failures-live.Backoff.Failures, name)
		assert.GreaterOrEqual(t, float64(wait), float64(want)*(1-jitter), name)
		assert.GreaterOrEqual(t, got.CrawlDelay, live.CrawlDelay, name)
	}
}

// What one lease of a bundle reports counts although the others never end.
func TestAReportCountsBeforeTheOthersOfItsBundle(t *testing.T) {
	for _, early := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			x := born(t, filepath.Join(t.TempDir(), "contacts"))
			leases, err := x.Take(t.Context(), "bot", frontier.TakeOptions{Host: "a.example", PerHost: 2})
			require.NoError(t, err)
			require.Len(t, leases, 2)
			y := x.killedBefore(func(f *frontier.Frontier) {
				if early {
					rest(t, f, "a.example", frontier.Outcome{RetryAfter: 2 * term})
				}
			})
			start := time.Now()
			y.Late(0, leases[0].Entry.URL, frontier.Outcome{RetryAfter: 10 * time.Minute, CrawlDelay: 7 * time.Second})
			require.NotEmpty(t, y.hosts(frontier.TakeOptions{Host: "a.example", Wait: time.Hour}))
			require.WithinDuration(t, start.Add(10*time.Minute), time.Now(), 20*time.Millisecond)
			h, err := inspect.New(y.f).Host(t.Context(), "a.example")
			require.NoError(t, err)
			require.Equal(t, 7*time.Second, h.CrawlDelay)
		})
	}
}

// A report that is refused ends no contact, and the client may mend it.
func TestAFaultyReportEndsNoContact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := born(t, filepath.Join(t.TempDir(), "contacts"))
		leases, err := x.Take(t.Context(), "bot", frontier.TakeOptions{Host: "a.example"})
		require.NoError(t, err)
		y := x.killed()
		done := "/v1/leases/" + leases[0].ID() + "/done"
		for _, body := range []string{`{"failure":"dns"}`, `{"result":"put_off"}`, `{"result":"failed","uncontacted":true}`} {
			require.Equal(t, http.StatusBadRequest, y.ask(done, body), body)
		}
		y.Late(0, leases[0].Entry.URL, frontier.Outcome{Failure: frontier.FailureDNS})
		time.Sleep(2 * gap)
		require.Empty(t, y.hosts(frontier.TakeOptions{Host: "a.example"}))
		require.Equal(t, http.StatusConflict, y.ask(done, `{"result":"failed","failure":"dns"}`))
		time.Sleep(gap)
		require.NotEmpty(t, y.hosts(frontier.TakeOptions{Host: "a.example"}))
	})
}
