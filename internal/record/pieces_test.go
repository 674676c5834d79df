// This file tests the memory in which calls keep what they want committed.

package record

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/seed-7440039f/frontier/internal/hostkey"
	"github.com/stretchr/testify/require"
)

// What Pieces hand out stays where it is, so that nothing but them is kept: a buffer that
// grew would be copied, and kept, in each of its sizes.
func TestBodiesDoNotMove(t *testing.T) {
	const n, size = 8000, 4000
	long := strings.Repeat("x", size)
	for name, write := range map[string]func(*Pieces, string) []byte{
		"encode": func(o *Pieces, s string) []byte { return o.Encode(&Body{}, s) },
		"keep":   func(o *Pieces, s string) []byte { return o.Keep(hostkey.Bytes(s)) },
	} {
		t.Run(name, func(t *testing.T) {
			o, all := &Pieces{}, make([][]byte, 0, n)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			for range n {
				all = append(all, write(o, long))
			}
			runtime.ReadMemStats(&after)
			allocated := after.TotalAlloc - before.TotalAlloc
			require.Less(t, allocated, uint64(n*size*11/10), "bytes for %d", n*size)
			require.GreaterOrEqual(t, o.Bytes, n*size)
			for _, b := range all {
				require.True(t, strings.HasSuffix(string(b), long))
				require.Len(t, b, cap(b), "an append to it would write to the next")
			}
		})
	}
}

// A few bodies, as most calls have, take one piece, which is used again.
func TestFewBodiesTakeOnePiece(t *testing.T) {
	o := &Pieces{}
	fill := func() {
		for i := range 20 {
			o.Encode(&Body{Depth: 1}, fmt.Sprintf("http://www.example.org/%d", i))
		}
	}
	fill()
	for range 2 {
		*o = o.Reused()
		fill()
	}
	require.LessOrEqual(t, testing.AllocsPerRun(10, func() {
		*o = o.Reused()
		for range 20 {
			o.Keep(hostkey.Bytes("http://www.example.org/"))
		}
	}), 0.0)
	b := o.Keep(hostkey.Bytes("http://www.example.org/last"))
	was := o.Bytes
	o.Unwrite(b)
	require.Equal(t, was-len(b), o.Bytes)
	require.Equal(t, "next", string(o.Keep(hostkey.Bytes("next"))))
}
