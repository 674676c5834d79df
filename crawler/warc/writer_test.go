// This file tests what is written: that it can be read back, what is remembered, what
// rotation and indexes do.

package warc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var captured = time.Date(2026, 11, 21, 10, 20, 30, 0, time.UTC)

func open(t testing.TB, dir string, o Options) *Writer {
	t.Helper()
	if o.Now == nil {
		o.Now = func() time.Time { return captured }
	}
	w, err := Open(dir, o)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, w.Close()) })
	return w
}

func page(url, body string) Exchange {
	return Exchange{
		URL: url, Date: captured, IP: "192.0.2.1", RequestHeader: http.Header{"User-Agent": {"test/1.0"}},
		Status: 200, Header: http.Header{"Content-Type": {"text/html; charset=utf-8"}, "Transfer-Encoding": {"chunked"}, "Content-Length": {"7"}, "X-Odd": {"a\r\nb"}},
		Body: []byte(body), Metadata: Header{{"via", "http://a.example/\r\nX: y"}, {"hopsFromSeed", "L"}},
	}
}

// stored is a record and its block.
type stored struct {
	Record
	block string
}

func readAll(t testing.TB, r io.Reader) (all []stored) {
	t.Helper()
	reader := NewReader(r)
	reader.Verify = true
	for rec, err := range reader.Records() {
		require.NoError(t, err)
		b, err := io.ReadAll(rec.Block)
		require.NoError(t, err)
		all = append(all, stored{*rec, string(b)})
	}
	return all
}

func readFolder(t testing.TB, dir string) (all []stored) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.warc*"))
	require.NoError(t, err)
	for _, name := range names {
		f, err := os.Open(name)
		require.NoError(t, err)
		all = append(all, readAll(t, f)...)
		require.NoError(t, f.Close())
	}
	return all
}

func types(all []stored) (names []string) {
	for _, r := range all {
		names = append(names, r.Type)
	}
	return names
}

func TestUndecodedBodyKeepsItsCoding(t *testing.T) {
	dir := t.TempDir()
	w := open(t, dir, Options{})
	e := page("http://a.example/", "\x1f\x9d\x90")
	e.Header.Set("Content-Encoding", "compress")
	require.NoError(t, w.WriteExchange(e))
	require.NoError(t, w.Close())
	assert.Contains(t, readFolder(t, dir)[1].block, "\r\nContent-Encoding: compress\r\n")
}

func TestExchange(t *testing.T) {
	for _, plain := range []bool{false, true} {
		dir := t.TempDir()
		w := open(t, dir, Options{Plain: plain, Info: Header{{"operator", "me"}}})
		require.NoError(t, w.WriteExchange(page("http://a.example/x?y", "<p>hello")))
		require.NoError(t, w.Close())
		all := readFolder(t, dir)
		require.Equal(t, []string{Info, Response, Request, Metadata}, types(all))
		assert.Contains(t, all[0].block, "operator: me\r\n")
		assert.Equal(t, "frontier-20261121102030-00001.warc"+map[bool]string{false: ".gz"}[plain], all[0].Header.Get("WARC-Filename"))
		r := all[1]
		assert.Equal(t, "http://a.example/x?y", r.TargetURI)
		assert.Equal(t, captured, r.Date)
		assert.Equal(t, "WARC/1.1", r.Version)
		assert.Equal(t, "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nX-Odd: a  b\r\nContent-Length: 8\r\n\r\n<p>hello", r.block)
		assert.Equal(t, Digest([]byte("<p>hello")), r.Header.Get("WARC-Payload-Digest"))
		assert.Equal(t, Digest([]byte(r.block)), r.Header.Get("WARC-Block-Digest"))
		assert.Equal(t, "192.0.2.1", r.Header.Get("WARC-IP-Address"))
		assert.Equal(t, "GET /x?y HTTP/1.1\r\nHost: a.example\r\nUser-Agent: test/1.0\r\n\r\n", all[2].block)
		assert.Equal(t, "via: http://a.example/  X: y\r\nhopsFromSeed: L\r\n", all[3].block)
		for _, other := range all[2:] {
			assert.Equal(t, "<"+r.ID+">", other.Header.Get("warc-concurrent-to"))
		}
	}
}

// The digest is the same as that of other tools.
func TestDigest(t *testing.T) {
	assert.Equal(t, "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ", Digest(nil))
}

func TestRevisits(t *testing.T) {
	dir := t.TempDir()
	w := open(t, dir, Options{Remember: 2})
	write := func(url, body string) {
		e := page(url, body)
		e.RequestHeader, e.Metadata = nil, nil
		require.NoError(t, w.WriteExchange(e))
	}
	write("http://a.example/1", "one")
	write("http://b.example/1", "one")
	write("http://a.example/", "")
	write("http://b.example/", "") // no payload is no duplicate
	write("http://a.example/2", "two")
	write("http://a.example/3", "three")
	write("http://c.example/1", "one") // forgotten by then
	cut := page("http://a.example/cut", "two")
	cut.Truncated = TruncatedLength
	require.NoError(t, w.WriteExchange(cut))
	for _, url := range []string{"http://c.example/1", "http://a.example/2"} { // the other is forgotten
		require.NoError(t, w.WriteExchange(Exchange{URL: url, Status: 304, Header: http.Header{"Etag": {`"x"`}}}))
	}
	require.NoError(t, w.Close())
	var all []stored
	for _, r := range readFolder(t, dir) {
		if r.Type == Response || r.Type == Revisit {
			all = append(all, r)
		}
	}
	assert.Equal(t, []string{Response, Revisit, Response, Response, Response, Response, Response, Response, Revisit, Response}, types(all))
	first, again, third, cutOff, unchanged := all[0], all[1], all[6], all[7], all[8]
	assert.Equal(t, ProfileIdentical, again.Header.Get("WARC-Profile"))
	assert.Equal(t, "<"+first.ID+">", again.Header.Get("WARC-Refers-To"))
	assert.Equal(t, "http://a.example/1", again.Header.Get("WARC-Refers-To-Target-URI"))
	assert.Equal(t, "2026-11-21T10:20:30Z", again.Header.Get("WARC-Refers-To-Date"))
	assert.Equal(t, first.Header.Get("WARC-Payload-Digest"), again.Header.Get("WARC-Payload-Digest"))
	assert.True(t, strings.HasSuffix(again.block, "\r\n\r\n"), "the header only")
	assert.Equal(t, TruncatedLength, cutOff.Header.Get("WARC-Truncated"))
	assert.Equal(t, ProfileNotModified, unchanged.Header.Get("WARC-Profile"))
	assert.Equal(t, "HTTP/1.1 304 Not Modified\r\nEtag: \"x\"\r\n\r\n", unchanged.block)
	assert.Equal(t, "<"+third.ID+">", unchanged.Header.Get("WARC-Refers-To"))
	assert.Equal(t, "http://c.example/1", unchanged.Header.Get("WARC-Refers-To-Target-URI"))
	assert.Equal(t, "2026-11-21T10:20:30Z", unchanged.Header.Get("WARC-Refers-To-Date"))
	assert.Equal(t, Digest([]byte("one")), unchanged.Header.Get("WARC-Payload-Digest"))
}

func TestRotationAndIndex(t *testing.T) {
	dir := t.TempDir()
	w := open(t, dir, Options{MaxSize: 4000, Prefix: "x"})
	urls := map[string]string{}
	for i := range 40 {
		e := page(fmt.Sprintf("http://www.host%d.example/%d?b=2&a=1", i%3, i), fmt.Sprintf("body %d", i))
		urls[e.URL] = string(e.Body)
		require.NoError(t, w.WriteExchange(e))
	}
	require.NoError(t, w.Close())
	require.NoError(t, w.Close())
	assert.ErrorIs(t, w.Write(&Record{Type: Resource}), ErrClosed)
	left, _ := filepath.Glob(filepath.Join(dir, "*.open"))
	assert.Empty(t, left)
	files, _ := filepath.Glob(filepath.Join(dir, "x-*.warc.gz"))
	indexes, _ := filepath.Glob(filepath.Join(dir, "x-*.cdxj"))
	assert.Greater(t, len(files), 3)
	assert.Len(t, indexes, len(files))
	for i, name := range indexes {
		raw, err := os.ReadFile(name)
		require.NoError(t, err)
		lines := strings.Split(strings.TrimSpace(string(raw)), "\n")
		assert.True(t, slices.IsSorted(lines))
		for _, s := range lines {
			l, err := ParseIndexLine(s)
			require.NoError(t, err)
			assert.Equal(t, SURT(l.URL), l.Key)
			assert.Equal(t, captured, l.Date)
			assert.Equal(t, [3]string{"text/html", "200", filepath.Base(files[i])}, [3]string{l.MIME, l.Status, l.Filename})
			assert.Equal(t, urls[l.URL], lookUp(t, dir, l), l.URL)
			delete(urls, l.URL)
		}
		var again strings.Builder
		f, err := os.Open(files[i])
		require.NoError(t, err)
		require.NoError(t, index(&again, f, filepath.Base(files[i])))
		require.NoError(t, f.Close())
		assert.Equal(t, string(raw), again.String(), "an index made afterwards is the same")
	}
	assert.Empty(t, urls, "every page is in an index")

	dir = t.TempDir()
	w = open(t, dir, Options{MaxRecords: 4, NoIndex: true})
	for i := range 4 {
		require.NoError(t, w.WriteExchange(page(fmt.Sprint("http://a.example/", i), "x")))
	}
	rotate(t, w)
	names, _ := os.ReadDir(dir)
	assert.Len(t, names, 4)
}

// lookUp returns the payload that an index line leads to.
func lookUp(t testing.TB, dir string, l IndexLine) string {
	raw, err := os.ReadFile(filepath.Join(dir, l.Filename))
	require.NoError(t, err)
	offset, _ := strconv.Atoi(l.Offset)
	length, _ := strconv.Atoi(l.Length)
	rec, err := NewReader(bytes.NewReader(raw[offset : offset+length])).Next()
	require.NoError(t, err)
	resp, err := rec.HTTP()
	require.NoError(t, err)
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return string(body)
}

// What the Internet Archive's library surt 0.3 makes of them.
func TestSURT(t *testing.T) {
	for url, want := range map[string]string{
		"http://www.Example.com/":                "com,example)/",
		"https://example.com:443/A/B/?z=1&A=2#f": "com,example)/a/b?a=2&z=1",
		"http://www2.a.example.co.uk:8080":       "uk,co,example,a:8080)/",
		"http://192.0.2.1/x":                     "1,2,0,192)/x",
		"http://[2001:db8::1]/x":                 "2001:db8::1)/x",
		"http://a.example/x?":                    "example,a)/x",
		"http://a.example/x?PHPSESSID=0123456789abcdef0123456789abcdef&b=1": "example,a)/x?b=1",
		"http://a.example//a//b/":                "example,a)/a/b",
		"http://a.example/?b&a&&c=":              "example,a)/?&a&b&c=",
		"http://a.example/%41%7ex%2525%20\u00e9": "example,a)/a~x%25%20%c3%a9",
		"dns:a.example":                          "dns:a.example",
	} {
		assert.Equal(t, want, SURT(url), url)
	}
}

func TestConcurrentWrites(t *testing.T) {
	dir := t.TempDir()
	w := open(t, dir, Options{MaxSize: 10_000, Remember: 10})
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 20 {
				assert.NoError(t, w.WriteExchange(page(fmt.Sprintf("http://a.example/%d/%d", g, i), fmt.Sprint("body ", i))))
			}
		})
	}
	wg.Wait()
	require.NoError(t, w.Close())
	seen := map[string]bool{}
	var last stored
	for _, r := range readFolder(t, dir) {
		if r.Type == Request {
			assert.Equal(t, last.TargetURI, r.TargetURI, "the records of an exchange are neighbours")
		}
		if last = r; r.Type == Response || r.Type == Revisit {
			seen[r.TargetURI] = true
		}
	}
	assert.Len(t, seen, 160)
}

func TestBadRecordsAreRefused(t *testing.T) {
	w := open(t, t.TempDir(), Options{})
	good := &Record{Type: Resource, TargetURI: "http://a.example/", Block: strings.NewReader("x")}
	for _, bad := range []*Record{
		{Type: Resource, TargetURI: "http://a.example/\r\nX: y"},
		{Type: Resource, Header: Header{{"a b", "c"}}},
		{Type: Resource, Block: io.MultiReader(strings.NewReader("half"), errReader{})},
	} {
		assert.Error(t, w.Write(good, bad))
	}
	names, _ := os.ReadDir(w.dir)
	assert.Empty(t, names, "nothing was written")
	_, err := Open(t.TempDir(), Options{Prefix: "../x", MaxSize: -1, MaxRecords: -1, Remember: -1})
	assert.ErrorContains(t, err, "Prefix is \"../x\"; want letters, digits, hyphens and underscores\nMaxSize is -1; want >= 0\nMaxRecords is -1; want >= 0\nRemember is -1; want >= 0")
}

type errReader struct{}

func (errReader) Read([]byte) (int, error) { return 0, errors.New("broken") }

func TestOneWriterForAFolder(t *testing.T) {
	dir := t.TempDir()
	w := open(t, dir, Options{})
	_, err := Open(dir, Options{})
	assert.ErrorIs(t, err, ErrInUse)
	require.NoError(t, w.Close())
	require.NoError(t, open(t, dir, Options{}).Close())
}

// Files started in the same second have different names.
func TestNamesAreNotTakenTwice(t *testing.T) {
	dir := t.TempDir()
	for range 3 {
		w := open(t, dir, Options{})
		require.NoError(t, w.WriteExchange(page("http://a.example/", "x")))
		require.NoError(t, w.Close())
	}
	names, _ := filepath.Glob(filepath.Join(dir, "*.warc.gz"))
	assert.Len(t, names, 3)
}

func BenchmarkWriteExchange(b *testing.B) {
	w := open(b, b.TempDir(), Options{})
	e := page("http://a.example/", strings.Repeat("<p>A sentence has several words, some of them longer than others.</p>\n", 300))
	b.SetBytes(int64(len(e.Body)))
	b.ReportAllocs()
	for b.Loop() {
		if err := w.WriteExchange(e); err != nil {
			b.Fatal(err)
		}
	}
}
