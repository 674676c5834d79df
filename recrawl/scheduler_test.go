package recrawl_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier/recrawl"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const day = 24 * time.Hour

var monday = time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)

func scheduler(t testing.TB, o recrawl.Options) *recrawl.Scheduler {
	t.Helper()
	s, err := recrawl.New(o)
	require.NoError(t, err)
	return s
}

// known takes n pages in whose rates are known, from a day to two years.
func known(s *recrawl.Scheduler, n int, host func(i int) uint32) []recrawl.Page {
	r := rand.New(rand.NewPCG(1, 2))
	pages := make([]recrawl.Page, n)
	for i := range pages {
		p := recrawl.Page{State: recrawl.Known(math.Exp(-6.5*r.Float64()), math.Exp(2*r.NormFloat64())), Host: host(i), Due: monday}
		pages[i] = s.Learn(p)
	}
	return pages
}

func oneHost(int) uint32 { return 1 }

func TestThePriceMeetsTheBudget(t *testing.T) {
	s := scheduler(t, recrawl.Options{})
	pages := known(s, 20000, oneHost)
	for _, perDay := range []float64{200, 2000, 60000} {
		require.NoError(t, s.SetBudget(perDay/86400))
		sum, due := 0., 0.
		for i, p := range pages {
			pages[i], _ = s.Done(p, recrawl.Visit{At: monday, Outcome: recrawl.Visited})
			sum += day.Hours() / s.Interval(pages[i]).Hours()
			due += day.Hours() / pages[i].Due.Sub(monday).Hours()
		}
		x := s.Stats()
		assert.InEpsilon(t, perDay, x.Demand*86400, 0.005)
		assert.InEpsilon(t, perDay, sum, 0.01)
		assert.InEpsilon(t, due, x.Promised*86400, 0.001)
		assert.Less(t, due, 1.5*perDay, "Recheck is not asked much more often than pages are fetched")
		assert.True(t, x.Freshness > 0 && x.Freshness < 1)
	}
}

// A page is due when its index is the price.
func TestIndexIsOnePriceWhenDue(t *testing.T) {
	s := scheduler(t, recrawl.Options{Budget: 1000. / 86400})
	for i, p := range known(s, 5000, oneHost) {
		p, v := s.Done(p, recrawl.Visit{At: monday, Outcome: recrawl.Visited})
		if pays := s.Interval(p); pays < 364*day && i%250 != 0 {
			assert.InDelta(t, 1, v.Index, 0.05)
			assert.InDelta(t, v.Index, s.Index(p, monday.Add(pays)), 0.05)
		}
	}
}

func TestABoundHostHasItsOwnPrice(t *testing.T) {
	s := scheduler(t, recrawl.Options{Budget: 1000. / 86400})
	require.NoError(t, s.SetHostRate(1, 20./86400))
	half := func(i int) uint32 { return uint32(i % 2) }
	pages := known(s, 8000, half)
	var sum [2]float64
	for range 3 {
		sum = [2]float64{}
		for i, p := range pages {
			pages[i], _ = s.Done(p, recrawl.Visit{At: monday, Outcome: recrawl.Visited})
			sum[p.Host] += day.Hours() / s.Interval(pages[i]).Hours()
		}
	}
	assert.InEpsilon(t, 20, sum[1], 0.1)
	assert.InEpsilon(t, 980, sum[0], 0.02, "the others have the rest")
	require.NoError(t, s.SetHostRate(1, 0))
	for i, p := range pages {
		pages[i], _ = s.Done(p, recrawl.Visit{At: monday, Outcome: recrawl.Visited})
	}
	assert.InEpsilon(t, 1000, s.Stats().Demand*86400, 0.03)
	for _, p := range pages {
		s.Forget(p)
	}
	x := s.Stats()
	assert.Zero(t, x.Pages)
	assert.InDelta(t, 0, x.Promised, 1e-9, "the books are even")
}

// visits lets a page be fetched when it is due, with the outcomes given, and
// returns the waits in between.
func visits(s *recrawl.Scheduler, p recrawl.Page, outcomes ...recrawl.Outcome) (recrawl.Page, []time.Duration, recrawl.Verdict) {
	var waits []time.Duration
	var v recrawl.Verdict
	for _, o := range outcomes {
		at := p.Due
		p, v = s.Done(p, recrawl.Visit{At: at, Outcome: o})
		waits = append(waits, p.Due.Sub(at))
	}
	return p, waits, v
}

// untilProbed visits a page that changes until its next fetch is a probe.
func untilProbed(t *testing.T, s *recrawl.Scheduler, p recrawl.Page) recrawl.Page {
	t.Helper()
	for range 10 {
		var waits []time.Duration
		if p, waits, _ = visits(s, p, recrawl.Changed); waits[0] == time.Hour {
			return p
		}
	}
	require.Fail(t, "it is not probed", "%v", p.State)
	return p
}

func TestAPageThatChangesAtEveryFetchIsFoundOut(t *testing.T) {
	s := scheduler(t, recrawl.Options{Budget: 100. / 86400})
	known(s, 1000, oneHost)
	p, _ := s.Admit(100, 1, monday)
	p, _, _ = visits(s, p, recrawl.Changed)
	p, waits, v := visits(s, p, recrawl.Changed)
	assert.Equal(t, time.Hour, waits[0], "the probe: a change in two days is a surprise")
	assert.Equal(t, recrawl.Check, v.Class)
	p, waits, _ = visits(s, p, recrawl.Changed)
	assert.Equal(t, time.Minute, waits[0], "the second probe")
	p, waits, _ = visits(s, p, recrawl.Changed)
	assert.True(t, p.State.Volatile())
	assert.Equal(t, 365*day, s.Interval(p))
	assert.Equal(t, 20*day, waits[0], "Recheck is asked")
	assert.EqualValues(t, 2, s.Stats().Probes)
	p, _, _ = visits(s, p, recrawl.Unchanged)
	assert.False(t, p.State.Volatile(), "it has changed its ways")
}

func TestAProbeClearsAPage(t *testing.T) {
	s := scheduler(t, recrawl.Options{Budget: 100. / 86400})
	known(s, 1000, oneHost)
	p, _ := s.Admit(1, 1, monday)
	p = untilProbed(t, s, p)
	rate := p.State.Rate()
	p, waits, _ := visits(s, p, recrawl.Unchanged, recrawl.Changed, recrawl.Changed, recrawl.Changed, recrawl.Changed)
	for _, w := range waits {
		assert.NotEqual(t, time.Hour, w, "it is not probed again")
	}
	assert.Greater(t, p.State.Rate(), rate)
}

func TestGonePages(t *testing.T) {
	s := scheduler(t, recrawl.Options{Budget: 1})
	p, _ := s.Admit(1, 1, monday)
	p, _, _ = visits(s, p, recrawl.Changed)
	p, waits, v := visits(s, p, recrawl.Gone, recrawl.Gone, recrawl.Gone)
	assert.Equal(t, []time.Duration{time.Hour, 12 * time.Hour, 2 * day}, waits, "it is confirmed")
	assert.False(t, v.Drop)
	assert.False(t, p.State.Gone())
	assert.Zero(t, s.Stats().Pages)
	p, waits, v = visits(s, p, recrawl.Gone, recrawl.Gone, recrawl.Gone, recrawl.Gone, recrawl.Gone, recrawl.Gone)
	assert.True(t, v.Drop && p.State.Gone())
	for i, want := range []float64{30, 32, 65, 130, 240, 240} {
		assert.InDelta(t, want, waits[i].Hours()/24, 1, i)
	}
	p, waits, _ = visits(s, p, recrawl.Failed)
	assert.Equal(t, time.Hour, waits[0])
	assert.True(t, p.State.Gone())
	p, _, v = visits(s, p, recrawl.Changed)
	assert.False(t, v.Drop || p.State.Gone(), "it is back")
	assert.EqualValues(t, 1, s.Stats().Pages)
	p, waits, v = visits(s, p, recrawl.Denied, recrawl.Denied, recrawl.Gone, recrawl.Denied)
	assert.Equal(t, []time.Duration{time.Hour, 12 * time.Hour, 2 * day, 30 * day}, waits, "either counts")
	assert.False(t, v.Drop)
	p, waits, v = visits(s, p, recrawl.Gone)
	assert.Equal(t, time.Hour, waits[0], "that it is gone is confirmed anew")
	assert.False(t, v.Drop || p.State.Gone())
}

// A page that was read is not put away for what passes in hours, whatever it is, nor a
// page that is seldom fetched for one bad day; and what it was denied is forgotten when it
// is back.
func TestNoPageIsPutAwayForADay(t *testing.T) {
	for _, o := range []recrawl.Outcome{recrawl.Gone, recrawl.Denied} {
		for _, rate := range []float64{10, 1, 1e-3} {
			s := scheduler(t, recrawl.Options{Budget: 1000. / 86400})
			known(s, 1000, oneHost)
			p := s.Learn(recrawl.Page{State: recrawl.Known(rate, 1000), Host: 1, Last: monday, Due: monday.Add(day)})
			first := p.Due
			for p.Due.Before(first.Add(24 * time.Hour)) {
				before := p.Due
				var v recrawl.Verdict
				p, v = s.Done(p, recrawl.Visit{At: before, Outcome: o})
				require.False(t, v.Drop, "%v after %v", o, before.Sub(first))
				require.LessOrEqual(t, p.Due.Sub(before), max(4*s.Interval(p), 2*day), "%v after %v", o, before.Sub(first))
			}
			p, _ = s.Done(p, recrawl.Visit{At: p.Due, Outcome: recrawl.Changed})
			before := p.Due
			p, _ = s.Done(p, recrawl.Visit{At: before, Outcome: o})
			require.LessOrEqual(t, p.Due.Sub(before), max(s.Interval(p), time.Hour), "it begins anew")
		}
	}
}

// A crawl that stood still for months does not take its first look for a confirmation.
func TestAPauseConfirmsNothing(t *testing.T) {
	s := scheduler(t, recrawl.Options{Budget: 1})
	p := s.Learn(recrawl.Page{State: recrawl.Known(1, 4), Host: 1, Last: monday, Due: monday.Add(day)})
	late := monday.Add(200 * day)
	p, _ = s.Done(p, recrawl.Visit{At: late, Outcome: recrawl.Gone})
	p, v := s.Done(p, recrawl.Visit{At: p.Due, Outcome: recrawl.Gone})
	assert.False(t, v.Drop)
	assert.Less(t, p.Due.Sub(late), 2*day)
}

func TestFailuresTeachNothing(t *testing.T) {
	s := scheduler(t, recrawl.Options{Budget: 10. / 86400})
	known(s, 1000, oneHost)
	p, _ := s.Admit(1, 1, monday)
	p, _, _ = visits(s, p, recrawl.Changed, recrawl.Unchanged)
	last, state := p.Last, p.State
	p, waits, _ := visits(s, p, recrawl.Failed, recrawl.Failed, recrawl.Failed, recrawl.Failed)
	assert.Equal(t, []time.Duration{time.Minute, 8 * time.Minute, 64 * time.Minute, 512 * time.Minute}, waits)
	assert.Equal(t, last, p.Last)
	assert.Equal(t, state[:3], p.State[:3])
}

func TestRatesAreLearned(t *testing.T) {
	s := scheduler(t, recrawl.Options{Budget: 100. / 86400})
	known(s, 1000, oneHost)
	for _, rate := range []float64{1, 0.1, 0.01} {
		r := rand.New(rand.NewPCG(3, 4))
		logs, n := 0., 40
		for range n {
			p, _ := s.Admit(1, 1, monday)
			p.Due = monday
			next := monday
			for range 100 { // fetched each 1/rate days
				at := p.Due
				o := recrawl.Unchanged
				for !next.After(at) {
					o = recrawl.Changed
					next = next.Add(time.Duration(r.ExpFloat64() / rate * float64(day)))
				}
				p, _ = s.Done(p, recrawl.Visit{At: at, Outcome: o})
				p.Due = at.Add(time.Duration(float64(day) / rate))
			}
			logs += math.Log(p.State.Rate())
		}
		assert.InDelta(t, math.Log(rate), logs/float64(n), 0.25)
	}
}

func TestLastModifiedTeachesMore(t *testing.T) {
	exact := func(modified bool) float64 {
		s := scheduler(t, recrawl.Options{Budget: 1})
		p, _ := s.Admit(1, 1, monday)
		p, _ = s.Done(p, recrawl.Visit{At: monday})
		v := recrawl.Visit{At: monday.Add(100 * day)}
		if modified { // it was quiet for 99 days
			v.Modified = monday.Add(day)
		}
		p, _ = s.Done(p, v)
		return p.State.Rate()
	}
	assert.Less(t, exact(true), 0.7*exact(false))
}

func TestNewPagesHaveTheirShare(t *testing.T) {
	share := func(o recrawl.Options, budget, weight float64) float64 {
		o.Budget = budget / 86400
		s := scheduler(t, o)
		for i, p := range known(s, 2000, oneHost) {
			if i%2 == 0 {
				s.Done(p, recrawl.Visit{At: monday, Outcome: recrawl.Visited})
			}
		}
		for range 1000 {
			s.Admit(weight, 1, monday)
		}
		require.NoError(t, s.SetBudget(o.Budget))
		return s.Stats().NewShare
	}
	assert.Equal(t, 1., share(recrawl.Options{}, 100, 1), "any is worth more than what is known")
	assert.Zero(t, share(recrawl.Options{}, 100, 0.001), "none is worth the price")
	assert.Equal(t, 0.2, share(recrawl.Options{NewShareMin: 0.2}, 100, 0.001))
	assert.Equal(t, 0.3, share(recrawl.Options{NewShareMax: 0.3}, 100, 1))
	assert.InDelta(t, 0.1, share(recrawl.Options{}, 10000, 1), 0.02, "there are but so many")
}

func TestAWeightMovesADueTime(t *testing.T) {
	s := scheduler(t, recrawl.Options{Budget: 20. / 86400})
	pages := known(s, 2000, oneHost)
	p, _ := s.Done(pages[1], recrawl.Visit{At: monday, Outcome: recrawl.Visited})
	q := s.Reweigh(p, 100*p.State.Weight(), monday.Add(time.Minute))
	assert.Less(t, q.Due.Sub(monday), p.Due.Sub(monday)/2)
	assert.False(t, q.Due.Before(monday.Add(time.Minute)))
	p, _ = s.Done(q, recrawl.Visit{At: monday.Add(day), Outcome: recrawl.Visited})
	p = s.Reweigh(p, 0, monday.Add(day))
	p, _ = s.Done(p, recrawl.Visit{At: monday.Add(2 * day), Outcome: recrawl.Visited})
	assert.True(t, p.Due.IsZero(), "what is worth nothing is not fetched again")
}

func TestRecheckPutsOffWhatIsNotWorthIt(t *testing.T) {
	s := scheduler(t, recrawl.Options{Budget: 1000. / 86400})
	pages := known(s, 2000, oneHost)
	for i, p := range pages {
		pages[i], _ = s.Done(p, recrawl.Visit{At: monday, Outcome: recrawl.Visited})
	}
	i := slices.IndexFunc(pages, func(p recrawl.Page) bool { return s.Interval(p) < day })
	p := pages[i]
	_, when := s.Recheck(p, p.Due)
	assert.Equal(t, p.Due, when)
	_, when = s.Recheck(p, p.Due.Add(-time.Minute))
	assert.Equal(t, p.Due, when, "it is not due before")
	require.NoError(t, s.SetBudget(100./86400))
	q, when := s.Recheck(p, p.Due)
	assert.Equal(t, q.Due, when)
	assert.True(t, q.Due.After(p.Due))
	assert.False(t, q.Due.After(p.Last.Add(365*day)), "the promise of MaxInterval holds")
}

func TestDoneAllocatesNothing(t *testing.T) {
	s := scheduler(t, recrawl.Options{Budget: 1})
	require.NoError(t, s.SetHostRate(1, 0.5))
	pages := known(s, 1000, oneHost)
	now := monday
	i := 0
	assert.Zero(t, testing.AllocsPerRun(2000, func() {
		now = now.Add(time.Second)
		i = (i + 1) % len(pages)
		pages[i], _ = s.Done(pages[i], recrawl.Visit{At: now, Outcome: recrawl.Outcome(i % 2)})
		pages[i], _ = s.Recheck(pages[i], now)
	}))
}
