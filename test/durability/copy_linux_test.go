// This file copies stores to volumes that are full, and dies while it copies.

package durability

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/internal/hook"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/test/harness"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var copyChild = flag.String("frontier.copy-child", "", "be the process that makes copies here until it is killed")

// A copy on another volume is complete. On one with too little space it fails, leaves nothing, and
// the crawl continues.
func TestCopyToAnotherVolume(t *testing.T) {
	small, here := onSmallVolume(t)
	if !here {
		return
	}
	db, err := spill.Open(filepath.Join(t.TempDir(), "store"), spill.Options{MemoryBudget: 64 << 20, DiskReserve: 8 << 20})
	require.NoError(t, err)
	f, err := frontier.Open(t.Context(), copyOptions(db))
	require.NoError(t, err)
	load := newCopyLoad(f)
	es := load.fresh(3000)
	_, err = f.Add(t.Context(), es...)
	require.NoError(t, err)
	load.acknowledge(es)
	require.NoError(t, hook.Of(f).MoveNow(true))
	free := fillUp(t, small, 6<<20)
	require.ErrorIs(t, db.CopyTo(t.Context(), filepath.Join(small, "copy")), syscall.ENOSPC)
	names, err := os.ReadDir(small)
	require.NoError(t, err)
	assert.Len(t, names, 1, "what fills the volume")
	_, err = f.Add(t.Context(), load.fresh(10)...)
	require.NoError(t, err)
	free()
	require.NoError(t, db.CopyTo(t.Context(), filepath.Join(small, "copy")))
	harness.Ended(t, f)
	require.NoError(t, db.Close())
	all := load.seen()
	drainCopy(t, filepath.Join(small, "copy"), &all, &all)
}

// TestCopyChild adds a URL and copies, again and again, and reports each copy.
func TestCopyChild(t *testing.T) {
	if *copyChild == "" {
		t.Skip("only a part of a test that kills it")
	}
	db, err := openCrashStore(filepath.Join(*copyChild, "store"), "plain", nil)
	require.NoError(t, err)
	f, err := frontier.Open(t.Context(), copyOptions(db))
	require.NoError(t, err)
	for i := 0; ; i++ {
		_, err := f.Add(t.Context(), frontier.Entry{URL: fmt.Sprintf("http://h%d.example/", i)})
		require.NoError(t, err)
		require.NoError(t, hook.Of(f).MoveNow(true))
		require.NoError(t, db.CopyTo(t.Context(), filepath.Join(*copyChild, "copies", fmt.Sprint(i))))
		fmt.Println("copied", i)
	}
}

// Whatever has a copy's name after kill -9 is a whole copy.
func TestCopyKilled(t *testing.T) {
	for last := range 3 {
		dir := t.TempDir()
		cmd := exec.Command(os.Args[0], "-test.run=^TestCopyChild$", "-frontier.copy-child="+dir)
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		for lines := bufio.NewScanner(out); lines.Scan(); {
			var n int
			if _, err := fmt.Sscanf(lines.Text(), "copied %d", &n); err == nil && n == last {
				break
			}
		}
		for began := time.Now(); time.Since(began) < time.Minute; { // in the middle of the next one
			if part, err := filepath.Glob(filepath.Join(dir, "copies", ".*.partial-*")); err != nil || len(part) > 0 {
				break
			}
		}
		require.NoError(t, cmd.Process.Kill())
		_ = cmd.Wait()
		copies, err := filepath.Glob(filepath.Join(dir, "copies", "*"))
		require.NoError(t, err)
		copies = slices.DeleteFunc(copies, func(name string) bool { return filepath.Base(name)[0] == '.' })
		require.GreaterOrEqual(t, len(copies), last+1)
		for _, name := range copies {
			var n int
			_, err := fmt.Sscan(filepath.Base(name), &n)
			require.NoError(t, err)
			all := newCopyLoad(nil)
			for i := range n + 1 {
				u := fmt.Sprintf("http://h%d.example/", i)
				all.tried[u], all.added[u] = true, true
			}
			drainCopy(t, name, all, all)
		}
	}
}
