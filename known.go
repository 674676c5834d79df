// This file remembers which URLs were admitted.
//
// Their marks lie with the Spill from the checkpoint on that covers them. In
// memory are only those that are younger, each of them, and the popular ones of
// the others. Without a Spill all are young.
//
// A mark that is not in memory is asked of the Spill outside the lock. What a
// checkpoint covers leaves memory when it has completed, so an answer holds as
// long as no further checkpoint has.

package frontier

import (
	"errors"
	"fmt"

	"github.com/seed-7440039f/frontier/internal/seen"
)

const (
	minPopular  = 1 << 20 // bytes for the marks of popular URLs, at least
	offerAtOnce = 128     // marks that become popular under one lock
	keepAtOnce  = 1024    // marks that outlive a round of moving, under one lock
	askAtOnce   = 256     // marks that are looked for in memory under one lock
	recallFrom  = 100_000 // marks on disk from which on an opening recalls some
)

// knownURLs is guarded by Frontier.mu.
type knownURLs struct {
	recent  *seen.Set  // marks since the last round of moving began
	older   *seen.Set  // during a round: those before it that no completed checkpoint covers
	popular seen.Cache // of the Spill's
	covered int64      // checkpoints completed, those before Open counted as one
	total   int64      // marks in all
}

// young reports whether m is known, and perhaps not to the Spill.
func (k *knownURLs) young(m Mark) bool { return k.recent.Has(m) || k.older.Has(m) }

// insert adds m, which the Spill does not know, and reports whether it was new.
func (k *knownURLs) insert(m Mark) bool {
	if k.older.Has(m) || !k.recent.Insert(m) {
		return false
	}
	k.total++
	return true
}

// keep sees to it that m, which was inserted, outlives the present round.
func (k *knownURLs) keep(m Mark) {
	if k.older.Len() > 0 {
		k.recent.Insert(m)
	}
}

func (k *knownURLs) remove(m Mark) {
	k.recent.Remove(m)
	k.older.Remove(m)
	k.total--
}

// beginRound begins a round whose checkpoint will cover what was applied so far.
// fresh is an empty set.
func (k *knownURLs) beginRound(fresh *seen.Set) {
	k.older, k.recent = k.recent, fresh
}

// endRound forgets what the round's checkpoint covers, or that there was a round.
// It returns a set that is to be freed, outside the lock.
func (k *knownURLs) endRound(completed bool) *seen.Set {
	if completed {
		k.covered++
	} else {
		for m := range k.recent.All() {
			k.older.Insert(m)
		}
		k.recent, k.older = k.older, k.recent
	}
	done := k.older
	k.older = &seen.Set{}
	return done
}

func (k *knownURLs) size() int64 { return k.recent.Size() + k.older.Size() + k.popular.Size() }

// lookup is what the Spill was asked for an op.
type lookup struct {
	covered int64 // as it was
	marks   []Mark
	at      []int // index of each in op.entries
	known   []bool
}

// lookUp finds out which of the op's entries the Spill knows, without asking it
// about those that memory knows. The answers are in op.entries.
func (f *Frontier) lookUp(o *op) error {
	l := &o.lookup
	l.marks, l.at = l.marks[:0], l.at[:0]
	if len(o.entries) == 0 {
		return nil // and no lock
	}
	f.mu.Lock()
	l.covered = f.known.covered
	if f.known.covered > 0 && !f.opts.NoDedup {
		for i := range o.entries {
			if i > 0 && i%askAtOnce == 0 {
				f.mu.Unlock()
				f.mu.Lock()
			}
			e := &o.entries[i]
			e.stored, e.fetched = f.known.popular.Has(e.mark), false
			if !e.stored && !f.known.young(e.mark) {
				l.marks, l.at = append(l.marks, e.mark), append(l.at, i)
			}
		}
	}
	f.mu.Unlock()
	if len(l.marks) == 0 {
		return nil
	}
	if cap(l.known) < len(l.marks) {
		l.known = make([]bool, len(l.marks))
	}
	l.known = l.known[:len(l.marks)]
	clear(l.known)
	marks, known := l.marks, l.known
	if _, err := ask(o.context(), f, func() (none struct{}, err error) { return none, f.opts.Spill.Known(marks, known) }); err != nil {
		o.left = o.context().Err() != nil || f.isAbandoned() // the Spill may write to known still
		if f.isClosed() {
			return ErrClosed
		}
		return fmt.Errorf("frontier: known URLs: %w", err)
	}
	for j, i := range l.at {
		o.entries[i].stored, o.entries[i].fetched = l.known[j], l.known[j]
	}
	return nil
}

// knownLocked reports whether e is of a URL that was admitted. The answer of
// lookUp must hold still.
func (f *Frontier) knownLocked(e *newEntry) bool {
	return !f.opts.NoDedup && (e.stored || f.known.young(e.mark))
}

// staleLocked reports whether the answers for an op may be wrong by now.
func (f *Frontier) staleLocked(o *op) bool {
	return len(o.entries) > 0 && o.lookup.covered != f.known.covered
}

func (f *Frontier) isClosed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.closed
}

// dedupLocked removes known entries from o and remembers the others. It returns
// the known ones that are to be forced, and which hints are not heard. In steps it releases the lock now and then:
// no checkpoint may complete meanwhile.
func (f *Frontier) dedupLocked(o *op, steps bool) (forced []newEntry, unheard error) {
	if f.opts.NoDedup {
		return nil, nil
	}
	var errs []error
	kept := 0
	for i := range o.entries {
		if steps && i > 0 && i%applyAtOnce == 0 {
			f.mu.Unlock()
			f.mu.Lock()
		}
		e := &o.entries[i]
		switch {
		case !e.stored && f.known.insert(e.mark):
			e.marked = true
			if kept < i {
				o.entries[kept] = *e
			}
			kept++
			continue
		case e.fetched:
			f.known.popular.Insert(e.mark)
		}
		if e.force {
			forced = append(forced, *e)
			continue
		}
		f.core.stats.Duplicates++
		if e.hint {
			if err := f.hintLocked(o, e); err != nil {
				errs = append(errs, err)
			}
		}
	}
	o.entries = o.entries[:kept]
	return forced, errors.Join(errs...)
}

// offer fills the room for popular marks with those that a checkpoint covered.
func (f *Frontier) offer(ms []Mark) {
	for len(ms) > 0 {
		n := min(len(ms), offerAtOnce)
		f.mu.Lock()
		for _, m := range ms[:n] {
			f.known.popular.Offer(m)
		}
		f.mu.Unlock()
		ms = ms[n:]
	}
}

// recall fills the room for popular marks after an opening. Nothing depends on it:
// it spares reads, one by one and in no order.
func (f *Frontier) recall() {
	err := f.opts.Spill.Recall(func(ms []Mark) bool {
		f.offer(ms)
		f.mu.Lock()
		defer f.mu.Unlock()
		return !f.closed && !f.known.popular.Full()
	})
	if err != nil && !f.isClosed() {
		f.emit(Event{Kind: EventStoreError, Reason: "recalling known URLs", Err: err})
	}
}

// sharePopularLocked gives popular marks what others leave of the budget, at
// most a quarter of it.
func (f *Frontier) sharePopularLocked() {
	budget := f.opts.MemoryBudget
	young := max(0, budget/16-f.known.recent.Size()-f.known.older.Size()) // that may yet come
	rest := budget*3/4 - f.footprint - young - f.fixedLocked()
	f.known.popular.SetLimit(max(minPopular, min(budget/4, rest)))
}
