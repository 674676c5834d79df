// This file applies hints to scheduled URLs.
//
// There is no index of scheduled URLs; it would take more memory than everything else about them. So
// package hint collects hints, each with a row on disk, and one walk through all scheduled URLs, in
// memory and on disk, applies them together. Blocks that are read because they are due are checked,
// too. A changed URL replaces its record in one commit.

package found

import (
	"bytes"
	"slices"

	"github.com/seed-7440039f/frontier/internal/arena"
	"github.com/seed-7440039f/frontier/internal/fifo"
	"github.com/seed-7440039f/frontier/internal/hint"
	"github.com/seed-7440039f/frontier/internal/hostkey"
	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/internal/ledger"
	"github.com/seed-7440039f/frontier/internal/patience"
	"github.com/seed-7440039f/frontier/internal/record"
	"github.com/seed-7440039f/frontier/internal/timed"
	"github.com/seed-7440039f/frontier/internal/timeheap"
	"github.com/seed-7440039f/frontier/storage"
)

const (
	// hintsAtOnce is how many of the found are answered in one commit or round of commits.
	hintsAtOnce = 64
	// hintsListed is how many are looked at under one lock.
	hintsListed = 1024
)

// HintsDue is when the next walk may begin; never if there is nothing to find.
func (f *Found) HintsDue() int64 {
	if f.Deferred {
		return instant.Never
	}
	return f.Hints.Due(f.Core.Timed.Due(), f.Core.Scheduled.Len())
}

// startHints begins a walk if it is time.
func (f *Found) startHints() {
	if f.up.Ended() || f.HintsDue() > f.up.Last() {
		return
	}
	f.Hints.BeginWalk()
	f.up.Go(f.walkHints)
}

// walkHints looks for all URLs that had hints when the walk began: first in memory, since
// records move from there to disk.
func (f *Found) walkHints() {
	f.hintScheduled()
	l := f.up.ListTimed()
	f.Mu.Lock()
	f.Core.Timed.EndList(l)
	f.Mu.Unlock()
	var blocks []uint32
	for _, it := range l.All() {
		if it.At != instant.Never {
			blocks = append(blocks, it.ID)
		}
	}
	slices.Sort(blocks)
	for _, id := range blocks {
		if !f.up.ReadTimed(id) {
			break
		}
	}
	f.up.LockPresent()
	defer f.Mu.Unlock()
	if f.up.Ended() { // they are looked for when the store is opened next
		return
	}
	f.Hints.DropMissed(func() { f.Mu.Unlock(); f.up.LockPresent() })
	f.dropRowsYielding()
	f.Hints.EndWalk(f.up.Last())
	f.up.Dispatch()
}

// dropRowsYielding deletes the rows of hints that are answered, or of no use. It does
// not wait for that. It releases the lock between steps.
func (f *Found) dropRowsYielding() {
	for more := true; more; {
		var rows []storage.Row
		rows, more = f.Hints.TakeGone()
		if len(rows) > 0 && f.Spill != nil && !f.up.Closed() {
			f.Ledger.SubmitAsync(&ledger.Op{Rows: rows})
		}
		if more {
			f.Mu.Unlock()
			f.up.LockPresent()
		}
	}
}

// Scheduled is a scheduled URL with a hint.
type Scheduled struct {
	storage.TimedRecord
	Hint hint.Hint
	At   int64 // when it is due
}

// hinted is one, and what it becomes.
type hinted struct {
	Scheduled
	mark  storage.Mark
	from  record.Location // in memory
	pos   int             // or in the block being read
	next  ledger.Entry
	other bool // next is not what it was
}

// ApplyTimed applies hints to the given records of the block that is being read. The lock is
// not held.
func (f *Found) ApplyTimed(records []timed.Loaded) {
	if f.Deferred {
		return
	}
	var found []hinted
	f.Mu.Lock()
	for i := range records {
		if i%hintsListed == hintsListed-1 {
			f.Mu.Unlock()
			f.Mu.Lock()
		}
		if f.Hints.Len() == 0 {
			break
		}
		r := &records[i]
		if x, ok := f.Hints.Get(r.Mark); ok && r.At != instant.Never && !f.Core.Timed.IsBuried(r.Pos) {
			found = append(found, hinted{Scheduled: Scheduled{r.TimedRecord, x, r.At}, mark: r.Mark, pos: r.Pos})
		}
	}
	f.Mu.Unlock()
	for chunk := range slices.Chunk(found, hintsAtOnce) {
		f.forcedApart(chunk, f.replaceTimed)
	}
}

// replaceTimed replaces records of the block being read by what hints made of them.
func (f *Found) replaceTimed(found []hinted) error {
	var next []ledger.Entry
	for i := range found {
		if found[i].other {
			next = append(next, found[i].next)
		}
	}
	if err := f.up.LockWithHosts(next); err != nil {
		return err
	}
	o := &ledger.Op{}
	block := f.Core.Timed.Reading().ID
	for i := range found {
		x := &found[i]
		_, wanted := f.Hints.Get(x.mark)
		r := timed.Loaded{TimedRecord: x.TimedRecord, Mark: x.mark}
		if !wanted || f.Superseded(&r) || x.Seq <= f.Core.Deletions.Stored.Of(hostkey.Bytes(x.Host), x.Crawl).Seq {
			continue
		}
		f.Hints.Drop(x.mark)
		if !x.other {
			continue
		}
		o.Entries = append(o.Entries, x.next)
		o.ReplacedIn = append(o.ReplacedIn, x.Queue)
		o.Replaced = append(o.Replaced, storage.Completion{Seq: x.Seq, Block: block, Pos: uint16(x.pos)})
	}
	if len(o.Entries) == 0 {
		f.Mu.Unlock()
		return nil
	}
	return f.Ledger.SubmitAndUnlock(o)
}

// hintScheduled applies hints to scheduled records in memory.
func (f *Found) hintScheduled() {
	s := timed.NewScan()
	defer func() {
		f.Mu.Lock()
		defer f.Mu.Unlock()
		f.Core.Scheduled.EndScan(s)
	}()
	for done := false; !done; {
		var found []hinted
		complete := f.up.SweepInSteps(func(steps int) (stop, wait bool) {
			done = f.Core.Scheduled.Look(s, steps/fifo.PurgedRecord, func(it timeheap.Item) bool {
				if x, ok := f.hintOf(it); ok {
					found = append(found, x)
				}
				return true
			})
			return done || len(found) >= hintsAtOnce, false
		})
		if !complete {
			return // it was closed
		}
		for chunk := range slices.Chunk(found, hintsAtOnce) {
			f.forcedApart(chunk, f.replaceScheduled)
		}
	}
}

// hintOf returns a scheduled record in memory with the hint of its URL, if there is one.
func (f *Found) hintOf(it timeheap.Item) (x hinted, ok bool) {
	c := f.Core
	if it.At == instant.Never {
		return x, false
	}
	r, q := c.Records.At(arena.Ref(it.ID)), c.Queues.At(it.Aux)
	b, err := record.Decode(r.Body())
	if err != nil {
		return x, false
	}
	crawl := c.CrawlNumber(q)
	m := f.Mark(hostkey.String(c.NameOf(q.Host)), crawl, string(b.URL))
	h, ok := f.Hints.Get(m)
	if !ok || r.Seq() <= c.DeadStored(q).Seq {
		return x, false
	}
	x = hinted{Scheduled: Scheduled{Hint: h, At: it.At}, mark: m, from: c.Records.Locate(arena.Ref(it.ID))}
	x.Queue = storage.Queue{Host: string(c.NameOf(q.Host)), Crawl: crawl, Priority: q.Priority}
	x.Record = storage.Record{Seq: r.Seq(), Body: slices.Clone(r.Body())}
	return x, true
}

// replaceScheduled replaces scheduled records in memory by what hints made of them.
func (f *Found) replaceScheduled(found []hinted) error {
	if err := f.up.LockOpen(); err != nil {
		return err
	}
	c := f.Core
	jobs := ledger.Jobs{Ledger: f.Ledger}
	for i := range found {
		x := &found[i]
		_, wanted := f.Hints.Get(x.mark)
		if !wanted || !c.Records.Holds(x.from) {
			continue
		}
		n, ok := c.Scheduled.Find(x.from.Ref)
		if !ok {
			continue
		}
		if x.Seq <= c.DeadStored(c.Queues.At(c.Scheduled.Items[n].Aux)).Seq {
			continue
		}
		f.Hints.Drop(x.mark)
		if !x.other {
			continue
		}
		o := &ledger.Op{}
		f.Ledger.Unschedule(o, n)
		o.Entries = append(o.Entries, x.next)
		jobs.AddYielding(o)
	}
	return jobs.AwaitAndUnlock()
}

// forcedApart applies the hints of found, and calls replace while no call forces their
// URLs. The commit reports an error; then the hints are lost.
func (f *Found) forcedApart(found []hinted, replace func([]hinted) error) {
	held := make([]storage.Mark, 0, len(found))
	for i := range found {
		x := &found[i]
		held = append(held, x.mark)
		x.other = f.up.Guard("the code that answers hints", x.Host, func() { x.next, x.other = f.up.Answer(&x.Scheduled) }) && x.other // if it panics the URL stays as it is
	}
	f.apart(held, func() { _ = replace(found) })
}

// apart calls replace while no call forces URLs with these marks.
func (f *Found) apart(held []storage.Mark, replace func()) {
	slices.SortFunc(held, func(a, b storage.Mark) int { return bytes.Compare(a[:], b[:]) }) // as all who take several
	held = slices.Compact(held)
	for _, m := range held {
		_ = f.beginForce(patience.Forever, m)
	}
	replace()
	for _, m := range held {
		f.endForce(m)
	}
}
