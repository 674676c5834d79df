// This file tests what is said of a crawl, in a word and in a sentence.

package console

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/scope"
)

// Each state has its word, and a sentence with what an operator asks next.
func TestStates(t *testing.T) {
	now := time.Date(2027, 1, 31, 12, 0, 0, 0, time.UTC)
	later := now.Add(12 * time.Second)
	states := func(n ...int64) hostStates {
		x := hostStates{}
		for i, k := range n {
			x.n[i] = k
			x.of += k
		}
		return x
	}
	busy := Status{Now: now, Running: 300, Pages: 12823, PagesPerSecond: 46, Waiting: 80868, Known: 99999, Leased: 4, BackedOff: 2, Traffic: Traffic{Contacts: 2262}}
	rest := busy
	rest.Leased = 0
	for _, x := range []struct {
		name            string
		s               Status
		f               facts
		state, sentence string
		pace, eta       string
	}{
		{"running", busy, facts{workers: 16, states: states(4, 0, 45, 2), growth: 100}, StateRunning, "46 pages a second, 12\u202f823 fetched, 80\u202f868 wait on 51 hosts; 2 slowed down; no contact too early", "more hosts would help, more workers would not", "the queue grows by 100 URLs a second"},
		{"workers", busy, facts{workers: 4, states: states(4, 30, 10), growth: -46}, StateRunning, "46 pages", "All 4 workers are busy and hosts are ready: more workers would help.", "In about 29 min"},
		{"a limit of pages", busy, facts{maxPages: 20000, states: states(1)}, StateRunning, "46 pages", "", "In about 2 min 36 s"},
		{"paused", with(busy, func(s *Status) { s.Paused = true }), facts{states: states(0, 0, 0, 0, 0, 51)}, StatePaused, "Nothing is fetched until you unpause it; 4 fetches under way; 12\u202f823 fetched", "It is paused.", "it is paused"},
		{"blocked", with(rest, func(s *Status) { s.Blocked = &later }), facts{}, StatePaused, "Nothing is fetched until 31 January 12:00:12 UTC", "", "it is paused"},
		{"stopping", busy, facts{phase: stopping}, StateStopping, "4 fetches under way to be finished, then it stops", "", ""},
		{"ended", rest, facts{phase: ended, ending: "Stopped: 3 URLs wait"}, StateEnded, "Stopped: 3 URLs wait; 12\u202f823 fetched", "", ""},
		{"ended though paused", with(rest, func(s *Status) { s.Paused = true }), facts{phase: ended}, StateEnded, "The crawl has ended", "", ""},
		{"at rest", rest, facts{atRest: true}, StateAtRest, "No process crawls it: 80\u202f868 wait", "", ""},
		{"network", busy, facts{away: now.Add(-4 * time.Minute), states: states(0, 1)}, StateTrouble, "No host has answered for 4 min: the network seems to be away; nothing is lost", "", ""},
		{"store", busy, facts{fault: "commit: disk full"}, StateTrouble, "The store does not work (commit: disk full)", "", ""},
		{"failures", busy, facts{recent: 40, wrong: 30}, StateTrouble, "30 of the last minute's 40 requests failed", "", ""},
		{"all fail", busy, facts{states: states(0, 0, 0, 3, 1)}, StateTrouble, "Every host that it asks fails", "look at why", ""},
		{"silence", busy, facts{silent: true}, StateTrouble, "Every host that it asks fails", "", ""},
		{"idle", rest, facts{quiet: true, states: states(0, 0, 51), next: &later}, StateIdle, "All hosts wait; the next contact is in 12 s", "between two contacts", ""},
		{"held", rest, facts{quiet: true, states: states(0, 0, 0, 0, 0, 51)}, StateIdle, "All hosts are paused, blocked or at a limit", "hold everything back", ""},
		{"between two contacts", rest, facts{states: states(0, 0, 51)}, StateRunning, "46 pages a second", "", ""},
		{"scheduled", with(rest, func(s *Status) { s.Waiting, s.Scheduled = 0, 7 }), facts{quiet: true}, StateIdle, "Every URL waits for its time", "", "Nothing waits."},
		{"empty", Status{Now: now}, facts{}, StateIdle, "Nothing to crawl yet: add a URL to begin", "", "Nothing waits."},
		{"done", Status{Now: now, Known: 5, Pages: 5}, facts{}, StateIdle, "Nothing is left to fetch; 5 fetched", "", ""},
		{"impolite", with(busy, func(s *Status) { s.Traffic.Early = 3 }), facts{}, StateRunning, "3 contacts too early", "", ""},
		{"standing still", with(busy, func(s *Status) { s.PagesPerSecond = 0 }), facts{}, StateRunning, "No page in the last minute, 12\u202f823 fetched", "", "no page came in the last minute"},
		{"begun", with(busy, func(s *Status) { s.PagesPerSecond, s.Running, s.Pages = 0, 1, 1 }), facts{}, StateRunning, "1 fetched, 80\u202f868 wait", "", "it has run for less than a minute"},
		{"slow", with(busy, func(s *Status) { s.PagesPerSecond = .2 }), facts{}, StateRunning, "12 pages a minute", "", ""},
	} {
		x.s.HostStates = x.f.states.view()
		x.s.judge(x.f)
		assert.Equal(t, x.state, x.s.State, x.name)
		assert.Contains(t, x.s.Sentence, x.sentence, x.name)
		assert.Contains(t, x.s.Pace, x.pace, x.name)
		assert.Contains(t, x.s.ETA, x.eta, x.name)
		assert.False(t, x.s.Running < 60 && strings.Contains(x.s.Sentence, "last minute"), "%s: %s", x.name, x.s.Sentence)
	}
}

func with(s Status, change func(*Status)) Status {
	change(&s)
	return s
}

// A crawl goes through its states, also with many readers at once. How it ended stays visible, and the
// crawl waits only for its readers.
func TestALife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, err := frontier.Open(t.Context(), frontier.Options{KeepOpen: true})
		require.NoError(t, err)
		c, err := New(f, Options{})
		require.NoError(t, err)
		began := time.Now()
		c.Ended(nil, "Nobody looked")
		assert.Equal(t, began, time.Now())
		require.NoError(t, c.Close())

		c, err = New(f, Options{})
		require.NoError(t, err)
		_, err = f.Add(t.Context(), frontier.Entry{URL: "http://a.example/"})
		require.NoError(t, err)
		state := func() string {
			all := make(chan Status, 8)
			for range cap(all) {
				go func() { all <- c.status(t.Context()) }()
			}
			first := <-all
			for range cap(all) - 1 {
				assert.Equal(t, first.State, (<-all).State)
			}
			return first.State
		}
		assert.Equal(t, StateRunning, state())
		require.NoError(t, f.Pause(scope.All()))
		assert.Equal(t, StatePaused, state())
		time.Sleep(time.Minute)
		s := c.status(t.Context())
		assert.WithinDuration(t, time.Now().Add(-time.Minute), *s.Since, 2*time.Second)
		require.NoError(t, f.Resume(scope.All()))
		time.Sleep(time.Second)
		synctest.Wait()
		assert.Equal(t, StateIdle, state(), "nobody takes the URL that waits")
		c.Stopping()
		assert.Equal(t, StateStopping, state())
		began = time.Now()
		c.Ended(nil, "Stopped")
		assert.Equal(t, lookAgain, time.Since(began), "who looked looks again")
		assert.Equal(t, StateEnded, state())
		c.Stopping()
		assert.Equal(t, StateEnded, state())
		cut := make(chan struct{})
		close(cut)
		began = time.Now()
		c.Ended(cut, "Stopped")
		assert.Equal(t, began, time.Now(), "it is cut")
		require.NoError(t, c.Close())
		require.NoError(t, f.Close())
	})
}

// Hosts are counted by what they do, and a host that fails is shown with what comes next.
func TestHostsThatFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := NewWatch()
		f, err := frontier.Open(t.Context(), frontier.Options{KeepOpen: true, OnEvent: w.Event, Delay: frontier.FixedDelay(time.Second)})
		require.NoError(t, err)
		c, err := New(f, Options{Watch: w})
		require.NoError(t, err)
		for _, u := range []string{"http://a.example/1", "http://a.example/2", "http://b.example/", "http://c.example/"} {
			_, err := f.Add(t.Context(), frontier.Entry{URL: u})
			require.NoError(t, err)
		}
		require.NoError(t, f.Pause(scope.Host("b.example")))
		for range 2 {
			l, err := f.Next(t.Context())
			require.NoError(t, err)
			o := frontier.Outcome{}
			if l.Host == "a.example" {
				o = frontier.Outcome{Result: frontier.Failed, Failure: frontier.FailureServer}
				w.Fetched(Fetch{At: time.Now(), Host: l.Host, URL: l.Entry.URL, Status: 500, Kind: "server", Duration: .1})
			}
			require.NoError(t, f.Done(l, o))
			w.Outcome(l, o)
		}
		time.Sleep(100 * time.Millisecond)
		x := c.survey(time.Now())
		assert.EqualValues(t, 2, x.of, "nothing waits of c.example")
		assert.EqualValues(t, 1, x.n[hostHeld])
		assert.EqualValues(t, 1, x.n[hostSlowed]+x.n[hostPausing])
		s := c.status(t.Context())
		require.Len(t, s.Problems, 1)
		p := s.Problems[0]
		assert.Equal(t, []any{"a.example", 500, "server error", 1}, []any{p.Host, p.Status, p.What, p.Row})
		assert.Contains(t, p.Next, "the next try")
		w.Fetched(Fetch{At: time.Now(), Host: "a.example", URL: "http://a.example/2", Status: 200})
		assert.Empty(t, c.status(t.Context()).Problems, "it answers again")
		require.NoError(t, c.Close())
		require.NoError(t, f.Close())
	})
}

// What a crawler puts aside is no pause of an operator's, and its crawls' numbers stay inside.
func TestParkedURLs(t *testing.T) {
	const lot = 3221225472
	f, err := frontier.Open(t.Context(), frontier.Options{KeepOpen: true})
	require.NoError(t, err)
	c, err := New(f, Options{Lot: func(n uint32) (uint32, string, bool) { return n & 0xff, "it is not wanted now", n >= lot }})
	require.NoError(t, err)
	_, err = f.Add(t.Context(), frontier.Entry{URL: "http://a.example/1", Crawl: lot}, frontier.Entry{URL: "http://b.example/1"}, frontier.Entry{URL: "http://b.example/2", Crawl: lot})
	require.NoError(t, err)
	require.NoError(t, f.Pause(scope.Crawl(lot)))
	s := c.status(t.Context())
	assert.Equal(t, []int64{1, 2}, []int64{s.Waiting, s.Parked})
	assert.Zero(t, s.Held)
	api := Direct(c)
	h, err := api.Host(t.Context(), "a.example")
	require.NoError(t, err)
	assert.Equal(t, []any{"parked", "it is not wanted now", int64(0), int64(1)}, []any{h.Reason, h.Why, h.Waiting, h.Parked})
	assert.Equal(t, []Queue{{Crawl: 0, Priority: h.Queues[0].Priority, Waiting: 1, Parked: true}}, h.Queues)
	l, err := api.Hosts(t.Context(), HostsQuery{Reason: "parked"})
	require.NoError(t, err)
	require.Len(t, l.Hosts, 1)
	urls, err := api.URLs(t.Context(), "a.example", "", 10)
	require.NoError(t, err)
	assert.Equal(t, []any{"parked", uint32(0)}, []any{urls.URLs[0].State, urls.URLs[0].Crawl})
	rules, err := api.Rules(t.Context())
	require.NoError(t, err)
	assert.Empty(t, rules.Rules)
	require.NoError(t, c.Close())
	require.NoError(t, f.Close())
}
