// This file re-admits a known URL: it looks for the one that waits, wherever it
// is, and puts the new one in its place.
//
// There is no index of URLs. Finding one reads what waits of its host, block by
// block, outside the lock. What waits for its time on disk is not looked for: see
// supersede.go.

package frontier

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/seed-7440039f/frontier/internal/arena"
)

// forceAll forces known entries, and returns how many it did. The others' errors are
// *EntryErrors: what was committed before them stays.
func (f *Frontier) forceAll(ctx context.Context, known []newEntry) (n int, refused error) {
	var errs []error
	for i := range known {
		e := &known[i]
		err := ctx.Err()
		if err == nil {
			err = f.force(ctx, *e)
		}
		if err == nil {
			n++
			continue
		}
		b, _ := decodeBody(e.body) // we encoded it
		errs = append(errs, &EntryError{Index: e.index, URL: shortened(string(b.url)), Err: err})
	}
	return n, errors.Join(errs...)
}

// force admits e, which is known, and ends the record of it that waits.
func (f *Frontier) force(ctx context.Context, e newEntry) error {
	b, err := decodeBody(e.body)
	if err != nil {
		return err
	}
	if err := f.beginForce(ctx, e.mark); err != nil {
		return err
	}
	defer f.endForce(e.mark)
	for {
		if err := f.lockWithHost(ctx, e.host); err != nil {
			return err
		}
		id := f.core.lookup(e.hash, e.host)
		if id != 0 && f.forceLeasedLocked(id, &e, b.url) {
			f.mu.Unlock()
			return nil
		}
		o := newOp()
		o.ctx = ctx
		if id != 0 && f.core.hosts.at(id).pins > 0 { // perhaps this URL is on its way to disk
			err := f.submitLocked(o) // unlocks; returns when what is on its way has arrived
			o.free()
			if err != nil {
				return err
			}
			continue
		}
		o.entries = append(o.entries, e)
		if id != 0 && !f.takeOutLocked(o, id, e.crawl, b.url) {
			if jobs := f.unreadLocked(id, e.crawl); len(jobs) > 0 {
				f.mu.Unlock()
				again, err := f.takeFromDisk(ctx, o, jobs, b.url)
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
				if !o.ends && f.core.lookup(e.hash, e.host) != id { // it left memory meanwhile
					f.mu.Unlock()
					o.free()
					continue
				}
			}
		}
		if !o.ends && !f.core.timed.empty() {
			o.noteBlock = f.core.timed.last
		}
		err := f.submitLocked(o) // unlocks
		o.free()
		return err
	}
}

// forceLeasedLocked makes a lease's URL come again after its Done, if e is of it.
func (f *Frontier) forceLeasedLocked(id uint32, e *newEntry, url []byte) bool {
	c := f.core
	for lease := range c.leasesOf(id) {
		l := c.leases.at(lease)
		if l.record == 0 || c.crawlOf(c.queues.at(l.queue)).id != e.crawl || !c.hasURL(l.record, url) {
			continue
		}
		again := *e
		again.index, again.marked, again.forcedAt = -1, false, f.seq
		again.body = append([]byte(nil), e.body...)
		l.again = &again
		return true
	}
	return false
}

func (c *core) hasURL(ref arena.Ref, url []byte) bool {
	p := c.record(ref).body()
	if !bytes.HasSuffix(p, url) {
		return false
	}
	b, err := decodeBody(p)
	return err == nil && bytes.Equal(b.url, url)
}

// takeOutLocked looks for the URL among the host's records in memory, and makes
// o the end of the one it finds.
func (f *Frontier) takeOutLocked(o *op, id uint32, crawl uint32, url []byte) bool {
	c := f.core
	for qid := c.hosts.at(id).queues; qid != 0; qid = c.queues.at(qid).sibling {
		q := c.queues.at(qid)
		if c.crawlOf(q).id != crawl {
			continue
		}
		for _, s := range [...]*stretch{&q.front, &q.back} {
			var prev arena.Ref
			for ref := s.first; ref != 0; prev, ref = ref, c.record(ref).next() {
				if !c.hasURL(ref, url) {
					continue
				}
				f.withdrawLocked(o, qid, ref, func() { c.unlink(s, prev, ref) })
				return true
			}
		}
	}
	if c.hosts.at(id).scheduled == 0 {
		return false
	}
	var of [maxPriorities + 1]uint32 // the host's queues of the crawl
	n := 0
	for qid := c.hosts.at(id).queues; qid != 0; qid = c.queues.at(qid).sibling {
		if c.crawlOf(c.queues.at(qid)).id == crawl {
			of[n] = qid
			n++
		}
	}
	for i, it := range c.scheduled.Items {
		if slices.Contains(of[:n], it.aux) && c.hasURL(arena.Ref(it.id), url) {
			c.unschedule(i)
			f.endsLocked(o, it.aux, arena.Ref(it.id))
			o.due = it.at
			return true
		}
	}
	return false
}

// unlink takes a record out of a stretch; prev is the one before it, or 0.
func (c *core) unlink(s *stretch, prev, ref arena.Ref) {
	next := c.record(ref).next()
	c.leaves(ref, next)
	if prev == 0 {
		s.first = next
	} else {
		c.record(prev).setNext(next)
	}
	if next == 0 {
		s.last = prev
	}
	c.record(ref).setNext(0)
}

// withdrawLocked makes o the end of a waiting record, which remove takes out of
// its queue.
func (f *Frontier) withdrawLocked(o *op, qid uint32, ref arena.Ref, remove func()) {
	c := f.core
	q := c.queues.at(qid)
	h := c.hosts.at(q.host)
	c.urlTaken(q.host, ref)
	f.endsLocked(o, qid, ref)
	switch h.place {
	case leased, loading, called:
		remove()
		c.counted(q, -1)
	default: // its place depends on which of its queues have URLs, and whether any
		served := h.served
		c.detach(q.host)
		remove()
		c.counted(q, -1)
		h.served = served
		c.settle(q.host, f.nowLocked())
	}
}

// endsLocked makes o the end of a record.
func (f *Frontier) endsLocked(o *op, qid uint32, ref arena.Ref) {
	o.ends, o.record, o.queue, o.host = true, ref, qid, f.core.queues.at(qid).host
	f.core.hosts.at(o.host).pins++
}

// unreadLocked lists the parts on disk in which URLs of the host wait.
func (f *Frontier) unreadLocked(id uint32, crawl uint32) []loadJob {
	c := f.core
	var jobs []loadJob
	for qid := c.hosts.at(id).queues; qid != 0; qid = c.queues.at(qid).sibling {
		q := c.queues.at(qid)
		if c.crawlOf(q).id != crawl {
			continue
		}
		for pid := range c.chain(q) {
			if want := c.unread(c.parts.at(pid)); want != 0 {
				jobs = append(jobs, *f.jobLocked(choice{host: id, queue: qid, load: pid, want: want}))
			}
		}
	}
	return jobs
}

// takeFromDisk looks for the URL in parts on disk. If it finds it, o becomes the
// end of its record, unless it was taken meanwhile: then all must be looked at
// again.
func (f *Frontier) takeFromDisk(ctx context.Context, o *op, jobs []loadJob, url []byte) (again bool, err error) {
	for _, job := range jobs {
		records, err := f.readFor(ctx, job.part, job.want)
		if err != nil {
			return false, err
		}
		for _, r := range records {
			if b, _ := decodeBody(r.body); !bytes.Equal(b.url, url) {
				continue
			}
			f.mu.Lock()
			defer f.mu.Unlock()
			c := f.core
			p := c.parts.at(job.load)
			if p.block != job.part.Block || c.detail(p).first != job.part.First || c.unread(p)&(1<<r.pos) == 0 {
				return true, nil
			}
			ref := c.store(r.seq, r.body)
			c.setHome(ref, job.load, r.pos)
			f.withdrawLocked(o, job.queue, ref, func() {})
			return false, nil
		}
	}
	return false, nil
}

// beginForce waits until no other call forces the URL: neither would see the
// other's record, which is on its way to disk.
func (f *Frontier) beginForce(ctx context.Context, m Mark) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.forcing[m] != nil {
		other := f.forcing[m]
		f.mu.Unlock()
		_, err := ask(ctx, f, func() (struct{}, error) { return <-other, nil })
		f.mu.Lock()
		if err != nil {
			return err
		}
	}
	f.forcing[m] = make(chan struct{})
	return nil
}

func (f *Frontier) endForce(m Mark) {
	f.mu.Lock()
	defer f.mu.Unlock()
	close(f.forcing[m])
	delete(f.forcing, m)
}
