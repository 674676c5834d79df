package control

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/internal/hook"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/selector"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/test/harness"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestSetPriority(t *testing.T) {
	harness.InBothWorlds(t, frontier.Options{
		Prioritizer: harness.ByWeight, Selector: selector.Strict(), Delay: frontier.FixedDelay(time.Second),
	}, func(t *testing.T, w *harness.World) {
		com := scope.Domain("com")
		for p, host := range []string{"a.com", "b.com", "c.org", "d.com"} {
			w.WithPriority("http://"+host+"/", p+2)
		}
		require.Equal(t, []string{"d5", "c4", "b3", "a2"}, w.Order())
		require.NoError(t, w.F.UpdateRule(com, func(r *frontier.Rule) { r.Priority = 1 }))
		require.ElementsMatch(t, []string{"c4", "d1", "b1", "a1"}, w.Order())
		require.Equal(t, []int64{3, 0, 0, 1, 0, 0, 0, 0}, w.F.Stats().WaitingBy)
		w.WithPriority("http://new.com/", 8)
		require.Contains(t, w.Order(), "n1", "later ones, too")
		require.NoError(t, w.F.UpdateRule(com, func(r *frontier.Rule) { r.Priorities[5] = 7 }))
		require.NoError(t, w.F.UpdateRule(scope.Host("a.com"), func(r *frontier.Rule) { r.Priority = 8 }))
		require.Equal(t, []string{"a8", "d7", "c4"}, w.Order()[:3])
		require.NoError(t, w.F.UpdateRule(scope.All(), func(r *frontier.Rule) { r.Priorities[4] = 2 }))
		require.Contains(t, w.Order(), "c2")
		r := w.F.RuleOf("a.com")
		require.Equal(t, 8, r.Priority)
		require.Zero(t, r.Priorities, "what is narrower counts for all of its URLs")
		r = w.F.RuleOf("d.com")
		require.Equal(t, 1, r.Priority)
		require.Equal(t, frontier.PriorityMap{5: 7}, r.Priorities)
		if w.Machine != nil {
			require.NoError(t, hook.Of(w.F).MoveNow(true))
			w = w.Killed()
			w.Clock.Advance(time.Second)
			require.Equal(t, []string{"a8", "d7", "c2"}, w.Order()[:3])
		}
		w.CrawlNow(frontier.Entry{URL: "http://b.com/now"})
		require.Equal(t, fmt.Sprint("b", frontier.Immediate), w.Order()[0])
		require.NoError(t, w.F.Clear(com))
		require.NoError(t, w.F.Clear(scope.Host("a.com")))
		require.NoError(t, w.F.UpdateRule(scope.All(), func(r *frontier.Rule) { r.Priorities[4] = 0 }))
		require.Equal(t, []string{"b65", "n8", "d5", "c4", "a2"}, w.Order())
		for range 6 {
			w.Fetched(w.Next(), 0, frontier.Outcome{})
		}
		w.Over()
	})
}

// A URL that failed is served as the rule says, and has its own priority when the
// rule is gone.
func TestSetPriorityOfRetries(t *testing.T) {
	w := harness.NewStoredWorld(t, frontier.Options{
		Prioritizer: harness.ByWeight, Delay: frontier.FixedDelay(time.Second), Retry: frontier.Retries(3, time.Minute),
	}, spill.Options{})
	w.WithPriority("http://a.com/", 3)
	require.NoError(t, w.F.UpdateRule(scope.Host("a.com"), func(r *frontier.Rule) { r.Priority = 6 }))
	l := w.Next()
	require.Equal(t, 6, l.Priority)
	w.Fetched(l, 0, frontier.Outcome{Result: frontier.Failed})
	require.NoError(t, hook.Of(w.F).MoveNow(true)) // it waits for its time on disk
	l = w.Next()
	require.Equal(t, 6, l.Priority)
	require.NoError(t, w.F.UpdateRule(scope.Host("a.com"), func(r *frontier.Rule) { r.Priority = 0 }))
	w.Fetched(l, 0, frontier.Outcome{Result: frontier.Failed})
	require.Equal(t, 3, w.Next().Priority)
}

func TestBadPriorities(t *testing.T) {
	w := harness.NewWorld(t, frontier.Options{Priorities: 4})
	all := scope.All()
	require.ErrorContains(t, w.F.UpdateRule(all, func(r *frontier.Rule) { r.Priority = 5 }), "Priority is 5; want 1 to 4")
	require.ErrorContains(t, w.F.UpdateRule(all, func(r *frontier.Rule) { r.Priority = -1 }), "Priority is -1; want 1 to 4")
	require.ErrorContains(t, w.F.UpdateRule(scope.Host(""), func(r *frontier.Rule) { r.Priority = 1 }), "scope name has 0 bytes")
	require.ErrorContains(t, w.F.UpdateRule(all, func(r *frontier.Rule) { r.Priorities[0] = 1 }), "Priorities[0] is 1; want 1 to 4 for each of 1 to 4")
	require.ErrorContains(t, w.F.UpdateRule(all, func(r *frontier.Rule) { r.Priorities[1] = 5 }), "Priorities[1] is 5; want 1 to 4")
	require.ErrorContains(t, w.F.UpdateRule(all, func(r *frontier.Rule) { r.Priorities[6] = 1 }), "Priorities[6] is 1; want")
	_, ok := w.F.Rule(all)
	require.False(t, ok)
}

// Whatever is said of hosts, domains and all, in whatever order, the URLs of each
// host are served as the narrowest of it says.
func TestPrioritiesOfOverlappingScopes(t *testing.T) {
	scopes := []scope.Scope{
		scope.All(), scope.Domain("com"), scope.Domain("a.com"), scope.Host("a.com"), scope.Host("x.a.com"), scope.Host("b.org"),
	}
	around := map[string][]int{"a.com": {3, 2, 1, 0}, "x.a.com": {4, 2, 1, 0}, "b.org": {5, 0}} // the narrowest first
	rapid.Check(t, func(r *rapid.T) {
		w := harness.NewStoredWorld(t, frontier.Options{Prioritizer: harness.ByWeight, Priorities: 3, Selector: selector.Strict(), Delay: frontier.FixedDelay(0)}, spill.Options{})
		rules := make([]frontier.Rule, len(scopes))
		n := 0
		for range rapid.IntRange(1, 12).Draw(r, "steps") {
			i := rapid.IntRange(0, len(scopes)-1).Draw(r, "scope")
			from, to := rapid.IntRange(1, 3).Draw(r, "from"), rapid.IntRange(0, 3).Draw(r, "to")
			switch rapid.IntRange(0, 9).Draw(r, "what") {
			case 0, 1, 2:
				require.NoError(t, w.F.UpdateRule(scopes[i], func(r *frontier.Rule) { *r = frontier.Rule{Priority: to} }))
				rules[i] = frontier.Rule{Priority: to}
			case 3, 4, 5:
				require.NoError(t, w.F.UpdateRule(scopes[i], func(r *frontier.Rule) { r.Priorities[from] = uint8(to) }))
				rules[i].Priorities[from] = uint8(to)
			case 6:
				if rapid.Bool().Draw(r, "kill") {
					require.NoError(t, hook.Of(w.F).MoveNow(true))
				}
				w = w.Killed()
			default:
				for host := range around {
					n++
					w.WithPriority(fmt.Sprintf("http://%s/%d", host, n), from)
				}
			}
			require.NoError(t, w.F.Check())
		}
		want := map[int]int{}
		for host, of := range around {
			for u, err := range inspect.New(w.F).URLs(context.Background(), scope.Host(host), "") {
				require.NoError(t, err)
				p := int(u.Entry.Weight)
				for _, i := range of {
					if as := rules[i].Priorities[p]; as != 0 {
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
		s := w.F.Stats()
		require.Equal(t, []int64{int64(want[1]), int64(want[2]), int64(want[3])}, s.WaitingBy)
		w.Clock.Advance(time.Second)
		for last := 3; ; {
			l, _, err := w.TryNext()
			if err != nil {
				break
			}
			require.LessOrEqual(t, l.Priority, last)
			last = l.Priority
			want[last]--
			require.NoError(t, w.F.Done(l, frontier.Outcome{}))
		}
		require.Equal(t, []int{0, 0, 0}, []int{want[1], want[2], want[3]})
	})
}
