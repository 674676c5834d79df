// This file finds the state of one URL.
//
// There is no index of URLs. Whether one was ever admitted is known at once. To find
// where it is now, the search walks through the waiting URLs of its host and then, if it
// is not there, through scheduled URLs.

package frontier

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seed-7440039f/frontier/internal/arena"
	"github.com/seed-7440039f/frontier/internal/fifo"
	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/internal/mercator"
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
	s := urlSearch{f: f, ctx: ctx, host: host, hash: f.core.HashOf(host), crawl: e.Crawl, url: []byte(url)}
	s.status.Host = host
	known, err := s.known()
	if err != nil || !known && !f.opts.NoDedup {
		return s.status, err
	}
	for i := range 5 { // until it cannot have moved past the search
		found, settled, err := s.search(i == 0)
		if err != nil || found {
			return s.status, err
		}
		if settled {
			break
		}
	}
	if known {
		s.status.State = URLKnown
	}
	return s.status, nil
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
	f     *Frontier
	ctx   context.Context
	host  string
	hash  uint64
	crawl uint32
	url   []byte

	status URLStatus
	parts  []view.Part
}

// known reports whether the URL was admitted.
func (s *urlSearch) known() (bool, error) {
	f := s.f
	o := newOp()
	o.ctx = s.ctx
	defer o.free()
	o.forgets = f.forgotten.version.Load()
	o.entries = append(o.entries, newEntry{
		host: s.host, crawl: s.crawl, mark: f.markOf(s.host, s.crawl, string(s.url)), body: o.Encode(&record.Body{}, string(s.url)),
	})
	for {
		if err := s.ctx.Err(); err != nil {
			return false, err
		}
		if err := f.lookUp(o); err != nil {
			return false, err
		}
		f.mu.Lock()
		closed, stale := f.closed, f.staleLocked(o)
		known := f.knownLocked(&o.entries[0])
		f.mu.Unlock()
		switch {
		case closed:
			return false, ErrClosed
		case !stale:
			return known, nil
		}
	}
}

// search looks everywhere once. If nothing is found, settled reports that the URL was not
// on its way from one place to another.
func (s *urlSearch) search(first bool) (found, settled bool, err error) {
	f := s.f
	if err := s.ctx.Err(); err != nil {
		return false, false, err
	}
	list := f.listTimed()
	f.lockAdvanced()
	f.core.Timed.EndList(list)
	if f.closed {
		f.mu.Unlock()
		return false, false, ErrClosed
	}
	moving, last := first && f.committer.log.Busy(), f.core.Timed.Last()
	var w *fifo.Walk
	if id := f.core.Lookup(s.hash, s.host); id != 0 {
		moving = moving || f.core.Hosts.At(id).Pins > 0
		w = f.core.BeginWalk(id, func(q *mercator.Queue) bool { return f.core.CrawlNumber(q) == s.crawl })
		w.URL = s.url
		found = s.leasedLocked(id)
	}
	f.mu.Unlock()
	if w != nil {
		if found, err = s.ofHost(w, found); err != nil {
			return false, false, err
		}
	}
	moved := false
	if !found {
		found, moved, err = s.inTimed(list.All())
	}
	if found || err != nil {
		return found, true, err
	}
	f.mu.Lock()
	moving = moving || moved || w != nil && w.Taken || f.core.Timed.Last() != last
	switch {
	case f.closed:
		f.mu.Unlock()
		return false, false, ErrClosed
	case !moving || f.opts.Spill == nil:
		f.mu.Unlock()
		return false, !moving, nil
	}
	o := newOp()
	o.ctx = s.ctx
	defer o.free()
	return false, false, f.submitAndUnlock(o) // returns when what is on its way has arrived
}

// ofHost looks through the host's URLs, in memory and on disk.
func (s *urlSearch) ofHost(w *fifo.Walk, found bool) (bool, error) {
	f := s.f
	defer func() {
		f.mu.Lock()
		f.core.EndWalk(w)
		f.mu.Unlock()
	}()
	if found || s.scheduledOf(w) { // before the walk: at its time a record begins to wait
		return true, nil
	}
	s.parts = s.parts[:0]
	w.Part = s.visitPart
	w.Record = func(queue uint32, ref arena.Ref) bool {
		r := f.core.Records.At(ref)
		if found = f.core.Records.HasURL(ref, s.url) && !f.core.Deleted(s.host, s.crawl, r.Seq()); found {
			s.describe(f.core.Records.At(ref).Body(), URLWaiting, f.core.PriorityOf(f.core.Queues.At(queue)))
		}
		return !found
	}
	f.mu.Lock()
	for f.core.Fifo.Step(w, walkAtOnce) && !f.closed {
		f.yield()
	}
	f.mu.Unlock()
	if found {
		return true, nil
	}
	return s.onDisk()
}

// describe fills in the status from a record.
func (s *urlSearch) describe(p []byte, state URLState, priority int) {
	b := record.Must(p)
	s.status = URLStatus{
		State: state, Host: s.host, Priority: priority, Attempt: b.Fails + 1, Entry: entryOf(&b, s.host), History: historyOf(&b.History),
	}
	s.status.Entry.Crawl = s.crawl
}

// describeDue is describe for a record that is due at a date.
func (s *urlSearch) describeDue(p []byte, at int64, priority int) {
	if at == instant.Never {
		s.describe(p, URLFinished, priority)
		s.status.Entry.Finished = true
		return
	}
	s.describe(p, URLScheduled, priority)
	s.status.Until = s.f.day(at)
}

// leasedLocked looks among the host's leases.
func (s *urlSearch) leasedLocked(id uint32) bool {
	c := s.f.core
	l := c.Search(id, s.crawl, s.url, s.f.forgottenLocked(s.host, s.crawl)).Lease()
	if l == nil {
		return false
	}
	s.describe(c.Records.At(l.Record).Body(), URLLeased, c.PriorityOf(c.Queues.At(l.Queue)))
	s.status.Until = s.f.wall(l.Deadline)
	return true
}

// scheduledOf looks among the records in memory that wait for their time. It counts
// those of the host: what the heap moves past the search is looked for again.
func (s *urlSearch) scheduledOf(w *fifo.Walk) bool {
	f, c := s.f, s.f.core
	for range 4 {
		f.mu.Lock()
		want, seen := 0, 0
		if w.Owner != 0 {
			want = int(c.Hosts.At(w.Owner).Scheduled)
		}
		for i := 0; i < c.Scheduled.Len() && seen < want; i++ {
			it := c.Scheduled.Items[i]
			if c.Queues.At(it.Aux).Host == w.Owner {
				seen++
				q, r := c.Queues.At(it.Aux), c.Records.At(arena.Ref(it.ID))
				if c.CrawlNumber(q) == s.crawl && c.Records.HasURL(arena.Ref(it.ID), s.url) && !c.Deleted(s.host, s.crawl, r.Seq()) {
					s.describeDue(r.Body(), it.At, c.PriorityOf(q))
					f.mu.Unlock()
					return true
				}
			}
			if i%scheduledAtOnce == scheduledAtOnce-1 {
				f.yield()
			}
		}
		f.mu.Unlock()
		if seen >= want {
			return false
		}
	}
	return false
}

// scheduledAtOnce is how many scheduled records are looked at under one lock.
const scheduledAtOnce = 2048

// visitPart notes a part on disk in which the URL may wait.
func (s *urlSearch) visitPart(queue, id uint32) {
	if p := s.f.core.UnreadPart(queue, id); p.Want != 0 {
		s.parts = append(s.parts, p)
	}
}

// onDisk reads the parts.
func (s *urlSearch) onDisk() (bool, error) {
	f := s.f
	for _, p := range s.parts {
		if err := s.ctx.Err(); err != nil {
			return false, err
		}
		type foundRecord struct {
			body []byte
			pos  int
			seq  uint64
		}
		r, err := patience.Ask(s.ctx, f.abandoned, func() (r foundRecord, err error) {
			err = f.opts.Spill.Load(p.Part, p.Want, func(i int, x storage.Record) {
				if b, err := record.Decode(x.Body); err == nil && bytes.Equal(b.URL, s.url) {
					r = foundRecord{append([]byte(nil), x.Body...), int(p.First) + i, x.Seq}
				}
			})
			return r, err
		})
		body, pos, seq := r.body, r.pos, r.seq
		if err == nil && body == nil {
			continue
		}
		f.mu.Lock()
		known := f.core.Blocks.Has(p.Block)
		closed, dead := f.closed, f.core.Blocks.IsDead(p.Block, pos) || f.core.Deleted(s.host, s.crawl, seq)
		if err == nil && !closed && !dead {
			s.describe(body, URLWaiting, p.Priority)
			if id := f.core.Lookup(s.hash, s.host); id != 0 {
				s.leasedLocked(id) // since the walk
			}
		}
		f.mu.Unlock()
		var corrupt *CorruptError
		switch {
		case closed:
			return false, ErrClosed
		case err != nil && known && !errors.As(err, &corrupt):
			return false, err
		case err == nil && !dead:
			return true, nil
		}
	}
	return false, nil
}

// inTimed looks among the scheduled records on disk.
func (s *urlSearch) inTimed(blocks []timeheap.Item) (found, moved bool, err error) {
	wanted := func(r *storage.TimedRecord) bool {
		return r.Crawl == s.crawl && r.Host == s.host && bytes.HasSuffix(r.Body, s.url)
	}
	moved, err = s.f.eachTimed(s.ctx, blocks, wanted, func(r *timed.Loaded) bool {
		if b, err := record.Decode(r.Body); err == nil && bytes.Equal(b.URL, s.url) {
			found = true
			s.describeDue(r.Body, r.At, int(r.Priority))
		}
		return !found
	})
	return found, moved, err
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
		var corrupt *CorruptError
		switch {
		case closed:
			return moved, ErrClosed
		case gone:
			moved = true
			continue
		case errors.As(err, &corrupt):
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
