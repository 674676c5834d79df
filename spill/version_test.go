// This file opens and repairs folders that another version wrote.

package spill_test

import (
	"errors"
	"maps"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier/internal/row"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/spill/internal/kv"
	"github.com/seed-7440039f/frontier/storage"
)

const (
	stampKey = "\xff\xff\xff\xffV"
	rowsAt   = "\xff\xff\xff\xffR"
)

// rewritten changes values of a folder behind the store's back.
func rewritten(t *testing.T, dir string, change func(key string, v []byte) []byte) {
	t.Helper()
	db, err := kv.OpenBadger(dir, spill.EngineConfig(small))
	require.NoError(t, err)
	var b kv.Batch
	require.NoError(t, db.Iterate([]byte{0}, []byte(stampKey+"\xff"), func(key []byte, value func() ([]byte, error)) error {
		v, err := value()
		if err == nil {
			b.Set([]byte(string(key)), change(string(key), append([]byte{}, v...)))
		}
		return err
	}))
	require.NoError(t, db.Write(&b, true))
	require.NoError(t, db.Close())
}

// A folder of another version is refused as such, by Open and by Repair, and stays
// as it is.
func TestAnotherVersionIsNoDamage(t *testing.T) {
	closed, died, _ := livedIn(t)
	for name, from := range map[string]string{"closed": closed, "died": died} {
		t.Run(name, func(t *testing.T) {
			dir := copied(t, from)
			sealed := 0
			rewritten(t, dir, func(key string, v []byte) []byte {
				if key == stampKey {
					return []byte{spill.Version + 1}
				}
				if key < rowsAt || key >= stampKey[:4]+"S" {
					v[0]++
					sealed++
				}
				return v
			})
			require.Greater(t, sealed, 5)
			before := filesOf(t, dir)
			refusedAsAnother(t, dir)
			after := filesOf(t, dir)
			for _, files := range []map[string]string{before, after} { // badger writes these at each opening
				maps.DeleteFunc(files, func(name, _ string) bool { return filepath.Ext(name) != ".marks" && filepath.Dir(name) != "blobs" })
			}
			require.Equal(t, before, after)

			// Without its stamp, too: Open finds something else, Repair asks the values.
			rewritten(t, dir, func(key string, v []byte) []byte {
				if key == stampKey {
					return nil
				}
				return v
			})
			_, err := spill.Repair(t.Context(), dir, filepath.Join(t.TempDir(), "to"), small)
			require.ErrorIs(t, err, storage.ErrVersion)
		})
	}
}

// Within one version a value of another is damage.
func TestAValueOfAnotherVersionIsDamage(t *testing.T) {
	dir, _, _ := livedIn(t)
	rewritten(t, dir, func(key string, v []byte) []byte {
		if key == stampKey[:4]+"S" {
			v[0]++
		}
		return v
	})
	s := open(t, dir, small)
	var corrupt *storage.CorruptError
	err := s.Recover(t.Context(), newReplay())
	require.ErrorAs(t, err, &corrupt)
	require.NotErrorIs(t, err, storage.ErrVersion)
	require.NoError(t, s.Close())
	_, err = spill.Repair(t.Context(), dir, filepath.Join(t.TempDir(), "to"), small)
	require.NoError(t, err)
}

// Rows are the frontier's: Repair must know their version.
func TestRepairRefusesRowsOfAnotherVersion(t *testing.T) {
	dir, _, _ := livedIn(t)
	meta := row.Meta{Seq: 1000}.Row().Value
	meta[0]++
	db, err := kv.OpenBadger(dir, spill.EngineConfig(small))
	require.NoError(t, err)
	var b kv.Batch
	b.Set([]byte(rowsAt+row.MetaKey), meta)
	require.NoError(t, db.Write(&b, true))
	require.NoError(t, db.Close())
	to := filepath.Join(t.TempDir(), "to")
	_, err = spill.Repair(t.Context(), dir, to, small)
	require.ErrorIs(t, err, storage.ErrVersion)
}

func refusedAsAnother(t *testing.T, dir string) {
	t.Helper()
	var corrupt *storage.CorruptError
	_, err := spill.Open(dir, small)
	require.ErrorIs(t, err, storage.ErrVersion)
	require.False(t, errors.As(err, &corrupt), "%v", err)
	to := filepath.Join(t.TempDir(), "to")
	_, err = spill.Repair(t.Context(), dir, to, small)
	require.ErrorIs(t, err, storage.ErrVersion)
	require.NoDirExists(t, to)
}
