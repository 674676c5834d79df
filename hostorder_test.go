package frontier

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"testing"

	"github.com/seed-7440039f/frontier/internal/hostkey"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// The order has every host in memory, however many come and go while and after it
// is made; a scope's hosts are those whose names say so.
func TestHostOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, err := Open(context.Background(), Options{Delay: FixedDelay(0)})
		require.NoError(t, err)
		label := rapid.SampledFrom([]string{"a", "b", "a-b", "org", "example", "127"})
		name := rapid.Custom(func(t *rapid.T) string {
			s := label.Draw(t, "label")
			for range rapid.IntRange(0, 2).Draw(t, "more") {
				s += "." + label.Draw(t, "label")
			}
			return s
		})
		for i := range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0:
				f.mu.Lock()
				f.sched.orderSome(rapid.IntRange(1, 5).Draw(t, "n"))
				f.mu.Unlock()
			case 1:
				if l, _, err := f.TryNext(); err == nil {
					require.NoError(t, f.Done(l, Outcome{}))
				}
			default:
				_, err := f.Add(context.Background(), Entry{URL: fmt.Sprintf("http://%s/%d", name.Draw(t, "host"), i)})
				require.NoError(t, err)
			}
			require.NoError(t, f.Check())
		}
		s := rapid.SampledFrom([]Scope{All(), Host(name.Draw(t, "of")), Domain(name.Draw(t, "of"))}).Draw(t, "scope")
		var want, got []string
		for id := uint32(1); id <= f.sched.hosts.Top; id++ {
			if h := f.sched.hosts.At(id); h.nameLen > 0 && s.contains(string(f.sched.name(h))) {
				want = append(want, string(f.sched.name(h)))
			}
		}
		sort.Slice(want, func(i, j int) bool { return hostkey.Reversed(want[i]) < hostkey.Reversed(want[j]) })
		again := map[string]bool{}
		require.NoError(t, f.sweepHosts(s, func(id uint32, _ int64) bool {
			host := string(f.sched.name(f.sched.hosts.At(id)))
			if !again[host] && len(got)%3 == 0 {
				again[host] = true
				return false
			}
			got = append(got, host)
			return true
		}))
		require.True(t, slices.Equal(want, got), "%v: got %v, want %v", s, got, want)
		require.NoError(t, f.Check())
		require.NoError(t, f.Close())
		require.ErrorIs(t, f.sweepHosts(s, nil), ErrClosed)
	})
}

func BenchmarkHostOrder(b *testing.B) {
	for _, n := range []int{1000, 1000000} {
		b.Run(fmt.Sprintf("insert/hosts=%d", n), func(b *testing.B) {
			c := newScheduler(schedulerConfig{levels: 1, quantum: 1})
			for i := range n {
				name := fmt.Sprintf("www.site%d.example", (i*7919)%n)
				c.ensure(c.hash([]byte(name)), name)
			}
			for !c.orderSome(1000) {
			}
			i := 0
			for b.Loop() {
				id := uint32(1 + i*104729%n)
				c.order.Leaves(id)
				c.order.Came(id)
				i++
			}
		})
	}
}
