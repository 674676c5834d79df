// This file tests the line that says how a crawl goes on.

package main

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier/console"
)

// obeyed is what a terminal shows of an output: \r goes to the line's beginning, and ESC [K erases from there.
func obeyed(out string) string {
	lines := strings.Split(out, "\n")
	for i, l := range lines {
		lines[i] = l[strings.LastIndex(l, erased)+1:]
		if strings.Contains(l, erased) {
			lines[i] = l[strings.LastIndex(l, erased)+len(erased):]
		}
	}
	return strings.Join(lines, "\n")
}

func TestLogAndLastLineDoNotMix(t *testing.T) {
	var out bytes.Buffer
	l := &lastLine{out: &out}
	fmt.Fprintln(l, "before")
	assert.Equal(t, "before\n", out.String(), "without a line nothing is added")
	l.draw("12 pages")
	fmt.Fprintln(l, "a log line, longer than the other")
	assert.Equal(t, "before\na log line, longer than the other\n12 pages", obeyed(out.String()))
	fmt.Fprint(l, "half ")
	l.draw("13 pages")
	fmt.Fprintln(l, "and half")
	assert.Equal(t, "before\na log line, longer than the other\nhalf and half\n13 pages", obeyed(out.String()))
	l.draw("")
	fmt.Fprintln(l, "after")
	assert.Equal(t, "before\na log line, longer than the other\nhalf and half\nafter\n", obeyed(out.String()))
}

// However many write, each line of theirs is whole.
func TestLogLinesOfManyStayWhole(t *testing.T) {
	out := &lockedBuffer{}
	l := &lastLine{out: out}
	stop := l.follow(func() string { return "running" })
	var writing sync.WaitGroup
	for i := range 8 {
		writing.Go(func() {
			for range 100 {
				fmt.Fprintf(l, "line of %d\n", i)
				l.draw("moving")
			}
		})
	}
	writing.Wait()
	stop()
	lines := strings.Split(obeyed(out.String()), "\n")
	require.Len(t, lines, 801)
	assert.Empty(t, lines[800], "the moving line is gone")
	for _, line := range lines[:800] {
		assert.Regexp(t, `^line of \d$`, line)
	}
}

func TestProgressFits(t *testing.T) {
	s := console.Status{
		State: console.StateRunning, Sentence: "All hosts wait", Pages: 12823, PagesPerSecond: 46.04, Traffic: console.Traffic{Bytes: 5 << 20}, Waiting: 80868, Hosts: 51, ProblemHosts: 2,
		Running: 63, ETA: "In about 2 min at this rate: 10 pages of the 20 it may fetch.",
	}
	assert.Equal(t, "● running  12\u202f823 pages  46.0/s  5.0 MiB  80\u202f868 waiting  51 hosts, 2 failing  1 min 3 s  ends in about 2 min at this rate", ansi.Strip(progressLine(s, 140)))
	assert.Equal(t, "● running  12\u202f823 pages  46.0/s", ansi.Strip(progressLine(s, 40)))
	for _, s.State = range []string{console.StateRunning, console.StateIdle} {
		for columns := range 140 {
			assert.Less(t, ansi.StringWidth(progressLine(s, columns)), max(1, columns), "the cursor stays in the line")
		}
	}
	assert.Equal(t, "● idle  All hosts wait", ansi.Strip(progressLine(s, 140)))
	assert.Equal(t, "● idle  All hos…", ansi.Strip(progressLine(s, 17)))
}
