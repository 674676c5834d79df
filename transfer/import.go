// This file reads exports and lists.
//
// Unless it skips malformed lines, the input is read twice, the first time to
// check it. internal/dump reads the lines.

package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/internal/dump"
	"github.com/seed-7440039f/frontier/internal/hostkey"
	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/internal/limit"
	"github.com/seed-7440039f/frontier/internal/patience"
	"github.com/seed-7440039f/frontier/internal/row"
	"github.com/seed-7440039f/frontier/internal/view"
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

// LineError reports a line that Import could not read. Several are joined; errors.As finds the first.
type LineError struct {
	Line int64  // counted from 1
	Text string // its beginning
	Err  error  // what was wrong
}

// Error implements error.
func (e *LineError) Error() string {
	return fmt.Sprintf("frontier: import: line %d %q: %v", e.Line, e.Text, e.Err)
}

// Unwrap returns the cause.
func (e *LineError) Unwrap() error { return e.Err }

const (
	lineErrorsMax = 100  // that are kept
	importMarks   = 2048 // that become known in one commit
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
func Import(ctx context.Context, f *frontier.Frontier, r io.Reader, o ImportOptions) (Imported, error) {
	if err := ctx.Err(); err != nil {
		return Imported{}, err
	}
	lent, end := patience.LendReader(r, frontier.ErrClosed)
	defer end()
	from := view.Source(f).(source)
	return patience.InTime(ctx, from.Abandoned(), func() (Imported, error) {
		in := from.Intake().(intake)
		defer in.End()
		return readInto(importer{f: f, from: from, in: in, ctx: ctx, o: o}, lent)
	})
}

// readInto reads an import, twice if one malformed line keeps everything from being imported.
func readInto(im importer, r io.Reader) (Imported, error) {
	if !im.o.SkipBad {
		t, err := dump.ReadTwice(r, im.o.TempDir)
		if err != nil {
			return Imported{}, fmt.Errorf("frontier: import: %w", err)
		}
		defer t.Close()
		check := im
		check.dry = true
		if err := check.run(t.First()); err != nil {
			return Imported{}, err
		}
		if len(check.bad) > 0 {
			return Imported{}, errors.Join(check.bad...)
		}
		if r, err = t.Again(); err != nil {
			return Imported{}, fmt.Errorf("frontier: import: %w", err)
		}
	}
	err := im.run(r)
	return im.done, errors.Join(errors.Join(im.bad...), err)
}

// importer is one reading of an import: the Sink of its lines.
type importer struct {
	f     *frontier.Frontier
	from  source
	in    intake
	ctx   context.Context
	o     ImportOptions
	dry   bool // only to see what is malformed
	lines dump.Reader
	done  Imported
	bad   []error

	foreign bool // the key of the export is not ours
	fresh   bool // there never was a URL or host when the import began
	marks   []storage.Mark
}

// run reads and applies all lines.
func (im *importer) run(r io.Reader) (err error) {
	defer func() { err = errors.Join(err, im.in.Settle()) }()
	im.lines.Sink = im
	err = im.lines.Read(im.ctx, r)
	im.done.Lines = im.lines.Lines
	if err != nil || im.dry {
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
	if im.foreign, im.fresh, err = im.in.TakeKey(h.Key); err == nil {
		err = im.in.StartAt(h.Held)
	}
	return dump.Stop(err)
}

// Crawl takes the settings of a crawl.
func (im *importer) Crawl(c *row.Crawl) error {
	rule, err := im.in.RuleOfCrawl(c.CrawlSettings)
	if err != nil || im.dry {
		return err
	}
	im.done.Crawls++
	return im.set(scope.Crawl(c.ID), rule)
}

// Rule takes the rule of a scope.
func (im *importer) Rule(of row.Scope, stored *row.Rule) error {
	s, rule, err := im.in.RuleOf(of, stored)
	if err != nil || im.dry {
		return err
	}
	im.done.Rules++
	return im.set(s, rule)
}

func (im *importer) set(s scope.Scope, rule frontier.Rule) error {
	return dump.Stop(im.f.UpdateRule(s, func(r *frontier.Rule) { *r = rule }))
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
	return dump.Stop(im.in.Used(of, u))
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
	return dump.Stop(im.in.Value(key, v))
}

// Forgotten takes a number with which marks are made.
func (im *importer) Forgotten(x *row.Forgotten) error {
	if im.dry || !im.fresh {
		return nil
	}
	return dump.Stop(im.in.Forgotten(x))
}

// Group takes what is set for a group, and its clock.
func (im *importer) Group(name string, g *row.Group) error {
	s, err := im.in.SettingsOf(g)
	if err != nil || im.dry {
		return err
	}
	if s != (frontier.GroupSettings{}) {
		if err := im.f.SetGroup(name, s); err != nil {
			return dump.Stop(err)
		}
	}
	im.done.Groups++
	return dump.Stop(im.in.Group(name, g.Due))
}

// Host takes what is known of a host.
func (im *importer) Host(name string, h *row.Host) error {
	name = im.from.HostSeen(name)
	if err := hostkey.Check(name); err != nil || im.dry {
		return err
	}
	im.done.Hosts++
	return dump.Stop(im.in.Host(name, h))
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

// url takes a URL for the next commit. Of one that is finished only the mark stays, unless such URLs are kept.
func (im *importer) url(u *dump.URL) error {
	mark, err := im.in.Prepare(u)
	if err != nil {
		return err
	}
	gone := u.Due == instant.KeptMillis && !im.from.Options().Keep
	if im.dry || gone {
		im.in.Drop()
	}
	switch {
	case im.dry:
		return nil
	case gone:
		return im.takeMarks(mark)
	case im.in.Full():
		return dump.Stop(im.flush())
	}
	return nil
}

// Marks takes marks of URLs that are known.
func (im *importer) Marks(ms []storage.Mark) error {
	switch {
	case im.dry:
		return nil
	case im.foreign || im.from.Options().NoDedup:
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

// flush admits the URLs that were taken.
func (im *importer) flush() error {
	n, fresh, err := im.in.Admit(im.ctx)
	im.done.URLs += fresh
	if err != nil {
		return fmt.Errorf("frontier: import: before line %d: %w", im.lines.Lines+1, err)
	}
	im.done.KnownURLs += n - fresh
	return nil
}

// flushMarks makes the marks known that were taken. The URLs come first: they
// would not be admitted any more.
func (im *importer) flushMarks() error {
	if err := im.flush(); err != nil {
		return err
	}
	n, err := im.in.Marks(im.ctx, im.marks)
	im.done.Marks += n
	im.marks = im.marks[:0]
	return err
}
