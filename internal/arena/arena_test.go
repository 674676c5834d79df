package arena

import (
	"bytes"
	"encoding/binary"
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
		free := func(r Ref) {
			epoch := a.Epoch()
			a.Free(r, len(blocks[r]))
			used -= Cost(len(blocks[r]))
			delete(blocks, r)
			require.Equal(t, len(blocks) == 0, a.Epoch() != epoch, "the epoch changes with the last block")
		}
		t.Repeat(map[string]func(*rapid.T){
			"alloc": func(*rapid.T) {
				k := size.Draw(t, "size")
				r, b := a.Alloc(k)
				require.Len(t, b, k)
				require.NotZero(t, r)
				require.NotContains(t, blocks, r)
				require.True(t, a.Holds(r))
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
					require.Zero(t, a.Size())
				}
			},
		})
	})
}

func TestFreedMemoryIsUsedAgain(t *testing.T) {
	var a Arena
	keep, _ := a.Alloc(8)
	var refs []Ref
	for range 50_000 {
		r, b := a.Alloc(40)
		binary.LittleEndian.PutUint32(b, uint32(r))
		refs = append(refs, r)
	}
	was := a.Size()
	for range 10 {
		for _, r := range refs {
			a.Free(r, 40)
		}
		for i := range refs {
			refs[i], _ = a.Alloc(40)
		}
	}
	require.Equal(t, was, a.Size())
	for _, r := range refs {
		a.Free(r, 40)
	}
	require.Equal(t, was, a.Size())
	a.Free(keep, 8)
	require.Zero(t, a.Size())
	require.Zero(t, a.Used())
}

// The end of a chunk that a large block does not fit is used for small ones.
func TestEndOfAChunkIsNotWasted(t *testing.T) {
	var a Arena
	for range 5 {
		a.Alloc(MaxSize - 16)
	}
	was := a.Size()
	for range 200 {
		a.Alloc(linear)
	}
	require.Equal(t, was, a.Size())
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
