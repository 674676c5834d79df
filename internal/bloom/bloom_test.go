package bloom

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWhatWasAddedIsFound(t *testing.T) {
	var f Filter
	r := rand.New(rand.NewPCG(1, 2))
	require.False(t, f.Has(r.Uint64()))
	require.Zero(t, f.Size())
	const n = 1_000_000
	for range n {
		h := r.Uint64()
		f.Add(h)
		f.Add(h)
		require.True(t, f.Has(h))
	}
	r = rand.New(rand.NewPCG(1, 2))
	r.Uint64()
	for range n {
		if h := r.Uint64(); !f.Has(h) {
			t.Fatalf("%x was added and is not found", h)
		}
	}
	wrong := 0
	for range n {
		if f.Has(r.Uint64()) {
			wrong++
		}
	}
	require.Less(t, wrong, n/40)
	require.Greater(t, f.Len(), n*97/100)
	require.LessOrEqual(t, f.Size(), int64(3*n), "a level just begun is as large as all before it")
	t.Logf("%.2f %% are found wrongly, %.2f B per hash", 100*float64(wrong)/n, float64(f.Size())/n)
}

// BenchmarkBloom asks a filter of n hashes.
func BenchmarkBloom(b *testing.B) {
	for e, n := 3, 1000; e <= 7; e, n = e+1, n*10 {
		for _, known := range []bool{true, false} {
			b.Run(fmt.Sprintf("op=has/known=%v/n=1e%d", known, e), func(b *testing.B) {
				var f Filter
				r := rand.New(rand.NewPCG(1, 2))
				for range n {
					f.Add(r.Uint64())
				}
				if known {
					r = rand.New(rand.NewPCG(1, 2))
				}
				ask := make([]uint64, min(n, 1<<20))
				for i := range ask {
					ask[i] = r.Uint64()
				}
				i, found := 0, 0
				for b.Loop() {
					if f.Has(ask[i%len(ask)]) {
						found++
					}
					i++
				}
				b.ReportMetric(float64(f.Size())/float64(n), "B/hash")
			})
		}
	}
}
