// This file looks through what waits of one host, in steps, while others add to it
// and take from it.
//
// A walk visits first the parts on disk and then the records in memory, so that
// what is read from disk meanwhile is met at least once; nothing of a host that is
// walked is evicted, so nothing goes the other way. In memory the walk stands
// before a record; if that one leaves, the walk steps on. What waits all the while is
// met once, or twice; what comes or goes, perhaps.

package frontier

import "github.com/seed-7440039f/frontier/internal/arena"

// walkAtOnce is how many parts and records are visited under one lock.
const walkAtOnce = 512

// urlWalk is a walk through the queues of one host. It is among core.walks from
// beginWalk to endWalk.
type urlWalk struct {
	host   uint32
	queues []uint32
	part   func(q *queue, id uint32)
	record func(q *queue, ref arena.Ref) (more bool)
	rest   func() // what walkHost calls between the steps, without the lock; may be nil

	stage int      // chains of all queues, then back and front of each
	begun bool     // the stage
	last  location // in memory: the record to visit next; ref 0: none
	chain struct { // part visited last
		id, block uint32
		first     uint16
	}
	steps int // of the stage

	url   []byte // that is looked for; nil: none
	taken bool   // it was leased or moved since beginWalk
}

// beginWalk begins a walk through the queues of a host that belong to a crawl, or
// through all.
func (c *core) beginWalk(id uint32, wanted func(*queue) bool) *urlWalk {
	w := &urlWalk{host: id}
	for qid := c.hosts.at(id).queues; qid != 0; qid = c.queues.at(qid).sibling {
		if wanted == nil || wanted(c.queues.at(qid)) {
			w.queues = append(w.queues, qid)
		}
	}
	c.walks = append(c.walks, w)
	return w
}

func (c *core) endWalk(w *urlWalk) {
	for i, x := range c.walks {
		if x == w {
			c.walks[i] = c.walks[len(c.walks)-1]
			c.walks = c.walks[:len(c.walks)-1]
		}
	}
	if len(c.walks) == 0 {
		c.walks = nil
	}
	for _, qid := range w.queues {
		if c.queues.at(qid).host == w.host && w.host != 0 {
			c.trim(qid)
		}
	}
}

// walked reports whether a host is walked.
func (c *core) walked(id uint32) bool {
	for _, w := range c.walks {
		if w.host == id {
			return true
		}
	}
	return false
}

// leaves lets walks that stand before a record, which leaves its stretch, step on.
func (c *core) leaves(ref, next arena.Ref) {
	for _, w := range c.walks {
		if w.begun && w.last.ref == ref {
			w.stand(c, next)
		}
	}
}

// urlTaken tells walks that look for a record's URL that it was leased or moved.
func (c *core) urlTaken(host uint32, ref arena.Ref) {
	for _, w := range c.walks {
		if w.host == host && w.url != nil && c.hasURL(ref, w.url) {
			w.taken = true
		}
	}
}

// deleted reports whether a record is dead that a sweep may not have found yet.
func (c *core) deleted(host string, crawl uint32, seq uint64) bool {
	return c.dooms.n > 0 && seq <= c.dooms.of(bytesOf(host), crawl).seq ||
		c.stored.n > 0 && seq <= c.stored.of(bytesOf(host), crawl).seq
}

// hostEnds ends the walks of a host that is forgotten.
func (c *core) hostEnds(id uint32) {
	for _, w := range c.walks {
		if w.host == id {
			w.host = 0
		}
	}
}

func (w *urlWalk) stand(c *core, ref arena.Ref) {
	w.last = location{}
	if ref != 0 {
		w.last = c.locate(ref)
	}
}

// walk goes so many steps on, and reports whether there are more.
func (c *core) walk(w *urlWalk, left int) (more bool) {
	for w.host != 0 && w.stage < 3*len(w.queues) {
		i, on := w.stage, false
		if i < len(w.queues) {
			on = w.walkChain(c, w.queues[i], &left)
		} else {
			i -= len(w.queues)
			q := c.queues.at(w.queues[i/2])
			s := &q.back
			if i%2 == 1 {
				s = &q.front
			}
			on = w.walkStretch(c, q, s, &left)
		}
		if on {
			return w.host != 0
		}
		w.stage, w.begun, w.steps = w.stage+1, false, 0
	}
	return false
}

// walkChain visits parts, and reports whether there are more.
func (w *urlWalk) walkChain(c *core, qid uint32, left *int) bool {
	q := c.queues.at(qid)
	if q.chain == 0 {
		return false
	}
	id := c.parts.at(q.chain).next
	if w.begun { // if the part visited last has left, so have all before it
		p := c.parts.at(w.chain.id)
		if p.chained() && p.block == w.chain.block && c.detail(p).first == w.chain.first {
			if w.chain.id == q.chain {
				return false
			}
			id = p.next
		}
	}
	for w.begun = true; ; id = c.parts.at(id).next {
		p := c.parts.at(id)
		w.chain.id, w.chain.block, w.chain.first = id, p.block, c.detail(p).first
		w.part(q, id)
		*left--
		if w.steps++; id == q.chain || w.steps > int(c.parts.top) {
			return false
		}
		if *left <= 0 {
			return true
		}
	}
}

// walkStretch visits records in memory, and reports whether there are more.
func (w *urlWalk) walkStretch(c *core, q *queue, s *stretch, left *int) bool {
	if !w.begun || w.last.ref != 0 && !c.holds(w.last) {
		w.stand(c, s.first)
		w.begun = true
	}
	for w.last.ref != 0 {
		if *left <= 0 {
			return true
		}
		*left--
		ref := w.last.ref
		w.stand(c, c.record(ref).next())
		if !w.record(q, ref) {
			w.stage = 3 * len(w.queues)
			return false
		}
	}
	return false
}

// walkHost walks a host with a lock for each few steps. It begins with the lock
// held and ends without.
func (f *Frontier) walkHost(w *urlWalk) {
	for f.core.walk(w, walkAtOnce) && !f.closed {
		f.mu.Unlock()
		if w.rest != nil {
			w.rest()
		}
		f.mu.Lock()
	}
	f.core.endWalk(w)
	f.mu.Unlock()
}
