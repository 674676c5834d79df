// This file prints the measured values: the table, then every figure, as Markdown and as JSON.

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// report is the result of a run of the program. -json writes it.
type report struct {
	Started  time.Time     `json:"started"`
	Took     time.Duration `json:"took"`
	Go       string        `json:"go"`
	Machine  string        `json:"machine"`
	Config   *config       `json:"config"`
	List     *listInfo     `json:"list,omitempty"`
	Table    []judged      `json:"table"`
	Measures []measure     `json:"measures"`
	Series   []series      `json:"series"`
	Notes    []string      `json:"notes"`
	Failures []string      `json:"failures"`
}

// write prints the report, and the JSON where c wants it.
func (rep *report) write(stdout io.Writer, c config) error {
	rep.Config = &c
	rep.Table = rep.judge()
	if err := rep.markdown(stdout); err != nil {
		return err
	}
	if c.JSON == "" {
		return nil
	}
	text, err := json.MarshalIndent(rep, "", " ")
	if err != nil {
		return err
	}
	text = append(text, '\n')
	if c.JSON == "-" {
		_, err = stdout.Write(text)
		return err
	}
	return os.WriteFile(c.JSON, text, 0o644)
}

func (rep *report) markdown(w io.Writer) error {
	var b strings.Builder
	c := rep.Config
	urls := "made-up URLs"
	if c.URLsFile != "" {
		urls = "real URLs"
	}
	hosts := ""
	if c.Hosts > 0 {
		hosts = fmt.Sprintf(" over %d hosts", c.Hosts)
	}
	fmt.Fprintf(&b, "# Bench: %s %s%s, budget %d MiB, %d workers, sync %t\n\n", count(float64(c.URLs)), urls, hosts, c.budget()>>20, c.Workers, c.Sync)
	fmt.Fprintf(&b, "%s, %s, %s; took %v. Scenarios: %s.\n\n", rep.Started.Format(time.DateTime), rep.Go, rep.Machine,
		rep.Took.Round(time.Second), strings.Join(c.Scenarios, ", "))
	if rep.List != nil {
		fmt.Fprintf(&b, "The list has %v.\n\n", rep.List)
	}
	b.WriteString("| what | measured | must | aim | verdict |\n|---|---|---|---|---|\n")
	for _, l := range rep.Table {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", l.What, l.Measured, l.Must, l.Aim, l.Verdict)
	}
	if c.URLs < 10_000_000 {
		b.WriteString("\nThe goals are for 10 million URLs and more: this run had fewer.\n")
	}
	for _, list := range []struct {
		title string
		lines []string
	}{{"Failures", rep.Failures}, {"Notes", rep.Notes}} {
		if len(list.lines) > 0 {
			fmt.Fprintf(&b, "\n## %s\n\n- %s\n", list.title, strings.Join(list.lines, "\n- "))
		}
	}
	rep.figures(&b)
	rep.policies(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

// figures writes a table for each scenario, the quantiles of a call in one line.
func (rep *report) figures(b *strings.Builder) {
	last := ""
	for i := 0; i < len(rep.Measures); i++ {
		m := rep.Measures[i]
		if m.Scenario == "policy" {
			continue // has a table of its own
		}
		if m.Scenario != last {
			last = m.Scenario
			fmt.Fprintf(b, "\n## %s\n\n| figure | value |\n|---|---|\n", last)
		}
		name, value := m.Name, show(m.Value, m.Unit)
		if call, ok := strings.CutSuffix(name, ".p50"); ok && i+3 < len(rep.Measures) {
			name = call + ": p50, p99, p99.9, longest"
			for range 3 {
				i++
				value += ", " + show(rep.Measures[i].Value, rep.Measures[i].Unit)
			}
		}
		fmt.Fprintf(b, "| %s | %s |\n", name, value)
	}
}

// policies writes a line for each crawl in virtual time.
func (rep *report) policies(b *strings.Builder) {
	columns := []struct{ name, title string }{
		{"ours", "this frontier"}, {"bubing", "time order"}, {"published", "Mercator as published, B = 3T"},
		{"tokens.B3T", "host tokens, B = 3T"}, {"tokens.B10T", "B = 10T"}, {"tokens.B50T", "B = 50T"},
		{"ours/best", "ours, of the best"}, {"bound.most", "hosts bound here, at most"}, {"bound.needed", "T x (D + fetch) / fetch"},
		{"published.backqueues.most", "published: most URLs in back queues"}, {"published.pulls/refill", "published: pulls per refill"},
	}
	values := map[string]string{}
	for _, m := range rep.Measures {
		if m.Scenario == "policy" {
			values[m.Name] = show(m.Value, m.Unit)
		}
	}
	if len(values) == 0 {
		return
	}
	b.WriteString("\n## policy\n\nShare of the workers' time in which they fetched.\n\n| crawl |")
	for _, c := range columns {
		fmt.Fprintf(b, " %s |", c.title)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(columns)) + "\n")
	for _, c := range crawls(rep.Config.URLs, 0) {
		fmt.Fprintf(b, "| %s |", c.name)
		for _, col := range columns {
			fmt.Fprintf(b, " %s |", values[c.name+"."+col.name])
		}
		b.WriteString("\n")
	}
}
