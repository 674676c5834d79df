// This file tests that large payloads are not held in memory.

package warc

import (
	"io"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// noise is a payload that is nowhere, and cannot be compressed.
type noise struct {
	size, at int64
	r        *rand.ChaCha8
}

func (n *noise) Read(p []byte) (int, error) {
	if n.at == n.size {
		return 0, io.EOF
	}
	p = p[:min(int64(len(p)), n.size-n.at)]
	n.at += int64(len(p))
	return n.r.Read(p)
}

func (n *noise) Seek(int64, int) (int64, error) {
	n.at, n.r = 0, rand.NewChaCha8([32]byte{1})
	return 0, nil
}

func TestLargePayloadsAreNotHeldInMemory(t *testing.T) {
	const size = 48 << 20
	for _, plain := range []bool{false, true} {
		dir := t.TempDir()
		w := open(t, dir, Options{Plain: plain, TempDir: t.TempDir()})
		e := page("http://a.example/large", "")
		e.Payload = &noise{size: size}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		require.NoError(t, w.WriteExchange(e))
		runtime.ReadMemStats(&after)
		assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(size/4))
		require.NoError(t, w.Close())
		all := readFolder(t, dir)
		assert.Len(t, all[1].block, len("HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nX-Odd: a  b\r\nContent-Length: 50331648\r\n\r\n")+size)
	}
}
