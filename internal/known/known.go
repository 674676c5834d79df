// Package known remembers, by their marks, which URLs were admitted.
//
// Once a checkpoint covers a mark, the store has it. Memory holds all young marks, which no
// checkpoint covers, and the popular ones among the others. Without a store all marks are young.
// The package owns both sets, and the list of marks that the next checkpoint will cover. It does
// not call the store. It has no lock: callers hold the frontier's.
package known

import (
	"encoding/binary"
	"iter"

	"github.com/dchest/siphash"
	"github.com/seed-7440039f/frontier/internal/hostkey"
	"github.com/seed-7440039f/frontier/internal/seen"
	"github.com/seed-7440039f/frontier/storage"
)

// MarkOf is the fingerprint of a URL within a crawl, with the number of what was forgotten last of its host.
func MarkOf(key [2]uint64, number uint64, crawl uint32, url string) (m storage.Mark) {
	a, b := siphash.Hash128(key[0]^uint64(crawl), key[1]^number, hostkey.Bytes(url))
	binary.LittleEndian.PutUint64(m[:8], a)
	binary.LittleEndian.PutUint32(m[8:], uint32(b))
	return m
}

// URLs are the known URLs.
//
// Not safe for concurrent use.
type URLs struct {
	Popular seen.Cache // marks that the store has

	recent      *seen.Set // marks since the last round of moving began
	older       *seen.Set // during a round: earlier marks that no completed checkpoint covers
	log         List      // marks since the last checkpoint, in the order of their admission
	checkpoints int64
	total       int64
}

// New returns an empty URLs.
func New() URLs { return URLs{recent: &seen.Set{}, older: &seen.Set{}} }

// Restore notes at an opening that a completed checkpoint covers n marks.
func (k *URLs) Restore(n int64) {
	k.total += n
	k.checkpoints = 1
}

// Total is how many marks are known in all.
func (k *URLs) Total() int64 { return k.total }

// Checkpoints returns how many were completed; all before the opening count as one. An answer of
// the store is valid as long as this number stays the same.
func (k *URLs) Checkpoints() int64 { return k.checkpoints }

// Young reports whether m is known, and possibly missing from the store.
func (k *URLs) Young(m storage.Mark) bool { return k.recent.Has(m) || k.older.Has(m) }

// Insert adds m, which the store does not have, and reports whether it was new.
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

// Log appends m, which was inserted and is now in the log, to the list of marks for the next
// checkpoint. m outlives the current round.
func (k *URLs) Log(m storage.Mark) {
	k.keep(m)
	k.log.add(m)
}

// Logged is how many marks are in that list.
func (k *URLs) Logged() int { return k.log.n }

// Head returns the first n marks of the list. They do not change when the list does.
func (k *URLs) Head(n int) List { return k.log.head(n) }

// keep ensures that m, which was inserted, outlives the current round.
func (k *URLs) keep(m storage.Mark) {
	if k.older.Len() > 0 {
		k.recent.Insert(m)
	}
}

// BeginRound begins a round of moving. fresh is an empty set.
func (k *URLs) BeginRound(fresh *seen.Set) { k.older, k.recent = k.recent, fresh }

// Keep ensures that mark i of the list outlives the current round: its checkpoint will not cover it.
func (k *URLs) Keep(i int) { k.keep(k.log.at(i)) }

// EndRound ends a round whose checkpoint covers the first n marks of the list: they are forgotten.
// It returns a set to be freed outside the lock.
func (k *URLs) EndRound(n int) *seen.Set {
	k.checkpoints++
	k.log.drop(n)
	return k.takeOlder()
}

// FailRound ends a round without a checkpoint. It returns a set to be freed outside the lock.
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

// RecentLen returns the number of recent marks.
func (k *URLs) RecentLen() int { return k.recent.Len() }

// YoungSize returns the memory of the young marks in bytes.
func (k *URLs) YoungSize() int64 { return k.recent.Size() + k.older.Size() }

// Size returns the total memory in bytes.
func (k *URLs) Size() int64 { return k.YoungSize() + k.Popular.Size() + k.log.size() }
