// This file tests the memory in which calls keep what they want committed.

package frontier

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/seed-7440039f/frontier/internal/hostkey"
	"github.com/seed-7440039f/frontier/internal/record"
	"github.com/stretchr/testify/require"
)

// What an op hands out stays where it is, so that nothing but its pieces is kept: a buffer that
// grew would be copied, and kept, in each of its sizes.
func TestBodiesOfAnOpDoNotMove(t *testing.T) {
	const n, size = 8000, 4000
	long := strings.Repeat("x", size)
	for name, write := range map[string]func(*op, string) []byte{
		"encode": func(o *op, s string) []byte { return o.encode(&record.Body{}, s) },
		"keep":   func(o *op, s string) []byte { return o.keep(hostkey.Bytes(s)) },
	} {
		t.Run(name, func(t *testing.T) {
			o, all := &op{}, make([][]byte, 0, n)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			for range n {
				all = append(all, write(o, long))
			}
			runtime.ReadMemStats(&after)
			allocated := after.TotalAlloc - before.TotalAlloc
			require.Less(t, allocated, uint64(n*size*11/10), "bytes for %d", n*size)
			require.GreaterOrEqual(t, o.bytes, n*size)
			for _, b := range all {
				require.True(t, strings.HasSuffix(string(b), long))
				require.Len(t, b, cap(b), "an append to it would write to the next")
			}
		})
	}
}

// Small ops, which most are, take one piece, and are used again with it.
func TestASmallOpHasOnePiece(t *testing.T) {
	o := &op{}
	fill := func() {
		for i := range 20 {
			o.encode(&record.Body{Depth: 1}, fmt.Sprintf("http://www.example.org/%d", i))
		}
	}
	fill()
	for range 2 {
		o.buf, o.bytes = o.buf[:0], 0
		fill()
	}
	require.LessOrEqual(t, testing.AllocsPerRun(10, func() {
		o.buf, o.bytes = o.buf[:0], 0
		for range 20 {
			o.keep(hostkey.Bytes("http://www.example.org/"))
		}
	}), 0.0)
	b := o.keep(hostkey.Bytes("http://www.example.org/last"))
	was := o.bytes
	o.unwrite(b)
	require.Equal(t, was-len(b), o.bytes)
	require.Equal(t, "next", string(o.keep(hostkey.Bytes("next"))))
}
