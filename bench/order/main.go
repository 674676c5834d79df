// Order compares orders of a crawl: how much of a web's PageRank is fetched by when, and how much spam? It
// drives a real frontier in virtual time over graphs: of real sites and crawls, from files, and of its own, with
// farms. A host gives one page at a time and rests 10 ticks; a tick has a fixed number of fetches.
//
//	go run ./bench/order                                # three webs attacked by farms, all orders
//	go run ./bench/order -dir DIR                       # docs.bin.zst, cnr.bin.zst and cal.bin.zst of DIR too
//	go run ./bench/order -dir DIR -graphs docs -orders links,trust -disk 134217728
//	go run ./bench/order -orders links,trust -disk 134217728 -restart 0.05    # closed and opened again in mid-crawl
package main

import (
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// subject is a graph to be crawled.
type subject struct {
	name string
	rate float64 // fetches in a tick
	sets int     // of seeds, or webs
	web  *shape  // nil: it is read from a file
}

func main() {
	dir := flag.String("dir", "", "`folder` of graph files")
	graphs := flag.String("graphs", "", "comma `list`: docs, cnr, cal, att; empty: all that there are")
	who := flag.String("orders", "", "comma `list` of orders; empty: all")
	pages := flag.Int("pages", 288000, "`number` of pages of att")
	k := config{}
	flag.Uint64Var(&k.seed, "seed", 1, "of webs, seeds and selectors")
	flag.Int64Var(&k.disk, "disk", 0, "keep frontiers on disk, with `bytes` of memory; 0: in memory")
	flag.BoolVar(&k.free, "free", false, "fetch pages while the frontier moves what has risen, as in reality: figures differ a little from run to run")
	flag.Float64Var(&k.restart, "restart", 0, "close and open the frontier and the estimator after this `share` of the time; needs -disk")
	flag.BoolVar(&k.forget, "forget", false, "at the restart the estimator loses what it knows")
	flag.Parse()
	chosen := func(list, name string) bool { return list == "" || slices.Contains(strings.Split(list, ","), name) }
	rows := slices.DeleteFunc(slices.Clone(orders), func(o order) bool { return !chosen(*who, o.name) })
	attacked := &shape{pages: *pages, spam: 0.31, traps: 0.05, farm: [2]int{200, 600}, seed: k.seed}
	all := []subject{{"docs", 3, 1, nil}, {"cnr", 20, 9, nil}, {"cal", 100, 1, nil}, {"att", 100, 3, attacked}}
	all = slices.DeleteFunc(all, func(s subject) bool { return !chosen(*graphs, s.name) || s.web == nil && *dir == "" })
	if k.restart > 0 && k.disk == 0 {
		fmt.Fprintln(os.Stderr, "order: -restart needs -disk")
		os.Exit(2)
	}
	if err := compare(os.Stdout, *dir, all, rows, k); err != nil {
		fmt.Fprintln(os.Stderr, "order:", err)
		os.Exit(1)
	}
}

// compare prints a table for each graph, and what is demanded of them.
func compare(w io.Writer, dir string, all []subject, rows []order, k config) error {
	m := measured{}
	for _, s := range all {
		k.rate, m[s.name] = s.rate, map[string][]result{}
		var g *graph
		for set := range s.sets {
			seeds, err := s.open(&g, dir, set, k.seed)
			if err != nil {
				return err
			}
			if set == 0 {
				fmt.Fprintf(w, "\n%s: %d pages, %d hosts, %d links; seed %d, %g fetches a tick, mean of %d\n\n",
					s.name, g.pages(), g.hosts, len(g.links), k.seed, s.rate, s.sets)
			}
			for i := range rows {
				r, err := k.run(g, seeds, &rows[i])
				if err != nil {
					return fmt.Errorf("%s, %s: %w", s.name, rows[i].name, err)
				}
				m[s.name][rows[i].name] = append(m[s.name][rows[i].name], r)
			}
		}
		m.print(w, s.name, rows)
	}
	m.judge(w)
	return nil
}

// open returns the graph of a set, and its seeds. For several sets from a file these are the first pages of 30
// random hosts.
func (s *subject) open(g **graph, dir string, set int, seed uint64) (seeds []int32, err error) {
	switch {
	case s.web != nil:
		shape := *s.web
		shape.seed += uint64(set)
		*g = shape.web()
	case *g == nil:
		if *g, err = readGraph(filepath.Join(dir, s.name+".bin.zst")); err != nil {
			return nil, err
		}
	}
	if s.web != nil || s.sets == 1 {
		return (*g).seeds, nil
	}
	homes := (*g).homes()
	random := rand.New(rand.NewPCG(seed, uint64(set)))
	random.Shuffle(len(homes), func(i, j int) { homes[i], homes[j] = homes[j], homes[i] })
	return homes[:min(30, len(homes))], nil
}
