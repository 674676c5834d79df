package load

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime/debug"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/test/harness"
	"github.com/stretchr/testify/require"
)

var memoryChild = flag.Bool("frontier.memory-child", false, "be the process whose memory is measured")

// TestMemoryBytesIsWhatTheProcessHolds compares Stats with what the system says,
// in a process that holds nothing else.
func TestMemoryBytesIsWhatTheProcessHolds(t *testing.T) { inMemoryChild(t, "TestMemoryChild") }

// TestMemoryOfGroupsIsWhatTheProcessHolds does the same with many groups.
func TestMemoryOfGroupsIsWhatTheProcessHolds(t *testing.T) { inMemoryChild(t, "TestMemoryOfGroups") }

func inMemoryChild(t *testing.T, test string) {
	if harness.RaceEnabled {
		t.Skip("the race detector has memory of its own")
	}
	out, err := exec.Command(os.Args[0], "-test.run=^"+test+"$", "-test.v", "-frontier.memory-child").CombinedOutput()
	t.Logf("%s", out)
	require.NoError(t, err)
}

// TestMemoryChild lets URLs come, go and come again.
func TestMemoryChild(t *testing.T) {
	if !*memoryChild {
		t.Skip("only a part of TestMemoryBytesIsWhatTheProcessHolds")
	}
	const n, hosts = 300_000, 30_000
	ctx := context.Background()
	debug.FreeOSMemory()
	before := harness.ResidentMemory()
	f, err := frontier.Open(ctx, frontier.Options{MemoryBudget: 1 << 30, Delay: frontier.FixedDelay(0)})
	require.NoError(t, err)
	held := func(what string) (stats int64) {
		debug.FreeOSMemory()
		stats = f.Stats().MemoryBytes
		process := harness.ResidentMemory() - before
		t.Logf("%s: %.1f MiB by Stats, %.1f MiB by the system", what, float64(stats)/(1<<20), float64(process)/(1<<20))
		require.InDelta(t, process, stats, max(float64(process)/8, 5<<20), "%s", what)
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

// TestMemoryOfGroups lets hosts join groups and be contacted: many groups of one host
// first, as of a crawl with a group for each address, then some of a hundred.
func TestMemoryOfGroups(t *testing.T) {
	if !*memoryChild {
		t.Skip("only a part of TestMemoryOfGroupsIsWhatTheProcessHolds")
	}
	const hosts = 200_000
	ctx := context.Background()
	debug.FreeOSMemory()
	before := harness.ResidentMemory()
	f, err := frontier.Open(ctx, frontier.Options{
		MemoryBudget: 1 << 30, Delay: frontier.FixedDelay(30 * time.Second), GroupDelay: frontier.FixedDelay(30 * time.Second),
	})
	require.NoError(t, err)
	held := func(what string) (stats, process int64) {
		untidy := harness.ResidentMemory() - before
		debug.FreeOSMemory()
		stats, process = f.Stats().MemoryBytes, harness.ResidentMemory()-before
		t.Logf("%s: %.1f MiB by Stats, %.1f MiB by the system, %.1f MiB before the collection",
			what, float64(stats)/(1<<20), float64(process)/(1<<20), float64(untidy)/(1<<20))
		return stats, process
	}
	host := func(i int) string { return fmt.Sprintf("host%d.example.com", i) }
	for i := range hosts {
		_, err := f.Add(ctx, frontier.Entry{URL: "http://" + host(i) + "/1"}, frontier.Entry{URL: "http://" + host(i) + "/2"})
		require.NoError(t, err)
	}
	visit := func(group func(i int) string) {
		for i := range hosts / 2 {
			l, err := f.Next(ctx)
			require.NoError(t, err)
			if group != nil {
				require.NoError(t, f.Join(&l, group(i)))
			}
			require.NoError(t, f.Done(l, frontier.Outcome{}))
		}
	}
	stats0, process0 := held("no groups")
	visit(nil)
	visit(func(i int) string { return fmt.Sprintf("group %d", i) })
	stats1, process1 := held("half of the hosts in groups of one")
	for i := range hosts {
		require.NoError(t, f.Assign(host(i), fmt.Sprintf("192.0.2.%d", i)))
	}
	stats2, process2 := held("all in groups of one")
	for i := range hosts {
		require.NoError(t, f.Assign(host(i), fmt.Sprintf("198.51.100.%d", i/100)))
	}
	stats3, process3 := held("all in groups of a hundred")
	require.EqualValues(t, hosts, f.Stats().Hosts)
	for i, x := range [][4]int64{{stats0, process0, stats1, process1}, {stats0, process0, stats2, process2}, {stats0, process0, stats3, process3}} {
		told, taken := x[2]-x[0], x[3]-x[1]
		require.InDelta(t, taken, told, max(float64(taken)/10, 2<<20), "what groups take, step %d", i+1)
	}
	require.NoError(t, f.Check())
	require.NoError(t, f.Close())
}
