// This file is a world that is driven as a user would drive it.

package harness

import (
	"context"
	"errors"
	"sync"
	"testing/synctest"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/internal/hook"
	"github.com/stretchr/testify/require"
)

// EntriesOf returns entries with these URLs.
func EntriesOf(host string, n int) []frontier.Entry {
	var out []frontier.Entry
	for _, u := range UrlsOf(host, n) {
		out = append(out, frontier.Entry{URL: u})
	}
	return out
}

// StartContact calls Contact.
func (s *Station) StartContact(ctx context.Context, host string) *Call {
	return Start(func() (frontier.Lease, error) { return s.F.Contact(ctx, host) })
}

// Station is a world on one of the stores.
type Station struct {
	*World
	InBlocks bool // settle leaves as little as possible in memory
}

// Settle moves everything to blocks, on a store where it can.
func (s *Station) Settle() {
	s.Helper()
	if s.InBlocks {
		require.NoError(s, hook.Of(s.F).MoveNow(true))
	}
}

// Put adds entries, of which fresh must be new.
func (s *Station) Put(fresh int, entries ...frontier.Entry) {
	s.Helper()
	n, err := s.F.Add(s.Context(), entries...)
	require.NoError(s, err)
	require.Equal(s, fresh, n)
	s.Settle()
}

// Put0 adds entries without looking.
func (s *Station) Put0(entries ...frontier.Entry) {
	s.Helper()
	_, err := s.F.Add(s.Context(), entries...)
	require.NoError(s, err)
}

// URLs returns URLs of a host.
func (s *Station) URLs(urls ...string) { s.Helper(); s.Add(urls...); s.Settle() }

// Done ends a lease.
func (s *Station) Done(l frontier.Lease, o frontier.Outcome) {
	s.Helper()
	require.NoError(s, s.F.Done(l, o))
	s.Settle()
}

// Drain takes and finishes all remaining URLs, and returns them.
func (s *Station) Drain() []string {
	s.Helper()
	urls := []string{}
	for {
		l, at, err := s.TryNext()
		switch {
		case errors.Is(err, frontier.ErrExhausted):
			return urls
		case errors.Is(err, frontier.ErrNotDue):
			s.Clock.Set(at)
		default:
			require.NoError(s, err)
			urls = append(urls, l.Entry.URL)
			require.NoError(s, s.F.Done(l, frontier.Outcome{}))
		}
	}
}

// Counts compares the three states of a URL with Stats.
func (s *Station) Counts(waiting, scheduled, leased int64) {
	s.Helper()
	s.F.Stats() // ends the leases that are due
	synctest.Wait()
	x := s.F.Stats()
	require.Equal(s, []int64{waiting, scheduled, leased}, []int64{x.Waiting, x.Scheduled, x.Leased}, "waiting, scheduled, leased")
}

// Call is a call in a separate goroutine.
type Call struct {
	Lease frontier.Lease
	Err   error
	Over  chan struct{}
}

// Start calls fn, and returns when fn waits or has returned.
func Start(fn func() (frontier.Lease, error)) *Call {
	c := &Call{Over: make(chan struct{})}
	go func() {
		defer close(c.Over)
		c.Lease, c.Err = fn()
	}()
	synctest.Wait()
	return c
}

// StartNext begins a Next.
func (s *Station) StartNext(ctx context.Context) *Call {
	return Start(func() (frontier.Lease, error) { return s.F.Next(ctx) })
}

// Waits reports whether the call has not returned and nothing is left to happen.
func (c *Call) Waits() bool {
	synctest.Wait()
	select {
	case <-c.Over:
		return false
	default:
		return true
	}
}

// gaveUp collects the calls of OnGiveUp.
type gaveUp struct {
	mu      sync.Mutex
	Entries []frontier.Entry
	Results []frontier.Result
}

func (g *gaveUp) told(e frontier.Entry, o frontier.Outcome) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.Entries, g.Results = append(g.Entries, e), append(g.Results, o.Result)
}

func (g *gaveUp) URLs() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	urls := []string{}
	for _, e := range g.Entries {
		urls = append(urls, e.URL)
	}
	return urls
}

// Watched reopens the frontier with an OnGiveUp.
func (s *Station) Watched() *gaveUp {
	s.Helper()
	g := &gaveUp{}
	s.Options.OnGiveUp = g.told
	s.Reopen()
	return g
}
