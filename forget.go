// This file knows which URLs are known, and makes what a deletion with Forget deletes unknown.
//
// Package known keeps some marks of known URLs in memory. The Spill has the others, and
// is asked outside the lock. Marks leave memory when a checkpoint that covers them has
// completed, so an answer is valid until the next checkpoint.
//
// Marks cannot be taken back one by one: they are on disk, sorted, without the URLs. So a target that
// was forgotten has a number, which goes into the marks of its URLs from then on; marks made before are
// found no more. Of several numbers that apply to a URL the youngest counts. A number is a small row on
// disk for ever. It is in force from the moment in which its deletion is submitted: what is submitted
// later comes after the deletion. If that cannot be committed, the former number returns, and with it
// the old marks.

package frontier

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	"github.com/dchest/siphash"
	"github.com/seed-7440039f/frontier/internal/hostkey"
	"github.com/seed-7440039f/frontier/internal/patience"
	"github.com/seed-7440039f/frontier/internal/record"
	"github.com/seed-7440039f/frontier/internal/row"
	"github.com/seed-7440039f/frontier/internal/tombstone"
	"github.com/seed-7440039f/frontier/storage"
)

// forgotten holds the numbers of what was forgotten.
type forgotten struct {
	version atomic.Uint64 // changes with the numbers; 0: there never were any

	guard sync.RWMutex // of set; is taken after shard.mu, which writers hold
	set   tombstone.Set

	last uint64               // number that was given
	by   map[uint64]*deletion // by its number; none for those that were recovered
}

// of returns the number that goes into the marks of a host's URLs of a crawl.
func (x *forgotten) of(host string, crawl uint32) uint64 {
	if x.version.Load() == 0 {
		return 0
	}
	x.guard.RLock()
	defer x.guard.RUnlock()
	return x.set.Of(hostkey.Bytes(host), crawl).Seq
}

// markOf is the fingerprint of a host's URL within a crawl.
func (s *shard) markOf(host string, crawl uint32, url string) storage.Mark {
	return s.markWith(s.forgotten.of(host, crawl), crawl, url)
}

// markWith is markOf with a number of forgotten.
func (s *shard) markWith(number uint64, crawl uint32, url string) (m storage.Mark) {
	a, b := siphash.Hash128(s.core.Key[0]^uint64(crawl), s.core.Key[1]^number, hostkey.Bytes(url))
	binary.LittleEndian.PutUint64(m[:8], a)
	binary.LittleEndian.PutUint32(m[8:], uint32(b))
	return m
}

// putLocked puts a number in force. It returns a function that puts the former one in force again.
func (x *forgotten) putLocked(r *row.Forgotten, d *deletion) (undo func()) {
	x.last = max(x.last, r.Number)
	if d != nil {
		if x.by == nil {
			x.by = map[uint64]*deletion{}
		}
		x.by[r.Number] = d
	}
	t := numbered(r)
	x.guard.Lock()
	defer x.guard.Unlock()
	former := x.set.Replace(t)
	var formerly *deletion
	if former != nil {
		formerly = x.by[former.Seq]
		delete(x.by, former.Seq)
	}
	x.version.Add(1)
	return func() {
		delete(x.by, r.Number)
		x.guard.Lock()
		defer x.guard.Unlock()
		x.set.Remove(t)
		if former != nil {
			x.set.Add(former)
		}
		if formerly != nil {
			x.by[former.Seq] = formerly
		}
		x.version.Add(1)
	}
}

// numbered returns the member of a Set for a number.
func numbered(r *row.Forgotten) *tombstone.Tombstone {
	return &tombstone.Tombstone{Deletion: row.Deletion{Seq: r.Number, Scope: r.Scope, OfCrawl: r.OfCrawl, Crawl: r.Crawl}}
}

// forgetLocked lets o, which deletes d, make unknown what it deletes.
func (s *shard) forgetLocked(o *op, d *deletion) {
	x := &s.forgotten
	r := row.Forgotten{Number: x.last + 1, Scope: d.Scope, OfCrawl: d.OfCrawl, Crawl: d.Crawl}
	o.unrule = x.putLocked(&r, d)
	if s.opts.Spill != nil {
		o.rows = append(o.rows, r.Row())
	}
}

// lockSteadyOpen is lockOpen at a moment in which no op is being applied in steps that
// others may see: what is left of it would come after a deletion, with older marks.
func (f *Frontier) lockSteadyOpen() error {
	for {
		if err := f.lockOpen(); err != nil {
			return err
		}
		if f.stepping == 0 {
			return nil
		}
		if f.stepped == nil {
			f.stepped = make(chan struct{})
		}
		stepped := f.stepped
		f.mu.Unlock()
		<-stepped
	}
}

// steppedLocked notes that an op is no longer being applied in steps.
func (s *shard) steppedLocked() {
	if s.stepping--; s.stepping == 0 && s.stepped != nil {
		close(s.stepped)
		s.stepped = nil
	}
}

// remark makes the marks of o's entries anew if a number has changed since.
func (s *shard) remark(o *op) {
	version := s.forgotten.version.Load()
	if o.forgets == version {
		return
	}
	o.forgets = version
	if s.opts.NoDedup {
		return
	}
	for i := range o.entries {
		e := &o.entries[i]
		if b, err := record.Decode(e.body); err == nil { // we encoded it
			e.mark = s.markOf(e.host, e.crawl, hostkey.String(b.URL))
		}
	}
}

// errForgotten is why a URL cannot be forced: it became unknown.
var errForgotten = errors.New("forgotten")

// wasForgotten reports whether the URL of e became unknown since e was prepared.
func (s *shard) wasForgotten(e *newEntry, url []byte) bool {
	return s.forgotten.version.Load() != 0 && s.markOf(e.host, e.crawl, hostkey.String(url)) != e.mark
}

// addForgotten admits e, which was to be forced when its URL became unknown.
func (f *Frontier) addForgotten(ctx context.Context, e newEntry) error {
	o := newOp()
	o.ctx = ctx
	defer o.free()
	e.index, e.marked, e.body = 0, false, o.Keep(e.body)
	o.entries = append(o.entries, e)
	_, err := f.add(ctx, o)
	if err == nil && len(o.refused) > 0 {
		err = o.refused[0].Err
	}
	return err
}

// forgottenLocked returns the last sequence number of a host's URLs of a crawl that was
// forgotten by this process; 0: none was.
func (s *shard) forgottenLocked(host string, crawl uint32) uint64 {
	n := s.forgotten.of(host, crawl)
	if n == 0 {
		return 0
	}
	d := s.forgotten.by[n]
	switch {
	case d == nil:
		return 0
	case d.Seq == 0: // it is submitted: all that is visible came before it
		return math.MaxUint64
	}
	return d.Seq
}

// forgottenURLsLocked is the same for URLs that wait: those of before a reopening may not
// have been swept yet.
func (s *shard) forgottenURLsLocked(host string, crawl uint32) uint64 {
	if s.forgotten.of(host, crawl) == 0 {
		return 0
	}
	return max(s.forgottenLocked(host, crawl), s.core.StoredTombstones.Of(hostkey.Bytes(host), crawl).Seq)
}

// forgotten restores a number whose row was found.
func (r *recovery) forgotten(key string, value []byte) error {
	x, err := row.ParseForgotten(key, value)
	if err == nil {
		r.f.forgotten.putLocked(&x, nil)
	}
	return err
}

// copyForgottenLocked copies the numbers of a frontier without a Spill.
func (x *exporter) copyForgottenLocked(take func(storage.Row)) {
	for t := range x.f.forgotten.set.All() {
		r := row.Forgotten{Number: t.Seq, Scope: t.Scope, OfCrawl: t.OfCrawl, Crawl: t.Crawl}
		take(r.Row())
	}
}

// importForgotten takes a number that an import read, into a frontier that never had a
// URL: its marks are then those of the export.
func (f *Frontier) importForgotten(p *pendingOps, r *row.Forgotten) error {
	after := p.Begin()
	if err := f.lockOpen(); err != nil {
		after(nil)
		return err
	}
	o := newOp()
	o.unrule = f.forgotten.putLocked(r, nil)
	if f.opts.Spill != nil {
		o.rows = append(o.rows, r.Row())
	}
	o.after = after
	f.submitAsyncLocked(o)
	f.mu.Unlock()
	return nil
}

// lookup is what the Spill was asked for an op.
type lookup struct {
	covered int64 // checkpoints completed, as it was
	marks   []storage.Mark
	at      []int // index of each in op.entries
	known   []bool
}

// lookUp finds out which of the op's entries the Spill knows, without asking it
// about those that memory knows. The answers are in op.entries.
func (s *shard) lookUp(o *op) error {
	l := &o.lookup
	l.marks, l.at = l.marks[:0], l.at[:0]
	if len(o.entries) == 0 {
		return nil // and no lock
	}
	s.remark(o)
	s.mu.Lock()
	l.covered = s.known.Checkpoints()
	if s.known.Checkpoints() > 0 && !s.opts.NoDedup {
		for i := range o.entries {
			if i > 0 && i%askAtOnce == 0 {
				s.yield()
			}
			e := &o.entries[i]
			e.stored, e.fetched = s.known.Popular.Has(e.mark), false
			if !e.stored && !s.known.Young(e.mark) {
				l.marks, l.at = append(l.marks, e.mark), append(l.at, i)
			}
		}
	}
	s.mu.Unlock()
	if len(l.marks) == 0 {
		return nil
	}
	if cap(l.known) < len(l.marks) {
		l.known = make([]bool, len(l.marks))
	}
	l.known = l.known[:len(l.marks)]
	clear(l.known)
	marks, known := l.marks, l.known
	if _, err := patience.Ask(o.context(), s.abandoned, func() (none struct{}, err error) { return none, s.opts.Spill.Known(marks, known) }); err != nil {
		o.left = o.context().Err() != nil || s.abandoned.Err() != nil // the Spill may write to known still
		if s.isClosed() {
			return ErrClosed
		}
		return fmt.Errorf("frontier: known URLs: %w", err)
	}
	for j, i := range l.at {
		o.entries[i].stored, o.entries[i].fetched = l.known[j], l.known[j]
	}
	return nil
}

// knownLocked reports whether the URL of e was admitted. The answer of lookUp must still be valid.
func (s *shard) knownLocked(e *newEntry) bool {
	return !s.opts.NoDedup && (e.stored || s.known.Young(e.mark))
}

// staleLocked reports whether the answers for an op may be wrong by now.
func (s *shard) staleLocked(o *op) bool {
	return len(o.entries) > 0 && (o.lookup.covered != s.known.Checkpoints() || o.forgets != s.forgotten.version.Load())
}

// addMarks makes marks known, and returns how many were not.
func (f *Frontier) addMarks(ctx context.Context, ms []storage.Mark) (int64, error) {
	if len(ms) == 0 {
		return 0, nil
	}
	o := newOp()
	defer o.free()
	known := make([]bool, len(ms))
	for again := false; ; {
		f.mu.Lock()
		covered := f.known.Checkpoints()
		f.mu.Unlock()
		clear(known)
		if covered > 0 && f.opts.Spill != nil {
			if err := f.opts.Spill.Known(ms, known); err != nil {
				return 0, fmt.Errorf("frontier: import: known URLs: %w", err)
			}
		}
		if err := f.lockOpen(); err != nil {
			return 0, err
		}
		wait, err := f.roomLocked(o)
		if f.opts.Spill == nil && f.freeLocked() < int64(len(ms))*16 {
			err = ErrFull
		}
		if err == nil && wait == nil && covered == f.known.Checkpoints() {
			break
		}
		f.mu.Unlock()
		if again = err != nil && !again && f.makeRoom(ctx); again {
			continue
		}
		switch {
		case err != nil:
			return 0, err
		case wait != nil:
			select {
			case <-wait:
			case <-ctx.Done():
				return 0, ctx.Err()
			}
		}
	}
	for i, m := range ms {
		if !known[i] && f.known.Insert(m) {
			o.marks = append(o.marks, m)
		}
	}
	n := int64(len(o.marks))
	if n == 0 {
		f.mu.Unlock()
		return 0, nil
	}
	return n, f.submitAndUnlock(o)
}
