// This file looks at what is left on disk after a checkpoint.

package spill_test

import (
	"bytes"
	"testing"

	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/spill/spilltest"
	"github.com/seed-7440039f/frontier/storage"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// count returns how many values of each kind a disk has.
func count(t *testing.T, m *spilltest.Machine) map[byte]int {
	n := map[byte]int{}
	m.Kill(t).Damage(func(k, v []byte) []byte { n[k[4]]++; return v })
	return n
}

func TestCheckpointLeavesNothingSuperfluous(t *testing.T) {
	mach := spilltest.OpenMemory(t, spill.Options{})
	m := start(t, 1, mach.Store)
	for id := 1; id <= 3000; id++ { // more than one step of deletions
		require.NoError(t, mach.Store.Commit(&storage.Batch{ID: uint64(id)}))
	}
	m.id = 3000
	require.NoError(t, m.commit(300, 0))
	c, err := m.pack()
	require.NoError(t, err)
	require.NoError(t, m.commit(0, 100))
	require.NoError(t, m.checkpoint(c))
	n := count(t, mach)
	assert.Equal(t, 1, n['L'], "only the batch behind the checkpoint")
	assert.NotZero(t, n['B'])

	require.NoError(t, m.commit(0, 1000))
	c, err = m.pack()
	require.NoError(t, err)
	require.NoError(t, m.checkpoint(c))
	n = count(t, mach)
	assert.Zero(t, n['L'])
	assert.Zero(t, n['B'], "every record is finished")
	assert.Zero(t, n['D'], "dead bits of blocks that are gone")
}

func TestRecoverFinishesWhatACrashInterrupted(t *testing.T) {
	mach := spilltest.OpenMemory(t, spill.Options{})
	m := start(t, 1, mach.Store)
	require.NoError(t, m.commit(300, 0))
	c, err := m.pack()
	require.NoError(t, err)
	calls := mach.Faults.Calls(spilltest.Write)
	require.NoError(t, m.checkpoint(c))
	total := mach.Faults.Calls(spilltest.Write) - calls

	mach = spilltest.OpenMemory(t, spill.Options{})
	m = start(t, 1, mach.Store)
	require.NoError(t, m.commit(300, 0))
	c, err = m.pack()
	require.NoError(t, err)
	mach.Faults.FailFrom(spilltest.Write, total, errDisk) // the last write deletes the log
	require.NoError(t, m.checkpoint(c), "it counts all the same")
	require.NotZero(t, count(t, mach)['L'])
	again := mach.Kill(t)
	require.NoError(t, m.holds(again.Store))
	assert.Zero(t, count(t, again)['L'])
}

// A frontier that was just opened knows neither how many generations there were
// nor, if the log is empty, how many batches.
func TestNumbersStartAnewAfterReopening(t *testing.T) {
	mach := spilltest.OpenMemory(t, spill.Options{})
	m := start(t, 1, mach.Store)
	for range 3 {
		for range 3 {
			require.NoError(t, m.commit(30, 5))
		}
		c, err := m.pack()
		require.NoError(t, err)
		require.NoError(t, m.checkpoint(c))
		mach = mach.Kill(t)
		m.reboot(t, mach.Store)
		require.Zero(t, m.id)
		require.NoError(t, m.commit(1, 1))
		require.EqualValues(t, 1, m.id)
		require.NoError(t, m.holds(mach.Kill(t).Store))
	}
}

func TestArgumentsAreNotKept(t *testing.T) {
	mach := spilltest.OpenMemory(t, spill.Options{})
	require.NoError(t, mach.Store.Recover(t.Context(), newReplay()))
	row := []byte("value")
	require.NoError(t, mach.Store.Commit(&storage.Batch{ID: 1, Rows: []storage.Row{{Key: "k", Value: row}}}))
	copy(row, bytes.Repeat([]byte("x"), 5))
	require.NoError(t, mach.Store.Commit(&storage.Batch{ID: 2})) // writes the row
	r := newReplay()
	require.NoError(t, mach.Kill(t).Store.Recover(t.Context(), r))
	assert.Equal(t, "value", r.rows["k"])
}
