// This file tests the configuration file of crawl, and that what is printed as one is
// what is read.

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// printed is what crawl -print-config prints.
func printed(t testing.TB, args ...string) string {
	t.Helper()
	var out, err bytes.Buffer
	require.Zero(t, run(t.Context(), append([]string{"crawl", "-print-config"}, args...), strings.NewReader(""), &out, &err), err.String())
	return out.String()
}

// configured writes a configuration file.
func configured(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "crawl.toml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// other is a value of an option that is not its default.
func other(x *option) string {
	if v, ok := map[string]string{
		"include": `"'\\.html$`, "exclude": `\d`, "resolve": "a.example=127.0.0.1:80", "group-exempt": "192.0.2.0/24", "allow-network": "127.0.0.0/8", "deny-network": "10.0.0.0/8",
		"dns": "127.0.0.1:53", "protocols": "gopher", "proxy": "http://me:secret@127.0.0.1:3128", "memory": "300M", "max-delay": "2m", "backoff-max": "1h", "recrawl-max": "3h",
		"recrawl-new-max": "0.75", "recrawl-budget": "100000/d", "ext": "-", "schemes": "https", "content-types": "text/html", "user-agent": "bot \"é\" \\1", "seeds": "http://a.example/",
		"contact": "me@a.example", "ports": "any", "log-format": "json", "order": "links", "seeds-file": listOfSeeds, "header": "*.example Accept-Language: de", "cookie": "a.example session=file:testdata/login",
		"auth": "a.example basic file:testdata/login", "proxy-for": "*.example socks5://127.0.0.1:1080", "rule": "*.example delay=5s limit-pages=7",
		"frontier": "http://127.0.0.1:8348", "frontier-token": "file:testdata/login", "temp": "testdata",
	}[x.Name]; ok {
		return v
	}
	return map[*kind]string{boolean: "true", integer: "7", number: "0.25", duration: "95m", size: "3M", share: "5", several: "x", single: "x"}[x.kind()]
}

// listOfSeeds is a file of seeds.
const listOfSeeds = "testdata/seeds.txt"

// besides are options that some want beside them, so that their values are no fault.
var besides = map[string][]string{"min-delay": {"-max-delay", "3h"}, "backoff-base": {"-backoff-max", "3h"}, "recrawl-min": {"-recrawl-max", "3h"}}

// needed are the options that one needs beside it.
func needed(name string) (args []string) {
	for _, n := range crawlNeeds {
		if b := n.beside[0]; slices.Contains(n.options, name) && b.unless == "" {
			args = append(needed(b.option), "-"+b.option+"="+other(newSettings().find(b.option)))
		}
	}
	return append(args, besides[name]...)
}

// Each option is in the print, and has there what a flag gave it; and what is printed,
// read and printed again is the same.
func TestThePrintedConfigurationIsRead(t *testing.T) {
	for _, x := range newSettings().all {
		args := append([]string{"-" + x.Name + "=" + other(x)}, needed(x.Name)...)
		if x.Name == seedsKey {
			args = []string{other(x)}
		}
		out := printed(t, args...)
		assert.Regexp(t, `(?m)^`+x.Name+` = \S+`, out, "%v", args)
		assert.NotEqual(t, printed(t, args[1:]...), out, "%v says nothing", args)
		assert.Equal(t, out, printed(t, "-config", configured(t, out)), "%v", args)
	}
	none := printed(t)
	for _, x := range newSettings().all {
		assert.Regexp(t, `(?m)^(# )?`+x.Name+` = `, none)
	}
	assert.Equal(t, none, printed(t, "-config", configured(t, none)))
	assert.Equal(t, none, printed(t, "-config", configured(t, "")))
}

// What a flag says counts, whatever the file does: alone, as a list, and beside options
// that exclude each other.
func TestFlagsCountBeforeTheFile(t *testing.T) {
	file := configured(t, "workers = 3\ninclude = ['a', 'b']\ndelay-factor = 4\nseeds = ['http://a.example/']\nrecrawl = true\nrecrawl-min = '5s'\n")
	out := printed(t, "-config", file)
	for _, line := range []string{"workers = 3", "include = ['a', 'b']", "delay-factor = 4.0", "# delay = '0s'", "seeds = ['http://a.example/']", "recrawl-min = '5s'"} {
		assert.Contains(t, out, "\n"+line+"\n")
	}
	out = printed(t, "-config", file, "-workers", "5", "-include", "c", "-delay", "1s", "-recrawl=false", "b.example", "c.example")
	for _, line := range []string{"workers = 5", "include = ['c']", "# delay-factor = 4.0", "delay = '1s'", "seeds = ['b.example', 'c.example']", "recrawl = false", "# recrawl-min = '5s'"} {
		assert.Contains(t, out, "\n"+line+"\n")
	}
	out = printed(t, "-config", configured(t, "delay = '1s'"), "-min-delay", "2s")
	assert.Contains(t, out, "\n# delay = '1s'\n")
	assert.Contains(t, out, "\nmin-delay = '2s'\n")
}

func TestAByteOrderMark(t *testing.T) {
	assert.Contains(t, printed(t, "-config", configured(t, "\ufeffworkers = 7\n"), "http://a.example/"), "\nworkers = 7\n")
}

// All faults of a file are reported at once, each with its line, and nothing is done.
func TestAllFaultsOfAConfiguration(t *testing.T) {
	lines := []struct{ text, says string }{
		{`workers = 0`, `workers is 0; want 1 to 65536`},
		{`wrokers = 5`, `there is no option "wrokers"; did you mean "workers"?`},
		{`grace = 3`, `grace: want a time as in 500ms, 90s, 15m or 24h, in quotes; this is 3`},
		{`timeout = "soon"`, `timeout is "soon"; want a time as in`},
		{`delay = "1s"`, `delay cannot be combined with delay-factor, -min-delay or -max-delay`},
		{`delay-factor = 3`, ``},
		{`seeds = ["ftp:", # a comment`, `seed "ftp:": `},
		{`  "http://a.example/", 5,`, `seeds: want a list of texts; this is 5`},
		{`  "mailto:x@a.example",`, `seed "mailto:x@a.example": `},
		{`]`, ``},
		{`max-url = = 4`, `unexpected character`},
		{`[politeness]`, `there is no table "politeness"`},
		{`host-concurrency = 1025`, `host-concurrency is 1025; want 1 to 1024`},
		{`exclude = ["ok", "("]`, `exclude is "("; want a pattern: error parsing regexp`},
		{`workers = 3`, `workers is in line 1 already`},
		{`max-depth = -0x1`, `sign is not allowed`},
		{`recrawl-min = "1s"`, `recrawl-min needs -recrawl`},
		{`user-agent = "a\nb"`, `user-agent: fetch: options: UserAgent is "a\nb"; want no control characters`},
		{`memory = "1k"`, `memory is 1k; want at least 8M`},
		{`proxy = "http://me:secret@x:99999"`, `proxy: it is "http://me:xxxxx@x:99999"; want a port`},
		{`sync = 1`, `sync: want true or false; this is 1`},
		{`protocols = ["http3"]`, `protocols is "http3"; want ftp, gopher`},
		{`dns = ["ns.example"]`, `dns: dns: options: Servers has "ns.example"`},
		{`max-pages = 99999999999999999999`, `max-pages: 99999999999999999999 is no integer`},
		{`cookies = 2026-01-31`, `cookies: want true or false; this is a date or a time`},
		{`ext = "jpg"`, `ext: want a list of texts, as in ["a", "b"]`},
		{`a.b = 1`, `there is no option "a.b"`},
		{`max-segments = {x = 1}`, `max-segments: want an integer; this is a table`},
		{`allow-network = ["127.0.0.0/8",`, ``},
		{`  "127"]`, `allow-network is "127"; want networks`},
		{`min-rate = 0`, `min-rate is 0; want > 0`},
		{`checkpoint-dir = "c"`, `checkpoint-dir needs -dir`},
		{`rule = ["a.example delay=1s", "*.example",`, `rule "*.example": want a host`},
		{` "a.example hue=3",`, `rule "a.example hue=3": "hue=3": want delay`},
		{` "d.example priority=99",`, `rule "d.example priority=99": `},
		{` "e.example delay=-1s"]`, `rule "e.example delay=-1s": `},
		{`stats = "unclosed`, `basic strings cannot have new lines`},
	}
	var file strings.Builder
	for _, l := range lines {
		fmt.Fprintln(&file, l.text)
	}
	path := configured(t, file.String())
	status, out, stderr := operate(t, "crawl", "-config", path, "-probes", "-1")
	assert.Equal(t, exitUsage, status)
	assert.Empty(t, out)
	var got []string
	for _, line := range strings.Split(strings.TrimPrefix(stderr, "frontier: crawl: "), "\n") {
		got = append(got, strings.TrimPrefix(line, path+":"))
	}
	at := 0
	for i, l := range lines {
		if l.says == "" {
			continue
		}
		require.Less(t, at, len(got), stderr)
		assert.Contains(t, got[at], fmt.Sprintf("%d: %s", i+1, l.says))
		at++
	}
	assert.Equal(t, []string{"-probes is -1; want 0 to 250"}, got[min(at, len(got)-2):len(got)-2], "and no more")
	assert.NotContains(t, stderr, "secret")
}

func TestFilesThatAreNoConfiguration(t *testing.T) {
	for want, path := range map[string]string{
		"no such file":         filepath.Join(t.TempDir(), "none"),
		"-config: ":            t.TempDir(),
		"too large":            configured(t, strings.Repeat("#\n", maxConfig/2+1)),
		":2: this is no UTF-8": configured(t, "workers = 5\nuser-agent = '\xff'\n"),
		":1: ":                 configured(t, "PK\x03\x04\x00"),
	} {
		status, _, stderr := command(t, t.Context(), "-config", path, "http://a.example/")
		assert.Equal(t, exitUsage, status, want)
		assert.Contains(t, stderr, want)
	}
	status, _, stderr := command(t, t.Context(), "-user-agent", "\xff", "http://a.example/")
	assert.Equal(t, exitUsage, status)
	assert.Contains(t, stderr, "want UTF-8")
}

// Whatever is in a file, each line of what is said about it names one of its lines.
func TestAnyFileIsJudged(t *testing.T) {
	piece := rapid.SampledFrom([]string{"workers", " = ", "[", "]", "\n", "5", "'", "\"", "\"\"\"", "{", "}", ",", ".", "#", "\\", "seeds", "-", "0x", "delay", "'1s'", "true", "\x00", "é", "\r"})
	rapid.Check(t, func(t *rapid.T) {
		o := newSettings().options
		o.file = "f"
		text := strings.Join(rapid.SliceOf(piece).Draw(t, "text"), "")
		(&configReader{o: o, data: []byte(text), faulty: map[int]bool{}}).read()
		o.settle()
		for _, f := range o.faults {
			if f.line < 1 || f.line > 1+strings.Count(text, "\n") {
				t.Fatalf("%q: line %d: %v", text, f.line, f.err)
			}
		}
	})
}

func TestCrawlByAFile(t *testing.T) {
	web, addr := serve(t, 3)
	path := configured(t, fmt.Sprintf("seeds = ['http://a.example/1']\nproxy = 'http://%s'\ncontact = 'https://me.example/bot'\nuser-agent = 'mybot/1'\n", addr))
	status, out, stderr := command(t, t.Context(), "-config", path)
	require.Zero(t, status, stderr)
	assert.Contains(t, out, "3 pages")
	assert.Equal(t, "mybot/1 (+https://me.example/bot)", web.ua)
}
