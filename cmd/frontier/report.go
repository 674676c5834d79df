// This file writes a crawl's report: one self-contained HTML page.

package main

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/seed-7440039f/frontier/console"
	"github.com/seed-7440039f/frontier/internal/durablefs"
)

//go:embed report.html
var reportHTML string

var reportPage = template.Must(template.New("report").Funcs(template.FuncMap{
	"count": console.Count, "size": console.Size, "clock": func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") },
	"short": shortTime, "seconds": func(s float64) string { return shortTime(seconds(s)) }, "shown": oneLine,
}).Parse(reportHTML))

// report is the page's data.
type report struct {
	*summary
	Title   string
	Made    time.Time
	Live    bool
	Status  console.Status
	Hosts   []hostRow
	HostsN  int
	Codes   []bar
	Ends    []bar
	GapBars []bar
	Why     []*example
	Rules   []*example
	Mirrors []*mirror
	Same    int64
	Activity,
	Levels columns
}

// hostRow is a row of the hosts table.
type hostRow struct {
	*hostSum
	Least, Median time.Duration
	Gaps          int
}

// bar is a table row with a bar.
type bar struct {
	Name  string
	Count int64
	Share float64 // of the longest, in percent
	Bad   bool
}

// columns is a stacked chart over time, scaled to 100 by 100.
type columns struct {
	Series []series
	Most   int64 // height of the highest column
	Every  time.Duration
}

type series struct {
	Name  string
	Class string
	Rects []rect
	Total int64
}

type rect struct{ X, Y, W, H float64 }

// reportCommand returns the report command.
func reportCommand() *cli.Command {
	return looking("report", "[FILE]", "write a report of the crawl, one HTML page, to a file (report.html), or to - for the standard output",
		func(ctx context.Context, c *reached, cmd *cli.Command, out *printer) error {
			file := cmp.Or(cmd.Args().First(), "report.html")
			if err := wantFile(file, "<!doctype html>"); err != nil {
				return err
			}
			dir, err := recorded(cmd)
			if err != nil {
				return err
			}
			status, err := c.Status(ctx)
			if err != nil {
				return err
			}
			page, err := reportOf(dir, status, c.running)
			if err != nil {
				return err
			}
			if file == "-" {
				_, err := out.w.Write(page)
				return err
			}
			if err := durablefs.WriteFile(file, 0o644, func(w io.Writer) error { _, err := w.Write(page); return err }); err != nil {
				return err
			}
			return out.result(console.Result{Said: "the report is in " + file, Path: file})
		})
}

// reportOf returns a crawl's report.
func reportOf(dir string, status console.Status, live bool) ([]byte, error) {
	s, err := summarize(dir)
	if err != nil {
		return nil, err
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	r := &report{
		summary: s, Title: filepath.Base(abs), Made: time.Now(), Live: live, Status: status, HostsN: len(s.Hosts),
		Why: most(s.Failures), Rules: most(s.Rules), Mirrors: s.Mirrors[:min(len(s.Mirrors), reportRows)], Same: int64(len(s.Mirrors)),
	}
	for _, h := range s.largest() {
		least, median, n := h.Gap()
		r.Hosts = append(r.Hosts, hostRow{h, least, median, n})
	}
	for _, code := range slices.Sorted(maps.Keys(s.Statuses)) {
		r.Codes = append(r.Codes, bar{Name: fmt.Sprint(code), Count: s.Statuses[code], Bad: code >= 400})
	}
	for _, o := range slices.Sorted(maps.Keys(s.Outcomes)) {
		r.Ends = append(r.Ends, bar{Name: o, Count: s.Outcomes[o], Bad: o == "failed" || o == "given-up"})
	}
	slices.SortStableFunc(r.Ends, func(a, b bar) int { return int(b.Count - a.Count) })
	low := "0"
	for i, n := range s.Gaps.Buckets {
		name := "over " + low
		if i < len(gapBounds) {
			high := shortTime(gapBounds[i])
			name, low = low+" to "+high, high
		}
		r.GapBars = append(r.GapBars, bar{Name: name, Count: n})
	}
	for _, bars := range [][]bar{r.Codes, r.Ends, r.GapBars} {
		scale(bars)
	}
	r.Activity = s.stack([]string{"answers", "failures"}, []string{"a", "b"}, [][]int64{s.Times, s.Troubles})
	r.Levels = s.levels()
	var b bytes.Buffer
	if err := reportPage.Execute(&b, r); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func scale(bars []bar) {
	var top int64 = 1
	for _, b := range bars {
		top = max(top, b.Count)
	}
	for i := range bars {
		bars[i].Share = 100 * float64(bars[i].Count) / float64(top)
	}
}

// levels charts responses by priority over time.
func (s *summary) levels() columns {
	var names, classes []string
	var all [][]int64
	for _, p := range slices.Sorted(maps.Keys(s.Priorities)) {
		names, classes, all = append(names, fmt.Sprintf("priority %d", p)), append(classes, fmt.Sprintf("p%d", min(p, 8))), append(all, s.Priorities[p])
	}
	return s.stack(names, classes, all)
}

// stack makes a stacked chart.
func (s *summary) stack(names, classes []string, all [][]int64) (c columns) {
	c.Every = s.Last.Sub(s.First) / reportBuckets
	sums := make([]int64, reportBuckets)
	for _, values := range all {
		for i, n := range values {
			sums[i] += n
			c.Most = max(c.Most, sums[i])
		}
	}
	clear(sums)
	for k, values := range all {
		x := series{Name: names[k], Class: classes[k]}
		for i, n := range values {
			if n == 0 {
				continue
			}
			sums[i] += n
			x.Total += n
			const width = 100. / reportBuckets
			x.Rects = append(x.Rects, rect{X: float64(i)*width + .1, Y: 100 - 100*float64(sums[i])/float64(c.Most), W: width - .2, H: 100 * float64(n) / float64(c.Most)})
		}
		c.Series = append(c.Series, x)
	}
	return c
}

// Verdict summarizes the crawl in a sentence.
func (r *report) Verdict() string {
	state := "The crawl is at rest"
	switch {
	case r.Live:
		state = "The crawl is running"
	case r.Status.Waiting+r.Status.Scheduled == 0:
		state = "The crawl has ended, and nothing is left to crawl"
	}
	left := ""
	if n := r.Status.Waiting + r.Status.Scheduled; n > 0 {
		left = fmt.Sprintf("; %s URLs wait", console.Count(n))
	}
	hosts := "1 host"
	if r.HostsN != 1 {
		hosts = console.Count(int64(r.HostsN)) + " hosts"
	}
	return fmt.Sprintf("%s: %s pages of %s were fetched in %s, %s in all%s.", state, console.Count(r.Pages), hosts,
		console.Ago(r.Last.Sub(r.First)), strings.TrimSpace(console.Size(r.Bytes)), left)
}

// Rate returns the responses per second.
func (r *report) Rate() string {
	n := float64(r.Answers) / max(1, r.Last.Sub(r.First).Seconds())
	if n >= 10 {
		return console.Count(int64(n + .5))
	}
	return fmt.Sprintf("%.2g", n)
}

// shortTime formats a time in two or three digits.
func shortTime(d time.Duration) string {
	switch {
	case d >= time.Minute:
		return d.Round(time.Second).String()
	case d >= time.Second:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", d.Seconds()), ".0") + " s"
	case d >= time.Millisecond:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d > 0:
		return "< 1 ms"
	}
	return "0"
}
