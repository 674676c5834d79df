// This file drops many blocks at once, as the end of a large crawl does.

package spill_test

import (
	"context"
	"slices"
	"testing"

	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/spill/spilltest"
	"github.com/seed-7440039f/frontier/storage"
	"github.com/stretchr/testify/require"
)

// reopened counts the blocks that a reopening shows.
type reopened struct {
	*replay
	blocks []uint32
}

func (r *reopened) Part(_ storage.Queue, p storage.Part) error {
	r.blocks = append(r.blocks, p.Block)
	return nil
}

func (r *reopened) Batch(*storage.Batch) error { return nil }

func TestReopeningAfterManyDrops(t *testing.T) {
	const blocks = 20_000
	s := spilltest.OpenMemory(t, spill.Options{}).Store
	require.NoError(t, s.Recover(context.Background(), newReplay()))
	runs := make([]storage.Run, 1000)
	body := make([]byte, 4<<10) // fills a block
	for i := range runs {
		runs[i] = storage.Run{Queue: storage.Queue{Host: "h.example"}, Records: []storage.Record{{Seq: uint64(i), Body: body}}}
	}
	var drop []uint32
	for len(drop) < blocks {
		parts, err := s.Pack(1, runs)
		require.NoError(t, err)
		for _, p := range parts {
			drop = append(drop, p[0].Block)
		}
	}
	require.NoError(t, s.Commit(&storage.Batch{ID: 1}))
	require.NoError(t, s.Checkpoint(&storage.Checkpoint{Gen: 1, Through: 1}))
	kept := drop[blocks/2]
	drop = slices.Delete(drop, blocks/2, blocks/2+1)
	slices.Reverse(drop)
	require.NoError(t, s.Commit(&storage.Batch{ID: 2, Drop: drop}))
	require.NoError(t, s.Release())

	r := &reopened{replay: newReplay()}
	require.NoError(t, s.Recover(context.Background(), r))
	require.Equal(t, []uint32{kept}, r.blocks)
}

// A write that drops blocks and fails when it has done so is repeated in the next use of
// the store: other blocks of the same round stay.
func TestBlocksAreDroppedOnce(t *testing.T) {
	mach := spilltest.OpenMemory(t, spill.Options{})
	s, ctx := mach.Store, context.Background()
	require.NoError(t, s.Recover(ctx, newReplay()))
	var blocks []uint32
	for gen := range uint32(2) {
		var runs []storage.Run
		for i := range 3 {
			runs = append(runs, storage.Run{Queue: storage.Queue{Host: "h.example"}, Records: []storage.Record{{Seq: uint64(i), Body: make([]byte, 4<<10)}}}) // fills a block
		}
		parts, err := s.Pack(gen+1, runs)
		require.NoError(t, err)
		for _, p := range parts {
			blocks = append(blocks, p[0].Block)
		}
		id := uint64(gen) + 1
		require.NoError(t, s.Commit(&storage.Batch{ID: id}))
		require.NoError(t, s.Checkpoint(&storage.Checkpoint{Gen: gen + 1, Through: id}))
	}
	require.NoError(t, s.Commit(&storage.Batch{ID: 3, Drop: blocks[1:3]}))
	require.NoError(t, s.Release())
	require.NoError(t, s.Recover(ctx, newReplay()))
	mach.Faults.FailNth(spilltest.Sync, 1, errDisk)
	require.ErrorIs(t, s.Commit(&storage.Batch{ID: 4}), errDisk)
	require.NoError(t, s.Release())
	r := &reopened{replay: newReplay()}
	require.NoError(t, s.Recover(ctx, r))
	left := slices.Delete(blocks, 1, 3)
	require.Equal(t, left, r.blocks)
	require.NoError(t, s.Commit(&storage.Batch{ID: 4}))
	require.NoError(t, s.Commit(&storage.Batch{ID: 5}))
	for _, b := range left {
		n := 0
		require.NoError(t, s.Load(storage.Part{Block: b, Count: 1}, 1, func(int, storage.Record) { n++ }), "block %d", b)
		require.Equal(t, 1, n)
	}
}
