package timeheap

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Any sequence of operations on heaps in one table leaves each in order, with its own
// items under their numbers. Heaps without items take nothing.
func TestHeapTableAgainstLists(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var table Table
		roots := make([]uint32, 3)
		in := make([]map[uint32]Item, len(roots)) // items by number
		for i := range in {
			in[i] = map[uint32]Item{}
		}
		next := uint32(0)
		heap := func() int { return rapid.IntRange(0, len(roots)-1).Draw(t, "heap") }
		item := func() Item {
			next++
			return Item{At: rapid.Int64Range(-5, 20).Draw(t, "at"), ID: next, Aux: next + 7}
		}
		pick := func() (h int, n uint32) {
			if h = heap(); len(in[h]) == 0 {
				t.Skip("empty")
			}
			var all []uint32
			for n := range in[h] {
				all = append(all, n)
			}
			slices.Sort(all)
			return h, rapid.SampledFrom(all).Draw(t, "number")
		}
		push := func(h int, it Item) { in[h][table.Push(&roots[h], it)] = it }
		t.Repeat(map[string]func(*rapid.T){
			"push": func(*rapid.T) { push(heap(), item()) },
			"push many": func(*rapid.T) {
				h, step := heap(), rapid.Int64Range(-3, 3).Draw(t, "step")
				for i := range rapid.Int64Range(1, 100).Draw(t, "n") {
					next++
					push(h, Item{At: i * step, ID: next})
				}
			},
			"remove": func(*rapid.T) {
				h, n := pick()
				require.Equal(t, in[h][n], table.Remove(&roots[h], n))
				delete(in[h], n)
			},
			"fix": func(*rapid.T) {
				h, n := pick()
				in[h][n] = item()
				table.Fix(&roots[h], n, in[h][n])
			},
			"pop": func(*rapid.T) {
				h := heap()
				for range min(len(in[h]), rapid.IntRange(1, 100).Draw(t, "n")) {
					n := roots[h]
					require.Equal(t, in[h][n], table.Remove(&roots[h], n))
					delete(in[h], n)
				}
			},
			"": func(t *rapid.T) {
				total := 0
				for h, root := range roots {
					require.NoError(t, table.Check(root))
					least, found := int64(instant.Never), 0
					for n := range table.All(root) {
						require.Equal(t, in[h][n], table.At(n).Item)
						least = min(least, table.At(n).Item.At)
						found++
					}
					require.Len(t, in[h], found)
					require.Equal(t, least, table.Min(root))
					total += found
				}
				require.Equal(t, total, table.Len())
			},
		})
	})
}

// No step of a large heap looks at many of its items: the spine along right, which
// merging follows, is short.
func TestHeapTableIsBalanced(t *testing.T) {
	var table Table
	var root uint32
	r := rand.New(rand.NewPCG(1, 2))
	const n = 1 << 16
	for i := range n {
		table.Push(&root, Item{At: r.Int64N(1_000_000), ID: uint32(i)})
		table.Fix(&root, uint32(1+r.IntN(i+1)), Item{At: int64(-i)})
	}
	require.LessOrEqual(t, table.At(root).ownSpine, uint8(17), "of %d items", n)
	require.NoError(t, table.Check(root))
}
