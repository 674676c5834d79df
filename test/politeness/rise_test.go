// This file tests what becomes of URLs that wait and are linked to again.

package politeness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/internal/hook"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/selector"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/test/harness"
	"github.com/seed-7440039f/frontier/transfer"
)

// counting is a Riser whose priority is the number of links to a URL, up to 8.
type counting struct {
	mu    sync.Mutex
	links map[string]int
}

func (c *counting) level(url string, more int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.links == nil {
		c.links = map[string]int{}
	}
	c.links[url] += more
	return min(8, 1+c.links[url])
}

func (c *counting) Priority(e frontier.Entry, _ frontier.History) int { return c.level(e.URL, 0) }

func (c *counting) Found(e frontier.Entry) int { return c.level(e.URL, 1) }

func (c *counting) Rise(e frontier.Entry) float64 { return float64(c.level(e.URL, 0)) }

// rising runs a test with a Riser, the highest priority first.
func rising(t *testing.T, o frontier.Options, test func(*testing.T, *harness.World)) {
	o.Selector = selector.Strict()
	o.Priorities = 8
	for _, kept := range []bool{false, true} {
		t.Run(fmt.Sprintf("on a store=%v", kept), func(t *testing.T) {
			o := o
			if o.Prioritizer == nil {
				o.Prioritizer = &counting{}
			}
			if kept {
				test(t, harness.NewStoredWorld(t, o, spill.Options{}))
				return
			}
			test(t, harness.NewWorld(t, o))
		})
	}
}

// linked adds URLs again.
func linked(w *harness.World, urls ...string) {
	w.Helper()
	var es []frontier.Entry
	for _, u := range urls {
		es = append(es, frontier.Entry{URL: u, Meta: []byte("not taken")})
	}
	n, err := w.F.Add(context.Background(), es...)
	require.NoError(w, err)
	require.Zero(w, n, "they are known")
	hook.Of(w.F).Sweep()
}

// A URL that waits rises with its links, wherever it lies; what else is known about it stays, and it
// survives a kill. Others keep their order.
func TestWaitingURLsRise(t *testing.T) {
	for _, n := range []int{20, 5000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			rising(t, frontier.Options{}, func(t *testing.T, w *harness.World) {
				url := func(i int) string { return fmt.Sprintf("http://a.example/%d", i) }
				es := make([]frontier.Entry, n)
				for i := range es {
					es[i] = frontier.Entry{URL: url(i), Meta: []byte(url(i)), Depth: 3}
				}
				_, err := w.F.Add(context.Background(), es...)
				require.NoError(t, err)
				w.OnDisk()
				late := []int{n - 1, n / 2, n/2 + 1, n/2 + 2, 0, n - 3}
				for i, x := range late {
					for range i + 1 {
						linked(w, url(x))
					}
				}
				for range n/32 + 1 { // until there are enough notes
					linked(w, url(late[5]))
				}
				require.Positive(t, w.F.Stats().Risen)
				require.NoError(t, w.F.Check())
				if w.Machine != nil {
					w = w.Killed()
				}
				for i := range late {
					l := w.Next()
					require.Equal(t, url(late[5-i]), l.Entry.URL)
					require.Equal(t, []any{[]byte(l.Entry.URL), 3, 1}, []any{l.Entry.Meta, l.Entry.Depth, l.Attempt})
					require.Greater(t, l.Entry.Weight, 1.)
					w.Fetched(l, 0, frontier.Outcome{})
				}
				for i := range 3 {
					l := w.Next()
					require.Equal(t, url(i+1), l.Entry.URL)
					w.Fetched(l, 0, frontier.Outcome{})
				}
			})
		})
	}
}

// chosen is a Riser that sends the chosen URLs to the top when they are linked again, of those it notes.
type chosen struct{ noted, rise map[string]bool }

func (c *chosen) Priority(e frontier.Entry, _ frontier.History) int {
	if e.Weight > 0 {
		return 8
	}
	return 1
}

func (c *chosen) Found(e frontier.Entry) int { return btoi(c.noted[e.URL]) * 8 }

func (c *chosen) Rise(e frontier.Entry) float64 { return float64(btoi(c.rise[e.URL])) }

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// All that deserve more rise in one walk, whatever lies between them.
func TestNeighboursRise(t *testing.T) {
	for seed := range uint64(20) {
		random, c := rand.New(rand.NewPCG(seed, 0)), &chosen{map[string]bool{}, map[string]bool{}}
		var all, top, rest []string
		for i := range 40 {
			u := fmt.Sprintf("http://a.example/%d", i)
			all = append(all, u)
			if c.noted[u] = random.IntN(3) > 0; c.noted[u] && random.IntN(3) > 0 {
				c.rise[u], top = true, append(top, u)
				continue
			}
			rest = append(rest, u)
		}
		rising(t, frontier.Options{Prioritizer: c, Delay: frontier.FixedDelay(0)}, func(t *testing.T, w *harness.World) {
			w.Add(all...)
			linked(w, all...)
			require.EqualValues(t, len(top), w.F.Stats().Risen)
			require.NoError(t, w.F.Check())
			require.Equal(t, slices.Concat(top, rest), w.LeaseAll())
		})
	}
}

// Links to a URL that was visited have its host searched less and less often.
func TestLinksToVisitedURLs(t *testing.T) {
	rising(t, frontier.Options{}, func(t *testing.T, w *harness.World) {
		for i := range 30 {
			w.Add(fmt.Sprintf("http://a.example/%d", i))
		}
		visited := w.Next()
		w.Fetched(visited, 0, frontier.Outcome{})
		for range 200 {
			linked(w, visited.Entry.URL)
		}
		require.Less(t, w.F.Stats().Walks, int64(50))
		linked(w, "http://a.example/20")
		for w.F.Stats().Risen == 0 {
			linked(w, visited.Entry.URL)
		}
		require.NoError(t, w.F.Check())
	})
}

// What has risen moves within seconds, without another call, and that of several hosts together.
func TestWhatRoseMovesByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, err := frontier.Open(t.Context(), frontier.Options{Prioritizer: &counting{}, Priorities: 8, Selector: selector.Strict(), Delay: frontier.FixedDelay(10 * time.Second)})
		require.NoError(t, err)
		defer f.Close()
		for _, host := range []string{"a", "b"} {
			for i := range 5 {
				_, err = f.Add(t.Context(), frontier.Entry{URL: fmt.Sprintf("http://%s.example/%d", host, i)})
				require.NoError(t, err)
			}
		}
		for range 2 {
			l, err := f.Next(t.Context())
			require.NoError(t, err)
			require.NoError(t, f.Done(l, frontier.Outcome{Add: []frontier.Entry{{URL: "http://" + l.Host + "/4"}}}))
		}
		synctest.Wait()
		require.Zero(t, f.Stats().Walks)
		for range 2 {
			l, err := f.Next(t.Context())
			require.NoError(t, err)
			require.Equal(t, "http://"+l.Host+"/4", l.Entry.URL)
			require.NoError(t, f.Done(l, frontier.Outcome{}))
		}
		require.EqualValues(t, 2, f.Stats().Risen)
		require.NoError(t, f.Check())
	})
}

// A URL of links rises as well: that of one page, and those of another.
func TestOutlinksRaise(t *testing.T) {
	rising(t, frontier.Options{}, func(t *testing.T, w *harness.World) {
		w.AddMany("a.example", 20)
		links := []frontier.Entry{{URL: "http://a.example/17"}, {URL: "http://b.example/"}}
		l := w.Next()
		require.NoError(t, w.F.Done(l, frontier.Outcome{Add: links}))
		hook.Of(w.F).Sweep()
		w.NextIs(0, "http://b.example/")
		l = w.Next()
		require.Equal(t, "http://a.example/17", l.Entry.URL)
		links[0].URL = "http://a.example/13"
		x := w.F.DoneAll(context.Background(), []frontier.End{{Lease: l, Outcome: frontier.Outcome{Add: links}}})
		require.NoError(t, x[0].Err)
		hook.Of(w.F).Sweep()
		require.Equal(t, "http://a.example/13", w.Next().Entry.URL)
	})
}

// What is leased, scheduled, finished, deleted or held by a rule does not move.
func TestOthersDoNotRise(t *testing.T) {
	rising(t, frontier.Options{Keep: true}, func(t *testing.T, w *harness.World) {
		w.Add("http://a.example/1", "http://a.example/2", "http://a.example/3", "http://a.example/4")
		l := w.Next()
		linked(w, l.Entry.URL)
		require.NoError(t, w.F.Done(l, frontier.Outcome{}))
		linked(w, l.Entry.URL)
		l = w.Next()
		require.NoError(t, w.F.Done(l, frontier.Outcome{Next: harness.Dawn.Add(24 * time.Hour)}))
		linked(w, l.Entry.URL)
		_, err := w.F.Delete(context.Background(), scope.Host("a.example"))
		require.NoError(t, err)
		linked(w, "http://a.example/3")
		require.Zero(t, w.F.Stats().Risen)
		require.Zero(t, w.F.Stats().Waiting)
	})
}

// deleting deletes the host of a URL that is about to rise.
type deleting struct {
	counting
	f *frontier.Frontier
}

func (d *deleting) Rise(e frontier.Entry) float64 {
	_, _ = d.f.Delete(context.Background(), scope.All())
	return d.counting.Rise(e)
}

// What was deleted while the Riser was asked does not come back.
func TestDeletedURLsDoNotRise(t *testing.T) {
	r := &deleting{}
	w := harness.NewStoredWorld(t, frontier.Options{Prioritizer: r, Priorities: 8}, spill.Options{})
	r.f = w.F
	w.AddMany("a.example", 9)
	w.OnDisk()
	linked(w, "http://a.example/7")
	require.Zero(t, w.F.Stats().Risen)
	w.Over()
}

// faultyRiser panics for a while.
type faultyRiser struct {
	counting
	faulty bool
}

func (r *faultyRiser) Rise(e frontier.Entry) float64 {
	if r.faulty {
		panic("no")
	}
	return r.counting.Rise(e)
}

func TestPanicOfARiser(t *testing.T) {
	r := &faultyRiser{faulty: true}
	w := harness.NewWorld(t, frontier.Options{Prioritizer: r, Priorities: 8, Selector: selector.Strict()})
	w.AddMany("a.example", 5)
	linked(w, "http://a.example/3")
	_, err := w.F.Next(t.Context())
	require.ErrorContains(t, err, "the code that raises URLs")
	r.faulty = false
	linked(w, "http://a.example/4")
	require.Equal(t, "http://a.example/4", w.Next().Entry.URL)
}

// Beside everything else nothing is lost or comes twice.
func TestRisingBesideTheRest(t *testing.T) {
	rising(t, frontier.Options{Delay: frontier.FixedDelay(0), Retry: frontier.Retries(2, 0), MemoryBudget: 8 << 20}, func(t *testing.T, w *harness.World) {
		const hosts, each, workers = 7, 900, 4
		url := func(i int) string { return fmt.Sprintf("http://h%d.example/%d", i%hosts, i/hosts) }
		var es []frontier.Entry
		for i := range hosts * each {
			es = append(es, frontier.Entry{URL: url(i)})
		}
		_, err := w.F.Add(t.Context(), es...)
		require.NoError(t, err)
		var last []string
		for i := range each / 3 {
			last = append(last, url(hosts*(each-1-i)))
		}
		linked(w, last...) // enough for a walk, whatever happens below
		var mu sync.Mutex
		got := map[string]int{}
		var wait sync.WaitGroup
		for n := range workers {
			wait.Go(func() {
				rnd := rand.New(rand.NewPCG(uint64(n), 1))
				for {
					l, _, err := w.F.TryNext()
					switch {
					case errors.Is(err, frontier.ErrExhausted):
						return
					case errors.Is(err, frontier.ErrNotDue):
						w.Clock.Advance(time.Microsecond)
						continue
					}
					if !assert.NoError(t, err) {
						return
					}
					var o frontier.Outcome
					for range 8 {
						o.Add = append(o.Add, frontier.Entry{URL: url(int(float64(hosts*each) * rnd.Float64() * rnd.Float64()))})
					}
					mu.Lock()
					got[l.Entry.URL]++
					mu.Unlock()
					assert.NoError(t, w.F.Done(l, o))
					switch scope := scope.Host(l.Host); rnd.IntN(400) {
					case 0:
						if w.Machine != nil {
							assert.NoError(t, hook.Of(w.F).MoveNow(true))
						}
					case 1:
						assert.NoError(t, w.F.Pause(scope))
						assert.NoError(t, w.F.Resume(scope))
					case 2:
						x := l.Entry
						x.URL += "?again"
						_, err := w.F.CrawlNow(context.Background(), x)
						assert.NoError(t, err)
					case 3:
						w.Clock.Advance(time.Second) // what has risen moves
					}
				}
			})
		}
		wait.Wait()
		require.Positive(t, w.F.Stats().Risen)
		for i := range hosts * each {
			require.Equal(t, 1, got[url(i)], url(i))
		}
		require.NoError(t, w.F.Check())
	})
}

// A host's standing moves all of its URLs, known ones and new ones, is durable with the host, and gives
// way to an operator's rule.
func TestStanding(t *testing.T) {
	rising(t, frontier.Options{Prioritizer: frontier.ByWeight(8, 8)}, func(t *testing.T, w *harness.World) {
		for i, host := range []string{"a", "b", "c"} {
			for n := range 3 {
				_, err := w.F.Add(t.Context(), frontier.Entry{URL: fmt.Sprintf("http://%s.example/%d", host, n), Weight: float64(2 * i)})
				require.NoError(t, err)
			}
		}
		require.ErrorContains(t, w.F.SetStanding("a.example", 8), "want -7 to 7")
		require.NoError(t, w.F.SetStanding("a.example", 5))
		require.NoError(t, w.F.SetStanding("c.example", -7))
		require.NoError(t, w.F.SetStanding("d.example", 7))
		require.NoError(t, w.F.Check())
		if w.Machine != nil {
			w.OnDisk()
			w = w.Killed()
			w.Until(time.Hour)
		}
		_, err := w.F.Add(t.Context(), frontier.Entry{URL: "http://d.example/", Weight: 0})
		require.NoError(t, err)
		require.Equal(t, []int{5, -7, 7}, []int{w.Info("a.example").Standing, w.Info("c.example").Standing, w.Info("d.example").Standing})
		for _, want := range []string{"d", "a", "b"} {
			l := w.Next()
			require.Equal(t, want+".example", l.Host)
			require.NoError(t, w.F.Done(l, frontier.Outcome{}))
		}
		require.NoError(t, w.F.UpdateRule(scope.Host("c.example"), func(r *frontier.Rule) { r.Priority = 8 }))
		require.Equal(t, "c.example", w.Next().Host)
		require.NoError(t, w.F.Forget("a.example"))
		require.Zero(t, w.Info("a.example").Standing)
		require.Equal(t, 1, w.Info("a.example").Queues[0].Priority)

		var lines bytes.Buffer
		require.NoError(t, transfer.Export(t.Context(), w.F, &lines, transfer.ExportOptions{}))
		other := harness.NewWorld(t, frontier.Options{Priorities: 8})
		_, err = transfer.Import(t.Context(), other.F, &lines, transfer.ImportOptions{})
		require.NoError(t, err)
		require.Equal(t, []int{0, -7}, []int{other.Info("a.example").Standing, other.Info("c.example").Standing})
	})
}

// A hint with a weight raises a URL that waits, without a Riser; one without a weight does not, nor one of no
// higher priority.
func TestHintsRaise(t *testing.T) {
	byMeta := frontier.PrioritizerFunc(func(e frontier.Entry, _ frontier.History) int { return int(e.Meta[0] - '0') })
	rising(t, frontier.Options{Prioritizer: byMeta}, func(t *testing.T, w *harness.World) {
		url := func(i int) string { return fmt.Sprintf("http://a.example/%d", i) }
		var es []frontier.Entry
		for i := range 40 {
			es = append(es, frontier.Entry{URL: url(i), Depth: 5, Weight: 2, Meta: []byte("3")})
		}
		_, err := w.F.Add(t.Context(), es...)
		require.NoError(t, err)
		w.OnDisk()
		hint := func(i int, level string, weight float64) frontier.Entry {
			return frontier.Entry{URL: url(i), Depth: 4, Weight: weight, Meta: []byte(level), Hint: true}
		}
		hints := []frontier.Entry{hint(30, "6", 5), hint(31, "6", 0), hint(32, "3", 1), hint(33, "4", 1), hint(33, "5", 1)}
		v, err := w.F.AddVerdicts(t.Context(), hints...)
		require.NoError(t, err)
		require.Equal(t, slices.Repeat([]frontier.Verdict{frontier.EntryHinted}, len(hints)), v)
		for range 2 { // enough notes of others, which move nothing
			_, err = w.F.Add(t.Context(), hint(32, "3", 1), hint(32, "3", 1), hint(32, "3", 1))
			require.NoError(t, err)
		}
		hook.Of(w.F).Sweep()
		st := w.F.Stats()
		require.EqualValues(t, 2, st.Risen)
		require.Equal(t, []int64{10, 0}, []int64{st.Noted, st.Unnoted}, "one a hint with a weight")
		require.Positive(t, st.Walks)
		require.GreaterOrEqual(t, st.Walked, st.Risen)
		require.NoError(t, w.F.Check())
		if w.Machine != nil {
			w = w.Killed()
		}
		want := []frontier.Entry{
			{URL: url(30), Depth: 4, Weight: 5, Meta: []byte("3")},
			{URL: url(33), Depth: 4, Weight: 2, Meta: []byte("3")},
			{URL: url(0), Depth: 5, Weight: 2, Meta: []byte("3")},
		}
		for _, e := range want {
			l := w.Next()
			require.Equal(t, e, l.Entry)
			w.Fetched(l, 0, frontier.Outcome{})
		}
	})
}

// With DeferHints a hint raises nothing.
func TestDeferredHintsRaiseNothing(t *testing.T) {
	rising(t, frontier.Options{Prioritizer: frontier.ByWeight(8, 8), DeferHints: true}, func(t *testing.T, w *harness.World) {
		w.Add("http://a.example/1", "http://a.example/2")
		_, err := w.F.Add(t.Context(), frontier.Entry{URL: "http://a.example/2", Weight: 8, Hint: true})
		require.NoError(t, err)
		hook.Of(w.F).Sweep()
		require.Zero(t, w.F.Stats().Risen)
		require.Zero(t, w.F.Stats().Noted)
	})
}

// The priority of a visited URL is what the Prioritizer says of it with its History, and a weight that is no
// number gives way to a hint's.
func TestHintsOfVisitedURLs(t *testing.T) {
	newFirst := frontier.PrioritizerFunc(func(e frontier.Entry, h frontier.History) int {
		if h.Visits > 0 && !(e.Weight >= 5) { // also if it is no number
			return 2
		}
		return 7
	})
	rising(t, frontier.Options{Prioritizer: newFirst, Delay: frontier.FixedDelay(0)}, func(t *testing.T, w *harness.World) {
		e := frontier.Entry{URL: "http://a.example/", Weight: math.NaN()}
		_, err := w.F.Add(t.Context(), e)
		require.NoError(t, err)
		require.NoError(t, w.F.Done(w.Next(), frontier.Outcome{Result: frontier.Changed, Next: w.Clock.Now().Add(time.Hour)}))
		w.Clock.Advance(2 * time.Hour)
		require.EqualValues(t, 1, w.F.Stats().Waiting)
		for _, c := range []struct {
			weight   float64
			priority int
		}{{1, 2}, {5, 7}} {
			e.Weight, e.Hint = c.weight, true
			_, err = w.F.Add(t.Context(), e)
			require.NoError(t, err)
			hook.Of(w.F).Sweep()
			st, err := inspect.New(w.F).Status(t.Context(), e)
			require.NoError(t, err)
			require.Equal(t, inspect.URLWaiting, st.State)
			require.Equal(t, c.priority, st.Priority)
		}
		require.Equal(t, 5., w.Next().Entry.Weight)
	})
}
