// This file reads what Export wrote, or a list of URLs, into a frontier.
//
// Unless it skips malformed lines, the input is read twice, the first time to
// check it. internal/dump reads the lines.

package frontier

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/seed-7440039f/frontier/internal/dump"
	"github.com/seed-7440039f/frontier/internal/hostkey"
	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/internal/limit"
	"github.com/seed-7440039f/frontier/internal/patience"
	"github.com/seed-7440039f/frontier/internal/row"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/storage"
)

// ImportOptions configure Import. The zero value is ready to use.
type ImportOptions struct {
	// SkipBad imports the valid lines even if others are malformed. Otherwise one
	// malformed line keeps everything from being imported.
	SkipBad bool
	// Crawl is the crawl of URLs in a plain list.
	Crawl uint32
	// Normalize normalizes the URLs of a plain list; a line for which it returns an error
	// is malformed. Nil leaves them as they are.
	Normalize func(url string) (string, error)
	// CheckValue says what is wrong with a value, and CheckCrawl with the crawl that the line of
	// a URL names: a line for which it returns an error is malformed. They are called in the order of the
	// lines, before anything is imported unless SkipBad is set. Nil: nothing is wrong.
	CheckValue func(key string, value []byte) error
	CheckCrawl func(crawl uint32) error
	// TempDir is the folder of the temporary file that Import needs without SkipBad,
	// unless the reader is an io.Seeker. Empty means os.TempDir().
	TempDir string
}

// Imported has the figures of an import.
type Imported struct {
	Lines     int64 `json:"lines"`  // read
	Bad       int64 `json:"bad"`    // malformed ones
	URLs      int64 `json:"urls"`   // admitted
	KnownURLs int64 `json:"known"`  // that were known, and left as they were
	Crawls    int64 `json:"crawls"` // whose settings were put in force
	Rules     int64 `json:"rules"`  // put in force
	Values    int64 `json:"values"` // of the program's
	Groups    int64 `json:"groups"` // whose clocks or settings were read
	Hosts     int64 `json:"hosts"`  // whose clocks and the like were read
	Marks     int64 `json:"marks"`  // URLs that became known without being admitted
	// ForeignMarks counts marks made under another key than the frontier's, which it
	// cannot use: the URLs count as new.
	ForeignMarks int64 `json:"foreign_marks"`
}

const (
	lineErrorsMax = 100       // that are kept
	importURLs    = 1000      // admitted in one commit, at most
	importBytes   = 256 << 10 // of their bodies
	importMarks   = 2048      // that become known in one commit
	importAtOnce  = 128       // hosts that are let go under one lock
)

// Import reads what Export wrote, or a list with one URL per line, in which empty lines
// and lines that begin with # are skipped. docs/export.md has the format.
//
// Known URLs stay as they are, clocks of hosts and groups move only later, and rules replace those of
// the same scope, and values those of the same key: importing the same again changes nothing. URLs wait
// behind those that wait already. Times are those of the wall clock, so politeness continues.
//
// Marks of URLs that are gone can be used only with the key with which they were made. A
// frontier that never had a URL or host adopts the key; so call Import first. Otherwise
// they are counted in Imported.ForeignMarks.
//
// Malformed lines are reported as joined *LineErrors, the first 100 of them. If there are any, nothing
// is imported, or with SkipBad only the other lines. After any other error, including those of Add, the
// import is incomplete: import again. What was imported is durable when Import returns. Like Add it
// waits while the disk is behind; until it returns the crawl is not over.
func (f *Frontier) Import(ctx context.Context, r io.Reader, o ImportOptions) (Imported, error) {
	if err := ctx.Err(); err != nil {
		return Imported{}, err
	}
	in, end := patience.LendReader(r, ErrClosed)
	defer end()
	return patience.InTime(ctx, f.abandoned, func() (Imported, error) { return f.importFrom(ctx, in, o) })
}

func (f *Frontier) importFrom(ctx context.Context, r io.Reader, o ImportOptions) (Imported, error) {
	f.adding.Add(1)
	defer f.addedAll()
	if o.SkipBad {
		im := &importer{f: f, ctx: ctx, o: o}
		err := im.run(r)
		return im.done, errors.Join(errors.Join(im.bad...), err)
	}
	t, err := dump.ReadTwice(r, o.TempDir)
	if err != nil {
		return Imported{}, fmt.Errorf("frontier: import: %w", err)
	}
	defer t.Close()
	check := &importer{f: f, ctx: ctx, o: o, dry: true}
	if err := check.run(t.First()); err != nil {
		return Imported{}, err
	}
	if len(check.bad) > 0 {
		return Imported{}, errors.Join(check.bad...)
	}
	again, err := t.Again()
	if err != nil {
		return Imported{}, fmt.Errorf("frontier: import: %w", err)
	}
	im := &importer{f: f, ctx: ctx, o: o}
	err = im.run(again)
	return im.done, errors.Join(errors.Join(im.bad...), err)
}

// importer is one reading of an import: the Sink of its lines.
type importer struct {
	f    *Frontier
	ctx  context.Context
	o    ImportOptions
	dry  bool // only to see what is malformed
	in   dump.Reader
	done Imported
	bad  []error

	foreign bool // the key of the export is not ours
	fresh   bool // there never was a URL or host when the import began
	op      *op  // URLs to be admitted; nil: none
	marks   []storage.Mark
	pending pendingOps
}

// run reads and applies all lines.
func (im *importer) run(r io.Reader) (err error) {
	defer func() {
		err = errors.Join(err, im.pending.Wait())
		im.f.letGo(im.pending.members)
		if im.op != nil {
			im.op.free()
		}
	}()
	im.in.Sink = im
	err = im.in.Read(im.ctx, r)
	im.done.Lines = im.in.Lines
	if err != nil {
		return err
	}
	return im.flushMarks()
}

// Malformed records the error of a line.
func (im *importer) Malformed(line int64, text string, err error) {
	im.done.Bad++
	if len(im.bad) < lineErrorsMax {
		im.bad = append(im.bad, &LineError{Line: line, Text: text, Err: err})
	}
}

// Header takes the key of the marks, and until when hosts are left alone.
func (im *importer) Header(h dump.Header) (err error) {
	if im.dry {
		return nil
	}
	if im.foreign, im.fresh, err = im.f.takeKey(h.Key); err == nil {
		err = im.f.importStart(h.Held)
	}
	return dump.Stop(err)
}

// Crawl takes the settings of a crawl.
func (im *importer) Crawl(c *row.Crawl) error {
	rule := ruleOfCrawl(c.CrawlSettings)
	if err := rule.CheckCrawl(); err != nil || im.dry {
		return err
	}
	im.done.Crawls++
	return dump.Stop(im.f.changeRule("set rule", scope.Crawl(c.ID), func(r *Rule) error { *r = rule; return nil }))
}

// Rule takes the rule of a scope.
func (im *importer) Rule(of row.Scope, stored *row.Rule) error {
	f := im.f
	now := f.opts.Clock.Now()
	r := ruleStored(stored)
	if !r.BlockedUntil.After(now) {
		r.BlockedUntil = time.Time{}
	}
	s, err := f.spelled(scope.Of(of))
	if err := errors.Join(err, f.checkRule(s, &r, now)); err != nil || im.dry {
		return err
	}
	if err := f.changeRule("set rule", s, func(was *Rule) error { *was = r; return nil }); err != nil {
		return dump.Stop(err)
	}
	im.done.Rules++
	return nil
}

// UsedByScope takes what was used of the limits of a scope.
func (im *importer) UsedByScope(s row.Scope, u row.Usage) error {
	return im.used(limit.OfScope(s), u)
}

// UsedByCrawl takes what was used of the limits of a crawl.
func (im *importer) UsedByCrawl(id uint32, u row.Usage) error {
	return im.used(limit.OfCrawl(id), u)
}

func (im *importer) used(of limit.Subject, u row.Usage) error {
	if im.dry {
		return nil
	}
	return dump.Stop(im.f.importUsed(of, u))
}

// Value takes a value of the program's.
func (im *importer) Value(key string, v []byte) error {
	if im.o.CheckValue != nil && (im.dry || im.o.SkipBad) {
		if err := im.o.CheckValue(key, v); err != nil {
			return err
		}
	}
	if im.dry {
		return nil
	}
	im.done.Values++
	return dump.Stop(im.f.importValue(&im.pending, key, v))
}

// Forgotten takes a number with which marks are made.
func (im *importer) Forgotten(x *row.Forgotten) error {
	if im.dry || !im.fresh {
		return nil
	}
	return dump.Stop(im.f.importForgotten(&im.pending, x))
}

// Group takes what is set for a group, and its clock.
func (im *importer) Group(name string, g *row.Group) error {
	s := settingsOf(g)
	if err := s.check(); err != nil || im.dry {
		return err
	}
	if s != (GroupSettings{}) {
		if err := im.f.SetGroup(name, s); err != nil {
			return dump.Stop(err)
		}
	}
	im.done.Groups++
	return dump.Stop(im.f.importGroup(&im.pending, name, g.Due))
}

// Host takes what is known of a host.
func (im *importer) Host(name string, h *row.Host) error {
	name = im.f.hostSeen(name)
	if err := hostkey.Check(name); err != nil || im.dry {
		return err
	}
	im.done.Hosts++
	return dump.Stop(im.f.importHost(&im.pending, name, h))
}

// Listed takes a URL of a plain list.
func (im *importer) Listed(url string) (err error) {
	if im.o.Normalize != nil {
		if url, err = im.o.Normalize(url); err != nil {
			return err
		}
	}
	return im.url(&dump.URL{URL: url, Crawl: im.o.Crawl})
}

// URL takes a URL of an export.
func (im *importer) URL(u *dump.URL) error {
	if im.o.CheckCrawl != nil && (im.dry || im.o.SkipBad) {
		if err := im.o.CheckCrawl(u.Crawl); err != nil {
			return err
		}
	}
	return im.url(u)
}

// url takes a URL for the next commit. A priority of 0 leaves it to the Prioritizer.
func (im *importer) url(u *dump.URL) error {
	f := im.f
	if (u.Priority < 0 || u.Priority > f.opts.Priorities) && u.Priority != Immediate {
		return &PriorityError{Got: u.Priority, Levels: f.opts.Priorities}
	}
	if im.op == nil {
		im.op = newOp()
	}
	n := newEntry{index: len(im.op.entries)}
	e := Entry{URL: u.URL, Host: u.Host, Depth: u.Depth, Weight: u.Weight, Crawl: u.Crawl, Meta: u.Meta, NotBefore: instant.FromMillis(u.Due)}
	done := u.Due == instant.KeptMillis
	e.Finished = done && f.opts.Keep // else only its mark stays
	h := historyOf(&u.History)
	err := f.prepareAs(im.op, &n, &e, &h, u.Fails, uint8(u.Priority))
	if err != nil {
		return err
	}
	if im.dry {
		im.op.Unwrite(n.body)
		return nil
	}
	if done && !f.opts.Keep {
		im.op.Unwrite(n.body)
		return im.takeMarks(n.mark)
	}
	if im.op.entries = append(im.op.entries, n); len(im.op.entries) >= importURLs || im.op.Bytes >= importBytes {
		return dump.Stop(im.flush())
	}
	return nil
}

// Marks takes marks of URLs that are known.
func (im *importer) Marks(ms []storage.Mark) error {
	switch {
	case im.dry:
		return nil
	case im.foreign || im.f.opts.NoDedup:
		im.done.ForeignMarks += int64(len(ms))
		return nil
	}
	return im.takeMarks(ms...)
}

func (im *importer) takeMarks(ms ...storage.Mark) error {
	if im.marks = append(im.marks, ms...); len(im.marks) >= importMarks {
		return dump.Stop(im.flushMarks())
	}
	return nil
}

// pendingOps are commits under way. The zero value has none.
type pendingOps struct {
	dump.Pending
	members []uint32 // hosts that stay in memory until the end: without URLs they would forget their group
}

// letGo lets hosts leave memory that were kept there.
func (f *Frontier) letGo(hosts []uint32) {
	for len(hosts) > 0 {
		n := min(len(hosts), importAtOnce)
		if f.lockOpen() != nil {
			return
		}
		for _, id := range hosts[:n] {
			f.unpinLocked(id, f.last)
		}
		f.dispatchLocked()
		f.mu.Unlock()
		hosts = hosts[n:]
	}
}

// flush admits the URLs that were taken. Clocks of their hosts are durable before.
func (im *importer) flush() error {
	if im.op == nil || im.dry {
		return nil
	}
	o := im.op
	im.op = nil
	o.unlimited = true
	defer o.free()
	if err := im.pending.Wait(); err != nil {
		return err
	}
	total := int64(len(o.entries))
	n, err := im.f.add(im.ctx, o)
	im.done.URLs += int64(n)
	if err != nil {
		return fmt.Errorf("frontier: import: before line %d: %w", im.in.Lines+1, err)
	}
	im.done.KnownURLs += total - int64(n)
	return nil
}

// flushMarks makes the marks known that were taken. The URLs come first: they
// would not be admitted any more.
func (im *importer) flushMarks() error {
	if err := im.flush(); err != nil {
		return err
	}
	n, err := im.f.addMarks(im.ctx, im.marks)
	im.done.Marks += n
	im.marks = im.marks[:0]
	return err
}

// importGroup leaves a group alone until due, in Unix milliseconds.
func (f *Frontier) importGroup(p *pendingOps, name string, due int64) error {
	after := p.Begin()
	if err := f.lockOpen(); err != nil {
		after(nil)
		return err
	}
	at := min(f.owed(instant.FromMillis(due)), f.last+int64(maxDelay))
	if due == 0 || at <= f.last {
		f.mu.Unlock()
		after(nil)
		return nil
	}
	c := f.core
	c.PostponeGroup(c.GroupOf(name), at)
	o := newOp()
	if f.opts.Spill != nil {
		o.rows = append(o.rows, f.controls.GroupRow(name, instant.Millis(f.wall(at))))
	}
	f.submitImportAndUnlock(o, after)
	return nil
}

// submitImport submits an op that fill makes, with the lock held.
func (f *Frontier) submitImport(p *pendingOps, fill func(o *op) error) error {
	after := p.Begin()
	if err := f.lockOpen(); err != nil {
		after(nil)
		return err
	}
	o := newOp()
	if err := fill(o); err != nil {
		f.mu.Unlock()
		o.free()
		after(nil)
		return err
	}
	o.after = after
	f.submitAsyncLocked(o)
	f.mu.Unlock()
	return nil
}

// importHost gives a host what its line says, unless more is known of it.
func (f *Frontier) importHost(p *pendingOps, name string, s *row.Host) error {
	after := p.Begin()
	if err := f.lockWithHost(context.Background(), name); err != nil {
		after(nil)
		return err
	}
	now := f.nowLocked()
	x := f.core.Merge(name, s, f.token, now)
	o := newOp()
	if f.opts.Spill != nil {
		f.noteLocked(o, x.ID, x.Due, x.Why, now)
	}
	if f.core.EndMerge(x, now) {
		p.members = append(p.members, x.ID)
	}
	f.submitImportAndUnlock(o, after)
	return nil
}

// submitImportAndUnlock commits o, if it has anything, and calls after then.
func (f *Frontier) submitImportAndUnlock(o *op, after func(error)) {
	if f.opts.Spill == nil || o.empty() {
		o.free()
		f.dispatchLocked()
		f.mu.Unlock()
		after(nil)
		return
	}
	o.after = after
	f.submitAsyncLocked(o)
	f.mu.Unlock()
}

// takeKey makes k the key of the frontier if it is fresh: there never was a URL or host in
// it. It reports whether the frontier's is another one.
func (f *Frontier) takeKey(k [2]uint64) (foreign, fresh bool, err error) {
	if err := f.lockOpen(); err != nil {
		return false, false, err
	}
	f.rekeying.Store(true) // an Add that begins waits for the lock
	c := f.core
	fresh = f.adding.Load() == 1 && f.finishing == 0 && f.seq == 0 && f.known.Total() == 0 &&
		c.Hosts.Len() == 0 && c.Dormant.Rows() == 0
	same := c.Key == k
	if fresh {
		c.Key = k
	}
	f.rekeying.Store(false)
	if same || !fresh || f.opts.Spill == nil {
		f.mu.Unlock()
		return !same && !fresh, fresh, nil
	}
	o := newOp()
	defer o.free()
	o.rows = append(o.rows, f.metaRowLocked(f.gen, false))
	return false, true, f.submitAndUnlock(o)
}

// importStart leaves all hosts alone until a time, in Unix milliseconds: those without a
// line may have been contacted just before.
func (f *Frontier) importStart(until int64) error {
	if until == 0 {
		return nil
	}
	f.lock()
	at := min(f.owed(instant.FromMillis(until)), f.last+int64(maxDelay))
	if f.closed || at <= f.last || at <= f.core.StartsAt {
		f.mu.Unlock()
		return nil
	}
	f.core.StartAt(at)
	if f.opts.Spill == nil {
		f.mu.Unlock()
		return nil
	}
	o := newOp()
	defer o.free()
	o.rows = append(o.rows, f.metaRowLocked(f.gen, false))
	return f.submitAndUnlock(o)
}
