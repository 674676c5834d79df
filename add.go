// This file is how URLs get in: Add, and the part of it that Done uses for the
// outlinks of a page.

package frontier

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"github.com/dchest/siphash"
	"github.com/seed-7440039f/frontier/internal/arena"
)

// newEntry is an entry that was found good, ready to be admitted.
type newEntry struct {
	index    int
	hash     uint64 // of host
	host     string
	mark     Mark
	due      int64 // nanoseconds since Open; 0: waiting at once
	body     []byte
	crawl    uint32
	priority uint8
	absentee int32 // its host's index in op.absent + 1; 0: none
	marked   bool  // mark was inserted for it
	stored   bool  // the Spill knows mark; see lookUp
	fetched  bool  // the Spill had to be asked for that
	force    bool
	hint     bool
	news     int64  // of a hint: its NotBefore in Unix milliseconds; 0: none
	forcedAt uint64 // the last sequence number when it met a lease (see leaseRecord.again), or the record's that it replaces because of a hint
}

// Add admits entries and returns how many were new. Known URLs are no error.
// Bad entries are reported as joined *EntryErrors and the others admitted, all
// of them or, on any other error, none. When Add has returned they survive as
// the Spill promises. Add copies what it keeps.
//
// Known entries with Force are re-admitted after the others, each in a commit of
// its own: one that fails, for whatever reason, is a bad entry.
//
// With a Spill, Add waits while the disk is behind, and for the disk; ctx ends that.
// When its entries had been handed over by then the error wraps ErrUnsettled. It fails with the Spill's error if what is stored of a URL or
// host cannot be read. Without one it returns ErrFull when the MemoryBudget is used up.
func (f *Frontier) Add(ctx context.Context, entries ...Entry) (int, error) {
	return f.addAs(ctx, entries, 0)
}

// addAs is Add or, with priority Immediate, CrawlNow.
func (f *Frontier) addAs(ctx context.Context, entries []Entry, p uint8) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	f.adding.Add(1)
	defer f.addedAll()     // if code of the user's panics, too
	if f.rekeying.Load() { // an import takes a key over, under the lock
		_ = f.isClosed()
	}
	o := newOp()
	o.ctx = ctx
	bad := f.prepare(o, entries, p)
	n, err := f.add(ctx, o)
	o.free()
	return n, errors.Join(bad, err)
}

// addedAll notes that a call adds no more: it may have been what kept the crawl from
// being over.
func (f *Frontier) addedAll() {
	f.lock()
	f.adding.Add(-1)
	f.dispatchLocked()
	f.mu.Unlock()
}

func (f *Frontier) add(ctx context.Context, o *op) (int, error) {
	for {
		if err := f.lookUp(o); err != nil {
			return 0, err
		}
		f.mu.Lock()
		if f.closed {
			f.mu.Unlock()
			return 0, ErrClosed
		}
		wait, err := f.roomLocked(o)
		if err != nil {
			f.mu.Unlock()
			return 0, err
		}
		stale := f.staleLocked(o)
		absent := wait == nil && !stale && f.hostsAbsentLocked(o)
		if wait == nil && !stale && !absent {
			break
		}
		f.mu.Unlock()
		if absent {
			if err := f.readHosts(o); err != nil {
				return 0, err
			}
		}
		if wait == nil {
			continue
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-f.abandoned:
			return 0, ErrClosed
		}
	}
	known, unheard := f.dedupLocked(o, f.opts.Spill == nil)
	refused := errors.Join(unheard, f.limitLocked(o))
	if len(o.entries) == 0 && len(known) == 0 && len(o.rows) == 0 && !f.committer.busy() {
		f.mu.Unlock()
		return 0, refused
	}
	n := len(o.entries)
	err := f.submitLocked(o) // unlocks
	if err != nil {
		return 0, errors.Join(refused, err)
	}
	again, unforced := f.forceAll(ctx, known)
	return n + again, errors.Join(refused, unforced)
}

// prepare checks and encodes entries, outside the lock, and appends the good
// ones to o. It returns the joined errors of the bad ones. The priority is that of
// prepareAs; Immediate ones are forced, and have no time.
func (f *Frontier) prepare(o *op, entries []Entry, p uint8) error {
	var errs []error
	o.links = true
	o.entries = slices.Grow(o.entries, len(entries))
	for i := range entries {
		last := len(o.entries)
		o.entries = append(o.entries, newEntry{index: i})
		e := &o.entries[last]
		if err := f.prepareAs(o, e, &entries[i], &History{}, 0, p); err != nil {
			errs = append(errs, &EntryError{Index: i, URL: shortened(entries[i].URL), Err: err})
			o.entries = o.entries[:last]
			continue
		}
		if p == Immediate {
			e.force, e.due = true, 0
		}
	}
	return errors.Join(errs...)
}

func shortened(url string) string {
	if len(url) > 200 {
		return url[:200] + "..."
	}
	return url
}

// prepareAs checks and encodes one entry into n, with so many failed tries, and
// with a priority of its own unless that is 0.
func (f *Frontier) prepareAs(o *op, n *newEntry, e *Entry, h *History, fails int, p uint8) error {
	switch {
	case e.URL == "":
		return errors.New("empty URL")
	case len(e.URL) > MaxURL:
		return fmt.Errorf("too long: URL has %d bytes; want at most %d", len(e.URL), MaxURL)
	case len(e.Meta) > MaxMeta:
		return fmt.Errorf("too long: Meta has %d bytes; want at most %d", len(e.Meta), MaxMeta)
	case e.Depth < 0:
		return fmt.Errorf("out of range: Depth is %d; want >= 0", e.Depth)
	case e.Depth > 1<<30:
		return fmt.Errorf("out of range: Depth is %d; want at most %d", e.Depth, 1<<30)
	}
	host, err := f.opts.HostKey(e.URL)
	if err != nil {
		return err
	}
	if err := checkHost(host); err != nil {
		return err
	}
	if p == 0 {
		if p, err = f.priority(*e, *h); err != nil {
			return err
		}
	}
	n.host, n.hash, n.crawl, n.priority, n.force = host, f.hostHash(host), e.Crawl, p, e.Force
	if !f.opts.NoDedup {
		n.mark = f.markOf(e.Crawl, e.URL)
	}
	if !e.NotBefore.IsZero() {
		n.due = f.dueDate(e.NotBefore)
	}
	if n.hint = e.Hint && !f.opts.NoDedup; n.hint {
		n.news = wallMillis(e.NotBefore)
	}
	n.body = o.encode(&body{depth: e.Depth, weight: e.Weight, meta: e.Meta, fails: fails, history: *h}, e.URL)
	return nil
}

func checkHost(host string) error {
	if len(host) < 1 || len(host) > 255 {
		return fmt.Errorf("host key has %d bytes; want 1 to 255", len(host))
	}
	return nil
}

// priority asks the prioritizer, outside the lock.
func (f *Frontier) priority(e Entry, h History) (uint8, error) {
	p := f.opts.Prioritizer.Priority(e, h)
	if p < 1 || p > f.opts.Priorities {
		return 0, &PriorityError{Got: p, Levels: f.opts.Priorities}
	}
	return uint8(p), nil
}

func (f *Frontier) hostHash(host string) uint64 {
	return f.core.hash(bytesOf(host))
}

// markOf is the fingerprint of a URL within a crawl.
func (f *Frontier) markOf(crawl uint32, url string) (m Mark) {
	a, b := siphash.Hash128(f.core.key[0]^uint64(crawl), f.core.key[1], bytesOf(url))
	binary.LittleEndian.PutUint64(m[:8], a)
	binary.LittleEndian.PutUint32(m[8:], uint32(b))
	return m
}

// bytesOf is s without a copy; it must not be written to.
func bytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

func randomKey() (k [2]uint64) {
	var b [16]byte
	rand.Read(b[:]) // never fails
	return [2]uint64{binary.LittleEndian.Uint64(b[:8]), binary.LittleEndian.Uint64(b[8:])}
}

// roomLocked says whether o may be admitted: at once (nil, nil), after waiting
// for the channel, or not at all.
func (f *Frontier) roomLocked(o *op) (<-chan struct{}, error) {
	need := int64(0)
	for i := range o.entries {
		need += arena.Cost(recordSize(len(o.entries[i].body))) + 16
	}
	if f.opts.Spill == nil {
		if need > f.freeLocked() {
			return nil, f.reallyFullLocked(o)
		}
		return nil, nil
	}
	return f.committer.roomLocked(f, o, need)
}

// freeLocked is how many bytes of URLs there is room for without a Spill. What
// records left in their arena is used again; a 64th of the budget is for tables,
// which grow in steps.
func (f *Frontier) freeLocked() int64 {
	return f.opts.MemoryBudget*63/64 - f.memoryLocked() + f.core.mem.Size() - f.core.mem.Used()
}

// reallyFullLocked looks closer when the budget seems to be used up: known URLs
// need no room.
func (f *Frontier) reallyFullLocked(o *op) error {
	room := f.freeLocked()
	for i := range o.entries {
		e := &o.entries[i]
		if !f.opts.NoDedup && f.known.young(e.mark) && !e.force {
			continue
		}
		room -= arena.Cost(recordSize(len(e.body))) + 16
		if f.core.lookup(e.hash, e.host) == 0 {
			room -= hostBytes
		}
		if room < 0 {
			return ErrFull
		}
	}
	return nil
}

// admitLocked puts an entry into its queue, or under its time. The sequence
// number was given to it at commit.
func (f *Frontier) admitLocked(e *newEntry, seq uint64, now int64) {
	c := f.core
	hid := c.ensure(e.hash, e.host)
	qid := c.queueOf(hid, e.crawl, e.priority)
	if e.index >= 0 {
		c.stats.Added++
		c.crawlOf(c.queues.at(qid)).stats.Added++
	}
	ref := c.store(seq, e.body)
	if e.due != 0 && e.due > c.date(now) {
		c.schedule(qid, ref, e.due)
		return
	}
	c.waits.began(seq, now)
	c.pushTail(qid, ref, now)
}
