// Command versus compares `frontier crawl` with wget and gocolly on a real web on loopback, and
// measures it there.
//
//	go run ./crawler/realweb/versus [flags] MODE...
//
//	sets    each site as the crawler finds it, against wget -r; every difference is
//	        explained, and one without a cause fails the run
//	speed   pages a second, CPU time for a page and peak memory of `frontier crawl`,
//	        wget and gocolly on the same server in turns, without any politeness
//	memory  a crawl of many generated pages: live heap and resident memory all along
//	useful  which sites sink under -order, though none is spam
//	polite  all sites at once, politely, judged by the server's log
//	hostile an honest host beside hosts whose pages need much memory: peak memory, CPU
//	        time, and what the honest host gets
//	fair    honest hosts beside silent, dead and slow ones, and beside many names at
//	        their address: their pace against that alone
//
// The web is realweb's (see ../run): documentation trees of Debian packages; hostile and fair need none.
// With -root they need not be installed:
//
//	apt-get download PACKAGE... && for p in *.deb; do dpkg -x $p ROOT; done
//
// On a machine with other load, elapsed times mean little: compare CPU times, and rates within one
// run.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// comparison is the state shared by all modes.
type comparison struct {
	realweb string   // folder of realweb
	root    string   // prefix of the sites' folders
	work    string   // folder for logs and state
	bin     string   // folder for programs
	sites   []string // hosts to crawl
	workers int
	turns   int
	logs    bool // judge the logs of an earlier run

	hosts, pages int // of the generated web of memory
	budget       int // MiB: the frontier's
	most         int // MiB: anonymous memory

	sitePages int // of each site of polite

	limit time.Duration // of each crawl of hostile and fair
	peak  int           // MiB: resident memory of hostile
	least float64       // share of the pace alone, in fair
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("versus: ")
	var c comparison
	var only string
	flag.StringVar(&c.realweb, "realweb", os.Getenv("REALWEB"), "`folder` of realweb (default: $REALWEB, or ../shared/realweb)")
	flag.StringVar(&c.root, "root", "", "`folder` below which the packages were unpacked (default: installed)")
	flag.StringVar(&c.work, "work", "", "`folder` for logs and state (default: a temporary one, removed at the end)")
	flag.StringVar(&only, "only", "", "`sites` to crawl, comma-separated (default: all that are there)")
	flag.IntVar(&c.workers, "workers", 64, "pages fetched at once; for wget, processes of one site each")
	flag.BoolVar(&c.logs, "logs", false, "sets: do not crawl, judge the logs that an earlier run left in -work")
	flag.IntVar(&c.turns, "turns", 3, "speed: how often each is measured")
	flag.IntVar(&c.hosts, "hosts", 10_000, "memory: generated hosts")
	flag.IntVar(&c.pages, "pages", 25, "memory: pages on each")
	flag.IntVar(&c.budget, "budget", 128, "memory: `MiB` for the frontier")
	flag.IntVar(&c.most, "most", 300, "memory: `MiB` of anonymous memory at most")
	flag.IntVar(&c.sitePages, "site-pages", 150, "polite: pages of each site at most")
	flag.DurationVar(&c.limit, "limit", 30*time.Second, "hostile, fair: how long each crawl lasts")
	flag.Float64Var(&c.least, "least", 0.9, "fair: `share` of their pace alone that honest hosts must have")
	flag.IntVar(&c.peak, "peak", 512, "hostile: `MiB` of resident memory at most")
	flag.Parse()
	modes := map[string]func(context.Context) error{"sets": c.sets, "speed": c.speed, "memory": c.memory, "polite": c.polite, "hostile": c.hostile, "fair": c.fair, "useful": c.useful}
	if flag.NArg() == 0 || slices.ContainsFunc(flag.Args(), func(m string) bool { return modes[m] == nil }) {
		log.Fatal("want as modes sets, speed, memory, useful, polite, hostile or fair")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := c.run(ctx, only, modes); err != nil {
		stop()
		log.Fatal(err)
	}
}

func (c *comparison) run(ctx context.Context, only string, modes map[string]func(context.Context) error) (err error) {
	c.realweb = cmp.Or(c.realweb, "../shared/realweb")
	if _, err := os.Stat(filepath.Join(c.realweb, "serve")); err != nil && realWeb() {
		fmt.Printf("no realweb in %s (set REALWEB): SKIPPED, nothing was compared\n", c.realweb)
		if os.Getenv("CI") == "true" {
			return err
		}
		return nil
	}
	if c.work == "" {
		if c.work, err = os.MkdirTemp("", "versus"); err != nil {
			return err
		}
		defer os.RemoveAll(c.work)
	}
	if c.work, err = filepath.Abs(c.work); err != nil {
		return err
	}
	if err := c.build(ctx); err != nil {
		return err
	}
	if realWeb() {
		if c.sites, err = c.list(ctx); err != nil {
			return err
		}
	}
	if only != "" {
		c.sites = strings.Split(only, ",")
	}
	for _, m := range flag.Args() {
		fmt.Printf("## %s\n\n", m)
		began := time.Now()
		if err := modes[m](ctx); err != nil {
			return fmt.Errorf("%s: %w", m, err)
		}
		fmt.Printf("\n%s took %v\n\n", m, time.Since(began).Round(time.Second))
	}
	return nil
}

// realWeb reports whether a mode was asked for that crawls the real web.
func realWeb() bool {
	return slices.ContainsFunc(flag.Args(), func(m string) bool { return m != "hostile" && m != "fair" })
}

// program is a program to build.
type program struct{ dir, pkg, name string }

// build makes the programs. It must run in the repository's root.
func (c *comparison) build(ctx context.Context) error {
	c.bin = filepath.Join(c.work, "bin")
	if err := os.MkdirAll(c.bin, 0o755); err != nil {
		return err
	}
	all := []program{{".", "./cmd/frontier", "frontier"}}
	if realWeb() {
		all = append(all, program{c.realweb, "./serve", "serve"}, program{c.realweb, "./check", "check"})
	}
	if slices.Contains(flag.Args(), "speed") {
		all = append(all, program{"crawler/realweb/versus/colly", ".", "colly"})
	}
	for _, p := range all {
		cmd := exec.CommandContext(ctx, "go", "build", "-o", filepath.Join(c.bin, p.name), p.pkg)
		cmd.Dir = p.dir
		if p.dir != "." { // a module that go.work does not name
			cmd.Env = append(os.Environ(), "GOWORK=off")
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("building %s: %w\n%s", p.name, err, out)
		}
	}
	return nil
}

// list returns the available sites.
func (c *comparison) list(ctx context.Context) ([]string, error) {
	out, err := exec.CommandContext(ctx, filepath.Join(c.bin, "serve"), "-root", c.root, "-list").Output()
	if err != nil {
		return nil, fmt.Errorf("no sites: %w", err)
	}
	return strings.Fields(string(out)), nil
}
