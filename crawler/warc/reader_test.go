// This file tests reading: other programs' files, odd ones, damaged ones.

package warc

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// wget writes WARC/1.0, puts brackets around target URIs, and keeps chunks.
func TestWgetsFiles(t *testing.T) {
	wget, err := exec.LookPath("wget")
	if err != nil {
		t.Skip("wget is not installed")
	}
	pages := map[string]string{"/": "<a href='/two'>two</a><a href='/chunked'>c</a>", "/two": "second page", "/chunked": strings.Repeat("chunk ", 5000)}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, ok := pages[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		for i := 0; i < len(body); i += 10_000 {
			_, _ = io.WriteString(w, body[i:min(len(body), i+10_000)])
			if r.URL.Path == "/chunked" {
				w.(http.Flusher).Flush()
			}
		}
	}))
	defer srv.Close()
	for _, flags := range [][]string{nil, {"--no-warc-compression"}} {
		dir := t.TempDir()
		cmd := exec.Command(wget, append([]string{"-q", "-r", "--no-proxy", "--warc-file=x", "--warc-cdx", srv.URL + "/"}, flags...)...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil && cmd.ProcessState.ExitCode() != 8 { // 8: there is no robots.txt
			t.Fatalf("%v: %s", err, out)
		}
		names, _ := filepath.Glob(filepath.Join(dir, "x.warc*"))
		require.Len(t, names, 1)
		raw, err := os.ReadFile(names[0])
		require.NoError(t, err)
		r := NewReader(bytes.NewReader(raw))
		r.Verify = true
		got := map[string]string{}
		end := int64(0)
		for rec, err := range r.Records() {
			require.NoError(t, err)
			assert.Equal(t, end, rec.Offset)
			assert.Equal(t, "WARC/1.0", rec.Version)
			if rec.Type == Response {
				resp, err := rec.HTTP()
				require.NoError(t, err)
				body, err := io.ReadAll(resp.Body)
				require.NoError(t, err)
				if resp.StatusCode == 200 {
					got[strings.TrimPrefix(rec.TargetURI, srv.URL)] = string(body)
				}
			}
			_, err = io.Copy(io.Discard, rec.Block)
			require.NoError(t, err)
			end = rec.Offset + rec.Size
		}
		assert.Equal(t, pages, got)
		assert.Equal(t, int64(len(raw)), end)
		var lines strings.Builder
		require.NoError(t, index(&lines, bytes.NewReader(raw), "x.warc.gz"))
		assert.GreaterOrEqual(t, strings.Count(lines.String(), `"status":"200"`), 3, lines.String())
	}
}

func record(fields, block string) string {
	return fmt.Sprintf("WARC/1.0\r\n%sWARC-Date: 2020-01-01T00:00:00Z\r\nContent-Length: %d\r\n\r\n%s\r\n\r\n", fields, len(block), block)
}

func zipped(s string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = io.WriteString(z, s)
	_ = z.Close()
	return b.String()
}

func TestOddFiles(t *testing.T) {
	a, b := record("WARC-Type: resource\r\nWARC-Target-URI: <http://a.example/>\r\n", "one"), record("warc-type: RESOURCE\r\nX-Long: a\r\n  b\r\n\tc\r\n", "two")
	for name, file := range map[string]string{
		"plain":                       a + b,
		"a member each":               zipped(a) + zipped(b),
		"both in one member":          zipped(a + b),
		"LF":                          strings.ReplaceAll(a+b, "\r\n", "\n"),
		"more empty lines":            "\r\n" + a + "\r\n\r\n\r\n" + b + "\r\n",
		"no empty lines at the end":   a + strings.TrimSpace(b),
		"no empty lines, compressed":  zipped(strings.TrimSpace(a)) + zipped(strings.TrimSpace(b)),
		"no empty lines between them": strings.TrimSpace(a) + b,
		"an empty member":             zipped(a) + zipped("") + zipped(b),
	} {
		all := readAll(t, strings.NewReader(file))
		require.Len(t, all, 2, name)
		assert.Equal(t, "one", all[0].block, name)
		assert.Equal(t, "two", all[1].block, name)
		assert.Equal(t, "http://a.example/", all[0].TargetURI)
		assert.Equal(t, Resource, all[1].Type)
		assert.Equal(t, "a b c", all[1].Header.Get("x-long"))
	}
	r := NewReader(strings.NewReader(a + b))
	first, err := r.Next()
	require.NoError(t, err)
	_, err = r.Next() // skips the block
	require.NoError(t, err)
	_, err = first.Block.Read(make([]byte, 1))
	assert.Error(t, err)
	_, err = r.Next()
	assert.Equal(t, io.EOF, err)
	_, err = r.Next()
	assert.Equal(t, io.EOF, err)
	_, err = NewReader(strings.NewReader("")).Next()
	assert.Equal(t, io.EOF, err)
}

func TestErrors(t *testing.T) {
	a := record("WARC-Type: resource\r\n", "one")
	lost := errors.New("connection lost")
	for name, row := range map[string]struct {
		file   io.Reader
		offset int64
		want   error
	}{
		"no WARC":         {strings.NewReader("<html>"), 0, ErrTorn},
		"another format":  {strings.NewReader(a + "filedesc://x\r\n"), int64(len(a)), ErrSyntax},
		"no length":       {strings.NewReader(a + "WARC/1.0\r\nWARC-Type: x\r\nWARC-Date: 2020\r\n\r\n"), int64(len(a)), ErrSyntax},
		"bad length":      {strings.NewReader(a + "WARC/1.0\r\nContent-Length: -1\r\n\r\n"), int64(len(a)), ErrSyntax},
		"bad date":        {strings.NewReader(a + "WARC/1.0\r\nWARC-Type: x\r\nContent-Length: 0\r\nWARC-Date: now\r\n\r\n"), int64(len(a)), ErrSyntax},
		"no type":         {strings.NewReader(record("", "")), 0, ErrSyntax},
		"bad line":        {strings.NewReader("WARC/1.0\r\nabc\r\n\r\n"), 0, ErrSyntax},
		"endless header":  {strings.NewReader("WARC/1.0\r\nX: " + strings.Repeat("x", 1<<20)), 0, ErrSyntax},
		"cut in header":   {strings.NewReader(a + a[:20]), int64(len(a)), ErrTorn},
		"cut in block":    {strings.NewReader(a[:len(a)-5]), 0, ErrTorn},
		"cut, compressed": {strings.NewReader(zipped(a) + zipped(a)[:30]), int64(len(zipped(a))), ErrTorn},
		"cut checksum":    {strings.NewReader(zipped(a)[:len(zipped(a))-1]), 0, ErrTorn},
		"wrong checksum":  {strings.NewReader(zipped(a)[:len(zipped(a))-8] + "12345678"), 0, ErrSyntax},
		"not compressed":  {strings.NewReader(zipped(a) + "garbage garbage"), int64(len(zipped(a))), ErrSyntax},
		"reader's error":  {io.MultiReader(strings.NewReader(a[:len(a)-5]), failing{lost}), 0, lost},
		"digest":          {strings.NewReader(record("WARC-Type: x\r\nWARC-Block-Digest: sha1:ABC\r\n", "x")), 0, ErrDigest},
	} {
		r := NewReader(row.file)
		r.Verify = true
		var err error
		for err == nil {
			var rec *Record
			if rec, err = r.Next(); err == nil {
				_, err = io.Copy(io.Discard, rec.Block)
			}
		}
		var e *Error
		require.ErrorAs(t, err, &e, name)
		assert.Equal(t, row.offset, e.Offset, name)
		assert.ErrorIs(t, err, row.want, name)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestDates(t *testing.T) {
	for s, want := range map[string]time.Time{
		"2020-02-03T04:05:06Z":     time.Date(2020, 2, 3, 4, 5, 6, 0, time.UTC),
		"2020-02-03T04:05:06.789Z": time.Date(2020, 2, 3, 4, 5, 6, 789e6, time.UTC),
	} {
		got, err := ParseDate(s)
		require.NoError(t, err)
		assert.Equal(t, want, got)
		assert.Equal(t, s, FormatDate(want.In(time.FixedZone("", 3600))))
	}
	for _, s := range []string{"2020", "2020-02", "2020-02-03", "2020-02-03T04:05Z"} {
		_, err := ParseDate(s)
		assert.NoError(t, err, s)
	}
}

func TestHeader(t *testing.T) {
	h := Header{{"A", "1"}, {"b", "2"}, {"a", "3"}}
	h.Set("A", "4")
	h.Set("C", "5")
	h.Set("B", "")
	assert.Equal(t, Header{{"A", "4"}, {"C", "5"}}, h)
}

func TestHTTP(t *testing.T) {
	message := "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
	for body, want := range map[string]string{"3\r\nabc\r\n0\r\n\r\n": "abc", "plain text": "plain text"} {
		rec, err := NewReader(strings.NewReader(record("WARC-Type: response\r\nContent-Type: application/http; msgtype=response\r\n", message+body))).Next()
		require.NoError(t, err)
		resp, err := rec.HTTP()
		require.NoError(t, err)
		got, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		assert.Equal(t, want, string(got))
	}
	rec, err := NewReader(strings.NewReader(record("WARC-Type: response\r\nContent-Type: application/http\r\n", "HTTP/1.1"))).Next()
	require.NoError(t, err)
	_, err = rec.HTTP()
	assert.ErrorIs(t, err, ErrSyntax)
	rec, err = NewReader(strings.NewReader(record("WARC-Type: metadata\r\n", "x: y"))).Next()
	require.NoError(t, err)
	_, err = rec.HTTP()
	assert.Error(t, err)
}

// Any bytes are read to an end; records lie where they say they do.
func FuzzReader(f *testing.F) {
	a := record("WARC-Type: response\r\nContent-Type: application/http\r\nWARC-Target-URI: http://a.example/\r\n", "HTTP/1.1 200 OK\r\n\r\nx")
	for _, s := range []string{a + a, zipped(a) + zipped(a), zipped(a + a), a[:70], zipped(a)[:50], strings.ReplaceAll(a, "\r\n", "\n"), "\r\n" + a, "WARC/1.1\nA: b\n c\n\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		r := NewReader(bytes.NewReader(file))
		r.Verify = true
		end := int64(0)
		for rec, err := range r.Records() {
			if err != nil {
				var e *Error
				if !errors.As(err, &e) {
					t.Errorf("%v is no *Error", err)
				}
				break
			}
			if rec.Offset > int64(len(file)) || !r.zipped && rec.Offset < end {
				t.Errorf("record at %d of %d, after %d", rec.Offset, len(file), end)
			}
			if resp, err := rec.HTTP(); err == nil {
				_, _ = io.Copy(io.Discard, resp.Body)
			}
			n, err := io.Copy(io.Discard, rec.Block)
			if n > rec.Length || err == nil && rec.Size < 1 {
				t.Errorf("%d bytes of %d, size %d", n, rec.Length, rec.Size)
			}
			end = rec.Offset + rec.Size
		}
		_ = index(io.Discard, bytes.NewReader(file), "x")
	})
}

// index writes the index of a WARC file, possibly another program's, as sorted lines of CDXJ. The
// lines refer to the file by name.
func index(out io.Writer, file io.Reader, name string) error {
	var lines []string
	for rec, err := range NewReader(file).Records() {
		if err != nil {
			return err
		}
		line, err := surveyRecord(rec, name)
		if err != nil {
			return err
		}
		if line != nil {
			lines = append(lines, line.String()+"\n")
		}
	}
	slices.Sort(lines)
	for _, l := range lines {
		if _, err := io.WriteString(out, l); err != nil {
			return err
		}
	}
	return nil
}
