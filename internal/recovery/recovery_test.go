package recovery

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-7440039f/frontier/internal/known"
	"github.com/seed-7440039f/frontier/internal/mercator"
	"github.com/seed-7440039f/frontier/internal/timed"
	"github.com/seed-7440039f/frontier/storage"
)

// What a Spill says of blocks while a frontier is recovered comes to the right parts.
func TestFinishedPositionsFindTheirParts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := mercator.New(mercator.Config{Levels: 8})
		r := begin(Frontier{Core: c, Known: new(known.New()), Notes: &timed.Notes{}})
		type at struct {
			block uint32
			pos   uint16
		}
		var all []at
		blocks := rapid.SliceOfNDistinct(rapid.Uint32Range(1, 5000), 1, 8, rapid.ID).Draw(t, "blocks")
		for _, b := range blocks {
			first := uint16(0)
			for range rapid.IntRange(1, 4).Draw(t, "parts") {
				p := storage.Part{Block: b, First: first, Count: uint8(rapid.IntRange(1, storage.MaxPart).Draw(t, "records"))}
				host := rapid.SampledFrom([]string{"a.example", "b.example"}).Draw(t, "host")
				require.NoError(t, r.Part(storage.Queue{Host: host, Priority: 1}, p))
				for i := range p.Count {
					all = append(all, at{b, first + uint16(i)})
				}
				first += uint16(p.Count)
			}
		}
		require.NoError(t, r.Batch(&storage.Batch{ID: 1}))
		require.EqualValues(t, len(all), c.Stats.Waiting)
		finished := map[at]bool{}
		for range rapid.IntRange(0, 2*len(all)).Draw(t, "finished") {
			x := rapid.SampledFrom(all).Draw(t, "position")
			r.completion(storage.Completion{Seq: 1, Block: x.block, Pos: x.pos})
			finished[x] = true
			r.completion(storage.Completion{Seq: 1, Block: 6000, Pos: x.pos}) // of a block that is gone
		}
		require.EqualValues(t, len(all)-len(finished), c.Stats.Waiting)
		r.finish()
		for _, x := range all {
			require.Equal(t, finished[x], c.Blocks.IsDead(x.block, int(x.pos)))
		}
		drops := c.Blocks.TakeDrops()
		for _, id := range blocks {
			require.Equal(t, !c.Blocks.Has(id), slices.Contains(drops, id))
		}
	})
}
