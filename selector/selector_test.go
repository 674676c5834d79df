package selector_test

import (
	"slices"
	"testing"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/selector"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// shares selects n times and returns how often each priority came.
func shares(s frontier.Selector, n int, available ...int) map[int]float64 {
	got := map[int]float64{}
	for range n {
		got[s.Select(available)] += 1 / float64(n)
	}
	return got
}

func TestSelectorShares(t *testing.T) {
	available := []int{1, 3, 4, 8}
	for _, c := range []struct {
		name string
		s    frontier.Selector
		want map[int]float64
	}{
		{"biased random", selector.BiasedRandom(1), map[int]float64{1: 1.0 / 16, 3: 3.0 / 16, 4: 4.0 / 16, 8: 8.0 / 16}},
		{"strict", selector.Strict(), map[int]float64{8: 1}},
		{"uniform", selector.Uniform(1), map[int]float64{1: .25, 3: .25, 4: .25, 8: .25}},
		{"round robin", selector.RoundRobin(), map[int]float64{1: .25, 3: .25, 4: .25, 8: .25}},
		{"weighted", selector.Weighted(10, 1000, 20, 30, 1, 1, 1, 40), map[int]float64{1: .1, 3: .2, 4: .3, 8: .4}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := shares(c.s, 200_000, available...)
			require.Len(t, got, len(c.want))
			for p, want := range c.want {
				require.InDelta(t, want, got[p], 0.005, "priority %d", p)
			}
			require.Equal(t, []int{1, 3, 4, 8}, available, "what is available is not the selector's to change")
		})
	}
}

func TestRandomSelectorsRepeatWithTheirSeed(t *testing.T) {
	for name, make := range map[string]func(uint64) frontier.Selector{
		"biased random": selector.BiasedRandom, "uniform": selector.Uniform,
		"mixture": func(seed uint64) frontier.Selector { return selector.Mix(seed, 1, 2, 3, 4, 5, 6, 7, 8) },
	} {
		run := func(seed uint64) (out []int) {
			s := make(seed)
			for i := range 200 {
				out = append(out, s.Select([]int{1, 2, 3, 4, 5, 6, 7, 8}[:1+i%8]))
			}
			return out
		}
		require.Equal(t, run(7), run(7), name)
		require.NotEqual(t, run(7), run(8), name)
	}
}

func TestRoundRobinTakesTurnsFromTheHighestDown(t *testing.T) {
	s := selector.RoundRobin()
	got := []int{}
	for _, available := range [][]int{{1, 2, 3}, {1, 2, 3}, {1, 2, 3}, {1, 2, 3}, {1, 3}, {2, 3}, {2}, {2}, {1, 2, 8}} {
		got = append(got, s.Select(available))
	}
	require.Equal(t, []int{3, 2, 1, 3, 1, 3, 2, 2, 1}, got)
}

// In any run each priority is within one hand-out of its share.
func TestWeightedIsNeverOffByMoreThanOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		weights := rapid.SliceOfN(rapid.IntRange(1, 20), 1, 8).Draw(t, "weights")
		s := selector.Weighted(weights...)
		available, sum := []int{}, 0
		for p, w := range weights {
			available = append(available, p+1)
			sum += w
		}
		got := make([]int, len(weights))
		for n := 1; n <= 500; n++ {
			got[s.Select(available)-1]++
			for p, w := range weights {
				require.InDelta(t, float64(n*w)/float64(sum), float64(got[p]), 1, "priority %d after %d", p+1, n)
			}
		}
	})
}

// Whatever is available, every selector answers with some of it.
func TestSelectorsChooseWhatIsAvailable(t *testing.T) {
	all := map[string]frontier.Selector{
		"biased random": selector.BiasedRandom(1), "strict": selector.Strict(), "uniform": selector.Uniform(1),
		"round robin": selector.RoundRobin(), "weighted": selector.Weighted(1, 2, 3, 4, 5, 6, 7, 8),
		"mixture": selector.Mix(1, 0, 1, 0, 2, 5, 0, 0, 1e300), "cascade": selector.Cascade(selector.RoundRobin(),
			selector.Tier{Levels: 3, Selector: selector.Uniform(1)}, selector.Tier{Levels: 5, Selector: selector.BiasedRandom(1)}),
	}
	rapid.Check(t, func(t *rapid.T) {
		mask := rapid.IntRange(1, 255).Draw(t, "mask")
		available := []int{}
		for p := 1; p <= 8; p++ {
			if mask>>(p-1)&1 == 1 {
				available = append(available, p)
			}
		}
		for name, s := range all {
			require.True(t, slices.Contains(available, s.Select(available)), name)
		}
	})
}
