// This file takes from badger's compaction what it needs to make a table.

package kv

import (
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier/spill/internal/badgerfiles"
	"github.com/seed-7440039f/frontier/storage"
	"github.com/stretchr/testify/require"
)

// A compaction that could not make its tables waits: badger would take no notice, and
// remove those that it read.
func TestCompactionWaitsForItsFolder(t *testing.T) {
	dir := t.TempDir()
	if out, err := exec.Command("chattr", "+i", dir).CombinedOutput(); err != nil {
		t.Skipf("no folder can be made immutable here; it takes root: %s", out)
	}
	immutable := func(how string) { require.NoError(t, exec.Command("chattr", how, dir).Run()) }
	immutable("-i")
	defer immutable("-i")
	d := pressed(t, dir)
	n := 0
	for range 3 {
		require.Eventually(t, func() bool { // badger merges five, and tries again each second
			var err error
			n, err = fillTable(d, n, 6)
			return err == nil
		}, time.Minute, 100*time.Millisecond)
		require.Eventually(t, func() bool {
			d.gate.mu.Lock()
			defer d.gate.mu.Unlock()
			if len(d.gate.due) > 0 {
				return false // one is being made
			}
			immutable("+i")
			return true
		}, time.Minute, time.Millisecond)
		time.Sleep(200 * time.Millisecond) // badger looks each 50
		immutable("-i")
		requireKeys(t, d, n)
	}
	require.NoError(t, d.Close())
	d = pressed(t, dir)
	requireKeys(t, d, n)
	require.NoError(t, d.Close())
}

// Compaction continues when all of its tables exist, and no sooner. If one does not appear, the
// engine touches nothing any more.
func TestCompactionGoesOnWithAllItsTables(t *testing.T) {
	from := t.TempDir()
	d := pressed(t, from)
	_, err := fillTable(d, 0, 2)
	require.NoError(t, err)
	require.NoError(t, d.Close())
	made, err := filepath.Glob(filepath.Join(from, "*"+tableSuffix))
	require.NoError(t, err)
	table, err := os.ReadFile(made[0])
	require.NoError(t, err)
	keys := keysIn(t, table)

	dir := t.TempDir()
	d = &Badger{log: slog.New(slog.DiscardHandler), gate: newGate(dir, smallTable)}
	d.gate.looks = 200
	defer d.gate.close()
	write := func(name string, b []byte) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), b, 0o600))
	}
	ranged := func() chan bool {
		done := make(chan bool)
		go func() { d.says("Discard stats: %v", nil); close(done) }()
		return done
	}
	write("000001.sst", table) // it was there before
	d.says("[%d] LOG Compact. Added %d keys.", []any{0, keys, uint64(0)})
	d.says("[%d] LOG Compact. Added %d keys.", []any{0, keys, uint64(0)})
	d.says("[%d] LOG Compact. Added %d keys.", []any{0, uint64(0), uint64(9)}) // badger makes none of it
	done := ranged()
	for i, b := range [][]byte{table[:len(table)-1], make([]byte, len(table)), nil, table} {
		write("000002.sst", b)
		if i == 3 {
			write("000003.sst", table)
		}
		select {
		case <-done:
			require.Equal(t, 3, i, "the tables are not there")
		case <-time.After(30 * time.Millisecond):
		}
	}
	<-done
	require.Nil(t, d.down.Load())

	d.says("[%d] LOG Compact. Added %d keys.", []any{1, keys + 1, uint64(0)})
	write("000004.sst", table) // another's
	done = ranged()
	require.Eventually(t, func() bool { return d.down.Load() != nil }, time.Minute, time.Millisecond)
	require.ErrorIs(t, d.guarded(func() error { return nil }), storage.ErrReopen)
	require.ErrorContains(t, d.closeDB(), "could not make 1 of its tables")
	select {
	case <-done:
		t.Fatal("badger would remove what the table should have had")
	default:
	}
}

func keysIn(t *testing.T, table []byte) (n uint64) {
	blocks, _, err := badgerfiles.TableBlocks(table)
	require.NoError(t, err)
	for _, b := range blocks {
		require.NoError(t, badgerfiles.BlockCells(b, func(badgerfiles.Cell) { n++ }))
	}
	return n
}
