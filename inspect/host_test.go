package inspect

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-7440039f/frontier"
)

// Whenever hosts come, grow, shrink and go, before, while and after the lists are
// made, Largest names those that a scan would find.
func TestLargest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, err := frontier.Open(context.Background(), frontier.Options{Delay: frontier.FixedDelay(0)})
		require.NoError(t, err)
		v, url := New(f), 0
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 4).Draw(t, "step") {
			case 0:
				v.f.Lock()
				v.f.Core().Sizes.Grow(rapid.IntRange(1, 5).Draw(t, "n"), v.f.Core().Hosts.Top, v.f.Core().WaitingOf)
				v.f.Unlock()
			case 1:
				if l, _, err := f.TryNext(); err == nil {
					require.NoError(t, f.Done(l, frontier.Outcome{}))
				}
			case 2:
				checkLargest(t, v, rapid.IntRange(0, 10).Draw(t, "n"))
			default:
				host, n := rapid.IntRange(0, 20).Draw(t, "host"), rapid.IntRange(1, 90).Draw(t, "urls")
				for range n {
					url++
					_, err := f.Add(context.Background(), frontier.Entry{URL: fmt.Sprintf("http://h%d.example/%d", host, url)})
					require.NoError(t, err)
				}
			}
			require.NoError(t, f.Check())
		}
		require.NoError(t, f.Close())
		require.Empty(t, v.Largest(3))
	})
}

func checkLargest(t *rapid.T, v *Inspector, n int) {
	want := map[string]int64{}
	var sizes []int64
	for id := uint32(1); id <= v.f.Core().Hosts.Top; id++ {
		if h := v.f.Core().Hosts.At(id); h.Waiting > 0 {
			want[string(v.f.Core().Name(h))] = int64(h.Waiting)
			sizes = append(sizes, int64(h.Waiting))
		}
	}
	got := v.Largest(n)
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
