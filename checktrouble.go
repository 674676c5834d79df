// This file verifies what trouble.go promises.

package frontier

// troubles checks that hosts and what is known of their failures agree (F6).
func (k *checker) troubles() {
	c := k.c
	var backedOff, quarantined int64
	n := 0
	lost := map[uint32]bool{}
	for _, id := range c.lost {
		lost[id] = true
	}
	for id := uint32(1); id <= c.hosts.top; id++ {
		h := c.hosts.at(id)
		if h.nameLen == 0 {
			continue
		}
		t, ok := c.troubles[id]
		if ok != h.has(troubled) {
			k.bad("F6: host %d is in trouble: %v, counted %v", id, ok, h.has(troubled))
		}
		if !ok {
			continue
		}
		n++
		if t.listed && !lost[id] {
			k.bad("F6: host %d is to be given up, and is not listed", id)
		}
		backedOff += int64(btoi(t.step > 0))
		quarantined += int64(btoi(t.probes > 0))
		if t.over() {
			k.bad("F6: the trouble of host %d is over: %+v", id, t)
		}
	}
	if n != len(c.troubles) {
		k.bad("F6: %d hosts are in trouble, counted %d", n, len(c.troubles))
	}
	if s := c.stats; s.BackedOff != backedOff || s.Quarantined != quarantined {
		k.bad("F6: %d hosts are backed off and %d in quarantine; Stats say %d and %d", backedOff, quarantined, s.BackedOff, s.Quarantined)
	}
}
