// This file knows which URLs are known, and makes what a deletion with Forget deletes unknown.
//
// Package known keeps some marks of known URLs in memory. The Spill has the others, and
// is asked outside the lock. Marks leave memory when a checkpoint that covers them has
// completed, so an answer is valid until the next checkpoint.
//
// Package tombstone has the numbers of what was forgotten, which go into marks.

package frontier

import (
	"context"
	"errors"
	"fmt"

	"github.com/seed-7440039f/frontier/internal/found"
	"github.com/seed-7440039f/frontier/internal/hostkey"
	"github.com/seed-7440039f/frontier/internal/ledger"
	"github.com/seed-7440039f/frontier/internal/patience"
	"github.com/seed-7440039f/frontier/internal/record"
	"github.com/seed-7440039f/frontier/storage"
)

// lockSteadyOpen is lockOpen at a moment in which no op is being applied in steps that
// others may see: what is left of it would come after a deletion, with older marks.
func (f *Frontier) lockSteadyOpen() error {
	for {
		if err := f.lockOpen(); err != nil {
			return err
		}
		stepped := f.ledger.Stepped()
		if stepped == nil {
			return nil
		}
		f.mu.Unlock()
		<-stepped
	}
}

// remark makes the marks of o's entries anew if a number has changed since.
func (s *shard) remark(o *op) {
	version := s.forgotten.Version()
	if o.forgets == version {
		return
	}
	o.forgets = version
	if s.opts.NoDedup {
		return
	}
	for i := range o.Entries {
		e := &o.Entries[i]
		if b, err := record.Decode(e.Body); err == nil { // we encoded it
			e.Mark = s.found.Mark(e.Host, e.Crawl, hostkey.String(b.URL))
		}
	}
}

// addForgotten admits e, which was to be forced when its URL became unknown.
func (f *Frontier) addForgotten(ctx context.Context, e ledger.Entry) error {
	o := newOp()
	o.Context = ctx
	defer o.free()
	e.Index, e.Marked, e.Body = 0, false, o.Keep(e.Body)
	o.Entries = append(o.Entries, e)
	_, err := f.add(ctx, o)
	if err == nil && len(o.refused) > 0 {
		err = o.refused[0].Err
	}
	return err
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
	if len(o.Entries) == 0 {
		return nil // and no lock
	}
	s.remark(o)
	s.mu.Lock()
	l.covered = s.known.Checkpoints()
	if s.known.Checkpoints() > 0 && !s.opts.NoDedup {
		for i := range o.Entries {
			if i > 0 && i%askAtOnce == 0 {
				s.yield()
			}
			e := &o.Entries[i]
			e.Stored, e.Fetched = s.known.Popular.Has(e.Mark), false
			if !e.Stored && !s.known.Young(e.Mark) {
				l.marks, l.at = append(l.marks, e.Mark), append(l.at, i)
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
	if _, err := patience.Ask(o.Life(), s.abandoned, func() (none struct{}, err error) { return none, s.opts.Spill.Known(marks, known) }); err != nil {
		o.Left = o.Life().Err() != nil || s.abandoned.Err() != nil // the Spill may write to known still
		if s.isClosed() {
			return ErrClosed
		}
		return fmt.Errorf("frontier: known URLs: %w", err)
	}
	for j, i := range l.at {
		o.Entries[i].Stored, o.Entries[i].Fetched = l.known[j], l.known[j]
	}
	return nil
}

// knownLocked reports whether the URL of e was admitted. The answer of lookUp must still be valid.
func (s *shard) knownLocked(e *ledger.Entry) bool {
	return !s.opts.NoDedup && (e.Stored || s.known.Young(e.Mark))
}

// staleLocked reports whether the answers for an op may be wrong by now.
func (s *shard) staleLocked(o *op) bool {
	return len(o.Entries) > 0 && (o.lookup.covered != s.known.Checkpoints() || o.forgets != s.forgotten.Version())
}

// forceAll forces known entries, and returns how many it did, and the errors of the others:
// what was committed before them stays.
func (f *Frontier) forceAll(ctx context.Context, known []ledger.Entry) (n int, refused []*EntryError) {
	for i := range known {
		e := &known[i]
		err := ctx.Err()
		if err == nil {
			err = f.found.Force(ctx, *e)
		}
		if errors.Is(err, found.ErrForgotten) {
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
