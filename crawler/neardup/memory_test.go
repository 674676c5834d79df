// This file tests that an index holds no more memory than it was allowed to, however
// many pages it knows.

package neardup

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// page returns the unique page number i.
func page(i int) (p Page) {
	binary.LittleEndian.PutUint64(p.Bytes[:], uint64(i+1))
	p.Text, p.Words = p.Bytes, 100
	for j := range p.Sketch {
		p.Sketch[j] = uint16(mix(uint64(i*bins + j)))
	}
	return p
}

// heap is what of the heap is in use after all garbage was collected.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what finalizers and pools let go
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// What the store may hold in memory at once is within Options.Memory, whatever that is:
// tables being filled, those waiting to be written and those being merged, and the cache
// of their indexes. Nothing of it depends on how many pages there are.
func TestStoreKeepsToMemory(t *testing.T) {
	for _, memory := range []int64{0, 1, 16 << 20, 100 << 20, 1 << 30} {
		o := Options{Memory: memory}.withDefaults()
		e := o.engine(t.TempDir())
		held := int64(e.NumMemtables+1)*e.MemTableSize + int64(e.NumCompactors)*e.BaseTableSize + e.IndexCacheSize + e.BlockCacheSize
		assert.LessOrEqual(t, held, o.Memory)
		assert.Positive(t, e.IndexCacheSize, "zero is no bound")
		assert.GreaterOrEqual(t, o.Memory, int64(16<<20))
	}
}

// The heap holds about Options.Memory though no two pages are alike, however long their
// URLs are: rows would take 50 MiB in memory, or 170. How much badger holds for a moment
// while it merges tables is luck, so the bounds are wide ones.
func TestHeapIsBounded(t *testing.T) {
	if !*long {
		t.Skip("takes a minute: -frontier.long")
	}
	const memory, pages = 16 << 20, 30_000
	for length, most := range map[int]int64{0: 3 * memory, 4000: 8 * memory} {
		t.Run(fmt.Sprint("length=", length), func(t *testing.T) {
			path := strings.Repeat("x", length)
			before := heap()
			x := open(t, t.TempDir(), Options{Memory: memory})
			for i := range pages {
				m, err := x.Add(fmt.Sprintf("http://host%d.example/some/path/%d/%s", i%1000, i, path), page(i))
				require.NoError(t, err)
				require.Equal(t, New, m.Kind)
				if n := i + 1; n%(pages/30) == 0 {
					held := heap() - before
					t.Logf("%6d pages: %.1f MiB", n, float64(held)/(1<<20))
					assert.LessOrEqual(t, held, most, n)
				}
			}
			runtime.KeepAlive(x)
		})
	}
}

// The pairs of hosts that have pages in common are counted up to a bound.
func TestPairsAreBounded(t *testing.T) {
	var m mirrorCounts
	for i := range 3 * maxPairs {
		m.seen("a.example", fmt.Sprintf("host%d.example", i), 10)
		require.LessOrEqual(t, len(m.pairs), maxPairs)
		require.LessOrEqual(t, len(m.partners), maxPairs)
		require.LessOrEqual(t, len(m.partnersOf("a.example")), maxPartners)
	}
	assert.Len(t, m.pairs, maxPairs)
	assert.Len(t, m.partners, maxPairs)
}
