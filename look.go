// This file lets packages inspect and transfer look into a frontier: at its lock, and at what it has in memory and on disk,
// as the types of this package.

package frontier

import (
	"context"
	"fmt"
	"time"

	"github.com/seed-7440039f/frontier/event"
	"github.com/seed-7440039f/frontier/internal/fifo"
	"github.com/seed-7440039f/frontier/internal/gather"
	"github.com/seed-7440039f/frontier/internal/ledger"
	"github.com/seed-7440039f/frontier/internal/limit"
	"github.com/seed-7440039f/frontier/internal/mercator"
	"github.com/seed-7440039f/frontier/internal/readahead"
	"github.com/seed-7440039f/frontier/internal/record"
	"github.com/seed-7440039f/frontier/internal/row"
	"github.com/seed-7440039f/frontier/internal/trouble"
	"github.com/seed-7440039f/frontier/internal/view"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/storage"
)

func init() { view.Source = func(f any) any { return inside{f.(*Frontier)} } }

// inside is a frontier as packages inspect and transfer have it.
type inside struct{ f *Frontier }

func (in inside) LockOpen() error         { return in.f.lockOpen() }
func (in inside) LockAdvancedOpen() error { return in.f.lockAdvancedOpen() }
func (in inside) LockAdvanced()           { in.f.lockAdvanced() }
func (in inside) Lock()                   { in.f.mu.Lock() }
func (in inside) Unlock()                 { in.f.mu.Unlock() }
func (in inside) Yield()                  { in.f.yield() }

// Alive returns ErrClosed after Close.
func (in inside) Alive() error {
	if in.f.isClosed() {
		return ErrClosed
	}
	return nil
}

func (in inside) Core() *mercator.Core        { return in.f.core }
func (in inside) Last() int64                 { return in.f.last }
func (in inside) Closed() bool                { return in.f.closed }
func (in inside) Abandoned() context.Context  { return in.f.abandoned }
func (in inside) Wall(moment int64) time.Time { return in.f.wall(moment) }
func (in inside) Day(date int64) time.Time    { return in.f.day(date) }
func (in inside) Options() *Options           { return &in.f.opts }
func (in inside) Ranges() *view.Ranges        { return &in.f.urlRanges }

func (in inside) HostSeen(name string) string         { return in.f.hostSeen(name) }
func (in inside) Seen(s scope.Scope) row.Scope        { return in.f.scopeSeen(s).Hosts() }
func (in inside) Subject(s scope.Scope) limit.Subject { return subjectOf(in.f.scopeSeen(s)) }

func (in inside) Spelled(s scope.Scope) (row.Scope, error) {
	s, err := in.f.spelled(s)
	return s.Hosts(), err
}

// Named returns the host key of an entry, and the form under which the frontier knows its URL.
func (in inside) Named(e *Entry) (host, url string, err error) {
	f := in.f
	url = e.URL
	if f.opts.Normalize != nil {
		url, err = f.opts.Normalize(url)
	}
	if err == nil {
		host, err = f.hostOf(&Entry{URL: url, Host: e.Host})
	}
	if err != nil {
		return "", "", fmt.Errorf("frontier: status of %q: %w", shortened(e.URL), err)
	}
	return host, url, nil
}

// Described is what a body says of a URL of a host and crawl, with the number of its next attempt.
func (in inside) Described(body []byte, host string, crawl uint32) (Entry, int, History) {
	b := record.Must(body)
	e := entryOf(&b, host)
	e.Crawl = crawl
	return e, b.Fails + 1, historyOf(&b.History)
}

func (in inside) RuleOfCrawl(s row.CrawlSettings) Rule { return ruleOfCrawl(s) }

func (in inside) RuleFor(host string) Rule {
	return ruleIn(in.f.controls.Effective(host, in.f.core.Date(in.f.last)))
}

func (in inside) SettingsOf(group string) GroupSettings {
	set := in.f.controls.Group(group)
	return settingsOf(&set.Group)
}

func (in inside) TroubleOfRow(r *row.Host) trouble.State {
	return in.f.core.TroubleOfRow(r, in.f.token, in.f.last)
}

func (in inside) ForgottenUntil(host string, crawl uint32) uint64 {
	return in.f.forgotten.Until(host, crawl)
}

// Known reports whether a URL was admitted.
func (in inside) Known(ctx context.Context, host string, crawl uint32, url string) (bool, error) {
	f := in.f
	o := newOp()
	o.Context = ctx
	defer o.free()
	o.forgets = f.forgotten.Version()
	o.Entries = append(o.Entries, ledger.Entry{
		Host: host, Crawl: crawl, Mark: f.found.Mark(host, crawl, url), Body: o.Encode(&record.Body{}, url),
	})
	for {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		if err := f.lookUp(o); err != nil {
			return false, err
		}
		if err := f.lockOpen(); err != nil {
			return false, err
		}
		stale, known := f.staleLocked(o), f.knownLocked(&o.Entries[0])
		f.mu.Unlock()
		if !stale {
			return known, nil
		}
	}
}

// ReadPart reads records of a part that the caller noted. It returns none if the last of its block has
// been finished since.
func (in inside) ReadPart(ctx context.Context, p storage.Part, want uint32) ([]fifo.Loaded, error) {
	f := in.f
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	records, err := f.readFor(ctx, p, want)
	if err == nil {
		return records, nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.closed:
		return nil, ErrClosed
	case !f.core.Blocks.Has(p.Block):
		return nil, nil
	}
	return nil, err
}

func (in inside) ReadRow(ctx context.Context, a *mercator.Absentee) error {
	return in.f.readRow(ctx, a)
}
func (in inside) Timed() *readahead.Reader { return in.f.reader }
func (in inside) Busy() bool               { return in.f.ledger.Busy() }

// Settle returns when what is on its way to the disk has arrived.
func (in inside) Settle(ctx context.Context) error {
	if err := in.f.lockOpen(); err != nil {
		return err
	}
	o := newOp()
	o.Context = ctx
	defer o.free()
	return in.f.ledger.SubmitAndUnlock(&o.Op)
}

func (in inside) OrderHosts()                             { in.f.orderHosts() }
func (in inside) WalkAndUnlock(w *fifo.Walk, rest func()) { in.f.walkHostAndUnlock(w, rest) }
func (in inside) StoreFailed(what string, err error) {
	in.f.emit(event.Event{Kind: event.StoreError, Reason: what, Err: err})
}

// Gather is the frontier as package gather copies it.
func (in inside) Gather() gather.Frontier {
	f := in.f
	return gather.Frontier{
		Locker: in, Core: f.core, Controls: f.controls, Known: &f.known, Forgotten: &f.forgotten, Values: &f.values, Spill: f.opts.Spill,
	}
}

// ReadCounted reads counts and looks at what is in memory, as of one moment: load reads, without the lock;
// look is called with the lock held, and for what was read asks what is visible of it.
func (in inside) ReadCounted(load func() error, look func()) error {
	f := in.f
	t := f.core.Counts
	for range 3 {
		if err := f.lockAdvancedOpen(); err != nil {
			return err
		}
		if !t.Stored() {
			err := load()
			look()
			f.mu.Unlock()
			return err
		}
		version := t.Version()
		f.mu.Unlock()
		if err := load(); err != nil {
			return err
		}
		f.lockAdvanced()
		if t.Version() == version {
			look()
			f.mu.Unlock()
			return nil
		}
		f.mu.Unlock()
	}
	return f.ledger.Between(func() error { // else nothing would change
		err := load()
		f.mu.Lock()
		look()
		f.mu.Unlock()
		return err
	})
}

// walkHostAndUnlock walks a host in steps of view.AtOnce, and calls rest without the lock between them.
func (s *shard) walkHostAndUnlock(w *fifo.Walk, rest func()) {
	for s.core.Fifo.Step(w, view.AtOnce) && !s.closed {
		s.mu.Unlock()
		rest()
		s.mu.Lock()
	}
	s.core.EndWalk(w)
	s.mu.Unlock()
}
