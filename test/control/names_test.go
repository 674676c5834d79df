// This file tests names of hosts and domains as an operator may spell them: what no
// host can be called is refused, and all spellings of a name find its host.

package control

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/test/harness"
	"github.com/seed-7440039f/frontier/transfer"
)

// controlsOf gives each control that names a scope and a host the name.
func controlsOf(f *frontier.Frontier, s scope.Scope, host string) map[string]error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, deleted := f.Delete(ctx, s)
	errs := map[string]error{
		"Pause": f.Pause(s), "BlockUntil": f.BlockUntil(s, harness.Dawn.Add(time.Hour)), "Resume": f.Resume(s),
		"SetDelay": f.UpdateRule(s, func(r *frontier.Rule) { r.Delay = frontier.FixedDelay(time.Millisecond) }), "SetConcurrency": f.UpdateRule(s, func(r *frontier.Rule) { r.Concurrency = 2 }),
		"SetPriority": f.UpdateRule(s, func(r *frontier.Rule) { r.Priority = 2 }), "SetLimits": f.UpdateRule(s, func(r *frontier.Rule) { r.Limits = scope.Limits{Served: 1 << 40} }),
		"SetHostLimits": f.UpdateRule(s, func(r *frontier.Rule) { r.HostLimits = scope.Limits{Served: 1 << 40} }), "Delete": deleted,
		"Clear": f.Clear(s), "Assign": f.Assign(host, "g"), "Forget": f.Forget(host),
	}
	l, err := f.Contact(ctx, host)
	if errs["Contact"] = err; err == nil {
		errs["Contact"] = f.Done(l, frontier.Outcome{})
	}
	for _, err := range inspect.New(f).URLs(ctx, s, "") {
		errs["URLs"] = err
	}
	return errs
}

func TestNamesThatNoHostHas(t *testing.T) {
	for name, want := range map[string]string{
		"a.example:8080":    `want "a.example"`,
		"A.Example:80":      `want "a.example"`,
		"a.example:":        `want "a.example"`,
		"[2001:db8::1]:80":  `want "2001:db8::1"`,
		"a／b.example":       "character '／'",
		"http://a.example/": "without scheme",
		"a.example/x":       "without scheme",
		"me@a.example":      "without scheme",
		"a example":         "character ' '",
		"a.example\n":       `character '\n'`,
		"a\x00.example":     `character '\x00'`,
		"a.example:http":    "invalid port",
		"a%20.example":      "character '%'",
		"a:b:c":             "invalid host",
	} {
		t.Run(name, func(t *testing.T) {
			harness.InBothWorlds(t, frontier.Options{}, func(t *testing.T, w *harness.World) {
				w.Add("http://a.example/")
				before := w.Known(name, "a.example")
				for _, s := range []scope.Scope{scope.Host(name), scope.Domain(name)} {
					for control, err := range controlsOf(w.F, s, name) {
						assert.ErrorContains(t, err, want, "%s of %v", control, s)
					}
				}
				require.Equal(t, before, w.Known(name, "a.example"))
			})
		})
	}
	w := harness.NewWorld(t, frontier.Options{})
	require.ErrorContains(t, w.F.Pause(scope.Domain("*.example.org")), `want "example.org"`)
	require.ErrorContains(t, w.F.Pause(scope.Domain(".example.org")), `want "example.org"`)
}

// Whatever the host of a URL is called, controls take that name.
func TestNamesThatHostsHave(t *testing.T) {
	for url, name := range map[string]string{
		"http://A.Example.:80/":      "a.example",
		"https://[2001:DB8::0:1]:8/": "2001:db8::1",
		"http://10.0.0.1:8080/":      "10.0.0.1",
		"http://bücher.example/":     "xn--bcher-kva.example",
		"http://xn--bcher-kva.test/": "xn--bcher-kva.test",
		"http://a_b.example/":        "a_b.example",
		"http://localhost:3000/":     "localhost",
		"http://a.example./":         "a.example",
		"http://*.example/":          "*.example",
	} {
		w := harness.NewWorld(t, frontier.Options{})
		w.Add(url)
		require.Equal(t, inspect.ReasonBackQueue, w.Info(name).Reason)
		for control, err := range controlsOf(w.F, scope.Host(name), name) {
			require.NoError(t, err, "%s of %s", control, name)
		}
		require.Zero(t, w.Info(name).Waiting, "Delete met it")
	}
}

// However a name is spelled, controls and views find its host.
func TestSpellingsOfNames(t *testing.T) {
	for url, spellings := range map[string][]string{
		"http://bücher.example/": {"bücher.example", "BÜCHER.Example", "bu\u0308cher.example.", "bücher。example", "xn--bcher-kva.example", "XN--bcher-KVA.example"},
		"http://Example.org/":    {"ｅｘａｍｐｌｅ.org", "EXAMPLE.ORG", "example.org."},
		"http://192.0.2.1/":      {"::ffff:192.0.2.1", "[::ffff:c000:201]", "192.0.2.1.", "3221225985", "0xC0.0.2.1", "192.0.513"},
		"http://[2001:DB8::1]/":  {"2001:DB8:0::1", "[2001:db8::1]"},
	} {
		key, err := frontier.HostName(url)
		require.NoError(t, err)
		for _, name := range spellings {
			t.Run(name, func(t *testing.T) {
				harness.InBothWorlds(t, frontier.Options{}, func(t *testing.T, w *harness.World) {
					w.Add(url)
					for _, of := range []func(string) scope.Scope{scope.Host, scope.Domain} {
						s := of(name)
						require.NoError(t, w.F.CheckScope(s))
						require.NoError(t, w.F.Pause(s))
						require.Equal(t, inspect.ReasonPaused, w.Info(key).Reason)
						require.Equal(t, scope.On, w.F.RuleOf(name).Paused)
						r, ok := w.F.Rule(s)
						require.True(t, ok)
						require.Equal(t, scope.On, r.Paused)
						for as := range w.F.Rules() {
							require.Equal(t, of(key), as)
						}
						require.NoError(t, w.F.Resume(s))
						require.Equal(t, inspect.ReasonBackQueue, w.Info(key).Reason)
						require.NoError(t, w.F.UpdateRule(s, func(r *frontier.Rule) { r.Limits = scope.Limits{Served: 7} }))
						_, ok = inspect.New(w.F).Used(s)
						require.True(t, ok)
						require.NoError(t, w.F.UpdateRule(s, func(r *frontier.Rule) { r.Delay = frontier.FixedDelay(9 * time.Millisecond) }))
						require.Equal(t, frontier.FixedDelay(9*time.Millisecond), w.F.DelayOf(name))
						require.NoError(t, w.F.Clear(s))
						require.Equal(t, []string{key}, slices.Collect(inspect.New(w.F).HostNames(s, "")))
						require.Len(t, slices.Collect(inspect.New(w.F).Hosts(s, "")), 1)
						line := fmt.Sprintf(`{"rule":"host","name":%q,"paused":"on"}`, name)
						if s == scope.Domain(name) {
							line = strings.Replace(line, "host", "domain", 1)
						}
						_, err := transfer.Import(t.Context(), w.F, strings.NewReader(line), transfer.ImportOptions{})
						require.NoError(t, err)
						require.Equal(t, inspect.ReasonPaused, w.Info(name).Reason)
						require.NoError(t, w.F.Clear(s))
					}
					require.NoError(t, w.F.Assign(name, "g"))
					require.Equal(t, "g", w.Info(key).Group)
					require.Equal(t, key, w.Info(name).Host)
					require.NoError(t, w.F.Forget(name))
					require.Empty(t, w.Info(key).Group)
					for u, err := range inspect.New(w.F).URLs(t.Context(), scope.Host(name), "") {
						require.NoError(t, err)
						require.Equal(t, url, u.Entry.URL)
					}
					n, err := w.F.Delete(t.Context(), scope.Host(name))
					require.NoError(t, err)
					require.EqualValues(t, 1, n)
					l, err := w.F.Contact(t.Context(), name)
					require.NoError(t, err)
					require.Equal(t, key, l.Host)
					require.NoError(t, w.F.Done(l, frontier.Outcome{}))
				})
			})
		}
	}
}

// One machine is contacted once at a time, however its URLs spell it.
func TestSpellingsOfOneMachine(t *testing.T) {
	for _, urls := range [][]string{
		{"http://bücher.example/1", "http://xn--bcher-kva.example/2", "http://BÜCHER.example/3", "http://bücher。example/4"},
		{"http://ｅｘａｍｐｌｅ.org/1", "http://example.org/2"},
		{"http://192.0.2.1/1", "http://[::ffff:192.0.2.1]/2", "http://3221225985/3", "http://0300.0.2.01/4", "http://0xc0.0.0x201/5"},
	} {
		harness.InBothWorlds(t, frontier.Options{}, func(t *testing.T, w *harness.World) {
			w.Add(urls...)
			require.Len(t, slices.Collect(inspect.New(w.F).HostNames(scope.All(), "")), 1)
		})
	}
}

// A rule of such a name is a malformed line of an import.
func TestImportedNamesThatNoHostHas(t *testing.T) {
	w := harness.NewWorld(t, frontier.Options{})
	text := "http://a.example/\n" + `{"rule":"host","name":"a.example:80","paused":"on"}`
	done, err := transfer.Import(t.Context(), w.F, strings.NewReader(text), transfer.ImportOptions{})
	var line *transfer.LineError
	require.ErrorAs(t, err, &line)
	require.EqualValues(t, 2, line.Line)
	require.ErrorContains(t, err, `want "a.example"`)
	require.Zero(t, done)
	done, err = transfer.Import(t.Context(), w.F, strings.NewReader(text), transfer.ImportOptions{SkipBad: true})
	require.ErrorAs(t, err, &line)
	require.Equal(t, transfer.Imported{Lines: 2, Bad: 1, URLs: 1}, done)
}

// Who makes host keys himself names hosts as he likes.
func TestNamesOfOnesOwnKeys(t *testing.T) {
	w := harness.NewWorld(t, frontier.Options{HostKey: func(u string) (string, error) { return "Shard 1/" + u[:4], nil }})
	w.Add("http://a.example/")
	for control, err := range controlsOf(w.F, scope.Host("Shard 1/http"), "Shard 1/http") {
		require.NoError(t, err, control)
	}
	require.NoError(t, w.F.Pause(scope.Domain(".X")))
}

// Under another HostKey the machines of a store would be two hosts each: Open says so, and leaves the store as it is.
func TestAStoreKeepsItsHostKey(t *testing.T) {
	w := harness.NewStoredWorld(t, frontier.Options{}, spill.Options{})
	w.Add("http://a.example/")
	w.Options.HostKey = frontier.HostName // by name
	w.Reopen()
	harness.Ended(t, w.F)
	for name, key := range map[string]func(string) (string, error){
		"without subdomains": func(u string) (string, error) {
			host, err := frontier.HostName(u)
			labels := strings.Split(host, ".")
			return strings.Join(labels[max(0, len(labels)-2):], "."), err
		},
		"with the scheme": func(u string) (string, error) { return u[:5], nil },
		"none":            func(string) (string, error) { return "", errors.New("no key") },
	} {
		o := w.Options
		o.HostKey = key
		_, err := frontier.Open(t.Context(), o)
		require.ErrorContains(t, err, "HostKey names hosts otherwise than before", name)
	}
	w.Open()
	require.Equal(t, "a.example", w.Next().Host)
}
