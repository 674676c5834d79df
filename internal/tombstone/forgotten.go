// This file has the numbers of what was forgotten.
//
// Marks of known URLs cannot be taken back one by one: they are on disk, sorted, without the URLs. So a
// target that was forgotten has a number, which goes into the marks of its URLs from then on; marks made
// before are found no more. Of several numbers that apply to a URL the youngest counts. A number is a
// small row on disk for ever. It is in force from the moment in which its deletion is submitted: what is
// submitted later comes after the deletion. If that cannot be committed, the former number returns, and
// with it the old marks.

package tombstone

import (
	"iter"
	"math"
	"sync"
	"sync/atomic"

	"github.com/seed-7440039f/frontier/internal/hostkey"
	"github.com/seed-7440039f/frontier/internal/row"
)

// Forgotten holds the numbers of what was forgotten. Version and Of need no lock; the other methods need
// the frontier's. The zero value is empty.
type Forgotten struct {
	version atomic.Uint64

	guard sync.RWMutex // of set; is taken after the frontier's lock, which writers hold
	set   Set

	last uint64 // number that was given
}

// Version changes with the numbers; 0: there never were any.
func (x *Forgotten) Version() uint64 { return x.version.Load() }

// Of returns the number that goes into the marks of a host's URLs of a crawl.
func (x *Forgotten) Of(host string, crawl uint32) uint64 { return x.of(host, crawl).Seq }

func (x *Forgotten) of(host string, crawl uint32) (d Dead) {
	if x.version.Load() == 0 {
		return d
	}
	x.guard.RLock()
	defer x.guard.RUnlock()
	return x.set.Of(hostkey.Bytes(host), crawl)
}

// Forget gives the target of a deletion, which is being submitted, a new number.
func (x *Forgotten) Forget(d *Tombstone) (r row.Forgotten, undo func()) {
	r = row.Forgotten{Number: x.last + 1, Scope: d.Scope, OfCrawl: d.OfCrawl, Crawl: d.Crawl}
	return r, x.put(&r, d)
}

// Put puts a number in force that has a row. It returns a function that puts the former one in force again.
func (x *Forgotten) Put(r *row.Forgotten) (undo func()) { return x.put(r, nil) }

func (x *Forgotten) put(r *row.Forgotten, d *Tombstone) (undo func()) {
	x.last = max(x.last, r.Number)
	t := &Tombstone{Deletion: row.Deletion{Seq: r.Number, Scope: r.Scope, OfCrawl: r.OfCrawl, Crawl: r.Crawl}, by: d}
	x.guard.Lock()
	defer x.guard.Unlock()
	former := x.set.replace(t)
	x.version.Add(1)
	return func() {
		x.guard.Lock()
		defer x.guard.Unlock()
		x.set.Remove(t)
		if former != nil {
			x.set.Add(former)
		}
		x.version.Add(1)
	}
}

// Until returns the last sequence number of a host's URLs of a crawl that was forgotten by this process;
// 0: none was.
func (x *Forgotten) Until(host string, crawl uint32) uint64 {
	t := x.of(host, crawl).By
	if t == nil || t.by == nil {
		return 0
	}
	if t.by.Seq == 0 { // it is submitted: all that is visible came before it
		return math.MaxUint64
	}
	return t.by.Seq
}

// All yields the numbers in force.
func (x *Forgotten) All() iter.Seq[row.Forgotten] {
	return func(yield func(row.Forgotten) bool) {
		for _, d := range x.set.dead {
			if t := d.By; !yield(row.Forgotten{Number: t.Seq, Scope: t.Scope, OfCrawl: t.OfCrawl, Crawl: t.Crawl}) {
				return
			}
		}
	}
}
