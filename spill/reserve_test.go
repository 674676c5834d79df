// This file runs a store on a volume that is nearly full.

package spill_test

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/storage"
	"github.com/stretchr/testify/require"
)

// full is a volume without room: the reserve is more than any has.
var full = spill.Options{MemoryBudget: 64 << 20, DiskReserve: 1 << 60}

// A volume that is full must not keep a store from being opened, although there
// is much to delete, nor what it holds from being finished, although the last
// batch left much to apply.
func TestFullVolumeLetsWorkBeFinished(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, small)
	m := start(t, 3, s)
	for range 400 { // log keys that a reopening may have to delete
		require.NoError(t, m.commit(2, 0))
	}
	c, err := m.pack()
	require.NoError(t, err)
	require.NoError(t, m.checkpoint(c))
	require.NoError(t, s.Close()) // ends the deletions early
	s = open(t, dir, small)
	m.reboot(t, s)
	for range 400 {
		require.NoError(t, m.commit(2, 0))
	}
	_, err = m.pack() // never adopted
	require.NoError(t, err)
	require.NoError(t, s.Close())

	s = open(t, dir, full)
	m.reboot(t, s)
	for range 3 {
		require.ErrorIs(t, m.commit(500, 0), syscall.ENOSPC)
		require.NoError(t, m.commit(0, 300))
	}
	require.NoError(t, s.Close())
	require.NoError(t, m.holds(open(t, dir, small)))
}

// Rows of the last batch before the volume was full are written with the next.
func TestFullVolumeTakesRowsStillDue(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, small)
	require.NoError(t, s.Recover(context.Background(), newReplay()))
	require.NoError(t, s.Commit(&storage.Batch{ID: 1, Rows: []storage.Row{{Key: "k", Value: make([]byte, 16<<10)}}}))
	require.NoError(t, s.Close())
	s = open(t, dir, full)
	require.NoError(t, s.Recover(context.Background(), newReplay()))
	for id := range uint64(3) {
		require.NoError(t, s.Commit(&storage.Batch{ID: id + 2, Finish: []storage.Completion{{Seq: id}}}))
	}
}

// A checkpoint with few marks is taken on a full volume, one with many is not.
// Nothing is merged there, and nothing is lost.
func TestFullVolumeRefusesFilesOfMarks(t *testing.T) {
	dir := t.TempDir()
	marks := func(gen uint32, n int) []storage.Mark {
		ms := make([]storage.Mark, n)
		for i := range ms {
			ms[i] = storage.Mark{byte(i >> 8), byte(i), byte(gen)}
		}
		return ms
	}
	s := open(t, dir, small)
	require.NoError(t, s.Recover(context.Background(), newReplay()))
	for gen := uint32(1); gen <= 5; gen++ { // one less than are merged
		require.NoError(t, s.PackMarks(gen, marks(gen, 5000)))
		require.NoError(t, s.Checkpoint(&storage.Checkpoint{Gen: gen}))
	}
	require.NoError(t, s.Close())

	s = open(t, dir, full)
	require.NoError(t, s.Recover(context.Background(), newReplay()))
	require.ErrorIs(t, s.PackMarks(6, marks(7, 5000)), syscall.ENOSPC)
	require.NoError(t, s.PackMarks(6, marks(6, 100)))
	require.NoError(t, s.Checkpoint(&storage.Checkpoint{Gen: 6}))
	require.NoError(t, s.Close())
	files, err := os.ReadDir(filepath.Join(dir, "marks"))
	require.NoError(t, err)
	require.Len(t, files, 6)

	s = open(t, dir, small)
	require.NoError(t, s.Recover(context.Background(), newReplay()))
	for gen := uint32(1); gen <= 6; gen++ {
		ms := marks(gen, 5000)
		if gen == 6 {
			ms = ms[:100]
		}
		known := make([]bool, len(ms))
		require.NoError(t, s.Known(ms, known))
		require.NotContains(t, known, false)
	}
}
