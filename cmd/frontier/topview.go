// This file draws top's screen.

package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/seed-7440039f/frontier/console"
)

// The colours are the terminal's own sixteen, so they fit its background.
var (
	usual   = lipgloss.NewStyle()
	bold    = usual.Bold(true)
	faint   = usual.Faint(true)
	titled  = usual.Bold(true).Foreground(lipgloss.BrightWhite).Background(lipgloss.Blue)
	heading = usual.Bold(true).Foreground(lipgloss.Blue)
	chosen  = usual.Reverse(true)
	good    = usual.Foreground(lipgloss.Green)
	calm    = usual.Foreground(lipgloss.Cyan)
	warning = usual.Foreground(lipgloss.Yellow)
	bad     = usual.Foreground(lipgloss.Red)
	chart   = usual.Foreground(lipgloss.Blue)
)

// View draws the screen. The program removes colours where they are not wanted.
func (m *top) View() tea.View {
	v := tea.NewView(strings.Join(m.screen(), "\n"))
	v.AltScreen, v.WindowTitle = true, "frontier top "+oneLine(m.Title)
	return v
}

// plain returns the screen as text for a pipe or a file.
func (m *top) plain() string {
	m.at, m.width, m.height = -1, 100, 30 // no cursor
	lines := append(m.summary(m.height), "")
	lines = append(lines, m.table(20)...)
	for i, l := range lines {
		lines[i] = strings.TrimRight(ansi.Strip(l), " ")
	}
	return strings.Join(lines, "\n")
}

// screen returns the lines of the screen, cut to its size.
func (m *top) screen() []string {
	var lines []string
	switch {
	case m.help:
		lines = append([]string{m.title(), ""}, keys...)
	case m.Now.IsZero() && m.silent == nil:
		lines = []string{m.title(), "", " asking the crawl …"}
	default:
		lines = append(m.summary(m.height), "")
		events := min(len(m.Events), 5, max(0, m.height-len(lines)-10))
		problem := m.problem()
		if room := m.height - len(lines) - events - len(problem) - 2; room > 1 {
			lines = append(append(lines, m.table(room)...), problem...)
		}
		if events > 0 {
			lines = padded(lines, m.height-events-2)
			lines = append(lines, "")
			for _, e := range m.Events[:events] {
				words := []string{e.At.Local().Format("15:04:05")}
				for _, w := range []string{e.Kind, e.Host, e.URL, e.Text} {
					if w != "" {
						words = append(words, oneLine(w))
					}
				}
				lines = append(lines, " "+faint.Render(strings.Join(words, "  ")))
			}
		}
	}
	lines = append(padded(lines[:min(len(lines), max(0, m.height-1))], m.height-1), m.foot())
	for i, l := range lines {
		lines[i] = ansi.Truncate(strings.TrimRight(l, " "), m.width, "…")
	}
	return lines[:min(len(lines), max(1, m.height))]
}

// padded adds empty lines up to n.
func padded(lines []string, n int) []string {
	for len(lines) < n {
		lines = append(lines, "")
	}
	return lines
}

// title returns the first line: the crawl's name and state.
func (m *top) title() string {
	state, _ := m.state()
	left, right := titled.Render(" frontier  "+oneLine(m.Title)+" "), ""
	if state != "" {
		right = stateStyle(state).Reverse(true).Bold(true).Render(" " + state + " ")
	}
	if m.Running > 0 && state != console.StateAtRest {
		right = titled.Render(console.Ago(seconds(m.Running).Truncate(time.Second))+"  ") + right
	}
	return left + titled.Render(strings.Repeat(" ", max(1, m.width-ansi.StringWidth(left)-ansi.StringWidth(right)))) + right
}

// state returns the crawl's state, and a sentence about it.
func (m *top) state() (state, sentence string) {
	if m.silent != nil && m.State != console.StateEnded {
		return console.StateEnded, "The crawl does not answer any more; these are its last figures"
	}
	if stopped := m.Stopped(); m.State == console.StateAtRest && stopped != "" {
		return m.State, m.Sentence + "; " + stopped
	}
	return m.State, m.Sentence
}

// summary returns the lines above the hosts, for a screen of the given height.
func (m *top) summary(height int) []string {
	lines := []string{m.title()}
	if state, sentence := m.state(); sentence != "" {
		style := usual
		if state == console.StateTrouble {
			style = bad
		}
		lines = append(lines, wrapped(style, oneLine(sentence), m.width)...)
	}
	lines = append(lines, "")
	lines = append(lines, grid(m.width, m.figures())...)
	if of := freshness(m.Recrawl); of != nil && height >= 24 {
		for _, x := range of {
			lines = append(lines, " "+faint.Render(x[0])+" "+x[1])
		}
	}
	if len(m.Failures) > 0 {
		var said []string
		for _, k := range slices.Sorted(maps.Keys(m.Failures)) {
			said = append(said, oneLine(k)+" "+console.Count(m.Failures[k]))
		}
		lines = append(lines, wrapped(bad, "failed: "+strings.Join(said, ", "), m.width)...)
	}
	if height >= 30 {
		for _, x := range [][2]string{{"pace", m.Pace}, {"end", m.ETA}} {
			if x[1] != "" {
				lines = append(lines, wrapped(usual, x[0]+": "+oneLine(x[1]), m.width)...)
			}
		}
	}
	if by := priorities(m.WaitingBy); by != "" && height >= 30 {
		lines = append(lines, wrapped(usual, "waiting by priority: "+by, m.width)...)
	}
	rows := 2
	if height < 20 {
		rows = 1
	} else if height >= 40 {
		rows = 4
	}
	if c := bars(m.Rates, m.width, rows); c != nil {
		lines = append(append(lines, ""), c...)
	}
	return lines
}

// priorities lists the priorities with waiting URLs, the highest first.
func priorities(waiting []int64) string {
	var said []string
	for i, n := range slices.Backward(waiting) {
		if n > 0 {
			said = append(said, fmt.Sprintf("%d: %s", i+1, console.Count(n)))
		}
	}
	return strings.Join(said, ", ")
}

// wrapped wraps a text.
func wrapped(style lipgloss.Style, text string, width int) (lines []string) {
	for l := range strings.SplitSeq(ansi.Wrap(text, max(1, width-1), ""), "\n") {
		lines = append(lines, " "+style.Render(l))
	}
	return lines
}

// figure is a number with its name and rate.
type figure struct{ name, value, rate string }

// figureRows is the number of figures in a column.
const figureRows = 4

// figures returns the crawl's counts, column by column.
func (m *top) figures() []figure {
	return []figure{
		{"pages", console.Count(m.Pages), fmt.Sprintf("%.1f/s", m.PagesPerSecond)},
		{"bytes", console.Size(m.Traffic.Bytes), console.Size(int64(m.Traffic.BytesPer)) + "/s"},
		{"links", console.Count(m.figure("links")), ""},
		{"given up", console.Count(m.GivenUp), ""},
		{"waiting", console.Count(m.Waiting), ""},
		{"scheduled", console.Count(m.Scheduled), ""},
		{"held back", console.Count(m.Held), ""},
		{"fetching", console.Count(m.Leased), ""},
		{"hosts", console.Count(m.Hosts), ""},
		{"failing", console.Count(int64(m.ProblemHosts)), ""},
		{"memory", console.Size(m.Memory), ofBudget(m.MemoryBudget)},
		{"disk", console.Size(m.Disk), ""},
	}
}

// figure returns one of the crawler's counts.
func (m *top) figure(name string) int64 {
	for _, f := range m.Figures {
		if f.Name == name {
			return int64(f.Value)
		}
	}
	return 0
}

func ofBudget(n int64) string {
	if n == 0 {
		return ""
	}
	return "of " + console.Size(n)
}

// grid arranges figures in as many columns as fit.
func grid(width int, figures []figure) []string {
	var columns [][]string
	whole := 0
	for part := range slices.Chunk(figures, figureRows) {
		var name, value, rate int
		for _, f := range part {
			name, value, rate = max(name, ansi.StringWidth(f.name)), max(value, ansi.StringWidth(f.value)), max(rate, ansi.StringWidth(f.rate))
		}
		var cells []string
		for _, f := range part {
			cells = append(cells, " "+faint.Render(pad(f.name, name))+" "+bold.Render(flush(f.value, value))+" "+pad(f.rate, rate)+"  ")
		}
		columns = append(columns, cells)
		whole += name + value + rate + 5
	}
	switch {
	case whole <= width+3: // the last three are empty
	case slices.ContainsFunc(figures, func(f figure) bool { return f.rate != "" }) && width >= 60:
		without := slices.Clone(figures)
		for i := range without {
			without[i].rate = ""
		}
		return grid(width, without)
	default:
		return slices.Concat(columns...)
	}
	lines := make([]string, figureRows)
	for _, cells := range columns {
		for i, c := range cells {
			lines[i] += c
		}
	}
	return lines
}

// pad and flush align a text to the left and to the right of a column.
func pad(s string, width int) string {
	return s + strings.Repeat(" ", max(0, width-ansi.StringWidth(s)))
}
func flush(s string, width int) string {
	return strings.Repeat(" ", max(0, width-ansi.StringWidth(s))) + s
}

// bars charts the rate of fetches over the last minutes, with a scale.
func bars(rates []console.Rate, width, height int) []string {
	const scale = 20
	rates = rates[max(0, len(rates)-max(0, width-scale-1)):]
	most := 0.0
	for _, r := range rates {
		most = max(most, r.HandedOut)
	}
	if most == 0 {
		return nil
	}
	span := console.Ago(rates[len(rates)-1].At.Sub(rates[0].At).Round(time.Second))
	lines := make([]string, height)
	for i := range lines {
		label, mark := "", ""
		switch i {
		case 0:
			label, mark = "fetches/s", fmt.Sprintf("%.1f", most)
		case height - 1:
			label, mark = span, "0"
		}
		lines[i] = " " + faint.Render(pad(label, 11)+flush(mark, scale-14)+" ┤")
		var b strings.Builder
		for _, r := range rates {
			eighths := int(r.HandedOut/most*float64(8*height) + .5) // of the column's height
			b.WriteRune([]rune(" ▁▂▃▄▅▆▇█")[max(0, min(8, eighths-8*(height-1-i)))])
		}
		lines[i] += chart.Render(b.String())
	}
	return lines
}

// table returns the hosts' lines, for the given height.
func (m *top) table(height int) []string {
	if len(m.hosts) == 0 {
		return []string{faint.Render(" no host has URLs that wait")}
	}
	name := max(8, min(m.width-54, 60))
	line := func(host, waiting, reason, when, failures string) string {
		if m.width < 64 {
			return " " + pad(ansi.Truncate(host, max(1, m.width-22), "…"), max(1, m.width-22)) + flush(waiting, 8) + "  " + pad(ansi.Truncate(reason, 10, "…"), 10) + " "
		}
		return " " + pad(ansi.Truncate(host, name, "…"), name) + flush(waiting, 10) + "  " + pad(reason, 12) + "  " + pad(when, 16) + flush(failures, 8) + " "
	}
	rows := height - 1
	first := max(0, min(m.at-rows/2, len(m.hosts)-rows))
	lines := []string{heading.Render(line("HOST", "WAITING", "REASON", "NEXT CONTACT", "FAILURES"))}
	for i, h := range m.hosts[first:min(len(m.hosts), first+rows)] {
		failures := ""
		if h.Failures > 0 {
			failures = console.Count(int64(h.Failures))
		}
		l := line(oneLine(h.Host), console.Count(h.Waiting), oneLine(h.Reason), nextOf(h, m.Now), failures)
		style := styleOf(h)
		if first+i == m.at {
			style = chosen
		}
		lines = append(lines, style.Render(l))
	}
	return lines
}

// problem describes the trouble of the host under the cursor; empty: none.
func (m *top) problem() []string {
	for _, p := range m.Problems {
		if p.Host != m.under() {
			continue
		}
		said := []string{oneLine(p.What)}
		if p.Error != "" && p.Error != p.What {
			said = append(said, oneLine(p.Error))
		}
		if p.Since != nil {
			said = append(said, "since "+console.Ago(m.Now.Sub(*p.Since).Truncate(time.Second)))
		}
		if p.Next != "" {
			said = append(said, "next: "+oneLine(p.Next))
		}
		return []string{"", " " + bad.Render(oneLine(p.Host)+": "+strings.Join(said, "; "))}
	}
	return nil
}

// nextOf formats when a host is due, relative to now.
func nextOf(h console.HostRow, now time.Time) string {
	due := h.Due
	if h.Until != nil && (due == nil || h.Until.After(*due)) {
		due = h.Until
	}
	if h.Reason == "paused" {
		return "when unpaused"
	}
	return until(due, now)
}

// styleOf returns a host's colour.
func styleOf(h console.HostRow) lipgloss.Style {
	switch severity(h) {
	case 0:
		return bad
	case 1, 2, 3:
		return warning
	}
	return usual
}

// keys is the help.
var keys = []string{
	"  ↑ ↓  j k           move the cursor; PgUp, PgDn, Home and End go further",
	"  p                  pause the host under the cursor, or unpause it; top asks first",
	"  s                  sort the hosts: problems first, most URLs waiting, next contact, name",
	"  ?                  show these keys, or the crawl again",
	"  q  Esc  Ctrl-C     leave; the crawl goes on",
	"",
	"  Of large crawls the list has the hosts with most URLs waiting, and those that come next.",
}

// foot returns the last line: a question, the last result, or the keys.
func (m *top) foot() string {
	switch a := m.question; {
	case a != nil && a.Do == "pause":
		return warning.Bold(true).Render(" pause " + oneLine(a.Scope) + "? y: yes, any other key: no")
	case a != nil:
		return warning.Bold(true).Render(" unpause " + oneLine(a.Scope) + "? y: yes, any other key: no")
	case m.said != "" && m.failed:
		return bad.Render(" " + oneLine(m.said))
	case m.said != "":
		return good.Render(" " + oneLine(m.said))
	}
	pause := "pause"
	if m.at < len(m.hosts) && m.hosts[m.at].Reason == "paused" {
		pause = "unpause"
	}
	var b strings.Builder
	used := 0
	for _, k := range [][2]string{{"q", "quit"}, {"?", "help"}, {"p", pause}, {"s", "sort: " + orders[m.order].name}, {"↑↓", "move"}} {
		if used += ansi.StringWidth(k[0]+k[1]) + 3; used > m.width+1 {
			break
		}
		b.WriteString(" " + heading.Render(k[0]) + " " + faint.Render(k[1]) + " ")
	}
	return b.String()
}
