// This file feeds the readers of badger's files to damage.

package badgerfiles

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzTable reads any bytes as a table, its blocks as well: no panic, and nothing
// is read that is not there.
func FuzzTable(f *testing.F) {
	f.Add([]byte{}, uint16(0), byte(0))
	f.Add([]byte{0, 0, 0, 0, 0, 0, 0, 0}, uint16(3), byte(1))
	f.Fuzz(func(t *testing.T, b []byte, at uint16, x byte) {
		if len(b) > 0 {
			b[int(at)%len(b)] ^= x
		}
		size := 0
		_ = BlockCells(b, func(c Cell) { size += len(c.Value) })
		require.LessOrEqual(t, size, len(b))
		blocks, _, err := TableBlocks(b)
		for _, block := range blocks {
			require.NoError(t, err)
			_ = BlockCells(block, func(Cell) {})
		}
	})
}

// FuzzLog reads any bytes as a log.
func FuzzLog(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{MetaTxn, 0, 9, 1, 0, 'k', 0, 0, 0, 0, 0, 0, 0, 1, 'v', 1, 2, 3, 4})
	f.Fuzz(func(t *testing.T, b []byte) {
		end := LogCells(b, 0, func(Cell) {})
		require.LessOrEqual(t, end, len(b))
		for at := NextLogEntry(b, end, 1); at >= 0; {
			_, n := LogEntry(b[at:])
			require.Positive(t, n)
			at = NextLogEntry(b, at+n, 1)
		}
	})
}

// FuzzManifest reads any bytes as a manifest.
func FuzzManifest(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("BdgrXXXX\x00\x00\x00\x06CRC.\x0a\x04\x08\x09\x10\x01"))
	f.Fuzz(func(t *testing.T, b []byte) {
		require.LessOrEqual(t, len(MergedTables(b)), len(b))
	})
}
