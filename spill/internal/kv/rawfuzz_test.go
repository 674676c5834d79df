// This file feeds the readers of badger's files to damage.

package kv

import (
	"os"
	"path/filepath"
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
		_ = blockCells(b, func(c cell) { size += len(c.value) })
		require.LessOrEqual(t, size, len(b))
		blocks, _, err := tableBlocks(b)
		for _, block := range blocks {
			require.NoError(t, err)
			_ = blockCells(block, func(cell) {})
		}
	})
}

// FuzzLog reads any bytes as a log.
func FuzzLog(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{metaTxn, 0, 9, 1, 0, 'k', 0, 0, 0, 0, 0, 0, 0, 1, 'v', 1, 2, 3, 4})
	f.Fuzz(func(t *testing.T, b []byte) {
		end := logCells(b, 0, func(cell) {})
		require.LessOrEqual(t, end, len(b))
		for at := nextLogEntry(b, end); at >= 0; {
			_, n := logEntry(b[at:])
			require.Positive(t, n)
			at = nextLogEntry(b, at+n)
		}
	})
}

// FuzzManifest reads any bytes as a manifest.
func FuzzManifest(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("BdgrXXXX\x00\x00\x00\x06CRC.\x0a\x04\x08\x09\x10\x01"))
	f.Fuzz(func(t *testing.T, b []byte) {
		require.LessOrEqual(t, len(mergedTables(b)), len(b))
	})
}

// Every bit of a table of badger's, and of a log's transactions but the last, is
// covered by what reads them.
func TestFlippedBitsOfTablesAreFound(t *testing.T) {
	dir := filled(t)
	names, err := filepath.Glob(filepath.Join(dir, "*.sst"))
	require.NoError(t, err)
	require.NotEmpty(t, names)
	data, err := os.ReadFile(names[0])
	require.NoError(t, err)
	read := func(b []byte) error {
		blocks, _, err := tableBlocks(b)
		for _, block := range blocks {
			if err == nil {
				err = blockCells(block, func(cell) {})
			}
		}
		return err
	}
	require.NoError(t, read(data))
	for i := 0; i < len(data); i += 7 {
		data[i] ^= 1 << (i % 8)
		require.Error(t, read(data), "byte %d of %d", i, len(data))
		data[i] ^= 1 << (i % 8)
	}
}
