// This file verifies what delete.go and sweep.go promise.

package frontier

import "github.com/seed-7440039f/frontier/internal/arena"

// deletions checks that nothing dead is left of deletions that were swept, and
// that of the others it is at the heads of queues (F7).
func (k *checker) deletions(f *Frontier) {
	c := k.c
	if c.stored.n != len(f.deletions) {
		k.bad("F6: %d deletions have rows, counted %d", len(f.deletions), c.stored.n)
	}
	var swept dooms
	for _, d := range f.deletions {
		if d.seq == 0 || d.seq > f.seq || d.block > c.lastBlock {
			k.bad("F7: deletion %d of %d is of blocks up to %d of %d", d.seq, f.seq, d.block, c.lastBlock)
		}
		if d.swept {
			swept.add(d)
		}
	}
	for id := uint32(1); id <= c.queues.top; id++ {
		if q := c.queues.at(id); q.host != 0 {
			k.sweptQueue(id, q, swept.of(c.name(c.hosts.at(q.host)), c.crawlOf(q).id))
		}
	}
	for _, it := range c.scheduled.Items {
		q := c.queues.at(it.aux)
		if d := swept.of(c.name(c.hosts.at(q.host)), c.crawlOf(q).id); c.record(arena.Ref(it.id)).seq() <= d.seq {
			k.bad("F7: record %d is scheduled, and was deleted", it.id)
		}
	}
	dead := 0
	for id := uint32(1); id <= c.leases.top; id++ {
		if c.leases.at(id).dead != 0 {
			dead++
		}
	}
	if dead > c.doomed || f.finishing == 0 && dead != c.doomed {
		k.bad("F6: %d leases have dead records, counted %d", dead, c.doomed)
	}
}

func (k *checker) sweptQueue(id uint32, q *queue, swept doom) {
	c := k.c
	now := c.doomOf(q)
	alive := false
	see := func(deleted, dead bool) {
		switch {
		case deleted:
			k.bad("F7: queue %d has a URL that was deleted", id)
		case dead && alive:
			k.bad("F7: queue %d has a dead URL behind one that is alive", id)
		}
		alive = alive || !dead
	}
	for i, s := range [...]stretch{q.front, q.back} {
		for ref := s.first; ref != 0; ref = c.record(ref).next() {
			seq := c.record(ref).seq()
			see(seq <= swept.seq, seq <= now.seq)
		}
		if i > 0 {
			break
		}
		for pid := range c.chain(q) {
			if p := c.parts.at(pid); c.unread(p) != 0 {
				see(p.block <= swept.block, p.block <= now.block)
			}
		}
	}
}
