// These tests read what a crawl has archived, like the programs that display archives.

package processing

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler"
	"github.com/seed-7440039f/frontier/crawler/fetch"
	"github.com/seed-7440039f/frontier/crawler/spool"
	"github.com/seed-7440039f/frontier/crawler/warc"
)

// kept is a record that was archived, with its block.
type kept struct {
	*warc.Record
	block string
}

// records returns the records of all files of a folder, without warcinfo.
func records(t testing.TB, dir string) (all []kept) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.warc.gz"))
	require.NoError(t, err)
	for _, name := range files {
		f, err := os.Open(name)
		require.NoError(t, err)
		r := warc.NewReader(f)
		r.Verify = true
		for rec, err := range r.Records() {
			require.NoError(t, err)
			b, err := io.ReadAll(rec.Block)
			require.NoError(t, err)
			if rec.Type != warc.Info {
				all = append(all, kept{rec, string(b)})
			}
		}
		require.NoError(t, f.Close())
	}
	return all
}

// archiveTwice crawls a page twice that has not changed, in two runs of the archive, and
// returns what the server got.
func archiveTwice(t *testing.T, dir string, forget bool) (asked []string) {
	t.Helper()
	var mu sync.Mutex
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			http.NotFound(w, r)
			return
		}
		mu.Lock()
		asked = append(asked, r.URL.Path+" "+r.Header.Get("If-None-Match"))
		mu.Unlock()
		w.Header().Set("Etag", `"v1"`)
		w.Header().Set("Content-Type", "text/html")
		if r.Header.Get("If-None-Match") == `"v1"` {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		switch r.URL.Path {
		case "/":
			fmt.Fprint(w, "<a href=/moved>m</a>")
		case "/moved":
			http.Redirect(w, r, "/long", http.StatusFound)
		default:
			fmt.Fprint(w, strings.Repeat("long ", 1_000_000)) // 5 MB: from disk
		}
	})}
	go func() { _ = server.Serve(l) }()
	defer server.Close()

	fo, co, err := options(l.Addr().String())
	require.NoError(t, err)
	fo.Scheduler = frontier.SchedulerFunc(func(v frontier.Visit) time.Time {
		if v.History.Visits > 1 || strings.HasSuffix(v.Entry.URL, "/moved") {
			return time.Time{}
		}
		return v.Outcome.Ended.Add(300 * time.Millisecond)
	})
	f, err := frontier.Open(t.Context(), fo)
	require.NoError(t, err)
	defer f.Close()
	w, err := warc.Open(dir, warc.Options{Remember: 100})
	require.NoError(t, err)
	AddArchive(&co, w, ArchiveOptions{})
	whole := co.Whole
	co.Whole = func(l frontier.Lease) bool { return forget || whole(l) }
	c, err := crawler.New(f, co)
	require.NoError(t, err)
	_, err = c.Seed(t.Context(), "http://a.example/")
	require.NoError(t, err)
	require.NoError(t, c.Run(t.Context()))
	require.NoError(t, w.Close())
	return asked
}

// ending is a body that its crawl is cut in.
type ending struct {
	io.ReadSeeker
	cut  func()
	left int // reads until then
}

func (e *ending) Read(p []byte) (int, error) {
	if e.left--; e.left == 0 {
		e.cut()
	}
	return e.ReadSeeker.Read(p)
}

// A crawl that is cut waits for no long body to be packed, and its archive has no part of it.
func TestACutCrawlPacksNoBody(t *testing.T) {
	for _, reads := range []int{0, 1, 20, 330} { // digesting takes some 320, and so does packing
		dir := t.TempDir()
		w, err := warc.Open(dir, warc.Options{})
		require.NoError(t, err)
		ctx, cut := context.WithCancel(t.Context())
		long := spool.Of([]byte(strings.Repeat("long ", 2<<20)))
		long.Until(ctx)
		body := &ending{long.Reader(), cut, reads}
		if reads == 0 {
			cut()
		}
		err = w.WriteExchange(warc.Exchange{URL: "http://a.example/", Status: 200, Header: http.Header{}, Payload: body})
		assert.ErrorIs(t, err, context.Canceled, "%d reads", reads)
		assert.Less(t, -body.left, 700, "the rest was read")
		require.NoError(t, w.Close())
		assert.Empty(t, records(t, dir))
	}
}

func TestAnArchiveTellsWhatWasSaid(t *testing.T) {
	dir := t.TempDir()
	asked := archiveTwice(t, dir, false)
	assert.ElementsMatch(t, []string{"/ ", "/moved ", "/long ", `/ "v1"`, `/long "v1"`}, asked)
	first := map[string]kept{}
	about, revisits := map[string]string{}, 0
	requests := map[string][]string{}
	for _, r := range records(t, dir) {
		switch r.Type {
		case warc.Response:
			if _, ok := first[r.TargetURI]; !ok {
				first[r.TargetURI] = r
			}
		case warc.Revisit:
			revisits++
			of := first[r.TargetURI]
			assert.Equal(t, warc.ProfileNotModified, r.Header.Get("WARC-Profile"))
			assert.Equal(t, "<"+of.ID+">", r.Header.Get("WARC-Refers-To"))
			assert.Equal(t, of.TargetURI, r.Header.Get("WARC-Refers-To-Target-URI"))
			assert.Equal(t, of.Header.Get("WARC-Date"), r.Header.Get("WARC-Refers-To-Date"))
			assert.Equal(t, of.Header.Get("WARC-Payload-Digest"), r.Header.Get("WARC-Payload-Digest"))
		case warc.Request:
			requests[r.TargetURI] = append(requests[r.TargetURI], r.block)
		case warc.Metadata:
			about[r.TargetURI] = r.block
		}
	}
	assert.Equal(t, 2, revisits)
	assert.Contains(t, first["http://a.example/long"].block, strings.Repeat("long ", 1_000_000))
	require.Len(t, requests["http://a.example/"], 2)
	again := requests["http://a.example/"][1]
	assert.True(t, strings.HasPrefix(again, "GET / HTTP/1.1\r\nHost: a.example\r\nUser-Agent: "+agent+"\r\n"), "%s", again)
	for _, field := range []string{"If-None-Match: \"v1\"\r\n", "Accept: text/html,", "Accept-Encoding: gzip, br, zstd\r\n"} {
		assert.Contains(t, again, field)
	}
	assert.True(t, strings.HasSuffix(again, "\r\n\r\n"))
	assert.NotContains(t, requests["http://a.example/"][0], "If-None-Match")
	assert.Equal(t, "depth: 0\r\nhopsFromSeed: \r\n", about["http://a.example/"])
	assert.Equal(t, "depth: 1\r\nhopsFromSeed: L\r\nvia: http://a.example/\r\n", about["http://a.example/moved"])
	assert.Equal(t, "depth: 1\r\nhopsFromSeed: LR\r\nvia: http://a.example/moved\r\n", about["http://a.example/long"])
}

// A page whose capture is not remembered is asked for as a whole.
func TestNothingIsUnchangedThatIsNotArchived(t *testing.T) {
	for _, a := range archiveTwice(t, t.TempDir(), true) {
		assert.NotContains(t, a, "v1")
	}
}

func TestABrokenPageIsArchivedAsTruncated(t *testing.T) {
	dir := t.TempDir()
	w, err := warc.Open(dir, warc.Options{})
	require.NoError(t, err)
	res := &fetch.Result{URL: "http://a.example/", Status: 200, Proto: "HTTP/2.0", Truncated: true, Broken: "disconnect"}
	require.NoError(t, Archive(w, agent)(context.Background(), &crawler.Page{Lease: frontier.Lease{Entry: frontier.Entry{URL: res.URL}}, Result: res}))
	require.NoError(t, w.Close())
	all := records(t, dir)
	assert.Equal(t, warc.TruncatedDisconnect, all[0].Header.Get("WARC-Truncated"))
	assert.Equal(t, "h2", all[0].Header.Get("WARC-Protocol"))
	assert.Equal(t, "h2", all[1].Header.Get("WARC-Protocol"))
}

// Another program's opinion of all of it.
func TestArchivesPassWarcio(t *testing.T) {
	if _, err := exec.LookPath("warcio"); err != nil {
		t.Skip("warcio is not installed (pip install warcio): archives are checked by our own reader only")
	}
	dir := t.TempDir()
	archiveTwice(t, dir, false)
	files, err := filepath.Glob(filepath.Join(dir, "*.warc.gz"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	out, err := exec.Command("warcio", append([]string{"check", "-v"}, files...)...).CombinedOutput()
	assert.NoError(t, err, "%s", out)
	assert.NotContains(t, string(out), "fail")
}
