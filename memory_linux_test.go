package frontier_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime/debug"
	"testing"

	"github.com/seed-7440039f/frontier"
	"github.com/stretchr/testify/require"
)

var memoryChild = flag.Bool("frontier.memory-child", false, "be the process whose memory is measured")

// TestMemoryBytesIsWhatTheProcessHolds compares Stats with what the system says,
// in a process that holds nothing else.
func TestMemoryBytesIsWhatTheProcessHolds(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector has memory of its own")
	}
	out, err := exec.Command(os.Args[0], "-test.run=^TestMemoryChild$", "-test.v", "-frontier.memory-child").CombinedOutput()
	t.Logf("%s", out)
	require.NoError(t, err)
}

// TestMemoryChild lets URLs come, go and come again.
func TestMemoryChild(t *testing.T) {
	if !*memoryChild {
		t.Skip("only a part of TestMemoryBytesIsWhatTheProcessHolds")
	}
	const n, hosts = 600_000, 60_000
	ctx := context.Background()
	debug.FreeOSMemory()
	before := residentMemory()
	f, err := frontier.Open(ctx, frontier.Options{MemoryBudget: 1 << 30, Delay: frontier.FixedDelay(0)})
	require.NoError(t, err)
	held := func(what string) (stats int64) {
		debug.FreeOSMemory()
		stats = f.Stats().MemoryBytes
		process := residentMemory() - before
		t.Logf("%s: %.1f MiB by Stats, %.1f MiB by the system", what, float64(stats)/(1<<20), float64(process)/(1<<20))
		require.InDelta(t, process, stats, max(float64(process)/8, 6<<20), "%s", what)
		return stats
	}
	number := 0
	add := func(n int) {
		batch := make([]frontier.Entry, 0, 1000)
		for i := range n {
			number++
			batch = append(batch, frontier.Entry{
				URL:   fmt.Sprintf("http://host%d.example.com/some/path/%d/%0*d.html", i*7919%hosts, number, i%40, i),
				Depth: i % 8,
			})
			if len(batch) == cap(batch) || i == n-1 {
				_, err := f.Add(ctx, batch...)
				require.NoError(t, err)
				batch = batch[:0]
			}
		}
	}
	drain := func(n int) {
		for range n {
			l, err := f.Next(ctx)
			require.NoError(t, err)
			require.NoError(t, f.Done(l, frontier.Outcome{}))
		}
	}
	add(n)
	const mark = 16 // bytes of a mark, which stays
	most := held("full")
	require.Greater(t, most, int64(n*100))
	drain(n * 9 / 10)
	held("with a tenth left")
	drain(n / 20)
	held("with a twentieth left")
	drain(n - n*9/10 - n/20)
	require.Less(t, held("empty"), most/10+n*mark)
	add(n)
	require.Less(t, held("full again"), most*105/100+n*mark)
	drain(n)
	require.Less(t, held("empty again"), most/10+2*n*mark)
	require.NoError(t, f.Check())
	require.NoError(t, f.Close())
}
