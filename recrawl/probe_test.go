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
		p, waits, _ := visits(s, p, recrawl.Changed, recrawl.Changed, recrawl.Changed, recrawl.Changed, recrawl.Changed, recrawl.Changed)
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
	p := s.Learn(recrawl.Page{State: recrawl.Known(0.5, 1), Host: 1, Last: monday, Due: monday.Add(2 * day)})
	p, waits, _ := visits(s, p, recrawl.Changed, recrawl.Changed, recrawl.Changed)
	require.Equal(t, time.Hour, waits[2])
	before := p.State.Rate()
	p, waits, _ = visits(s, p, recrawl.Changed, recrawl.Unchanged)
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
	p, _, _ = visits(s, p, recrawl.Changed, recrawl.Changed, recrawl.Changed, recrawl.Changed)
	slow := func(p recrawl.Page) recrawl.Page { // by two hours
		p, _ = s.Done(p, recrawl.Visit{At: p.Due.Add(2 * time.Hour), Outcome: recrawl.Changed})
		return p
	}
	p = slow(slow(p))
	require.False(t, p.State.Volatile())
	assert.Greater(t, p.State.Rate(), 5., "it changes fast, as far as is known")
	p, waits, _ := visits(s, p, recrawl.Changed, recrawl.Changed)
	require.Less(t, waits[1], time.Hour, "a change in an hour were no surprise any more")
	p, _, _ = visits(s, p, recrawl.Changed, recrawl.Changed)
	assert.True(t, p.State.Volatile())
}
