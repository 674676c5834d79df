// This file tests the commands that look at a crawl and change it, while it runs and when
// it does not.

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier/console"
)

// lockedBuffer is a log that is read while it is written.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// operate runs a command.
func operate(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	status = run(t.Context(), args, strings.NewReader(""), &out, &err)
	return status, out.String(), err.String()
}

// running is a crawl that waits in its first pages until it is released.
type running struct {
	dir     string
	log     *lockedBuffer
	release func()
	ended   chan int
}

// slowly serves pages /1 that do not end until the gate is open, and others that are at
// their end. Something of them comes all the while, so that no fetch is given up.
func slowly(arrived chan<- bool, gate <-chan bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, `<a href="/2">two</a>`)
		if r.URL.Path != "/1" {
			return
		}
		arrived <- true
		for {
			_ = http.NewResponseController(w).Flush()
			select {
			case <-gate:
				return
			case <-r.Context().Done():
				return
			case <-time.After(5 * time.Second):
				fmt.Fprint(w, " ")
			}
		}
	}
}

func startCrawl(t *testing.T, more ...string) *running {
	t.Helper()
	short, err := os.MkdirTemp("", "fr") // a socket's path is short
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(short) })
	arrived, gate := make(chan bool, 1000), make(chan bool)
	web := httptest.NewServer(slowly(arrived, gate))
	t.Cleanup(web.Close)
	r := &running{dir: filepath.Join(short, "state"), log: &lockedBuffer{}, ended: make(chan int, 1), release: sync.OnceFunc(func() { close(gate) })}
	args := append([]string{"crawl", "-dir", r.dir, "-page", "127.0.0.1:0", "-delay", "1ms", "-timeout", "1h", "-workers", "2", "-no-groups", "-scope-domains", "example", "-resolve", "*.example=" + web.Listener.Addr().String()}, more...)
	go func() {
		var out bytes.Buffer
		r.ended <- run(t.Context(), append(args, "http://a.example/1", "http://b.example/1"), strings.NewReader(""), &out, r.log)
	}()
	t.Cleanup(r.release)
	for range 2 {
		<-arrived
	}
	return r
}

// stop does what the command does, but waits for nothing: this process goes on.
func stop(t *testing.T, dir string) {
	t.Helper()
	path, err := socketPath(dir)
	require.NoError(t, err)
	c := console.Dial(path)
	defer c.Close()
	said, err := c.Do(t.Context(), console.Action{Do: "stop"})
	require.NoError(t, err)
	assert.Equal(t, "it stops", said.Said)
}

func (r *running) end(t *testing.T) {
	t.Helper()
	r.endsWith(t, exitOK)
}

func (r *running) endsWith(t *testing.T, status int) {
	t.Helper()
	r.release()
	assert.Equal(t, status, <-r.ended, r.log.String())
}

func TestCommandsOnARunningCrawl(t *testing.T) {
	r := startCrawl(t)
	ok := func(args ...string) string {
		t.Helper()
		code, out, stderr := operate(t, append(args[:1:1], append([]string{"-dir", r.dir}, args[1:]...)...)...)
		require.Equal(t, exitOK, code, "%v: %s", args, stderr)
		return out
	}
	assert.Regexp(t, `state +running for`, ok("status"))
	var s struct {
		Live   bool  `json:"live"`
		Leased int64 `json:"leased"`
	}
	require.NoError(t, json.Unmarshal([]byte(ok("status", "-json")), &s))
	assert.True(t, s.Live)
	assert.EqualValues(t, 2, s.Leased)
	assert.Contains(t, ok("explain", "a.example"), "as many of its URLs as allowed at once are being fetched")
	assert.Regexp(t, `state +leased`, ok("explain", "http://a.example/1"))
	assert.Regexp(t, `state +unknown`, ok("explain", "http://z.example/1"))
	assert.Equal(t, "c.example is paused: no host of the crawl has this name; the rule is kept for when one comes\n", ok("pause", "c.example"))
	code, _, stderr := operate(t, "add", "-dir", r.dir, "http://elsewhere.test/")
	assert.Equal(t, exitError, code)
	assert.Contains(t, stderr, `not in scope: host "elsewhere.test"`)
	assert.Equal(t, "1 URL added\n", ok("add", "http://c.example/9"))
	assert.Contains(t, ok("explain", "c.example"), "it is paused")
	assert.Equal(t, "0 URLs added; 1 URL known before, which \"now\" fetches again\n", ok("add", "HTTP://c.example:80/9#top"), "it is the same")
	assert.Regexp(t, `URL +http://c.example/9\n`, ok("explain", "c.example/9"), "a scheme may be left out, as in seeds")
	for _, do := range []string{"add", "now", "explain"} {
		code, out, stderr := operate(t, do, "-dir", r.dir, "http://me:hunter2@c.example/10")
		assert.NotEqual(t, exitOK, code)
		assert.Contains(t, stderr, "a crawler sends no user name or password")
		assert.NotContains(t, out+stderr, "hunter2")
	}
	assert.NotContains(t, r.log.String(), "hunter2")
	assert.Contains(t, ok("hosts", "-reason", "paused"), "c.example")
	assert.Contains(t, ok("urls", "*.example"), "http://c.example/9")
	assert.Equal(t, "the delay of *.example is 2ms: 3 hosts, 3 URLs now\n", ok("delay", "*.example", "2ms"))
	ok("delay", "x.example", "10", "1s", "30s")
	ok("block", "-for", "1h", "d.example")
	assert.Equal(t, "each host of *.example may have 100 pages, 1.0 MiB at most, within 1 d: 3 hosts, 3 URLs now\n",
		ok("limit", "-pages", "100", "-bytes", "1M", "-period", "24h", "-each", "*.example"))
	ok("limit", "-pages", "7", "x.example")
	assert.Regexp(t, `x\.example +limits`, ok("rules"))
	assert.Contains(t, ok("limit", "x.example", "none"), "no limit is set any more")
	assert.NotRegexp(t, `x\.example +limits`, ok("rules"))
	ok("limit", "-pages", "7", "x.example")
	ok("limit", "-each", "-pages", "3", "x.example")
	assert.Contains(t, ok("limit", "-each", "x.example", "none"), "limits of all together stay")
	ok("limit", "-each", "-pages", "3", "x.example")
	ok("limit", "x.example", "none")
	assert.NotRegexp(t, `x\.example +(host_)?limits`, ok("rules"), "both kinds")
	ok("priority", "c.example", "3")
	rules := ok("rules")
	assert.Regexp(t, `\*\.example +delay +2ms`, rules)
	assert.Regexp(t, `x\.example +delay +10 times the fetch, 1s to 30s`, rules)
	assert.Regexp(t, `d\.example +blocked_until`, rules)
	assert.Regexp(t, `c\.example +priority +3`, rules)
	ok("clear", "d.example")
	out := filepath.Join(t.TempDir(), "all.jsonl")
	assert.Contains(t, ok("export", out), out)
	b, err := os.ReadFile(out)
	require.NoError(t, err)
	assert.Contains(t, string(b), "http://c.example/9")
	assert.Regexp(t, `URLs: 0 new`, ok("import", out))
	assert.Equal(t, "c.example is 2 levels down, but a rule about its priorities wins: 1 host, 1 URL now\n", ok("standing", "c.example", "down", "2"))
	assert.Regexp(t, `standing +2 levels down`, ok("explain", "c.example"))
	ok("standing", "c.example", "up", "1")
	assert.Regexp(t, `standing +1 level up`, ok("explain", "c.example"))
	ok("standing", "c.example", "none")
	assert.NotContains(t, ok("explain", "c.example"), "standing")
	ok("unpause", "c.example")
	ok("now", "http://e.example/9")
	info, err := os.Stat(filepath.Join(r.dir, "console.sock"))
	require.NoError(t, err)
	assert.EqualValues(t, 0o600, info.Mode().Perm(), "only its owner may open it")

	code, _, stderr = operate(t, "checkpoint", "-dir", r.dir)
	assert.Equal(t, exitError, code)
	assert.Contains(t, stderr, "it makes no checkpoints")

	// The page is there, and needs the token for changes.
	at := regexp.MustCompile(`http://127\.0\.0\.1:\d+/`).FindString(r.log.String())
	require.NotEmpty(t, at, r.log.String())
	token := ownersFile(t, filepath.Join(r.dir, pageTokenFile))
	res, err := http.Get(at)
	require.NoError(t, err)
	page, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	assert.Contains(t, string(page), "being fetched")
	assert.NotContains(t, string(page), token)
	assert.NotContains(t, r.log.String(), token)
	http.DefaultClient.CloseIdleConnections()
	r.end(t)
	_, err = os.Stat(filepath.Join(r.dir, "console.sock"))
	assert.ErrorIs(t, err, os.ErrNotExist)
}

// The same commands work on the folder of a crawl that does not run, and what they did
// holds when it goes on.
func TestCommandsOnACrawlAtRest(t *testing.T) {
	r := startCrawl(t)
	stop(t, r.dir)
	r.endsWith(t, exitStopped)
	ok := func(args ...string) string {
		t.Helper()
		code, out, stderr := operate(t, append(args[:1:1], append([]string{"-dir", r.dir}, args[1:]...)...)...)
		require.Equal(t, exitOK, code, "%v: %s", args, stderr)
		return out
	}
	assert.Regexp(t, `state +at rest`, ok("status"))
	assert.Equal(t, "example is paused: no host of the crawl has this name (it has a.example, b.example); the rule is kept for when one comes\n", ok("pause", "example"))
	ok("clear", "example")
	assert.Equal(t, "1 URL added\n", ok("add", "http://g.example/1"))
	code, _, stderr := operate(t, "delete", "-dir", r.dir, "g.example")
	assert.Equal(t, exitUsage, code)
	assert.Contains(t, stderr, "this deletes what waits of g.example: 1 host, 1 URL now; nothing brings them back, so it wants -yes")
	assert.Contains(t, ok("urls"), "g.example", "nothing was deleted")
	assert.Equal(t, "1 URL of g.example deleted\n", ok("delete", "-yes", "g.example"))
	assert.Equal(t, "0 URLs of nosuch.example deleted: no host of the crawl has this name\n", ok("delete", "-yes", "nosuch.example"))
	assert.Contains(t, ok("explain", "a.exam"), "the crawl has no URL of it (it has a.example)")
	assert.Contains(t, ok("pause", "http://b.example/"), "b.example is paused: 1 host")
	ok("unpause", "b.example")
	code, _, stderr = operate(t, "pause", "-dir", r.dir, "http://b.example/2")
	assert.Equal(t, exitUsage, code)
	assert.Contains(t, stderr, "one URL is no scope; want its host, b.example, or *.b.example")
	code, _, stderr = operate(t, "pause", "-dir", r.dir, "b example")
	assert.Equal(t, exitUsage, code)
	assert.Equal(t, 1, strings.Count(stderr, "frontier:"), stderr)
	code, _, stderr = operate(t, "hosts", "-dir", r.dir, "-scope", "[bad")
	assert.Equal(t, exitUsage, code)
	assert.Contains(t, stderr, "is not a host key")
	ok("pause", "*")
	assert.Regexp(t, `state +at rest; the whole crawl is paused`, ok("status"))
	assert.Contains(t, ok("top"), "; the whole crawl is paused")
	ok("unpause", "*")
	ok("block", "*", "-for", "1h")
	assert.Regexp(t, `state +at rest; the whole crawl is blocked until 20`, ok("status"))
	ok("clear", "*")
	assert.Regexp(t, `state +at rest\n`, ok("status"))
	ok("pause", "a.example")
	assert.Contains(t, ok("rules"), "a.example  paused  yes")
	assert.Contains(t, ok("hosts"), "a.example")
	var listed console.HostList
	require.NoError(t, json.Unmarshal([]byte(ok("hosts", "-json")), &listed))
	assert.WithinDuration(t, time.Now(), listed.Now, time.Minute, "waits are counted from it")
	code, _, stderr = operate(t, "explain", "-dir", r.dir, "a.example:80")
	assert.NotEqual(t, exitOK, code)
	assert.Contains(t, stderr, `want "a.example"`)
	assert.Contains(t, ok("urls", "-n", "1"), "-after")
	assert.Contains(t, ok("export"), `a.example`)
	code, _, stderr = operate(t, "stop", "-dir", r.dir)
	assert.Equal(t, exitError, code)
	assert.Contains(t, stderr, "does not run")
	to := filepath.Join(filepath.Dir(r.dir), "new")
	assert.Contains(t, ok("repair", to), "; lost: nothing\n")
	assert.FileExists(t, filepath.Join(to, keptConfig), "so resume goes on with it")
	ok("clear", "a.example")
	code, out, stderr := command(t, t.Context(), "-dir", r.dir, "-resolve", "*.example=127.0.0.1:1", "-retry-tries", "1", "-quarantine-after", "1", "-quarantine-probe", "1ms", "-probes", "1", "http://a.example/1")
	require.Equal(t, exitNothing, code, out+stderr)
}

func TestACheckpointIsTakenOnDemand(t *testing.T) {
	copies := filepath.Join(t.TempDir(), "copies")
	r := startCrawl(t, "-checkpoint-dir", copies, "-checkpoint-every", "0")
	code, out, stderr := operate(t, "checkpoint", "-dir", r.dir, "-json")
	require.Equal(t, exitOK, code, stderr)
	var done struct{ Path string }
	require.NoError(t, json.Unmarshal([]byte(out), &done))
	r.end(t)
	assert.FileExists(t, filepath.Join(done.Path, "frontier", keptConfig), "so resume goes on with a copy of it")
	code, out, stderr = operate(t, "status", "-dir", filepath.Join(done.Path, "frontier"))
	require.Equal(t, exitOK, code, stderr)
	assert.Regexp(t, `known +2`, out)
}

// A socket that a killed process left does not keep a crawl from being reached.
func TestASocketThatIsGone(t *testing.T) {
	r := startCrawl(t)
	stop(t, r.dir)
	r.endsWith(t, exitStopped)
	require.NoError(t, os.WriteFile(filepath.Join(r.dir, "console.sock"), nil, 0o600))
	code, out, stderr := operate(t, "status", "-dir", r.dir)
	assert.Equal(t, exitOK, code, stderr)
	assert.Regexp(t, `state +at rest`, out)
}

func TestTables(t *testing.T) {
	var b bytes.Buffer
	p := &printer{w: &b}
	require.NoError(t, p.hosts(console.HostList{Hosts: []console.HostRow{{Host: "a.example\x1b[2J\nb", Waiting: 1234567, Reason: "delay"}}, Next: "a.example"}))
	assert.Contains(t, b.String(), "1\u202f234\u202f567  0")
	assert.NotContains(t, b.String(), "\x1b")
	assert.Equal(t, 4, strings.Count(b.String(), "\n"), b.String())
}

func TestWrongCommandLines(t *testing.T) {
	empty, dir := t.TempDir(), filepath.Join(t.TempDir(), "state")
	t.Setenv("FRONTIER_DIR", "")
	code, _, stderr := operate(t, "import", "-dir", dir, seedList(t, "http://a.example/"))
	require.Zero(t, code, stderr)
	for _, x := range []struct {
		args string
		code int
		says string
	}{
		{"status", exitUsage, "which crawl?"},
		{"status -dir " + empty, exitUsage, "there is no crawl in"},
		{"ends -dir /nothing/there", exitUsage, "there is no folder /nothing/there, and so no crawl in it"},
		{"report -dir /nothing/there", exitUsage, "there is no folder /nothing/there, and so no crawl in it"},
		{"status -dir /nothing/there", exitUsage, "there is no folder /nothing/there, and so no crawl in it; frontier crawl -dir /nothing/there URL begins one"},
		{"status -colour", exitUsage, "colour"},
		{"delay -dir " + dir + " a.example NaN 1s 30s", exitUsage, "delay: want a time"},
		{"pauze", exitUsage, "pauze"},
		{"repair -dir x", exitUsage, "into which new folder"},
		{"repair -dir /nothing/there new", exitUsage, "there is no folder /nothing/there, and so no crawl in it"},
		{"hosts -n 0 -dir " + dir, exitUsage, "hosts: -n is 0; want 1 to 1000"},
		{"urls -n 5000 -dir " + dir, exitUsage, "urls: -n is 5000; want 1 to 1000"},
		{"hosts -sort size -dir " + dir, exitUsage, "want domain or waiting"},
		{"limit -pages -5 -dir " + dir + " a.example", exitUsage, "limit: -pages is negative"},
		{"block -for -1h -dir " + dir + " a.example", exitUsage, "block: -for is -1h0m0s; want >= 0"},
	} {
		code, _, stderr := operate(t, strings.Fields(x.args)...)
		assert.Equal(t, x.code, code, x.args)
		assert.Contains(t, stderr, x.says, x.args)
	}
	names, err := os.ReadDir(empty)
	require.NoError(t, err)
	assert.Empty(t, names, "nothing was made")

	r := startCrawl(t)
	defer r.end(t)
	for args, says := range map[string]string{
		"pause": "which hosts?", "pause a.example b.example": "too many arguments", "block a.example": "how long?", "block -for x a.example": "x",
		"delay a.example": "want a time", "delay a.example soon": "want a time", "delay a.example 1 2": "want a time", "delay a.example x 1s 2s": "want a time",
		"priority a.example": "want a number", "priority a.example 99": "want 1 to", "standing a.example": "want up or down", "standing a.example down": "want up or down", "standing a.example under 1": "want up or down", "standing a.example down -1": "from 1 on", "standing a.example up 0": "from 1 on", "standing a.example up 9": "want -7 to 7", "standing * up 1": "one host at a time", "hosts -reason lazy": "want one of", "limit -bytes many a.example": "-bytes", "limit a.example": "want limits", "limit a.example -period 1h": "-period needs -pages", "limit a.example 100": "want limits",
		"limit a.example none -pages 1": "want limits", "delete": "which hosts?", "delete a.example b.example": "too many", "explain": "explain what?", "explain http://": "explain: the URL: ", "explain -crawl news http://a.example/": "want a number", "explain -crawl -1 http://a.example/": "want a number", "standing all up 1": "want '*'",
		"pause all": "want '*' for all hosts, or http://all/ for that host", "unpause ALL": "want '*'", "block -for 1h all": "want '*'", "delete -yes all": "want '*'",
		"clear all": "want '*'", "urls all": "want '*'", "leases all": "want '*'", "end-leases all": "want '*'", "hosts -scope all": "want '*'",
		"status now": "a folder is named with -dir", "add": "which URLs?", "urls a b": "too many",
	} {
		f := strings.Fields(args)
		code, _, stderr := operate(t, append([]string{f[0], "-dir", r.dir}, f[1:]...)...)
		assert.Equal(t, exitUsage, code, "%s: %s", args, stderr)
		assert.Contains(t, stderr, says, args)
	}
	code, out, _ := operate(t, "unpause", "-dir", r.dir, "http://all/")
	assert.Zero(t, code)
	assert.Contains(t, out, "all goes on: no host of the crawl has this name")
	for args, says := range map[string]string{"add nonsense": "URL 1 of 1"} {
		f := strings.Fields(args)
		code, _, stderr := operate(t, append([]string{f[0], "-dir", r.dir}, f[1:]...)...)
		assert.Equal(t, exitError, code, "%s: %s", args, stderr)
		assert.Contains(t, stderr, says, args)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c, err := reach(ctx, r.dir)
	require.NoError(t, err)
	rules, err := c.Rules(ctx)
	require.NoError(t, err)
	assert.Empty(t, rules.Rules, "nothing was set")
	require.NoError(t, c.close())
}

// ownersFile reads a file that only its owner may read.
func ownersFile(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	require.NoError(t, err)
	info, err := os.Stat(name)
	require.NoError(t, err)
	assert.EqualValues(t, 0o600, info.Mode().Perm())
	text := strings.TrimSpace(string(b))
	require.NotEmpty(t, text)
	return text
}

// A token that the operator gave is not in the log, and a file or the environment keeps it
// out of the command line. Without one, and without a folder, the token is known to no client.
func TestThePagesTokenIsNotShown(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte("hunter2\n"), 0o600))
	for name, args := range map[string][]string{"flag": {"-page-token", "hunter2"}, "file": {"-page-token-file", file}, "environment": nil} {
		t.Run(name, func(t *testing.T) {
			if name == "environment" {
				t.Setenv("FRONTIER_PAGE_TOKEN", "hunter2")
			}
			r := startCrawl(t, args...)
			page := regexp.MustCompile(`http://127\.0\.0\.1:\d+/`).FindString(r.log.String())
			require.NotEmpty(t, page, r.log.String())
			c := console.Remote(strings.TrimSuffix(page, "/"), "hunter2")
			defer c.Close()
			_, err := c.Do(t.Context(), console.Action{Do: "pause", Scope: "a.example"})
			require.NoError(t, err)
			assert.NotContains(t, r.log.String(), "hunter2")
			assert.NoFileExists(t, filepath.Join(r.dir, pageTokenFile))
			code, _, stderr := operate(t, "clear", "-dir", r.dir, "a.example")
			require.Equal(t, exitOK, code, stderr)
			r.end(t)
		})
	}
	_, addr := serve(t, 1)
	code, _, stderr := command(t, t.Context(), "-page", "127.0.0.1:0", "-resolve", "*.example="+addr, "http://a.example/1")
	assert.Equal(t, exitOK, code, stderr)
	assert.Regexp(t, `url=http://127\.0\.0\.1:\d+/ token="unknown, so nothing changes on the page: set -dir, `, stderr)
	require.NoError(t, os.WriteFile(file, []byte("\n"), 0o600))
	code, _, stderr = command(t, t.Context(), "-page", "127.0.0.1:0", "-page-token-file", file, "http://a.example/")
	assert.Equal(t, exitError, code)
	assert.Contains(t, stderr, "the first line of "+file+" is empty")
}

// If the page's address was given and cannot be had, that is an error, before anything is done; an
// address that other machines reach is reported.
func TestThePageIsWhereItWasAskedFor(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	for page, says := range map[string]string{taken.Addr().String(): "in use", "127.0.0.1": "missing port", "127.0.0.1:x": "port", "192.0.2.1:0": "cannot"} {
		dir := filepath.Join(t.TempDir(), "state")
		code, _, stderr := command(t, t.Context(), "-page", page, "-dir", dir, "http://a.example/")
		assert.Equal(t, exitUsage, code, page)
		assert.Contains(t, stderr, "-page "+page+" cannot be had: ")
		assert.Contains(t, stderr, says)
		assert.NoDirExists(t, dir)
	}
	for page, warned := range map[string]bool{"0.0.0.0:0": true, "127.0.0.1:0": false, "off": false} {
		_, _, stderr := command(t, t.Context(), "-page", page, "-seeds-file", seedList(t, "http://127.0.0.1:1/"))
		assert.Equal(t, warned, strings.Contains(stderr, "other machines can reach the page"), "%s: %s", page, stderr)
	}
}

func TestCommandsBesideEachOtherShareNoFlag(t *testing.T) {
	one, other := newRoot(new(int)), newRoot(new(int))
	for _, c := range one.Commands {
		for _, f := range c.Flags {
			for _, g := range other.Command(c.Name).Flags {
				assert.NotSame(t, f, g, "-%s of %s", f.Names()[0], c.Name)
			}
		}
	}
}
