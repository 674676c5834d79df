// Webfountain plans the cycles of the WebFountain crawler: it solves the model of
// the paper (package recrawl/plan) and prints its tables beside ours.
//
//	go run ./examples/webfountain               # Tables 3 and 4
//	go run ./examples/webfountain -svg figures  # and Figures 3 to 6 into a folder
//	go run ./examples/webfountain -model m.json # plans your own model, as JSON
//	go run ./examples/webfountain -model m.json -cycles 2,2,1  # cycle after cycle, by these strategies
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/seed-7440039f/frontier/recrawl/plan"
)

func main() {
	svg := flag.String("svg", "", "write figures into a `folder`")
	model := flag.String("model", "", "plan the model in a `file` of JSON, and print the plan")
	cycles := flag.String("cycles", "", "with -model, plan cycle after cycle with a comma `list` of strategies: 1, 2 or 3; empty: one cycle, with the file's weights")
	flag.Parse()
	log.SetFlags(0)
	var err error
	if *model != "" {
		err = solveFile(os.Stdout, *model, *cycles)
	} else {
		err = paper(os.Stdout, *svg)
	}
	if err != nil {
		log.Fatal("webfountain: ", err)
	}
}

// solveFile plans a model of the user's.
func solveFile(w io.Writer, name, cycles string) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	var m plan.Model
	if err := json.Unmarshal(text, &m); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	var plans []*plan.Plan
	if cycles == "" {
		p, err := plan.Solve(context.Background(), &m, plan.Options{})
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		plans = append(plans, p)
	} else {
		each, err := strategies(cycles)
		if err != nil {
			return err
		}
		if plans, err = m.Cycles(context.Background(), plan.Options{}, each...); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	for _, p := range plans {
		printPlan(w, p)
	}
	budget, _, err := m.Cover()
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "to see every page within the cycle takes %.5g seconds in each period\n", budget)
	return nil
}

// strategies reads a list like 2,2,1.
func strategies(list string) ([]plan.Strategy, error) {
	var each []plan.Strategy
	for s := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(s)
		if err != nil || n < int(plan.Even) || n > int(plan.Mixed) {
			return nil, fmt.Errorf("-cycles: %q is no strategy; want 1, 2 or 3", s)
		}
		each = append(each, plan.Strategy(n))
	}
	return each, nil
}

// printPlan prints what to crawl in each period, and what comes of it.
func printPlan(w io.Writer, p *plan.Plan) {
	fmt.Fprintf(w, "objective %.6g, bound %.6g (gap %.2f%%)\n", p.Objective, p.Bound, 100*p.Gap())
	stale := p.Stale()
	fmt.Fprintln(w, "period   crawl old   crawl new  share new    obsolete  never crawled")
	for t := 1; t < len(p.Old); t++ {
		sum := 0.
		for _, x := range p.Old[t] {
			sum += x
		}
		_, share := p.Probabilities(t)
		fmt.Fprintf(w, "%6d %11.5g %11.5g %10.4f %11.5g %14.5g\n", t, sum, p.New[t], share, stale[t], p.Known[t])
	}
}

// run is one of the paper's experiments.
type run struct {
	name     string
	version  int
	periods  int
	strategy plan.Strategy
	// What the paper prints: objective, pages and obsolete pages at the end.
	objective, pages, obsolete float64
}

var runs = []run{
	{"strategy 1", 1, 14, plan.Even, 32.592e7, 5.224e8, 3.086e7},
	{"strategy 2", 1, 14, plan.Last, 1.722e7, 5.184e8, 1.609e7},
	{"strategy 3", 1, 14, plan.Mixed, 2.138e7, 5.224e8, 1.702e7},
	{"strategy 1 v2", 2, 14, plan.Even, 37.744e7, 5.214e8, 3.534e7},
	{"strategy 3 v2", 2, 14, plan.Mixed, 2.500e7, 5.193e8, 1.972e7},
	{"strategy 1 v3", 3, 14, plan.Even, 0, 0, 0},
	{"strategy 1, 28 days", 1, 28, plan.Even, 0, 0, 0},
	{"strategy 1 v3, 28 days", 3, 28, plan.Even, 0, 0, 0},
}

func paper(w io.Writer, folder string) error {
	plans := make(map[string]*plan.Plan)
	fmt.Fprintln(w, "Tables 3 and 4: ours (the paper's)")
	fmt.Fprintf(w, "%-14s %17s %8s %6s %17s %17s %6s %5s\n", "", "objective e7", "bound", "gap", "pages e8", "obsolete e7", "never", "> 1")
	for _, r := range runs {
		p, err := plan.Solve(context.Background(), plan.WebFountain(r.version, r.periods, r.strategy), plan.Options{})
		if err != nil {
			return err
		}
		plans[r.name] = p
		if r.objective == 0 {
			continue
		}
		pages, never, often := 0., 0, 0
		for _, b := range p.Pages[r.periods] {
			pages += b
		}
		for _, n := range p.Crawls() {
			if n < 0.01 {
				never++
			}
			if n > 1.01 {
				often++
			}
		}
		fmt.Fprintf(w, "%-14s %7.3f (%7.3f) %8.3f %5.2f%% %7.3f (%7.3f) %7.3f (%7.3f) %5.0f%% %4.0f%%\n", r.name,
			p.Objective/1e7, r.objective/1e7, p.Bound/1e7, 100*p.Gap(), pages/1e8, r.pages/1e8,
			p.Stale()[r.periods]/1e7, r.obsolete/1e7, float64(never)/2.55, float64(often)/2.55)
	}
	if folder == "" {
		return nil
	}
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return err
	}
	stale := func(name string) line {
		l := line{name: name}
		s := plans[name].Stale()
		for t := 1; t < len(s); t++ {
			l.points = append(l.points, [2]float64{float64(t), (s[t] + plans[name].Known[t]) / 1e7})
		}
		return l
	}
	crawls := func(name string) line {
		l := line{name: name}
		for i, n := range plans[name].Crawls() {
			l.points = append(l.points, [2]float64{float64(i + 1), n})
		}
		return l
	}
	for _, f := range []figure{
		{"figure3", "Figure 3: crawls per cycle of a page", "bucket: changes once in so many days", []line{crawls("strategy 1"), crawls("strategy 2"), crawls("strategy 3")}},
		{"figure4", "Figure 4: obsolete pages (ten millions)", "day", []line{stale("strategy 1"), stale("strategy 2"), stale("strategy 3")}},
		{"figure5", "Figure 5: the same, other change rates", "day", []line{stale("strategy 1"), stale("strategy 1 v2"), stale("strategy 3"), stale("strategy 3 v2")}},
		{"figure6", "Figure 6: obsolete pages, towards stability", "day", []line{stale("strategy 1"), stale("strategy 1, 28 days"), stale("strategy 1 v3"), stale("strategy 1 v3, 28 days")}},
	} {
		name := filepath.Join(folder, f.file+".svg")
		if err := os.WriteFile(name, []byte(f.draw()), 0o666); err != nil {
			return err
		}
		fmt.Fprintln(w, "wrote", name)
	}
	return nil
}
