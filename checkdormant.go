// This file verifies what dormant.go promises.

package frontier

// departures checks that each host that may leave will do so, and that no row is
// overlooked (F9).
func (k *checker) departures() {
	c := k.c
	queued := map[uint32]bool{}
	number := c.departures.popped
	for _, part := range [][]departure{c.departures.out[c.departures.next:], c.departures.in} {
		for _, x := range part {
			h := c.hosts.at(x.host)
			if h.place == departing && h.pos == int32(number&(1<<31-1)) {
				queued[x.host] = true
			}
			number++
		}
	}
	for _, id := range c.unwritten {
		h := c.hosts.at(id)
		if h.place == departing && h.pos == unwrittenPos {
			queued[id] = true
		}
	}
	for id := uint32(1); id <= c.hosts.top; id++ {
		h := c.hosts.at(id)
		if h.nameLen == 0 {
			continue
		}
		if h.place == departing && (!queued[id] || h.pins > 0 || h.scheduled > 0) {
			k.bad("F9: host %d will not leave: queued %v, %d pins, %d scheduled", id, queued[id], h.pins, h.scheduled)
		}
		if h.has(stored) && !c.rows.Has(c.hash(c.name(h))) {
			k.bad("F9: the row of host %d will not be found", id)
		}
		if h.learned() && c.cfg.spill && !h.has(stored) && !h.has(unsaved|behind) {
			k.bad("F9: what host %d learned will be forgotten", id)
		}
	}
}
