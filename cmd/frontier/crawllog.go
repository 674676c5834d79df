// This file records the ends of URLs, in the crawl's folder and in the file of -log.

package main

import (
	"context"
	"errors"
	"hash/maphash"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"

	"github.com/seed-7440039f/frontier/console"
	"github.com/seed-7440039f/frontier/crawler/backup"
	"github.com/seed-7440039f/frontier/crawler/crawllog"
	"github.com/seed-7440039f/frontier/crawler/fetch"
	"github.com/seed-7440039f/frontier/event"
)

// Files in a crawl's folder.
const (
	endsFolder   = "ends"
	endsFile     = "ends.jsonl"    // ends of URLs that were taken
	notTakenFile = "refused.jsonl" // links that were not taken: there may be many more
)

func endsPath(dir string) string     { return filepath.Join(dir, endsFolder, endsFile) }
func notTakenPath(dir string) string { return filepath.Join(dir, endsFolder, notTakenFile) }

// recordFlags are the flags about the record of ends.
type recordFlags struct {
	file string
	max  byteSize

	ends *endsLog // nil: no record
}

func (w *recordFlags) define(fs *flagSet) {
	fs.StringVar(&w.file, "log", "", "append what becomes of each URL to this `file`, a JSON line each; when it is full it gets a number behind its name")
	fs.Var(w.max.set(256<<20), "log-max-bytes", "`bytes` of that record that stay, in -dir and again in the files of -log; the oldest go first; 0: keep none; k, M, G may follow")
}

// leastLog is the least bound whose parts are each large enough for crawllog.
const leastLog = 1 << 20

// validate reports invalid values.
func (w *recordFlags) validate(o *options) {
	switch {
	case w.max != 0 && w.max < leastLog:
		o.bad("want 0, or at least 1M", "log-max-bytes")
	case w.max == 0 && w.file != "":
		o.bad("0 keeps no record, so there can be no -log", "log-max-bytes", "log")
	}
}

// open begins a crawl's record. Without a folder and a file it is in memory.
func (w *recordFlags) open(dir string, log *slog.Logger) error {
	if w.max == 0 {
		return nil
	}
	e := &endsLog{log: log, seed: maphash.MakeSeed(), told: map[uint64]struct{}{}}
	main := crawllog.Options{MaxBytes: int64(w.max)}
	if dir != "" {
		main.Path, main.MaxBytes = endsPath(dir), int64(w.max)/4*3
	}
	var err, more error
	if e.main, err = crawllog.Open(main); err != nil {
		return err
	}
	w.ends = e
	if dir != "" {
		e.notTaken, err = crawllog.Open(crawllog.Options{Path: notTakenPath(dir), MaxBytes: int64(w.max) / 4})
		e.warn(e.main)
	}
	if w.file != "" {
		e.extra, more = crawllog.Open(crawllog.Options{Path: w.file, MaxBytes: int64(w.max)})
	}
	return errors.Join(err, more)
}

// close ends the record.
func (w *recordFlags) close() error {
	if w.ends == nil {
		return nil
	}
	return w.ends.close()
}

// part adds the record to the copy of a crawl's folder.
func (w *recordFlags) part(p backup.Part) backup.Part {
	if w.ends == nil {
		return p
	}
	return backup.Part{Name: p.Name, Copy: func(ctx context.Context, path string) error {
		if err := p.Copy(ctx, path); err != nil {
			return err
		}
		to := filepath.Join(path, endsFolder)
		return errors.Join(w.ends.main.CopyTo(ctx, to), w.ends.notTaken.CopyTo(ctx, to))
	}}
}

// record returns the crawler's callback; nil: nothing is recorded.
func (w *recordFlags) record() func(crawllog.Record) {
	if w.ends == nil {
		return nil
	}
	return w.ends.add
}

// manyEnds is the most ends of one URL on the page.
const manyEnds = 20

// shown returns a function that lists a URL's ends for the page, from a crawl's folder; nil if nothing is
// recorded there.
func (w *recordFlags) shown(dir string) func(ctx context.Context, url string) ([]console.End, error) {
	if w.ends == nil || dir == "" {
		return nil
	}
	return func(ctx context.Context, url string) (list []console.End, err error) {
		for _, path := range []string{endsPath(dir), notTakenPath(dir)} {
			for r, err := range crawllog.NewView(path).Of(fetch.Redact(url)) {
				if err = errors.Join(err, ctx.Err()); err != nil {
					return list, err
				}
				list = append(list, endShown(&r))
				if len(list) == manyEnds {
					return list, nil
				}
			}
		}
		return list, nil
	}
}

// endShown converts a record for the page.
func endShown(r *crawllog.Record) console.End {
	what := strings.ReplaceAll(string(r.Outcome), "-", " ")
	return console.End{At: r.Time, What: what, Status: r.Status, Bytes: r.Bytes, Duration: r.Seconds, Reason: strings.TrimSpace(r.Rule + " " + r.Reason)}
}

// mostLooked is how many records the page examines for a list of ends.
const mostLooked = 50_000

// newest returns console.Options.Newest; nil if there is no record.
func (w *recordFlags) newest(dir string) func(context.Context, console.EndsQuery) ([]console.End, error) {
	if w.ends == nil || dir == "" {
		return nil
	}
	return newestIn(dir)
}

// newestIn returns console.Options.Newest for a crawl's folder.
func newestIn(dir string) func(context.Context, console.EndsQuery) ([]console.End, error) {
	return func(ctx context.Context, q console.EndsQuery) (list []console.End, err error) {
		f := endsFilter{host: q.Host, match: q.Match, looks: mostLooked}
		if q.What != "" {
			f.outcomes = []string{strings.ReplaceAll(q.What, " ", "-")}
		}
		for r, err := range f.of(dir) {
			if err = errors.Join(err, ctx.Err()); err != nil || len(list) == q.N {
				return list, err
			}
			e := endShown(&r)
			e.URL = r.URL
			list = append(list, e)
		}
		return list, nil
	}
}

// endsLog records ends. It is safe for concurrent use.
type endsLog struct {
	main            *crawllog.Log
	notTaken, extra *crawllog.Log // nil: none
	log             *slog.Logger
	seed            maphash.Seed

	mu   sync.Mutex
	told map[uint64]struct{} // guarded by mu; recently recorded links that were not taken
	err  error               // guarded by mu; of the first failed write
}

// manyTold is how many links that were not taken are remembered, so that a link on every page is recorded
// once.
const manyTold = 1 << 16

// add records an end.
func (e *endsLog) add(r crawllog.Record) {
	if r.Outcome == crawllog.Refused && r.Attempt == 0 {
		if e.fresh(r.URL + " " + r.Rule) {
			e.to(e.notTaken, r)
		}
		return
	}
	e.to(e.main, r)
	e.to(e.extra, r)
}

// event records that a host was given up.
func (e *endsLog) event(x event.Event) {
	if e == nil || x.Kind != event.HostGivenUp {
		return
	}
	e.add(crawllog.Record{Outcome: crawllog.HostGivenUp, Host: x.Host, Count: x.Count, Reason: x.Reason})
}

// fresh reports whether a link was not recorded recently.
func (e *endsLog) fresh(link string) bool {
	key := maphash.String(e.seed, link)
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, ok := e.told[key]; ok {
		return false
	}
	if len(e.told) >= manyTold {
		clear(e.told)
	}
	e.told[key] = struct{}{}
	return true
}

// to writes to one log. It logs the first failed write; the log itself counts all of them.
func (e *endsLog) to(l *crawllog.Log, r crawllog.Record) {
	if l == nil {
		return
	}
	err := l.Add(r)
	if err == nil {
		return
	}
	e.mu.Lock()
	first := e.err == nil
	if first {
		e.err = err
	}
	e.mu.Unlock()
	if first {
		e.log.Warn("what becomes of URLs is not recorded; the record will say how many are missing", "error", err)
	}
}

// warn logs that a kill has truncated a line.
func (e *endsLog) warn(l *crawllog.Log) {
	if all, err := l.Recent(1); err == nil && len(all) > 0 && all[0].Count > 0 {
		e.log.Warn("the last line of the record of ends was cut, and is removed: its URL comes again")
	}
}

func (e *endsLog) close() error {
	e.mu.Lock()
	err := e.err
	e.mu.Unlock()
	for _, l := range []*crawllog.Log{e.main, e.notTaken, e.extra} {
		if l != nil {
			err = errors.Join(err, l.Close())
		}
	}
	return err
}
