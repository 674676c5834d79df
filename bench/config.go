// This file holds the options of the command line, and their validation.

package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/seed-7440039f/frontier/internal/faults"
)

// config is the configuration of every scenario. It is passed to child processes as JSON.
type config struct {
	Scenarios []string
	URLs      int
	Hosts     int // 0: those of a Zipf draw from a million
	Workers   int
	URLsFile  string
	Budget    int64 // 0: by the number of URLs and hosts
	Dir       string
	Sync      bool
	Verbose   bool
	JSON      string
	Time      time.Duration // of longrun
	Phase     time.Duration
	Watch     time.Duration
	Settle    time.Duration
	DrainURLs int
	Seed      uint64
}

const (
	minURLs    = 1000
	maxURLs    = 1 << 31
	zipfUsual  = 1_000_000 // hosts that are drawn from without -hosts
	maxWorkers = 10_000
)

const intro = `Usage: go run ./bench [flags]

Measures the frontier on the disk of -dir and prints a Markdown table beside the
goals of the design, with raw probes of the same run, and then every figure.
Each scenario runs in a process of its own. Ctrl-C ends the run and prints what
there is.

Flags:
`

// parseFlags returns every fault at once. After -h the error is flag.ErrHelp.
func parseFlags(args []string, stderr io.Writer) (config, error) {
	var c config
	var names, budget string
	fs := flag.NewFlagSet("bench", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.StringVar(&names, "scenario", "table", "comma `list` of scenarios, or table or all; see below")
	fs.IntVar(&c.URLs, "urls", 0, "URLs to add; 0: 10 million, or as many as -urls-file has")
	fs.IntVar(&c.Hosts, "hosts", 0, "hosts, each with a URL at least, the others by Zipf's law with exponent 1.1; 0: drawn from a million, of which 10 million URLs meet 667 thousand")
	fs.IntVar(&c.Workers, "workers", 64, "goroutines that take URLs in the scenarios that do not fix their number")
	fs.StringVar(&c.URLsFile, "urls-file", "", "gzip `file` with a URL in each line, to be used instead of made-up ones")
	fs.StringVar(&budget, "budget", "", "MemoryBudget of the frontier, as 512MiB or 2GiB; empty: 512MiB, and above 10 million URLs or a million hosts more in proportion")
	fs.StringVar(&c.Dir, "dir", "", "`folder` on the volume to be measured; a new one is made in it and removed at the end; empty: the system's for temporary files")
	fs.BoolVar(&c.Sync, "sync", false, "let every commit survive a loss of power")
	fs.BoolVar(&c.Verbose, "v", false, "tell on standard error how it goes")
	fs.StringVar(&c.JSON, "json", "", "write all results as JSON to this `file`; - is the standard output, after the table")
	fs.DurationVar(&c.Time, "time", 30*time.Minute, "how long longrun runs")
	fs.DurationVar(&c.Phase, "phase", 15*time.Second, "how long each phase of cycle, known and sync lasts")
	fs.DurationVar(&c.Watch, "watch", 15*time.Minute, "how long drain watches an empty frontier give its disk back, at most")
	fs.DurationVar(&c.Settle, "settle", 2*time.Minute, "how long to wait for the disk to become quiet, at most")
	fs.IntVar(&c.DrainURLs, "drain-urls", 0, "URLs that drain takes out, for large sets; 0: all")
	fs.Uint64Var(&c.Seed, "seed", 1, "of the made-up URLs and of every draw")
	fs.Usage = func() {
		fmt.Fprint(stderr, intro)
		fs.PrintDefaults()
		fmt.Fprintf(stderr, "\nScenarios, those of the table marked with *:\n")
		for _, s := range scenarios {
			mark := " "
			if s.inTable {
				mark = "*"
			}
			fmt.Fprintf(stderr, " %s %-14s %s\n", mark, s.name, s.about)
		}
	}
	if err := fs.Parse(args); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			err = errors.Join(err) // fs has printed it
		}
		return c, err
	}
	var wrong faults.List
	wrong.If(fs.NArg() > 0, "%q is no flag; want flags only", fs.Arg(0))
	var err error
	c.Scenarios, err = chosen(names)
	wrong.Add(err)
	c.Budget, err = parseSize(budget)
	wrong.If(err != nil, "-budget is %q; want a size as 512MiB or 2GiB", budget)
	if c.URLs == 0 && c.URLsFile == "" {
		c.URLs = 10_000_000
	}
	wrong.If((c.URLs != 0 || c.URLsFile == "") && (c.URLs < minURLs || c.URLs > maxURLs), "-urls is %d; want %d to %d", c.URLs, minURLs, maxURLs)
	wrong.If(c.Hosts < 0 || c.Hosts > maxURLs || (c.URLs > 0 && c.Hosts > c.URLs), "-hosts is %d; want 0 to the number of URLs", c.Hosts)
	wrong.If(c.Hosts > 0 && c.URLsFile != "", "-hosts is %d with -urls-file; the file says which hosts there are", c.Hosts)
	wrong.If(c.Workers < 1 || c.Workers > maxWorkers, "-workers is %d; want 1 to %d", c.Workers, maxWorkers)
	for name, d := range map[string]time.Duration{"time": c.Time, "phase": c.Phase} {
		wrong.If(d < 100*time.Millisecond || d > 30*24*time.Hour, "-%s is %v; want 100ms to 720h", name, d)
	}
	for name, d := range map[string]time.Duration{"watch": c.Watch, "settle": c.Settle} {
		wrong.If(d < 0 || d > 24*time.Hour, "-%s is %v; want 0 to 24h", name, d)
	}
	wrong.If(c.DrainURLs < 0, "-drain-urls is %d; want >= 0", c.DrainURLs)
	if c.Dir != "" {
		if info, err := os.Stat(c.Dir); err != nil {
			wrong.Add(fmt.Errorf("-dir: %w", err))
		} else if !info.IsDir() {
			wrong.Add(fmt.Errorf("-dir: %s is not a folder", c.Dir))
		}
	}
	if c.URLsFile != "" {
		if info, err := os.Stat(c.URLsFile); err != nil {
			wrong.Add(fmt.Errorf("-urls-file: %w", err))
		} else if info.IsDir() {
			wrong.Add(fmt.Errorf("-urls-file: %s is a folder", c.URLsFile))
		}
	}
	return c, errors.Join(wrong...)
}

// chosen turns the value of -scenario into names.
func chosen(list string) ([]string, error) {
	var names []string
	var errs []error
	add := func(name string) {
		for _, n := range names {
			if n == name {
				return
			}
		}
		names = append(names, name)
	}
	for name := range strings.SplitSeq(list, ",") {
		name = strings.TrimSpace(name)
		found := false
		for _, s := range scenarios {
			if s.name == name || name == "all" || name == "table" && s.inTable {
				add(s.name)
				found = true
			}
		}
		if !found {
			errs = append(errs, fmt.Errorf("-scenario: there is no %q; -h lists them", name))
		}
	}
	return names, errors.Join(errs...)
}

// parseSize reads a number of bytes; nothing is 0.
func parseSize(s string) (int64, error) {
	if s == "" {
		return 0, nil
	}
	number, unit := s, 1.0
	for _, u := range []struct {
		name string
		size float64
	}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"B", 1}} {
		if rest, ok := strings.CutSuffix(s, u.name); ok {
			number, unit = strings.TrimSpace(rest), u.size
			break
		}
	}
	x, err := strconv.ParseFloat(number, 64)
	if err != nil || math.IsNaN(x) || x*unit < 1 || x*unit > 1<<50 {
		return 0, fmt.Errorf("bad size %q", s)
	}
	return int64(x * unit), nil
}

// hostsAbout returns the approximate number of hosts of the run's URLs.
func (c config) hostsAbout() int {
	switch {
	case c.Hosts > 0:
		return c.Hosts
	case c.URLsFile != "":
		return c.URLs / 6
	}
	return min(zipfUsual, c.URLs/2)
}

// budget is the MemoryBudget of frontiers on disk.
func (c config) budget() int64 {
	if c.Budget > 0 {
		return c.Budget
	}
	more := func(n, over, each int) int64 { return int64(max(0, n-over)) * int64(each) }
	return 512<<20 + more(c.URLs, 10_000_000, 11) + more(c.hostsAbout(), 1_000_000, 120)
}
