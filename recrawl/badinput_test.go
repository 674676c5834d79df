package recrawl_test

import (
	"container/heap"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier/recrawl"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestAllFaultsOfOptionsAreNamed(t *testing.T) {
	_, err := recrawl.New(recrawl.Options{Budget: math.NaN(), MinInterval: -1, MaxInterval: -2, Probe: -1, Burst: -1,
		Prior: recrawl.Gamma{Alpha: -1, Beta: math.NaN()}, NewShareMin: 2})
	require.Error(t, err)
	for _, name := range []string{"Budget", "MinInterval", "MaxInterval", "Probe", "Burst", "Prior.Alpha", "Prior.Beta", "NewShareMin"} {
		assert.ErrorContains(t, err, name)
	}
	s := scheduler(t, recrawl.Options{})
	for _, v := range []float64{math.NaN(), math.Inf(1), -1} {
		assert.Error(t, s.SetBudget(v))
		assert.Error(t, s.SetHostRate(1, v))
	}
}

// For any calls, in any order, the results are times within bounds and the figures are numbers.
func TestNothingMakesNonsense(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, err := recrawl.New(recrawl.Options{Budget: rapid.SampledFrom([]float64{0, 1e-300, 1e-9, 1, 1e300}).Draw(t, "budget")})
		require.NoError(t, err)
		hour := rapid.Custom(func(t *rapid.T) time.Time {
			return monday.Add(time.Duration(rapid.Int64Range(-1e6, 1e6).Draw(t, "hours")) * time.Hour)
		})
		pages := make([]recrawl.Page, 8)
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			i, now := rapid.IntRange(0, 7).Draw(t, "page"), hour.Draw(t, "now")
			p := &pages[i]
			switch rapid.IntRange(0, 9).Draw(t, "call") {
			case 0:
				s.Forget(*p)
				*p, _ = s.Admit(rapid.SampledFrom([]float64{math.NaN(), -1, 0, 1e-300, 1, 1e300, math.Inf(1)}).Draw(t, "weight"), uint32(i/2), now)
			case 1:
				*p = s.Hint(*p, hour.Draw(t, "claim"), now)
			case 2:
				*p, _ = s.Recheck(*p, now)
			case 3:
				require.NoError(t, s.SetBudget(rapid.SampledFrom([]float64{0, 1e-9, 1, 1e12}).Draw(t, "budget")))
			case 4:
				require.NoError(t, s.SetHostRate(uint32(i/2), rapid.SampledFrom([]float64{0, 1e-12, 1e-5, 1e12}).Draw(t, "rate")))
			case 5:
				*p = s.Reweigh(*p, rapid.Float64().Draw(t, "weight"), now)
			default:
				v := recrawl.Visit{At: now, Outcome: recrawl.Outcome(rapid.IntRange(0, 5).Draw(t, "outcome")), Modified: hour.Draw(t, "modified")}
				var a recrawl.Verdict
				*p, a = s.Done(*p, v)
				if !p.Due.IsZero() {
					assert.False(t, p.Due.Before(now.Add(time.Minute-time.Microsecond)), "due %v, now %v", p.Due, now)
					assert.False(t, p.Due.After(now.Add(365*day)), "due %v, now %v", p.Due, now)
				}
				assert.False(t, math.IsNaN(a.Index) || a.Index < 0)
			}
			x := s.Stats()
			for _, v := range []float64{x.Price, x.Demand, x.Promised, x.Freshness, x.NewShare, x.Budget} {
				require.False(t, math.IsNaN(v) || math.IsInf(v, 0) || v < 0, "%+v", x)
			}
			require.GreaterOrEqual(t, x.Pages, int64(0))
		}
	})
}

func TestABudgetOfAnySizeIsMet(t *testing.T) {
	s := scheduler(t, recrawl.Options{})
	pages := known(s, 500, oneHost)
	for _, c := range []struct {
		budget float64
		want   time.Duration
	}{{1e-300, 365 * day}, {1e300, time.Minute}} {
		require.NoError(t, s.SetBudget(c.budget))
		for i, p := range pages {
			pages[i], _ = s.Done(p, recrawl.Visit{At: monday, Outcome: recrawl.Visited})
			assert.InDelta(t, c.want.Hours(), pages[i].Due.Sub(monday).Hours(), 1e-6)
		}
	}
}

func TestAClockThatGoesBackTeachesNothing(t *testing.T) {
	s := scheduler(t, recrawl.Options{Budget: 1})
	known(s, 1000, oneHost)
	p, _ := s.Admit(1, 1, monday)
	p, _, _ = visits(s, p, recrawl.Changed, recrawl.Unchanged)
	q, _ := s.Done(p, recrawl.Visit{At: p.Last.Add(-1000 * day), Outcome: recrawl.Changed})
	assert.Equal(t, p.State[:3], q.State[:3])
	assert.False(t, q.Due.After(q.Last.Add(365*day)))
	q, _ = s.Done(q, recrawl.Visit{At: p.Due, Outcome: recrawl.Unchanged})
	assert.True(t, q.Due.After(p.Due), "all is well again")
}

// A server whose Last-Modified is in the future, or always "now", or contradicts what is found, is
// treated like one that sends none.
func TestALyingLastModifiedIsNotUsed(t *testing.T) {
	rate := func(modified func(at time.Time) time.Time) float64 {
		s := scheduler(t, recrawl.Options{Budget: 1})
		p, _ := s.Admit(1, 1, monday)
		for i := range 12 {
			at := monday.Add(time.Duration(i) * 10 * day)
			p, _ = s.Done(p, recrawl.Visit{At: at, Outcome: recrawl.Outcome(i % 2), Modified: modified(at)})
		}
		return p.State.Rate()
	}
	honest := rate(func(time.Time) time.Time { return time.Time{} })
	assert.InEpsilon(t, honest, rate(func(at time.Time) time.Time { return at.Add(100 * day) }), 0.3, "the future")
	assert.InEpsilon(t, honest, rate(func(at time.Time) time.Time { return at }), 0.3, "now")
	assert.InEpsilon(t, honest, rate(func(at time.Time) time.Time { return at.Add(-2 * time.Hour) }), 0.3, "two hours ago")
}

// After a month without a fetch everything is due. The fetches keep to the
// budget, and all pages get theirs.
func TestNoStormAfterAPause(t *testing.T) {
	const perDay = 2400.
	s := scheduler(t, recrawl.Options{Budget: perDay / 86400})
	pages := known(s, 6000, oneHost)
	for i, p := range pages {
		pages[i], _ = s.Done(p, recrawl.Visit{At: monday, Outcome: recrawl.Visited})
	}
	now := monday.Add(90 * day)
	before := s.Stats().Price
	first, done, hours, asked := 0, map[int]bool{}, 0, 0
	when := make([]time.Time, len(pages))
	for i, p := range pages {
		if p.Due.After(now) {
			done[i] = true // it was not overdue
		}
	}
	for ; len(done) < len(pages) && hours < 24*30; hours++ {
		for i, p := range pages {
			if p.Due.After(now) || when[i].After(now) {
				continue
			}
			asked++
			if pages[i], when[i] = s.Recheck(p, now); !when[i].After(now) {
				pages[i], _ = s.Done(pages[i], recrawl.Visit{At: now, Outcome: recrawl.Visited})
				done[i] = true
				if hours == 0 {
					first++
				}
			} else if pages[i].Due.After(now) { // at today's price it is not due
				assert.False(t, pages[i].Due.After(p.Last.Add(365*day)))
				done[i] = true
			}
		}
		now = now.Add(time.Hour)
	}
	assert.LessOrEqual(t, first, int(2.5*perDay/24), "of the first hour")
	assert.Len(t, done, len(pages), "nothing starves")
	assert.Less(t, hours, 24*5)
	assert.Less(t, asked, 20*len(pages), "pages are not put off again and again")
	assert.InEpsilon(t, before, s.Stats().Price, 0.1)
}

// byDue is a heap of pages by due time.
type byDue []recrawl.Page

func (h byDue) Len() int           { return len(h) }
func (h byDue) Less(i, j int) bool { return h[i].Due.Before(h[j].Due) }
func (h byDue) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *byDue) Push(x any)        { *h = append(*h, x.(recrawl.Page)) }
func (h *byDue) Pop() any {
	n := len(*h) - 1
	x := (*h)[n]
	*h = (*h)[:n]
	return x
}

// A budget that is measured does not sink because the crawl had nothing to do.
func TestAMeasuredBudgetFindsWhatTheCrawlCanMake(t *testing.T) {
	const can = 1000. // a day
	s := scheduler(t, recrawl.Options{})
	pages := byDue(known(s, 3000, oneHost))
	heap.Init(&pages)
	now := monday
	for range int(100 * can) {
		now = now.Add(day / can)
		if pages[0].Due.After(now) {
			continue
		}
		pages[0], _ = s.Done(pages[0], recrawl.Visit{At: now, Outcome: recrawl.Visited})
		heap.Fix(&pages, 0)
	}
	x := s.Stats()
	assert.InDelta(t, 1, x.Budget*86400/can, 0.2, "%+v", x)
	now = now.Add(1000 * day)
	for range 500 {
		now = now.Add(day / can)
		pages[0], _ = s.Done(pages[0], recrawl.Visit{At: now, Outcome: recrawl.Visited})
		heap.Fix(&pages, 0)
	}
	assert.InEpsilon(t, x.Budget, s.Stats().Budget, 0.15, "a pause is no measure")
}

func TestAnUnknownOutcomeTeachesNothing(t *testing.T) {
	s := scheduler(t, recrawl.Options{Budget: 1})
	p, _ := s.Admit(1, 1, monday)
	p, _, _ = visits(s, p, recrawl.Changed, recrawl.Unchanged)
	q, _, _ := visits(s, p, recrawl.Outcome(99))
	assert.Equal(t, p.State, q.State)
}

// Each goroutine has separate pages; in the end the accounts balance.
func TestManyCallersAtOnce(t *testing.T) {
	s := scheduler(t, recrawl.Options{Budget: 1})
	require.NoError(t, s.SetHostRate(1, 0.1))
	var all sync.WaitGroup
	for g := range uint32(8) {
		all.Go(func() {
			pages := make([]recrawl.Page, 50)
			for i := range pages {
				pages[i], _ = s.Admit(1, g, monday)
			}
			live(s, pages, 0, 1000)
			s.Stats()
			_, err := s.MarshalBinary()
			assert.NoError(t, err)
			for _, p := range pages {
				s.Forget(p)
			}
		})
	}
	all.Wait()
	x := s.Stats()
	assert.Zero(t, x.Pages)
	assert.Zero(t, x.NewPages)
	assert.InDelta(t, 0, x.Promised, 1e-9)
}

func TestALiarIsNotBelievedAfterwards(t *testing.T) {
	rate := func(lies int, modified time.Time) float64 {
		s := scheduler(t, recrawl.Options{Budget: 1})
		for range lies { // "it has changed", and it has not
			p, _ := s.Admit(1, 1, monday)
			p, _ = s.Done(p, recrawl.Visit{At: monday})
			s.Done(p, recrawl.Visit{At: monday.Add(10 * day), Outcome: recrawl.Unchanged, Modified: monday.Add(5 * day)})
		}
		p, _ := s.Admit(1, 1, monday)
		p, _ = s.Done(p, recrawl.Visit{At: monday})
		p, _ = s.Done(p, recrawl.Visit{At: monday.Add(100 * day), Modified: modified})
		return p.State.Rate()
	}
	assert.Less(t, rate(0, monday.Add(day)), 0.7*rate(0, time.Time{}))
	assert.InEpsilon(t, rate(5, time.Time{}), rate(5, monday.Add(day)), 0.2)
}
