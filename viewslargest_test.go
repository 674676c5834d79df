package frontier

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Whenever hosts come, grow, shrink and go, before, while and after the lists are
// made, Largest tells those that a scan would find.
func TestLargest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, err := Open(context.Background(), Options{Delay: FixedDelay(0)})
		require.NoError(t, err)
		url := 0
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 4).Draw(t, "step") {
			case 0:
				f.mu.Lock()
				f.sched.sizes.Grow(rapid.IntRange(1, 5).Draw(t, "n"), f.sched.hosts.Top, f.sched.waitingOf)
				f.mu.Unlock()
			case 1:
				if l, _, err := f.TryNext(); err == nil {
					require.NoError(t, f.Done(l, Outcome{}))
				}
			case 2:
				checkLargest(t, f, rapid.IntRange(0, 10).Draw(t, "n"))
			default:
				host, n := rapid.IntRange(0, 20).Draw(t, "host"), rapid.IntRange(1, 90).Draw(t, "urls")
				for range n {
					url++
					_, err := f.Add(context.Background(), Entry{URL: fmt.Sprintf("http://h%d.example/%d", host, url)})
					require.NoError(t, err)
				}
			}
			require.NoError(t, f.Check())
		}
		require.NoError(t, f.Close())
		require.Empty(t, f.Largest(3))
	})
}

func checkLargest(t *rapid.T, f *Frontier, n int) {
	want := map[string]int64{}
	var sizes []int64
	for id := uint32(1); id <= f.sched.hosts.Top; id++ {
		if h := f.sched.hosts.At(id); h.waiting > 0 {
			want[string(f.sched.name(h))] = int64(h.waiting)
			sizes = append(sizes, int64(h.waiting))
		}
	}
	got := f.Largest(n)
	require.Len(t, got, min(n, len(sizes)))
	for i, x := range got {
		require.Equal(t, want[x.Host], x.Waiting)
		larger := 0
		for _, s := range sizes {
			if s > x.Waiting {
				larger++
			}
		}
		require.LessOrEqual(t, larger, i, "%s with %d URLs is not among the %d largest of %v", x.Host, x.Waiting, i+1, sizes)
	}
}
