//go:build !race

package offheap

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// resident is how many MB of memory the process has of its own.
func resident(t *testing.T) int64 {
	status, err := os.ReadFile("/proc/self/status")
	require.NoError(t, err)
	_, after, ok := bytes.Cut(status, []byte("RssAnon:"))
	require.True(t, ok)
	var kB int64
	_, err = fmt.Sscan(string(after), &kB)
	require.NoError(t, err)
	return kB >> 10
}

func TestOnlyWhatWasWrittenToTakesMemory(t *testing.T) {
	if newMemory(1) == nil {
		t.Skip("all is in the Go heap")
	}
	const size = 256 << 20
	fill := func(b []byte) {
		for i := 0; i < len(b); i += 4096 {
			b[i] = 1
		}
	}
	runtime.GC()
	was := resident(t)
	of := func(what string, want int64) {
		require.InDelta(t, want, resident(t)-was, 16, what)
	}
	a := Make[byte](size)
	of("new", 0)
	fill(a.Items[:size/2])
	of("half of it is used", 128)
	a.Resize(2 * size)
	of("larger", 128)
	a.Resize(size / 4)
	of("smaller", 64)
	a.Free()
	of("freed", 0)

	var p Pieces[[size]byte]
	x := p.Next()
	fill(x[:])
	of("a piece", 256)
	Discard(x[:])
	of("discarded", 0)
	fill(x[size/2:])
	of("half of it is used again", 128)
	p.Free()
	of("freed", 0)
}
