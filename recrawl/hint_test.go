package recrawl_test

import (
	"testing"
	"time"

	"github.com/seed-7440039f/frontier/recrawl"
	"github.com/stretchr/testify/assert"
)

// fetched returns n pages of a host that were fetched on Monday.
func fetched(s *recrawl.Scheduler, n int, host uint32) []recrawl.Page {
	pages := make([]recrawl.Page, n)
	for i := range pages {
		pages[i], _ = s.Admit(1, host, monday)
	}
	for i := range pages {
		pages[i], _ = s.Done(pages[i], recrawl.Visit{At: monday})
	}
	return pages
}

func TestTrueClaimsAreHeard(t *testing.T) {
	s := scheduler(t, recrawl.Options{Budget: 40. / 86400})
	pages := fetched(s, 1000, 1)
	now := monday.Add(day)
	for i := range 100 { // each claim turns out true
		p := s.Hint(pages[i], now.Add(-time.Hour), now)
		assert.Equal(t, now, p.Due, "claim %d", i)
		s.Done(p, recrawl.Visit{At: now, Outcome: recrawl.Changed})
	}
	p := pages[200]
	q := s.Hint(p, monday.Add(-time.Hour), p.Due.Add(-time.Hour))
	assert.True(t, q.Due.After(p.Due), "an honest host says that it has not changed")
	assert.False(t, q.Due.After(p.Last.Add(3*p.Due.Sub(p.Last))))
}

// A page that changed right after it was fetched comes as soon as it may.
func TestAClaimSoonAfterAFetch(t *testing.T) {
	s := scheduler(t, recrawl.Options{Budget: 40. / 86400, MinInterval: time.Hour})
	p := fetched(s, 1000, 1)[0]
	now := monday.Add(time.Minute)
	p = s.Hint(p, now, now)
	assert.Equal(t, monday.Add(time.Hour), p.Due)
	p, due := s.Recheck(p, p.Due)
	assert.Equal(t, p.Due, due, "it is not put off")
}

func TestAHostThatStampsNowIsNotHeard(t *testing.T) {
	s := scheduler(t, recrawl.Options{Budget: 40. / 86400})
	pages := fetched(s, 1000, 1)
	now := monday.Add(day)
	heard := 0
	for _, p := range pages[:500] { // each claim turns out false
		if p = s.Hint(p, now, now); !p.Due.After(now) {
			heard++
			s.Done(p, recrawl.Visit{At: now, Outcome: recrawl.Unchanged})
		}
	}
	assert.Less(t, heard, 16)
	p := pages[600]
	assert.Equal(t, p, s.Hint(p, monday.Add(-time.Hour), p.Due.Add(-time.Hour)), "nor when it says that nothing changed")
}

func TestAListOfAllPagesIsNoStorm(t *testing.T) {
	s := scheduler(t, recrawl.Options{Budget: 40. / 86400})
	now := monday.Add(day)
	due := 0
	for _, p := range fetched(s, 1000, 1) {
		if !s.Hint(p, now, now).Due.After(now) {
			due++
		}
	}
	assert.Equal(t, 16, due)
}

func TestClaimsThatSayNothing(t *testing.T) {
	s := scheduler(t, recrawl.Options{Budget: 40. / 86400})
	p := fetched(s, 1000, 1)[0]
	now := monday.Add(day)
	assert.Equal(t, p, s.Hint(p, now.Add(2*day), now), "the future")
	assert.Equal(t, p, s.Hint(p, time.Time{}, now), "no time")
	assert.Equal(t, p, s.Hint(p, now, monday.Add(-day)), "a clock that went back")
	unknown := recrawl.Page{Host: 1}
	assert.Equal(t, unknown, s.Hint(unknown, now, now), "a page never crawled")
	gone, _ := s.Done(p, recrawl.Visit{At: now, Outcome: recrawl.Gone})
	assert.Equal(t, gone, s.Hint(gone, now.Add(time.Hour), now.Add(time.Hour)))
}
