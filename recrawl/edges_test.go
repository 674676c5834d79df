// This file holds what is at the edges: of weights, of numbers, of time.

package recrawl_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier/recrawl"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A page that changes as fast as can be may lose its weight.
func TestAFastPageMayLoseItsWeight(t *testing.T) {
	s := scheduler(t, recrawl.Options{Budget: 1})
	known(s, 100, oneHost)
	p := s.Learn(recrawl.Page{State: recrawl.Known(1e4, 1), Host: 1, Last: monday, Due: monday.Add(day)})
	p = s.Reweigh(p, 0, monday.Add(time.Hour))
	p, when := s.Recheck(p, p.Due)
	assert.Equal(t, p.Due, when)
	assert.True(t, when.After(monday.Add(day)), "it is put off")
	assert.Equal(t, 365*day, s.Interval(p))
	p, _ = s.Done(p, recrawl.Visit{At: when, Outcome: recrawl.Failed})
	p, _ = s.Done(p, recrawl.Visit{At: p.Due})
	assert.True(t, p.Due.IsZero())
}

// A budget and a rate of any size can be saved.
func TestTheGreatestBudgetIsANumber(t *testing.T) {
	s := scheduler(t, recrawl.Options{Budget: math.MaxFloat64})
	require.NoError(t, s.SetHostRate(1, math.MaxFloat64))
	live(s, known(s, 100, oneHost), 0, 100)
	assert.False(t, math.IsInf(s.Stats().Budget, 0))
	data, err := s.MarshalBinary()
	require.NoError(t, err)
	require.NoError(t, scheduler(t, recrawl.Options{}).UnmarshalBinary(data))
}

// However small the budget is, no page is put off by a hundred years, and only a few fetches are
// let through.
func TestASmallBudgetPutsNothingOffForEver(t *testing.T) {
	s := scheduler(t, recrawl.Options{Budget: 1e-300})
	through := 0
	for i := range 1000 {
		p, _ := s.Admit(1, 1, monday)
		p, when := s.Recheck(p, monday.Add(time.Duration(i)*time.Second))
		if when.After(monday.Add(time.Hour)) {
			assert.False(t, when.After(monday.Add(366*day)))
			continue
		}
		assert.Equal(t, monday, p.Due)
		through++
	}
	assert.InDelta(t, 64, through, 2)
}

// What was counted elsewhere than at its host before a restart is taken out there.
func TestPagesAreTakenOutWhereTheyWereCounted(t *testing.T) {
	for _, rate := range []float64{0, 1} {
		before := scheduler(t, recrawl.Options{Budget: 1})
		require.NoError(t, before.SetHostRate(1, rate))
		pages := known(before, 100, oneHost)
		s := scheduler(t, recrawl.Options{Budget: 1})
		require.NoError(t, s.SetHostRate(1, 1-rate))
		s.Recount(slices.Values(pages))
		assert.EqualValues(t, 100, s.Stats().Pages)
		for _, p := range pages {
			s.Forget(p)
		}
		assert.Zero(t, s.Stats().Pages)
	}
}

// Claims of pages that were forgotten are not waited for.
func TestClaimsOfForgottenPages(t *testing.T) {
	s := scheduler(t, recrawl.Options{Budget: 40. / 86400})
	now := monday.Add(day)
	for i, p := range fetched(s, 1000, 1)[:100] {
		require.True(t, p.Due.After(now))
		q := s.Hint(p, now, now)
		require.False(t, q.Due.After(now), "claim %d is heard", i)
		s.Forget(q)
	}
}

// A clock that is at the end of all times, and back, is survived, and so is a snapshot.
func TestTheEndOfTime(t *testing.T) {
	s := scheduler(t, recrawl.Options{Budget: 1})
	pages := known(s, 100, oneHost)
	for i, at := range []time.Time{{}, time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), time.Unix(-1e9, 0), monday} {
		p, _ := s.Recheck(pages[i], at)
		p, _ = s.Done(p, recrawl.Visit{At: at, Outcome: recrawl.Changed, Modified: at.AddDate(1, 0, 0)})
		require.False(t, p.Due.Before(at.Add(time.Minute)) || p.Due.After(at.Add(365*day)), "%v: %v", at, p.Due)
		data, err := s.MarshalBinary()
		require.NoError(t, err)
		require.NoError(t, s.UnmarshalBinary(data))
	}
	p, _ := s.Done(pages[5], recrawl.Visit{At: monday.Add(day), Outcome: recrawl.Visited})
	require.True(t, p.Due.After(monday.Add(day)))
}

// A year without a fetch, and a million pages that are due at once: the budget holds
// from the first hour on, and asking costs little.
func TestAMillionPagesAfterAYear(t *testing.T) {
	const n, perDay, hours = 1_000_000, 100_000., 12
	s := scheduler(t, recrawl.Options{Budget: perDay / 86400})
	pages := make([]recrawl.Page, n)
	for i := range pages {
		state := recrawl.Known(1./float64(1+i%400), float64(1+i%7))
		pages[i] = s.Learn(recrawl.Page{State: state, Host: uint32(i % 1000), Last: monday, Due: monday.Add(time.Duration(1+i%20) * day)})
	}
	require.NoError(t, s.SetBudget(perDay/86400))
	now := monday.Add(365 * day)
	ask := make([][]int32, hours+1) // by hour; the last one is not reached
	for i := range pages {
		ask[0] = append(ask[0], int32(i))
	}
	asked, fetched := 0, [hours]int{}
	for h := range hours {
		for k := 0; k < len(ask[h]); k++ {
			i := ask[h][k]
			asked++
			p, when := s.Recheck(pages[i], now)
			if pages[i] = p; !when.After(now) {
				pages[i], _ = s.Done(p, recrawl.Visit{At: now, Outcome: recrawl.Visited})
				fetched[h]++
				continue
			}
			next := min(hours, h+1+int(when.Sub(now)/time.Hour))
			ask[next] = append(ask[next], i)
		}
		now = now.Add(time.Hour)
	}
	const hourly = 1.25 * perDay / 24
	assert.LessOrEqual(t, float64(fetched[0]), 2.1*hourly, "of the first hour, with its burst")
	for h, n := range fetched[1:] {
		assert.LessOrEqual(t, float64(n), 1.1*hourly, "hour %d", h+1)
		assert.GreaterOrEqual(t, float64(n), 0.5*hourly, "hour %d: the budget is used", h+1)
	}
	assert.Less(t, asked, 3*n/2)
}
