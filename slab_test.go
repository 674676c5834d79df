package frontier

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Records keep their numbers and values, numbers are used again from the lowest,
// and what is not in use is zero.
func TestSlabAgainstAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := slab[timeItem]{inHeap: rapid.Bool().Draw(t, "inHeap")}
		want := []int64{0} // by number; 0: not in use
		var ids []uint32   // in use
		n := int64(0)
		alloc := func() {
			n++
			id := s.alloc()
			for int(id) >= len(want) {
				want = append(want, 0)
			}
			if id == 0 || want[id] != 0 || *s.at(id) != (timeItem{}) {
				require.Fail(t, "given out wrongly", "record %d", id)
			}
			*s.at(id) = timeItem{at: n, id: id}
			want[id] = n
			ids = append(ids, id)
		}
		release := func(i int) {
			s.release(ids[i])
			want[ids[i]] = 0
			ids[i] = ids[len(ids)-1]
			ids = ids[:len(ids)-1]
		}
		t.Repeat(map[string]func(*rapid.T){
			"alloc": func(*rapid.T) { alloc() },
			"alloc many": func(t *rapid.T) {
				for range rapid.IntRange(1, 3*slabChunk).Draw(t, "n") {
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
				above := uint32(rapid.IntRange(0, int(s.top)).Draw(t, "above"))
				for i := len(ids) - 1; i >= 0; i-- {
					if i < len(ids) && ids[i] > above {
						release(i)
					}
				}
			},
			"": func(t *rapid.T) {
				require.Equal(t, len(ids), s.len())
				require.Equal(t, len(want), max(1, int(s.top)+1))
				for id := 1; id < len(want); id++ {
					x := timeItem{at: want[id], id: uint32(id)}
					if want[id] == 0 {
						x.id = 0
					}
					if *s.at(uint32(id)) != x {
						require.Equal(t, x, *s.at(uint32(id)), "record %d", id)
					}
				}
			},
		})
	})
}

// A hundred million URLs of five million hosts are eight million queues and over
// twenty million parts.
func TestRecordsAreSmall(t *testing.T) {
	require.EqualValues(t, 48, unsafe.Sizeof(host{}))
	require.EqualValues(t, 48, unsafe.Sizeof(queue{}))
	require.EqualValues(t, 12, unsafe.Sizeof(part{}))
	require.EqualValues(t, 8, unsafe.Sizeof(touchedPart{}))
	require.EqualValues(t, 8, unsafe.Sizeof(block{}))
	require.EqualValues(t, 16, unsafe.Sizeof(timeItem{}))
}

// Of records that go, those at the end give their memory back, and the numbers
// of others are used before there are new ones.
func TestSlabGivesMemoryBack(t *testing.T) {
	var s slab[host]
	const n = 100 * slabChunk
	for range n {
		s.alloc()
	}
	most := s.size()
	require.Greater(t, most, n*int64(unsafe.Sizeof(host{})))
	for id := uint32(n); id > n/10; id-- {
		s.release(id)
	}
	require.Less(t, s.size(), most/5)
	for range n / 2 {
		s.alloc()
	}
	require.Less(t, int(s.top), n+slabChunk)
	require.Less(t, s.size(), most*7/10)
	// A record that comes and goes at the edge of a chunk costs no system calls.
	was := s.held()
	for range 1000 {
		s.release(s.alloc())
		require.Equal(t, was, s.held())
	}
}
