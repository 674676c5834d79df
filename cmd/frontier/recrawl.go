// This file reads the flags of -recrawl: crawls that never end.

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler"
	"github.com/seed-7440039f/frontier/crawler/backup"
	"github.com/seed-7440039f/frontier/crawler/incremental"
	"github.com/seed-7440039f/frontier/recrawl"
)

// recrawlFolder is a folder in -dir.
const recrawlFolder = "recrawl"

// recrawlFlags are these flags.
type recrawlFlags struct {
	on      bool
	budget  rate
	options incremental.Options
	every   time.Duration
	prior   time.Duration

	revisits *incremental.Revisits // set once the crawl is open
	reported time.Time
}

func (w *recrawlFlags) define(fs *flagSet) {
	s := &w.options.Schedule
	fs.BoolVar(&w.on, "recrawl", false, "fetch pages again when that is worth it, for ever; what is learned is kept in -dir")
	fs.Var(&w.budget, "recrawl-budget", "`fetches` per second, or 1000/m, 50000/h, 1000000/d: at most, and what the intervals are made for (default: as many as can be)")
	fs.DurationVar(&s.MinInterval, "recrawl-min", time.Minute, "least `time` between two fetches of a page")
	fs.DurationVar(&s.MaxInterval, "recrawl-max", 60*24*time.Hour, "greatest such `time`; the same as -recrawl-min: all pages alike")
	fs.DurationVar(&s.Probe, "recrawl-probe", time.Hour, "`time` after which a page is looked at again that seems to change at every fetch, or to be gone")
	fs.DurationVar(&w.prior, "recrawl-prior", 30*24*time.Hour, "expected `time` between two changes of a page of which nothing is known yet")
	fs.Float64Var(&s.NewShareMin, "recrawl-new-min", 0, "least share of the fetches for URLs never crawled, from 0 to 1")
	fs.Float64Var(&s.NewShareMax, "recrawl-new-max", 0.5, "greatest such share, while known pages are due")
	fs.Float64Var(&w.options.MinChange, "recrawl-min-change", 0, "`share` of a page's words that must be other for a change, from 0 to 1; 0: any")
	fs.DurationVar(&w.every, "recrawl-report", time.Minute, "how often the state of the copy is logged")
}

// validate reports invalid values.
func (w *recrawlFlags) validate(o *options) {
	if !w.on {
		return
	}
	w.options.Schedule.Budget = float64(w.budget)
	if w.budget == 0 {
		o.silence("recrawl-budget")
	}
	s := &w.options.Schedule
	o.badIf(s.MinInterval <= 0, "want > 0", "recrawl-min")
	o.badIf(s.MaxInterval <= 0, "want > 0", "recrawl-max")
	o.badIf(s.Probe <= 0, "want > 0", "recrawl-probe")
	o.badIf(w.every <= 0, "want > 0", "recrawl-report")
	o.badIf(w.prior <= 0, "want > 0", "recrawl-prior")
	s.Prior = recrawl.Gamma{Alpha: 0.5, Beta: 0.5 * w.prior.Hours() / 24}
	o.badIf(!(s.NewShareMax > 0), "want more than 0 and at most 1", "recrawl-new-max")
	if _, err := incremental.Open(w.options); err != nil { // without a folder
		o.wrong(err, "recrawl", "MinInterval", "recrawl-min", "MaxInterval", "recrawl-max", "Probe", "recrawl-probe", "Prior", "recrawl-prior",
			"NewShareMin", "recrawl-new-min", "MinChange", "recrawl-min-change", "Budget", "recrawl-budget")
	}
}

// open prepares the frontier's options.
func (w *recrawlFlags) open(s *settings, log *slog.Logger) (err error) {
	if !w.on {
		return nil
	}
	if s.dir != "" {
		w.options.Dir = filepath.Join(s.dir, recrawlFolder)
	}
	w.options.Logger = log
	if w.revisits, err = incremental.Open(w.options); err != nil {
		return err
	}
	w.revisits.Configure(&s.frontier)
	s.crawler.Revisits = w.revisits
	s.crawler.MaxRate = float64(w.budget)
	return nil
}

// part returns the part of a checkpoint with the frontier, and inside it, as in -dir, the settings and
// what was learned about pages.
func (w *recrawlFlags) part(dir string, frontier func(context.Context, string) error) backup.Part {
	return backup.Part{Name: "frontier", Copy: func(ctx context.Context, path string) error {
		if err := frontier(ctx, path); err != nil {
			return err
		}
		if err := copyConfig(dir, path); err != nil || w.revisits == nil {
			return err
		}
		return w.revisits.CopyTo(ctx, filepath.Join(path, recrawlFolder))
	}}
}

// attach connects the recrawl to an open frontier.
func (w *recrawlFlags) attach(ctx context.Context, f *frontier.Frontier, s *settings, log *slog.Logger) error {
	if !w.on {
		return nil
	}
	s.crawler.OnProgress = func(crawler.Progress) { // called by one goroutine
		if now := time.Now(); now.Sub(w.reported) >= w.every {
			w.reported = now
			log.Info("recrawling", "report", w.revisits.Report().String())
		}
	}
	return w.revisits.Attach(ctx, f)
}

// report prints the result.
func (w *recrawlFlags) report(out io.Writer) {
	if w.on {
		fmt.Fprintln(out, w.revisits.Report())
	}
}

// close saves what was learned.
func (w *recrawlFlags) close() error {
	if w.revisits == nil {
		return nil
	}
	return w.revisits.Close()
}

// rate is a flag of a number per second, or with /m, /h or /d per minute, hour or day.
type rate float64

func (r *rate) String() string {
	if *r == 0 {
		return ""
	}
	return strconv.FormatFloat(float64(*r), 'g', -1, 64)
}

func (r *rate) Set(s string) error {
	number, unit, has := strings.Cut(s, "/")
	if !has {
		unit = "s"
	}
	per, ok := map[string]float64{"s": 1, "m": 60, "h": 3600, "d": 86400}[unit]
	n, err := strconv.ParseFloat(number, 64)
	if err != nil || !ok || !(n > 0) || math.IsInf(n, 1) {
		return errors.New("want a number more than 0, and perhaps /s, /m, /h or /d")
	}
	*r = rate(n / per)
	return nil
}
