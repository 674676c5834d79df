// This file implements top, which watches a crawl in a terminal. It asks the crawl, and keeps its answers
// and the keys typed. topview.go draws them.

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/urfave/cli/v3"

	"github.com/seed-7440039f/frontier/console"
)

func topCommand() *cli.Command {
	every := &cli.DurationFlag{Name: "every", Value: time.Second, Usage: "`time` between two looks"}
	c := looking("top", "", "watch a running crawl; without a terminal print how it is, once", func(ctx context.Context, c *reached, cmd *cli.Command, _ *printer) error {
		if err := noMore(cmd.Args().Slice()); err != nil {
			return err
		}
		if cmd.Duration("every") < 100*time.Millisecond {
			return usageError("top: -every is below 100ms")
		}
		m := newTop(ctx, c, cmd.Duration("every"))
		in, out := cmd.Root().Reader, cmd.Root().Writer
		if !c.running || !canMove(out) || !isTerminal(in) {
			return m.snapshot(out)
		}
		_, err := tea.NewProgram(m, tea.WithContext(ctx), tea.WithInput(in), tea.WithOutput(out), tea.WithoutSignalHandler()).Run()
		if ctx.Err() != nil && errors.Is(err, tea.ErrProgramKilled) {
			return nil // ended by a signal
		}
		return err
	}, every)
	c.Flags = []cli.Flag{dirFlag(), every} // for JSON there is status -json
	return c
}

// crawlAPI is the part of console.Client that top uses.
type crawlAPI interface {
	Status(context.Context) (console.Status, error)
	Due(context.Context, int) (console.HostList, error)
	Hosts(context.Context, console.HostsQuery) (console.HostList, error)
	Do(context.Context, console.Action) (console.Result, error)
}

// look is one answer of the crawl.
type look struct {
	console.Status
	hosts []console.HostRow
}

// top is the state of the screen. It is a tea.Model: Update changes it, View draws it.
type top struct {
	ctx   context.Context
	crawl crawlAPI
	every time.Duration

	look
	silent error // why the last look failed

	width, height int
	order         int             // index into orders
	at            int             // the cursor's row in hosts
	help          bool            // the keys are shown
	question      *console.Action // waits for y
	said          string          // the last action's result
	failed        bool            // the last action failed
}

func newTop(ctx context.Context, c crawlAPI, every time.Duration) *top {
	return &top{ctx: ctx, crawl: c, every: every, width: 80, height: 24}
}

// Messages to Update besides keys and sizes.
type (
	lookedMsg struct {
		look
		err error
	}
	nextMsg struct{}
	doneMsg struct {
		console.Result
		err error
	}
)

// Init looks for the first time.
func (m *top) Init() tea.Cmd { return m.ask }

// ask looks at the crawl.
func (m *top) ask() tea.Msg {
	x, err := lookOf(m.ctx, m.crawl)
	return lookedMsg{x, err}
}

// maxRows is how many hosts each look asks for, of the largest and of the next ones.
const maxRows = 256

func lookOf(ctx context.Context, c crawlAPI) (x look, err error) {
	if x.Status, err = c.Status(ctx); err != nil {
		return x, err
	}
	large, err := c.Hosts(ctx, console.HostsQuery{Sort: "waiting", N: maxRows})
	if err != nil {
		return x, err
	}
	next, err := c.Due(ctx, maxRows)
	if err != nil {
		return x, err
	}
	listed := map[string]bool{}
	for _, h := range slices.Concat(large.Hosts, next.Hosts) {
		if !listed[h.Host] {
			listed[h.Host] = true
			x.hosts = append(x.hosts, h)
		}
	}
	return x, nil
}

// Update handles a message.
func (m *top) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case nextMsg:
		return m, m.ask
	case lookedMsg:
		m.take(msg)
		return m, tea.Tick(m.every, func(time.Time) tea.Msg { return nextMsg{} })
	case doneMsg:
		m.said, m.failed = msg.Said, msg.err != nil
		if msg.err != nil {
			m.said = msg.err.Error()
		}
		return m, nil
	case tea.KeyPressMsg:
		return m, m.press(msg.String())
	}
	return m, nil
}

// take handles a look. After a failed one the last good one stays visible.
func (m *top) take(l lookedMsg) {
	if m.silent = l.err; l.err != nil {
		return
	}
	under := m.under()
	m.look = l.look
	m.sort(under)
}

// under returns the host under the cursor.
func (m *top) under() string {
	if m.at < len(m.hosts) {
		return m.hosts[m.at].Host
	}
	return ""
}

// orders are the orders of the hosts.
var orders = []struct {
	name    string
	compare func(a, b console.HostRow) int
}{
	{"problems", func(a, b console.HostRow) int {
		return cmp.Or(cmp.Compare(severity(a), severity(b)), cmp.Compare(b.Waiting, a.Waiting))
	}},
	{"waiting", func(a, b console.HostRow) int { return cmp.Compare(b.Waiting, a.Waiting) }},
	{"next", func(a, b console.HostRow) int { return dueOf(a).Compare(dueOf(b)) }},
	{"name", func(a, b console.HostRow) int { return 0 }},
}

// severity returns 0 for failing hosts, and more for those with a more usual wait.
func severity(h console.HostRow) int {
	switch {
	case h.Reason == "quarantine":
		return 0
	case h.Reason == "back-off", h.Failures > 0:
		return 1
	case h.Reason == "limit":
		return 2
	case h.Reason == "paused", h.Reason == "blocked":
		return 3
	case h.Reason == "retry after":
		return 4
	}
	return 5
}

// dueOf returns when a host is due; hosts that never are come last.
func dueOf(h console.HostRow) time.Time {
	if h.Reason == "paused" || h.Due == nil {
		return time.Unix(1<<40, 0)
	}
	return *h.Due
}

// sort sorts the hosts and puts the cursor on a host. If the host is gone the cursor stays in its row.
func (m *top) sort(host string) {
	slices.SortFunc(m.hosts, func(a, b console.HostRow) int {
		return cmp.Or(orders[m.order].compare(a, b), strings.Compare(a.Host, b.Host))
	})
	if i := slices.IndexFunc(m.hosts, func(h console.HostRow) bool { return h.Host == host }); i >= 0 && m.at > 0 {
		m.at = i
	}
	m.move(0)
}

// move moves the cursor by n rows.
func (m *top) move(rows int) { m.at = max(0, min(m.at+rows, len(m.hosts)-1)) }

// press handles a key.
func (m *top) press(key string) tea.Cmd {
	if key == "ctrl+c" {
		return tea.Quit
	}
	if a := m.question; a != nil {
		m.question = nil
		if key != "y" && key != "Y" {
			m.said, m.failed = "nothing was changed", false
			return nil
		}
		return func() tea.Msg {
			r, err := m.crawl.Do(m.ctx, *a)
			return doneMsg{r, err}
		}
	}
	m.said = ""
	switch key {
	case "q":
		return tea.Quit
	case "esc":
		if !m.help {
			return tea.Quit
		}
		m.help = false
	case "?", "h":
		m.help = !m.help
	case "s":
		under := m.under()
		m.order = (m.order + 1) % len(orders)
		m.sort(under)
	case "up", "k":
		m.move(-1)
	case "down", "j":
		m.move(1)
	case "pgup":
		m.move(-10)
	case "pgdown", "space":
		m.move(10)
	case "home", "g":
		m.move(-len(m.hosts))
	case "end", "G":
		m.move(len(m.hosts))
	case "p":
		if host := m.under(); host != "" {
			m.question = &console.Action{Do: "pause", Scope: host}
			if m.hosts[m.at].Reason == "paused" {
				m.question.Do = "resume"
			}
		}
	}
	return nil
}

// snapshot prints one look as plain text.
func (m *top) snapshot(w io.Writer) error {
	l := m.ask().(lookedMsg)
	if l.err != nil {
		return l.err
	}
	m.take(l)
	_, err := fmt.Fprintln(w, m.plain())
	return err
}
