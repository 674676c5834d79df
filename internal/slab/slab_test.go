package slab

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

type item struct {
	at int64
	id uint32
}

type wide [48]byte

// Records keep their numbers and values, numbers are used again from the lowest,
// and what is not in use is zero.
func TestSlabAgainstAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Slab[item]{InHeap: rapid.Bool().Draw(t, "inHeap")}
		want := []int64{0} // by number; 0: not in use
		var ids []uint32   // in use
		n := int64(0)
		alloc := func() {
			n++
			id := s.Alloc()
			for int(id) >= len(want) {
				want = append(want, 0)
			}
			if id == 0 || want[id] != 0 || *s.At(id) != (item{}) {
				require.Fail(t, "given out wrongly", "record %d", id)
			}
			*s.At(id) = item{at: n, id: id}
			want[id] = n
			ids = append(ids, id)
		}
		release := func(i int) {
			s.Release(ids[i])
			want[ids[i]] = 0
			ids[i] = ids[len(ids)-1]
			ids = ids[:len(ids)-1]
		}
		t.Repeat(map[string]func(*rapid.T){
			"alloc": func(*rapid.T) { alloc() },
			"alloc many": func(t *rapid.T) {
				for range rapid.IntRange(1, 3*perChunk).Draw(t, "n") {
					alloc()
				}
			},
			"release": func(t *rapid.T) {
				if len(ids) == 0 {
					t.Skip("empty")
				}
				release(rapid.IntRange(0, len(ids)-1).Draw(t, "i"))
			},
			"release many": func(t *rapid.T) {
				keep := rapid.IntRange(0, 100).Draw(t, "keep")
				for len(ids) > keep {
					release((len(ids) - 1) * 2 / 3)
				}
			},
			"release the highest": func(t *rapid.T) {
				above := uint32(rapid.IntRange(0, int(s.Top)).Draw(t, "above"))
				for i := len(ids) - 1; i >= 0; i-- {
					if i < len(ids) && ids[i] > above {
						release(i)
					}
				}
			},
			"": func(t *rapid.T) {
				require.Equal(t, len(ids), s.Len())
				require.Equal(t, len(want), max(1, int(s.Top)+1))
				for id := 1; id < len(want); id++ {
					x := item{at: want[id], id: uint32(id)}
					if want[id] == 0 {
						x.id = 0
					}
					if *s.At(uint32(id)) != x {
						require.Equal(t, x, *s.At(uint32(id)), "record %d", id)
					}
				}
			},
		})
	})
}

// Of records that go, those at the end give their memory back, and the numbers
// of others are used before there are new ones.
func TestSlabGivesMemoryBack(t *testing.T) {
	t.Run("to the system", func(t *testing.T) { givesBack(t, false) })
	t.Run("to the heap", func(t *testing.T) { givesBack(t, true) })
}

func givesBack(t *testing.T, inHeap bool) {
	s := Slab[wide]{InHeap: inHeap}
	const n = 100 * perChunk
	for range n {
		s.Alloc()
	}
	most := s.Size()
	require.Greater(t, most, n*int64(unsafe.Sizeof(wide{})))
	for id := uint32(n); id > n/10; id-- {
		s.Release(id)
	}
	require.Less(t, s.Size(), most/5)
	for range n / 2 {
		s.Alloc()
	}
	require.Less(t, int(s.Top), n+perChunk)
	require.Less(t, s.Size(), most*7/10)
	// A record that comes and goes at the edge of a chunk costs no system calls.
	was := s.held()
	for range 1000 {
		s.Release(s.Alloc())
		require.Equal(t, was, s.held())
	}
}
