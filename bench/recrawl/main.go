// Recrawl compares recrawl policies on a synthetic web in virtual time: how fresh is the copy that
// each keeps, relative to the optimum?
//
//	go run ./bench/recrawl                      # all policies, all scenarios, 3 seeds
//	go run ./bench/recrawl -frontier            # ours in a real frontier too
//	go run ./bench/recrawl -scenarios web,flood -policies uniform,index -seeds 1
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/importance"
	"github.com/seed-7440039f/frontier/internal/lab/recrawlsim"
	"github.com/seed-7440039f/frontier/recrawl/plan"
)

// policy is a row of the table.
type policy struct {
	name string
	run  func(recrawlsim.Scenario) (recrawlsim.Result, error)
}

func direct(name string, p func(*recrawlsim.Web) recrawlsim.Policy) policy {
	return policy{name, func(s recrawlsim.Scenario) (recrawlsim.Result, error) { return recrawlsim.Run(s, p), nil }}
}

var policies = []policy{
	direct("uniform", recrawlsim.Uniform),
	direct("proportional", recrawlsim.Proportional),
	direct("nutch", recrawlsim.Nutch),
	direct("nutch-unsynced", recrawlsim.NutchUnsynced),
	direct("webfountain-1", recrawlsim.WebFountain(plan.Even)),
	direct("webfountain-2", recrawlsim.WebFountain(plan.Last)),
	direct("webfountain-3", recrawlsim.WebFountain(plan.Mixed)),
	direct("cho-learned", recrawlsim.Cho),
	direct("cho-learned-60d", recrawlsim.Cho60),
	direct("optimum-known", recrawlsim.Known),
	direct("index-known", recrawlsim.OursKnown),
	direct("index", recrawlsim.Ours),
	direct("index-true", recrawlsim.True),
	direct("index-links", recrawlsim.Estimated(importance.Links, 0.5)),
	direct("index-trust", recrawlsim.Estimated(importance.Trust, 0.5)),
}

var inFrontier = policy{"index-frontier", func(s recrawlsim.Scenario) (recrawlsim.Result, error) {
	return recrawlsim.RunFrontier(s, frontier.Options{})
}}

func main() {
	pages := flag.Int("pages", 5000, "`number` of pages")
	seeds := flag.Int("seeds", 3, "`number` of webs of each kind")
	only := flag.String("scenarios", "", "comma `list`: plain, weights, web, tight, polite, drift, flood, lies, steps, opposed, spam30; empty: all")
	who := flag.String("policies", "", "comma `list` of policies; empty: all")
	real := flag.Bool("frontier", false, "drive a real frontier too")
	flag.Parse()
	rows := policies
	if *real {
		rows = append(rows, inFrontier)
	}
	rows = slices.DeleteFunc(slices.Clone(rows), func(p policy) bool {
		return *who != "" && !slices.Contains(strings.Split(*who, ","), p.name)
	})
	if err := compare(os.Stdout, *pages, *seeds, *only, rows); err != nil {
		fmt.Fprintln(os.Stderr, "recrawl:", err)
		os.Exit(1)
	}
}

// cell is the result of a policy in a scenario, over all seeds.
type cell struct{ score, least, start, spam, swing float64 }

func compare(w io.Writer, pages, seeds int, only string, rows []policy) error {
	var names []string
	table := map[string]cell{}
	for seed := range seeds {
		all := append(recrawlsim.Scenarios(pages, uint64(seed+1)), recrawlsim.Attacks(pages, uint64(seed+1))...)
		for _, s := range all {
			if only != "" && !slices.Contains(strings.Split(only, ","), s.Name) {
				continue
			}
			if seed == 0 {
				names = append(names, s.Name)
			}
			best := recrawlsim.Optimum(s)
			for _, p := range rows {
				r, err := p.run(s)
				if err != nil {
					return fmt.Errorf("%s, %s: %w", p.name, s.Name, err)
				}
				c, n := table[p.name+s.Name], float64(seeds)
				c.score += r.Score / best / n
				if seed == 0 || r.Score/best < c.least {
					c.least = r.Score / best
				}
				c.start += r.Start / best / n
				c.spam += float64(r.Spam) / float64(max(1, r.Fetches)) / n
				c.swing = max(c.swing, recrawlsim.Swing(r.Prices, 160))
				table[p.name+s.Name] = c
			}
		}
	}
	fmt.Fprintf(w, "%d pages, %d seeds. 1 is the long-run optimum for known rates (of a web that does not change its habits).\n", pages, seeds)
	print := func(title string, value func(cell) string) {
		fmt.Fprintf(w, "\n%-16s", title)
		for _, n := range names {
			fmt.Fprintf(w, " %8s", n)
		}
		fmt.Fprintln(w)
		for _, p := range rows {
			fmt.Fprintf(w, "%-16s", p.name)
			for _, n := range names {
				fmt.Fprintf(w, " %8s", value(table[p.name+n]))
			}
			fmt.Fprintln(w)
		}
	}
	share := func(v float64) string { return fmt.Sprintf("%.3f", v) }
	print("days 120-240", func(c cell) string { return share(c.score) })
	print("worst seed", func(c cell) string { return share(c.least) })
	print("days 0-120", func(c cell) string { return share(c.start) })
	print("spam of fetches", func(c cell) string { return fmt.Sprintf("%.1f%%", 100*c.spam) })
	print("price off trend", func(c cell) string {
		if c.swing == 0 {
			return "-"
		}
		return fmt.Sprintf("%.1f%%", 100*c.swing)
	})
	return nil
}
