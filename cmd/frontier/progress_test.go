// This file tests the line that says how a crawl goes on.

package main

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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
	stop := l.follow(func() int { return 80 }, func() progress { return progress{state: "running"} })
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
	p := progress{state: "running", pages: 12823, pagesPerSecond: 46.04, bytes: 5 << 20, waiting: 80868, hosts: 51, running: 63 * time.Second, end: "ends in 2 min"}
	assert.Equal(t, "● running  12\u202f823 pages  46.0/s  5.0 MiB  80\u202f868 waiting  51 hosts  1 min 3 s  ends in 2 min", ansi.Strip(p.line(120)))
	for columns := range 120 {
		assert.Less(t, ansi.StringWidth(p.line(columns)), max(1, columns), "the cursor stays in the line")
	}
	assert.Equal(t, "● running  12\u202f823 pages  46.0/s", ansi.Strip(p.line(40)))
}
