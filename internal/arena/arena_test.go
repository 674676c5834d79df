package arena

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Blocks keep their content whatever happens to others, and are counted exactly.
func TestArenaAgainstAMap(t *testing.T) {
	size := rapid.OneOf(rapid.IntRange(1, 100), rapid.IntRange(1, 3000), rapid.IntRange(1, MaxSize), rapid.Just(MaxSize))
	rapid.Check(t, func(t *rapid.T) {
		var a Arena
		blocks := map[Ref][]byte{}
		used := int64(0)
		n := uint64(0)
		pick := func() Ref {
			if len(blocks) == 0 {
				t.Skip("empty")
			}
			refs := make([]Ref, 0, len(blocks))
			for r := range blocks {
				refs = append(refs, r)
			}
			slices.Sort(refs)
			return rapid.SampledFrom(refs).Draw(t, "ref")
		}
		// A place that is remembered with its epoch is not in the middle of a block.
		type place struct {
			epoch uint32
			cost  int64
		}
		places := map[Ref]place{}
		free := func(r Ref) {
			places[r] = place{a.Epoch(r), Cost(len(blocks[r]))}
			a.Free(r, len(blocks[r]))
			used -= Cost(len(blocks[r]))
			delete(blocks, r)
		}
		t.Repeat(map[string]func(*rapid.T){
			"alloc": func(*rapid.T) {
				k := size.Draw(t, "size")
				r, b := a.Alloc(k)
				require.Len(t, b, k)
				require.NotZero(t, r)
				require.NotContains(t, blocks, r)
				for i := range b {
					n++
					b[i] = byte(n * 0x9E3779B97F4A7C15 >> 56)
				}
				blocks[r] = bytes.Clone(b)
				used += Cost(k)
			},
			"free": func(*rapid.T) { free(pick()) },
			"free most": func(*rapid.T) {
				for len(blocks) > 2 {
					free(pick())
				}
			},
			"": func(*rapid.T) {
				require.Equal(t, used, a.Used())
				require.LessOrEqual(t, a.Used(), a.Size())
				for r, b := range blocks {
					require.True(t, bytes.Equal(b, a.Bytes(r)[:len(b)]), "block %d of %d bytes changed", r, len(b))
				}
				if len(blocks) == 0 {
					loose := 0 // each may keep a span
					for _, l := range a.loose {
						loose += int(l.n)
					}
					require.Less(t, loose, 4096/smallest)
					require.LessOrEqual(t, a.Size(), int64((12+loose)*unitSize)+int64(cap(a.units))*unitBytes)
				}
				for r, p := range places {
					if a.Epoch(r) != p.epoch {
						delete(places, r)
					}
				}
				for at, b := range blocks {
					for r := at; int64(r-at)*grain < Cost(len(b)); r++ {
						if p, ok := places[r]; ok && (r != at || p.cost != Cost(len(b))) {
							require.Fail(t, "a place of the same epoch has another use", "%d of %d bytes in %d of %d", r, p.cost, at, Cost(len(b)))
						}
					}
				}
			},
		})
	})
}

func TestFreedMemoryIsUsedAgain(t *testing.T) {
	var a Arena
	var refs []Ref
	for range 50_000 {
		r, b := a.Alloc(40)
		binary.LittleEndian.PutUint32(b, uint32(r))
		refs = append(refs, r)
	}
	was := a.Size()
	require.Less(t, was, a.Used()*102/100)
	for i := range 10 {
		for _, r := range refs {
			a.Free(r, 40)
		}
		require.Zero(t, a.Used())
		require.Less(t, a.Size(), was/5)
		for j := range refs {
			refs[j], _ = a.Alloc(40 + 30*(i%2)) // of another class each time
			a.Free(refs[j], 40+30*(i%2))
			refs[j], _ = a.Alloc(40)
		}
		require.LessOrEqual(t, a.Size(), was+unitSize)
	}
}

// A block that is allocated and freed alone costs no system calls.
func TestLastBlockOfASpanCostsNoSystemCalls(t *testing.T) {
	var a Arena
	for range 1000 {
		r, b := a.Alloc(100)
		b[50] = 7
		a.Free(r, 100)
		require.EqualValues(t, 7, a.Bytes(r)[50], "its memory was given back")
	}
}

// Whatever the sizes, little of what is held is not used: spans waste little at
// their ends, and what one class leaves others use.
func TestLittleIsWasted(t *testing.T) {
	for c, k := range spans {
		wasted := k * unitSize % sizes[c]
		require.Positive(t, k*unitSize/sizes[c])
		most := 16 // a 16th
		switch {
		case sizes[c] > 64<<10:
			most = 3
		case sizes[c] > 4<<10:
			most = 8
		}
		require.LessOrEqual(t, wasted*most, k*unitSize, "bytes of %d units for blocks of %d", k, sizes[c])
	}
	r := rand.New(rand.NewPCG(1, 2))
	var a Arena
	type block struct {
		ref  Ref
		size int
	}
	var blocks []block
	for round := range 10 {
		size := func() int { return 40 + r.IntN(20*(1+round)) } // each round's are larger
		for len(blocks) < 300_000 {
			n := size()
			ref, _ := a.Alloc(n)
			blocks = append(blocks, block{ref, n})
		}
		require.Less(t, float64(a.Size()), float64(a.Used())*1.04, "round %d", round)
		from := len(blocks) / 5 // the oldest stay
		for _, b := range blocks[from:] {
			a.Free(b.ref, b.size)
		}
		blocks = blocks[:from]
	}
	require.Less(t, a.Size(), int64(60_000*(40+200))*13/10)
}

func TestCostIsLittleMoreThanAsked(t *testing.T) {
	last := int64(0)
	for n := 1; n <= MaxSize; n++ {
		c := Cost(n)
		if c < int64(n) || c < last || c%grain != 0 || c > int64(n+max(grain, n/8+grain)) {
			t.Fatalf("a block of %d bytes costs %d, one byte less %d", n, c, last)
		}
		last = c
	}
}

func TestSizesOutOfRangePanic(t *testing.T) {
	var a Arena
	require.Panics(t, func() { a.Alloc(0) })
	require.Panics(t, func() { a.Alloc(-1) })
	require.Panics(t, func() { a.Alloc(MaxSize + 1) })
}

// Prefetch may be called for any block, also the last of a chunk, behind which there may be no memory.
func TestPrefetchChangesNothing(t *testing.T) {
	var a Arena
	for i := range 2 * chunkSize / 64 {
		r, b := a.Alloc(64)
		for k := range b {
			b[k] = byte(i)
		}
		a.Prefetch(r)
		require.Equal(t, bytes.Repeat([]byte{byte(i)}, 64), b)
	}
}
