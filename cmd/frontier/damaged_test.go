// This file damages the folder of a crawl, and does what the command then says.

package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/spill"
)

// A file of values that is shorter than what keys say is damage. The command says what to
// do, and that yields a crawl with all that was not hit.
func TestACrawlWhoseValuesAreCutShort(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	const pages, batches = 20, 10
	f := func() *frontier.Frontier {
		store, err := spill.Open(dir, spill.Options{Logger: slog.New(slog.DiscardHandler)})
		require.NoError(t, err)
		f, err := frontier.Open(t.Context(), frontier.Options{Spill: store})
		require.NoError(t, err)
		for b := range batches {
			var entries []frontier.Entry
			for p := range pages {
				entries = append(entries, frontier.Entry{URL: fmt.Sprintf("http://a.example/%d/%d", b, p)})
			}
			_, err := f.Add(t.Context(), entries...)
			require.NoError(t, err)
		}
		t.Cleanup(func() { _ = f.Close(); _ = store.Close() })
		return f
	}()
	died := filepath.Join(t.TempDir(), "died")
	require.NoError(t, os.CopyFS(died, os.DirFS(dir)))
	require.NoError(t, os.Remove(filepath.Join(died, "LOCK")))
	require.NoError(t, f.Check())
	files, err := filepath.Glob(filepath.Join(died, "blobs", "*.brief"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	info, err := os.Stat(files[0])
	require.NoError(t, err)
	require.NoError(t, os.Truncate(files[0], info.Size()-200))

	code, out, stderr := command(t, t.Context(), "-dir", died, "http://a.example/")
	require.Equal(t, exitError, code, out+stderr)
	assert.Contains(t, stderr, "00000001.brief has ")
	assert.Contains(t, stderr, "frontier repair -dir "+died+" NEW-FOLDER")
	code, _, stderr = operate(t, "status", "-dir", died)
	require.Equal(t, exitError, code)
	assert.Contains(t, stderr, "frontier repair -dir "+died+" NEW-FOLDER")

	mended := filepath.Join(t.TempDir(), "mended")
	code, out, stderr = operate(t, "repair", "-dir", died, mended, "-json")
	require.Equal(t, exitOK, code, stderr)
	assert.Equal(t, 1, strings.Count(out, `"What": "batch"`), out)
	assert.Contains(t, out, `"Err": "`)
	code, out, stderr = operate(t, "repair", "-dir", died, filepath.Join(t.TempDir(), "again"))
	require.Equal(t, exitOK, code, stderr)
	assert.Regexp(t, `(?m)^batch \S+ with .* URLs: .+$`, out)
	other := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(other, "notes.txt"), []byte("mine"), 0o600))
	code, _, stderr = operate(t, "repair", "-dir", other, filepath.Join(t.TempDir(), "nothing"))
	require.Equal(t, exitError, code)
	assert.Contains(t, stderr, "nothing of a crawl can be read in "+other)
	store, err := spill.Open(mended, spill.Options{})
	require.NoError(t, err)
	left, err := frontier.Open(context.Background(), frontier.Options{Spill: store})
	require.NoError(t, err)
	require.NoError(t, left.Check())
	assert.EqualValues(t, (batches-1)*pages, left.Stats().Waiting)
	require.NoError(t, left.Close())
	require.NoError(t, store.Close())
}
