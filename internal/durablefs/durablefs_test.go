// This file tests folders and files that are there wholly or not at all.

package durablefs

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func names(t *testing.T, dir string) (all []string) {
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

// A file is whole, the old one or the new one, and nothing else is left.
func TestWriteFile(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "a")
	for _, text := range []string{"one", "two"} {
		require.NoError(t, WriteFile(name, 0o640, func(w io.Writer) error { _, err := io.WriteString(w, text); return err }))
		b, err := os.ReadFile(name)
		require.NoError(t, err)
		require.Equal(t, text, string(b))
	}
	require.ErrorIs(t, WriteFile(name, 0o600, func(w io.Writer) error { _, _ = io.WriteString(w, "thr"); return io.ErrShortWrite }), io.ErrShortWrite)
	b, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, "two", string(b))
	require.Equal(t, []string{"a"}, names(t, dir))
	info, err := os.Stat(name)
	require.NoError(t, err)
	if runtime.GOOS != "windows" {
		require.Equal(t, os.FileMode(0o640), info.Mode())
	}
}

func TestLock(t *testing.T) {
	dir := t.TempDir()
	held, err := Lock(dir)
	require.NoError(t, err)
	if other, err := Lock(dir); err == nil { // there is no flock
		require.NoError(t, other.Close())
	} else {
		require.ErrorIs(t, err, ErrLocked)
		require.ErrorContains(t, err, dir)
	}
	require.NoError(t, held.Close())
	held, err = Lock(dir)
	require.NoError(t, err)
	require.NoError(t, held.Close())
	_, err = Lock(filepath.Join(dir, "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestMakeFolder(t *testing.T) {
	dir := t.TempDir()
	fill := func(in string) error {
		whole, ok := Partial(filepath.Base(in))
		assert.True(t, ok)
		assert.Equal(t, "one", whole)
		return os.WriteFile(filepath.Join(in, "file"), []byte("x"), 0o600)
	}
	one := filepath.Join(dir, "a", "one")
	require.NoError(t, MakeFolder(t.Context(), one, fill))
	assert.Equal(t, []string{"one"}, names(t, filepath.Dir(one)))
	assert.Equal(t, []string{"file"}, names(t, one))
	require.ErrorIs(t, MakeFolder(t.Context(), one, fill), fs.ErrExist)
	require.ErrorContains(t, MakeFolder(t.Context(), "", fill), "no folder given")

	bad := errors.New("bad")
	two := filepath.Join(dir, "a", "two")
	require.ErrorIs(t, MakeFolder(t.Context(), two, func(string) error { return bad }), bad)
	require.ErrorIs(t, MakeFolder(t.Context(), two, func(string) error { return os.Mkdir(two, 0o700) }), fs.ErrExist, "made meanwhile")
	require.NoError(t, os.Remove(two))
	ctx, cancel := context.WithCancel(t.Context())
	require.ErrorIs(t, MakeFolder(ctx, two, func(string) error { cancel(); return nil }), context.Canceled)
	require.ErrorIs(t, MakeFolder(ctx, two, fill), context.Canceled)
	assert.Equal(t, []string{"one"}, names(t, filepath.Dir(one)), "nothing is left")

	require.NoError(t, RemoveFolder(one))
	assert.Empty(t, names(t, filepath.Dir(one)))
	require.ErrorIs(t, RemoveFolder(one), fs.ErrNotExist)
	for _, name := range []string{"one", ".one", "one.partial-1", ".one.partial-", "."} {
		_, ok := Partial(name)
		assert.False(t, ok, name)
	}
}
