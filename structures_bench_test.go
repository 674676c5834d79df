// This file measures the structures alone.

package frontier

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/seed-7440039f/frontier/internal/arena"
	"github.com/seed-7440039f/frontier/internal/seen"
)

// BenchmarkHeap takes the earliest host and puts it back later, as each contact
// does.
func BenchmarkHeap(b *testing.B) {
	for _, n := range []int{300, 10_000, 1_000_000} {
		b.Run(fmt.Sprintf("hosts=%d", n), func(b *testing.B) {
			pos := make([]int32, n)
			h := timeHeap{moved: func(id uint32, i int) { pos[id] = int32(i) }}
			r := rand.New(rand.NewPCG(1, 2))
			for i := range n {
				h.push(timeItem{at: r.Int64N(1 << 40), id: uint32(i)})
			}
			for b.Loop() {
				it := h.pop()
				it.at += r.Int64N(1 << 40)
				h.push(it)
			}
		})
	}
}

// BenchmarkSeen looks a fingerprint up and remembers it.
func BenchmarkSeen(b *testing.B) {
	for _, n := range []int{1_000_000, 10_000_000} {
		b.Run(fmt.Sprintf("known=%d", n), func(b *testing.B) {
			var s seen.Set
			r := rand.New(rand.NewPCG(1, 2))
			mark := func() (m [12]byte) {
				x, y := r.Uint64(), r.Uint32()
				for i := range 8 {
					m[i] = byte(x >> (8 * i))
				}
				for i := range 4 {
					m[8+i] = byte(y >> (8 * i))
				}
				return m
			}
			for range n {
				s.Insert(mark())
			}
			b.ResetTimer()
			for b.Loop() {
				s.Insert(mark())
			}
			b.ReportMetric(float64(s.Size())/float64(s.Len()), "B/mark")
		})
	}
}

// BenchmarkRecord stores a URL in memory, reads it and frees it.
func BenchmarkRecord(b *testing.B) {
	c := newCore(coreConfig{levels: 1})
	keep, _ := c.mem.Alloc(8) // the arena is never empty
	body := (&body{depth: 3, url: []byte("http://host1.example.com/some/path/to/a/page/12345.html")}).append(nil)
	b.ReportAllocs()
	for b.Loop() {
		ref := c.store(1, body)
		if _, err := decodeBody(c.record(ref).body()); err != nil {
			b.Fatal(err)
		}
		c.discard(ref)
	}
	c.mem.Free(keep, 8)
	b.ReportMetric(float64(arena.Cost(recordSize(len(body)))), "B/record")
}
