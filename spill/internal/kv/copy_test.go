// This file tests copies of what an engine holds.

package kv

import (
	"encoding/binary"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
)

// A copy has all keys of the moment, however many and small they are, and none of later.
func TestCopyOfManySmallKeys(t *testing.T) {
	d, err := OpenBadger(t.TempDir(), Config{Memory: 64 << 20, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	const n = 20_000
	write := func(from int) {
		for i := from; i < from+n; {
			var b Batch
			for range 1000 {
				b.Set(binary.BigEndian.AppendUint32(nil, uint32(i)), []byte{1})
				i++
			}
			require.NoError(t, d.Write(&b, false))
		}
	}
	write(0)
	s, err := d.Snapshot()
	require.NoError(t, err)
	write(n)
	dir := t.TempDir()
	require.NoError(t, s.(Copier).CopyTo(t.Context(), dir, 7, nil))
	s.Release()
	require.NoError(t, d.Close())
	d, err = OpenBadger(dir, Config{Memory: 64 << 20, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	defer func() { require.NoError(t, d.Close()) }()
	require.EqualValues(t, 7, d.Confirmed())
	got := 0
	require.NoError(t, d.Iterate(nil, []byte{255}, func(key []byte, _ func() ([]byte, error)) error {
		require.EqualValues(t, got, binary.BigEndian.Uint32(key))
		got++
		return nil
	}))
	require.Equal(t, n, got)
}
