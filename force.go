// This file re-admits a known URL: it looks for the one that waits, wherever it
// is, and puts the new one in its place.
//
// There is no index of URLs. To find one, the waiting URLs of its host are read block by block, outside
// the lock. A scheduled URL on disk is not searched for, since no index says which timed block has it,
// or whether one has. So a Force admits the new record and, in the same commit, leaves a note: older
// records of this URL are outdated. A reader of a timed block finishes an outdated record without
// handing it out. The note is dropped when all blocks of that time have been searched or read. They are
// searched at once while they are few, when new notes are many for their number, and when only outdated
// records could keep the crawl going.

package frontier

import (
	"context"
	"errors"

	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/internal/ledger"
	"github.com/seed-7440039f/frontier/internal/patience"
	"github.com/seed-7440039f/frontier/internal/record"
	"github.com/seed-7440039f/frontier/internal/row"
	"github.com/seed-7440039f/frontier/internal/timed"
	"github.com/seed-7440039f/frontier/internal/timeheap"
	"github.com/seed-7440039f/frontier/internal/view"
	"github.com/seed-7440039f/frontier/storage"
)

const (
	// sweepAtMost is how many timed blocks are looked through for each new note.
	sweepAtMost = 32
	// sweepFor is how many new notes justify searching one more block when there are finished
	// URLs, whose blocks never become due.
	sweepFor = 4
)

// forceAll forces known entries, and returns how many it did, and the errors of the others:
// what was committed before them stays.
func (f *Frontier) forceAll(ctx context.Context, known []ledger.Entry) (n int, refused []*EntryError) {
	for i := range known {
		e := &known[i]
		err := ctx.Err()
		if err == nil {
			err = f.force(ctx, *e)
		}
		if errors.Is(err, errForgotten) {
			err = f.addForgotten(ctx, *e)
		}
		if err == nil {
			n++
			continue
		}
		b, _ := record.Decode(e.Body) // we encoded it
		refused = append(refused, &EntryError{Index: e.Index, URL: shortened(string(b.URL)), Err: err})
	}
	return n, refused
}

// force admits e, which is known, and ends its waiting record. If the URL has become
// unknown it returns errForgotten.
func (f *Frontier) force(ctx context.Context, e ledger.Entry) error {
	b, err := record.Decode(e.Body)
	if err != nil {
		return err
	}
	if err := f.beginForce(ctx, e.Mark); err != nil {
		return err
	}
	defer f.endForce(e.Mark)
	for {
		if err := f.lockWithHost(ctx, e.Host); err != nil {
			return err
		}
		if f.wasForgotten(&e, b.URL) {
			f.mu.Unlock()
			return errForgotten
		}
		id := f.core.Lookup(e.Hash, e.Host)
		o := newOp()
		o.Context = ctx
		if id != 0 && f.forceLeasedLocked(o, id, &e, b.URL) {
			err := f.ledger.SubmitAndUnlock(&o.Op)
			o.free()
			return err
		}
		if id != 0 && f.core.Hosts.At(id).Pins > 0 { // perhaps this URL is on its way to disk
			err := f.ledger.SubmitAndUnlock(&o.Op) // returns when what is on its way has arrived
			o.free()
			if err != nil {
				return err
			}
			continue
		}
		own := e // the caller's buffer may go before the commit does
		own.Body = o.Keep(e.Body)
		o.Entries = append(o.Entries, own)
		if id != 0 && !f.takeOutLocked(o, id, &e, b.URL) {
			if parts := view.PartsOf(f.core, id, e.Crawl); len(parts) > 0 {
				f.mu.Unlock()
				again, err := f.takeFromDisk(ctx, o, parts, &e, b.URL)
				if again || err != nil {
					o.free()
					if err == nil {
						err = ctx.Err()
					}
					if err != nil {
						return err
					}
					continue
				}
				f.mu.Lock()
				if f.wasForgotten(&e, b.URL) {
					f.ledger.Undo(&o.Op) // what it took waits again
					f.mu.Unlock()
					o.free()
					return errForgotten
				}
				if !o.Ends && f.core.Lookup(e.Hash, e.Host) != id { // it left memory meanwhile
					f.mu.Unlock()
					o.free()
					continue
				}
			}
		}
		if !o.Ends && !f.core.Timed.Empty() {
			o.NoteBlock = f.core.Timed.Last()
		}
		err := f.ledger.SubmitAndUnlock(&o.Op)
		o.free()
		return err
	}
}

// forceLeasedLocked makes a lease's URL come again after its Done, if e is of it. With a Spill o
// becomes what makes that durable.
func (s *shard) forceLeasedLocked(o *op, id uint32, e *ledger.Entry, url []byte) bool {
	l := s.core.Search(id, e.Crawl, url, s.forgotten.Until(e.Host, e.Crawl)).Lease()
	if l == nil {
		return false
	}
	again := *e
	again.Index, again.Marked, again.ForcedAt = -1, false, s.ledger.Seq()
	again.Body = append([]byte(nil), e.Body...)
	seq := s.core.Records.At(l.Record).Seq()
	undo := s.ledger.ComesAgain(seq, &again)
	if s.opts.Spill == nil {
		return true
	}
	r := row.Again{Seq: seq, Host: e.Host, Crawl: e.Crawl, Priority: e.Priority, Forced: again.ForcedAt, Body: string(e.Body)}
	if e.Due != 0 {
		r.Due = s.clock.DueMillis(e.Due)
	}
	o.Rows = append(o.Rows, r.Row())
	o.Unrule = undo
	return true
}

// admitAgainLocked makes o admit what a record comes again as.
func (s *shard) admitAgainLocked(o *op, as *ledger.Entry) {
	again := *as
	again.Body = o.Keep(again.Body)
	o.Entries = append(o.Entries, again)
}

// comesAgain restores what records come again as.
func (s *shard) comesAgain(all []row.Again) {
	for i := range all {
		a := &all[i]
		b := record.Must([]byte(a.Body))
		e := &ledger.Entry{
			Index: -1, Hash: s.core.HashOf(a.Host), Host: a.Host, Crawl: a.Crawl, Priority: a.Priority, Force: true,
			ForcedAt: a.Forced, Body: []byte(a.Body), Mark: s.markOf(a.Host, a.Crawl, string(b.URL)),
		}
		if a.Due != 0 {
			e.Due = s.clock.StoredDue(a.Due)
		}
		s.ledger.ComesAgain(a.Seq, e)
	}
}

// takeOutLocked looks for the URL among the host's records in memory, and makes
// o the end of the one it finds.
func (f *Frontier) takeOutLocked(o *op, id uint32, e *ledger.Entry, url []byte) bool {
	c := f.core
	search := c.Search(id, e.Crawl, url, f.forgottenURLsLocked(e.Host, e.Crawl))
	if queue, at, ok := search.Waiting(); ok {
		f.ledger.Withdraw(&o.Op, queue, at.Ref, func() { c.Fifo.Remove(at) })
		return true
	}
	i, ok := search.Scheduled()
	if ok {
		f.ledger.Unschedule(&o.Op, i)
	}
	return ok
}

// takeFromDisk looks for the URL in parts on disk. If it finds it, o becomes the end of
// its record. If the record was taken meanwhile, the search must begin again.
func (f *Frontier) takeFromDisk(ctx context.Context, o *op, parts []view.Part, e *ledger.Entry, url []byte) (again bool, err error) {
	for i := range parts {
		p := &parts[i]
		records, err := f.readFor(ctx, p.Part, p.Want)
		if err != nil {
			return false, err
		}
		for i := range records {
			r := &records[i]
			if !record.HasURL(r.Body, url) {
				continue
			}
			f.mu.Lock()
			if r.Seq <= f.forgottenURLsLocked(e.Host, e.Crawl) {
				f.mu.Unlock()
				continue
			}
			defer f.mu.Unlock()
			ref, ok := f.core.Fifo.Fetch(p.ID, p.Part, r)
			if ok {
				f.ledger.Withdraw(&o.Op, p.Queue, ref, func() {})
			}
			return !ok, nil
		}
	}
	return false, nil
}

// beginForce waits until no other call forces the URL: neither would see the
// other's record, which is on its way to disk.
func (s *shard) beginForce(ctx context.Context, m storage.Mark) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.forcing[m] != nil {
		other := s.forcing[m]
		s.mu.Unlock()
		_, err := patience.Ask(ctx, s.abandoned, func() (struct{}, error) { return <-other, nil })
		s.mu.Lock()
		if err != nil {
			return err
		}
	}
	s.forcing[m] = make(chan struct{})
	return nil
}

func (s *shard) endForce(m storage.Mark) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.forcing[m])
	delete(s.forcing, m)
}

// awaitForcesYieldingLocked waits until no URL of the records is being forced: only then
// it is clear whether its record is superseded. It releases the lock meanwhile.
func (s *shard) awaitForcesYieldingLocked(records []timed.Loaded) {
	for i := 0; i < len(records) && len(s.forcing) > 0; i++ {
		if busy := s.forcing[records[i].Mark]; busy != nil {
			s.mu.Unlock()
			<-busy
			s.mu.Lock()
			i = -1 // others may have begun
		}
	}
}

// supersededLocked reports whether a Force has replaced a record.
func (s *shard) supersededLocked(r *timed.Loaded) bool { return s.notes.Outdated(r.Mark, r.Seq) }

// sweepWantedLocked reports whether blocks should be looked through for superseded records before their
// time: while they are few, or if the crawl might be over without them.
func (s *shard) sweepWantedLocked() bool {
	c := s.core
	unread := c.Timed.Len()
	switch {
	case s.closed || s.draining || unread == 0:
		return false
	case s.notes.Sweeping(), c.Timed.Purging():
		return true
	case c.Timed.Postponed() && !s.opts.KeepOpen && c.Stats.Waiting+c.Stats.Leased == 0 && c.Scheduled.Min() == instant.Never && c.Stats.Scheduled > 0:
		return true // the crawl might be over without what is dead
	case !s.notes.Unswept():
		return false
	}
	return unread <= sweepAtMost || c.Stats.Finished > 0 && s.notes.Young() >= sweepFor*unread ||
		c.Stats.Waiting+c.Stats.Leased == 0 && c.Scheduled.Min() == instant.Never && c.Stats.Scheduled > 0 && c.Stats.Scheduled <= 4*int64(s.notes.Len())
}

// beginSweepLocked begins to read a block to look through; the zero item if
// it was read meanwhile.
func (s *shard) beginSweepLocked() timeheap.Item {
	t := &s.core.Timed
	if !s.notes.Sweeping() && !t.Purging() && t.Postponed() {
		t.PurgeNow()
	}
	if t.Purging() {
		return t.BeginPurge()
	}
	return s.notes.BeginSweep(&s.core.Timed)
}
