// This file asks what one block costs as the arena grows.

package arena

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// forSizes runs fn as op=.../n=1e3 to n=1e6.
func forSizes(b *testing.B, op string, fn func(b *testing.B, n int)) {
	for e, n := 3, 1000; e <= 6; e, n = e+1, n*10 {
		b.Run(fmt.Sprintf("op=%s/n=1e%d", op, e), func(b *testing.B) {
			b.ReportAllocs()
			fn(b, n)
		})
	}
}

type allocated struct {
	ref  Ref
	size int
}

// some allocates a block as long as a record of some URL.
func some(a *Arena, r *rand.Rand) allocated {
	n := 60 + r.IntN(100)
	ref, _ := a.Alloc(n)
	return allocated{ref, n}
}

func filled(n int) (*Arena, []allocated, *rand.Rand) {
	a, r := new(Arena), rand.New(rand.NewPCG(1, 2))
	blocks := make([]allocated, n)
	for i := range blocks {
		blocks[i] = some(a, r)
	}
	return a, blocks, r
}

// BenchmarkArena holds n blocks.
func BenchmarkArena(b *testing.B) {
	// Any block is freed, and another allocated.
	forSizes(b, "replace", func(b *testing.B, n int) {
		a, blocks, r := filled(n)
		for b.Loop() {
			x := &blocks[r.IntN(n)]
			a.Free(x.ref, x.size)
			*x = some(a, r)
		}
	})
	// Any block's first byte is read.
	forSizes(b, "read", func(b *testing.B, n int) {
		a, blocks, r := filled(n)
		var sum byte
		for b.Loop() {
			sum += a.Bytes(blocks[r.IntN(n)].ref)[0]
		}
		_ = sum
	})
}
