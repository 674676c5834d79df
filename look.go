// This file lets packages inspect and transfer look into a frontier: at its lock, and at what it has in memory and on disk,
// as the types of this package.

package frontier

import (
	"context"
	"fmt"

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

func (f inside) LockAdvancedOpen() error { return f.lockAdvancedOpen() }
func (f inside) LockAdvanced()           { f.lockAdvanced() }
func (f inside) Lock()                   { f.mu.Lock() }
func (f inside) Unlock()                 { f.mu.Unlock() }

// Alive returns ErrClosed after Close.
func (f inside) Alive() error {
	if f.isClosed() {
		return ErrClosed
	}
	return nil
}

func (f inside) Core() *mercator.Core       { return f.core }
func (f inside) Abandoned() context.Context { return f.abandoned }
func (f inside) Options() *Options          { return &f.opts }
func (f inside) Ranges() *view.Ranges       { return &f.urlRanges }

func (f inside) HostSeen(name string) string         { return f.hostSeen(name) }
func (f inside) Seen(s scope.Scope) row.Scope        { return f.scopeSeen(s).Hosts() }
func (f inside) Subject(s scope.Scope) limit.Subject { return subjectOf(f.scopeSeen(s)) }

func (f inside) Spelled(s scope.Scope) (row.Scope, error) {
	s, err := f.spelled(s)
	return s.Hosts(), err
}

// Named returns the host key of an entry, and the form under which the frontier knows its URL.
func (f inside) Named(e *Entry) (host, url string, err error) {
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
func (f inside) Described(body []byte, host string, crawl uint32) (Entry, int, History) {
	b := record.Must(body)
	e := entryOf(&b, host)
	e.Crawl = crawl
	return e, b.Fails + 1, historyOf(&b.History)
}

func (f inside) RuleOfCrawl(s row.CrawlSettings) Rule { return ruleOfCrawl(s) }

func (f inside) RuleFor(host string) Rule {
	return ruleIn(f.controls.Effective(host, f.core.Date(f.last)))
}

func (f inside) SettingsOf(group string) GroupSettings {
	set := f.controls.Group(group)
	return settingsOf(&set.Group)
}

func (f inside) TroubleOfRow(r *row.Host) trouble.State {
	return f.core.TroubleOfRow(r, f.token, f.last)
}

func (f inside) ForgottenUntil(host string, crawl uint32) uint64 {
	return f.forgotten.Until(host, crawl)
}

// Known reports whether a URL was admitted.
func (f inside) Known(ctx context.Context, host string, crawl uint32, url string) (bool, error) {
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
func (f inside) ReadPart(ctx context.Context, p storage.Part, want uint32) ([]fifo.Loaded, error) {
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

func (f inside) ReadRow(ctx context.Context, a *mercator.Absentee) error {
	return f.readRow(ctx, a)
}
func (f inside) Timed() *readahead.Reader { return f.reader }
func (f inside) Busy() bool               { return f.ledger.Busy() }

// Settle returns when what is on its way to the disk has arrived.
func (f inside) Settle(ctx context.Context) error {
	if err := f.lockOpen(); err != nil {
		return err
	}
	o := newOp()
	o.Context = ctx
	defer o.free()
	return f.ledger.SubmitAndUnlock(&o.Op)
}

func (f inside) OrderHosts() { f.orderHosts() }

// Gather is the frontier as package gather copies it.
func (f inside) Gather() gather.Frontier {
	return gather.Frontier{
		Locker: f, Core: f.core, Controls: f.controls, Known: &f.known, Forgotten: &f.forgotten, Values: &f.values, Spill: f.opts.Spill,
	}
}

// ReadCounted reads counts and looks at what is in memory, as of one moment: load reads, without the lock;
// look is called with the lock held, and for what was read asks what is visible of it.
func (f inside) ReadCounted(load func() error, look func()) error {
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
