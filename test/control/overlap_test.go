// This file tests rules that overlap: of each setting the most specific counts, and
// when it is taken back the next wider one does.

package control

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/selector"
	"github.com/seed-7440039f/frontier/test/harness"
	"github.com/stretchr/testify/require"
)

// Each host has the delay of its closest scope.
func TestMostSpecificDelayCounts(t *testing.T) {
	harness.InBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(time.Second)}, func(t *testing.T, w *harness.World) {
		f := w.F
		hosts := []string{"a.b.c.example", "b.c.example", "xb.c.example", "c.example", "example", "other"}
		for _, h := range hosts {
			w.AddMany(h, 9)
		}
		require.NoError(t, f.UpdateRule(scope.All(), func(r *frontier.Rule) { r.Delay = frontier.FixedDelay(2 * time.Second) }))
		require.NoError(t, f.UpdateRule(scope.Domain("example"), func(r *frontier.Rule) { r.Delay = frontier.FixedDelay(3 * time.Second) }))
		require.NoError(t, f.UpdateRule(scope.Domain("c.example"), func(r *frontier.Rule) { r.Delay = frontier.FactorDelay(0, 4*time.Second, 5*time.Second) }))
		require.NoError(t, f.UpdateRule(scope.Domain("b.c.example"), func(r *frontier.Rule) { r.Delay = frontier.FixedDelay(0) }))
		require.NoError(t, f.UpdateRule(scope.Host("b.c.example"), func(r *frontier.Rule) { r.Delay = frontier.FixedDelay(7 * time.Second) }))
		want := map[string]time.Duration{"a.b.c.example": 0, "b.c.example": 7 * time.Second, "xb.c.example": 4 * time.Second, "c.example": 4 * time.Second, "example": 3 * time.Second, "other": 2 * time.Second}
		check := func() {
			t.Helper()
			for range hosts {
				for _, h := range hosts {
					l, err := f.Contact(t.Context(), h)
					require.NoError(t, err)
					end := w.Clock.Now()
					require.NoError(t, f.Done(l, frontier.Outcome{}))
					if want[h] > 0 {
						require.Equal(t, want[h], w.Info(h).Due.Sub(end), h)
					}
				}
				w.Clock.Advance(time.Minute)
			}
		}
		check()
		require.NoError(t, f.UpdateRule(scope.Host("b.c.example"), func(r *frontier.Rule) { r.Delay = nil }))
		require.NoError(t, f.Clear(scope.Domain("c.example")))
		require.NoError(t, f.Clear(scope.All()))
		want["b.c.example"], want["xb.c.example"], want["c.example"], want["other"] = 0, 3*time.Second, 3*time.Second, time.Second
		check()
	})
}

// Pauses, blocks and leave to run at three levels, through reopenings.
func TestMostSpecificPauseCounts(t *testing.T) {
	harness.InBothWorlds(t, harness.Quick(), func(t *testing.T, w *harness.World) {
		f := w.F
		var hosts = []string{"a.b.example", "b.example", "c.example", "d.other"}
		for _, h := range hosts {
			w.AddMany(h, 30)
		}
		gets := func(want ...string) {
			t.Helper()
			had := map[string]bool{}
			var ls []frontier.Lease
			for range 40 {
				l, _, err := w.TryNext()
				if err != nil {
					break
				}
				had[l.Host] = true
				ls = append(ls, l)
			}
			for _, l := range ls {
				require.NoError(t, f.Done(l, harness.Requeue))
			}
			var got []string
			for _, h := range hosts {
				if had[h] {
					got = append(got, h)
				}
			}
			require.Equal(t, want, got)
			require.NoError(t, f.Check())
		}
		gets(hosts...)
		require.NoError(t, f.Pause(scope.All()))
		gets()
		require.NoError(t, f.UpdateRule(scope.Domain("b.example"), func(rule *frontier.Rule) { *rule = frontier.Rule{Paused: scope.Off} }))
		gets("a.b.example", "b.example")
		require.NoError(t, f.Pause(scope.Host("a.b.example")))
		gets("b.example")
		require.NoError(t, f.Pause(scope.Domain("example")))
		gets("b.example")
		require.NoError(t, f.Resume(scope.All()))
		gets("b.example", "d.other")
		require.NoError(t, f.Resume(scope.Domain("example")))
		gets("b.example", "c.example", "d.other")
		require.NoError(t, f.BlockUntil(scope.All(), harness.Dawn.Add(time.Hour)))
		gets("b.example")
		require.NoError(t, f.Clear(scope.Domain("b.example")))
		gets()
		require.NoError(t, f.BlockUntil(scope.Domain("b.example"), harness.Dawn.Add(time.Minute)))
		require.NoError(t, f.Resume(scope.Host("a.b.example")))
		gets("a.b.example")
		if w.Machine != nil {
			w.Reopen()
			f = w.F
			gets("a.b.example")
			w = w.Killed()
			f = w.F
			gets("a.b.example")
		}
		w.Until(time.Minute)
		// the most specific was b.example's block, which has passed: the wider counts
		gets("a.b.example")
		w.Until(time.Hour)
		gets(hosts...)
	})
}

// The lanes of each host are those of its closest scope.
func TestMostSpecificConcurrencyCounts(t *testing.T) {
	harness.InBothWorlds(t, harness.Quick(), func(t *testing.T, w *harness.World) {
		f := w.F
		for _, h := range []string{"a.example", "b.example", "c.other"} {
			w.AddMany(h, 20)
		}
		require.NoError(t, f.UpdateRule(scope.All(), func(r *frontier.Rule) { r.Concurrency = 2 }))
		require.NoError(t, f.UpdateRule(scope.Domain("example"), func(r *frontier.Rule) { r.Concurrency = 3 }))
		require.NoError(t, f.UpdateRule(scope.Host("a.example"), func(r *frontier.Rule) { r.Concurrency = 1 }))
		n := map[string]int{}
		var ls []frontier.Lease
		for {
			l, _, err := w.TryNext()
			if err != nil {
				break
			}
			n[l.Host]++
			ls = append(ls, l)
		}
		require.Equal(t, map[string]int{"a.example": 1, "b.example": 3, "c.other": 2}, n)
		require.NoError(t, f.Clear(scope.Host("a.example")))
		require.NoError(t, f.UpdateRule(scope.Domain("example"), func(r *frontier.Rule) { r.Concurrency = 1 }))
		_, _, err := w.TryNext()
		require.ErrorIs(t, err, frontier.ErrNotDue)
		require.NoError(t, f.UpdateRule(scope.Domain("example"), func(r *frontier.Rule) { r.Concurrency = 0 }))
		for {
			l, _, err := w.TryNext()
			if err != nil {
				break
			}
			n[l.Host]++
			ls = append(ls, l)
		}
		require.Equal(t, map[string]int{"a.example": 2, "b.example": 3, "c.other": 2}, n)
		for _, l := range ls {
			require.NoError(t, f.Done(l, frontier.Outcome{}))
		}
	})
}

// Of each URL the priority counts that the most specific rule gives it: by its own, then for all.
func TestMostSpecificPriorityCounts(t *testing.T) {
	o := harness.Quick()
	o.Selector = selector.Strict()
	harness.InBothWorlds(t, o, func(t *testing.T, w *harness.World) {
		f, ctx := w.F, context.Background()
		for d := range 4 {
			_, err := f.Add(ctx, frontier.Entry{URL: fmt.Sprintf("http://a.x.example/%d", d), Depth: d})
			require.NoError(t, err)
		}
		pr := func() (out []int) {
			for d := range 4 {
				s, err := inspect.New(f).Status(ctx, frontier.Entry{URL: fmt.Sprintf("http://a.x.example/%d", d)})
				require.NoError(t, err)
				out = append(out, s.Priority)
			}
			return
		}
		require.Equal(t, []int{8, 7, 6, 5}, pr())
		require.NoError(t, f.UpdateRule(scope.All(), func(r *frontier.Rule) { r.Priority = 1 }))
		require.Equal(t, []int{1, 1, 1, 1}, pr())
		require.NoError(t, f.UpdateRule(scope.Domain("example"), func(r *frontier.Rule) { r.Priorities[7] = 3 }))
		require.Equal(t, []int{1, 3, 1, 1}, pr())
		require.NoError(t, f.UpdateRule(scope.Host("a.x.example"), func(r *frontier.Rule) { r.Priorities[6] = 4 }))
		require.Equal(t, []int{1, 3, 4, 1}, pr())
		require.NoError(t, f.UpdateRule(scope.Domain("x.example"), func(r *frontier.Rule) { r.Priority = 2 }))
		require.Equal(t, []int{2, 2, 4, 2}, pr())
		require.NoError(t, f.UpdateRule(scope.Host("a.x.example"), func(r *frontier.Rule) { r.Priority, r.Priorities = 5, frontier.PriorityMap{} }))
		require.Equal(t, []int{5, 5, 5, 5}, pr())
		require.NoError(t, f.UpdateRule(scope.Host("a.x.example"), func(r *frontier.Rule) { r.Priority = 0 }))
		require.Equal(t, []int{2, 2, 2, 2}, pr())
		require.Equal(t, 2, f.RuleOf("a.x.example").Priority)
	})
}

// When the block of a host ends that is paused, too, it gives the slot of its group up.
func TestEndOfABlockOfAPausedHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		f, err := frontier.Open(ctx, frontier.Options{Delay: frontier.FixedDelay(10 * time.Second), GroupDelay: frontier.FixedDelay(0), KeepOpen: true})
		require.NoError(t, err)
		defer func() { require.NoError(t, f.Close()) }()
		for _, h := range []string{"a.test", "b.test"} {
			require.NoError(t, f.Assign(h, "g"))
		}
		_, err = f.Add(ctx, frontier.Entry{URL: "http://a.test/1", Crawl: 1}, frontier.Entry{URL: "http://a.test/2", Crawl: 1})
		require.NoError(t, err)
		l, _, err := f.TryNext()
		require.NoError(t, err)
		require.NoError(t, f.Done(l, frontier.Outcome{})) // a paces until 10 s
		require.NoError(t, f.UpdateRule(scope.Host("a.test"), func(r *frontier.Rule) {
			r.Paused, r.BlockedUntil = scope.On, time.Now().Add(20*time.Second)
		}))
		time.Sleep(11 * time.Second)
		_, err = inspect.New(f).Upcoming(ctx, 1, false) // time passes: a is ready, and has the slot
		require.NoError(t, err)
		_, err = f.Add(ctx, frontier.Entry{URL: "http://b.test/1", Crawl: 2})
		require.NoError(t, err)
		time.Sleep(15 * time.Second)
		ls, err := f.Take(ctx, frontier.TakeOptions{Crawls: []uint32{2}})
		require.NoError(t, err)
		require.Len(t, ls, 1)
		require.NoError(t, f.Done(ls[0], frontier.Outcome{}))
		require.NoError(t, f.Check())
	})
}
