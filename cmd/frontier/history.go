// This file reads the record of ends: ends and retry, and explain's history of a URL.

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"iter"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/seed-7440039f/frontier/console"
	"github.com/seed-7440039f/frontier/crawler/crawllog"
	"github.com/seed-7440039f/frontier/crawler/fetch"
	"github.com/seed-7440039f/frontier/internal/hostkey"
)

// became prints what the frontier and the record know about a URL.
func (p *printer) became(u console.URL, dir string) error {
	end, ended, err := lastEnd(dir, u.URL)
	if err != nil {
		return err
	}
	if p.json {
		var last *crawllog.Record
		if ended {
			last = &end
		}
		return p.any(struct {
			console.URL
			End *crawllog.Record `json:"end,omitempty"` // its latest record
		}{u, last})
	}
	if !ended {
		more, err := unrecorded(u, dir)
		if err != nil {
			return err
		}
		reasons, err := robotsOfURL(dir, u.URL)
		return cmp.Or(err, p.table(slices.Concat(urlRows(u), more, reasons)...))
	}
	if u.State == "known" {
		u.Why = "" // the record is more precise
	}
	lines := append(urlRows(u), row("last", end.Sentence()), row("when", moment(end.Time)))
	for _, x := range [][2]string{{"found on", end.Via}, {"type", end.Type}} {
		if x[1] != "" {
			lines = append(lines, row(x[0], x[1]))
		}
	}
	if end.Again {
		lines = append(lines, row("recorded", "twice: the crawl was killed in between"))
	}
	return p.table(lines...)
}

// unrecorded describes how far the record reaches back, for a URL that is not in it.
func unrecorded(u console.URL, dir string) (rows []string, err error) {
	oldest, ok, err := crawllog.NewView(endsPath(dir)).Oldest()
	switch {
	case err != nil:
		return nil, err
	case ok:
		return []string{row("last", "nothing is recorded of it since the record begins, "+moment(oldest.Time))}, nil
	case u.State == "known":
		return []string{row("last", "nothing is recorded of it: this crawl keeps no record of ends")}, nil
	}
	return nil, nil
}

// robotsOfURL explains why a URL waits, if its site's robots.txt could not be fetched last time.
func robotsOfURL(dir, of string) (rows []string, err error) {
	u, err := url.Parse(of)
	if err != nil {
		return nil, nil
	}
	r, ok, err := crawllog.NewView(endsPath(dir)).Find(u.Scheme + "://" + u.Host + "/robots.txt")
	if err != nil || !ok {
		return nil, err
	}
	return robotsRow(&r), nil
}

// robotsOfHost is robotsOfURL for each site of a host, at whatever port.
func robotsOfHost(dir, host string) (rows []string, err error) {
	seen := map[string]bool{}
	for r, err := range crawllog.NewView(endsPath(dir)).OfHost(host, crawllog.Robots) {
		if err != nil {
			return nil, err
		}
		if !seen[r.URL] {
			seen[r.URL] = true
			rows = append(rows, robotsRow(&r)...)
		}
	}
	return rows, nil
}

func robotsRow(r *crawllog.Record) []string {
	if r.Outcome != crawllog.Robots || r.Reason == "" {
		return nil
	}
	return []string{row("robots.txt", r.Sentence()), row("asked", moment(r.Time))}
}

// lastEnd returns the latest record of a URL, among ends or else among links that were not taken.
func lastEnd(dir, url string) (crawllog.Record, bool, error) {
	url = fetch.Redact(url)
	r, ok, err := crawllog.NewView(endsPath(dir)).Find(url)
	if ok || err != nil {
		return r, ok, err
	}
	return crawllog.NewView(notTakenPath(dir)).Find(url)
}

// moment formats a time, and how long ago it was.
func moment(t time.Time) string {
	return fmt.Sprintf("%s, %s ago", t.UTC().Format("2006-01-02 15:04:05Z"), console.Ago(time.Since(t)))
}

// endsFilter selects ends.
type endsFilter struct {
	outcomes []string
	host     string
	rule     string
	match    string // part of the URL
	looks    int    // most records to examine; 0: all
	links    bool   // include links that were not taken
}

// outcomeWords returns the values of -outcome.
func outcomeWords() []string {
	words := make([]string, len(crawllog.Outcomes))
	for i, o := range crawllog.Outcomes {
		words[i] = string(o)
	}
	return words
}

func endsFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "outcome", Usage: "only these `outcomes`, comma-separated: " + strings.Join(outcomeWords(), ", ")},
		&cli.StringFlag{Name: "host", Usage: "only URLs of this `host`"},
		&cli.StringFlag{Name: "rule", Usage: "only what this `rule` refused: robots.txt, scope, blocked, host-full, limit or a filter's name"},
	}
}

// filterOf reads the flags. usual is the default of -outcome.
func filterOf(cmd *cli.Command, usual ...crawllog.Outcome) (f endsFilter, err error) {
	f.rule = cmd.String("rule")
	if cmd.IsSet("host") {
		if f.host, err = hostkey.Spelled(cmd.String("host")); err != nil {
			return f, usageError(fmt.Sprintf("%s: -host: %v", cmd.Name, err))
		}
	}
	for _, o := range usual {
		f.outcomes = append(f.outcomes, string(o))
	}
	if f.rule != "" {
		f.outcomes = []string{string(crawllog.Refused)}
	}
	if s := cmd.String("outcome"); s != "" {
		f.outcomes = strings.Split(s, ",")
	}
	for i, o := range f.outcomes {
		if f.outcomes[i] = strings.TrimSpace(o); !slices.Contains(crawllog.Outcomes, crawllog.Outcome(f.outcomes[i])) {
			words := outcomeWords()
			return f, usageError(fmt.Sprintf("%s: there is no outcome %q%s; there are %s", cmd.Name, f.outcomes[i], suggest(f.outcomes[i], words, ""), strings.Join(words, ", ")))
		}
	}
	return f, noMore(cmd.Args().Slice())
}

// of yields the latest record of each URL, newest first, if the filter matches. A record of a robots.txt
// matches if its fetch failed.
func (f endsFilter) of(dir string) iter.Seq2[crawllog.Record, error] {
	return func(yield func(crawllog.Record, error) bool) {
		seed, seen, looked := maphash.MakeSeed(), map[uint64]bool{}, 0
		paths := []string{endsPath(dir)}
		if f.links {
			paths = append(paths, notTakenPath(dir))
		}
		for _, path := range paths {
			all := crawllog.NewView(path).Backward()
			if f.host != "" {
				all = crawllog.NewView(path).OfHost(f.host, "")
			}
			for r, err := range all {
				if looked++; f.looks > 0 && looked > f.looks {
					return
				}
				if errors.Is(err, crawllog.ErrLine) {
					continue
				}
				key := maphash.String(seed, r.URL)
				robots := r.Outcome == crawllog.Robots
				if err == nil && (!robots && !r.Outcome.OfURL() || seen[key]) {
					continue
				}
				seen[key] = true
				if err == nil && (robots && r.Reason == "" || !f.wants(&r)) {
					continue
				}
				if !yield(r, err) || err != nil {
					return
				}
			}
		}
	}
}

func (f endsFilter) wants(r *crawllog.Record) bool {
	return (len(f.outcomes) == 0 || slices.Contains(f.outcomes, string(r.Outcome))) && (f.host == "" || r.Host == f.host) && (f.rule == "" || r.Rule == f.rule) && strings.Contains(r.URL, f.match)
}

// recorded opens a crawl's record.
func recorded(cmd *cli.Command) (dir string, err error) {
	if dir = cmd.String("dir"); dir == "" {
		return "", errNoDir
	}
	if _, err := os.Stat(endsPath(dir)); err != nil {
		if servedFolder(dir) {
			return "", usageError(dir + " is of a server, which keeps no record of ends")
		}
		if err := hasCrawl(dir); err != nil {
			return "", err
		}
		return "", fmt.Errorf("%s has no record of ends: %w", dir, err)
	}
	return dir, nil
}

// endsCommand returns the ends command.
func endsCommand() *cli.Command {
	return &cli.Command{
		Name: "ends", Usage: "list what became of URLs, the newest first",
		Flags: append([]cli.Flag{dirFlag(), jsonFlag(), &cli.IntFlag{Name: "n", Value: 20, Usage: "`number` of rows at most; 0: all"},
			&cli.BoolFlag{Name: "failed", Usage: "only what failed and what was given up: -outcome failed,given-up"},
			&cli.BoolFlag{Name: "links", Usage: "links that were not taken, too"}}, endsFlags()...),
		Action: func(_ context.Context, cmd *cli.Command) error {
			dir, err := recorded(cmd)
			if err != nil {
				return err
			}
			var usual []crawllog.Outcome
			if cmd.Int("n") < 0 {
				return usageError(fmt.Sprintf("ends: -n is %d; want >= 0", cmd.Int("n")))
			}
			if cmd.Bool("failed") {
				if cmd.String("outcome") != "" || cmd.String("rule") != "" {
					return usageError("ends: -failed cannot be combined with -outcome or -rule")
				}
				usual = []crawllog.Outcome{crawllog.Failed, crawllog.GivenUp}
			}
			f, err := filterOf(cmd, usual...)
			if err != nil {
				return err
			}
			f.links = cmd.Bool("links")
			return newPrinter(cmd).ends(f.of(dir), cmd.Int("n"))
		},
	}
}

// ends prints records; as JSON, one per line.
func (p *printer) ends(all iter.Seq2[crawllog.Record, error], most int) error {
	lines := []string{row("TIME", "OUTCOME", "STATUS", "BYTES", "SECONDS", "URL", "WHY")}
	n := 0
	for r, err := range all {
		if err != nil {
			return err
		}
		if n++; most > 0 && n > most {
			lines = append(lines, "", "There are more: -n says how many to list, 0 lists all")
			break
		}
		if p.json {
			b, err := r.MarshalLine()
			if err == nil {
				_, err = p.w.Write(b)
			}
			if err != nil {
				return err
			}
			continue
		}
		cells := []any{r.Time.UTC().Format("2006-01-02 15:04:05Z"), r.Outcome, "-", "-", "-", r.URL, strings.TrimSpace(r.Rule + " " + r.Reason)}
		if r.Status > 0 {
			cells[2], cells[3], cells[4] = r.Status, r.Bytes, fmt.Sprintf("%.3f", r.Seconds)
		}
		lines = append(lines, row(cells...))
	}
	if p.json {
		return nil
	}
	return p.table(lines...)
}

// atATime is how many URLs one request brings back.
const atATime = 500

// retryCommand returns the retry command.
func retryCommand() *cli.Command {
	return reaching(reachScope, "retry", "", "fetch URLs again that were given up, or that the flags choose", func(ctx context.Context, c *reached, cmd *cli.Command, out *printer) error {
		dir, err := recorded(cmd)
		if err != nil {
			return err
		}
		f, err := filterOf(cmd, crawllog.GivenUp)
		if err != nil {
			return err
		}
		chosen, total, err := f.toRetry(dir)
		if err != nil {
			return err
		}
		var brought int64
		var errs []error
		for of, urls := range chosen {
			for part := range slices.Chunk(urls, atATime) {
				n, err := bringBack(ctx, c, console.Action{Do: "crawl-now", URLs: part, Crawl: console.CrawlID{Number: of.crawl}, Depth: of.depth})
				brought, errs = brought+n, append(errs, err)
			}
		}
		said := fmt.Sprintf("%d of %d URLs come again, ahead of everything else", brought, total)
		if total == 0 {
			said = "no URL ended so"
		}
		return errors.Join(out.result(console.Result{Said: said, Count: brought}), errors.Join(errs...))
	}, endsFlags()...)
}

// origin groups URLs that can be brought back by one action.
type origin struct {
	crawl uint32
	depth int
}

// toRetry returns the URLs that match.
func (f endsFilter) toRetry(dir string) (by map[origin][]string, total int, err error) {
	by = map[origin][]string{}
	for r, err := range f.of(dir) {
		if err != nil {
			return nil, 0, err
		}
		of := origin{r.Crawl, r.Depth}
		by[of] = append(by[of], r.URL)
		total++
	}
	return by, total, nil
}

// bringBack brings back the URLs that the crawl wants. The error explains why it refused others.
func bringBack(ctx context.Context, c *reached, a console.Action) (n int64, err error) {
	r, err := c.Do(ctx, a)
	if err == nil || len(a.URLs) == 1 || ctx.Err() != nil {
		return r.Count, err
	}
	var errs []error
	for _, u := range a.URLs { // one unwanted URL makes the frontier refuse all
		one := a
		one.URLs = []string{u}
		r, err := c.Do(ctx, one)
		n, errs = n+r.Count, append(errs, err)
	}
	return n, errors.Join(errs...)
}
