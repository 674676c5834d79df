package frontier_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/seed-7440039f/frontier"
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
		{"biased random", frontier.BiasedRandom(1), map[int]float64{1: 1.0 / 16, 3: 3.0 / 16, 4: 4.0 / 16, 8: 8.0 / 16}},
		{"strict", frontier.Strict(), map[int]float64{8: 1}},
		{"uniform", frontier.Uniform(1), map[int]float64{1: .25, 3: .25, 4: .25, 8: .25}},
		{"round robin", frontier.RoundRobin(), map[int]float64{1: .25, 3: .25, 4: .25, 8: .25}},
		{"weighted", frontier.Weighted(10, 1000, 20, 30, 1, 1, 1, 40), map[int]float64{1: .1, 3: .2, 4: .3, 8: .4}},
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
		"biased random": frontier.BiasedRandom, "uniform": frontier.Uniform,
		"mixture": func(seed uint64) frontier.Selector { return frontier.Mix(seed, 1, 2, 3, 4, 5, 6, 7, 8) },
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
	s := frontier.RoundRobin()
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
		s := frontier.Weighted(weights...)
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
		"biased random": frontier.BiasedRandom(1), "strict": frontier.Strict(), "uniform": frontier.Uniform(1),
		"round robin": frontier.RoundRobin(), "weighted": frontier.Weighted(1, 2, 3, 4, 5, 6, 7, 8),
		"mixture": frontier.Mix(1, 0, 1, 0, 2, 5, 0, 0, 1e300), "cascade": frontier.Cascade(frontier.RoundRobin(),
			frontier.Tier{Levels: 3, Selector: frontier.Uniform(1)}, frontier.Tier{Levels: 5, Selector: frontier.BiasedRandom(1)}),
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

func TestPrioritizers(t *testing.T) {
	var h frontier.History
	for depth, want := range map[int]int{0: 8, 1: 7, 6: 2, 7: 1, 8: 1, 1 << 30: 1} {
		require.Equal(t, want, frontier.ByDepth(8).Priority(frontier.Entry{Depth: depth}, h), "depth %d", depth)
	}
	nan := frontier.Entry{}
	nan.Weight = nan.Weight / nan.Weight
	require.Equal(t, 1, frontier.ByWeight(4, 10).Priority(nan, h), "NaN")
	for w, want := range map[float64]int{-1: 1, 0: 1, 2.4: 1, 2.5: 2, 4.9: 2, 5: 3, 7.5: 4, 9.9: 4, 10: 4, 1e300: 4} {
		require.Equal(t, want, frontier.ByWeight(4, 10).Priority(frontier.Entry{Weight: w}, h), fmt.Sprint(w))
	}
	require.Equal(t, 5, frontier.Constant(5).Priority(frontier.Entry{Depth: 9}, h))
}
