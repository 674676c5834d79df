// This file verifies the data about blocks and their parts.

package block

import (
	"maps"

	"github.com/seed-7440039f/frontier/internal/arena"
)

// Check verifies that no part is lost and that finished positions agree with blocks, and reports
// violations. chained are the parts in chains, live is the number of live records in no part, for
// each known block. Unless quiet, records are being moved: of parts just added none is taken or chained yet.
func (t *Table) Check(chained map[uint32]bool, live map[uint32]int, quiet bool, bad func(format string, args ...any)) {
	live = maps.Clone(live)
	if live == nil {
		live = map[uint32]int{}
	}
	touched := 0
	for id := uint32(1); id <= t.parts.Top; id++ {
		p := t.parts.At(id)
		if p.block == 0 {
			continue
		}
		d := t.detail(p)
		if p.touched() {
			touched++
		}
		if p.touched() != (d.taken != 0) {
			bad("F5: part %d has taken %x, and is touched: %v", id, d.taken, p.touched())
		}
		dead := 0
		for i := range int(d.count) {
			if t.IsDead(p.block, int(d.first)+i) {
				dead++
				if d.taken&(1<<i) == 0 {
					bad("F5: position %d of part %d is finished and may be read", i, id)
				}
			}
		}
		if dead != int(d.done) {
			bad("F5: part %d has %d finished records, counted %d", id, dead, d.done)
		}
		live[p.block] += int(d.count) - dead
		if p.chained() != chained[id] {
			bad("F5: part %d is chained: %v", id, p.chained())
		}
		if !p.chained() && d.taken != d.all() && (quiet || d.taken != 0) {
			bad("F5: part %d has records that are in no chain", id)
		}
	}
	if touched != t.touched.Len() {
		bad("F5: %d parts are touched, counted %d", touched, t.touched.Len())
	}
	used := int64(0)
	for id, b := range t.blocks.all() {
		if b.live() != live[id] {
			bad("F5: block %d has %d live records, counted %d", id, live[id], b.live())
		}
		if b.dead != 0 {
			used += arena.Cost(deadHeader + len(t.deadBits(b)))
		}
		delete(live, id)
	}
	for id, n := range live {
		if n > 0 {
			bad("F5: block %d has %d live records and is not known", id, n)
		}
	}
	if used != t.bitmaps.Used() {
		bad("F5: %d bytes of bitmaps; the arena has %d in use", used, t.bitmaps.Used())
	}
}
