// This file holds what one call wants committed.

package frontier

import (
	"context"
	"sync"

	"github.com/seed-7440039f/frontier/internal/arena"
)

// maxGroup is how many bytes of bodies one batch holds, about.
const maxGroup = 4 << 20

// applyAtOnce is how many URLs are admitted under one lock. The rest of an op counts as
// opPrice of them.
const (
	applyAtOnce = 128
	opPrice     = 4
)

// op is what one call wants committed.
type op struct {
	ctx  context.Context // ends the waiting for it; nil: nothing but CloseContext does
	left bool            // nobody waits any more: it is the committer's for good

	entries []newEntry
	buf     []byte // bodies of entries
	rows    []Row
	forced  []newEntry // known outlinks to be forced once this is committed
	lookup  lookup
	absent  []absentee // hosts of entries that were not in memory

	space     *space     // that it waited for
	links     bool       // it admits, or finds that others did: see commitAlone
	unlimited bool       // no limit refuses its entries
	reserved  [][]*int64 // by entry: where it is counted until it waits; may be shorter
	counts    bool       // rows of what was used of limits are to be written

	marks []Mark // of URLs that become known, and were inserted for it

	ends   bool      // record, of queue and host, is finished
	record arena.Ref // stays in memory until then
	queue  uint32
	host   uint32
	dead   bool   // a deletion has the record: see core.doomed
	due    int64  // when record was scheduled for; 0: it waited or was leased
	pinned uint32 // host that stays in memory until then, and whose row may be among rows; 0: none

	replaced []Completion // records of the timed block being read that entries replace

	noteBlock uint32 // the entry supersedes a record in a timed block up to this one; 0: none

	tally   *int64 // counts it once this is committed; nil: nothing does
	unlearn func() // takes back what a failed commit must not teach; nil: nothing

	firstSeq uint64
	event    *Event       // told of once this is committed
	deletion *deletion    // comes into force
	rule     func()       // puts a control in force, under the lock, in the order of commits
	unrule   func()       // called instead if it could not be committed
	run      func() error // instead of all that: called between two commits
	after    func(error)  // called outside the lock when nobody waits for done
	done     chan error   // made for each commit
}

var ops = sync.Pool{New: func() any { return &op{} }}

func newOp() *op { return ops.Get().(*op) }

// free gives the op back. Nobody may be going to send on done.
func (o *op) free() {
	if o.left {
		return
	}
	clear(o.entries)
	clear(o.absent)
	*o = op{
		entries: o.entries[:0], buf: o.buf[:0], absent: o.absent[:0],
		lookup: lookup{marks: o.lookup.marks[:0], at: o.lookup.at[:0], known: o.lookup.known[:0]},
	}
	if cap(o.buf) <= 1<<20 {
		ops.Put(o)
	}
}

func (o *op) empty() bool {
	return len(o.entries) == 0 && !o.ends && !o.counts && len(o.rows) == 0 && len(o.forced) == 0 && len(o.marks) == 0
}

// encode appends b, and url if b has none, to the op's buffer and returns its bytes.
func (o *op) encode(b *body, url string) []byte {
	at := len(o.buf)
	o.buf = append(b.append(o.buf), url...)
	return o.buf[at:len(o.buf):len(o.buf)]
}

// hold appends encoded bytes to the op's buffer and returns them there.
func (o *op) hold(b []byte) []byte {
	at := len(o.buf)
	o.buf = append(o.buf, b...)
	return o.buf[at:len(o.buf):len(o.buf)]
}
