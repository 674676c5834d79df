// This file damages folders and looks whether that is found before badger opens
// them.

package kv

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/seed-7440039f/frontier/spill/internal/badgerfiles"
	"github.com/stretchr/testify/require"
)

// filled returns a folder with tables, and with logs of keys as a crash leaves them.
func filled(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	d, err := OpenBadger(dir, Config{Small: true, Memory: 64 << 20, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	for i := range 600 {
		var b Batch
		b.Set(fmt.Appendf(nil, "key %d", i%200), bytes.Repeat([]byte{byte(i)}, i%1500))
		b.Set(fmt.Appendf(nil, "more %d", i), []byte("x"))
		require.NoError(t, d.Write(&b, true))
	}
	to := copyFolder(t, dir)
	require.NoError(t, d.Close())
	require.NoError(t, look(dir), "after a clean end")
	return to
}

func look(dir string) error {
	_, err := inspect(dir, noted{}, contents{})
	return err
}

func TestInspectFindsNothingInGoodFolders(t *testing.T) {
	require.NoError(t, look(filled(t)))
	require.NoError(t, look(t.TempDir()))
}

// Files of a format that badger knows and this package does not are no damage.
func TestAnotherFormatOfBadgerIsNoDamage(t *testing.T) {
	dir := filled(t)
	known := inspected
	defer func() { inspected = known }()
	inspected++
	require.ErrorIs(t, look(dir), errFormat)
	d, err := OpenBadger(dir, Config{Small: true, Memory: 64 << 20, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	require.NoError(t, d.Close())
}

// Tables that were merged and not yet removed when the process died are no damage, even
// if what came last in them were deletions, which are in no other table.
func TestTablesThatWereMergedAreNoDamage(t *testing.T) {
	dir := t.TempDir()
	open := func() *Badger {
		d, err := OpenBadger(dir, Config{Small: true, Memory: 64 << 20, Logger: slog.New(slog.DiscardHandler)})
		require.NoError(t, err)
		return d
	}
	back := 0
	for back == 0 { // badger may have merged everything
		d := open()
		for i := range 1000 {
			var b Batch
			b.Set(fmt.Appendf(nil, "key %d", i), bytes.Repeat([]byte{byte(i)}, 300))
			require.NoError(t, d.Write(&b, true))
		}
		for i := range 1000 {
			var b Batch
			b.Delete(fmt.Appendf(nil, "key %d", i))
			require.NoError(t, d.Write(&b, true))
		}
		require.NoError(t, d.Close())
		before := t.TempDir()
		require.NoError(t, os.CopyFS(before, os.DirFS(dir)))
		d = open()
		require.NoError(t, d.db.Flatten(1))
		require.NoError(t, d.Close())
		tables, err := filepath.Glob(filepath.Join(before, "*"+tableSuffix))
		require.NoError(t, err)
		for _, path := range tables {
			to := filepath.Join(dir, filepath.Base(path))
			if _, err := os.Stat(to); err == nil {
				continue
			}
			b, err := os.ReadFile(path)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(to, b, 0o600))
			back++
		}
	}
	require.NoError(t, look(dir))
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
		blocks, _, err := badgerfiles.TableBlocks(b)
		for _, block := range blocks {
			if err == nil {
				err = badgerfiles.BlockCells(block, func(badgerfiles.Cell) {})
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
