// This file tests options: their bounds and defaults, and what some of them do.

package frontier_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/selector"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/spill/spilltest"
	"github.com/seed-7440039f/frontier/storage"
	"github.com/seed-7440039f/frontier/test/harness"
)

// figure1 is an operator's priority above two that are mixed by p.
func figure1(p float64) frontier.Selector {
	return selector.Cascade(selector.Strict(),
		selector.Tier{Levels: 2, Selector: selector.Mix(1, 1-p, p)}, selector.Tier{Levels: 1, Selector: selector.Strict()})
}

func TestAllBadOptionsAreReportedTogether(t *testing.T) {
	_, err := frontier.Open(context.Background(), frontier.Options{
		MemoryBudget: -1, Priorities: 65, Selector: selector.Weighted(1, 0), Delay: frontier.FixedDelay(-1),
		GroupDelay: frontier.FactorDelay(math.NaN(), 2, 1), LeaseTime: time.Microsecond,
		Retry: frontier.Retries(0, -1),
	})
	for _, fault := range []string{
		"frontier: options: ", "Priorities is 65; want 1 to 64", "LeaseTime is 1µs; want 0 or at least 1ms: is the unit missing?", "Delay: FixedDelay is -1ns; want 0 or at least 1ms",
		"GroupDelay is FactorDelay(NaN, 2ns, 1ns); want a finite k >= 0 and 0 <= min <= max",
		"Selector: 2 weights; want one for each of 65 priorities", "the weight of priority 2 is 0; want >= 1",
		"Retry is Retries(0, -1ns); want tries >= 1 and a wait of at most", "MemoryBudget is -1; want at least ",
	} {
		require.ErrorContains(t, err, fault)
	}
}

func TestOptionsAtTheirBounds(t *testing.T) {
	for _, c := range []struct {
		name  string
		o     frontier.Options
		fault string // "" if they are good
	}{
		{"none", frontier.Options{}, ""},
		{"one priority", frontier.Options{Priorities: 1}, ""},
		{"64 priorities", frontier.Options{Priorities: 64}, ""},
		{"negative priorities", frontier.Options{Priorities: -1}, "Priorities"},
		{"a lease of 1 ms", frontier.Options{LeaseTime: time.Millisecond}, ""},
		{"a lease of less", frontier.Options{LeaseTime: time.Millisecond - 1}, "LeaseTime"},
		{"a lease of 30 days", frontier.Options{LeaseTime: 720 * time.Hour}, ""},
		{"a lease of more", frontier.Options{LeaseTime: 720*time.Hour + 1}, "LeaseTime"},
		{"no delay", frontier.Options{Delay: frontier.FixedDelay(0)}, ""},
		{"a delay of 30 days", frontier.Options{Delay: frontier.FixedDelay(720 * time.Hour)}, ""},
		{"a delay of more", frontier.Options{Delay: frontier.FixedDelay(720*time.Hour + 1)}, "Delay may last"},
		{"a factor of 0", frontier.Options{Delay: frontier.FactorDelay(0, 0, 0)}, ""},
		{"a negative factor", frontier.Options{Delay: frontier.FactorDelay(-0.1, 0, 1)}, "Delay is"},
		{"a minimum above the maximum", frontier.Options{GroupDelay: frontier.FactorDelay(1, 2, 1)}, "GroupDelay is"},
		{"10 without a unit", frontier.Options{Delay: frontier.FixedDelay(10)}, "Delay: FixedDelay is 10ns; want 0 or at least 1ms: is the unit missing?"},
		{"bounds without a unit", frontier.Options{GroupDelay: frontier.FactorDelay(10, 0, 30)}, "GroupDelay is FactorDelay(10, 0s, 30ns); want bounds of 0 or at least 1ms: is the unit missing?"},
		{"a delay of 1 ms", frontier.Options{Delay: frontier.FixedDelay(time.Millisecond)}, ""},
		{"more depths than priorities", frontier.Options{Prioritizer: frontier.ByDepth(16)}, "ByDepth with 16; want 1 to Priorities, which is 8"},
		{"a selector in two places", frontier.Options{Priorities: 2, Selector: twice(selector.Uniform(1))}, "Selector is in use, by another frontier or in two places of this one"},
		{"one try", frontier.Options{Retry: frontier.Retries(1, 0)}, ""},
		{"weights for each priority", frontier.Options{Priorities: 3, Selector: selector.Weighted(1, 1, 9)}, ""},
		{"too few weights", frontier.Options{Selector: selector.Weighted(1)}, "Selector: 1 weights"},
		{"a mixture", frontier.Options{Priorities: 2, Selector: selector.Mix(1, 0, 0.5)}, ""},
		{"a mixture of too many", frontier.Options{Priorities: 2, Selector: selector.Mix(1, 1, 1, 1)}, "Selector: 3 weights; want one for each of 2"},
		{"a mixture of nothing", frontier.Options{Priorities: 2, Selector: selector.Mix(1, 0, 0)}, "all weights are 0"},
		{"a negative probability", frontier.Options{Priorities: 2, Selector: selector.Mix(1, 1.5, -0.5)}, "the weight of priority 2 is -0.5; want a finite number >= 0"},
		{"a cascade", frontier.Options{Priorities: 3, Selector: figure1(0.5)}, ""},
		{"a cascade of too few", frontier.Options{Selector: figure1(0.5)}, "the tiers have 3 priorities; want 8"},
		{"a cascade with a bad tier", frontier.Options{Priorities: 3, Selector: figure1(math.NaN())}, "tier 1: the weight of priority 1 is NaN"},
		{"a cascade without selectors", frontier.Options{Priorities: 1, Selector: selector.Cascade(nil, selector.Tier{Levels: 1})}, "tier 1 has no Selector\nthe choice of a tier has no Selector"},
		{"an empty tier", frontier.Options{Priorities: 1, Selector: selector.Cascade(selector.Strict(), selector.Tier{Selector: selector.Strict()})}, "tier 1 has 0 priorities"},
		{"no tiers", frontier.Options{Selector: selector.Cascade(selector.Strict())}, "the tiers have 0 priorities"},
		{"8 MiB", frontier.Options{MemoryBudget: 8 << 20}, ""},
		{"less than 8 MiB", frontier.Options{MemoryBudget: 8<<20 - 1}, "MemoryBudget"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, err := frontier.Open(context.Background(), c.o)
			if c.fault != "" {
				require.ErrorContains(t, err, c.fault)
				require.Nil(t, f)
				return
			}
			require.NoError(t, err)
			require.NoError(t, f.Close())
		})
	}
}

// twice is a cascade that has s in two tiers.
func twice(s selector.Selector) selector.Selector {
	return selector.Cascade(selector.Strict(), selector.Tier{Levels: 1, Selector: s}, selector.Tier{Levels: 1, Selector: s})
}

// A selector with state belongs to one frontier at a time.
func TestASelectorHasOneFrontier(t *testing.T) {
	inner := selector.RoundRobin()
	for _, s := range []frontier.Selector{
		selector.BiasedRandom(1), selector.Uniform(1), selector.Weighted(1, 2), selector.Mix(1, 1, 2), inner,
		selector.Cascade(selector.Strict(), selector.Tier{Levels: 2, Selector: inner}),
	} {
		o := frontier.Options{Priorities: 2, Selector: s}
		f, err := frontier.Open(t.Context(), o)
		require.NoError(t, err)
		_, err = frontier.Open(t.Context(), o)
		require.ErrorContains(t, err, "frontier: options: Selector is in use")
		require.NoError(t, f.Close())
		_, err = frontier.Open(t.Context(), frontier.Options{Priorities: 2, Selector: s, MemoryBudget: -1})
		require.Error(t, err, "for another reason, and so it takes none")
		f, err = frontier.Open(t.Context(), o)
		require.NoError(t, err, "the first was closed")
		require.NoError(t, f.Close())
	}
	for range 2 {
		f, err := frontier.Open(t.Context(), frontier.Options{Selector: selector.Strict()})
		require.NoError(t, err, "it has no state")
		defer f.Close()
	}
}

// hungry is a Spill that takes much memory.
type hungry struct{ storage.Spill }

func (hungry) Footprint() int64 { return 100 << 20 }

func TestBudgetMustHoldTheSpill(t *testing.T) {
	m := spilltest.OpenMemory(t, spill.Options{})
	_, err := frontier.Open(context.Background(), frontier.Options{Spill: hungry{m.Store}, MemoryBudget: 104<<20 - 1})
	require.ErrorContains(t, err, "want at least 109051904, including 104857600 for the Spill")
	f, err := frontier.Open(context.Background(), frontier.Options{Spill: hungry{m.Store}, MemoryBudget: 104 << 20})
	require.NoError(t, err)
	require.GreaterOrEqual(t, f.Stats().MemoryBytes, int64(100<<20))
	harness.Ended(t, f)
}

func TestRetriesGrowFourfoldUpToAMonth(t *testing.T) {
	r := frontier.Retries(40, 30*time.Second)
	want := 30 * time.Second
	for attempt := 1; attempt < 40; attempt++ {
		wait, again := r.Retry(frontier.Entry{}, attempt, frontier.Outcome{})
		require.True(t, again)
		require.Equal(t, want, wait, "after try %d", attempt)
		want = min(4*want, 30*24*time.Hour)
	}
	_, again := r.Retry(frontier.Entry{}, 40, frontier.Outcome{})
	require.False(t, again)
}

// A host that is ready comes before those with tokens, until its quantum is over.
func TestQuantumEndsABinding(t *testing.T) {
	for quantum, want := range map[int]string{2: "aabbaabb", 3: "aaabbbab", 32: "aaaabbbb"} {
		harness.InBothWorlds(t, harness.Quantum(quantum, frontier.Options{Priorities: 1, Delay: frontier.FixedDelay(0)}), func(t *testing.T, w *harness.World) {
			w.Add("http://a.example/1", "http://a.example/2", "http://a.example/3", "http://a.example/4")
			w.Add("http://b.example/1", "http://b.example/2", "http://b.example/3", "http://b.example/4")
			var got strings.Builder
			for range 8 {
				l := w.Next()
				got.WriteByte(l.Host[0])
				w.Fetched(l, 0, frontier.Outcome{})
			}
			require.Equal(t, want, got.String(), "quantum %d", quantum)
		})
	}
}

// However often a host that is only probed fails, its URLs keep their tries.
func TestProbesUseUpNoTries(t *testing.T) {
	harness.InBothWorlds(t, frontier.Options{
		Priorities: 1, Delay: frontier.FixedDelay(0), Retry: frontier.Retries(2, 0), Quarantine: frontier.Quarantine{After: 1, Probe: time.Minute},
	}, func(t *testing.T, w *harness.World) {
		w.Add("http://a.example/1")
		for i, want := range []int{1, 2, 2, 2, 2} {
			l := w.Next()
			require.Equal(t, want, l.Attempt, "hand-out %d", i)
			w.Fetched(l, 0, frontier.Outcome{Result: frontier.Failed})
		}
		require.Zero(t, w.F.Stats().GivenUp)
		w.Fetched(w.Next(), 0, frontier.Outcome{})
		w.Over()
	})
}

// Reported times follow the clock of the day, also for what began before a jump.
func TestTimesThatAreToldFollowTheClock(t *testing.T) {
	harness.InBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(time.Second)}, func(t *testing.T, w *harness.World) {
		w.Add("http://a.example/1", "http://b.example/1")
		w.Until(time.Minute)
		w.Fetched(w.Next(), 0, frontier.Outcome{})
		w.Until(30 * time.Second)
		l := w.Next()
		require.Equal(t, harness.Dawn.Add(30*time.Second), l.LeasedAt)
		x, _ := inspect.New(w.F).Host(t.Context(), "a.example")
		require.Equal(t, harness.Dawn.Add(31*time.Second), x.Due)
		w.Fetched(l, 0, frontier.Outcome{})
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
