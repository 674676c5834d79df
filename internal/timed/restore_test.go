package timed

import (
	"slices"
	"testing"

	"github.com/seed-7440039f/frontier/internal/block"
	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/storage"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Blocks come back without what is finished of them: before the last checkpoint, or since.
func TestRestoreAgainstAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var table block.Table
		b := NewBlocks(&table)
		type found struct {
			at    int64
			alive []int // positions
		}
		in := map[uint32]found{}
		ids := []uint32{}
		id := uint32(0)
		dead := map[uint32][]byte{}
		for range rapid.IntRange(0, 5).Draw(t, "blocks") {
			id += rapid.Uint32Range(1, 3).Draw(t, "id")
			ids = append(ids, id)
			x := found{at: rapid.Int64Range(0, 50).Draw(t, "at")}
			for pos := range rapid.IntRange(1, 20).Draw(t, "records") {
				x.alive = append(x.alive, pos)
			}
			in[id] = x
			if rapid.Bool().Draw(t, "checkpoint") {
				bits := make([]byte, 3)
				for pos := range in[id].alive {
					if rapid.Bool().Draw(t, "finished") {
						bits[pos/8] |= 1 << (pos % 8)
					}
				}
				dead[id] = bits
				table.RestoreDead(id, bits)
			}
		}
		r := b.Restore()
		for _, id := range ids {
			x := in[id]
			require.NoError(t, r.Block(storage.TimedBlock{Block: id, Count: len(x.alive), Priority: 1}, x.at))
			x.alive = slices.DeleteFunc(x.alive, func(pos int) bool { return dead[id] != nil && dead[id][pos/8]>>(pos%8)&1 == 1 })
			in[id] = x
		}
		for range rapid.IntRange(0, 60).Draw(t, "completions") {
			id, pos := rapid.Uint32Range(1, id+1).Draw(t, "block"), rapid.Uint16Range(0, 19).Draw(t, "position")
			x, ok := in[id]
			if ok && !slices.Contains(x.alive, int(pos)) && (dead[id] == nil || dead[id][pos/8]>>(pos%8)&1 == 0) && !table.IsBuried(id, int(pos)) {
				continue // the block never had it
			}
			r.Finish(storage.Completion{Block: id, Pos: pos})
			x.alive = slices.DeleteFunc(x.alive, func(p int) bool { return p == int(pos) })
			if ok {
				in[id] = x
			}
		}
		n := int64(0)
		for id, x := range in {
			n += int64(len(x.alive))
			if len(x.alive) == 0 {
				delete(in, id)
			}
		}
		due, never := r.End()
		require.Equal(t, n, due)
		require.Zero(t, never)
		require.Equal(t, len(in), b.Len())
		for b.Len() > 0 {
			it := b.Begin()
			x := in[it.ID]
			require.Equal(t, x.at, it.At)
			require.Equal(t, x.alive[0], First(it))
			require.Equal(t, len(x.alive), Live(it))
			b.Lose()
		}
	})
}

func TestRestoreRefusesBadBlocks(t *testing.T) {
	var table block.Table
	b := NewBlocks(&table)
	r := b.Restore()
	var corrupt *storage.CorruptError
	for _, x := range []storage.TimedBlock{
		{Count: 1, Priority: 1}, {Block: 1, Priority: 1}, {Block: 1, Count: storage.MaxTimed + 1, Priority: 1}, {Block: 1, Count: 1},
	} {
		require.ErrorAs(t, r.Block(x, 0), &corrupt)
	}
	require.NoError(t, r.Block(storage.TimedBlock{Block: 2, Count: 1, Priority: 1}, 0))
	require.ErrorContains(t, r.Block(storage.TimedBlock{Block: 2, Count: 1, Priority: 1}, 0), "timed block 2 was given after block 2")
	require.NoError(t, r.Block(storage.TimedBlock{Block: 3, Count: 4, Priority: 1}, instant.Never))
	due, never := r.End()
	require.Equal(t, []int64{1, 4}, []int64{due, never})
	require.Equal(t, []int{2, 1}, []int{b.Len(), b.Due()})
}
