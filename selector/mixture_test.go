// This file tests selectors that are composed, and changed while the frontier runs.

package selector_test

import (
	"context"
	"fmt"
	"math"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/selector"
)

// figure1 is an operator's priority above two that are mixed by p.
func figure1(p float64) frontier.Selector {
	return selector.Cascade(selector.Strict(),
		selector.Tier{Levels: 2, Selector: selector.Mix(1, 1-p, p)}, selector.Tier{Levels: 1, Selector: selector.Strict()})
}

func TestMixtureFollowsItsWeights(t *testing.T) {
	m := selector.Mix(1, 0.2, 0, 0.8)
	require.Equal(t, []float64{0.2, 0, 0.8}, m.Weights())
	got := shares(m, 100_000, 1, 2, 3)
	require.InDelta(t, 0.8, got[3], 0.01)
	require.Zero(t, got[2], "has no weight")
	require.Equal(t, map[int]float64{1: 1}, roundAll(shares(m, 1000, 1, 2)), "what remains is shared")
	require.Equal(t, map[int]float64{2: 1}, roundAll(shares(m, 1000, 2)), "no weight, but no rival")
	require.NoError(t, m.Set(0, 0, 3))
	require.Equal(t, map[int]float64{2: 1}, roundAll(shares(m, 1000, 1, 2)), "the highest of those without")
	require.NoError(t, m.Set(math.MaxFloat64, math.MaxFloat64, 5e-324))
	require.InDelta(t, 0.5, shares(m, 100_000, 1, 2, 3)[2], 0.01)
	require.NoError(t, m.Set(5e-324, 0, 5e-324))
	require.InDelta(t, 0.5, shares(m, 100_000, 1, 2, 3)[1], 0.01)
}

func roundAll(x map[int]float64) map[int]float64 {
	for p, v := range x {
		x[p] = math.Round(v*1e6) / 1e6
	}
	return x
}

func TestMixtureRefusesBadWeights(t *testing.T) {
	m := selector.Mix(1, 1, 3)
	for _, c := range []struct {
		weights []float64
		fault   string
	}{
		{[]float64{1}, "selector: Mixture: 1 weights; want one for each of 2 priorities"},
		{nil, "0 weights"},
		{[]float64{0, 0}, "all weights are 0"},
		{[]float64{-0.1, 1.1}, "the weight of priority 1 is -0.1; want a finite number >= 0"},
		{[]float64{1, math.NaN()}, "priority 2 is NaN"},
		{[]float64{math.Inf(1), 1}, "priority 1 is +Inf"},
	} {
		require.ErrorContains(t, m.Set(c.weights...), c.fault)
		require.Equal(t, []float64{1, 3}, m.Weights(), "nothing was changed")
	}
	weights := m.Weights()
	weights[0] = 100
	require.Equal(t, []float64{1, 3}, m.Weights(), "a copy")
}

// A cascade of tiers, one of which is a cascade, chooses as its selectors would.
func TestCascadeChoosesByTiers(t *testing.T) {
	s := selector.Cascade(selector.Strict(),
		selector.Tier{Levels: 3, Selector: selector.Cascade(selector.RoundRobin(),
			selector.Tier{Levels: 1, Selector: selector.Strict()}, selector.Tier{Levels: 2, Selector: selector.Strict()})},
		selector.Tier{Levels: 2, Selector: selector.Weighted(1, 3)})
	got := []int{}
	for _, available := range [][]int{{1, 2, 3, 4, 5}, {1, 2, 3, 4, 5}, {4, 5}, {1, 5}, {1, 4}, {1, 2, 3}, {1, 2, 3}, {1, 2}, {1, 2}, {3}, {1}} {
		got = append(got, s.Select(available))
	}
	require.Equal(t, []int{5, 5, 4, 5, 4, 3, 1, 2, 1, 3, 1}, got)

	rapid.Check(t, func(t *rapid.T) {
		s := figure1(rapid.Float64Range(0, 1).Draw(t, "p"))
		for range 20 {
			available := rapid.SampledFrom([][]int{{1}, {2}, {3}, {1, 2}, {1, 3}, {2, 3}, {1, 2, 3}}).Draw(t, "available")
			p := s.Select(available)
			require.Contains(t, available, p)
			if available[len(available)-1] == 3 {
				require.Equal(t, 3, p, "strictly above")
			}
		}
	})
}

// A selector inside that chooses what it was not offered is reported by Next.
func TestCascadeTellsOfBadChoices(t *testing.T) {
	bad := selector.Func(func([]int) int { return 2 })
	for name, s := range map[string]frontier.Selector{
		"top":  selector.Cascade(bad, selector.Tier{Levels: 2, Selector: selector.Strict()}),
		"tier": selector.Cascade(selector.Strict(), selector.Tier{Levels: 1, Selector: bad}, selector.Tier{Levels: 1, Selector: selector.Strict()}),
	} {
		f, err := frontier.Open(context.Background(), frontier.Options{Priorities: 2, Prioritizer: frontier.Constant(1), Selector: s})
		require.NoError(t, err)
		_, err = f.Add(context.Background(), frontier.Entry{URL: "http://a.example/"})
		require.NoError(t, err)
		_, _, err = f.TryNext()
		var fault *frontier.SelectorError
		require.ErrorAs(t, err, &fault, name)
		require.NoError(t, f.Close())
	}
}

// The weights change while workers take leases.
func TestMixtureIsSetWhileTheFrontierRuns(t *testing.T) {
	m := selector.Mix(1, 0.5, 0.5)
	f, err := frontier.Open(context.Background(), frontier.Options{
		Priorities: 3, Selector: selector.Cascade(selector.Strict(), selector.Tier{Levels: 2, Selector: m}, selector.Tier{Levels: 1, Selector: selector.Strict()}),
		Prioritizer: frontier.ByWeight(3, 3), Delay: frontier.FixedDelay(0),
	})
	require.NoError(t, err)
	var entries []frontier.Entry
	for i := range 6000 {
		entries = append(entries, frontier.Entry{URL: fmt.Sprintf("http://h%d.example/%d", i%100, i), Weight: float64(i % 2)})
	}
	_, err = f.Add(context.Background(), entries...)
	require.NoError(t, err)
	take := func(n int) (high int) { // hand-outs of priority 2 among n
		for range n {
			l, err := f.Next(context.Background())
			require.NoError(t, err)
			if l.Priority == 2 {
				high++
			}
			require.NoError(t, f.Done(l, frontier.Outcome{}))
		}
		return high
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range 2000 {
			_ = m.Set(float64(i%10)/10, 1)
			m.Weights()
		}
	})
	take(1000)
	wg.Wait()
	require.NoError(t, m.Set(1, 0))
	require.Zero(t, take(500))
	require.NoError(t, m.Set(0, 1))
	require.Equal(t, 500, take(500))
	require.NoError(t, m.Set(0.7, 0.3))
	require.InDelta(t, 300, take(1000), 75) // five standard deviations
	require.NoError(t, f.Check())
	require.NoError(t, f.Close())
}

func TestSelectingAllocatesNothing(t *testing.T) {
	s, available := figure1(0.5), []int{1, 2}
	require.Zero(t, testing.AllocsPerRun(100, func() { s.Select(available) }))
}
