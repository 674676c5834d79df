// Package known remembers which URLs were admitted, by their marks.
//
// From the checkpoint on that covers a mark, the store has it. In memory are only the
// young ones, which no checkpoint covers, each of them, and the popular ones of the
// others. Without a store all are young. The package owns both, and the list of marks
// that the next checkpoint will cover. It asks no store. It has no lock: callers hold
// the frontier's.
package known

import (
	"iter"

	"github.com/seed-7440039f/frontier/internal/seen"
	"github.com/seed-7440039f/frontier/storage"
)

// URLs are the known URLs.
//
// Not safe for concurrent use.
type URLs struct {
	Popular seen.Cache // of the marks that the store has

	recent      *seen.Set // marks since the last round of moving began
	older       *seen.Set // during a round: those before it that no completed checkpoint covers
	log         List      // marks since the last checkpoint, in the order of their admission
	checkpoints int64
	total       int64
}

// New returns a URLs that knows none.
func New() URLs { return URLs{recent: &seen.Set{}, older: &seen.Set{}} }

// Restore notes at an opening that a completed checkpoint covers n marks.
func (k *URLs) Restore(n int64) {
	k.total += n
	k.checkpoints = 1
}

// Total is how many marks are known in all.
func (k *URLs) Total() int64 { return k.total }

// Checkpoints is how many were completed; all before the opening count as one. What the
// store answers holds as long as this stays the same.
func (k *URLs) Checkpoints() int64 { return k.checkpoints }

// Young reports whether m is known, and perhaps not to the store.
func (k *URLs) Young(m storage.Mark) bool { return k.recent.Has(m) || k.older.Has(m) }

// Insert adds m, which the store does not know, and reports whether it was new.
func (k *URLs) Insert(m storage.Mark) bool {
	if k.older.Has(m) || !k.recent.Insert(m) {
		return false
	}
	k.total++
	return true
}

// Remove undoes Insert.
func (k *URLs) Remove(m storage.Mark) {
	k.recent.Remove(m)
	k.older.Remove(m)
	k.total--
}

// Log appends m, which was inserted and is in the log by now, to the list of what the
// next checkpoint will cover. m outlives the present round.
func (k *URLs) Log(m storage.Mark) {
	k.keep(m)
	k.log.add(m)
}

// Logged is how many marks are in that list.
func (k *URLs) Logged() int { return k.log.n }

// Head is the first n marks of the list. They do not change when it does.
func (k *URLs) Head(n int) List { return k.log.head(n) }

// keep sees to it that m, which was inserted, outlives the present round.
func (k *URLs) keep(m storage.Mark) {
	if k.older.Len() > 0 {
		k.recent.Insert(m)
	}
}

// BeginRound begins a round of moving. fresh is an empty set.
func (k *URLs) BeginRound(fresh *seen.Set) { k.older, k.recent = k.recent, fresh }

// Keep sees to it that mark i of the list outlives the present round: its checkpoint will
// not cover it.
func (k *URLs) Keep(i int) { k.keep(k.log.at(i)) }

// EndRound ends a round whose checkpoint covers the first n marks of the list: they are
// forgotten. It returns a set that is to be freed, outside the lock.
func (k *URLs) EndRound(n int) *seen.Set {
	k.checkpoints++
	k.log.drop(n)
	return k.takeOlder()
}

// FailRound ends a round without a checkpoint. It returns a set that is to be freed,
// outside the lock.
func (k *URLs) FailRound() *seen.Set {
	for m := range k.recent.All() {
		k.older.Insert(m)
	}
	k.recent, k.older = k.older, k.recent
	return k.takeOlder()
}

func (k *URLs) takeOlder() *seen.Set {
	done := k.older
	k.older = &seen.Set{}
	return done
}

// Recent yields the marks since the last round began: without a store, all.
func (k *URLs) Recent() iter.Seq[[12]byte] { return k.recent.All() }

// RecentLen is how many these are.
func (k *URLs) RecentLen() int { return k.recent.Len() }

// YoungSize is how many bytes the young marks take.
func (k *URLs) YoungSize() int64 { return k.recent.Size() + k.older.Size() }

// Size is how many bytes all this takes.
func (k *URLs) Size() int64 { return k.YoungSize() + k.Popular.Size() + k.log.size() }
