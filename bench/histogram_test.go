package main

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestBucketsFollowOneAnother(t *testing.T) {
	last := -1
	for d := time.Duration(0); d < 1<<maxBits; d += max(1, d/100) {
		b := bucketOf(d)
		require.True(t, b == last || b == last+1, "%v is in bucket %d after %d", d, b, last)
		require.LessOrEqual(t, d, highest(b))
		require.LessOrEqual(t, float64(highest(b)), float64(d)*1.035+1)
		last = b
	}
	require.Equal(t, buckets-1, bucketOf(1<<62))
	require.Equal(t, 0, bucketOf(-1))
}

func TestQuantilesAreThoseOfTheSample(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	hs := []*histogram{{}, {}}
	var all []time.Duration
	for i := range 10_000 {
		d := time.Duration(r.ExpFloat64() * float64(time.Millisecond))
		hs[i%2].record(d)
		all = append(all, d)
	}
	slices.Sort(all)
	l := merged(hs)
	for _, q := range []float64{0, 0.5, 0.99, 0.999, 1} {
		require.InEpsilon(t, all[int(q*9999)]+1, l.at(q)+1, 0.035)
	}
	require.Equal(t, all[9999], l.max)
	hs[0].record(5 * time.Microsecond)
	d := merged(hs).since(l)
	require.EqualValues(t, 1, d.n)
	require.InEpsilon(t, 5*time.Microsecond, d.max, 0.035)
	require.Zero(t, (&latencies{}).at(0.99))
}

func BenchmarkRecord(b *testing.B) {
	var h histogram
	for i := 0; b.Loop(); i++ {
		h.record(time.Duration(i))
	}
}
