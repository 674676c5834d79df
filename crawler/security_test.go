// These tests crawl hosts that attack the crawler's network, its logs and its disk.

package crawler

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler/fetch"
)

func TestNoPageLeadsIntoTheOwnNetwork(t *testing.T) {
	var asked atomic.Int64
	inner := listen(t, func(http.ResponseWriter, *http.Request) { asked.Add(1) })
	_, port, err := net.SplitHostPort(inner.addr)
	require.NoError(t, err)
	s := listen(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/":
			w.Header().Set("Content-Type", "text/html")
			for _, host := range []string{"127.0.0.1", "[::1]", "[::ffff:7f00:1]", "0x7f.1", "2130706433", "localhost", "inner.example", "rebind.example"} {
				fmt.Fprintf(w, "<a href=http://%s:%s/linked>x</a>", host, port)
			}
			fmt.Fprint(w, "<a href=/moved>x</a><a href=http://b.example/>x</a>")
		case "/moved":
			http.Redirect(w, r, "http://127.0.0.1:"+port+"/moved", http.StatusFound)
		case "/robots.txt":
			if r.Host == "b.example" { // even robots.txt may not lead there
				http.Redirect(w, r, "http://inner.example:"+port+"/robots.txt", http.StatusFound)
				return
			}
			http.NotFound(w, r)
		default:
			http.NotFound(w, r)
		}
	})
	var n atomic.Int64
	f := openFrontier(t, frontier.Options{Delay: frontier.FixedDelay(time.Millisecond)})
	fetcher, err := fetch.New(fetch.Options{
		Resolve: map[string]string{"a.example": s.addr, "b.example": s.addr},
		Lookup: func(_ context.Context, host string) ([]netip.Addr, error) {
			if host == "rebind.example" && n.Add(1)%2 == 1 {
				return []netip.Addr{netip.MustParseAddr("192.0.2.1")}, nil // not public either, but not the same
			}
			return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
		},
	})
	require.NoError(t, err)
	var logged bytes.Buffer
	c := newCrawler(t, f, fetcher, Options{Logger: slog.New(slog.NewTextHandler(&logged, nil))})
	_, err = c.Seed(t.Context(), "http://a.example/")
	require.NoError(t, err)
	require.NoError(t, c.Run(t.Context()))
	assert.Zero(t, asked.Load())
	p := c.Progress()
	assert.EqualValues(t, 1, p.Pages)
	assert.EqualValues(t, 1, p.Redirects)
	assert.EqualValues(t, 8, p.Blocked, "links to six spellings of hosts, b.example's robots.txt, and what moved")
	assert.Zero(t, p.Failed)
	assert.Contains(t, logged.String(), "not to be contacted: loopback")
}

// hostileText would break lines of a log, or a terminal that shows it.
const hostileText = "\x1b]0;owned\x07\x1b[31m\r\nlevel=ERROR msg=forged\u202e\u0085\u009b31m"

func TestLogsHoldNothingThatAHostSaysRaw(t *testing.T) {
	s := listen(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/robots.txt":
			cut(w, "HTTP/1.1 200 "+hostileText+"\r\nX-"+hostileText+": y\r\n\r\n")
		case r.URL.Path == "/":
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprintf(w, "<a href='/%s'>x</a><a href='http://%s.a.example/'>x</a>", hostileText, hostileText)
		default:
			cut(w, hostileText)
		}
	})
	robots := Options{Robots: anyRobots{}, RobotsWait: time.Millisecond}
	var logged bytes.Buffer
	robots.Logger = slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelDebug}))
	f := openFrontier(t, frontier.Options{Delay: frontier.FixedDelay(time.Millisecond), Retry: frontier.Retries(1, 0), Backoff: frontier.Backoff{Base: time.Millisecond, Max: time.Millisecond},
		Quarantine: frontier.Quarantine{After: 3, Probe: time.Millisecond, Probes: 3}, Logger: robots.Logger})
	c := newCrawler(t, f, s.fetcher(t, fetch.Options{}), robots)
	// As an import would: past the normalizer, which leaves none of this in a URL.
	_, err := f.Add(t.Context(), frontier.Entry{URL: "http://a.example/"}, frontier.Entry{URL: "http://a.example/" + hostileText},
		frontier.Entry{URL: "http://me:hunter2@a.example/x"}, frontier.Entry{URL: "http://a.example/\u202e\u0085\u009b31m"})
	require.Len(t, frontier.EntryErrors(err), 1, "control characters are no part of a URL")
	require.NoError(t, c.Run(t.Context()))
	require.NoError(t, f.Close(), "no event is on its way to the log")
	require.NotZero(t, logged.Len())
	for line := range strings.Lines(logged.String()) {
		assert.True(t, strings.HasPrefix(line, "time="), "a forged line: %q", line)
		assert.NotContains(t, strings.TrimSuffix(line, "\n"), "\x1b")
		for _, r := range strings.TrimSuffix(line, "\n") {
			assert.False(t, r < ' ' || r >= 0x7f && r <= 0x9f || r == '\u202e', "%q in %q", r, line)
		}
		assert.NotContains(t, line, "hunter2")
	}
}

// anyRobots allows everything.
type anyRobots struct{}

func (anyRobots) Read(string, int, []byte) (Rules, bool) { return rfc9309{}.Read("", 404, nil) }

func TestCredentialsGoNowhere(t *testing.T) {
	var headers, redirects atomic.Int64
	s := listen(t, func(w http.ResponseWriter, r *http.Request) {
		dump := fmt.Sprint(r.Header, r.RequestURI, r.Host)
		if strings.Contains(dump, "hunter2") || r.Header.Get("Authorization") != "" || r.Header.Get("Referer") != "" {
			headers.Add(1)
		}
		switch r.URL.Path {
		case "/":
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, `<a href="http://me:hunter2@b.example/linked">x</a><a href=/moved>x</a>`)
		case "/moved" + strings.TrimPrefix(r.Host, "a.example"): // of a.example only
			redirects.Add(1)
			http.Redirect(w, r, "http://me:hunter2@b.example/moved", http.StatusFound)
		case "/linked":
			cut(w, "")
		default:
			http.NotFound(w, r)
		}
	})
	var logged bytes.Buffer
	log := slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelDebug}))
	f := openFrontier(t, frontier.Options{Delay: frontier.FixedDelay(time.Millisecond), Retry: frontier.Retries(1, 0), Logger: log})
	c := newCrawler(t, f, s.fetcher(t, fetch.Options{}), Options{Logger: log})
	_, err := c.Seed(t.Context(), "http://me:hunter2@a.example/", "http://me:hunter2@a b/")
	bad := frontier.EntryErrors(err)
	require.Len(t, bad, 1)
	require.NoError(t, c.Run(t.Context()))
	require.NoError(t, f.Close(), "no event is on its way to the log")
	assert.EqualValues(t, 1, redirects.Load())
	assert.Zero(t, headers.Load())
	assert.NotContains(t, logged.String(), "hunter2")
	for u := range s.asks {
		assert.NotContains(t, u, "hunter2")
	}
	assert.NotContains(t, bad[0].Error(), "hunter2")
}

func TestNoFileIsNamedAfterAURL(t *testing.T) {
	dir := t.TempDir()
	s := listen(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		w.Header().Set("Content-Disposition", `attachment; filename="../../evil"`)
		_, _ = io.WriteString(w, strings.Repeat("<p>text</p>", 100)+`<a href="/..%2f..%2fevil">x</a><a href="/%00/../../..//etc/passwd">x</a>`)
	})
	f := openFrontier(t, frontier.Options{Delay: frontier.FixedDelay(time.Millisecond)})
	var inFiles atomic.Int64
	c := newCrawler(t, f, s.fetcher(t, fetch.Options{BodyMemory: 10, TempDir: dir}), Options{OnPage: func(_ context.Context, p *Page) error {
		if !p.Body.InMemory() {
			inFiles.Add(1)
		}
		files, err := os.ReadDir(dir)
		for _, file := range files {
			assert.Regexp(t, `^rewind-\d+$`, file.Name())
		}
		return err
	}})
	_, err := c.Seed(t.Context(), "http://a.example/../../evil")
	require.NoError(t, err)
	require.NoError(t, c.Run(t.Context()))
	assert.EqualValues(t, 3, inFiles.Load())
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Empty(t, files, "files left")
}

// Whoever names the port of another protocol, nothing is sent there.
func TestNoPageLeadsToThePortsOfOthers(t *testing.T) {
	var asked atomic.Int64
	irc := listen(t, func(http.ResponseWriter, *http.Request) { asked.Add(1) })
	s := listen(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/robots.txt" && r.Host == "b.example":
			http.Redirect(w, r, "http://irc.example:6667/robots.txt", http.StatusFound)
		case r.URL.Path == "/":
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, "<a href=http://irc.example:6667/PRIVMSG>x</a><a href=http://a.example:25/>x</a><a href=/moved>x</a><a href=http://b.example/>x</a>")
		case r.URL.Path == "/moved":
			http.Redirect(w, r, "http://irc.example:6667/moved", http.StatusFound)
		default:
			http.NotFound(w, r)
		}
	})
	f := openFrontier(t, frontier.Options{Delay: frontier.FixedDelay(time.Millisecond)})
	fetcher, err := fetch.New(fetch.Options{Resolve: map[string]string{"a.example": s.addr, "b.example": s.addr, "irc.example": irc.addr, "a.example:25": irc.addr}})
	require.NoError(t, err)
	c := newCrawler(t, f, fetcher, Options{})
	_, err = c.Seed(t.Context(), "http://a.example/", "http://irc.example:6667/seed")
	require.Len(t, frontier.EntryErrors(err), 1)
	assert.ErrorContains(t, err, "port 6667 is another protocol's")
	_, err = f.Add(t.Context(), frontier.Entry{URL: "http://irc.example:6667/imported"}) // past the crawler
	require.NoError(t, err)
	require.NoError(t, c.Run(t.Context()))
	assert.Zero(t, asked.Load())
	p := c.Progress()
	assert.EqualValues(t, 1, p.Pages)
	assert.EqualValues(t, 5, p.FilteredBy["port"], "a seed, two links, a redirect, and what was added")
	assert.EqualValues(t, 1, p.Blocked, "b.example, whose robots.txt is not to be had")
}
