// This file tests that what is torn or damaged is not overlooked.

package main

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier/crawler/warc"
)

func TestReadAll(t *testing.T) {
	dir := t.TempDir()
	require.ErrorContains(t, readAll(dir, nil), "no WARC files")
	w, err := warc.Open(dir, warc.Options{Plain: true})
	require.NoError(t, err)
	for _, url := range []string{"http://a.example/1", "http://a.example/2"} {
		require.NoError(t, w.WriteExchange(warc.Exchange{URL: url, Date: time.Unix(1, 0), Status: http.StatusOK, Body: []byte("all there is of " + url)}))
	}
	require.NoError(t, w.Close())
	var out bytes.Buffer
	require.NoError(t, readAll(dir, &out))
	assert.Equal(t, "http://a.example/1\nhttp://a.example/2\n", out.String())

	files, err := filepath.Glob(filepath.Join(dir, "*.warc"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	whole, err := os.ReadFile(files[0])
	require.NoError(t, err)
	put := func(b []byte) { require.NoError(t, os.WriteFile(files[0], b, 0o644)) }
	put(whole[:len(whole)-10])
	require.ErrorIs(t, readAll(dir, &out), warc.ErrTorn)
	put(bytes.Replace(whole, []byte("all there is"), []byte("all there was")[:12], 1))
	require.ErrorIs(t, readAll(dir, &out), warc.ErrDigest)
}
