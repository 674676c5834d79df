// This file shows a running crawl in a terminal, drawn anew each second.

package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/urfave/cli/v3"

	"github.com/seed-7440039f/frontier/console"
)

func topCommand() *cli.Command {
	every := &cli.DurationFlag{Name: "every", Value: time.Second, Usage: "`time` between two looks"}
	return looking("top", "", "watch a running crawl; Ctrl-C ends the watching alone", func(ctx context.Context, c *reached, cmd *cli.Command, _ *printer) error {
		if err := noMore(cmd.Args().Slice()); err != nil {
			return err
		}
		if cmd.Duration("every") < 100*time.Millisecond {
			return usageError("top: -every is below 100ms")
		}
		out := cmd.Root().Writer
		if f, ok := out.(*os.File); ok && isTerminal(f) {
			return watchScreen(ctx, c, cmd.Duration("every"), f)
		}
		return watchLines(ctx, c, cmd.Duration("every"), out)
	}, every)
}

// look is what one look shows.
type look struct {
	console.Status
	due []console.HostRow
}

func (c *reached) look(ctx context.Context) (x look, err error) {
	if x.Status, err = c.Status(ctx); err != nil {
		return x, err
	}
	due, err := c.Due(ctx, 100)
	x.due = due.Hosts
	return x, err
}

// watchScreen draws until ctx ends, or the crawl does.
func watchScreen(ctx context.Context, c *reached, every time.Duration, f *os.File) error {
	resized := make(chan os.Signal, 1)
	notifyResize(resized)
	defer signal.Stop(resized)
	fmt.Fprint(f, "\x1b[?1049h\x1b[?25l")       // another screen, no cursor
	defer fmt.Fprint(f, "\x1b[?25h\x1b[?1049l") // as it was
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		x, err := c.look(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("the crawl does not answer any more: %w", err)
		}
		width, height := sizeOf(f)
		fmt.Fprint(f, "\x1b[H"+strings.Join(screen(x, c.running, width, height), "\x1b[K\r\n")+"\x1b[K\x1b[J")
		select {
		case <-ctx.Done():
			return nil
		case <-resized:
		case <-t.C:
		}
	}
}

// watchLines prints a line for each look, where there is no terminal.
func watchLines(ctx context.Context, c *reached, every time.Duration, out io.Writer) error {
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		x, err := c.look(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("the crawl does not answer any more: %w", err)
		}
		if _, err := fmt.Fprintf(out, "%s waiting=%d scheduled=%d leased=%d hosts=%d handed_out=%d per_second=%.1f memory=%d stopped=%t\n", x.Now.Format(time.RFC3339),
			x.Waiting, x.Scheduled, x.Leased, x.Hosts, x.HandedOut, x.HandedOutPerSecond, x.Memory, x.Paused || x.Blocked != nil); err != nil || !c.running {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
	}
}

// screen draws a look, in so many columns and lines at most.
func screen(x look, running bool, width, height int) []string {
	state := "at rest"
	if running {
		state = "running for " + console.Ago(seconds(x.Running))
	}
	lines := packed(width,
		x.Title+" ", state)
	lines = append(lines, packed(width, strings.Fields(x.Stopped())...)...)
	lines = append(lines, packed(width,
		console.Count(x.Waiting)+" waiting,", console.Count(x.Scheduled)+" scheduled,", console.Count(x.Leased)+" being fetched,",
		console.Count(x.Held)+" held back,", console.Count(x.Known)+" known")...)
	lines = append(lines, packed(width,
		console.Count(x.Hosts)+" hosts,", console.Count(x.BackedOff)+" slowed down,", console.Count(x.Quarantined)+" in quarantine;",
		"memory "+console.Size(x.Memory), ofBudget(x.MemoryBudget), ofDisk(x.Disk))...)
	lines = append(lines, packed(width,
		fmt.Sprintf("%.1f handed out", x.HandedOutPerSecond), fmt.Sprintf("and %.1f admitted", x.AddedPerSecond), "each second")...)
	if spark := sparkline(x.Rates, width); spark != "" {
		lines = append(lines, spark)
	}
	if of := freshness(x.Recrawl); of != nil {
		for i := 0; i < len(of); i += 2 {
			lines = append(lines, packed(width, strings.Split(of[i][0]+" "+of[i][1]+"; "+of[i+1][0]+" "+of[i+1][1], " ")...)...)
		}
	}
	if len(x.Failures) > 0 {
		var said []string
		for _, k := range slices.Sorted(maps.Keys(x.Failures)) {
			said = append(said, oneLine(k)+" "+console.Count(x.Failures[k])+",")
		}
		said[len(said)-1] = strings.TrimSuffix(said[len(said)-1], ",")
		lines = append(lines, packed(width, append([]string{"failed:"}, said...)...)...)
	}
	lines = append(lines, "")
	lines = append(lines, waitingBars(x.WaitingBy, width)...)
	events := min(len(x.Events), max(0, height-len(lines)-8), 5)
	if room := height - len(lines) - events - 2; room > 2 && len(x.due) > 0 {
		lines = append(lines, "", hostLine(width, "NEXT HOSTS", "WAITING", "STATE", "MAY BE CONTACTED"))
		for _, h := range x.due[:min(len(x.due), room-1)] {
			lines = append(lines, hostLine(width, oneLine(h.Host), console.Count(h.Waiting), oneLine(h.Reason), until(h.Due)))
		}
	}
	if events > 0 {
		lines = append(lines, "")
		for _, e := range x.Events[:events] {
			lines = append(lines, fmt.Sprintf("%s %s %s %s %s", e.At.Format("15:04:05"), oneLine(e.Kind), oneLine(e.Host), oneLine(e.URL), oneLine(e.Text)))
		}
	}
	lines = lines[:min(len(lines), max(1, height))]
	for i, l := range lines {
		lines[i] = cut(strings.TrimRight(l, " "), width)
	}
	return lines
}

// packed puts words into as few lines as they fit, with spaces between them.
func packed(width int, words ...string) (lines []string) {
	for _, w := range words {
		n := len(lines) - 1
		switch {
		case w == "":
		case n >= 0 && utf8.RuneCountInString(lines[n])+1+utf8.RuneCountInString(w) <= width:
			lines[n] += " " + w
		default:
			lines = append(lines, w)
		}
	}
	return lines
}

func ofBudget(n int64) string {
	if n == 0 {
		return ""
	}
	return "of " + console.Size(n)
}

func ofDisk(n int64) string {
	if n == 0 {
		return ""
	}
	return "and disk " + console.Size(n)
}

// hostLine is a host in the list of the next ones: a narrow terminal has room for its name
// and how much of it waits.
func hostLine(width int, host, waiting, state, when string) string {
	if width < 56 {
		name := max(1, width-8)
		return fmt.Sprintf("%-*s %7s", name, cut(host, name), waiting)
	}
	return fmt.Sprintf("%-*s %9s  %-12s %s", hostColumn(width), cut(host, hostColumn(width)), waiting, state, when)
}

// hostColumn is how wide names of hosts are shown.
func hostColumn(width int) int { return min(max(10, width-45), 60) }

// waitingBars are bars of the priorities of which something waits, the highest first.
func waitingBars(by []int64, width int) (lines []string) {
	most := slices.Max(append(by, 1))
	for i, n := range slices.Backward(by) {
		if n > 0 {
			lines = append(lines, fmt.Sprintf("priority %2d %*s %s", i+1, min(10, max(1, width-12)), console.Count(n), strings.Repeat("█", int(n*int64(max(0, width-24))/most))))
		}
	}
	return lines
}

// sparkline is the rate of hand-outs over the last minutes, a character for each part.
func sparkline(rates []console.Rate, width int) string {
	rates = rates[max(0, len(rates)-max(0, width)):]
	most := 0.0
	for _, r := range rates {
		most = max(most, r.HandedOut)
	}
	if most == 0 {
		return ""
	}
	var b strings.Builder
	levels := []rune("▁▂▃▄▅▆▇█")
	for _, r := range rates {
		b.WriteRune(levels[min(len(levels)-1, int(r.HandedOut/most*float64(len(levels))))])
	}
	return b.String()
}

// cut shortens to so many characters.
func cut(s string, width int) string {
	if utf8.RuneCountInString(s) <= width {
		return s
	}
	if width < 1 {
		return ""
	}
	return string([]rune(s)[:width-1]) + "…"
}
