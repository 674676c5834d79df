// This file shows on a terminal how a crawl goes on, in a last line that moves below those of
// the log.

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/console"
	"github.com/seed-7440039f/frontier/crawler"
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

// progress is what the line says.
type progress struct {
	state          string // of console.Status
	pages          int64
	pagesPerSecond float64
	bytes          int64
	waiting        int64
	hosts          int64
	running        time.Duration
	end            string // when it ends; empty: nobody knows
}

// line is it in so many columns. What does not fit is left out, the last first.
func (p progress) line(columns int) string {
	style := stateStyle(p.state)
	parts := []string{
		style.Bold(true).Render("● " + p.state), bold.Render(console.Count(p.pages)) + " pages", fmt.Sprintf("%.1f/s", p.pagesPerSecond), console.Size(p.bytes),
		console.Count(p.waiting) + " waiting", console.Count(p.hosts) + " hosts", console.Ago(p.running.Truncate(time.Second)),
	}
	if p.end != "" {
		parts = append(parts, p.end)
	}
	line := ansi.Truncate(parts[0], max(0, columns-1), "") // a full line would move the cursor to the next
	for _, x := range parts[1:] {
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
	case "running":
		return good
	case "idle":
		return calm
	case "paused", "stopping":
		return warning
	case "trouble":
		return bad
	}
	return faint
}

// progressOf is what a crawler says. The crawl stops if ctx has ended.
func progressOf(ctx context.Context, f *frontier.Frontier, p crawler.Progress, rate float64, maxPages int64) progress {
	x := progress{
		state: "running", pages: p.Pages, pagesPerSecond: rate, bytes: p.Bytes,
		waiting: p.Frontier.Waiting - p.Parked - p.NextRun, hosts: p.Frontier.Hosts, running: p.Elapsed,
	}
	if all, _ := f.Rule(frontier.All()); all.Paused == frontier.On || all.BlockedUntil.After(time.Now()) {
		x.state = "paused"
	}
	if ctx.Err() != nil {
		x.state = "stopping"
	}
	if left := maxPages - p.Pages; maxPages > 0 && left > 0 && rate > 0 && x.state == "running" {
		x.end = "ends in " + console.Ago(seconds(float64(left)/rate).Round(time.Second))
	}
	return x
}

// showProgress shows how a crawl goes on, until the function that it returns is called.
func (s *settings) showProgress(ctx context.Context, f *frontier.Frontier, c *crawler.Crawler) (hide func()) {
	if s.line == nil {
		return func() {}
	}
	var m meter
	return s.line.follow(func() int { return columnsOf(s.line.out) }, func() progress {
		p := c.Progress()
		m.add(reading{time.Now(), p.Pages, p.Bytes})
		rate, _ := m.rates()
		return progressOf(ctx, f, p, rate, s.crawler.MaxPages)
	})
}

// follow draws the line each second, until the function that it returns is called.
func (l *lastLine) follow(columns func() int, now func() progress) (stop func()) {
	ended := make(chan struct{})
	var drawing sync.WaitGroup
	drawing.Go(func() {
		t := time.NewTicker(time.Second)
		defer t.Stop()
		for {
			line := now().line(columns()-1) + " " // what a shell says of a kill stands apart
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
