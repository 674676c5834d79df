// This file tests what stays, what is removed, and what fails.

package backup

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// counting is a part that is a file with the number of its copy.
func counting(name string, n *int) Part {
	return Part{name, func(_ context.Context, path string) error {
		*n++
		return os.WriteFile(path, []byte{byte(*n)}, 0o600)
	}}
}

func names(t *testing.T, dir string) (all []string) {
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

func TestTakeKeepsTheLast(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "backups")
	now := time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)
	var n int
	o := Options{Dir: dir, Keep: 2, Parts: []Part{counting("one", &n), counting("two", &n)}, Now: func() time.Time { return now }}
	k, err := New(o)
	require.NoError(t, err)
	path, err := k.Take(t.Context())
	require.NoError(t, err)
	assert.Equal(t, filepath.Join(dir, "checkpoint-20260102T150405.000Z"), path)
	assert.Equal(t, []string{"one", "two"}, names(t, path), "in order")
	b, err := os.ReadFile(filepath.Join(path, "two"))
	require.NoError(t, err)
	assert.Equal(t, []byte{2}, b)

	other := filepath.Join(dir, "checkpoint-mine") // is no business of a Keeper
	require.NoError(t, os.Mkdir(other, 0o700))
	for range 3 { // within one millisecond, and then with a clock that was set back
		_, err = k.Take(t.Context())
		require.NoError(t, err)
		now = now.Add(-time.Hour)
	}
	assert.Equal(t, []string{"checkpoint-20260102T150405.002Z", "checkpoint-20260102T150405.003Z", "checkpoint-mine"}, names(t, dir))

	for _, name := range []string{".checkpoint-20260102T150405.009Z.partial-123", ".else.partial-1"} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, name, "one"), 0o700))
	}
	k, err = New(o)
	require.NoError(t, err)
	assert.Equal(t, []string{".else.partial-1", "checkpoint-20260102T150405.002Z", "checkpoint-20260102T150405.003Z", "checkpoint-mine"}, names(t, dir))
	path, err = k.Take(t.Context())
	require.NoError(t, err)
	all, err := List(dir)
	require.NoError(t, err)
	assert.Equal(t, []string{filepath.Join(dir, "checkpoint-20260102T150405.003Z"), path}, all)
}

// A part that cannot be copied costs no checkpoint but this one.
func TestTakeFails(t *testing.T) {
	dir := t.TempDir()
	var n int
	full := errors.New("full")
	var fault error
	k, err := New(Options{Dir: dir, Keep: 1, Parts: []Part{counting("one", &n), {"two", func(context.Context, string) error { return fault }}}})
	require.NoError(t, err)
	_, err = k.Take(t.Context())
	require.NoError(t, err)
	before := names(t, dir)
	fault = full
	path, err := k.Take(t.Context())
	require.ErrorIs(t, err, full)
	require.ErrorContains(t, err, "two: full")
	assert.Empty(t, path)
	assert.Equal(t, before, names(t, dir))
	_, err = New(Options{Keep: -1, Parts: []Part{{Name: "../x"}, {Name: "a"}, {Name: "a"}}})
	require.ErrorContains(t, err, "Dir is empty\nKeep is -1; want >= 1\na part's name is \"../x\"; want that of a file\ntwo parts are called \"a\"")
	_, err = New(Options{Dir: dir})
	require.ErrorContains(t, err, "there are no Parts")
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err = New(Options{Dir: file, Parts: []Part{counting("one", &n)}})
	require.Error(t, err)
}

func TestRun(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		var n int
		k, err := New(Options{Dir: dir, Keep: 100, Every: time.Hour, Parts: []Part{counting("one", &n)}})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		demand := make(chan struct{})
		ended := make(chan struct{})
		go func() { k.Run(ctx, demand); close(ended) }()
		time.Sleep(3*time.Hour + time.Minute)
		synctest.Wait()
		assert.Equal(t, 3, n)
		demand <- struct{}{}
		synctest.Wait()
		assert.Equal(t, 4, n)
		close(demand)
		time.Sleep(time.Hour + time.Minute)
		synctest.Wait()
		assert.Equal(t, 5, n)
		cancel()
		<-ended
		assert.Equal(t, 5, n)
		ctx, cancel = context.WithCancel(t.Context())
		ended = make(chan struct{})
		k.opts.Every = 0 // neither an interval nor demand
		go func() { k.Run(ctx, nil); close(ended) }()
		time.Sleep(24 * time.Hour)
		cancel()
		<-ended
		assert.Equal(t, 5, n)
	})
}
