package frontier

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Any sequence of operations leaves the heap in order, tells positions truly, and
// gives out the earliest.
func TestTimeHeapAgainstAList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := map[uint32]int64{} // what is in the heap
		pos := map[uint32]int{}  // where it was told to be
		h := timeHeap{moved: func(id uint32, i int) { pos[id] = i }}
		next := uint32(0)
		draw := func() int64 { return rapid.Int64Range(-5, 20).Draw(t, "at") }
		pick := func() uint32 {
			ids := make([]uint32, 0, len(at))
			for id := range at {
				ids = append(ids, id)
			}
			if len(ids) == 0 {
				t.Skip("empty")
			}
			slices.Sort(ids)
			return rapid.SampledFrom(ids).Draw(t, "id")
		}
		t.Repeat(map[string]func(*rapid.T){
			"push": func(*rapid.T) {
				next++
				at[next] = draw()
				h.push(timeItem{at: at[next], id: next, aux: next + 7})
			},
			"push many": func(*rapid.T) {
				for range rapid.IntRange(1, 300).Draw(t, "n") {
					next++
					at[next] = int64(next*2654435761) % 1000
					h.push(timeItem{at: at[next], id: next, aux: next + 7})
				}
			},
			"pop": func(*rapid.T) {
				if len(at) == 0 {
					t.Skip("empty")
				}
				it := h.pop()
				for _, x := range at {
					require.LessOrEqual(t, it.at, x)
				}
				require.Equal(t, at[it.id], it.at)
				require.Equal(t, it.id+7, it.aux)
				delete(at, it.id)
			},
			"remove": func(*rapid.T) {
				id := pick()
				h.remove(pos[id])
				delete(at, id)
			},
			"remove many": func(*rapid.T) {
				for n := len(at) * 3 / 4; n > 0; n-- {
					it := h.Items[n/2]
					h.remove(n / 2)
					delete(at, it.id)
				}
			},
			"fix": func(*rapid.T) {
				id := pick()
				at[id] = draw()
				h.fix(pos[id], at[id])
			},
			"": func(*rapid.T) {
				require.NoError(t, h.check())
				require.Equal(t, len(at), h.len())
				least := never
				for id, x := range at {
					least = min(least, x)
					require.Equal(t, timeItem{at: x, id: id, aux: id + 7}, h.Items[pos[id]])
				}
				require.Equal(t, least, h.min())
			},
		})
	})
}

func TestTimeHeapGivesMemoryBack(t *testing.T) {
	var h timeHeap
	for i := range 100_000 {
		h.push(timeItem{at: int64(i % 977), id: uint32(i)})
	}
	last := int64(-1)
	for h.len() > 0 {
		it := h.pop()
		require.GreaterOrEqual(t, it.at, last)
		last = it.at
	}
	require.Less(t, h.Size(), int64(64<<10))
}
