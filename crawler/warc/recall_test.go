// This file tests what a Writer knows of a folder that others have filled.

package warc

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// rotate finishes the file that is being written; the next record begins another.
func rotate(t testing.TB, w *Writer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.file != nil {
		require.NoError(t, w.finish())
	}
}

// revisits writes pages anew and returns the bodies of those that were known.
func revisits(t testing.TB, w *Writer, bodies ...string) (known []string) {
	t.Helper()
	before := len(readFolder(t, w.dir))
	for i, b := range bodies {
		require.NoError(t, w.WriteExchange(page(fmt.Sprintf("http://again.example/%d", i), b)))
	}
	rotate(t, w)
	for _, r := range readFolder(t, w.dir)[before:] {
		if r.Type == Revisit {
			var i int
			_, err := fmt.Sscanf(r.TargetURI, "http://again.example/%d", &i)
			require.NoError(t, err)
			known = append(known, bodies[i])
		}
	}
	return known
}

func fill(t testing.TB, dir string, now time.Time, bodies ...string) {
	t.Helper()
	w, err := Open(dir, Options{Now: func() time.Time { return now }})
	require.NoError(t, err)
	for _, b := range bodies {
		e := page("http://a.example/"+b, b)
		e.Date = now
		require.NoError(t, w.WriteExchange(e))
		now = now.Add(time.Second)
	}
	require.NoError(t, w.Close())
}

func TestPayloadsAreRememberedAcrossRestarts(t *testing.T) {
	dir := t.TempDir()
	first := captured.Add(123 * time.Millisecond) // an index has only its seconds
	fill(t, dir, first, "one", "two", "")
	w := open(t, dir, Options{Remember: 10, Now: func() time.Time { return captured.Add(time.Hour) }})
	assert.Equal(t, []string{"one", "two"}, revisits(t, w, "one", "new", "two", ""))
	all := readFolder(t, dir)
	for _, r := range all {
		if r.TargetURI != "http://again.example/0" || r.Type != Revisit {
			continue
		}
		assert.Equal(t, ProfileIdentical, r.Header.Get("WARC-Profile"))
		assert.Equal(t, "http://a.example/one", r.Header.Get("WARC-Refers-To-Target-URI"))
		assert.Equal(t, FormatDate(first), r.Header.Get("WARC-Refers-To-Date"))
		assert.Equal(t, "<"+all[1].ID+">", r.Header.Get("WARC-Refers-To"))
	}
}

// What has not changed since another Writer's time is a revisit of what that one wrote.
func TestCapturesAreRememberedAcrossRestarts(t *testing.T) {
	dir := t.TempDir()
	first := captured.Add(123 * time.Millisecond)
	fill(t, dir, first, "one", "gone")
	w := open(t, dir, Options{Remember: 10})
	require.NoError(t, w.WriteExchange(page("http://b.example/", "one"))) // a revisit of /one
	require.NoError(t, w.WriteExchange(Exchange{URL: "http://a.example/one", Status: 304}))
	require.NoError(t, w.Close())
	w = open(t, dir, Options{Remember: 10})
	for url, want := range map[string]bool{"http://a.example/one": true, "http://b.example/": true, "http://a.example/none": false} {
		assert.Equal(t, want, w.Captured(url), url)
		require.NoError(t, w.WriteExchange(Exchange{URL: url, Status: 304}))
	}
	require.NoError(t, w.Close())
	all := readFolder(t, dir)
	var named int
	for _, r := range all {
		switch {
		case r.Header.Get("WARC-Profile") == ProfileNotModified:
			named++
			assert.Equal(t, "http://a.example/one", r.Header.Get("WARC-Refers-To-Target-URI"), "%s", r.TargetURI)
			assert.Equal(t, FormatDate(first), r.Header.Get("WARC-Refers-To-Date"))
			assert.Equal(t, "<"+all[1].ID+">", r.Header.Get("WARC-Refers-To"))
			assert.Equal(t, Digest([]byte("one")), r.Header.Get("WARC-Payload-Digest"))
		case r.TargetURI == "http://a.example/none":
			assert.Equal(t, Response, r.Type, "a revisit of nothing is of no use")
		}
	}
	assert.Equal(t, 3, named)

	paths, err := filepath.Glob(filepath.Join(dir, "*.warc.gz"))
	require.NoError(t, err)
	w = open(t, dir, Options{Remember: 10})
	for _, p := range paths {
		require.NoError(t, os.Remove(p))
	}
	assert.False(t, w.Captured("http://a.example/one"), "its file is not there any more")
	require.NoError(t, w.WriteExchange(page("http://a.example/one", "one")))
	assert.True(t, w.Captured("http://a.example/one"))
}

func TestTheLatestPayloadsAreRemembered(t *testing.T) {
	dir := t.TempDir()
	fill(t, dir, captured, "one", "two")
	fill(t, dir, captured.Add(time.Hour), "three", "four", "two")
	for i, name := range []string{"one", "three"} { // as on a system whose files record when they were written
		names, err := filepath.Glob(filepath.Join(dir, fmt.Sprintf("*-%s-*.cdxj", captured.Add(time.Duration(i)*time.Hour).Format("20060102150405"))))
		require.NoError(t, err)
		require.Len(t, names, 1, name)
		when := captured.Add(time.Duration(i) * time.Hour)
		require.NoError(t, os.Chtimes(names[0], when, when))
	}
	w := open(t, dir, Options{Remember: 3, Now: func() time.Time { return captured.Add(2 * time.Hour) }})
	assert.Equal(t, []string{"two", "four", "three"}, revisits(t, w, "two", "four", "three"))
	assert.Len(t, w.seen.known, 3)
	assert.Empty(t, revisits(t, w, "one"))
	assert.Empty(t, revisits(t, w, "three"), "the oldest made room for it")
}

// A file that a crash left has no index until it is mended.
func TestPayloadsOfAMendedFileAreRemembered(t *testing.T) {
	dir := t.TempDir()
	fill(t, dir, captured, "one")
	names, err := filepath.Glob(filepath.Join(dir, "*.warc.gz"))
	require.NoError(t, err)
	require.Len(t, names, 1)
	require.NoError(t, os.Rename(names[0], names[0]+openSuffix))
	require.NoError(t, os.Remove(strings.TrimSuffix(names[0], ".warc.gz")+".cdxj"))
	w := open(t, dir, Options{Remember: 3})
	assert.Equal(t, []string{"one"}, revisits(t, w, "one"))
}

func TestDamagedIndexCostsNoCrawl(t *testing.T) {
	dir := t.TempDir()
	fill(t, dir, captured, "one", "two")
	names, err := filepath.Glob(filepath.Join(dir, "*.cdxj"))
	require.NoError(t, err)
	b, err := os.ReadFile(names[0])
	require.NoError(t, err)
	lines := strings.SplitAfter(string(b), "\n")
	require.NoError(t, os.WriteFile(names[0], []byte("rubbish\n"+lines[0]+"x y {\n\x00\n"+lines[1]), 0o644))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "folder.cdxj"), 0o755))
	w := open(t, dir, Options{Remember: 3})
	assert.Equal(t, []string{"one", "two"}, revisits(t, w, "one", "two"))
}

// What no HTTP brought is a resource, and what was not there is noted.
func TestOtherProtocols(t *testing.T) {
	dir := t.TempDir()
	w := open(t, dir, Options{Remember: 10})
	for range 2 {
		require.NoError(t, w.WriteExchange(Exchange{URL: "ftp://a.example/x.txt", Date: captured, IP: "192.0.2.1", RequestHeader: http.Header{"User-Agent": {"x"}},
			Status: 200, Header: http.Header{"Content-Type": {"text/plain"}, "Last-Modified": {"then"}}, Body: []byte("hello"), Metadata: Header{{"depth", "1"}}}))
	}
	require.NoError(t, w.WriteExchange(Exchange{URL: "ftp://a.example/none", Status: 404, Header: http.Header{"Ftp-Reply": {"550 \r\nno"}}}))
	require.NoError(t, w.WriteExchange(Exchange{URL: "gopher://a.example/9x", Status: 200, Body: []byte("\x89PNG\r\n\x1a\n"), Truncated: TruncatedLength}))
	require.NoError(t, w.Close())
	all := readFolder(t, dir)
	assert.Equal(t, []string{Info, Resource, Metadata, Resource, Metadata, Metadata, Resource, Metadata}, types(all))
	assert.Equal(t, "hello", all[1].block)
	assert.Equal(t, "text/plain", all[1].Header.Get("Content-Type"))
	assert.Equal(t, Digest([]byte("hello")), all[1].Header.Get("WARC-Payload-Digest"))
	assert.Equal(t, "status: 200\r\nContent-Type: text/plain\r\nLast-Modified: then\r\ndepth: 1\r\n", all[2].block)
	assert.Equal(t, "<"+all[1].ID+">", all[2].Header.Get("WARC-Refers-To"))
	assert.Equal(t, "status: 404\r\nFtp-Reply: 550   no\r\n", all[5].block)
	assert.Equal(t, "application/octet-stream", all[6].Header.Get("Content-Type"))
	assert.Equal(t, "image/png", all[6].Header.Get("WARC-Identified-Payload-Type"))
	assert.Equal(t, TruncatedLength, all[6].Header.Get("WARC-Truncated"))
}
