// This file tests that no option is without effect in silence.

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// alone are the options that have an effect whatever the others say. A new option is one of them, or has
// its needs in needs.go.
var alone = map[string][]string{
	"crawl": strings.Fields(`dir workers max-pages max-pages-per-host max-time max-bytes order memory grace done-log log-format quiet v
		frontier seeds seeds-file scope-hosts include exclude requisites max-depth max-url
		deny-hosts deny-domains ext deny-ext schemes content-types max-length max-query max-params skip-nofollow no-trap-guards
		delay delay-factor min-delay max-delay backoff-base backoff-max backoff-forgive probes quarantine-after quarantine-probe no-groups host-concurrency
		max-crawl-delay max-retry-after retry-tries limit-pages limit-bytes limit-errors limit-waiting limit-depth
		rule header cookie auth proxy-for user-agent contact proxy resolve timeout max-body allow-network deny-network ports dns cookies old-tls no-http2
		no-keep-alive min-rate max-ratio body-memory temp protocols warc seen stats sitemaps recrawl log log-max-bytes page metrics-listen`),
	"serve": strings.Fields(`dir memory sync delay retry-tries backoff-base backoff-max backoff-forgive probes quarantine-after quarantine-probe lease-time max-lease http grpc fleet tokens tls-cert tls-key client-ca insecure names max-buffered
		max-connections grace log-format quiet v`),
	"route": strings.Fields("part http grpc tls-cert tls-key names insecure max-connections grace log-format quiet v"),
}

func TestEveryOptionSaysWhatItNeeds(t *testing.T) {
	for command, x := range map[string]struct {
		o     *options
		needs []need
	}{"crawl": {newSettings().options, crawlNeeds}, "serve": {newServer().options, serveNeeds}, "route": {newRouter().options, routeNeeds}} {
		said := slices.Clone(alone[command])
		for _, n := range x.needs {
			said = append(said, n.options...)
			for _, b := range n.beside {
				require.NotNil(t, x.o.find(b.option), b.option)
			}
		}
		var all []string
		for _, o := range x.o.all {
			all = append(all, o.Name)
		}
		assert.ElementsMatch(t, all, said, "frontier %s: each option has its needs in needs.go, or stands above", command)
	}
}

// sample is a value of an option other than its default, as it is typed and as it stands in a file.
func sample(x *option) (typed, file string) {
	switch x.kind() {
	case boolean:
		return "true", "true"
	case duration:
		return "90m", "'90m'"
	case size, share:
		return "3", "3"
	case integer:
		return "7", "7"
	case number:
		return "0.5", "0.5"
	case several:
		return "192.0.2.0/24", "['192.0.2.0/24']"
	}
	return "x", "'x'"
}

// judged is what is wrong with options of a crawl, by flags and by a file.
func judged(t *testing.T, flags map[string]string, file string) (*settings, string) {
	s := newSettings()
	path := filepath.Join(t.TempDir(), "crawl.toml")
	require.NoError(t, os.WriteFile(path, []byte(file), 0o600))
	require.NoError(t, s.readConfig(path))
	for name, value := range flags {
		s.find(name).typed = []string{value}
	}
	s.find(seedsKey).typed = []string{"http://a.example/"}
	return s, fmt.Sprint(s.judge(context.Background()))
}

// Each option that needs another is refused without it, as a flag and in a file, and is a comment in what
// is printed. Beside one that it needs it is not.
func TestOptionsWithoutEffect(t *testing.T) {
	for _, n := range crawlNeeds {
		missing, met := map[string]string{}, map[string]string{}
		var lines strings.Builder
		for _, b := range n.beside {
			missing[b.option] = b.unless
			if x := newSettings().find(b.option); b.unless == "" {
				missing = map[string]string{}
				met[b.option], _ = sample(x)
			} else if x.kind() == several {
				fmt.Fprintf(&lines, "%s = ['%s']\n", b.option, b.unless)
			} else if x.kind() == single {
				fmt.Fprintf(&lines, "%s = '%s'\n", b.option, b.unless)
			} else {
				fmt.Fprintf(&lines, "%s = %s\n", b.option, b.unless)
			}
		}
		for _, b := range n.beside {
			if b.unless != "" {
				missing[b.option] = b.unless
			}
		}
		for _, name := range n.options {
			typed, file := sample(newSettings().find(name))
			flags := map[string]string{name: typed}
			for k, v := range missing {
				flags[k] = v
			}
			s, said := judged(t, flags, "")
			assert.Regexp(t, "(?m)^-"+name+" (needs|means nothing beside) -", said)
			assert.True(t, s.find(name).off, name)
			_, said = judged(t, nil, lines.String()+name+" = "+file+"\n")
			assert.Regexp(t, `(?m)^\S+:\d+: `+name+" (needs|means nothing beside) ", said)
			flags = map[string]string{name: typed}
			for k, v := range met {
				flags[k] = v
			}
			_, said = judged(t, flags, "")
			assert.NotRegexp(t, name+" (needs|means nothing)", said)
		}
	}
	_, said := judged(t, map[string]string{"checkpoint-dir": ""}, "dir = 'x'\ncheckpoint-dir = 'y'\ncheckpoint-every = '5m'\n")
	assert.NotContains(t, said, "checkpoint-every", "a flag takes away what it needs")
	_, said = judged(t, map[string]string{"page-token": "a", "page-token-file": "b"}, "")
	assert.Contains(t, said, "-page-token cannot be combined with -page-token-file")
	s, _ := judged(t, map[string]string{"page-token-file": "b"}, "page-token = 'a'\n")
	assert.Empty(t, s.console.token, "the flag counts")
	assert.Contains(t, printed(t, "http://a.example/"), "\n# checkpoint-every = ")
	_, said = judged(t, map[string]string{"rule": "a.example limit-period=1h"}, "")
	assert.Contains(t, said, "limit-period needs limit-pages, limit-bytes or limit-errors")
}

func TestServeOptionsWithoutEffect(t *testing.T) {
	for want, args := range map[string][]string{
		"-grpc-wait needs -grpc other than off":       {"-grpc", "off", "-grpc-wait", "1s"},
		"-grpc-reflection needs -grpc other than off": {"-grpc", "off", "-grpc-reflection"},
		"-insecure means nothing beside -tokens":      {"-insecure"},
		"-http is localhost:99999; want a port":       {"-http", "localhost:99999"},
	} {
		status, _, said := typing(t, append([]string{"serve", "-dir", "x"}, args...)...)
		assert.Equal(t, exitUsage, status, args)
		assert.Contains(t, said, want)
	}
}

// flagsAlone are the flags of the other commands that have an effect whatever the others say; all but
// -dir and -json, which choose the crawl and how what is said looks.
var flagsAlone = map[string]string{
	"top": "every", "hosts": "n after scope reason match sort sunk", "explain": "", "urls": "n after", "ends": "n links outcome host rule", "retry": "outcome host rule",
	"block": "for", "limit": "each pages bytes errors waiting depth", "delete": "yes", "add": "crawl", "now": "crawl", "changed": "at",
	"leases": "n client", "end-leases": "client lease", "drain": "back", "member": "remove",
	"plan": "model periods period budget strategy",
}

// Each other flag is refused where it has no effect.
func TestFlagsWithoutEffect(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	code, _, stderr := command(t, t.Context(), "-dir", dir, "-proxy", "http://127.0.0.1:1", "-max-time", "1s", "-page", "off", "http://a.example/")
	require.NotEqual(t, exitUsage, code, stderr)
	refused := map[string]struct {
		args []string
		says string
	}{
		"explain -crawl": {[]string{"-crawl", "3", "a.example"}, "-crawl is for a URL"},
		"ends -failed":   {[]string{"-failed", "-outcome", "gone"}, "-failed cannot be combined with -outcome or -rule"},
		"block -until":   {[]string{"-for", "1h", "-until", "2100-01-01T00:00:00Z", "a.example"}, "not both"},
		"limit -period":  {[]string{"-waiting", "5", "-period", "1h", "a.example"}, "-period needs -pages, -bytes or -errors"},
	}
	for _, c := range newRoot(new(int)).Commands {
		if slices.Contains([]string{"crawl", "resume", "recrawl", "serve", "route"}, c.Name) {
			continue // their options are judged above
		}
		for _, f := range ownFlags(c) {
			name := f.Names()[0]
			r, ok := refused[c.Name+" -"+name]
			if !ok {
				assert.True(t, name == "dir" || name == "json" || slices.Contains(strings.Fields(flagsAlone[c.Name]), name), "%s -%s: what does it need?", c.Name, name)
				continue
			}
			code, _, stderr := operate(t, append([]string{c.Name, "-dir", dir}, r.args...)...)
			assert.Equal(t, exitUsage, code, r.args)
			assert.Contains(t, stderr, r.says)
			delete(refused, c.Name+" -"+name)
		}
	}
	assert.Empty(t, refused, "no such flags")
	for _, x := range []struct {
		says string
		args []string
	}{
		{"that has passed; -for 0 ends a block", []string{"block", "-until", "2020-01-01T00:00:00Z", "a.example"}},
		{`there is no outcome "gnoe"; did you mean "gone"?`, []string{"ends", "-outcome", "gnoe"}},
		{"want >= 0", []string{"ends", "-n", "-1"}},
		{"reason: want one of", []string{"hosts", "-reason", "bored"}},
		{"delay: want a time as in 5s", []string{"delay", "a.example", "-5s"}},
		{"delay: want a time as in 5s", []string{"delay", "a.example", "10", "5s", "1s"}},
		{`too many arguments: ["9s"]`, []string{"delay", "a.example", "10", "1s", "5s", "9s"}},
		{"malformed cursor", []string{"urls", "-after", "GARBAGE"}},
		{"there is no file nofile", []string{"import", "nofile"}},
		{"there is no file nofile", []string{"changed", "nofile"}},
		{"there is no priority 99; want 1 to 8", []string{"priority", "a.example", "99"}},
		{"exa mple", []string{"pause", "exa mple"}},
	} {
		code, _, stderr := operate(t, append([]string{x.args[0], "-dir", dir}, x.args[1:]...)...)
		assert.Equal(t, exitUsage, code, x.args)
		assert.Contains(t, stderr, x.says, x.args)
	}
	code, out, stderr := operate(t, "priority", "-dir", dir, "a.example", "0")
	assert.Zero(t, code, stderr)
	assert.Contains(t, out, "none of its own")
	for _, f := range newRoot(new(int)).Command("top").Flags {
		assert.NotContains(t, f.Names(), "json", "it prints no JSON")
	}
}
