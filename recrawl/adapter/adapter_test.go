package adapter_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/recrawl"
	"github.com/seed-7440039f/frontier/recrawl/adapter"
	"github.com/seed-7440039f/frontier/simclock"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/spill/spilltest"
	"github.com/seed-7440039f/frontier/transfer"
)

// perSecond is the budget: 40 fetches a day.
const perSecond = 40. / 86400

var dawn = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// crawl is a frontier and its recrawl scheduler on a clock of their own. Page n
// changes about each n/10 days, and what a fetch finds depends on the page and
// the day alone.
type crawl struct {
	testing.TB
	f     *frontier.Frontier
	s     *recrawl.Scheduler
	clock *simclock.Clock
	gone  map[string]bool
	lost  []string // reported to OnDrop
}

func newCrawl(t testing.TB, at time.Time, store *spill.Store) *crawl {
	c := &crawl{TB: t, clock: simclock.New(at), gone: map[string]bool{}}
	var err error
	c.s, err = recrawl.New(recrawl.Options{Budget: perSecond, Seed: 3})
	require.NoError(t, err)
	o := frontier.Options{
		Clock: c.clock, KeepOpen: true, Delay: frontier.FixedDelay(0), Priorities: 1, Prioritizer: frontier.Constant(1),
		Scheduler: adapter.New(c.s, adapter.Options{OnDrop: func(e frontier.Entry) { c.lost = append(c.lost, e.URL) }}),
	}
	if store != nil {
		o.Spill = store
	}
	c.f, err = frontier.Open(context.Background(), o)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, c.f.Check())
		require.NoError(t, c.f.Close())
	})
	return c
}

func (c *crawl) add(n int) {
	entries := make([]frontier.Entry, n)
	for i := range entries {
		entries[i].URL = fmt.Sprintf("http://h%d.example/%d", i%7, i)
	}
	added, err := c.f.Add(context.Background(), entries...)
	require.NoError(c, err)
	require.Equal(c, n, added)
}

// step fetches the next page that is due before end, and returns which and when.
func (c *crawl) step(end time.Time) (string, bool) {
	for range 1000 {
		_, err := c.f.Add(context.Background()) // what was put off is on its way
		require.NoError(c, err)
		l, at, err := c.f.TryNext()
		switch {
		case errors.Is(err, frontier.ErrNotDue) && (at.IsZero() || at.After(end)):
			return "", false
		case errors.Is(err, frontier.ErrNotDue):
			c.clock.Set(at)
		default:
			require.NoError(c, err)
			return c.fetch(l), true
		}
	}
	require.Fail(c, "nothing becomes due")
	return "", false
}

func (c *crawl) fetch(l frontier.Lease) string {
	var host, page uint64
	_, err := fmt.Sscanf(l.Entry.URL, "http://h%d.example/%d", &host, &page)
	require.NoError(c, err)
	day := uint64(c.clock.Now().Sub(dawn) / (24 * time.Hour))
	out := frontier.Outcome{Result: frontier.Unchanged}
	switch {
	case c.gone[l.Entry.URL]:
		out.Result = frontier.Gone
	case rand.New(rand.NewPCG(page, day)).Float64() < math.Min(1, 10/float64(page+1)):
		out.Result = frontier.Changed
	}
	require.NoError(c, c.f.Done(l, out))
	return fmt.Sprintf("%s %v", l.Entry.URL, c.clock.Now().Sub(dawn))
}

// After a kill the same pages come at the same times, at the same price.
func TestKillAndRestore(t *testing.T) {
	machine := spilltest.OpenMemory(t, spill.Options{})
	c := newCrawl(t, dawn, machine.Store)
	c.add(200)
	end := dawn.Add(40 * 24 * time.Hour)
	for {
		if _, ok := c.step(end); !ok {
			break
		}
	}
	require.Positive(t, c.f.Stats().Done[frontier.PutOff], "the price rose meanwhile")
	_, err := c.f.Add(context.Background()) // what is put off need not be durable: a kill may revert it
	require.NoError(t, err)
	saved, err := c.s.MarshalBinary()
	require.NoError(t, err)
	dead := machine.Kill(t)
	r := newCrawl(t, c.clock.Now(), dead.Store)
	require.NoError(t, r.s.UnmarshalBinary(saved))
	price := c.s.Stats().Price
	assert.InEpsilon(t, price, r.s.Stats().Price, 1e-9)
	want, got := c.pages(), r.pages()
	require.Len(t, want, 200)
	require.Equal(t, want, got, "each page has its state and its time")
	// Without what was saved the states of the pages are enough.
	rebuilt, err := recrawl.New(recrawl.Options{Budget: perSecond})
	require.NoError(t, err)
	n, err := adapter.New(rebuilt, adapter.Options{}).Recount(context.Background(), r.f)
	require.NoError(t, err)
	assert.Equal(t, 200, n)
	assert.InEpsilon(t, c.s.Stats().Promised, rebuilt.Stats().Promised, 1e-9)
	_, ok := r.step(end.Add(24 * time.Hour))
	require.True(t, ok, "it goes on")
	assert.EqualValues(t, c.s.Stats().Pages, rebuilt.Stats().Pages)
}

// line is a page as an export has it.
type line struct {
	URL   string
	Due   time.Time
	State []byte
}

// pages are all pages of the frontier in order of their times.
func (c *crawl) pages() (pages []line) {
	var out bytes.Buffer
	require.NoError(c, transfer.Export(context.Background(), c.f, &out, transfer.ExportOptions{}))
	for d := json.NewDecoder(&out); d.More(); {
		var l line
		require.NoError(c, d.Decode(&l))
		if l.URL != "" {
			pages = append(pages, l)
		}
	}
	slices.SortStableFunc(pages, func(a, b line) int { return a.Due.Compare(b.Due) })
	return pages
}

// A page that is let through is as it was: nothing is lost if its lease comes back.
func TestRecheckLosesNothing(t *testing.T) {
	s, err := recrawl.New(recrawl.Options{Budget: 1})
	require.NoError(t, err)
	x := adapter.New(s, adapter.Options{})
	now, v := dawn, frontier.Visit{Host: "a.example"}
	for {
		v.Outcome = frontier.Outcome{Result: frontier.Changed, Ended: now}
		_, v.Before.State = x.Next(v)
		if s.Stats().Probes > 0 {
			break
		}
		now = now.Add(10 * 24 * time.Hour)
	}
	now = now.Add(1000 * 24 * time.Hour) // too late for a probe
	due, keep := x.Recheck(v.Entry, v.Host, v.Before, now)
	require.Equal(t, now, due)
	require.Equal(t, v.Before.State, keep)
}

// A page's weight may be another one than its Entry says, and other than it was.
func TestWeights(t *testing.T) {
	s, err := recrawl.New(recrawl.Options{Budget: 1})
	require.NoError(t, err)
	weight := 5.
	x := adapter.New(s, adapter.Options{Weight: func(e frontier.Entry, h frontier.History) float64 {
		require.Equal(t, "http://a.example/", e.URL)
		return weight
	}})
	v := frontier.Visit{Entry: frontier.Entry{URL: "http://a.example/", Weight: 7}, Host: "a.example"}
	for i, w := range []float64{5, 5, 100, 0.01} {
		weight, v.Outcome.Ended = w, dawn.Add(time.Duration(i)*time.Hour)
		var due time.Time
		due, v.Before.State = x.Next(v)
		require.False(t, due.IsZero())
		require.InEpsilon(t, w, x.PageOf(v.Host, v.Before).State.Weight(), 0.04)
		require.EqualValues(t, 1, s.Stats().Pages)
	}
	weight = 3
	known := frontier.Entry{URL: "http://a.example/", Weight: 7}
	said := x.Hint(known, frontier.Entry{}, v.Host, v.Before, v.Outcome.Ended)
	require.InEpsilon(t, 3, x.PageOf(v.Host, frontier.History{State: said.Keep}).State.Weight(), 0.04)
	weight, v.Before.State = 0, said.Keep
	due, _ := x.Next(v)
	require.True(t, due.IsZero(), "it does not come again")
	require.Zero(t, s.Stats().Pages)
}

// Hosts' numbers depend on a key.
func TestHostNumbers(t *testing.T) {
	s, err := recrawl.New(recrawl.Options{})
	require.NoError(t, err)
	seen := map[uint32]bool{}
	for key := range uint64(8) {
		x := adapter.New(s, adapter.Options{Key: [2]uint64{0, key}})
		for _, host := range []string{"", "a.example", "b.example", strings.Repeat("long.", 100) + "example"} {
			n := x.HostNumber(host)
			require.False(t, seen[n], "%d %s", key, host)
			require.Equal(t, n, adapter.New(s, adapter.Options{Key: [2]uint64{0, key}}).HostNumber(host))
			seen[n] = true
		}
	}
	require.Equal(t, uint32(0xb01f6e5f), adapter.New(s, adapter.Options{}).HostNumber("a.example"), "as long as snapshots live")
}

// A page that is gone is looked at again over days, reported, and looked at seldom; when it is back it is a page like others.
func TestGonePagesAreConfirmedAndRemembered(t *testing.T) {
	c := newCrawl(t, dawn, nil)
	c.add(1)
	const page = "http://h0.example/0"
	visit := func(wait time.Duration) {
		t.Helper()
		from := c.clock.Now()
		_, ok := c.step(from.Add(1000 * 24 * time.Hour))
		require.True(t, ok)
		require.InDelta(t, wait.Seconds(), c.clock.Now().Sub(from).Seconds(), 2)
	}
	visit(0)
	c.gone[page] = true
	_, ok := c.step(dawn.Add(1000 * 24 * time.Hour))
	require.True(t, ok)
	require.Empty(t, c.lost)
	for len(c.lost) == 0 {
		_, ok := c.step(dawn.Add(1000 * 24 * time.Hour))
		require.True(t, ok)
	}
	require.Equal(t, []string{page}, c.lost)
	visit(30 * 24 * time.Hour)
	require.Len(t, c.lost, 2)
	delete(c.gone, page)
	_, ok = c.step(dawn.Add(1000 * 24 * time.Hour))
	require.True(t, ok)
	require.Len(t, c.lost, 2)
	require.EqualValues(t, 1, c.f.Stats().Scheduled)
	require.EqualValues(t, 1, c.s.Stats().Pages)
}

// The prioritizer sees what was learned.
func TestPrioritizerSeesTheHistory(t *testing.T) {
	s, err := recrawl.New(recrawl.Options{})
	require.NoError(t, err)
	clock, pages := simclock.New(dawn), adapter.New(s, adapter.Options{})
	var rates []float64
	f, err := frontier.Open(t.Context(), frontier.Options{
		Clock: clock, KeepOpen: true, Priorities: 2, Delay: frontier.FixedDelay(0), Scheduler: pages,
		Prioritizer: frontier.PrioritizerFunc(func(e frontier.Entry, h frontier.History) int {
			if h.Visits == 0 {
				return 2
			}
			page := pages.PageOf("a.example", h)
			require.InEpsilon(t, 5, page.State.Weight(), 0.1)
			require.Equal(t, frontier.Changed, h.Last)
			rates = append(rates, page.State.Rate())
			return 1
		}),
	})
	require.NoError(t, err)
	_, err = f.Add(t.Context(), frontier.Entry{URL: "http://a.example/", Weight: 5})
	require.NoError(t, err)
	for range 3 {
		l, _, err := f.TryNext()
		require.NoError(t, err)
		require.NoError(t, f.Done(l, frontier.Outcome{Result: frontier.Changed}))
		_, at, err := f.TryNext()
		require.ErrorIs(t, err, frontier.ErrNotDue)
		clock.Set(at)
	}
	require.Len(t, rates, 3)
	require.Greater(t, rates[2], rates[0], "it changed each time")
	require.NoError(t, f.Check())
	require.NoError(t, f.Close())
}

// What does the scheduling part of a Done cost?
func BenchmarkNext(b *testing.B) {
	s, err := recrawl.New(recrawl.Options{Budget: 100})
	require.NoError(b, err)
	r := adapter.New(s, adapter.Options{})
	const pages = 1 << 16
	states, now := make([]frontier.State, pages), dawn
	v := frontier.Visit{Entry: frontier.Entry{URL: "http://a.example/"}, Host: "a.example"}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		now = now.Add(time.Second)
		v.Before.State, v.Outcome = states[i%pages], frontier.Outcome{Result: frontier.Result(1 + i%2), Ended: now}
		_, states[i%pages] = r.Next(v)
	}
}

func TestSchedulingAllocatesNothing(t *testing.T) {
	s, err := recrawl.New(recrawl.Options{Budget: 100})
	require.NoError(t, err)
	var r frontier.Rechecker = adapter.New(s, adapter.Options{})
	v, now := frontier.Visit{Host: "a.example"}, dawn
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		now = now.Add(time.Hour)
		v.Outcome = frontier.Outcome{Result: frontier.Changed, Ended: now}
		_, v.Before.State = r.Next(v)
		_, v.Before.State = r.Recheck(v.Entry, v.Host, v.Before, now.Add(time.Hour))
	}))
}
