// This file tests what ends a run, what it waits for, and what it writes.

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler"
	"github.com/seed-7440039f/frontier/crawler/fetch"
)

func TestMaxBytesEndsARun(t *testing.T) {
	web, addr := serve(t, 300)
	status, out, stderr := command(t, t.Context(), "-proxy", "http://"+addr, "-max-bytes", "1k", "http://a.example/1")
	require.Equal(t, exitLimit, status, stderr)
	assert.Contains(t, stderr, "limit reached (-max-bytes 1k): 1 URL waits")
	assert.Contains(t, out, "1 waiting")
	assert.Less(t, len(web.asks), 100)
}

func TestMaxTimeEndsARun(t *testing.T) {
	r := startCrawl(t, "-max-time", "1s", "-grace", "1ms") // the site answers nothing until the end
	assert.Equal(t, exitLimit, <-r.ended, r.log.String())
	assert.Contains(t, r.log.String(), "limit reached (-max-time 1s): 2 URLs wait")

	b := runBounds{time: time.Minute, began: time.Now().Add(-time.Minute)}
	ctx := b.begin(t.Context())
	b.apply(ctx)
	defer b.stop(nil)
	require.Eventually(t, func() bool { return ctx.Err() != nil }, 10*time.Second, time.Millisecond, "the time that has passed counts")
}

func TestLogForPrograms(t *testing.T) {
	_, addr := serve(t, 3)
	status, _, stderr := command(t, t.Context(), "-proxy", "http://"+addr, "-log-format", "json", "-max-pages", "1", "http://a.example/1")
	require.Equal(t, exitLimit, status)
	var last struct {
		Level, Msg string
		Status     int
	}
	for line := range strings.Lines(stderr) {
		require.NoError(t, json.Unmarshal([]byte(line), &last), line)
	}
	assert.Equal(t, exitLimit, last.Status)
	assert.Equal(t, "WARN", last.Level)
	assert.Contains(t, last.Msg, "limit reached (-max-pages 1)")
}

func TestQuiet(t *testing.T) {
	_, addr := serve(t, 3)
	status, out, stderr := command(t, t.Context(), "-proxy", "http://"+addr, "-quiet", "http://a.example/1")
	assert.Zero(t, status)
	assert.Empty(t, out+stderr)
	status, _, stderr = command(t, t.Context(), "-proxy", "http://"+addr, "-quiet", "-max-pages", "1", "http://a.example/1")
	assert.Equal(t, exitLimit, status)
	assert.Equal(t, 1, strings.Count(stderr, "\n"), stderr)
}

// A file of seeds is the scope, in memory or not, and resume knows it.
func TestSeedsOfAFile(t *testing.T) {
	web, addr := serve(t, 2)
	dir, list := filepath.Join(t.TempDir(), "state"), filepath.Join(t.TempDir(), "seeds")
	var lines strings.Builder
	lines.WriteString("# hosts\n\n")
	for i := range 2500 {
		fmt.Fprintf(&lines, "  h%d.example/9 \n", i%50)
	}
	require.NoError(t, os.WriteFile(list, []byte(lines.String()+"https://h1.example:444/2\n"), 0o600))
	status, _, stderr := command(t, t.Context(), "-dir", dir, "-proxy", "http://"+addr, "-seeds-file", list, "-schemes", "http", "http://a.example/1")
	require.Zero(t, status, stderr)
	assert.Contains(t, stderr, "seeds left out")
	assert.Equal(t, 1, web.asks["http://h49.example/9"])
	assert.Equal(t, 1, web.asks["http://a.example/2"])

	require.NoError(t, os.WriteFile(list, []byte("h3.example/1\n"), 0o600))
	code, _, stderr := operate(t, "resume", dir)
	require.Zero(t, code, stderr)
	assert.Equal(t, 1, web.asks["http://h3.example/2"], "the file is read again")
	require.NoError(t, os.Remove(list))
	code, _, stderr = operate(t, "resume", dir)
	assert.Equal(t, exitUsage, code)
	assert.Contains(t, stderr, "seeds-file: open "+list)
	code, _, stderr = operate(t, "resume", "-seeds-file", "", dir)
	assert.Zero(t, code, stderr)
}

// The good lines of a file are crawled, whatever program wrote it, and the bad ones are reported.
func TestSeedsOfAFileWithBadLines(t *testing.T) {
	_, addr := serve(t, 10)
	list := filepath.Join(t.TempDir(), "seeds")
	text := "\uFEFFhttp://" + addr + "/1 # one\r\n<http://" + addr + "/2>\r\nhttp://a b/\r\nnot a url at all!!\r\nhttp://" + addr + "/caf\xe9\r\n"
	require.NoError(t, os.WriteFile(list, []byte(text), 0o600))
	status, out, stderr := command(t, t.Context(), "-allow-network", "127.0.0.0/8", "-seeds-file", list)
	require.Zero(t, status, stderr)
	assert.Contains(t, out, "10 pages")
	assert.Contains(t, stderr, "seeds left out")
	for _, bad := range []string{":3: seed ", ":4: seed ", ":5: seed "} {
		assert.Contains(t, stderr, list+bad)
	}
}

func TestBadSeedFiles(t *testing.T) {
	dir := t.TempDir()
	file := func(text string) string {
		name := filepath.Join(dir, "seeds")
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
		return name
	}
	for _, x := range []struct{ path, want string }{
		{file(""), "there is no URL in"},
		{filepath.Join(dir, "none"), "no such file"},
		{dir, "is no regular file"},
	} {
		status, _, stderr := command(t, t.Context(), "-seeds-file", x.path)
		assert.Equal(t, exitUsage, status)
		assert.Contains(t, stderr, x.want)
	}
	list := file("\nmailto:x@a.example\n" + strings.Repeat("/etc/passwd\n", 20))
	status, _, stderr := command(t, t.Context(), "-seeds-file", list)
	assert.Equal(t, exitUsage, status)
	assert.Contains(t, stderr, list+`:2: seed "mailto:x@a.example": `)
	assert.Contains(t, stderr, list+`:3: seed "/etc/passwd": want a URL like https://example.org/`)
	assert.Contains(t, stderr, "-seeds-file: 11 more lines are wrong")
	list = file("http://a.example/" + strings.Repeat("x", maxSeedLine))
	_, _, stderr = command(t, t.Context(), "-seeds-file", list)
	assert.Contains(t, stderr, `seeds:1: seed "": the line is longer than`)
}

// A crawl that is paused as a whole does not end, and does not look like one that runs.
func TestAPausedCrawlWaits(t *testing.T) {
	r := startCrawl(t)
	code, _, stderr := operate(t, "pause", "-dir", r.dir, "*")
	require.Zero(t, code, stderr)
	r.release()
	require.Eventually(t, func() bool { return strings.Contains(r.log.String(), "the whole crawl is paused") }, time.Minute, 10*time.Millisecond, r.log)
	code, out, stderr := operate(t, "status", "-dir", r.dir)
	require.Zero(t, code, stderr)
	assert.Regexp(t, `^state +the whole crawl is paused`, out)
	code, _, stderr = operate(t, "unpause", "-dir", r.dir, "*")
	require.Zero(t, code, stderr)
	r.end(t)

	code, _, stderr = operate(t, "pause", "-dir", r.dir, "*")
	require.Zero(t, code, stderr)
	code, _, stderr = operate(t, "resume", r.dir)
	assert.Zero(t, code, "nothing waits: "+stderr)
}

func TestASecondCrawlIsToldOfTheFirst(t *testing.T) {
	r := startCrawl(t)
	code, _, stderr := operate(t, "resume", r.dir)
	assert.Equal(t, exitError, code)
	assert.Contains(t, stderr, fmt.Sprintf("another process (%d) uses %s.\n", os.Getpid(), r.dir))
	assert.Contains(t, stderr, "end it with frontier stop -dir "+r.dir)
	assert.NotContains(t, stderr, "store in use")
	socket := filepath.Join(r.dir, "console.sock")
	require.NoError(t, os.Rename(socket, socket+"~"))
	for _, command := range [][]string{{"status", "-dir", r.dir}, {"pause", "-dir", r.dir, "*"}} { // they open the folder in different ways
		code, _, stderr = operate(t, command...)
		assert.Equal(t, exitError, code)
		assert.Regexp(t, `^frontier: another process \(\d+\) uses `+r.dir+` and does not answer \(.*\): it may be starting`, stderr)
	}
	require.NoError(t, os.Rename(socket+"~", socket))
	r.end(t)
}

// Neither -max-time nor Ctrl-C waits until a long file of seeds is read.
func TestLongFilesOfSeedsKeepNobody(t *testing.T) {
	const lines = 300_000
	dir := t.TempDir()
	file, state := filepath.Join(dir, "seeds"), filepath.Join(dir, "state")
	require.NoError(t, os.WriteFile(file, []byte(strings.Repeat("http://a.example/\n", lines)), 0o600))
	status, out, stderr := command(t, t.Context(), "-dir", state, "-max-time", "1ms", "-seeds-file", file)
	assert.Equal(t, exitLimit, status, out+stderr)
	assert.Equal(t, "frontier crawl: limit reached (-max-time 1ms) before the crawl began; the same command goes on from here\n", stderr)
	assert.NoDirExists(t, state)

	ctx, stop := context.WithCancel(t.Context())
	stop()
	s := newSettings()
	s.lists = repeated{file}
	s.settle()
	s.judgeSeedFiles(ctx)
	assert.Equal(t, 1, s.listed.Seeds)
	assert.NoError(t, s.err())

	f, err := frontier.Open(t.Context(), frontier.Options{})
	require.NoError(t, err)
	defer f.Close()
	c, err := crawler.New(f, crawler.Options{UserAgent: "x", Fetcher: new(fetch.Fetcher)})
	require.NoError(t, err)
	s.listed.Seeds = lines
	require.ErrorIs(t, s.addSeedsTo(ctx, c, slog.New(slog.DiscardHandler)), context.Canceled, "Ctrl-C")
	ctx = s.bound.begin(t.Context())
	s.bound.stop(bound("-max-time 5s"))
	require.NoError(t, s.addSeedsTo(ctx, c, slog.New(slog.DiscardHandler)))
	assert.Equal(t, ending{exitLimit, "limit reached (-max-time 5s): 0 URLs wait, and the last 300000 of -seeds-file were not reached; nothing is kept, as there was no -dir"},
		s.endOf(ctx, f, c.Progress()))
}

// A file of seeds that was judged to its end is not judged again until it changes, nor is it read twice
// if the command names it by another path.
func TestSeedsOfAFileAreJudgedOnce(t *testing.T) {
	_, addr := serve(t, 2)
	dir := t.TempDir()
	t.Chdir(dir)
	judged := func(file string, more ...string) *settings {
		s := newSettings()
		s.find("dir").typed, s.find(seedsFileKey).typed, s.find("protocols").typed = []string{"state"}, []string{file}, more
		require.NoError(t, s.takeScope())
		s.settle()
		s.judgeSeedFiles(t.Context())
		return s
	}
	write := func(text string, at time.Time) {
		require.NoError(t, os.WriteFile("seeds", []byte(text), 0o600))
		require.NoError(t, os.Chtimes("seeds", at, at))
	}
	at := time.Now().Add(-time.Hour)
	write("a.example/1\na.example/2\nb.example/1\n", at)
	status, _, stderr := command(t, t.Context(), "-dir", "state", "-proxy", "http://"+addr, "-seeds-file", "seeds")
	require.Zero(t, status, stderr)
	write("?????????/1\n?????????/2\n?????????/1\n", at) // of the same length
	for _, file := range []string{"seeds", filepath.Join(dir, "seeds"), "../" + filepath.Base(dir) + "/seeds"} {
		s := judged(file)
		require.NoError(t, s.err())
		assert.Equal(t, 3, s.listed.Seeds)
		assert.Equal(t, []string{"a.example", "b.example"}, s.listed.Hosts)
		assert.Equal(t, []string{"http://a.example/1", "http://a.example/2", "http://b.example/1"}, s.listed.First)
	}
	assert.Error(t, judged("seeds", "ftp").err(), "other protocols allow other seeds")
	write("?????????/1\n?????????/2\n?????????/1\n", at.Add(time.Nanosecond))
	assert.Error(t, judged("seeds").err())
	write("c.example/1\na.example/2\nb.example/1\n", at.Add(time.Second))
	assert.Equal(t, []string{"c.example", "a.example", "b.example"}, judged("seeds").listed.Hosts)

	write("?????????/1\n?????????/2\n?????????/1\n", at)
	require.NoError(t, os.Truncate(filepath.Join("state", judgedSeeds), 100))
	assert.Error(t, judged("seeds").err())
}

// Seeds of a file are added once; lines behind one that the crawl refuses are read at each start. Bad lines and
// refused ones are named at each start.
func TestSeedsOfAFileAreAddedOnce(t *testing.T) {
	web, addr := serve(t, 0)
	t.Chdir(t.TempDir())
	crawl := func(text string, at time.Time) string {
		require.NoError(t, os.WriteFile("seeds", []byte(text), 0o600))
		require.NoError(t, os.Chtimes("seeds", at, at))
		status, _, stderr := command(t, t.Context(), "-dir", "state", "-proxy", "http://"+addr, "-delay", "0s", "-seeds-file", "seeds")
		require.Contains(t, []int{exitOK, exitError, exitNothing}, status, stderr)
		return stderr
	}
	many := func(line string) string { return strings.Repeat(line+"\n", seedBatch) }
	at := time.Now().Add(-time.Hour)
	first := crawl(many("a.example/1")+many("a.example/2"), at)
	require.NotContains(t, first, "seeds left out")
	assert.NotContains(t, crawl(many("???????????")+many("???????????"), at), "seeds left out", "of the same length and time: not read")
	at = at.Add(time.Second)
	first = crawl(many("a.example/3")+many("???????????"), at)
	for _, text := range []string{first, crawl(many("a.example/3")+many("a.example/4"), at)} {
		assert.Contains(t, text, "seeds:1001: seed")
		assert.Contains(t, text, "and 990 more of -seeds-file")
	}
	assert.Zero(t, web.asks["http://a.example/4"], "the file is as it was: bad lines keep none behind them from being known")
	at = at.Add(time.Second)
	long := "a.example/" + strings.Repeat("5", 5000) // the crawl refuses it
	crawl(long+"\n"+many("???????????"), at)
	again := crawl(long+"\n"+many("a.example/4"), at)
	assert.Contains(t, again, "http://a.example/555")
	assert.Equal(t, 1, web.asks["http://a.example/4"])
}
