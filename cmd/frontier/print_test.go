// This file tests that tables hold nothing that a terminal would obey.

package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier/console"
)

func TestTablesHoldNothingThatATerminalObeys(t *testing.T) {
	bad := "http://me:hunter2@a.example/\x1b]0;owned\x07\x1b[31m\r\nforged\tcell\u202e\u0085\u009b31m\v\f"
	rule := console.Rule{Delay: &console.Delay{Words: bad[len("http://me:hunter2@"):]}}
	rows := []console.HostRow{{Host: bad, Reason: bad, Group: bad}}
	for name, show := range map[string]func(*printer) error{
		"hosts": func(p *printer) error { return p.hosts(console.HostList{Hosts: rows, Next: bad}) },
		"host":  func(p *printer) error { return p.host(console.Host{HostRow: rows[0], Why: bad, Rule: rule}) },
		"url": func(p *printer) error {
			return p.became(console.URL{URL: bad, State: bad, Why: bad, Host: bad}, t.TempDir())
		},
		"urls": func(p *printer) error { return p.urls(console.URLList{URLs: []console.URL{{URL: bad}}, Next: bad}) },
		"rules": func(p *printer) error {
			return p.rules(console.RuleList{Rules: []console.ScopeRule{{Scope: bad, Rule: rule}}})
		},
		"result": func(p *printer) error { return p.result(console.Result{Said: bad}) },
		"top": func(p *printer) error {
			m := newTop(t.Context(), nil, time.Second)
			m.width, m.said = 10_000, bad
			m.take(lookedMsg{look: look{console.Status{Title: bad, State: "running", Sentence: bad, Pace: bad, ETA: bad, Problems: []console.Problem{{Host: bad, What: bad, Error: bad, Next: bad}}, Now: time.Now(), Failures: map[string]int64{bad: 1}, Events: []console.Notice{{Kind: bad, Host: bad, URL: bad, Text: bad}}}, rows}})
			_, err := fmt.Fprintln(p.w, ansi.Strip(strings.Join(m.screen(), "\n")))
			return err
		},
		"status": func(p *printer) error {
			return p.status(console.Status{Failures: map[string]int64{bad: 1}, Figures: []console.Figure{{Name: bad, Value: 1}}}, true, nil)
		},
	} {
		var out bytes.Buffer
		require.NoError(t, show(&printer{w: &out}), name)
		assert.Contains(t, out.String(), "owned", name)
		assert.NotContains(t, out.String(), "hunter2@", name)
		for line := range strings.Lines(out.String()) {
			assert.False(t, strings.HasPrefix(line, "forged"), "%s: a forged line: %q", name, line)
			for _, r := range strings.TrimSuffix(line, "\n") {
				assert.True(t, unicode.IsPrint(r), "%s: %q in %q", name, r, line)
			}
		}
	}
}

func TestAReasonOfSeveralLinesIsOneCell(t *testing.T) {
	assert.Equal(t, "a\tone; two%1B", row("a", "one\ntwo\x1b"))
}
