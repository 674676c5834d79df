// This file shows a crawl's progress on a terminal, in a last line below the log.

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

// lastLine is a terminal with a last line that is redrawn. Other output goes above it. It is safe for
// concurrent use.
type lastLine struct {
	mu    sync.Mutex
	out   io.Writer
	line  string // guarded by mu; empty: none
	begun bool   // guarded by mu; other output ended within a line
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

// erased clears the cursor's line.
const erased = "\r\x1b[K"

// draw draws the line, or removes it if it is empty. It ignores write errors: the log reports those.
func (l *lastLine) draw(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.begun && l.line+line != "" {
		_, _ = io.WriteString(l.out, erased+line)
	}
	l.line = line
}

// progressLine describes a crawl in one line of the given width: by the sentence of its state, or while
// it runs by figures. It drops the last figures that do not fit.
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
	line := ansi.Truncate(style.Bold(true).Render("● "+s.State), max(0, columns-1), "") // a full line would wrap
	for _, x := range parts {
		if ansi.StringWidth(line)+2+ansi.StringWidth(x) >= columns {
			break
		}
		line += "  " + x
	}
	return line
}

// stateStyle returns a state's colour.
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

// showProgress shows the progress until hide is called.
func (s *settings) showProgress(ctx context.Context) (hide func()) {
	if s.line == nil {
		return func() {}
	}
	ctx = context.WithoutCancel(ctx) // also while the crawl stops
	return s.line.follow(func() string { return progressLine(s.console.shown.Status(ctx), columnsOf(s.line.out)-1) })
}

// follow redraws the line every second until stop is called.
func (l *lastLine) follow(now func() string) (stop func()) {
	ended := make(chan struct{})
	var drawing sync.WaitGroup
	drawing.Go(func() {
		t := time.NewTicker(time.Second)
		defer t.Stop()
		for {
			line := now() + " " // keeps a shell's message after a kill apart
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
