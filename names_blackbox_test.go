// This file tests names of hosts and domains as an operator may spell them: what no
// host can be called is refused, and the right spelling told.

package frontier_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// controlsOf gives each control that names a scope and a host the name.
func controlsOf(f *frontier.Frontier, s frontier.Scope, host string) map[string]error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, deleted := f.Delete(ctx, s)
	errs := map[string]error{
		"Pause": f.Pause(s), "BlockUntil": f.BlockUntil(s, dawn.Add(time.Hour)), "Resume": f.Resume(s),
		"SetDelay": f.SetDelay(s, frontier.FixedDelay(1)), "SetConcurrency": f.SetConcurrency(s, 2),
		"SetPriority": f.SetPriority(s, 2), "SetLimits": f.SetLimits(s, frontier.Limits{Served: 1 << 40}),
		"SetHostLimits": f.SetHostLimits(s, frontier.Limits{Served: 1 << 40}), "Delete": deleted,
		"Clear": f.Clear(s), "Assign": f.Assign(host, "g"), "Forget": f.Forget(host),
	}
	l, err := f.Contact(ctx, host)
	if errs["Contact"] = err; err == nil {
		errs["Contact"] = f.Done(l, frontier.Outcome{})
	}
	for _, err := range f.URLs(ctx, s, "") {
		errs["URLs"] = err
	}
	return errs
}

func TestNamesThatNoHostHas(t *testing.T) {
	for name, want := range map[string]string{
		"A.Example":         `want "a.example"`,
		"A.example.":        `want "a.example"`,
		"a.example:8080":    `want "a.example"`,
		"[2001:db8::1]":     `want "2001:db8::1"`,
		"2001:DB8::1":       `want "2001:db8::1"`,
		"BÜCHER.example":    `want "bücher.example"`,
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
			inBothWorlds(t, frontier.Options{}, func(t *testing.T, w *world) {
				w.add("http://a.example/")
				before := w.known(name, "a.example")
				for _, s := range []frontier.Scope{frontier.Host(name), frontier.Domain(name)} {
					for control, err := range controlsOf(w.f, s, name) {
						assert.ErrorContains(t, err, want, "%s of %v", control, s)
					}
				}
				require.Equal(t, before, w.known(name, "a.example"))
			})
		})
	}
	w := newWorld(t, frontier.Options{})
	require.ErrorContains(t, w.f.Pause(frontier.Domain("*.example.org")), `want "example.org"`)
	require.ErrorContains(t, w.f.Pause(frontier.Domain(".example.org")), `want "example.org"`)
}

// Whatever the host of a URL is called, controls take that name.
func TestNamesThatHostsHave(t *testing.T) {
	for url, name := range map[string]string{
		"http://A.Example.:80/":      "a.example",
		"https://[2001:DB8::0:1]:8/": "2001:db8::1",
		"http://10.0.0.1:8080/":      "10.0.0.1",
		"http://bücher.example/":     "bücher.example",
		"http://xn--bcher-kva.test/": "xn--bcher-kva.test",
		"http://a_b.example/":        "a_b.example",
		"http://localhost:3000/":     "localhost",
		"http://a.example../":        "a.example.",
		"http://*.example/":          "*.example",
	} {
		w := newWorld(t, frontier.Options{})
		w.add(url)
		require.Equal(t, frontier.ReasonBackQueue, w.info(name).Reason)
		for control, err := range controlsOf(w.f, frontier.Host(name), name) {
			require.NoError(t, err, "%s of %s", control, name)
		}
		require.Zero(t, w.info(name).Waiting, "Delete met it")
	}
}

// A rule of such a name is a malformed line of an import.
func TestImportedNamesThatNoHostHas(t *testing.T) {
	w := newWorld(t, frontier.Options{})
	text := "http://a.example/\n" + `{"rule":"host","name":"A.Example","paused":"on"}`
	done, err := w.f.Import(t.Context(), strings.NewReader(text), frontier.ImportOptions{})
	var line *frontier.LineError
	require.ErrorAs(t, err, &line)
	require.EqualValues(t, 2, line.Line)
	require.ErrorContains(t, err, `want "a.example"`)
	require.Zero(t, done)
	done, err = w.f.Import(t.Context(), strings.NewReader(text), frontier.ImportOptions{SkipBad: true})
	require.ErrorAs(t, err, &line)
	require.Equal(t, frontier.Imported{Lines: 2, Bad: 1, URLs: 1}, done)
}

// Who makes host keys himself names hosts as he likes.
func TestNamesOfOnesOwnKeys(t *testing.T) {
	w := newWorld(t, frontier.Options{HostKey: func(u string) (string, error) { return "Shard 1/" + u[:4], nil }})
	w.add("http://a.example/")
	for control, err := range controlsOf(w.f, frontier.Host("Shard 1/http"), "Shard 1/http") {
		require.NoError(t, err, control)
	}
	require.NoError(t, w.f.Pause(frontier.Domain(".X")))
}
