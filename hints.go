// This file applies what changes about a known URL when it is found again: hints, and a Riser's word about
// one that waits.
//
// There is no index of scheduled URLs; it would take more memory than everything else about them. So
// package hint collects hints, each with a row on disk, and one walk through all scheduled URLs, in
// memory and on disk, applies them together. Blocks that are read because they are due are checked,
// too. A changed URL replaces its record in one commit. Nor is there one of waiting URLs: package rise
// notes which deserve more, and one walk through the queues of a host finds them.

package frontier

import (
	"bytes"
	"slices"
	"time"

	"github.com/seed-7440039f/frontier/internal/arena"
	"github.com/seed-7440039f/frontier/internal/fifo"
	"github.com/seed-7440039f/frontier/internal/hint"
	"github.com/seed-7440039f/frontier/internal/hostkey"
	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/internal/ledger"
	"github.com/seed-7440039f/frontier/internal/patience"
	"github.com/seed-7440039f/frontier/internal/record"
	"github.com/seed-7440039f/frontier/internal/rise"
	"github.com/seed-7440039f/frontier/internal/timed"
	"github.com/seed-7440039f/frontier/internal/timeheap"
	"github.com/seed-7440039f/frontier/internal/view"
	"github.com/seed-7440039f/frontier/storage"
)

const (
	// hintsAtOnce is how many of the found are answered in one commit or round of commits.
	hintsAtOnce = 64
	// hintsListed is how many are looked at under one lock.
	hintsListed = 1024
)

// hintLocked keeps e, a hint for a known URL, and reports whether there is room for it. With a Spill its
// row goes with o.
func (f *Frontier) hintLocked(o *op, e *ledger.Entry) bool {
	b := record.Must(e.Body)
	if f.hints.Len() == 0 {
		f.nowLocked()
	}
	h, ok := f.hints.Add(e.Mark, hint.New(&b, instant.FromMillis(e.News)), f.last, f.opts.MemoryBudget/64)
	if !ok {
		o.refuse(e.Index, EntryRefused, &EntryError{Index: e.Index, URL: shortened(string(b.URL)), Err: ErrHints})
		return false
	}
	o.verdict(e.Index, EntryHinted)
	if f.opts.Spill != nil {
		o.Rows = append(o.Rows, h.Row(e.Mark))
	}
	return true
}

// hintsDueLocked is when the next walk may begin; never if there is nothing to find.
func (s *shard) hintsDueLocked() int64 {
	if s.opts.DeferHints {
		return instant.Never
	}
	return s.hints.Due(s.core.Timed.Due(), s.core.Scheduled.Len())
}

// startHintsLocked begins a walk if it is time.
func (f *Frontier) startHintsLocked() {
	if f.closed || f.draining || f.hintsDueLocked() > f.last {
		return
	}
	f.hints.BeginWalk()
	f.sweepers.Go(func() {
		f.walkHints()
	})
}

// walkHints looks for all URLs that had hints when the walk began: first in memory, since
// records move from there to disk.
func (f *Frontier) walkHints() {
	f.hintScheduled()
	l := f.listTimed()
	f.mu.Lock()
	f.core.Timed.EndList(l)
	f.mu.Unlock()
	var blocks []uint32
	for _, it := range l.All() {
		if it.At != instant.Never {
			blocks = append(blocks, it.ID)
		}
	}
	slices.Sort(blocks)
	for _, id := range blocks {
		if !f.hintBlock(id) {
			break
		}
	}
	f.lock()
	defer f.mu.Unlock()
	if f.closed || f.draining { // they are looked for when the store is opened next
		return
	}
	f.hints.DropMissed(func() { f.mu.Unlock(); f.lock() })
	f.dropHintRowsYieldingLocked()
	f.hints.EndWalk(f.last)
	f.dispatchLocked()
}

// dropHintRowsYieldingLocked deletes the rows of hints that are answered, or of no use. It does
// not wait for that. It releases the lock between steps.
func (f *Frontier) dropHintRowsYieldingLocked() {
	for more := true; more; {
		var rows []storage.Row
		rows, more = f.hints.TakeGone()
		if len(rows) > 0 && f.opts.Spill != nil && !f.closed {
			o := newOp()
			o.Rows = append(o.Rows, rows...)
			f.submitAsyncLocked(o, whenever)
		}
		if more {
			f.mu.Unlock()
			f.lock()
		}
	}
}

// hintBlock reads a timed block for the sake of hints, if it is still unread. It
// reports whether the walk may go on.
func (f *Frontier) hintBlock(id uint32) bool {
	f.reader <- struct{}{}
	defer func() { <-f.reader }()
	f.mu.Lock()
	t := &f.core.Timed
	if f.closed || f.draining || f.hints.Len() == 0 {
		f.mu.Unlock()
		return false
	}
	it := t.BeginBlock(id)
	f.mu.Unlock()
	if it.ID != 0 {
		f.readBlock(it, true)
	}
	return true
}

// hinted is a scheduled URL with a hint, and what it becomes.
type hinted struct {
	hint hint.Hint
	storage.TimedRecord
	mark  storage.Mark
	at    int64           // when it is due
	from  record.Location // in memory
	pos   int             // or in the block being read
	next  ledger.Entry
	other bool // next is not what it was
}

// hintTimed applies hints to the given records of the block that is being read.
func (f *Frontier) hintTimed(records []timed.Loaded) {
	if f.opts.DeferHints {
		return
	}
	var found []hinted
	f.mu.Lock()
	for i := range records {
		if i%hintsListed == hintsListed-1 {
			f.yield()
		}
		if f.hints.Len() == 0 {
			break
		}
		r := &records[i]
		if x, ok := f.hints.Get(r.Mark); ok && r.At != instant.Never && !f.core.Timed.IsBuried(r.Pos) {
			found = append(found, hinted{hint: x, TimedRecord: r.TimedRecord, mark: r.Mark, at: r.At, pos: r.Pos})
		}
	}
	f.mu.Unlock()
	for chunk := range slices.Chunk(found, hintsAtOnce) {
		f.forcedApart(chunk, func(o *op) error { return f.replaceTimed(o, chunk) })
	}
}

// replaceTimed replaces records of the block being read by what hints made of them.
func (f *Frontier) replaceTimed(o *op, found []hinted) error {
	for i := range found {
		if found[i].other {
			o.Entries = append(o.Entries, found[i].next)
		}
	}
	for {
		if err := f.lockOpen(); err != nil {
			return err
		}
		if f.core.Dormant.Rows() == 0 || !f.hostsAbsentLocked(o) {
			break
		}
		f.mu.Unlock()
		if err := f.readHosts(o); err != nil {
			return err
		}
	}
	o.Entries = o.Entries[:0]
	block := f.core.Timed.Reading().ID
	for i := range found {
		x := &found[i]
		_, wanted := f.hints.Get(x.mark)
		r := timed.Loaded{TimedRecord: x.TimedRecord, Mark: x.mark}
		if !wanted || f.supersededLocked(&r) || x.Seq <= f.core.Deletions.Stored.Of(hostkey.Bytes(x.Host), x.Crawl).Seq {
			continue
		}
		f.hints.Drop(x.mark)
		if !x.other {
			continue
		}
		o.Entries = append(o.Entries, x.next)
		o.ReplacedIn = append(o.ReplacedIn, x.Queue)
		o.Replaced = append(o.Replaced, storage.Completion{Seq: x.Seq, Block: block, Pos: uint16(x.pos)})
	}
	if len(o.Entries) == 0 {
		f.mu.Unlock()
		return nil
	}
	return f.ledger.SubmitAndUnlock(&o.Op)
}

// hintScheduled applies hints to scheduled records in memory.
func (f *Frontier) hintScheduled() {
	s := timed.NewScan()
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.core.Scheduled.EndScan(s)
	}()
	for done := false; !done; {
		var found []hinted
		complete := f.sweepInSteps(func(steps int) (stop, wait bool) {
			done = f.core.Scheduled.Look(s, steps/fifo.PurgedRecord, func(it timeheap.Item) bool {
				if x, ok := f.hintOfLocked(it); ok {
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
			f.forcedApart(chunk, func(*op) error { return f.replaceScheduled(chunk) })
		}
	}
}

// hintOfLocked returns a scheduled record in memory with the hint of its URL, if there is one.
func (s *shard) hintOfLocked(it timeheap.Item) (x hinted, ok bool) {
	c := s.core
	if it.At == instant.Never {
		return x, false
	}
	r, q := c.Records.At(arena.Ref(it.ID)), c.Queues.At(it.Aux)
	b, err := record.Decode(r.Body())
	if err != nil {
		return x, false
	}
	crawl := c.CrawlNumber(q)
	m := s.markOf(hostkey.String(c.NameOf(q.Host)), crawl, string(b.URL))
	h, ok := s.hints.Get(m)
	if !ok || r.Seq() <= c.DeadStored(q).Seq {
		return x, false
	}
	x = hinted{hint: h, mark: m, at: it.At, from: c.Records.Locate(arena.Ref(it.ID))}
	x.Queue = storage.Queue{Host: string(c.NameOf(q.Host)), Crawl: crawl, Priority: q.Priority}
	x.Record = storage.Record{Seq: r.Seq(), Body: slices.Clone(r.Body())}
	return x, true
}

// replaceScheduled replaces scheduled records in memory by what hints made of them.
func (f *Frontier) replaceScheduled(found []hinted) error {
	if err := f.lockOpen(); err != nil {
		return err
	}
	c := f.core
	jobs := replacements{f: f}
	for i := range found {
		x := &found[i]
		_, wanted := f.hints.Get(x.mark)
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
		f.hints.Drop(x.mark)
		if !x.other {
			continue
		}
		o := newOp()
		f.ledger.Unschedule(&o.Op, n)
		o.Entries = append(o.Entries, x.next)
		jobs.addYieldingLocked(o)
	}
	return jobs.awaitAndUnlock()
}

// forcedApart applies the hints of found, and calls replace while no call forces their
// URLs. The commit reports an error; then the hints are lost.
func (f *Frontier) forcedApart(found []hinted, replace func(o *op) error) {
	now := f.opts.Clock.Now()
	o := newOp()
	defer o.free()
	held := make([]storage.Mark, 0, len(found))
	for i := range found {
		x := &found[i]
		held = append(held, x.mark)
		x.other = f.guard("the code that answers hints", x.Host, func() { f.ask(x, now) }) && x.other // if it panics the URL stays as it is
	}
	f.apart(held, func() { _ = replace(o) })
}

// apart calls replace while no call forces URLs with these marks.
func (f *Frontier) apart(held []storage.Mark, replace func()) {
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

// ask applies a hint to a scheduled URL.
func (s *shard) ask(x *hinted, now time.Time) {
	b, err := record.Decode(x.Body)
	if err != nil {
		return // it was checked
	}
	was := b
	b.Weight = hint.Heavier(b.Weight, x.hint.Weight)
	b.Depth = min(b.Depth, x.hint.Depth)
	at := s.day(x.at)
	known := Entry{URL: string(b.URL), Depth: b.Depth, Weight: b.Weight, NotBefore: at, Meta: b.Meta, Crawl: x.Crawl}
	if b.Named {
		known.Host = x.Host
	}
	due := at
	if b.Fails == 0 { // else it is the retry policy's
		if hinter, ok := s.opts.Scheduler.(Hinter); ok {
			found := Entry{URL: known.URL, Host: known.Host, Crawl: x.Crawl, Depth: x.hint.Depth, Weight: x.hint.Weight, Meta: x.hint.Meta, NotBefore: x.hint.NotBefore}
			h := hinter.Hint(known, found, x.Host, historyOf(&b.History), now)
			if !h.Due.IsZero() {
				due = h.Due
			}
			b.History.State = h.Keep
			if h.Meta != nil && len(h.Meta) <= MaxMeta {
				b.Meta = h.Meta
			}
		} else if t := x.hint.NotBefore; !t.IsZero() && t.Before(at) {
			due = t
		}
	}
	known.Meta = b.Meta
	p := x.Priority
	if p != Immediate {
		if asked, err := s.priority(known, historyOf(&b.History)); err == nil { // else it keeps its priority
			p = asked
		}
	}
	n := &x.next
	*n = ledger.Entry{Index: -1, Hash: s.core.HashOf(x.Host), Host: x.Host, Crawl: x.Crawl, Priority: p, Due: x.at, ForcedAt: x.Seq}
	if !due.Equal(at) {
		n.Due = s.dueDate(due)
	}
	if n.Due <= s.date(now) {
		n.Due = 0
	}
	x.other = n.Due != x.at || p != x.Priority || b.Weight != was.Weight || b.Depth != was.Depth ||
		b.History.State != was.History.State || string(b.Meta) != string(was.Meta)
	n.Body = b.Append(nil)
}

// risers raise waiting URLs that deserve more. The notes are guarded by shard.mu.
type risers struct {
	rise.Notes
	f  *Frontier
	by Riser // nil: hints alone raise URLs

	better []rising // of the round of walks under way
	held   []storage.Mark
	moved  int64
}

// rising is a URL that waits, and what it becomes.
type rising struct {
	*rise.Found
	next ledger.Entry
}

// foundAgain is a known URL that deserves a priority if it waits.
type foundAgain struct {
	*ledger.Entry
	deserves uint8
	said     rise.Hint
}

// tell notes which known URLs that were found again may deserve more: the Riser says so, or a hint with a
// Weight.
func (r *risers) tell(o *op) {
	f := r.f
	if o.Left {
		return
	}
	var better []foundAgain
	for i := range o.found {
		e := &o.found[i]
		b, p := record.Must(e.Body), 0
		if r.by != nil {
			x := entryAt(e.URL, &b, e.Host)
			x.Crawl = e.Crawl
			p = min(r.by.Found(x), f.opts.Priorities)
		}
		said := rise.Hint{}
		if e.Hint && b.Weight > 0 && !f.opts.DeferHints {
			said = rise.Hint{Level: e.Priority, Weight: b.Weight, Depth: b.Depth}
		}
		if p = max(p, int(said.Level)); p > 0 {
			better = append(better, foundAgain{e, uint8(p), said})
		}
	}
	if len(better) == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range better {
		if i%ledger.AtOnce == ledger.AtOnce-1 {
			f.yield()
		}
		e := &better[i]
		if id := f.core.Lookup(e.Hash, e.Host); id != 0 && f.core.Hosts.At(id).Waiting > 0 {
			r.Add(f.last, id, e.Mark, e.deserves, e.said, int(f.core.Hosts.At(id).Waiting), f.core.TopPriority(id))
		}
	}
	f.dispatchLocked()
}

// round searches hosts for URLs that deserve more, and moves them: those of several hosts in one commit.
func (r *risers) round() {
	f := r.f
	f.lock()
	began := f.last
	for f.refusalLocked() == nil {
		w := r.Next(f.core, f.markOf)
		if w == nil {
			break
		}
		f.mu.Unlock()
		r.search(w)
		f.lock()
		r.Ended(w)
	}
	f.mu.Unlock()
	r.raise()
	f.lock()
	r.End(began, f.last)
	f.core.Stats.Risen += r.moved
	r.moved = 0
	f.dispatchLocked()
	f.mu.Unlock()
}

// walkHostAndUnlock walks a host in steps of view.AtOnce, and calls rest without the lock between them.
func (s *shard) walkHostAndUnlock(w *fifo.Walk, rest func()) {
	for s.core.Fifo.Step(w, view.AtOnce) && !s.closed {
		s.mu.Unlock()
		rest()
		s.mu.Lock()
	}
	s.core.EndWalk(w)
	s.mu.Unlock()
}

// search finds the noted URLs of a host that deserve more.
func (r *risers) search(w *rise.Walk) {
	f := r.f
	prepare := func() { r.ask(w); w.MakeRoom() }
	prepare()
	f.mu.Lock()
	f.walkHostAndUnlock(w.Walk, prepare)
	for i := range w.Parts {
		prepare()
		p := &w.Parts[i]
		records, err := f.readFor(patience.Forever, p.Part, p.Want)
		if err == nil && !w.Read(p, records) { // what is damaged is reported when its turn comes
			break
		}
	}
	r.ask(w)
}

// ask asks the policies what becomes of the URLs that were found.
func (r *risers) ask(w *rise.Walk) {
	f, found := r.f, w.Found
	if w.Found = nil; len(found) == 0 {
		return
	}
	f.guard("the code that raises URLs", w.Host, func() {
		for i := range found {
			if next, ok := r.next(&found[i], w.Host); ok {
				r.better, r.held = append(r.better, rising{&found[i], next}), append(r.held, found[i].Mark)
			}
		}
	})
	if len(r.better) >= hintsAtOnce {
		r.raise()
	}
}

// next returns what becomes of a URL, and reports whether it rises.
func (r *risers) next(x *rise.Found, host string) (next ledger.Entry, ok bool) {
	f, b := r.f, record.Must(x.Body)
	least := uint8(0)
	if x.Hint.Level > 0 {
		b.Weight, b.Depth = hint.Heavier(b.Weight, x.Hint.Weight), min(b.Depth, x.Hint.Depth)
		if b.History.Visits == 0 { // else the Prioritizer did not know of the visits
			least = x.Hint.Level
		}
	}
	e := entryOf(&b, host)
	e.Crawl = x.Crawl
	if r.by != nil {
		b.Weight = r.by.Rise(e)
		e.Weight = b.Weight
	}
	p, err := f.priority(e, historyOf(&b.History))
	if p = max(p, least); err != nil || p <= x.Priority {
		return next, false
	}
	return ledger.Entry{Index: -1, Hash: f.core.HashOf(host), Host: host, Crawl: x.Crawl, Mark: x.Mark, Priority: p, ForcedAt: x.Seq, Body: b.Append(nil)}, true
}

// raise moves what rises.
func (r *risers) raise() {
	f, jobs, moved := r.f, replacements{f: r.f}, int64(0)
	f.apart(r.held, func() {
		if len(r.better) == 0 || f.lockOpen() != nil {
			return
		}
		for i := range r.better {
			x := &r.better[i]
			if f.core.Deleted(x.next.Host, x.Crawl, x.Seq) {
				continue
			}
			if queue, ref, remove, ok := x.Take(f.core); ok {
				o := newOp()
				f.ledger.Withdraw(&o.Op, queue, ref, remove)
				o.Entries = append(o.Entries, x.next)
				f.hints.Drop(x.Mark)
				moved++
				jobs.addYieldingLocked(o)
			}
		}
		if jobs.awaitAndUnlock() == nil {
			r.moved += moved
		}
	})
	r.better, r.held = nil, nil
}
