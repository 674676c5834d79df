package politeness

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/internal/hook"
	"github.com/seed-7440039f/frontier/selector"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/test/harness"
)

// selectors are those of the package with F = 8, and what each promises: the share of priorities 1
// to 8 while all of them are available.
var selectors = []struct {
	name  string
	new   func(seed uint64) frontier.Selector
	share [8]float64
}{
	{"biased random", selector.BiasedRandom,
		[8]float64{1. / 36, 2. / 36, 3. / 36, 4. / 36, 5. / 36, 6. / 36, 7. / 36, 8. / 36}},
	{"strict", func(uint64) frontier.Selector { return selector.Strict() },
		[8]float64{0, 0, 0, 0, 0, 0, 0, 1}},
	{"weighted", func(uint64) frontier.Selector { return selector.Weighted(1, 1, 2, 3, 5, 8, 13, 21) },
		[8]float64{1. / 54, 1. / 54, 2. / 54, 3. / 54, 5. / 54, 8. / 54, 13. / 54, 21. / 54}},
	{"round robin", func(uint64) frontier.Selector { return selector.RoundRobin() },
		[8]float64{.125, .125, .125, .125, .125, .125, .125, .125}},
	{"uniform", selector.Uniform,
		[8]float64{.125, .125, .125, .125, .125, .125, .125, .125}},
}

func TestEachPriorityGetsItsShare(t *testing.T) {
	const hosts = 10_000
	handOuts := 100_000
	if harness.RaceEnabled || testing.Short() {
		handOuts = 20_000
	}
	if *harness.Long {
		handOuts = 1_000_000
	}
	perHost := 8 * handOuts / hosts // URLs of all priorities: more than are asked for
	for _, s := range selectors {
		t.Run(s.name, func(t *testing.T) {
			all := true // of the last hand-out: every priority was available
			sel := s.new(1)
			w := harness.NewWorld(t, frontier.Options{
				MemoryBudget: 4 << 30,
				Prioritizer:  harness.ByWeight,
				Delay:        frontier.FixedDelay(time.Second),
				Selector: selector.Func(func(available []int) int {
					all = len(available) == 8
					return sel.Select(available)
				}),
			})
			w.AddEach(func(yield func(frontier.Entry) bool) {
				need := [8]int{}
				for p, share := range s.share {
					need[p] = int(share*float64(handOuts)*1.1)/hosts + 1
				}
				for i := range perHost {
					for h := range hosts {
						for p := range need {
							if i < need[p] {
								yield(frontier.Entry{URL: fmt.Sprintf("http://h%d.example/%d/%d", h, p, i), Weight: float64(p + 1)})
							}
						}
					}
				}
			})
			var got [8]int
			n := 0
			w.Hire(100).Run(func(l frontier.Lease) bool {
				require.True(t, all, "a priority has nothing to offer")
				got[l.Priority-1]++
				n++
				return n == handOuts
			})
			require.Equal(t, handOuts, n)
			for p, share := range s.share {
				within := 0.02 * share
				if !*harness.Long {
					within = max(within, chance(s.name, share, n)) // too few hand-outs for 2 %
				}
				require.InDelta(t, share, float64(got[p])/float64(n), within, "priority %d", p+1)
			}
			t.Logf("%d hand-outs, by priority %v", n, got)
		})
	}
}

// chance is four standard deviations of a random selector's share among n.
func chance(name string, share float64, n int) float64 {
	if name != "biased random" && name != "uniform" {
		return 1 / float64(n) // none: within one hand-out
	}
	return 4 * math.Sqrt(share*(1-share)/float64(n))
}

// TestUrgentURLsGetTheirShareWithFewHostsBound has 36,000 hosts with one URL of
// priority 8 each, and 4,000 with 200 of priority 1 each: most hosts matter once,
// and the others wait most of the time.
func TestUrgentURLsGetTheirShareWithFewHostsBound(t *testing.T) {
	const fetchers, delay = 100, 10 * time.Second
	urgent, slow, each := 36_000, 4_000, 200
	if harness.RaceEnabled || testing.Short() {
		urgent, slow = urgent/4, slow/4
	}
	w := harness.NewWorld(t, frontier.Options{
		MemoryBudget: 1 << 30,
		Prioritizer:  harness.ByWeight,
		Selector:     selector.BiasedRandom(1),
		Delay:        frontier.FixedDelay(delay),
	})
	w.AddEach(func(yield func(frontier.Entry) bool) {
		for i := range each {
			for h := range slow {
				yield(frontier.Entry{URL: fmt.Sprintf("http://slow%d.example/%d", h, i), Weight: 1})
			}
		}
		for h := range urgent {
			yield(frontier.Entry{URL: fmt.Sprintf("http://urgent%d.example/", h), Weight: 8})
		}
	})
	var recent []time.Duration // when slow hosts were handed out whose time has not come again
	n, n8, most, needed := 0, 0, int64(0), 0
	w.Hire(fetchers).Run(func(l frontier.Lease) bool {
		n++
		if l.Priority == 8 {
			n8++
		} else {
			recent = append(recent, w.At())
		}
		// A host of priority 1 needs its back queue while it is fetched from and
		// for the delay after: longestFetch at most. A ready
		// one is taken before another is bound. The rest are leased hosts of
		// priority 8.
		for len(recent) > 0 && recent[0]+harness.LongestFetch+delay < w.At() {
			recent = recent[1:]
		}
		needed = max(needed, len(recent)+fetchers)
		if n%100 == 0 {
			b := w.F.Stats().Bound
			most = max(most, b)
			require.LessOrEqual(t, b, int64(len(recent)+fetchers), "after %d hand-outs", n)
		}
		return n8 == urgent
	})
	require.Equal(t, urgent, n8)
	share := float64(n8) / float64(n)
	require.InDelta(t, 8./9, share, 0.02*8/9)
	t.Logf("priority 8 had %.4f of %d hand-outs; at most %d hosts were bound, allowed were %d", share, n, most, needed)
	// Mean fetch 0.3 s: 333 hand-outs/s, 37 of them of priority 1, each binding a
	// host for 10.3 s: 382, and those of priority 8 under lease.
	require.InDelta(t, 382+fetchers, most, 100)
}

func TestUrgentURLComesNextOrWithinItsShare(t *testing.T) {
	for _, s := range selectors {
		t.Run(s.name, func(t *testing.T) {
			harness.InBothWorlds(t, frontier.Options{
				Prioritizer: harness.ByWeight, Selector: s.new(1), Delay: frontier.FixedDelay(1900 * time.Millisecond),
			}, func(t *testing.T, w *harness.World) {
				w.AddEach(func(yield func(frontier.Entry) bool) {
					for i := range 1000 {
						yield(frontier.Entry{URL: fmt.Sprintf("http://a.example/%d", i), Weight: 1})
					}
				})
				share := s.share[7] / (s.share[7] + s.share[0])
				// Each urgent URL is added last, to a host with the others.
				waits, urgent := 0, 0
				for i := 0; ; i++ {
					w.Fetched(w.Next(), 50*time.Millisecond, frontier.Outcome{})
					_, err := w.F.Add(context.Background(), frontier.Entry{URL: fmt.Sprintf("http://a.example/urgent/%d", i), Weight: 8})
					require.NoError(t, err)
					wait := 1
					l := w.Next()
					for ; l.Priority != 8; wait++ {
						w.Fetched(l, 50*time.Millisecond, frontier.Outcome{})
						l = w.Next()
					}
					if s.name == "strict" {
						require.Equal(t, 1, wait, "it is the host's next")
					}
					w.Fetched(l, 50*time.Millisecond, frontier.Outcome{})
					waits, urgent = waits+wait, urgent+1
					if w.F.Stats().WaitingBy[0] < 100 {
						break
					}
				}
				got := float64(urgent) / float64(waits)
				t.Logf("%d urgent URLs, on average the host's %.3f-th next; its share makes it %.3f", urgent, 1/got, 1/share)
				within := max(0.02, chance(s.name, share, waits))
				require.GreaterOrEqual(t, got, share-within)
				if s.name != "round robin" { // whose turn it always is here
					require.LessOrEqual(t, got, share+within)
				}
			})
		})
	}
}

func TestURLsOfAHostAndPriorityComeInTheirOrder(t *testing.T) {
	w := harness.NewStoredWorld(t, harness.Quantum(3, frontier.Options{
		Prioritizer: harness.ByWeight, Selector: selector.Uniform(1), Delay: frontier.FixedDelay(time.Second),
	}), spill.Options{})
	r := rand.New(rand.NewPCG(1, 1))
	w.AddEach(func(yield func(frontier.Entry) bool) {
		for i := range 5000 {
			yield(frontier.Entry{URL: fmt.Sprintf("http://h%d.example/%d", r.IntN(40), i), Weight: float64(1 + r.IntN(8))})
		}
	})
	require.NoError(t, hook.Of(w.F).MoveNow(true))
	last := map[string]int{}
	n := 0
	w.Hire(10).Run(func(l frontier.Lease) bool {
		var i int
		_, err := fmt.Sscanf(l.Entry.URL[len("http://"+l.Host):], "/%d", &i)
		require.NoError(t, err)
		queue := fmt.Sprint(l.Host, l.Priority)
		if before, ok := last[queue]; ok {
			require.Less(t, before, i, "of %s", queue)
		}
		last[queue] = i
		n++
		return false
	})
	require.Equal(t, 5000, n)
}
