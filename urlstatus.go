// This file finds out what has become of one URL.
//
// There is no index of URLs. Whether one was ever admitted is known at once;
// where it is now shows a walk through what waits of its host, and, if it is not
// there, what waits for its time.

package frontier

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed-7440039f/frontier/internal/arena"
)

// URLState is what has become of a URL.
type URLState uint8

const (
	URLUnknown   URLState = iota // it was never admitted
	URLWaiting                   // it may be handed out as soon as its host may be contacted
	URLLeased                    // it is handed out
	URLScheduled                 // it waits for its time
	URLKnown                     // it was admitted and is done for good, or given up
)

var urlStateNames = [...]string{"unknown", "waiting", "leased", "scheduled", "known"}

// String returns the state's name in lower case. It does not change between
// versions.
func (s URLState) String() string {
	if int(s) < len(urlStateNames) {
		return urlStateNames[s]
	}
	return "invalid URL state"
}

// URLStatus is what is known of a URL at one moment. Of one that is unknown or
// known that is State and Host.
type URLStatus struct {
	State    URLState
	Host     string
	Priority int       // with which it is served
	Attempt  int       // of its next hand-out, or of the present one, from 1
	Until    time.Time // the lease's deadline, or when it is scheduled for; else zero
	Entry    Entry
	History  History
}

// Status tells what has become of a URL of a crawl. It asks for no lock longer than
// a moment, but reads what waits of the URL's host on disk, and if the URL is known
// and not there, all that is scheduled: ctx ends that. A URL that is on its way (in
// an Add or Done that has not returned) is told as it is before or after. With
// Options.NoDedup nobody remembers which URLs are done: they are unknown. It
// returns HostKey's error for a bad URL, ctx's, ErrClosed, or the Spill's; damaged
// blocks are passed over.
func (f *Frontier) Status(ctx context.Context, crawl uint32, url string) (URLStatus, error) {
	host, err := f.opts.HostKey(url)
	if err == nil {
		err = checkHost(host)
	}
	if err != nil {
		return URLStatus{}, fmt.Errorf("frontier: status of %q: %w", shortened(url), err)
	}
	s := urlSearch{f: f, ctx: ctx, host: host, hash: f.hostHash(host), crawl: crawl, url: []byte(url)}
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

// urlSearch is the search for one URL.
type urlSearch struct {
	f     *Frontier
	ctx   context.Context
	host  string
	hash  uint64
	crawl uint32
	url   []byte

	status URLStatus
	parts  []listedPart
}

// known reports whether the URL was admitted.
func (s *urlSearch) known() (bool, error) {
	f := s.f
	o := newOp()
	o.ctx = s.ctx
	defer o.free()
	o.entries = append(o.entries, newEntry{mark: f.markOf(s.crawl, string(s.url))})
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

// search looks everywhere once. If nothing is found, settled tells that the URL was
// not on its way from one place to another.
func (s *urlSearch) search(first bool) (found, settled bool, err error) {
	f := s.f
	if err := s.ctx.Err(); err != nil {
		return false, false, err
	}
	list := f.listTimed()
	f.lookLocked()
	f.endListLocked(list)
	if f.closed {
		f.mu.Unlock()
		return false, false, ErrClosed
	}
	moving, last := first && f.committer.busy(), f.core.timed.last
	var w *urlWalk
	if id := f.core.lookup(s.hash, s.host); id != 0 {
		moving = moving || f.core.hosts.at(id).pins > 0
		w = f.core.beginWalk(id, func(q *queue) bool { return f.core.crawlNumber(q) == s.crawl })
		w.url = s.url
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
		found, moved, err = s.inTimed(list.all())
	}
	if found || err != nil {
		return found, true, err
	}
	f.mu.Lock()
	moving = moving || moved || w != nil && w.taken || f.core.timed.last != last
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
	return false, false, f.submitLocked(o) // unlocks; returns when what is on its way has arrived
}

// ofHost looks through what is in memory of the host, and what waits on disk.
func (s *urlSearch) ofHost(w *urlWalk, found bool) (bool, error) {
	f := s.f
	defer func() {
		f.mu.Lock()
		f.core.endWalk(w)
		f.mu.Unlock()
	}()
	if found || s.scheduledOf(w) { // before the walk: at its time a record begins to wait
		return true, nil
	}
	s.parts = s.parts[:0]
	w.part = s.visitPart
	w.record = func(q *queue, ref arena.Ref) bool {
		r := f.core.record(ref)
		if found = f.core.hasURL(ref, s.url) && !f.core.deleted(s.host, s.crawl, r.seq()); found {
			s.describe(f.core.record(ref).body(), URLWaiting, f.core.priorityOf(q))
		}
		return !found
	}
	f.mu.Lock()
	for f.core.walk(w, walkAtOnce) && !f.closed {
		f.mu.Unlock()
		f.mu.Lock()
	}
	f.mu.Unlock()
	if found {
		return true, nil
	}
	return s.onDisk()
}

// describe fills in the status from a record.
func (s *urlSearch) describe(p []byte, state URLState, priority int) {
	b, err := decodeBody(p)
	if err != nil {
		panic("frontier: a record in memory is malformed") // we encoded it, or checked it
	}
	s.status = URLStatus{
		State: state, Host: s.host, Priority: priority, Attempt: b.fails + 1, Entry: b.entry(), History: b.history,
	}
	s.status.Entry.Crawl = s.crawl
}

// leasedLocked looks among the host's leases.
func (s *urlSearch) leasedLocked(id uint32) bool {
	c := s.f.core
	for l := range c.leasesOf(id) {
		r := c.leases.at(l)
		if r.record == 0 {
			continue
		}
		if q := c.queues.at(r.queue); c.crawlNumber(q) == s.crawl && c.hasURL(r.record, s.url) {
			s.describe(c.record(r.record).body(), URLLeased, c.priorityOf(q))
			s.status.Until = s.f.wall(r.deadline)
			return true
		}
	}
	return false
}

// scheduledOf looks among the records in memory that wait for their time. It counts
// those of the host: what the heap moves past the search is looked for again.
func (s *urlSearch) scheduledOf(w *urlWalk) bool {
	f, c := s.f, s.f.core
	for range 4 {
		f.mu.Lock()
		want, seen := 0, 0
		if w.host != 0 {
			want = int(c.hosts.at(w.host).scheduled)
		}
		for i := 0; i < c.scheduled.len() && seen < want; i++ {
			it := c.scheduled.Items[i]
			if c.queues.at(it.aux).host == w.host {
				seen++
				q, r := c.queues.at(it.aux), c.record(arena.Ref(it.id))
				if c.crawlNumber(q) == s.crawl && c.hasURL(arena.Ref(it.id), s.url) && !c.deleted(s.host, s.crawl, r.seq()) {
					s.describe(r.body(), URLScheduled, c.priorityOf(q))
					s.status.Until = f.day(it.at)
					f.mu.Unlock()
					return true
				}
			}
			if i%scheduledAtOnce == scheduledAtOnce-1 {
				f.mu.Unlock()
				f.mu.Lock()
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
func (s *urlSearch) visitPart(q *queue, id uint32) {
	c := s.f.core
	p := c.parts.at(id)
	if want := c.unread(p); want != 0 {
		t := c.detail(p)
		s.parts = append(s.parts, listedPart{
			Part: Part{Block: p.block, First: t.first, Count: t.count}, want: want, priority: c.priorityOf(q),
		})
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
		r, err := ask(s.ctx, f, func() (r foundRecord, err error) {
			err = f.opts.Spill.Load(p.Part, p.want, func(i int, x Record) {
				if b, err := decodeBody(x.Body); err == nil && bytes.Equal(b.url, s.url) {
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
		b := f.core.blocks.at(p.Block)
		closed, dead := f.closed, b == nil || f.core.isDead(b, pos) || f.core.deleted(s.host, s.crawl, seq)
		if err == nil && !closed && !dead {
			s.describe(body, URLWaiting, p.priority)
			if id := f.core.lookup(s.hash, s.host); id != 0 {
				s.leasedLocked(id) // since the walk
			}
		}
		f.mu.Unlock()
		var corrupt *CorruptError
		switch {
		case closed:
			return false, ErrClosed
		case err != nil && b != nil && !errors.As(err, &corrupt):
			return false, err
		case err == nil && !dead:
			return true, nil
		}
	}
	return false, nil
}

// inTimed looks among the records on disk that wait for their time.
func (s *urlSearch) inTimed(blocks []timeItem) (found, moved bool, err error) {
	wanted := func(r *TimedRecord) bool {
		return r.Crawl == s.crawl && r.Host == s.host && bytes.HasSuffix(r.Body, s.url)
	}
	moved, err = s.f.eachTimed(s.ctx, blocks, wanted, func(r *timedLoaded) bool {
		if b, err := decodeBody(r.Body); err == nil && bytes.Equal(b.url, s.url) {
			found = true
			s.describe(r.Body, URLScheduled, int(r.Priority))
			s.status.Until = s.f.day(r.at)
		}
		return !found
	})
	return found, moved, err
}
