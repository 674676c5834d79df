// This file runs simulated crawls: whether workers are kept busy with few hosts bound,
// within the memory budget.

package load

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/internal/lab/policysim"
	"github.com/seed-7440039f/frontier/selector"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/test/harness"
)

// simulated is the frontier as a policy of policysim.
type simulated struct {
	*harness.World
	leases map[int32]frontier.Lease // by host
	found  int                      // makes URLs unique
	wake   time.Time

	asked     int // calls of the selector
	samples   int
	bound     float64 // sum over samples
	maxBound  int64
	resident  int64 // most bytes of URLs in memory
	maxMemory int64
}

// simulate returns the frontier with a crawl's delay.
func simulate(t *testing.T, c policysim.Crawl, o frontier.Options, stored bool) *simulated {
	s := &simulated{leases: map[int32]frontier.Lease{}}
	random := selector.BiasedRandom(c.Seed)
	o.Delay = frontier.FixedDelay(c.Delay)
	o.Prioritizer = frontier.PrioritizerFunc(func(e frontier.Entry, _ frontier.History) int { return int(e.Weight) })
	o.Selector = selector.Func(func(available []int) int {
		s.asked++
		return random.Select(available)
	})
	if stored {
		s.World = harness.NewStoredWorld(t, o, spill.Options{})
	} else {
		s.World = harness.NewWorld(t, o)
	}
	return s
}

func (s *simulated) entry(u policysim.URL) frontier.Entry {
	s.found++
	return frontier.Entry{URL: fmt.Sprintf("http://h%d.example/%d", u.Host, s.found), Weight: float64(u.Priority)}
}

func (s *simulated) Add(urls []policysim.URL) {
	entries := make([]frontier.Entry, len(urls))
	for i, u := range urls {
		entries[i] = s.entry(u)
	}
	n, err := s.F.Add(context.Background(), entries...)
	require.NoError(s, err)
	require.Equal(s, len(urls), n)
	s.weigh()
}

func (s *simulated) Next(now time.Duration) (policysim.URL, bool) {
	s.Until(now)
	l, at, err := s.F.TryNext()
	if err != nil {
		require.ErrorIs(s, err, frontier.ErrNotDue)
		s.wake = at
		return policysim.URL{}, false
	}
	u := policysim.URL{Priority: uint8(l.Priority)}
	_, err = fmt.Sscanf(l.Host, "h%d.example", &u.Host)
	require.NoError(s, err)
	s.leases[u.Host] = l
	return u, true
}

func (s *simulated) Wake(time.Duration) time.Duration {
	if s.wake.IsZero() {
		return policysim.Never
	}
	return s.wake.Sub(harness.Dawn)
}

func (s *simulated) Done(now time.Duration, u, found policysim.URL) {
	s.Until(now)
	require.NoError(s, s.F.Done(s.leases[u.Host], frontier.Outcome{Add: []frontier.Entry{s.entry(found)}}))
	delete(s.leases, u.Host)
}

// look is called after each second of the crawl.
func (s *simulated) look() {
	st := s.F.Stats()
	s.samples++
	s.bound += float64(st.Bound)
	s.maxBound = max(s.maxBound, st.Bound)
	s.weigh()
}

func (s *simulated) weigh() {
	st := s.F.Stats()
	s.resident = max(s.resident, st.Resident)
	s.maxMemory = max(s.maxMemory, st.MemoryBytes)
}

// crawls are the workloads that distinguish scheduling policies: 2 million URLs
// of a million hosts, or a tenth of that and fewer workers, for a shorter time.
func crawls() []policysim.Crawl {
	second, minute := time.Second, time.Minute
	all := []policysim.Crawl{
		{Workers: 100, Zipf: 1.1, Delay: second, Length: 30 * minute},
		{Workers: 100, Zipf: 1.1, Half: true, Delay: second, Length: 30 * minute},
		{Workers: 1000, Zipf: 1.1, Delay: second, Length: 10 * minute},
		{Workers: 1000, Zipf: 1.1, Half: true, Delay: second, Length: 10 * minute},
		{Workers: 100, Zipf: 1.1, Delay: 10 * second, Length: 30 * minute},
		{Workers: 100, Zipf: 1.4, Delay: second, Length: 30 * minute},
	}
	for i := range all {
		c := &all[i]
		c.URLs, c.Hosts, c.Seed = 2_000_000, 1_000_000, 11
		if !*harness.Long {
			c.URLs, c.Hosts = c.URLs/20, c.Hosts/20
			c.Workers /= 5
			c.Length /= 12
			if harness.RaceEnabled {
				c.Length /= 6
			}
		}
	}
	return all
}

func describe(c policysim.Crawl) string {
	s := fmt.Sprintf("T=%d, D=%v, Zipf %.1f", c.Workers, c.Delay, c.Zipf)
	if c.Half {
		s += ", one host 50 %"
	}
	return s
}

// Workers are busy, and few hosts are bound: of those that were bound for a URL of high priority, and
// have only others left, no more become ready than the selector asks for. The test also prints how many
// back queues the crawls need, and what a fixed number of them costs.
func TestWorkersAreAsBusyAsUnderTheBestPolicy(t *testing.T) {
	if testing.Short() {
		t.Skip("simulations")
	}
	var table strings.Builder
	percent := func(x float64) string { return fmt.Sprintf("%.1f %%", 100*x) }
	fmt.Fprintf(&table, "%d URLs; workers busy:\n", crawls()[0].URLs)
	fmt.Fprintf(&table, "%-38s %8s %8s %8s %8s %8s %8s | hosts bound: mean, most | T(D+f)/f | selector per hand-out | published: most URLs in back queues, pulls per refill\n",
		"crawl", "frontier", "by time", "publ.", "B=3T", "B=10T", "B=50T")
	for _, c := range crawls() {
		t.Run(describe(c), func(t *testing.T) {
			s := simulate(t, c, frontier.Options{MemoryBudget: 2 << 30}, false)
			ours := c.Run(s, s.look)
			byTime := c.Run(policysim.TimeOrder(c), nil)
			published := policysim.NewPublished(c, 3*c.Workers)
			mercator := c.Run(published, nil)
			best := max(byTime.Busy, mercator.Busy)
			fixed := map[int]float64{}
			for _, b := range []int{3, 10, 50} {
				fixed[b] = c.Run(policysim.FixedB(c, b*c.Workers, 32), nil).Busy
				best = max(best, fixed[b])
			}
			need := float64(c.Workers) * (1 + float64(c.Delay)/float64(policysim.MeanFetch))
			fmt.Fprintf(&table, "%-38s %8s %8s %8s %8s %8s %8s | %11.0f %11d | %8.0f | %21.3f | %9d %5.2f\n", describe(c),
				percent(ours.Busy), percent(byTime.Busy), percent(mercator.Busy), percent(fixed[3]), percent(fixed[10]), percent(fixed[50]),
				s.bound/float64(s.samples), s.maxBound, need,
				float64(s.asked)/float64(ours.Fetched),
				published.MaxResident, float64(published.Pulls)/float64(published.Refills))
			assert.GreaterOrEqual(t, ours.Busy, 0.95*best)
			assert.LessOrEqual(t, s.asked, ours.Fetched*11/10, "calls of the selector")
			assert.LessOrEqual(t, float64(s.maxBound), 1.25*need+64, "hosts bound")
		})
	}
	t.Log("\n" + table.String())
}

// TestCrawlStaysWithinItsMemoryBudget runs the crawl in which one host has half
// of the URLs, on a store, with little memory for URLs.
func TestCrawlStaysWithinItsMemoryBudget(t *testing.T) {
	if testing.Short() {
		t.Skip("simulation")
	}
	c := crawls()[1]
	c.Length /= 5
	o := frontier.Options{MemoryBudget: 100 << 20} // two thirds are hosts, queues and marks
	if harness.RaceEnabled {
		t.Skip("one goroutine hands out; TestEveryRealURLComesOutOnce has many")
	}
	if !*harness.Long {
		c.URLs, c.Hosts = 2*c.URLs, 2*c.Hosts
		o.MemoryBudget /= 8
	}
	s := simulate(t, c, o, true)
	o.MemoryBudget += s.Machine.Store.Footprint()
	inMemory := simulate(t, c, frontier.Options{MemoryBudget: 2 << 30}, false)
	want := c.Run(inMemory, inMemory.look)
	got := c.Run(s, s.look)
	t.Logf("on a store: workers busy %.1f %%, at most %d bytes of URLs and %d in all resident, budget %d; in memory: %.1f %%, %d, %d",
		100*got.Busy, s.resident, s.maxMemory, o.MemoryBudget, 100*want.Busy, inMemory.resident, inMemory.maxMemory)
	require.GreaterOrEqual(t, got.Busy, 0.95*want.Busy)
	require.LessOrEqual(t, s.maxMemory, o.MemoryBudget)
	require.Less(t, s.resident, inMemory.resident/2, "most URLs wait on disk")
}
