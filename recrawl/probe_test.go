package recrawl_test

import (
	"testing"
	"time"

	"github.com/seed-7440039f/frontier/recrawl"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// However high its weight, a page that differs at each fetch is not fetched, and
// makes the fetches of others no dearer.
func TestAHighWeightBuysNothingForAVolatilePage(t *testing.T) {
	const perDay = 2000.
	s := scheduler(t, recrawl.Options{Budget: perDay / 86400})
	known(s, 1000, oneHost)
	require.NoError(t, s.SetBudget(perDay/86400))
	price := s.Stats().Price
	for range 20 {
		p, _ := s.Admit(1e4, 1, monday)
		p = untilProbed(t, s, p)
		p, waits, _ := visits(s, p, recrawl.Changed, recrawl.Changed)
		require.True(t, p.State.Volatile(), "%v %v", p.State, waits)
		assert.Equal(t, 365*day, s.Interval(p))
		assert.Less(t, s.Index(p, p.Due.Add(300*day)), 1., "nor is it ordered before others")
	}
	require.NoError(t, s.SetBudget(perDay/86400))
	assert.InEpsilon(t, price, s.Stats().Price, 0.01)
}

// A page that happens to change in the hour of its probe is one change richer. If
// its rate were learned anew from that hour it would look too fast to be kept
// fresh, and be given up though it is not.
func TestAChangeInTheHourOfAProbeIsOneChange(t *testing.T) {
	s := scheduler(t, recrawl.Options{Budget: 100. / 86400})
	known(s, 1000, oneHost)
	p := s.Learn(recrawl.Page{State: recrawl.Known(0.5, 20), Host: 1, Last: monday, Due: monday.Add(2 * day)})
	p = untilProbed(t, s, p)
	before := p.State.Rate()
	p, waits, _ := visits(s, p, recrawl.Changed, recrawl.Unchanged)
	require.Equal(t, time.Minute, waits[0])
	assert.InEpsilon(t, before, p.State.Rate(), 0.25)
}

// A host whose delay is longer than a probe waits hides nothing for ever: a page
// of it that seems to change at each fetch counts as a fast one, and is probed
// again by a shorter wait as soon as the host allows.
func TestALateProbeIsMadeAgain(t *testing.T) {
	s := scheduler(t, recrawl.Options{Budget: 100. / 86400})
	known(s, 1000, oneHost)
	p, _ := s.Admit(100, 1, monday)
	p = untilProbed(t, s, p)
	slow := func(p recrawl.Page) recrawl.Page { // by two hours
		p, _ = s.Done(p, recrawl.Visit{At: p.Due.Add(2 * time.Hour), Outcome: recrawl.Changed})
		return p
	}
	p = slow(slow(p))
	require.False(t, p.State.Volatile())
	assert.Greater(t, p.State.Rate(), 5., "it changes fast, as far as is known")
	p, waits, _ := visits(s, p, recrawl.Changed)
	require.Less(t, waits[0], time.Hour, "a change in an hour were no surprise any more")
	p, _, _ = visits(s, p, recrawl.Changed, recrawl.Changed)
	assert.True(t, p.State.Volatile())
}

// changesUntilProbed is how many changes in a row of a page that is fetched each
// interval lead to a probe.
func changesUntilProbed(t *testing.T, s *recrawl.Scheduler) int {
	t.Helper()
	p, _ := s.Admit(1, 1, monday)
	p, _, _ = visits(s, p, recrawl.Changed)
	for n := 1; n < 50; n++ {
		var v recrawl.Verdict
		if p, _, v = visits(s, p, recrawl.Changed); v.Class == recrawl.Check {
			return n
		}
	}
	require.Fail(t, "it is not probed", "%v", p.State)
	return 0
}

// What probes found decides how many changes make a page suspect: few where many
// pages change at every fetch, more where none does.
func TestProbesLearnHowManyPagesAreVolatile(t *testing.T) {
	const perDay = 100.
	crawl := func(found recrawl.Outcome) int {
		s := scheduler(t, recrawl.Options{Budget: perDay / 86400})
		known(s, 1000, oneHost)
		require.NoError(t, s.SetBudget(perDay/86400))
		for range 100 {
			p, _ := s.Admit(1, 1, monday)
			p = untilProbed(t, s, p)
			p, _, _ = visits(s, p, found, found)
			s.Forget(p)
		}
		return changesUntilProbed(t, s)
	}
	assert.Equal(t, 1, crawl(recrawl.Changed))
	assert.Greater(t, crawl(recrawl.Unchanged), 1)
}

// A page that was found unchanged is not suspect for long.
func TestAPageThatWasUnchangedNeedsMoreChanges(t *testing.T) {
	s := scheduler(t, recrawl.Options{Budget: 1000. / 86400})
	known(s, 1000, oneHost)
	require.NoError(t, s.SetBudget(1000./86400))
	p, _ := s.Admit(10, 1, monday)
	p, _, v := visits(s, p, recrawl.Changed, recrawl.Unchanged, recrawl.Changed)
	assert.Equal(t, recrawl.Again, v.Class)
	q, _ := s.Admit(10, 1, monday)
	_, _, v = visits(s, q, recrawl.Changed, recrawl.Changed)
	assert.Equal(t, recrawl.Check, v.Class, "of another one it is the first that is known")
	untilProbed(t, s, p)
}

// A page that is not worth a fetch anyway is not worth a probe.
func TestAPageThatIsLeftAloneIsNotProbed(t *testing.T) {
	s := scheduler(t, recrawl.Options{Budget: 10. / 86400})
	known(s, 1000, oneHost)
	p, _ := s.Admit(1, 1, monday)
	for range 20 {
		var v recrawl.Verdict
		p, _, v = visits(s, p, recrawl.Changed)
		require.Equal(t, recrawl.Again, v.Class)
	}
	assert.Equal(t, 365*day, s.Interval(p))
}

// However often a page of any weight is fetched, it gets no more of the fetches by
// changing at each: at last no probe could come soon enough to tell.
func TestAPageTooFastToBeProbedIsVolatile(t *testing.T) {
	s := scheduler(t, recrawl.Options{Budget: 2000. / 86400})
	known(s, 1000, oneHost)
	p := s.Learn(recrawl.Page{State: recrawl.Known(1000, 1e4), Host: 1, Last: monday, Due: monday.Add(time.Minute)})
	for n := 0; !p.State.Volatile(); n++ {
		require.Less(t, n, 50, "%v", p.State)
		p, _, _ = visits(s, p, recrawl.Changed)
	}
	assert.Equal(t, 365*day, s.Interval(p))
}

// A probe that came too late to tell anything is none any more. Its page is looked at
// as soon as others, though it does not pay today.
func TestALateProbeDoesNotPutAPageOffForAYear(t *testing.T) {
	s := scheduler(t, recrawl.Options{Budget: 1000. / 86400})
	known(s, 2000, oneHost)
	p, _ := s.Admit(1, 1, monday)
	p = untilProbed(t, s, p)
	require.NoError(t, s.SetBudget(100./86400))
	now := p.Due.Add(20 * day)
	q, when := s.Recheck(p, now)
	require.Equal(t, 365*day, s.Interval(q), "it does not pay")
	assert.True(t, when.After(now))
	assert.LessOrEqual(t, when.Sub(now), 2*2001/100*day+day)
}

// Where a day passes between any two fetches no probe comes in time, and what it finds
// counts all the same: a change in a day is a surprise of a page that seemed to change
// each month. What changed in both is left alone, though it may be volatile or fast.
func TestProbesThatAreAlwaysLate(t *testing.T) {
	s := scheduler(t, recrawl.Options{Budget: 1. / 86400})
	known(s, 30, oneHost)
	require.NoError(t, s.SetBudget(1./86400))
	p, _ := s.Admit(10, 1, monday)
	p = untilProbed(t, s, p)
	for range 2 {
		now := p.Due.Add(day)
		q, when := s.Recheck(p, now)
		require.Equal(t, now, when, "it is a probe still")
		p, _ = s.Done(q, recrawl.Visit{At: now, Outcome: recrawl.Changed})
	}
	assert.False(t, p.State.Volatile())
	assert.Greater(t, p.State.Rate(), 0.8)
	assert.Equal(t, 365*day, s.Interval(p))
}
