// This file prints output: tables for people, JSON for programs.

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/seed-7440039f/frontier/console"
	"github.com/seed-7440039f/frontier/crawler"
	"github.com/seed-7440039f/frontier/crawler/changefeed"
	"github.com/seed-7440039f/frontier/fleet"
	"github.com/seed-7440039f/frontier/spill"
)

// printer prints to a command's output.
type printer struct {
	w    io.Writer
	json bool
}

func newPrinter(cmd *cli.Command) *printer { return &printer{cmd.Root().Writer, cmd.Bool("json")} }

func (p *printer) any(x any) error {
	e := json.NewEncoder(p.w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(x)
}

// show prints x as JSON, or lines of tab-separated cells for people.
func (p *printer) show(x any, lines ...string) error {
	if p.json {
		return p.any(x)
	}
	return p.table(lines...)
}

// table prints tab-separated cells in columns.
func (p *printer) table(lines ...string) error {
	w := tabwriter.NewWriter(p.w, 0, 0, 2, ' ', 0)
	for _, l := range lines {
		if _, err := fmt.Fprintln(w, l); err != nil {
			return err
		}
	}
	return w.Flush()
}

// row joins the cells of a line. Lines of one cell, as of joined errors, become clauses, and control
// characters in text from the web are escaped.
func row(cells ...any) string {
	s := make([]string, len(cells))
	for i, c := range cells {
		s[i] = oneLine(strings.ReplaceAll(fmt.Sprint(c), "\n", "; "))
	}
	return strings.TrimRight(strings.Join(s, "\t"), "\t")
}

func (p *printer) result(r console.Result) error { return p.show(r, oneLine(r.Said)) }

// do carries out an Action, and prints the result.
func (p *printer) do(ctx context.Context, c *reached, a console.Action) error {
	r, err := c.Do(ctx, a)
	if err != nil {
		return err
	}
	return p.result(r)
}

func (p *printer) status(s console.Status, running bool, of *fleet.State) error {
	state := "at rest"
	if running {
		state = "running for " + console.Ago(seconds(s.Running))
	}
	by := make([]string, len(s.WaitingBy))
	for i, n := range s.WaitingBy {
		by[len(by)-1-i] = fmt.Sprintf("%d: %s", i+1, console.Count(n))
	}
	if stopped := s.Stopped(); stopped != "" {
		state += "; " + stopped
		if running {
			state = stopped
		}
	}
	lines := []string{
		row("state", state),
		row("waiting", console.Count(s.Waiting), "by priority  "+strings.Join(by, ", ")),
		row("scheduled", console.Count(s.Scheduled)),
		row("being fetched", console.Count(s.Leased)),
		row("held back", console.Count(s.Held)),
		row("known", console.Count(s.Known)),
		row("hosts", console.Count(s.Hosts), fmt.Sprintf("%s slowed down, %s in quarantine", console.Count(s.BackedOff), console.Count(s.Quarantined))),
		row("memory", strings.TrimSpace(console.Size(s.Memory)+" "+ofBudget(s.MemoryBudget))),
	}
	if s.Disk > 0 {
		lines = append(lines, row("disk", console.Size(s.Disk)))
	}
	if running {
		lines = append(lines,
			row("each second", fmt.Sprintf("%.1f handed out, %.1f admitted", s.HandedOutPerSecond, s.AddedPerSecond)),
			row("given up", console.Count(s.GivenUp)),
		)
		for _, x := range freshness(s.Recrawl) {
			lines = append(lines, row(x[0], x[1]))
		}
		for _, k := range slices.Sorted(maps.Keys(s.Failures)) {
			lines = append(lines, row("failed: "+k, console.Count(s.Failures[k])))
		}
		for _, f := range s.Figures {
			lines = append(lines, row(f.Name, fmt.Sprintf("%.10g", f.Value)))
		}
	}
	if of != nil {
		lines = append(lines, of.Lines()...)
	}
	return p.show(struct {
		Live bool `json:"live"` // the crawl runs
		console.Status
		Fleet *fleet.State `json:"fleet,omitempty"`
	}{running, s, of}, lines...)
}

// freshness describes a recrawl; empty for other crawls.
func freshness(x *console.Recrawl) [][2]string {
	if x == nil {
		return nil
	}
	return [][2]string{
		{"freshness", console.Percent(x.Freshness) + " of " + console.Count(x.Pages) + " pages, expected"},
		{"price", console.Digits(x.Price) + " days of weight for a fetch"},
		{"wanted", console.Digits(x.Demand) + " of " + console.Digits(x.Budget) + " fetches each second"},
		{"wasted", console.Percent(x.Wasted) + " of the visits found nothing new"},
	}
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// until formats a time relative to now, by the same clock.
func until(t *time.Time, now time.Time) string {
	switch {
	case t == nil:
		return ""
	case !t.After(now):
		return "now"
	}
	return "in " + console.Ago(t.Sub(now))
}

func (p *printer) hosts(l console.HostList) error {
	titles := []any{"HOST", "WAITING", "SCHEDULED", "LEASED", "STATE", "NEXT CONTACT", "GROUP"}
	ranked := l.Ranked()
	if ranked {
		titles = append(titles, "STANDING", "USEFUL")
	}
	lines := []string{row(titles...)}
	for _, h := range l.Hosts {
		cells := []any{h.Host, console.Count(h.Waiting), console.Count(h.Scheduled), h.Leased, h.Reason, until(h.Due, l.Now), h.Group}
		if ranked {
			cells = append(cells, standingOf(h), usefulOf(h))
		}
		lines = append(lines, row(cells...))
	}
	return p.more(l, l.Next, lines)
}

// standingOf describes how a host was moved; empty: it was not.
func standingOf(h console.HostRow) string {
	if h.Standing == 0 {
		return ""
	}
	return console.Standing(h.Standing)
}

// usefulOf describes the useful part of a host's pages; empty: it is not known.
func usefulOf(h console.HostRow) string {
	if h.Useful == nil {
		return ""
	}
	return console.UsefulOf(h.Pages, *h.Useful)
}

// more prints a part of a list, and the command for the next part.
func (p *printer) more(list any, next string, lines []string) error {
	if err := p.show(list, lines...); err != nil || next == "" || p.json {
		return err
	}
	_, err := fmt.Fprintf(p.w, "\nThere are more: go on with -after %s\n", oneLine(next))
	return err
}

func (p *printer) host(h console.Host, more ...string) error {
	lines := []string{
		row(h.Host, h.Why), row("waiting", console.Count(h.Waiting)), row("scheduled", console.Count(h.Scheduled)), row("leased", h.Leased),
	}
	for _, q := range h.Queues {
		name := fmt.Sprintf("priority %d", q.Priority)
		if _, why, parked := crawler.Lot(q.Crawl); parked {
			lines = append(lines, row("parked", console.Count(q.Waiting)+": "+why))
			continue
		}
		if q.Crawl != 0 {
			name = fmt.Sprintf("crawl %d, %s", q.Crawl, name)
		}
		lines = append(lines, row(name, console.Count(q.Waiting)+" waiting"))
	}
	if h.Due != nil {
		lines = append(lines, row("next contact", until(h.Due, h.Now)))
	}
	if h.Group != "" {
		lines = append(lines, row("group", h.Group))
	}
	for _, x := range [][2]string{{"standing", standingOf(h.HostRow)}, {"useful", usefulOf(h.HostRow)}} {
		if x[1] != "" {
			lines = append(lines, row(x[0], x[1]))
		}
	}
	if h.CrawlDelay > 0 {
		lines = append(lines, row("Crawl-delay", console.Ago(seconds(h.CrawlDelay))))
	}
	if b := h.Backoff; b != nil {
		lines = append(lines, row("failures in a row", b.Failures))
		if b.Gap > 0 {
			lines = append(lines, row("slowed down to", "a contact in "+console.Ago(seconds(b.Gap))))
		}
	}
	return p.show(h, slices.Concat(lines, ruleRows(h.Rule), more)...)
}

func ruleRows(rule console.Rule) (lines []string) {
	for _, x := range rule.Set() {
		lines = append(lines, row("rule: "+x.Name, x.Value))
	}
	return lines
}

// urlRows describe what the frontier knows about a URL.
func urlRows(u console.URL) []string {
	lines := []string{row("URL", u.URL), row("state", u.State)}
	if u.Why != "" {
		lines = append(lines, row("why", u.Why))
	}
	lines = append(lines, row("host", u.Host))
	if u.Priority > 0 {
		lines = append(lines, row("priority", u.PriorityWords()))
		if u.Importance != nil {
			lines = append(lines, row("importance", u.Importance))
		}
		if said := u.HostWords(); said != "" {
			lines = append(lines, row("its host", said))
		}
		if u.Ahead != nil {
			lines = append(lines, row("ahead", u.Ahead.String()+"; lower ones get turns, too, but fewer"))
		}
		lines = append(lines, row("try", u.Attempt), row("depth", u.Depth))
	}
	if u.Visits > 0 {
		lines = append(lines, row("visits", fmt.Sprintf("%d, of which %d found a change", u.Visits, u.Changes)))
	}
	return lines
}

func (p *printer) urls(l console.URLList) error {
	lines := []string{row("PRIORITY", "DEPTH", "TRY", "URL")}
	for _, u := range l.URLs {
		lines = append(lines, row(u.Priority, u.Depth, u.Attempt, u.URL))
	}
	return p.more(l, l.Next, lines)
}

func (p *printer) rules(l console.RuleList) error {
	if len(l.Rules) == 0 {
		return p.show(l, "nothing is set")
	}
	var lines []string
	for _, r := range l.Rules {
		for _, x := range ruleRows(r.Rule) {
			lines = append(lines, row(r.Scope)+"\t"+strings.TrimPrefix(x, "rule: "))
		}
	}
	return p.show(l, lines...)
}

func (p *printer) leases(l console.LeaseList) error {
	if l.Total == 0 {
		return p.show(l, "no client has a lease that fits")
	}
	lines := []string{row("LEASE", "CLIENT", "HOST", "SINCE", "ENDS IN", "URL")}
	now := time.Now()
	for _, x := range l.Leases {
		lines = append(lines, row(x.Lease, x.Client, x.Host, x.Since.Format(time.RFC3339), console.Ago(max(0, x.Until.Sub(now))), cmp.Or(x.URL, "a contact only")))
	}
	if more := l.Total - len(l.Leases); more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more: -n shows them", more))
	}
	return p.show(l, lines...)
}

func (p *printer) imported(x console.Imported) error {
	lines := []string{fmt.Sprintf("URLs: %s new, %s known before, %s remembered as done; rules: %s; hosts: %s; lines: %s, malformed: %s", console.Count(x.URLs),
		console.Count(x.KnownURLs), console.Count(x.Marks), console.Count(x.Rules), console.Count(x.Hosts), console.Count(x.Lines), console.Count(x.Bad))}
	for _, fault := range x.Faults {
		lines = append(lines, oneLine(fault))
	}
	return p.show(x, lines...)
}

// shownError is an error that JSON shows.
type shownError struct{ error }

func (e shownError) MarshalText() ([]byte, error) { return []byte(e.Error()), nil }

// repaired prints what a repair found, and what it lost.
func (p *printer) repaired(r *spill.Repaired) error {
	if p.json {
		for i := range r.Lost {
			r.Lost[i].Err = shownError{r.Lost[i].Err}
		}
	}
	lines := []string{fmt.Sprintf("saved: %s blocks of URLs, %s batches of the log, %s rules and the like, %s marks of known URLs; lost: %s", console.Count(int64(r.Blocks)),
		console.Count(int64(r.Batches)), console.Count(int64(r.Rows)), console.Count(r.Marks), cmp.Or(strings.TrimPrefix(console.Count(int64(len(r.Lost))), "0"), "nothing"))}
	for _, l := range r.Lost {
		lines = append(lines, oneLine(l.String()))
	}
	return p.show(r, lines...)
}

// changed prints the result of a list.
func (p *printer) changed(x changefeed.Result) error {
	lines := []string{fmt.Sprintf("URLs: %s; known, looked at again when that is worth it: %s; new: %s; not wanted: %s; wrong: %s; not heard: %s", console.Count(x.URLs),
		console.Count(x.Known), console.Count(x.New), console.Count(x.Unwanted), console.Count(x.Wrong), console.Count(x.Unheard))}
	for _, fault := range x.Faults {
		lines = append(lines, oneLine(fault.Error()))
	}
	return p.show(x, lines...)
}
