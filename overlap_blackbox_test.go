// This file tests rules that overlap: of each setting the most specific counts, and
// when it is taken back the next wider one does.

package frontier_test

import (
	"context"
	"fmt"
	"github.com/seed-7440039f/frontier"
	"github.com/stretchr/testify/require"
	"testing"
	"time"
)

// Each host has the delay of its closest scope.
func TestMostSpecificDelayCounts(t *testing.T) {
	inBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(sec)}, func(t *testing.T, w *world) {
		f := w.f
		hosts := []string{"a.b.c.example", "b.c.example", "xb.c.example", "c.example", "example", "other"}
		for _, h := range hosts {
			w.addMany(h, 9)
		}
		require.NoError(t, f.SetDelay(frontier.All(), frontier.FixedDelay(2*sec)))
		require.NoError(t, f.SetDelay(frontier.Domain("example"), frontier.FixedDelay(3*sec)))
		require.NoError(t, f.SetDelay(frontier.Domain("c.example"), frontier.FactorDelay(0, 4*sec, 5*sec)))
		require.NoError(t, f.SetDelay(frontier.Domain("b.c.example"), frontier.FixedDelay(0)))
		require.NoError(t, f.SetDelay(frontier.Host("b.c.example"), frontier.FixedDelay(7*sec)))
		want := map[string]time.Duration{"a.b.c.example": 0, "b.c.example": 7 * sec, "xb.c.example": 4 * sec, "c.example": 4 * sec, "example": 3 * sec, "other": 2 * sec}
		check := func() {
			t.Helper()
			for range hosts {
				for _, h := range hosts {
					l, err := f.Contact(t.Context(), h)
					require.NoError(t, err)
					end := w.clk.Now()
					require.NoError(t, f.Done(l, frontier.Outcome{}))
					if want[h] > 0 {
						require.Equal(t, want[h], w.info(h).Due.Sub(end), h)
					}
				}
				w.clk.Advance(time.Minute)
			}
		}
		check()
		require.NoError(t, f.SetDelay(frontier.Host("b.c.example"), nil))
		require.NoError(t, f.Clear(frontier.Domain("c.example")))
		require.NoError(t, f.Clear(frontier.All()))
		want["b.c.example"], want["xb.c.example"], want["c.example"], want["other"] = 0, 3*sec, 3*sec, sec
		check()
	})
}

// Pauses, blocks and leave to run at three levels, through reopenings.
func TestMostSpecificPauseCounts(t *testing.T) {
	inBothWorlds(t, quick(), func(t *testing.T, w *world) {
		f := w.f
		var hosts = []string{"a.b.example", "b.example", "c.example", "d.other"}
		for _, h := range hosts {
			w.addMany(h, 30)
		}
		gets := func(want ...string) {
			t.Helper()
			had := map[string]bool{}
			var ls []frontier.Lease
			for range 40 {
				l, _, err := w.tryNext()
				if err != nil {
					break
				}
				had[l.Host] = true
				ls = append(ls, l)
			}
			for _, l := range ls {
				require.NoError(t, f.Done(l, requeue))
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
		require.NoError(t, f.Pause(frontier.All()))
		gets()
		require.NoError(t, f.SetRule(frontier.Domain("b.example"), frontier.Rule{Paused: frontier.Off}))
		gets("a.b.example", "b.example")
		require.NoError(t, f.Pause(frontier.Host("a.b.example")))
		gets("b.example")
		require.NoError(t, f.Pause(frontier.Domain("example")))
		gets("b.example")
		require.NoError(t, f.Resume(frontier.All()))
		gets("b.example", "d.other")
		require.NoError(t, f.Resume(frontier.Domain("example")))
		gets("b.example", "c.example", "d.other")
		require.NoError(t, f.BlockUntil(frontier.All(), dawn.Add(time.Hour)))
		gets("b.example")
		require.NoError(t, f.Clear(frontier.Domain("b.example")))
		gets()
		require.NoError(t, f.BlockUntil(frontier.Domain("b.example"), dawn.Add(time.Minute)))
		require.NoError(t, f.Resume(frontier.Host("a.b.example")))
		gets("a.b.example")
		if w.machine != nil {
			w.reopen()
			f = w.f
			gets("a.b.example")
			w = w.killed()
			f = w.f
			gets("a.b.example")
		}
		w.until(time.Minute)
		// the most specific was b.example's block, which has passed: the wider counts
		gets("a.b.example")
		w.until(time.Hour)
		gets(hosts...)
	})
}

// The lanes of each host are those of its closest scope.
func TestMostSpecificConcurrencyCounts(t *testing.T) {
	inBothWorlds(t, quick(), func(t *testing.T, w *world) {
		f := w.f
		for _, h := range []string{"a.example", "b.example", "c.other"} {
			w.addMany(h, 20)
		}
		require.NoError(t, f.SetConcurrency(frontier.All(), 2))
		require.NoError(t, f.SetConcurrency(frontier.Domain("example"), 3))
		require.NoError(t, f.SetConcurrency(frontier.Host("a.example"), 1))
		n := map[string]int{}
		var ls []frontier.Lease
		for {
			l, _, err := w.tryNext()
			if err != nil {
				break
			}
			n[l.Host]++
			ls = append(ls, l)
		}
		require.Equal(t, map[string]int{"a.example": 1, "b.example": 3, "c.other": 2}, n)
		require.NoError(t, f.Clear(frontier.Host("a.example")))
		require.NoError(t, f.SetConcurrency(frontier.Domain("example"), 1))
		_, _, err := w.tryNext()
		require.ErrorIs(t, err, frontier.ErrNotDue)
		require.NoError(t, f.SetConcurrency(frontier.Domain("example"), 0))
		for {
			l, _, err := w.tryNext()
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

// SetPriority takes back what Reprioritize said of the same scope, and nothing else.
func TestMostSpecificPriorityCounts(t *testing.T) {
	o := quick()
	o.Selector = frontier.Strict()
	inBothWorlds(t, o, func(t *testing.T, w *world) {
		f, ctx := w.f, context.Background()
		for d := range 4 {
			_, err := f.Add(ctx, frontier.Entry{URL: fmt.Sprintf("http://a.x.example/%d", d), Depth: d})
			require.NoError(t, err)
		}
		pr := func() (out []int) {
			for d := range 4 {
				s, err := f.Status(ctx, 0, fmt.Sprintf("http://a.x.example/%d", d))
				require.NoError(t, err)
				out = append(out, s.Priority)
			}
			return
		}
		require.Equal(t, []int{8, 7, 6, 5}, pr())
		require.NoError(t, f.SetPriority(frontier.All(), 1))
		require.Equal(t, []int{1, 1, 1, 1}, pr())
		require.NoError(t, f.Reprioritize(frontier.Domain("example"), 7, 3))
		require.Equal(t, []int{1, 3, 1, 1}, pr())
		require.NoError(t, f.Reprioritize(frontier.Host("a.x.example"), 6, 4))
		require.Equal(t, []int{1, 3, 4, 1}, pr())
		require.NoError(t, f.SetPriority(frontier.Domain("x.example"), 2))
		require.Equal(t, []int{2, 2, 4, 2}, pr())
		require.NoError(t, f.SetPriority(frontier.Host("a.x.example"), 5))
		require.Equal(t, []int{5, 5, 5, 5}, pr())
		require.NoError(t, f.SetPriority(frontier.Host("a.x.example"), 0))
		require.Equal(t, []int{2, 2, 2, 2}, pr())
		require.Equal(t, 2, f.RuleOf("a.x.example").Priority)
	})
}
