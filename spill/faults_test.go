// This file breaks a store at every write and looks at what is left.

package spill_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/spill/internal/kvtest"
	"github.com/seed-7440039f/frontier/spill/spilltest"
	"github.com/seed-7440039f/frontier/storage"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errDisk = errors.New("disk fault")

// script is a short life of a store. It calls between after each step, with the error of the step,
// and continues: a failed round is tried once more, then given up.
func script(m *model, between func(step string, err error)) {
	step := func(name string, err error) error { between(name, err); return err }
	for range 4 { // enough for merged runs to be merged again
		for range 3 {
			_ = step("commit", m.commit(40, 15))
		}
		c, err := m.pack()
		if step("pack", err) != nil {
			if c, err = m.pack(); step("pack again", err) != nil {
				continue
			}
		}
		_ = step("commit beside", m.commit(5, 40))
		if step("checkpoint", m.checkpoint(c)) != nil && step("checkpoint again", m.checkpoint(c)) != nil {
			return // a frontier would stop here
		}
	}
	_ = step("commit", m.commit(3, 200))
}

// A store that dies between any two writes holds what was committed: the batch
// being written is there wholly or not at all, and moves change nothing.
func TestDeathAtEachWrite(t *testing.T) {
	for _, maxOps := range []int{0, 1} {
		t.Run(fmt.Sprintf("ops=%d", maxOps), func(t *testing.T) {
			mach := spilltest.OpenMemory(t, spill.Options{})
			mach.Disk.MaxOps = maxOps
			m := start(t, 7, mach.Store)
			before := m.clone()
			type image struct {
				mach *spilltest.Machine
				n    int
			}
			var images []image
			var snap func()
			snap = func() {
				images = append(images, image{mach.Kill(t), mach.Faults.Calls(spilltest.Write)})
				mach.Faults.Before(spilltest.Write, 1, snap)
			}
			mach.Faults.Before(spilltest.Write, 1, snap)
			total := 0
			script(m, func(step string, err error) {
				require.NoError(t, err, step)
				for _, im := range images {
					total++
					if was := before.holds(im.mach.Store); was != nil {
						require.NoError(t, m.holds(im.mach.Store), "killed at write %d in %s: before: %v", im.n, step, was)
					}
				}
				images = images[:0]
				require.NoError(t, m.holds(mach.Kill(t).Store), "killed after %s", step)
				before = m.clone()
			})
			t.Logf("%d images", total)
			require.Greater(t, total, 20)
		})
	}
}

// A failed write costs the call that it belongs to and nothing else, whether the
// write reached the disk or not, and so does a read that fails.
func TestFailureOfEachWrite(t *testing.T) {
	for _, point := range []spilltest.Point{spilltest.Write, spilltest.Sync, spilltest.Read} {
		for _, burst := range []int{1, 2} {
			t.Run(fmt.Sprintf("point=%d/burst=%d", point, burst), func(t *testing.T) {
				failed := true
				for n := 1; failed; n++ {
					mach := spilltest.OpenMemory(t, spill.Options{})
					m := start(t, 7, mach.Store)
					for i := range burst {
						mach.Faults.FailNth(point, n+i, errDisk)
					}
					failed = mach.Faults.Calls(point) >= n
					taken := true // back
					script(m, func(step string, err error) {
						if err != nil {
							require.ErrorIs(t, err, errDisk)
							failed = true
							taken = burst == 1
						} else {
							taken = true
						}
						if taken {
							require.NoError(t, m.holds(mach.Kill(t).Store), "after %s, fault %d", step, n)
						}
					})
					failed = mach.Faults.Calls(point) >= n
				}
			})
		}
	}
}

// failsAtARow is a Recovery that fails after the rest was replayed.
type failsAtARow struct{ *replay }

func (failsAtARow) Row(string, []byte) error { return errDisk }

// A replay that fails leaves the store as it was: a repair finds everything.
func TestFailedReplayChangesNothing(t *testing.T) {
	mach := spilltest.OpenMemory(t, spill.Options{})
	m := start(t, 3, mach.Store)
	everything := func(d *kvtest.Disk) map[string]string {
		all := map[string]string{}
		require.NoError(t, d.Iterate([]byte{0}, bytes.Repeat([]byte{255}, 8), func(k []byte, value func() ([]byte, error)) error {
			v, err := value()
			all[string(k)] = string(v)
			return err
		}))
		names, err := d.ListFiles("marks")
		require.NoError(t, err)
		for _, n := range names {
			all[n] = ""
		}
		return all
	}
	failures, changes := 0, 0
	look := func(step string) {
		left := mach.Kill(t)
		before := everything(left.Disk)
		if err := left.Store.Recover(context.Background(), failsAtARow{newReplay()}); err == nil {
			return
		}
		require.Equal(t, before, everything(left.Disk), "after %s", step)
		failures++
		require.NoError(t, left.Store.Recover(context.Background(), newReplay()))
		if len(everything(left.Disk)) != len(before) {
			changes++
		}
	}
	var each func()
	each = func() { look("a write"); mach.Faults.Before(spilltest.Write, 1, each) }
	mach.Faults.Before(spilltest.Write, 1, each)
	script(m, func(step string, err error) {
		require.NoError(t, err)
		look(step)
	})
	require.Positive(t, failures)
	require.Positive(t, changes, "no replay that worked changed anything")
}

// fates are what a loss of power may do to files that were not synced.
var fates = []kvtest.Fate{kvtest.FilesLost, kvtest.FilesCut, kvtest.FilesKept}

// With Sync, what a call confirmed outlives a loss of power, whatever part of the
// later writes reached the medium.
func TestPowerLoss(t *testing.T) {
	mach := spilltest.OpenMemory(t, spill.Options{Sync: true})
	m := start(t, 3, mach.Store)
	script(m, func(step string, err error) {
		require.NoError(t, err)
		for kept := 0; kept <= mach.Disk.Unsynced(); kept++ {
			for _, fate := range fates {
				require.NoError(t, m.holds(mach.PowerLossWith(t, kept, fate).Store), "after %s with %d later writes, files %d", step, kept, fate)
			}
		}
	})
}

// Without Sync a loss of power at any write costs the batches since the last
// checkpoint at most, and the store opens.
func TestPowerLossWithoutSync(t *testing.T) {
	mach := spilltest.OpenMemory(t, spill.Options{})
	m := start(t, 3, mach.Store)
	states := []*model{m.clone()} // since the last checkpoint
	var left []*spilltest.Machine
	var snap func()
	snap = func() {
		for kept := range mach.Disk.Unsynced() + 1 {
			left = append(left, mach.PowerLossWith(t, kept, fates[kept%len(fates)]))
		}
		left = append(left, mach.PowerLossWith(t, mach.Disk.Unsynced(), kvtest.FilesLost))
		mach.Faults.Before(spilltest.Write, 1, snap)
	}
	mach.Faults.Before(spilltest.Write, 1, snap)
	total := 0
	script(m, func(step string, err error) {
		require.NoError(t, err)
		states = append(states, m.clone())
		for _, x := range left {
			total++
			require.NoError(t, oneHolds(states, x.Store), "power lost in %s", step)
		}
		left = left[:0]
		if step != "checkpoint" {
			return
		}
		states = states[len(states)-1:]
		for _, fate := range fates {
			require.NoError(t, m.holds(mach.PowerLossWith(t, 0, fate).Store), "power lost after a checkpoint")
		}
	})
	t.Logf("%d losses of power", total)
	require.Greater(t, total, 100)
}

// oneHolds requires that a store is in one of some states.
func oneHolds(states []*model, s storage.Spill) (err error) {
	for _, m := range slices.Backward(states) {
		if err = m.holds(s); err == nil {
			return nil
		}
	}
	return err
}

// Any sequence of commits, moves, faults and deaths leaves what was confirmed.
func TestRandomLives(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		mach := spilltest.OpenMemory(t, spill.Options{})
		mach.Disk.MaxOps = rapid.SampledFrom([]int{0, 1, 10}).Draw(rt, "ops")
		m := start(t, rapid.Uint64().Draw(rt, "seed"), mach.Store)
		rt.Repeat(map[string]func(*rapid.T){
			"commit": func(rt *rapid.T) {
				require.NoError(rt, m.commit(rapid.IntRange(0, 60).Draw(rt, "n"), rapid.IntRange(0, 60).Draw(rt, "k")))
			},
			"move": func(rt *rapid.T) {
				c, err := m.pack()
				require.NoError(rt, err)
				if rapid.Bool().Draw(rt, "beside") {
					require.NoError(rt, m.commit(3, 20))
				}
				if rapid.Bool().Draw(rt, "fault") {
					mach.Faults.FailNth(rapid.SampledFrom([]spilltest.Point{spilltest.Write, spilltest.Sync}).Draw(rt, "point"), rapid.IntRange(1, 6).Draw(rt, "at"), errDisk)
				}
				if m.checkpoint(c) != nil {
					mach.Faults.Heal()
					require.NoError(rt, m.checkpoint(c))
				}
				mach.Faults.Heal()
			},
			"fault": func(rt *rapid.T) {
				mach.Faults.FailNth(rapid.SampledFrom([]spilltest.Point{spilltest.Write, spilltest.Sync}).Draw(rt, "point"), 1, errDisk)
				require.ErrorIs(rt, m.commit(10, 10), errDisk)
				mach.Faults.Heal()
			},
			"abandon": func(rt *rapid.T) { // a round that dies before its checkpoint
				c := m.clone()
				_, err := c.pack()
				require.NoError(rt, err)
				mach = mach.Kill(t)
				m.reboot(rt, mach.Store)
			},
			"reboot": func(rt *rapid.T) {
				mach = mach.Kill(t)
				m.reboot(rt, mach.Store)
			},
			"": func(rt *rapid.T) {
				require.NoError(rt, m.holds(mach.Kill(t).Store))
				marks, err := m.stored(mach.Store)
				require.NoError(rt, err)
				require.Len(rt, marks, len(m.marks)-len(m.fresh), "known, and not in the log")
			},
		})
	})
}

// A Commit that failed and could not be taken back at once is taken back when
// the store is released.
func TestReleaseTakesFailedCommitBack(t *testing.T) {
	mach := spilltest.OpenMemory(t, spill.Options{})
	m := start(t, 5, mach.Store)
	require.NoError(t, m.commit(5, 0))
	mach.Faults.FailNth(spilltest.Sync, 1, errDisk)  // written, not confirmed
	mach.Faults.FailNth(spilltest.Write, 2, errDisk) // nor taken back
	require.ErrorIs(t, m.commit(5, 0), errDisk)
	mach.Faults.Heal()
	require.NoError(t, mach.Store.Release())
	require.NoError(t, m.holds(mach.Store))
}
