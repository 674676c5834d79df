package frontier_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func (w *world) withPriority(url string, p int) {
	w.Helper()
	_, err := w.f.Add(context.Background(), frontier.Entry{URL: url, Weight: float64(p)})
	require.NoError(w, err)
}

// order takes all that may be had, hands it back, and returns hosts and priorities.
func (w *world) order() (got []string) {
	w.Helper()
	var out []frontier.Lease
	for {
		l, _, err := w.tryNext()
		if err != nil {
			break
		}
		got = append(got, fmt.Sprint(l.Host[:1], l.Priority))
		out = append(out, l)
	}
	for _, l := range out {
		require.NoError(w, w.f.Done(l, frontier.Outcome{Result: frontier.Requeue, Uncontacted: true}))
	}
	require.NoError(w, w.f.Check())
	return got
}

func TestSetPriority(t *testing.T) {
	inBothWorlds(t, frontier.Options{
		Prioritizer: byWeight, Selector: frontier.Strict(), Delay: frontier.FixedDelay(time.Second),
	}, func(t *testing.T, w *world) {
		com := frontier.Domain("com")
		for p, host := range []string{"a.com", "b.com", "c.org", "d.com"} {
			w.withPriority("http://"+host+"/", p+2)
		}
		require.Equal(t, []string{"d5", "c4", "b3", "a2"}, w.order())
		require.NoError(t, w.f.SetPriority(com, 1))
		require.ElementsMatch(t, []string{"c4", "d1", "b1", "a1"}, w.order())
		require.Equal(t, []int64{3, 0, 0, 1, 0, 0, 0, 0}, w.f.Stats().WaitingBy)
		w.withPriority("http://new.com/", 8)
		require.Contains(t, w.order(), "n1", "later ones, too")
		require.NoError(t, w.f.Reprioritize(com, 5, 7))
		require.NoError(t, w.f.SetPriority(frontier.Host("a.com"), 8))
		require.Equal(t, []string{"a8", "d7", "c4"}, w.order()[:3])
		require.NoError(t, w.f.Reprioritize(frontier.All(), 4, 2))
		require.Contains(t, w.order(), "c2")
		r := w.f.RuleOf("a.com")
		require.Equal(t, 8, r.Priority)
		require.Zero(t, r.Priorities, "what is narrower counts for all of its URLs")
		r = w.f.RuleOf("d.com")
		require.Equal(t, 1, r.Priority)
		require.Equal(t, frontier.Priorities{4: 7}, r.Priorities)
		if w.machine != nil {
			require.NoError(t, w.f.MoveNow(true))
			w = w.killed()
			w.clk.Advance(time.Second)
			require.Equal(t, []string{"a8", "d7", "c2"}, w.order()[:3])
		}
		w.crawlNow(frontier.Entry{URL: "http://b.com/now"})
		require.Equal(t, fmt.Sprint("b", frontier.Immediate), w.order()[0])
		require.NoError(t, w.f.SetPriority(com, 0))
		require.NoError(t, w.f.Clear(frontier.Host("a.com")))
		require.NoError(t, w.f.Reprioritize(frontier.All(), 4, 0))
		require.Equal(t, []string{"b65", "n8", "d5", "c4", "a2"}, w.order())
		for range 6 {
			w.fetched(w.next(), 0, frontier.Outcome{})
		}
		w.over()
	})
}

// A URL that failed is served as the rule says, and has its own priority when the
// rule is gone.
func TestSetPriorityOfRetries(t *testing.T) {
	w := newStoredWorld(t, frontier.Options{
		Prioritizer: byWeight, Delay: frontier.FixedDelay(time.Second), Retry: frontier.Retries(3, time.Minute),
	}, spill.Options{})
	w.withPriority("http://a.com/", 3)
	require.NoError(t, w.f.SetPriority(frontier.Host("a.com"), 6))
	l := w.next()
	require.Equal(t, 6, l.Priority)
	w.fetched(l, 0, frontier.Outcome{Result: frontier.Failed})
	require.NoError(t, w.f.MoveNow(true)) // it waits for its time on disk
	l = w.next()
	require.Equal(t, 6, l.Priority)
	require.NoError(t, w.f.SetPriority(frontier.Host("a.com"), 0))
	w.fetched(l, 0, frontier.Outcome{Result: frontier.Failed})
	require.Equal(t, 3, w.next().Priority)
}

func TestBadPriorities(t *testing.T) {
	w := newWorld(t, frontier.Options{Priorities: 4})
	all := frontier.All()
	require.ErrorContains(t, w.f.SetPriority(all, 5), "Priority is 5; want 1 to 4")
	require.ErrorContains(t, w.f.SetPriority(all, -1), "Priority is -1; want 1 to 4")
	require.ErrorContains(t, w.f.SetPriority(frontier.Host(""), 1), "scope name has 0 bytes")
	require.ErrorContains(t, w.f.Reprioritize(all, 0, 1), "want priorities of 1 to 4")
	require.ErrorContains(t, w.f.Reprioritize(all, 1, 5), "want priorities of 1 to 4")
	require.ErrorContains(t, w.f.SetRule(all, frontier.Rule{Priorities: frontier.Priorities{5: 1}}), "Priorities[5] is 1; want at most 4")
	_, ok := w.f.Rule(all)
	require.False(t, ok)
}

// Whatever is said of hosts, domains and all, in whatever order, the URLs of each
// host are served as the narrowest of it says.
func TestPrioritiesOfOverlappingScopes(t *testing.T) {
	scopes := []frontier.Scope{
		frontier.All(), frontier.Domain("com"), frontier.Domain("a.com"), frontier.Host("a.com"), frontier.Host("x.a.com"), frontier.Host("b.org"),
	}
	around := map[string][]int{"a.com": {3, 2, 1, 0}, "x.a.com": {4, 2, 1, 0}, "b.org": {5, 0}} // the narrowest first
	rapid.Check(t, func(r *rapid.T) {
		w := newStoredWorld(t, frontier.Options{Prioritizer: byWeight, Priorities: 3, Selector: frontier.Strict(), Delay: frontier.FixedDelay(0)}, spill.Options{})
		rules := make([]frontier.Rule, len(scopes))
		n := 0
		for range rapid.IntRange(1, 12).Draw(r, "steps") {
			i := rapid.IntRange(0, len(scopes)-1).Draw(r, "scope")
			from, to := rapid.IntRange(1, 3).Draw(r, "from"), rapid.IntRange(0, 3).Draw(r, "to")
			switch rapid.IntRange(0, 9).Draw(r, "what") {
			case 0, 1, 2:
				require.NoError(t, w.f.SetPriority(scopes[i], to))
				rules[i] = frontier.Rule{Priority: to}
			case 3, 4, 5:
				require.NoError(t, w.f.Reprioritize(scopes[i], from, to))
				rules[i].Priorities[from-1] = uint8(to)
			case 6:
				if rapid.Bool().Draw(r, "kill") {
					require.NoError(t, w.f.MoveNow(true))
				}
				w = w.killed()
			default:
				for host := range around {
					n++
					w.withPriority(fmt.Sprintf("http://%s/%d", host, n), from)
				}
			}
			require.NoError(t, w.f.Check())
		}
		want := map[int]int{}
		for host, of := range around {
			for u, err := range w.f.URLs(context.Background(), frontier.Host(host), "") {
				require.NoError(t, err)
				p := int(u.Entry.Weight)
				for _, i := range of {
					if as := rules[i].Priorities[p-1]; as != 0 {
						p = int(as)
						break
					}
					if rules[i].Priority != 0 {
						p = rules[i].Priority
						break
					}
				}
				require.Equal(t, p, u.Priority, "%s", u.Entry.URL)
				want[p]++
			}
		}
		s := w.f.Stats()
		require.Equal(t, []int64{int64(want[1]), int64(want[2]), int64(want[3])}, s.WaitingBy)
		w.clk.Advance(time.Second)
		for last := 3; ; {
			l, _, err := w.tryNext()
			if err != nil {
				break
			}
			require.LessOrEqual(t, l.Priority, last)
			last = l.Priority
			want[last]--
			require.NoError(t, w.f.Done(l, frontier.Outcome{}))
		}
		require.Equal(t, []int{0, 0, 0}, []int{want[1], want[2], want[3]})
	})
}
