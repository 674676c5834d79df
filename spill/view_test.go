// This file looks at folders without writing to them.

package spill_test

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/storage"
)

// listing returns the properties of each file and folder in dir that a write would change.
func listing(t testing.TB, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		var data []byte
		if !e.IsDir() {
			if data, err = os.ReadFile(path); err != nil {
				return err
			}
		}
		all[path] = fmt.Sprintf("%v %v %d %x", info.Mode(), info.ModTime(), len(data), sha256.Sum256(data))
		return nil
	}))
	return all
}

// view opens a view that leaves nothing behind.
func view(t testing.TB, dir string) *spill.Store {
	t.Helper()
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	s, err := spill.OpenView(dir, small)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, s.Close())
		left, err := os.ReadDir(temp)
		require.NoError(t, err)
		require.Empty(t, left)
	})
	return s
}

// What is done with a view is not done to the store.
func TestViewIsWrittenElsewhere(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, small)
	m := start(t, 2, s)
	require.NoError(t, m.commit(500, 0))
	c, err := m.pack()
	require.NoError(t, err)
	require.NoError(t, m.checkpoint(c))
	require.NoError(t, m.commit(500, 100))
	require.NoError(t, s.Close())
	before := listing(t, dir)

	v := view(t, dir)
	was := m.clone()
	was.reboot(t, v)
	require.NoError(t, was.commit(500, 400))
	c, err = was.pack()
	require.NoError(t, err)
	require.NoError(t, was.checkpoint(c))
	copied := filepath.Join(t.TempDir(), "copy")
	require.NoError(t, v.CopyTo(t.Context(), copied))
	require.NoError(t, v.Close())
	require.Equal(t, before, listing(t, dir))

	require.NoError(t, m.holds(open(t, dir, small)))
	for path := range listing(t, copied) {
		info, err := os.Lstat(path)
		require.NoError(t, err)
		require.Zero(t, info.Mode()&fs.ModeSymlink, path)
	}
	require.NoError(t, was.holds(open(t, copied, small)))
}

// Another process may have the folder once a view knows all of it, and not before.
func TestViewIsInUse(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, small)
	_, err := spill.OpenView(dir, small)
	require.ErrorIs(t, err, storage.ErrInUse)
	m := start(t, 2, s)
	require.NoError(t, m.commit(500, 0))
	require.NoError(t, s.Close())

	v, beside := view(t, dir), view(t, dir)
	_, err = spill.Open(dir, small)
	require.ErrorIs(t, err, storage.ErrInUse)
	require.NoError(t, m.holds(beside))
	require.NoError(t, m.holds(v))
	require.NoError(t, m.holds(open(t, dir, small)))
}

func TestViewOfNothing(t *testing.T) {
	dir := t.TempDir()
	_, err := spill.OpenView(dir, small)
	require.ErrorContains(t, err, "there is no store in "+dir)
	_, err = spill.OpenView(filepath.Join(dir, "missing"), small)
	require.ErrorIs(t, err, fs.ErrNotExist)
	names, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, names)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "000001.sst"), nil, 0o600))
	_, err = spill.OpenView(dir, small)
	var damage *storage.CorruptError
	require.ErrorAs(t, err, &damage)
}
