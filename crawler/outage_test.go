package crawler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler/fetch"
)

// outageWeb is a fakeWeb that is away at times.
type outageWeb struct {
	*fakeWeb
	start time.Time
	away  func(at time.Duration) bool
	tries []time.Duration // in vain
	err   error
}

func (w *outageWeb) Fetch(ctx context.Context, r fetch.Request) (*fetch.Result, error) {
	if at := time.Since(w.start); w.away(at) {
		time.Sleep(time.Millisecond)
		w.mu.Lock()
		w.tries = append(w.tries, at)
		w.mu.Unlock()
		now := time.Now()
		return &fetch.Result{URL: r.URL, Started: now, Ended: now}, &fetch.Error{URL: r.URL, Class: fetch.Connect, Err: w.err}
	}
	return w.fakeWeb.Fetch(ctx, r)
}

// sites makes hosts with the given number of pages each, and returns their first ones.
func (w *outageWeb) sites(hosts, pages int) (seeds []string) {
	for i := range hosts {
		base := fmt.Sprintf("http://h%d.example", i)
		w.site(base, pages-2)
		seeds = append(seeds, base+"/")
	}
	return seeds
}

func newOutageWeb(err error, away func(time.Duration) bool) *outageWeb {
	return &outageWeb{fakeWeb: newWeb(), start: time.Now(), away: away, err: err}
}

func between(from, to time.Duration) func(time.Duration) bool {
	return func(at time.Duration) bool { return at >= from && at < to }
}

var errAway = errors.New("no route to host")

// A crawl that starts before its network is up loses nothing, and reaches full speed as soon as the
// network is up; so does a resumed crawl, with everything that waits.
func TestTheNetworkIsAwayAtTheStart(t *testing.T) {
	for name, cause := range map[string]error{"no route": errAway, "refused": syscall.ECONNREFUSED} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const out = 25 * time.Minute
				w := newOutageWeb(cause, between(0, out))
				seeds := w.sites(20, 10)
				f := openFrontier(t, frontier.Options{})
				c := newCrawler(t, f, w, Options{})
				_, err := c.Seed(t.Context(), seeds...)
				require.NoError(t, err)
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
				require.ErrorIs(t, c.Run(ctx), context.DeadlineExceeded)
				cancel()
				assert.EqualValues(t, 20, f.Stats().Waiting+f.Stats().Scheduled)
				assert.NotZero(t, c.Progress().Away)
				c = newCrawler(t, f, w, Options{})
				require.NoError(t, c.Run(t.Context()))
				p := c.Progress()
				assert.EqualValues(t, 200, p.Pages)
				assert.Zero(t, p.Frontier.GivenUp+p.Frontier.Done[frontier.Denied])
				assert.Zero(t, p.Away)
				assert.Zero(t, p.Unreachable)
				assert.Less(t, len(w.tries), 220, "few are asked, over all hosts")
				assert.Less(t, time.Since(w.start), out+time.Minute, "20 hosts, 11 contacts a second apart")
				w.checkPolite(t, fixedOwed)
			})
		})
	}
}

// An outage in a running crawl slows no host down for longer than it lasts.
func TestTheNetworkIsAwayForAWhile(t *testing.T) {
	for name, cause := range map[string]error{"no route": errAway, "refused": syscall.ECONNREFUSED} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const from, to = 20 * time.Second, 8 * time.Hour
				w := newOutageWeb(cause, between(from, to))
				seeds := w.sites(50, 60)
				var logged strings.Builder
				log := slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelWarn}))
				p := crawl(t, w.fakeWeb, frontier.Options{}, Options{Fetcher: w, Logger: log, Workers: 60}, seeds...)
				assert.EqualValues(t, 50*60, p.Pages)
				assert.Zero(t, p.Frontier.GivenUp)
				assert.Equal(t, 1, strings.Count(logged.String(), "no host answers"), logged.String())
				assert.Equal(t, 1, strings.Count(logged.String(), "the network is back"))
				assert.Less(t, len(w.tries), 3100, "8 hours at one contact in ten seconds")
				n := 0
				for _, r := range w.requests("") {
					if at := r.start.Sub(w.start); at >= to+15*time.Second && at < to+25*time.Second {
						n++
					}
				}
				assert.Greater(t, n, 400, "49 a second before, and soon again")
				w.checkPolite(t, fixedOwed)
			})
		})
	}
}

// Hosts that never answer are no outage while another host does, nor at the end of a crawl, nor if they
// are too few. The crawl ends.
func TestDeadHostsAreNoOutage(t *testing.T) {
	for name, alive := range map[string]int{"others answer": 3, "one alone": 0} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWeb()
				var seeds []string
				for i := range alive {
					w.site(fmt.Sprintf("http://h%d.example", i), 3)
					seeds = append(seeds, fmt.Sprintf("http://h%d.example/", i))
				}
				dead := max(1, 5*alive)
				for i := range dead {
					site := fmt.Sprintf("http://dead%d.example", i)
					w.always(site+"/robots.txt", answer{class: fetch.Connect})
					seeds = append(seeds, site+"/", site+"/x")
				}
				if alive > 0 {
					w.always("http://slow.example/robots.txt", answer{status: 404, takes: 20 * time.Second})
					seeds = append(seeds, "http://slow.example/")
				}
				f := openFrontier(t, frontier.Options{Delay: frontier.FixedDelay(testDelay), Quarantine: frontier.Quarantine{Probes: 2}})
				c := newCrawler(t, f, w, Options{})
				_, err := c.Seed(t.Context(), seeds[:alive]...)
				require.NoError(t, err)
				require.NoError(t, c.Run(t.Context()))
				_, err = c.Seed(t.Context(), seeds...)
				require.NoError(t, err)
				require.NoError(t, c.Run(t.Context()))
				p := c.Progress()
				assert.EqualValues(t, 2*dead, p.Frontier.GivenUp)
				assert.EqualValues(t, 5*alive, p.Pages)
				assert.EqualValues(t, 11, w.asks["http://dead0.example/robots.txt"], "once for nothing, 8 times, and in quarantine twice")
				assert.Zero(t, p.Away)
			})
		})
	}
}

// Hosts that never answered are given up in the end, an hour later.
func TestAnOutageWithoutEndEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newOutageWeb(errAway, func(time.Duration) bool { return true })
		p := crawl(t, w.fakeWeb, frontier.Options{Quarantine: frontier.Quarantine{Probes: 1}}, Options{Fetcher: w}, w.sites(5, 10)...)
		assert.EqualValues(t, 5, p.Frontier.GivenUp)
		assert.Greater(t, time.Since(w.start), time.Hour)
		assert.Less(t, time.Since(w.start), 3*time.Hour)
		assert.Less(t, len(w.tries), 500)
	})
}

func TestOutageEvidence(t *testing.T) {
	now := time.Unix(1000, 0)
	o := newOutage(slog.New(slog.DiscardHandler))
	for range 10 {
		o.take("a", false, silence, now, now)
		o.take("b", false, silence, now, now)
		o.take("c", false, nothing, now, now)
	}
	assert.False(t, o.away(), "two hosts are too few")
	o.take("c", false, refused, now, now)
	o.take("d", false, refused, now, now)
	assert.False(t, o.away(), "who refuses may be a host")
	o.take("e", false, refused, now, now)
	assert.True(t, o.away(), "five are too many")
	o.take("z", false, answered, now, now)
	assert.False(t, o.away())

	for _, h := range []string{"a", "b", "c", "d", "e", "f"} {
		o.take(h, false, silence, now, now)
	}
	assert.False(t, o.away(), "they never answered, and others have")
	o.take("a", true, refused, now, now)
	o.take("b", true, silence, now, now)
	o.take("z", false, answered, now, now)
	o.take("c", true, silence, now, now)
	assert.False(t, o.away(), "one answered between")
	o.take("a", true, refused, now, now)
	o.take("b", true, silence, now, now)
	assert.True(t, o.away())
	o.take("b", true, silence, now.Add(outageMost-1), now.Add(outageMost-1))
	assert.True(t, o.away())
	o.take("b", true, silence, now.Add(outageMost), now.Add(outageMost))
	assert.False(t, o.away(), "it has lasted too long")
	assert.NotZero(t, o.began())
	o.take("b", true, silence, now.Add(outageMost), now.Add(outageMost))
	o.take("c", true, silence, now.Add(outageMost), now.Add(outageMost))
	o.take("d", true, silence, now.Add(outageMost), now.Add(outageMost))
	assert.False(t, o.away())
	o.take("b", true, answered, now.Add(outageMost), now.Add(outageMost))
	assert.Zero(t, o.began())
}

// A contact is evidence unless other hosts answered for most of its time.
func TestSilenceBesideAnswersIsNoEvidence(t *testing.T) {
	now := time.Unix(1000, 0)
	for _, since := range []time.Duration{0, 14 * time.Second, 16 * time.Second, 30 * time.Second, time.Hour} {
		o := newOutage(slog.New(slog.DiscardHandler))
		o.take("z", false, answered, now.Add(-since), now.Add(-since))
		for _, h := range []string{"a", "b", "c"} {
			o.take(h, true, silence, now.Add(-30*time.Second), now)
		}
		assert.Equal(t, since > 15*time.Second, o.away(), since)
	}
}

func TestWhatAFetchTellsOfTheNetwork(t *testing.T) {
	remote := netip.MustParseAddrPort("192.0.2.1:80")
	e := func(class fetch.Class, err error) error { return &fetch.Error{Class: class, Err: err} }
	for name, c := range map[string]struct {
		res  fetch.Result
		err  error
		want answerKind
	}{
		"an answer":                     {fetch.Result{Status: 500}, nil, answered},
		"no TLS":                        {fetch.Result{}, e(fetch.TLS, nil), answered},
		"cut":                           {fetch.Result{}, e(fetch.Cut, nil), answered},
		"a kept connection is gone":     {fetch.Result{Timing: fetch.Timing{Reused: true}}, e(fetch.Cut, nil), nothing},
		"no such name":                  {fetch.Result{}, e(fetch.DNS, &net.DNSError{IsNotFound: true}), nothing},
		"no name server":                {fetch.Result{}, e(fetch.DNS, &net.DNSError{IsTimeout: true}), silence},
		"refused":                       {fetch.Result{}, e(fetch.Connect, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}), refused},
		"no route":                      {fetch.Result{}, e(fetch.Connect, &net.OpError{Op: "dial", Err: syscall.EHOSTUNREACH}), silence},
		"no connection in time":         {fetch.Result{}, e(fetch.Timeout, nil), silence},
		"connected, no answer in time":  {fetch.Result{Remote: remote}, e(fetch.Timeout, nil), nothing},
		"kept, no answer in time":       {fetch.Result{Remote: remote, Timing: fetch.Timing{Reused: true}}, e(fetch.Timeout, nil), silence},
		"an answer without end":         {fetch.Result{Status: 200, Remote: remote}, e(fetch.Timeout, nil), nothing},
		"what may not be contacted":     {fetch.Result{}, &fetch.Error{URL: "http://[::1]:81/x", Class: fetch.Blocked}, nothing},
		"a name of what may not be":     {fetch.Result{}, &fetch.Error{URL: "http://a.example/x", Class: fetch.Blocked}, lie},
		"cut by the end of the crawl":   {fetch.Result{}, e(fetch.Canceled, nil), nothing},
		"no URL":                        {fetch.Result{}, e(fetch.BadURL, nil), nothing},
		"an answer that makes no sense": {fetch.Result{Status: 200}, e(fetch.Decode, nil), answered},
	} {
		assert.Equal(t, c.want, kindOf(&c.res, c.err), name)
	}
}
