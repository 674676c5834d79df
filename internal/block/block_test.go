package block

import (
	"maps"
	"slices"
	"testing"
	"unsafe"

	"github.com/seed-7440039f/frontier/storage"
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
		c := &Table{}
		want := map[uint32]*model{}
		t.Repeat(map[string]func(*rapid.T){
			"grow": func(t *rapid.T) {
				id, n := number.Draw(t, "block"), rapid.IntRange(1, storage.MaxPart).Draw(t, "records")
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
					c.forget(id)
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
					require.Zero(t, c.bitmaps.Used())
				}
			},
		})
	})
}

// Blocks cost little, and their memory goes with them.
func TestBlocksTakeLittle(t *testing.T) {
	var c Table
	const n = 200_000
	for id := uint32(1); id <= n; id++ {
		c.blocks.add(id).addLive(90)
	}
	require.Less(t, c.blocks.size(), int64(n*9))
	c.setDead(c.blocks.at(n), 7)
	used := c.bitmaps.Used()
	for id := uint32(1); id < n; id++ {
		c.setDead(c.blocks.at(id), 0)
		c.forget(id)
	}
	require.LessOrEqual(t, c.blocks.size(), int64(20<<10))
	require.Equal(t, used, c.bitmaps.Used())
	require.EqualValues(t, 90, c.blocks.at(n).live())
}

// A hundred million URLs of five million hosts are over twenty million parts.
func TestPartsAreSmall(t *testing.T) {
	require.EqualValues(t, 12, unsafe.Sizeof(part{}))
	require.EqualValues(t, 8, unsafe.Sizeof(touchedPart{}))
	require.EqualValues(t, 8, unsafe.Sizeof(block{}))
}
