// This file tests that the reserve of a volume is kept.

package kv

import (
	"log/slog"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier/internal/durablefs"
)

// A file that would touch the reserve is refused before anything is written, and so is one that
// grows beyond its announced size.
func TestReserveHoldsForFiles(t *testing.T) {
	db, err := OpenBadger(t.TempDir(), Config{Memory: 64 << 20, Reserve: 1 << 60, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	_, err = db.CreateFile("f/large", smallFile+1)
	require.ErrorIs(t, err, syscall.ENOSPC)
	names, err := db.ListFiles("f")
	require.NoError(t, err)
	require.Empty(t, names)
	w, err := db.CreateFile("f/small", smallFile)
	require.NoError(t, err)
	_, err = w.WriteAt(make([]byte, smallFile), 0)
	require.NoError(t, err)
	_, err = w.WriteAt(make([]byte, 1), smallFile)
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.NoError(t, w.Close())
}

// A file is refused if the volume has no room for it in addition to the reserve.
func TestFilesMustFit(t *testing.T) {
	db, err := OpenBadger(t.TempDir(), Config{Memory: 64 << 20, Reserve: 1, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	_, err = db.CreateFile("f/large", 1<<60)
	require.ErrorIs(t, err, syscall.ENOSPC)
}

// Small writes are taken while half of the reserve is left, and must not open the way
// for large ones.
func TestReserveHoldsBetweenSmallWrites(t *testing.T) {
	for _, left := range []bool{true, false} {
		dir := t.TempDir()
		free, known := durablefs.Free(dir)
		require.True(t, known)
		reserve := int64(free + free/2)
		if !left {
			reserve = int64(3 * free)
		}
		db, err := OpenBadger(dir, Config{Memory: 64 << 20, Reserve: reserve, Logger: slog.New(slog.DiscardHandler)})
		require.NoError(t, err)
		for range 3 {
			var few, much, end Batch
			few.Set([]byte("k"), []byte("few"))
			if err := db.Write(&few, false); left {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, syscall.ENOSPC)
			}
			much.Set([]byte("k"), make([]byte, 2*smallWrite))
			require.ErrorIs(t, db.Write(&much, false), syscall.ENOSPC)
			end.Spare = true
			end.Set([]byte("k"), []byte("what ends something"))
			require.NoError(t, db.Write(&end, false))
		}
		require.NoError(t, db.Close())
	}
}
