// This file verifies what is known of blocks and their parts.

package frontier

import "github.com/seed-7440039f/frontier/internal/arena"

// parts checks that no part is lost and finished positions agree with blocks.
func (k *checker) parts() {
	c := k.c
	live := map[uint32]int{}
	touched := 0
	for id := uint32(1); id <= c.parts.top; id++ {
		p := c.parts.at(id)
		if p.block == 0 {
			continue
		}
		t := c.detail(p)
		if p.touched() {
			touched++
		}
		if p.touched() != (t.taken != 0) {
			k.bad("F5: part %d has taken %x, and is touched: %v", id, t.taken, p.touched())
		}
		dead := 0
		b := c.blocks.at(p.block)
		for i := range int(t.count) {
			if b == nil || c.isDead(b, int(t.first)+i) {
				dead++
				if t.taken&(1<<i) == 0 {
					k.bad("F5: position %d of part %d is finished and may be read", i, id)
				}
			}
		}
		if dead != int(t.done) {
			k.bad("F5: part %d has %d finished records, counted %d", id, dead, t.done)
		}
		live[p.block] += int(t.count) - dead
		if p.chained() != k.chained[id] {
			k.bad("F5: part %d is chained: %v", id, p.chained())
		}
		if !p.chained() && t.taken != t.all() {
			k.bad("F5: part %d has records that nobody will read", id)
		}
	}
	if touched != c.touchedParts.len() {
		k.bad("F5: %d parts are touched, counted %d", touched, c.touchedParts.len())
	}
	k.timed(live)
	for id, b := range c.blocks.all() {
		if b.live() != live[id] {
			k.bad("F5: block %d has %d live records, counted %d", id, live[id], b.live())
		}
		if b.dead != 0 {
			k.named += arena.Cost(deadHeader + len(c.deadBits(b)))
		}
		delete(live, id)
	}
	for id, n := range live {
		if n > 0 {
			k.bad("F5: block %d has %d live records and is not known", id, n)
		}
	}
}
