// This file tests what the terminal shows.

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier/console"
)

// Whatever is to be shown, and however small the terminal is, nothing is wider or longer.
func TestScreenFits(t *testing.T) {
	due := time.Now().Add(90 * time.Second)
	x := look{Status: console.Status{
		Title: "state", Running: 7200, Waiting: 123456, WaitingBy: []int64{1, 0, 5000, 118455}, Hosts: 400, HandedOutPerSecond: 12.5, Memory: 5 << 20, MemoryBudget: 512 << 20,
		Failures: map[string]int64{"dns": 3, "timeout": 12}, Disk: 7 << 20,
		Recrawl: &console.Recrawl{Pages: 1234, Freshness: .8765, Price: .0421, Budget: 50, Demand: 12.25, Wasted: .25},
	}}
	for i := range 200 {
		x.Rates = append(x.Rates, console.Rate{HandedOut: float64(i % 17)})
		x.due = append(x.due, console.HostRow{Host: fmt.Sprintf("host-%d.example", i), Waiting: int64(i), Reason: "delay", Due: &due})
		x.Events = append(x.Events, console.Notice{At: time.Unix(0, 0), Kind: "host blocked", Host: "a.example\x1b[2J", Text: strings.Repeat("long ", 100)})
	}
	for _, size := range [][2]int{{80, 24}, {200, 60}, {20, 24}, {20, 10}, {1, 1}, {0, 0}, {40, 3}} {
		lines := screen(x, true, size[0], size[1])
		assert.LessOrEqual(t, len(lines), max(1, size[1]))
		for _, l := range lines {
			assert.LessOrEqual(t, utf8.RuneCountInString(l), size[0], "%v %q", size, l)
			assert.NotContains(t, l, "\x1b")
		}
	}
	all := strings.Join(screen(x, true, 100, 40), "\n")
	for _, part := range []string{"state  running for 2 h", "of 512 MiB", "12.5 handed out", "priority  4", "█", "failed: dns 3, timeout 12", "freshness 87.6 % of 1\u202f234 pages", "price 0.0421 days", "wanted 12.25 of 50 fetches", "wasted 25.0 %", "disk 7.0 MiB", "host-0.example", "in 1 min", "host blocked", "▇"} {
		assert.Contains(t, all, part)
	}
	assert.Len(t, screen(look{}, false, 80, 24), 5, "of an empty crawl")
	// A narrow terminal tells the figures too, below each other.
	narrow := strings.Join(screen(x, true, 20, 60), "\n")
	for _, part := range []string{"running for 2 h\n", "\n123\u202f456 waiting,\n", "known\n", "\nof 512 MiB\n", "\n12.5 handed out\n", "\nfailed: dns 3,\ntimeout 12\n", "\npriority  4  118\u202f455\n", "\nhost-0.exam…       0\n", "\nfreshness 87.6 % of\n"} {
		assert.Contains(t, narrow, part)
	}
}

// Where there is no terminal a line comes for each look, until the watching ends.
func TestTopWithoutATerminal(t *testing.T) {
	r := startCrawl(t)
	ctx, cancel := context.WithCancel(t.Context())
	out := &lockedBuffer{}
	ended := make(chan int)
	go func() {
		ended <- run(ctx, []string{"top", "-dir", r.dir, "-every", "100ms"}, strings.NewReader(""), out, &bytes.Buffer{})
	}()
	require.Eventually(t, func() bool { return strings.Count(out.String(), "leased=2") >= 2 }, time.Minute, 10*time.Millisecond)
	cancel()
	assert.Equal(t, exitOK, <-ended)
	r.end(t)
	f, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer f.Close()
	assert.False(t, isTerminal(f))
}

// How fresh the copy is, and at what price, is told from the beginning on.
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
	_, _, _ = operate(t, "stop", "-dir", r.dir)
	r.endsWith(t, exitStopped)
}
