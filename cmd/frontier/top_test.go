// This file tests what the terminal shows.

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier/console"
)

// crawlSays is a crawl that says what it was given.
type crawlSays struct {
	status console.Status
	large  []console.HostRow
	next   []console.HostRow
	err    error
	did    []console.Action
}

func (c *crawlSays) Status(context.Context) (console.Status, error) { return c.status, c.err }
func (c *crawlSays) Due(context.Context, int) (console.HostList, error) {
	return console.HostList{Hosts: c.next}, nil
}

func (c *crawlSays) Hosts(context.Context, console.HostsQuery) (console.HostList, error) {
	return console.HostList{Hosts: c.large}, nil
}

func (c *crawlSays) Do(_ context.Context, a console.Action) (console.Result, error) {
	c.did = append(c.did, a)
	return console.Result{Said: a.Scope + ": " + a.Do}, c.err
}

var noon = time.Date(2027, 1, 31, 12, 0, 0, 0, time.UTC)

func in(d time.Duration) *time.Time { t := noon.Add(d); return &t }

// busyCrawl is a crawl with much to show.
func busyCrawl() *crawlSays {
	c := &crawlSays{status: console.Status{
		Title: "state", Now: noon, Running: 7200, Waiting: 123456, WaitingBy: []int64{1, 0, 5000, 118455}, Hosts: 400, Quarantined: 1, Memory: 5 << 20, MemoryBudget: 512 << 20,
		Failures: map[string]int64{"dns": 3, "timeout": 12}, Disk: 7 << 20,
		State: console.StateRunning, Sentence: "25 pages a second", Pace: "Most hosts wait.", ETA: "No end in sight.", Pages: 1050, PagesPerSecond: 25, Traffic: console.Traffic{Bytes: 1 << 20, BytesPer: 512 << 10}, ProblemHosts: 2,
		Recrawl: &console.Recrawl{Pages: 1234, Freshness: .8765, Price: .0421, Budget: 50, Demand: 12.25, Wasted: .25},
	}}
	for i := range 200 {
		c.status.Rates = append(c.status.Rates, console.Rate{At: noon.Add(time.Duration(i-200) * time.Second), HandedOut: float64(i % 17)})
		c.status.Events = append(c.status.Events, console.Notice{At: noon, Kind: "host blocked", Host: "a.example\x1b[2J", Text: strings.Repeat("long ", 100)})
		c.large = append(c.large, console.HostRow{Host: fmt.Sprintf("host-%d.example", i), Waiting: int64(1000 - i), Reason: "delay", Due: in(90 * time.Second)})
	}
	c.large[7].Reason, c.large[7].Failures = "quarantine", 8
	c.large[9].Reason = "paused"
	c.status.Problems = []console.Problem{{Host: "host-7.example", What: "server error", Error: "503", Since: in(-time.Minute), Next: "a probe in 9 min"}}
	c.next = []console.HostRow{c.large[3], {Host: "soon.example\x1b[2J", Waiting: 1, Reason: "its turn", Due: in(0)}}
	return c
}

// topOf is a top that has looked once.
func topOf(t *testing.T, c *crawlSays) *top {
	m := newTop(t.Context(), c, time.Second)
	m.Update(m.Init()())
	return m
}

// screenOf is the screen without its colours.
func screenOf(m *top) string { return ansi.Strip(m.View().Content) }

func press(m *top, keys ...string) (cmd tea.Cmd) {
	for _, k := range keys {
		msg := tea.KeyPressMsg{Code: []rune(k)[0], Text: k}
		switch k {
		case "down":
			msg = tea.KeyPressMsg{Code: tea.KeyDown}
		case "end":
			msg = tea.KeyPressMsg{Code: tea.KeyEnd}
		case "ctrl+c":
			msg = tea.KeyPressMsg{Code: 'c', Mod: tea.ModCtrl}
		}
		_, cmd = m.Update(msg)
	}
	return cmd
}

// Whatever the content, and however small the terminal, no line is too wide and the screen not too long.
func TestScreenFits(t *testing.T) {
	m := topOf(t, busyCrawl())
	for _, size := range [][2]int{{80, 24}, {200, 60}, {20, 24}, {20, 10}, {1, 1}, {0, 0}, {40, 3}} {
		for _, key := range []string{"end", "?", "?"} {
			press(m, key)
			m.Update(tea.WindowSizeMsg{Width: size[0], Height: size[1]})
			lines := strings.Split(screenOf(m), "\n")
			assert.LessOrEqual(t, len(lines), max(1, size[1]))
			for _, l := range lines {
				assert.LessOrEqual(t, ansi.StringWidth(l), size[0], "%v %q", size, l)
			}
			assert.NotContains(t, m.View().Content, "\x1b[2J", "what the web says cannot act on the terminal")
		}
	}
	m.Update(tea.WindowSizeMsg{Width: 100, Height: 40})
	press(m, "g")
	all := screenOf(m)
	for _, part := range []string{
		" frontier  state", "2 h   running", "123\u202f456", "of 512 MiB", " 25 pages a second", " pace: Most hosts wait.", " end: No end in sight.", " host-7.example: server error; 503; since 1 min; next: a probe in 9 min", "1\u202f050 25.0/s", "1.0 MiB 512 KiB/s", "failing       2", "waiting by priority: 4: 118\u202f455, 3: 5\u202f000, 1: 1", "failed: dns 3, timeout 12",
		"freshness 87.6 % of 1\u202f234 pages", "price 0.0421 days", "wanted 12.25 of 50 fetches", "wasted 25.0 %", "disk", "7.0 MiB", "in 1 min 30 s", "host blocked",
		"fetches/s    16.0 ┤", "1 min 18 s      0 ┤", "q quit  ? help  p pause", "when unpaused",
	} {
		assert.Contains(t, all, part)
	}
	m.Update(tea.WindowSizeMsg{Width: 20, Height: 60})
	assert.Regexp(t, `(?m)^ waiting +123\x{202f}456$`, screenOf(m), "a narrow terminal has the figures below each other")
	assert.Contains(t, screenOf(newTop(t.Context(), &crawlSays{}, time.Second)), "asking the crawl")
}

// Hosts that fail come first, then paused ones; s goes through the other orders, and the cursor stays on its host.
func TestTopSorts(t *testing.T) {
	m := topOf(t, busyCrawl())
	first := func() string { return m.hosts[0].Host }
	assert.Equal(t, "host-7.example", first())
	assert.Equal(t, "host-9.example", m.hosts[1].Host)
	press(m, "down")
	press(m, "s")
	assert.Equal(t, "host-0.example", first(), "most URLs waiting")
	assert.Equal(t, "host-9.example", m.under())
	press(m, "s")
	assert.Contains(t, first(), "soon.example", "next contact")
	press(m, "s")
	assert.Equal(t, "host-0.example", first(), "name")
	assert.Equal(t, "host-1.example", m.hosts[1].Host)
	assert.Equal(t, "host-9.example", m.under())
	assert.Contains(t, screenOf(m), "s sort: name")
	assert.Len(t, m.hosts, 201, "a host of both lists stands there once")
}

// p pauses the host under the cursor, and goes on with one that is paused: after a y only.
func TestTopPauses(t *testing.T) {
	c := busyCrawl()
	m := topOf(t, c)
	assert.Nil(t, press(m, "p"))
	assert.Contains(t, screenOf(m), "pause host-7.example? y: yes, any other key: no")
	assert.Nil(t, press(m, "q"), "an answer, and no end")
	assert.Contains(t, screenOf(m), "nothing was changed")
	m.Update(press(m, "p", "y")())
	assert.Contains(t, screenOf(m), "host-7.example: pause")
	m.Update(press(m, "down", "p", "y")())
	assert.Equal(t, []console.Action{{Do: "pause", Scope: "host-7.example"}, {Do: "resume", Scope: "host-9.example"}}, c.did)
	c.err = errors.New("no such thing")
	m.Update(press(m, "p", "y")())
	assert.Contains(t, screenOf(m), "no such thing")
	m.Update(press(topOf(t, &crawlSays{}), "p"))
}

// A crawl that falls silent has ended, and may come back.
func TestTopFollows(t *testing.T) {
	c := busyCrawl()
	m := topOf(t, c)
	c.err = errors.New("refused")
	_, cmd := m.Update(m.ask())
	assert.NotNil(t, cmd, "another look follows")
	assert.Contains(t, screenOf(m), " ended ")
	assert.Contains(t, screenOf(m), "does not answer any more")
	assert.Contains(t, screenOf(m), "1\u202f050", "the last figures stay")
	c.err, c.status.State, c.status.Sentence = nil, console.StatePaused, "Nothing is fetched until you unpause it"
	m.Update(m.ask())
	assert.Contains(t, screenOf(m), " paused ")
	assert.Contains(t, screenOf(m), " Nothing is fetched until you unpause it")
	for _, key := range []string{"q", "ctrl+c"} {
		assert.Equal(t, tea.Quit(), press(m, key)(), key)
	}
}

// Where there is no terminal, or the crawl does not run, top says once how it is.
func TestTopWithoutATerminal(t *testing.T) {
	r := startCrawl(t)
	code, out, stderr := operate(t, "top", "-dir", r.dir)
	require.Equal(t, exitOK, code, stderr)
	assert.Regexp(t, `(?m)^ frontier  state .* running$`, out)
	assert.Regexp(t, `fetching +2`, out)
	assert.NotContains(t, out, "\x1b")
	r.end(t)
	code, out, stderr = operate(t, "top", "-dir", r.dir)
	require.Equal(t, exitOK, code, stderr)
	assert.Regexp(t, `(?m)^ frontier  state .* at rest$`, out)
	f, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer f.Close()
	assert.False(t, isTerminal(f))
}

// The freshness of the copy, and its price, are shown from the beginning.
func TestStatusOfARecrawl(t *testing.T) {
	r := startCrawl(t, "-recrawl", "-recrawl-budget", "50")
	code, out, stderr := operate(t, "status", "-dir", r.dir)
	require.Equal(t, exitOK, code, stderr)
	assert.Regexp(t, `(?m)^freshness .* of 0 pages, expected$`, out)
	assert.Regexp(t, `(?m)^price .* days of weight for a fetch$`, out)
	assert.Regexp(t, `(?m)^wanted .* of 50 fetches each second$`, out)
	assert.Regexp(t, `(?m)^memory .* of 512 MiB$`, out)
	code, out, stderr = operate(t, "status", "-json", "-dir", r.dir)
	require.Equal(t, exitOK, code, stderr)
	var s struct {
		Recrawl *console.Recrawl
	}
	require.NoError(t, json.Unmarshal([]byte(out), &s))
	assert.EqualValues(t, 50, s.Recrawl.Budget)
	stop(t, r.dir)
	r.endsWith(t, exitStopped)
}
