// This file tests what the command records of ends, and answers from that.

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier/console"
	"github.com/seed-7440039f/frontier/crawler/backup"
	"github.com/seed-7440039f/frontier/crawler/crawllog"
)

// moody serves one page of each kind. Once it is well, none fails.
func moody(t *testing.T) (addr string, well *atomic.Bool) {
	well = &atomic.Bool{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/robots.txt":
			fmt.Fprint(w, "User-agent: *\nDisallow: /private")
		case "/bad":
			if !well.Load() {
				w.WriteHeader(http.StatusInternalServerError)
			}
		case "/gone":
			http.NotFound(w, r)
		default:
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, `<a href="/bad">1</a><a href="/gone">2</a><a href="/private">3</a><a href="http://other.example/">4</a>`)
		}
	}))
	t.Cleanup(s.Close)
	return s.Listener.Addr().String(), well
}

// crawlMoody crawls it until nothing is left.
func crawlMoody(t *testing.T, addr, dir string, more ...string) {
	t.Helper()
	args := append([]string{"-dir", dir, "-resolve", "*.example=" + addr, "-retry-tries", "2", "-retry-wait", "1ms"}, more...)
	status, _, stderr := command(t, t.Context(), append(args, "http://a.example/")...)
	require.Zero(t, status, stderr)
}

func readLog(t *testing.T, path string) (all []crawllog.Record) {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		var r crawllog.Record
		require.NoError(t, json.Unmarshal(s.Bytes(), &r))
		all = append(all, r)
	}
	return all
}

// explain answers for a URL that was fetched, given up, refused, not taken as a link, or never seen; URLs
// that were given up can be listed and brought back.
func TestWhatBecameOfAURL(t *testing.T) {
	addr, well := moody(t)
	dir := filepath.Join(t.TempDir(), "state")
	logFile := filepath.Join(t.TempDir(), "crawl.log")
	crawlMoody(t, addr, dir, "-log", logFile)
	ok := func(args ...string) string {
		t.Helper()
		status, out, stderr := operate(t, append([]string{args[0], "-dir", dir}, args[1:]...)...)
		require.Zero(t, status, stderr)
		return out
	}
	assert.Regexp(t, `last +fetched with status 200: \d+ bytes in .*\nwhen +20`, ok("explain", "http://a.example/"))
	assert.Regexp(t, `last +given up: `, ok("explain", "http://a.example/bad"))
	assert.Regexp(t, `last +the server answered 404`, ok("explain", "http://a.example/gone"))
	assert.Regexp(t, `last +not fetched, refused by robots.txt`, ok("explain", "http://a.example/private"))
	assert.Regexp(t, `last +a link that was not taken, refused by scope`, ok("explain", "http://other.example/"))
	assert.Regexp(t, `found on +http://a.example/\n`, ok("explain", "http://other.example/"))
	assert.Regexp(t, `last +nothing is recorded of it since the record begins, 20`, ok("explain", "http://a.example/unheard-of"))
	assert.Contains(t, ok("explain", "-json", "http://a.example/gone"), `"outcome": "gone"`)

	failed := ok("ends", "-failed")
	assert.Contains(t, failed, "http://a.example/bad")
	assert.NotContains(t, failed, "http://a.example/gone")
	assert.Contains(t, ok("ends", "-rule", "robots.txt"), "http://a.example/private")
	assert.Contains(t, ok("ends", "-links"), "http://other.example/")
	assert.Equal(t, 4, strings.Count(ok("ends", "-json"), "\n"))
	assert.Contains(t, ok("ends", "-n", "1"), "There are more")
	for want, q := range map[string]console.EndsQuery{
		"http://a.example/gone":    {What: "gone", N: 5},
		"http://a.example/bad":     {What: "given up", Host: "a.example", N: 5},
		"http://a.example/private": {Match: "priv", N: 5},
		"":                         {Host: "b.example", N: 5},
	} {
		list, err := (&recordFlags{ends: &endsLog{}}).newest(dir)(t.Context(), q)
		require.NoError(t, err)
		var urls []string
		for _, e := range list {
			urls = append(urls, e.URL)
		}
		assert.Equal(t, want, strings.Join(urls, " "))
	}
	status, _, stderr := operate(t, "ends", "-dir", dir, "-outcome", "bananas")
	assert.Equal(t, exitUsage, status)
	assert.Contains(t, stderr, "there is no outcome \"bananas\"; there are fetched, ")
	status, _, stderr = operate(t, "ends", "-dir", t.TempDir())
	assert.Equal(t, exitUsage, status)
	assert.Contains(t, stderr, "there is no crawl in")

	well.Store(true)
	assert.Equal(t, "1 of 1 URLs come again, ahead of everything else\n", ok("retry"))
	crawlMoody(t, addr, dir, "-log", logFile)
	assert.Regexp(t, `last +fetched with status 200`, ok("explain", "http://a.example/bad"))
	assert.Equal(t, "no URL ended so\n", ok("retry"))

	outcomes := map[string][]crawllog.Outcome{}
	for _, r := range readLog(t, logFile) {
		outcomes[r.URL] = append(outcomes[r.URL], r.Outcome)
	}
	assert.Equal(t, map[string][]crawllog.Outcome{
		"":                            {crawllog.Opened, crawllog.Closed, crawllog.Opened, crawllog.Closed},
		"http://a.example/robots.txt": {crawllog.Robots, crawllog.Robots},
		"http://a.example/":           {crawllog.Fetched},
		"http://a.example/bad":        {crawllog.Failed, crawllog.GivenUp, crawllog.Fetched},
		"http://a.example/gone":       {crawllog.Gone},
		"http://a.example/private":    {crawllog.Refused},
	}, outcomes)
}

// What was refused and is not wanted keeps nothing else from coming back.
// The page shows what the record says of a URL.
func TestThePageKnowsWhatBecameOfAURL(t *testing.T) {
	addr, _ := moody(t)
	dir := filepath.Join(t.TempDir(), "state")
	crawlMoody(t, addr, dir)
	w := recordFlags{max: 1 << 20}
	require.Nil(t, w.shown(dir), "nothing is recorded")
	require.NoError(t, w.open(dir, slog.New(slog.DiscardHandler)))
	defer func() { require.NoError(t, w.close()) }()
	require.Nil(t, w.shown(""))
	became := w.shown(dir)
	list, err := became(t.Context(), "http://a.example/bad")
	require.NoError(t, err)
	require.Len(t, list, 2, "the newest first")
	assert.Equal(t, []string{"given up", "failed"}, []string{list[0].What, list[1].What})
	assert.Equal(t, http.StatusInternalServerError, list[1].Status)
	list, err = became(t.Context(), "http://other.example/")
	require.NoError(t, err)
	require.Len(t, list, 1, "a link that was not taken")
	assert.Equal(t, "refused", list[0].What)
	list, err = became(t.Context(), "http://a.example/unheard-of")
	require.NoError(t, err)
	assert.Empty(t, list)
}

func TestRetryPassesOverWhatIsNotWanted(t *testing.T) {
	addr, _ := moody(t)
	dir := filepath.Join(t.TempDir(), "state")
	crawlMoody(t, addr, dir)
	crawlMoody(t, addr, dir, "-exclude", "gone")
	status, out, stderr := operate(t, "retry", "-dir", dir, "-outcome", "gone,given-up")
	assert.Equal(t, exitError, status)
	assert.Contains(t, out, "1 of 2 URLs come again")
	assert.Contains(t, stderr, "excluded by")
}

func TestARecordIsNotKept(t *testing.T) {
	addr, _ := moody(t)
	dir := filepath.Join(t.TempDir(), "state")
	crawlMoody(t, addr, dir, "-log-max-bytes", "0")
	assert.NoDirExists(t, filepath.Join(dir, endsFolder))
	for want, args := range map[string][]string{
		"-log-max-bytes is 1k; want 0, or at least 1M":       {"-log-max-bytes", "1k"},
		"-log-max-bytes 0, -log x: 0 keeps no record, so th": {"-log-max-bytes", "0", "-log", "x"},
	} {
		_, err := parseCrawl(append(args, "http://a.example/"))
		assert.ErrorContains(t, err, want)
	}
	status, _, stderr := command(t, t.Context(), "-log", dir, "-resolve", "*.example="+addr, "http://a.example/")
	assert.Equal(t, exitError, status)
	assert.Contains(t, stderr, "is a directory")
}

// A record that cannot be written is logged, and the command fails.
func TestALogThatIsFullIsTold(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("no /dev/full")
	}
	addr, _ := moody(t)
	status, _, stderr := command(t, t.Context(), "-log", "/dev/full", "-resolve", "*.example="+addr, "-retry-tries", "1", "http://a.example/")
	assert.Equal(t, exitError, status)
	assert.Contains(t, stderr, "no space left")
}

// A checkpoint has the record in the folder of the crawl.
func TestACheckpointHasTheRecord(t *testing.T) {
	w := recordFlags{max: 1 << 20}
	dir := filepath.Join(t.TempDir(), "state")
	require.NoError(t, w.open(dir, nil))
	defer func() { assert.NoError(t, w.close()) }()
	w.record()(crawllog.Record{URL: "http://a.example/", Outcome: crawllog.Gone, Attempt: 1})
	to := filepath.Join(t.TempDir(), "copy")
	p := w.part(backup.Part{Name: "frontier", Copy: w.ends.main.CopyTo})
	require.NoError(t, p.Copy(t.Context(), to))
	r, ok, err := lastEnd(to, "http://a.example/")
	require.NoError(t, err)
	require.True(t, ok)
	assert.Equal(t, crawllog.Gone, r.Outcome)
}

// What came and cannot be read is seen in the list of ends, in the explanation of its URL, and in the last
// lines: a page, a sitemap, and a robots.txt, for which its site waits.
func TestWhatCannotBeReadIsSaid(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		coded := r.Host == "held.example" || r.URL.Path == "/coded"
		if coded {
			w.Header().Set("Content-Encoding", "compress")
		}
		w.Header().Set("Content-Type", "text/html")
		switch {
		case coded:
			_, _ = w.Write([]byte("\x1f\x9d\x90\x00\x01"))
		case r.URL.Path == "/robots.txt":
			fmt.Fprint(w, "Sitemap: /map.xml")
		case r.URL.Path == "/map.xml":
			fmt.Fprint(w, `<html>no sitemap</html>`)
		case r.URL.Path == "/":
			fmt.Fprint(w, `<a href="/coded">`)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(s.Close)
	dir := filepath.Join(t.TempDir(), "state")
	status, out, stderr := command(t, t.Context(), "-dir", dir, "-resolve", "*.example="+s.Listener.Addr().String(), "-delay", "0s", "-sitemaps", "-max-time", "1s",
		"http://a.example/", "http://held.example/")
	require.Equal(t, exitLimit, status, stderr)
	coding := `its Content-Encoding cannot be undone: "compress"`
	assert.Contains(t, out, "not read: 2 of the pages have an unknown coding, or are called sitemaps and are none;")
	assert.Contains(t, out, "robots.txt files not read: 1, whose sites wait;")
	ok := func(args ...string) string {
		t.Helper()
		status, out, stderr := operate(t, append([]string{args[0], "-dir", dir}, args[1:]...)...)
		require.Zero(t, status, stderr)
		return out
	}
	assert.Regexp(t, `last +fetched with status 200: .*; `+coding, ok("explain", "http://a.example/coded"))
	assert.Regexp(t, `last +fetched with status 200: .*; it is called a sitemap, and is neither`, ok("explain", "http://a.example/map.xml"))
	for _, of := range []string{"http://held.example/", "held.example"} {
		assert.Regexp(t, `robots.txt +fetched as a robots.txt: the server answered 200 OK: `+coding, ok("explain", of))
		assert.NotContains(t, ok("explain", of), "a contact in 0 s")
	}
	ends := ok("ends")
	for _, want := range []string{"http://a.example/coded +" + coding, "http://a.example/map.xml +it is called a sitemap", "http://held.example/robots.txt +" + coding} {
		assert.Regexp(t, want, ends)
	}
	assert.NotContains(t, ends, "http://a.example/robots.txt")
	assert.NotContains(t, ok("ends", "-outcome", "fetched"), "robots.txt")
}

// What is known of a host is found by its name, whatever its ports are: by every command that takes a host.
func TestAHostAtAnotherPort(t *testing.T) {
	away := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	t.Cleanup(away.Close)
	addr, _ := moody(t)
	dir := filepath.Join(t.TempDir(), "state")
	status, _, stderr := command(t, t.Context(), "-dir", dir, "-allow-network", "127.0.0.0/8,::1/128", "-ports", "any", "-delay", "0s", "-retry-tries", "1", "http://"+addr+"/x")
	require.Zero(t, status, stderr)
	ok := func(args ...string) string {
		t.Helper()
		status, out, stderr := operate(t, append([]string{args[0], "-dir", dir}, args[1:]...)...)
		require.Zero(t, status, stderr)
		return out
	}
	const done = "all its URLs are done"
	for _, host := range []string{"127.0.0.1", "http://" + addr + "/", "2130706433"} {
		for _, args := range [][]string{{"explain"}, {"pause"}, {"unpause"}, {"block", "-for", "1h"}, {"delay", "", "3s"}, {"priority", "", "2"}, {"limit", "-pages", "9"}, {"forget"}, {"clear"}, {"delete", "-yes"}} {
			if args[0] == "explain" && strings.Contains(host, "/") {
				continue // that is a URL
			}
			if len(args) > 1 && args[1] == "" {
				args[1] = host
			} else {
				args = append(args, host)
			}
			assert.Contains(t, ok(args...), done, args)
		}
	}
	assert.NotContains(t, ok("pause", "127.0.0.2"), done)
	assert.Contains(t, ok("ends", "-host", "0x7f.1"), addr+"/x")
	for _, name := range []string{"ends", "retry"} {
		status, _, stderr = operate(t, name, "-dir", dir, "-host", addr)
		assert.Equal(t, exitUsage, status)
		assert.Contains(t, stderr, `want "127.0.0.1": all ports are one host`)
	}

	dir = filepath.Join(t.TempDir(), "held")
	status, _, stderr = command(t, t.Context(), "-dir", dir, "-allow-network", "127.0.0.0/8", "-ports", "any", "-delay", "0s", "-max-time", "1s", away.URL+"/x")
	require.Equal(t, exitLimit, status, stderr)
	assert.Regexp(t, "robots.txt +.*503", ok("explain", "127.0.0.1"))
}

// A list of ends costs no more where few URLs were fetched many times.
func TestAListOfEndsExaminesSoManyRecords(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Dir(endsPath(dir)), 0o700))
	l, err := crawllog.Open(crawllog.Options{Path: endsPath(dir)})
	require.NoError(t, err)
	for _, path := range []string{"old", "again", "again", "again"} {
		require.NoError(t, l.Add(crawllog.Record{Outcome: crawllog.Fetched, URL: "http://a.example/" + path}))
	}
	require.NoError(t, l.Close())
	for looks, want := range map[int]int{0: 2, 4: 1, 6: 2} { // the first record and the last are of the log itself
		var urls int
		for _, err := range (endsFilter{looks: looks}).of(dir) {
			require.NoError(t, err)
			urls++
		}
		assert.Equal(t, want, urls, looks)
	}
}
