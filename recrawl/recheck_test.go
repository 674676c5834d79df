package recrawl_test

import (
	"testing"
	"time"

	"github.com/seed-7440039f/frontier/recrawl"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// waitFor asks Recheck whenever a page is due, and returns when it is fetched at
// last and how often it was put off.
func waitFor(t *testing.T, s *recrawl.Scheduler, p recrawl.Page) (at time.Time, looks int) {
	t.Helper()
	for ; looks < 1000; looks++ {
		now := p.Due
		var when time.Time
		if p, when = s.Recheck(p, now); !when.After(now) {
			return now, looks
		}
		assert.Equal(t, when, p.Due)
	}
	require.Fail(t, "it is put off for ever")
	return at, looks
}

// Pages that were put off while the price was high are fetched soon after it fell:
// in the time in which the budget of then takes two fetches of each page, not when
// it would have been.
func TestAPriceThatFellIsNoticed(t *testing.T) {
	const n, few, many = 2000, 20. / 86400, 1000. / 86400
	s := scheduler(t, recrawl.Options{Budget: few, Burst: 1e6 * time.Hour})
	pages := known(s, n, oneHost)
	for i, p := range pages {
		pages[i], _ = s.Done(p, recrawl.Visit{At: monday, Outcome: recrawl.Visited})
		assert.LessOrEqual(t, pages[i].Due.Sub(monday), 2*n/20*day)
	}
	require.NoError(t, s.SetBudget(many))
	for i, p := range pages {
		pays := s.Interval(p)
		at, looks := waitFor(t, s, p)
		assert.LessOrEqual(t, at.Sub(monday), max(2*n/20*day, pays), "page %d", i)
		assert.Less(t, looks, 365/4+1, "a look each four days at most")
	}
}

// What does not pay is looked at, not fetched, and fetched in the end.
func TestAPageThatNeverPaysIsFetchedOnceAYear(t *testing.T) {
	s := scheduler(t, recrawl.Options{Budget: 1000. / 86400})
	known(s, 2000, oneHost)
	p := s.Learn(recrawl.Page{State: recrawl.Known(100, 1e-4), Host: 1, Due: monday})
	p, _ = s.Done(p, recrawl.Visit{At: monday, Outcome: recrawl.Visited})
	at, looks := waitFor(t, s, p)
	assert.InDelta(t, 365, at.Sub(monday).Hours()/24, 1)
	assert.InDelta(t, 365/4, looks, 5)
}
