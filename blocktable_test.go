package frontier

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Blocks know how many records live and which are finished, whatever others do.
func TestBlocksAgainstAMap(t *testing.T) {
	type model struct {
		live  int
		dead  map[int]bool
		dirty bool
	}
	number := rapid.OneOf(rapid.Uint32Range(1, 5), rapid.Uint32Range(2045, 2050), rapid.Uint32Range(1<<32-3, 1<<32-1))
	rapid.Check(t, func(t *rapid.T) {
		c := &core{}
		want := map[uint32]*model{}
		t.Repeat(map[string]func(*rapid.T){
			"grow": func(t *rapid.T) {
				id, n := number.Draw(t, "block"), rapid.IntRange(1, MaxPart).Draw(t, "records")
				c.blocks.add(id).addLive(n)
				if want[id] == nil {
					want[id] = &model{dead: map[int]bool{}}
				}
				want[id].live += n
			},
			"finish": func(t *rapid.T) {
				id := number.Draw(t, "block")
				if want[id] == nil {
					require.Nil(t, c.blocks.at(id))
					return
				}
				i := rapid.OneOf(rapid.IntRange(0, 100), rapid.IntRange(0, 1<<16-1)).Draw(t, "position")
				b := c.blocks.at(id)
				require.Equal(t, want[id].dead[i], c.isDead(b, i))
				c.setDead(b, i)
				b.addLive(-1)
				want[id].dead[i] = true
				if want[id].live--; want[id].live == 0 {
					c.forgetBlock(id)
					delete(want, id)
				}
			},
			"dirty": func(t *rapid.T) {
				if id := number.Draw(t, "block"); want[id] != nil {
					if want[id].dirty {
						c.blocks.at(id).setClean()
					} else {
						c.blocks.at(id).setDirty()
					}
					want[id].dirty = !want[id].dirty
				}
			},
			"": func(t *rapid.T) {
				n := 0
				for id, b := range c.blocks.all() {
					w := want[id]
					require.NotNil(t, w, "block %d", id)
					require.Same(t, b, c.blocks.at(id))
					require.Equal(t, w.live, b.live())
					require.Equal(t, w.dirty, b.dirty())
					var bits []byte
					for _, i := range slices.Sorted(maps.Keys(w.dead)) {
						bits = append(bits, make([]byte, i/8+1-len(bits))...)
						bits[i/8] |= 1 << (i % 8)
					}
					require.Equal(t, bits, c.copyDead(b))
					n++
				}
				require.Equal(t, len(want), n)
				if n == 0 {
					require.Zero(t, c.blocks.size())
					require.Zero(t, c.names.Used())
				}
			},
		})
	})
}

// Blocks cost little, and their memory goes with them.
func TestBlocksTakeLittle(t *testing.T) {
	var c core
	const n = 200_000
	for id := uint32(1); id <= n; id++ {
		c.blocks.add(id).addLive(90)
	}
	require.Less(t, c.blocks.size(), int64(n*9))
	c.setDead(c.blocks.at(n), 7)
	used := c.names.Used()
	for id := uint32(1); id < n; id++ {
		c.setDead(c.blocks.at(id), 0)
		c.forgetBlock(id)
	}
	require.LessOrEqual(t, c.blocks.size(), int64(20<<10))
	require.Equal(t, used, c.names.Used())
	require.EqualValues(t, 90, c.blocks.at(n).live())
}

// given is what a Spill says of blocks while a frontier is recovered.
func TestFinishedPositionsFindTheirParts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := &Frontier{core: benchCore(), opts: Options{Priorities: 8}}
		r := &recovery{f: f, log: map[uint64]logged{}}
		type at struct {
			block uint32
			pos   uint16
		}
		var all []at
		blocks := rapid.SliceOfNDistinct(rapid.Uint32Range(1, 5000), 1, 8, rapid.ID).Draw(t, "blocks")
		for _, b := range blocks {
			first := uint16(0)
			for range rapid.IntRange(1, 4).Draw(t, "parts") {
				p := Part{Block: b, First: first, Count: uint8(rapid.IntRange(1, MaxPart).Draw(t, "records"))}
				host := rapid.SampledFrom([]string{"a.example", "b.example"}).Draw(t, "host")
				require.NoError(t, r.Part(Queue{Host: host, Priority: 1}, p))
				for i := range p.Count {
					all = append(all, at{b, first + uint16(i)})
				}
				first += uint16(p.Count)
			}
		}
		require.NoError(t, r.Batch(&Batch{ID: 1}))
		require.EqualValues(t, len(all), f.core.stats.Waiting)
		finished := map[at]bool{}
		for range rapid.IntRange(0, 2*len(all)).Draw(t, "finished") {
			x := rapid.SampledFrom(all).Draw(t, "position")
			r.completion(Completion{Seq: 1, Block: x.block, Pos: x.pos})
			finished[x] = true
			r.completion(Completion{Seq: 1, Block: 6000, Pos: x.pos}) // of a block that is gone
		}
		require.EqualValues(t, len(all)-len(finished), f.core.stats.Waiting)
		r.finish()
		for _, x := range all {
			b := f.core.blocks.at(x.block)
			require.Equal(t, finished[x], b == nil || f.core.isDead(b, int(x.pos)))
		}
		for _, id := range blocks {
			require.Equal(t, f.core.blocks.at(id) == nil, slices.Contains(f.core.drops, id))
		}
	})
}
