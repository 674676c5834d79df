// This file cuts the power of a machine on which a process crawls, and examines the disk:
// everything that was acknowledged with Sync is there exactly once; without Sync, everything except
// the latest.

package durability

import (
	"flag"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/seed-7440039f/frontier/internal/lab/trycount"
	"github.com/seed-7440039f/frontier/spill/spilltest"
	"github.com/seed-7440039f/frontier/test/harness"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

var powerCuts = flag.Int("frontier.power-cuts", 1, "how often the tests of power cuts cut it, with each kind of store")

// TestPowerCut keeps the store on a volume in a file. Whatever the kernel had not
// written there when the power was cut is lost: names, pages and sizes of files.
// Before each cut it writes back pages at random, so that the tails are torn and
// out of order.
func TestPowerCut(t *testing.T) {
	for _, store := range []string{"sync", "small-sync"} {
		t.Run(store, func(t *testing.T) {
			rnd := harness.NewRand(t)
			tries := trycount.Of(t)
			urls := 0
			for cuts := 0; cuts < *powerCuts; {
				v := spilltest.NewVolume(t, 192<<20, spilltest.Quiet)
				dir := filepath.Join(v.Dir, "store")
				r := newReport()
				c := startCrash(t, dir, store, r.first)
				for range 4 { // of one life, which goes on
					if cuts++; cuts > *powerCuts {
						break
					}
					r.listen(t, c, 1+rnd.IntN(400))
					r.pause(t, c)
					writeBack(t, rnd, v, dir)
					left := v.PowerLoss(t)
					require.NoError(t, c.Process.Signal(syscall.SIGCONT))
					r.clone().holds(t, filepath.Join(left.Dir, "store"))
					left.Unmount()
					tries.Tried(1)
				}
				urls += len(r.added)
				r.stop(t, c)
				v.Unmount()
			}
			t.Logf("%d cuts; %d URLs acknowledged, none lost, none twice", *powerCuts, urls)
		})
	}
}

// Without Sync each cut costs the latest batches at most: what was on the medium once
// stays, whatever is moved, merged and removed later, and the store opens.
func TestPowerCutWithoutSync(t *testing.T) {
	for _, store := range []string{"plain", "small"} {
		t.Run(store, func(t *testing.T) {
			rnd := harness.NewRand(t)
			tries := trycount.Of(t)
			safe, later := 0, 0
			for cuts := 0; cuts < *powerCuts; {
				v := spilltest.NewVolume(t, 256<<20, spilltest.Quiet)
				dir := filepath.Join(v.Dir, "store")
				r := newReport()
				c := startCrash(t, dir, store, r.first)
				r.listen(t, c, 1+rnd.IntN(400))
				for range 4 { // of one life, which goes on
					if cuts++; cuts > *powerCuts {
						break
					}
					r.pause(t, c)
					if rnd.IntN(2) == 0 {
						writeBack(t, rnd, v, dir)
					}
					syncAll(t, v.Dir)
					medium := r.clone()
					require.NoError(t, c.Process.Signal(syscall.SIGCONT))
					r.listen(t, c, 1+rnd.IntN(1500))
					r.pause(t, c)
					writeBack(t, rnd, v, dir)
					left := v.PowerLoss(t)
					require.NoError(t, c.Process.Signal(syscall.SIGCONT))
					medium.before(r).holds(t, filepath.Join(left.Dir, "store"))
					left.Unmount()
					tries.Tried(1)
					safe, later = safe+len(medium.added), later+len(r.added)-len(medium.added)
				}
				r.stop(t, c)
				v.Unmount()
			}
			t.Logf("%d cuts; %d URLs had been on the medium, none lost, none twice; %d came later", *powerCuts, safe, later)
		})
	}
}

// before returns r at an earlier moment: what the process reported until then must be left, and of
// the rest any part from its beginning.
func (r *report) before(later *report) *report {
	m := r.clone()
	for u := range later.leased {
		m.unsure[u] = !m.done[u]
	}
	for u := range later.done {
		m.unsure[u] = !m.done[u]
	}
	for u := range later.unsure {
		m.unsure[u] = !m.done[u]
	}
	for i := range later.paused {
		m.asked[i] = m.asked[i] || later.asks[i] != m.asks[i]
	}
	maps.Copy(m.bundled, later.bundled)
	m.going = max(m.going, later.going, later.gone)
	return m
}

// syncAll brings everything on a volume to the medium.
func syncAll(t testing.TB, dir string) {
	t.Helper()
	f, err := os.Open(dir)
	require.NoError(t, err)
	defer f.Close()
	require.NoError(t, unix.Syncfs(int(f.Fd())))
}

// pause stops the process where it is, and hears what it has said.
func (r *report) pause(t testing.TB, c *crawl) {
	t.Helper()
	c.pause(t, func() { r.listen(t, c, 1) })
}

// pause stops the process where it is; hear reads a line that it has said.
func (c *crawl) pause(t testing.TB, hear func()) {
	t.Helper()
	require.NoError(t, c.Process.Signal(syscall.SIGSTOP))
	var state syscall.WaitStatus
	_, err := syscall.Wait4(c.Process.Pid, &state, syscall.WUNTRACED, nil)
	require.NoError(t, err)
	require.True(t, state.Stopped())
	for {
		n, err := unix.IoctlGetInt(int(c.pipe.Fd()), unix.TIOCINQ)
		require.NoError(t, err)
		if n == 0 && c.in.Buffered() == 0 {
			return
		}
		hear()
	}
}

// writeBack lets pages of some files reach the disk.
func writeBack(t testing.TB, rnd *rand.Rand, v *spilltest.Volume, dir string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || rnd.IntN(2) == 0 {
			return err
		}
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		for range rnd.IntN(4) {
			from := rnd.Int64N(info.Size()+1) &^ 4095
			if err := v.WriteBack(path, from, 4096<<rnd.IntN(8)); err != nil {
				return err
			}
		}
		return nil
	}))
}
