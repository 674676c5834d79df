package timeheap

import (
	"slices"
	"testing"

	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Any sequence of operations leaves the heap in order, names positions truly, and
// gives out the earliest.
func TestTimeHeapAgainstAList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := map[uint32]int64{} // what is in the heap
		pos := map[uint32]int{}  // its last reported position
		h := Heap{Moved: func(id uint32, i int) { pos[id] = i }}
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
				h.Push(Item{At: at[next], ID: next, Aux: next + 7})
			},
			"push many": func(*rapid.T) {
				for range rapid.IntRange(1, 300).Draw(t, "n") {
					next++
					at[next] = int64(next*2654435761) % 1000
					h.Push(Item{At: at[next], ID: next, Aux: next + 7})
				}
			},
			"pop": func(*rapid.T) {
				if len(at) == 0 {
					t.Skip("empty")
				}
				it := h.Pop()
				for _, x := range at {
					require.LessOrEqual(t, it.At, x)
				}
				require.Equal(t, at[it.ID], it.At)
				require.Equal(t, it.ID+7, it.Aux)
				delete(at, it.ID)
			},
			"remove": func(*rapid.T) {
				id := pick()
				h.Remove(pos[id])
				delete(at, id)
			},
			"remove many": func(*rapid.T) {
				for n := len(at) * 3 / 4; n > 0; n-- {
					it := h.Items[n/2]
					h.Remove(n / 2)
					delete(at, it.ID)
				}
			},
			"fix": func(*rapid.T) {
				id := pick()
				at[id] = draw()
				h.Fix(pos[id], at[id])
			},
			"": func(*rapid.T) {
				require.NoError(t, h.Check())
				require.Equal(t, len(at), h.Len())
				least := instant.Never
				for id, x := range at {
					least = min(least, x)
					require.Equal(t, Item{At: x, ID: id, Aux: id + 7}, h.Items[pos[id]])
				}
				require.Equal(t, least, h.Min())
			},
		})
	})
}

func TestTimeHeapGivesMemoryBack(t *testing.T) {
	var h Heap
	for i := range 100_000 {
		h.Push(Item{At: int64(i % 977), ID: uint32(i)})
	}
	last := int64(-1)
	for h.Len() > 0 {
		it := h.Pop()
		require.GreaterOrEqual(t, it.At, last)
		last = it.At
	}
	require.Less(t, h.Size(), int64(64<<10))
}
