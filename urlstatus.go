// This file finds the state of one URL.
//
// There is no index of URLs. Whether one was ever admitted is known at once. To find
// where it is now, the search walks through the waiting URLs of its host and then, if it
// is not there, through scheduled URLs.

package frontier

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/internal/patience"
	"github.com/seed-7440039f/frontier/internal/record"
	"github.com/seed-7440039f/frontier/internal/timed"
	"github.com/seed-7440039f/frontier/internal/timeheap"
	"github.com/seed-7440039f/frontier/internal/view"
	"github.com/seed-7440039f/frontier/storage"
)

// URLState is the state of a URL.
type URLState uint8

const (
	URLUnknown   URLState = iota // it was never admitted
	URLWaiting                   // it may be handed out as soon as its host may be contacted
	URLLeased                    // it is handed out
	URLScheduled                 // it waits for its time
	URLKnown                     // it was admitted and is done for good, or given up
	URLFinished                  // the same, and its record was kept: see Options.Keep
)

var urlStateNames = [...]string{"unknown", "waiting", "leased", "scheduled", "known", "finished"}

// String returns the state's name in lower case. It does not change between versions.
func (s URLState) String() string {
	if int(s) < len(urlStateNames) {
		return urlStateNames[s]
	}
	return "invalid URL state"
}

// URLStatus describes a URL at one moment. For an unknown or known URL only State and Host are set.
type URLStatus struct {
	State    URLState
	Host     string
	Priority int       // with which it is served
	Attempt  int       // of its next hand-out, or of the present one, from 1
	Until    time.Time // the lease's deadline, or when it is scheduled for; else zero
	Entry    Entry
	History  History
}

// Status reports the state of a URL, by the URL, Host and Crawl of e. A URL that was added with a Host
// is found under that one only; under another it is known, at best. It takes the lock only for moments, but
// reads the URLs of its host that wait on disk, and if the URL is known and not among
// them, all scheduled URLs: ctx ends that. A URL in an Add or Done that has not returned
// is reported as it is before or after that call. With Options.NoDedup URLs that are done
// are unknown. Status returns the error of Normalize or HostKey for a bad URL, ctx's,
// ErrClosed, or the Spill's; it skips damaged blocks.
func (f *Frontier) Status(ctx context.Context, e Entry) (URLStatus, error) {
	host, url, err := f.named(&e)
	if err != nil {
		return URLStatus{}, err
	}
	s := urlSearch{f, ctx, view.NewSearch(f.core, host, e.Crawl, []byte(url))}
	none := URLStatus{Host: host}
	known, err := s.known(url)
	if err != nil || !known && !f.opts.NoDedup {
		return none, err
	}
	for i := range 5 { // until it cannot have moved past the search
		settled, err := s.search(i == 0)
		if err != nil {
			return none, err
		}
		if s.State != view.Nowhere {
			return s.status(), nil
		}
		if settled {
			break
		}
	}
	if known {
		none.State = URLKnown
	}
	return none, nil
}

// status describes the URL that was found.
func (s *urlSearch) status() URLStatus {
	x := URLStatus{State: URLWaiting, Host: s.Host, Priority: s.Priority}
	x.Entry, x.Attempt, x.History = described(s.Body, s.Host, s.Crawl)
	switch {
	case s.State == view.Leased:
		x.State, x.Until = URLLeased, s.f.wall(s.At)
	case s.State == view.Scheduled && s.At == instant.Never:
		x.State, x.Entry.Finished = URLFinished, true
	case s.State == view.Scheduled:
		x.State, x.Until = URLScheduled, s.f.day(s.At)
	}
	return x
}

// named returns the host key of an entry, and the form under which the frontier knows its URL.
func (f *Frontier) named(e *Entry) (host, url string, err error) {
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

// urlSearch is the search for one URL.
type urlSearch struct {
	f   *Frontier
	ctx context.Context
	*view.Search
}

// known reports whether the URL was admitted.
func (s *urlSearch) known(url string) (bool, error) {
	f := s.f
	o := newOp()
	o.ctx = s.ctx
	defer o.free()
	o.forgets = f.forgotten.Version()
	o.entries = append(o.entries, newEntry{
		host: s.Host, crawl: s.Crawl, mark: f.markOf(s.Host, s.Crawl, url), body: o.Encode(&record.Body{}, url),
	})
	for {
		if err := s.ctx.Err(); err != nil {
			return false, err
		}
		if err := f.lookUp(o); err != nil {
			return false, err
		}
		if err := f.lockOpen(); err != nil {
			return false, err
		}
		stale, known := f.staleLocked(o), f.knownLocked(&o.entries[0])
		f.mu.Unlock()
		if !stale {
			return known, nil
		}
	}
}

// search looks everywhere once. If nothing is found, settled reports that the URL was not
// on its way from one place to another.
func (s *urlSearch) search(first bool) (settled bool, err error) {
	f := s.f
	if err := s.ctx.Err(); err != nil {
		return false, err
	}
	list := f.listTimed()
	if err := f.lockAdvancedOpen(); err != nil {
		return false, err
	}
	f.core.Timed.EndList(list)
	moving, last := first && f.committer.log.Busy(), f.core.Timed.Last()
	if s.Begin(f.forgotten.Until(s.Host, s.Crawl)); s.Walk != nil {
		moving = moving || f.core.Hosts.At(s.Owner).Pins > 0
	}
	f.mu.Unlock()
	moved, err := false, s.ofHost()
	if err == nil && s.State == view.Nowhere {
		moved, err = f.eachTimed(s.ctx, list.All(), s.IsOf, func(r *timed.Loaded) bool { s.Take(r); return false })
	}
	if err != nil || s.State != view.Nowhere {
		return true, err
	}
	if err := f.lockOpen(); err != nil {
		return false, err
	}
	moving = moving || moved || s.Walk != nil && s.Taken || f.core.Timed.Last() != last
	if !moving || f.opts.Spill == nil {
		f.mu.Unlock()
		return !moving, nil
	}
	o := newOp()
	o.ctx = s.ctx
	defer o.free()
	return false, f.submitAndUnlock(o) // returns when what is on its way has arrived
}

// scheduledAtOnce is how many scheduled records are looked at under one lock.
const scheduledAtOnce = 2048

// ofHost looks through the host's URLs, in memory and on disk.
func (s *urlSearch) ofHost() error {
	f := s.f
	f.mu.Lock()
	defer func() {
		f.mu.Lock()
		s.End()
		f.mu.Unlock()
	}()
	for s.LookScheduled(scheduledAtOnce) { // before the walk: at its time a record begins to wait
		f.yield()
	}
	for s.Step(walkAtOnce) && !f.closed {
		f.yield()
	}
	f.mu.Unlock()
	for i := 0; i < len(s.Parts) && s.State == view.Nowhere; i++ {
		p := &s.Parts[i]
		records, err := f.readPart(s.ctx, p.Part, p.Want)
		if err != nil && !isCorrupt(err) {
			return err
		}
		if !slices.ContainsFunc(records, s.Has) {
			continue
		}
		f.mu.Lock()
		s.Read(p, records, f.forgotten.Until(s.Host, s.Crawl))
		f.mu.Unlock()
	}
	return nil
}

// eachTimed calls fn, without the lock, with the records in timed blocks that are wanted and neither
// finished nor superseded, until it returns false. It skips damaged blocks, which their reader reports.
// moved reports that it skipped others because their records have come into memory or are finished.
func (s *shard) eachTimed(ctx context.Context, blocks []timeheap.Item, wanted func(*storage.TimedRecord) bool, fn func(*timed.Loaded) bool) (moved bool, err error) {
	for _, it := range blocks {
		if err := ctx.Err(); err != nil {
			return moved, err
		}
		found, err := patience.Ask(ctx, s.abandoned, func() ([]timed.Loaded, error) { return s.unreadTimed(it, wanted) })
		if err == nil && len(found) == 0 {
			continue
		}
		s.mu.Lock()
		closed, gone := s.closed, !s.core.Timed.Has(it.ID)
		if err == nil {
			found = slices.DeleteFunc(found, func(r timed.Loaded) bool {
				return s.core.Blocks.IsBuried(it.ID, r.Pos) || s.core.Deleted(r.Host, r.Crawl, r.Seq) || s.supersededBodyLocked(&r)
			})
		}
		s.mu.Unlock()
		switch {
		case closed:
			return moved, ErrClosed
		case gone:
			moved = true
			continue
		case isCorrupt(err):
			continue
		case err != nil:
			return moved, err
		}
		for i := range found {
			if !fn(&found[i]) {
				return moved, nil
			}
		}
	}
	return moved, nil
}

// supersededBodyLocked reports whether a Force has replaced a record whose mark is unknown.
func (s *shard) supersededBodyLocked(r *timed.Loaded) bool {
	if s.notes.Len() == 0 {
		return false
	}
	b, err := record.Decode(r.Body)
	if err != nil {
		return false
	}
	r.Mark = s.markOf(r.Host, r.Crawl, string(b.URL))
	return s.supersededLocked(r)
}
