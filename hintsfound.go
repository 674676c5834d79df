// This file answers hints: what the URLs that were found become, and how their
// records are replaced.

package frontier

import (
	"bytes"
	"slices"
	"time"

	"github.com/seed-7440039f/frontier/internal/arena"
)

// hinted is a scheduled URL of which there is a hint, and what it becomes.
type hinted struct {
	hint
	TimedRecord
	mark Mark
	at   int64    // when it is due
	from location // in memory
	pos  int      // or in the block being read

	next  newEntry
	other bool // next is not what it was
}

// hintTimed answers the hints of the block that is being read, whose records are
// those.
func (f *Frontier) hintTimed(records []timedLoaded) {
	if f.opts.HoldHints {
		return
	}
	var found []hinted
	f.mu.Lock()
	for i := range records {
		if i%hintsListed == hintsListed-1 {
			f.mu.Unlock()
			f.mu.Lock()
		}
		if len(f.hints.at) == 0 {
			break
		}
		r := &records[i]
		if x, ok := f.hints.at[r.mark]; ok && !f.core.isBuried(f.core.timed.reading.id, r.pos) {
			found = append(found, hinted{hint: x, TimedRecord: r.TimedRecord, mark: r.mark, at: r.at, pos: r.pos})
		}
	}
	f.mu.Unlock()
	for chunk := range slices.Chunk(found, hintsAtOnce) {
		f.forcedApart(chunk, func(o *op) error { return f.replaceTimed(o, chunk) })
	}
}

// replaceTimed puts the records that the found have become in the places of those in
// the block being read.
func (f *Frontier) replaceTimed(o *op, found []hinted) error {
	for i := range found {
		o.entries = append(o.entries, found[i].next)
	}
	for {
		if err := f.lockOpen(); err != nil {
			return err
		}
		if !f.hostsAbsentLocked(o) {
			break
		}
		f.mu.Unlock()
		if err := f.readHosts(o); err != nil {
			return err
		}
	}
	o.entries = o.entries[:0]
	block := f.core.timed.reading.id
	for i := range found {
		x := &found[i]
		_, wanted := f.hints.at[x.mark]
		r := timedLoaded{TimedRecord: x.TimedRecord, mark: x.mark}
		if !wanted || f.supersededLocked(&r) || x.Seq <= f.core.stored.of(bytesOf(x.Host), x.Crawl).seq {
			continue
		}
		f.hints.drop(x.mark)
		if !x.other {
			continue
		}
		o.entries = append(o.entries, x.next)
		o.replaced = append(o.replaced, Completion{Seq: x.Seq, Block: block, Pos: uint16(x.pos)})
	}
	if len(o.entries) == 0 {
		f.mu.Unlock()
		return nil
	}
	return f.submitLocked(o) // unlocks
}

// replacedLocked finishes records of the block being read.
func (f *Frontier) replacedLocked(o *op) {
	c := f.core
	it := &c.timed.reading
	for _, x := range o.replaced {
		c.bury(x.Block, timedLive(*it), int(x.Pos))
		c.stats.Scheduled--
		it.aux--
	}
}

// hintScheduled answers the hints of what is scheduled in memory.
func (f *Frontier) hintScheduled() {
	s := &scan{cursor: -1}
	defer f.endScan(s)
	for done := false; !done; {
		var found []hinted
		complete := f.sweepInSteps(func(steps int) (stop, wait bool) {
			done = f.hintedInMemoryLocked(s, steps/sweptRecord, &found)
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

// hintedInMemoryLocked goes on with a walk through the heap, for n records, and
// appends those that there are hints of. It reports whether it is at its end.
func (f *Frontier) hintedInMemoryLocked(s *scan, n int, found *[]hinted) bool {
	for ; n > 0; n-- {
		i, more := f.core.nextScanned(s)
		if !more {
			return true
		}
		if i < 0 {
			continue
		}
		if x, ok := f.hintOfLocked(f.core.scheduled.Items[i]); ok {
			*found = append(*found, x)
		}
	}
	return false
}

// hintOfLocked returns a scheduled record in memory with the hint of its URL, if there
// is one.
func (f *Frontier) hintOfLocked(it timeItem) (x hinted, ok bool) {
	c := f.core
	r, q := c.record(arena.Ref(it.id)), c.queues.at(it.aux)
	b, err := decodeBody(r.body())
	if err != nil {
		return x, false
	}
	crawl := c.crawlOf(q).id
	m := f.markOf(crawl, string(b.url))
	h, ok := f.hints.at[m]
	if !ok || r.seq() <= c.condemned(q).seq {
		return x, false
	}
	x = hinted{hint: h, mark: m, at: it.at, from: c.locate(arena.Ref(it.id))}
	x.Queue = Queue{Host: string(c.name(c.hosts.at(q.host))), Crawl: crawl, Priority: q.priority}
	x.Record = Record{Seq: r.seq(), Body: slices.Clone(r.body())}
	return x, true
}

// replaceScheduled puts the records that the found have become in their places.
func (f *Frontier) replaceScheduled(found []hinted) error {
	if err := f.lockOpen(); err != nil {
		return err
	}
	c := f.core
	var jobs []*op
	for i := range found {
		x := &found[i]
		_, wanted := f.hints.at[x.mark]
		if !wanted || !c.holds(x.from) {
			continue
		}
		n, ok := c.scheduledAt(x.from.ref)
		if !ok {
			continue
		}
		it := c.scheduled.Items[n]
		if x.Seq <= c.condemned(c.queues.at(it.aux)).seq {
			continue
		}
		f.hints.drop(x.mark)
		if !x.other {
			continue
		}
		o := newOp()
		c.unschedule(n)
		f.endsLocked(o, it.aux, x.from.ref)
		o.due = it.at
		o.entries = append(o.entries, x.next)
		f.finishing++
		if f.opts.Spill == nil {
			f.applyLocked(o)
			f.finishing--
			o.free()
			continue
		}
		f.enqueueLocked(o)
		jobs = append(jobs, o)
	}
	f.dispatchLocked()
	f.mu.Unlock()
	var err error
	for _, o := range jobs {
		if e := <-o.done; e != nil {
			err = e
		}
		o.free()
	}
	return err
}

// forcedApart asks what becomes of the found, and calls replace while nobody forces
// their URLs. An error was told of by who commits; then the hints are lost.
func (f *Frontier) forcedApart(found []hinted, replace func(o *op) error) {
	now := f.opts.Clock.Now()
	o := newOp()
	defer o.free()
	for i := range found {
		f.answer(&found[i], now)
	}
	held := make([]Mark, 0, len(found))
	for i := range found {
		held = append(held, found[i].mark)
	}
	slices.SortFunc(held, func(a, b Mark) int { return bytes.Compare(a[:], b[:]) }) // as everybody who takes several
	held = slices.Compact(held)
	for _, m := range held {
		_ = f.beginForce(patient, m)
	}
	_ = replace(o)
	for _, m := range held {
		f.endForce(m)
	}
}

// answer finds out what becomes of a scheduled URL. It asks code of the user's.
func (f *Frontier) answer(x *hinted, now time.Time) {
	b, err := decodeBody(x.Body)
	if err != nil {
		return // it was checked
	}
	was := b
	b.weight = max(b.weight, x.entry.Weight)
	b.depth = min(b.depth, x.entry.Depth)
	at := f.day(x.at)
	known := Entry{URL: string(b.url), Depth: b.depth, Weight: b.weight, NotBefore: at, Meta: b.meta, Crawl: x.Crawl}
	due := at
	if b.fails == 0 { // else it is the retry policy's
		if f.hinter != nil {
			found := x.entry
			found.URL, found.Crawl = known.URL, x.Crawl
			h := f.hinter.Hint(known, found, x.Host, b.history, now)
			if !h.Due.IsZero() {
				due = h.Due
			}
			b.history.State = h.Keep
			if h.Meta != nil && len(h.Meta) <= MaxMeta {
				b.meta = h.Meta
			}
		} else if t := x.entry.NotBefore; !t.IsZero() && t.Before(at) {
			due = t
		}
	}
	known.Meta = b.meta
	p := x.Priority
	if p != Immediate {
		if asked, err := f.priority(known, b.history); err == nil { // else it keeps its priority
			p = asked
		}
	}
	n := &x.next
	*n = newEntry{index: -1, hash: f.hostHash(x.Host), host: x.Host, crawl: x.Crawl, priority: p, due: x.at, forcedAt: x.Seq}
	if !due.Equal(at) {
		n.due = f.dueDate(due)
	}
	if n.due <= f.date(now) {
		n.due = 0
	}
	x.other = n.due != x.at || p != x.Priority || b.weight != was.weight || b.depth != was.depth ||
		b.history.State != was.history.State || string(b.meta) != string(was.meta)
	n.body = b.append(nil)
}
