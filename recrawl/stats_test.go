package recrawl_test

import (
	"testing"

	"github.com/seed-7440039f/frontier/recrawl"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The reported freshness covers all pages, whatever is known about their hosts: hosts without a
// rate, with one that does not bind them, and bound ones.
func TestFreshnessIsOfAllPages(t *testing.T) {
	const perDay = 400.
	for name, bound := range map[string]func(host uint32) float64{
		"none": func(uint32) float64 { return 0 },
		"free": func(uint32) float64 { return perDay },
		"half": func(h uint32) float64 { return float64(h%2) * 20 },
		"all":  func(uint32) float64 { return 30 },
	} {
		s := scheduler(t, recrawl.Options{Budget: perDay / 86400})
		for h := range uint32(10) {
			require.NoError(t, s.SetHostRate(h, bound(h)/86400))
		}
		pages := known(s, 4000, func(i int) uint32 { return uint32(i % 10) })
		for range 3 {
			for i, p := range pages {
				pages[i], _ = s.Done(p, recrawl.Visit{At: monday, Outcome: recrawl.Visited})
			}
		}
		fresh, all := 0., 0.
		for _, p := range pages {
			fresh += p.State.Weight() * recrawl.Freshness(p.State.Rate(), s.Interval(p).Hours()/24)
			all += p.State.Weight()
		}
		assert.InDelta(t, fresh/all, s.Stats().Freshness, 0.01, name)
	}
}

// A bound host whose pages were all taken out takes nothing of the budget any more.
func TestAnEmptyHostTakesNothing(t *testing.T) {
	const perDay = 400.
	s := scheduler(t, recrawl.Options{Budget: perDay / 86400})
	require.NoError(t, s.SetHostRate(1, 100./86400))
	pages := known(s, 1000, oneHost)
	require.InEpsilon(t, 100, s.Stats().Demand*86400, 0.01)
	for _, p := range pages[1:] {
		s.Forget(p)
	}
	p, _ := s.Done(pages[0], recrawl.Visit{At: monday, Outcome: recrawl.Gone})
	s.Done(p, recrawl.Visit{At: monday.Add(day), Outcome: recrawl.Gone})
	x := s.Stats()
	assert.Zero(t, x.Pages)
	assert.Zero(t, x.Demand)
	assert.Zero(t, x.Freshness)
}
