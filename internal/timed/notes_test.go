package timed

import (
	"testing"

	"github.com/seed-7440039f/frontier/internal/block"
	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/storage"
	"github.com/stretchr/testify/require"
)

// A note outlives the blocks that it concerns; its row is deleted once, unless the URL has a new
// note.
func TestNotesGoWithTheirBlocks(t *testing.T) {
	var n Notes
	a, b := storage.Mark{1}, storage.Mark{2}
	require.False(t, n.Outdated(a, 1))
	n.Set(a, 10, 3)
	n.Set(b, 20, 7)
	require.True(t, n.Outdated(a, 9))
	require.False(t, n.Outdated(a, 10))
	n.Drop([]storage.Mark{a, b}, Seen{below: 7})
	require.False(t, n.Outdated(a, 9))
	require.True(t, n.Outdated(b, 19))
	ms, rows := n.TakeStale()
	require.Equal(t, []storage.Mark{a}, ms)
	require.Len(t, rows, 1)
	n.PutStale(ms)
	n.Set(a, 30, 9)
	ms, rows = n.TakeStale()
	require.Equal(t, []storage.Mark{a}, ms)
	require.Empty(t, rows, "the row is of the new note")
	ms, _ = n.TakeStale()
	require.Empty(t, ms)
}

// A sweep gives all blocks that are unread when it begins, except those read meanwhile.
func TestSweepGivesUnreadBlocks(t *testing.T) {
	var table block.Table
	var n Notes
	blocks := NewBlocks(&table)
	for id := uint32(1); id <= 5; id++ {
		blocks.Add(Item(id, int64(id), 0, 1))
	}
	require.False(t, n.Unswept())
	n.Set(storage.Mark{1}, 10, 3)
	require.True(t, n.Unswept())
	got := map[uint32]bool{}
	for n.Unswept() || n.Sweeping() {
		if it := n.BeginSweep(&blocks); it.ID != 0 {
			got[it.ID] = true
			blocks.PutBack(it.At)
		}
		if len(got) == 2 && blocks.Has(1) {
			blocks.BeginBlock(1)
			blocks.Lose()
		}
	}
	require.Len(t, got, 4)
	require.False(t, got[1])
}

// A note goes once a sweep that began after it has seen all blocks, also if these stay unread for
// ever. Notes that come meanwhile, and sweeps that miss a block, wait for the next one.
func TestSweepEndsNotes(t *testing.T) {
	var table block.Table
	var n Notes
	blocks := NewBlocks(&table)
	for id := uint32(1); id <= 3; id++ {
		blocks.Add(Item(id, instant.Never, 0, 1))
	}
	a, b := storage.Mark{1}, storage.Mark{2}
	sweep := func(fails bool) {
		for ok := true; ok; ok = n.Sweeping() {
			require.NotZero(t, n.BeginSweep(&blocks).ID)
			blocks.PutBack(instant.Never)
			if fails {
				n.SweepFailed()
			}
			n.Swept(&blocks)
		}
	}
	n.Set(a, 10, 3)
	sweep(true)
	require.False(t, n.over(a, n.Seen(&blocks)))
	n.BeginSweep(&blocks)
	blocks.PutBack(instant.Never)
	n.Set(b, 20, 3)
	require.Equal(t, 1, n.Young())
	n.Swept(&blocks)
	require.False(t, n.over(a, n.Seen(&blocks)), "two blocks are left")
	for n.Sweeping() {
		n.BeginSweep(&blocks)
		blocks.PutBack(instant.Never)
		n.Swept(&blocks)
	}
	seen := n.Seen(&blocks)
	require.True(t, n.over(a, seen))
	require.False(t, n.over(b, seen), "it came later")
	sweep(false)
	n.Drop([]storage.Mark{a, b}, seen) // as of a checkpoint that began before
	require.False(t, n.Outdated(a, 1))
	require.True(t, n.Outdated(b, 1))
	n.Drop([]storage.Mark{b}, n.Seen(&blocks))
	require.Zero(t, n.Len())
}
