// This file shows on a terminal how a crawl goes on, in a last line that moves below those of
// the log.

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/seed-7440039f/frontier/console"
)

// lastLine is a terminal whose last line is drawn again and again. What is written meanwhile
// goes above it. It is safe for concurrent use.
type lastLine struct {
	mu    sync.Mutex
	out   io.Writer
	line  string // guarded by mu; empty: none is drawn
	begun bool   // guarded by mu; what was written ended within a line
}

// Write implements io.Writer.
func (l *lastLine) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.line == "" || len(p) == 0 {
		return l.out.Write(p)
	}
	var all bytes.Buffer
	if !l.begun {
		all.WriteString(erased)
	}
	all.Write(p)
	if l.begun = !bytes.HasSuffix(p, []byte("\n")); !l.begun {
		all.WriteString(l.line)
	}
	if _, err := l.out.Write(all.Bytes()); err != nil {
		return 0, err
	}
	return len(p), nil
}

// erased takes the line away on which the cursor is.
const erased = "\r\x1b[K"

// draw draws the line, or takes it away if it is empty. A terminal that takes no more is a
// matter of the log's.
func (l *lastLine) draw(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.begun && l.line+line != "" {
		_, _ = io.WriteString(l.out, erased+line)
	}
	l.line = line
}

// progressLine says in one line of the given width how a crawl is: in the sentence of its state, or while it
// runs in figures. Those that do not fit are left out, the last first.
func progressLine(s console.Status, columns int) string {
	style, parts := stateStyle(s.State), []string(nil)
	switch s.State {
	case console.StateRunning, console.StateStopping:
		parts = []string{
			bold.Render(console.Count(s.Pages)) + " pages", fmt.Sprintf("%.1f/s", s.PagesPerSecond), console.Size(s.Traffic.Bytes), console.Count(s.Waiting) + " waiting", console.Count(s.Hosts) + " hosts",
		}
		if s.ProblemHosts > 0 {
			parts[4] += ", " + bad.Render(console.Count(int64(s.ProblemHosts))+" failing")
		}
		parts = append(parts, console.Ago(seconds(s.Running).Truncate(time.Second)))
		if when, _, _ := strings.Cut(s.ETA, ":"); strings.HasPrefix(when, "In about ") {
			parts = append(parts, faint.Render("ends in"+strings.TrimPrefix(when, "In")))
		}
	default:
		parts = []string{ansi.Truncate(oneLine(s.Sentence), max(0, columns-ansi.StringWidth(s.State)-5), "…")}
	}
	line := ansi.Truncate(style.Bold(true).Render("● "+s.State), max(0, columns-1), "") // a full line would move the cursor to the next
	for _, x := range parts {
		if ansi.StringWidth(line)+2+ansi.StringWidth(x) >= columns {
			break
		}
		line += "  " + x
	}
	return line
}

// stateStyle is the colour of a state.
func stateStyle(state string) lipgloss.Style {
	switch state {
	case console.StateRunning:
		return good
	case console.StateIdle:
		return calm
	case console.StatePaused, console.StateStopping:
		return warning
	case console.StateTrouble:
		return bad
	}
	return faint
}

// showProgress shows how a crawl goes on, until the function that it returns is called.
func (s *settings) showProgress(ctx context.Context) (hide func()) {
	if s.line == nil {
		return func() {}
	}
	ctx = context.WithoutCancel(ctx) // while it stops, too
	return s.line.follow(func() string { return progressLine(s.console.shown.Status(ctx), columnsOf(s.line.out)-1) })
}

// follow draws the line each second, until the function that it returns is called.
func (l *lastLine) follow(now func() string) (stop func()) {
	ended := make(chan struct{})
	var drawing sync.WaitGroup
	drawing.Go(func() {
		t := time.NewTicker(time.Second)
		defer t.Stop()
		for {
			line := now() + " " // what a shell says of a kill stands apart
			if os.Getenv("NO_COLOR") != "" {
				line = ansi.Strip(line)
			}
			l.draw(line)
			select {
			case <-ended:
				l.draw("")
				return
			case <-t.C:
			}
		}
	})
	return func() {
		close(ended)
		drawing.Wait()
	}
}
