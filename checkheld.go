// This file verifies what is said of hosts in place held, and of the rules that
// keep them there.

package frontier

// heldHosts checks that the tree and the counts of held hosts are those of the
// hosts in place held (F2, F3, F6), and that hosts with nothing to do are not.
func (k *checker) heldHosts() {
	x := &k.c.held
	if x.hosts != k.held.hosts || x.urls != k.held.urls {
		k.bad("F6: %v hosts with %v URLs are held; counted %v, %v", k.held.hosts, k.held.urls, x.hosts, x.urls)
	}
	n, last := 0, ""
	if x.tree != nil {
		x.tree.Ascend(func(id uint32) bool {
			h := k.c.hosts.at(id)
			key := string(k.c.orderKey(nil, id))
			if h.place != held || n > 0 && key <= last {
				k.bad("F2: host %d, %q, in place %d, is among the held behind %q", id, key, h.place, last)
			}
			last = key
			n++
			return true
		})
	}
	if n != k.places[held] {
		k.bad("F2: %d hosts are held, %d in order", k.places[held], n)
	}
}

// rules checks that the table of rules counts right, and that blocks are in order
// of their ends (F3).
func (k *checker) rules() {
	t := k.c.controls.table.Load()
	if t == nil {
		return
	}
	var n [fieldCount]int
	blocks := 0
	t.tree.Ascend(func(r *scopeRule) bool {
		for i := range ruleFields {
			n[i] += btoi(ruleFields[i].set(&r.Rule))
		}
		if r.empty() || r.scope.ruleKey() != r.key {
			k.bad("F3: the rule of %v lies under %q: %v", r.scope, r.key, r.Rule)
		}
		if r.BlockedUntil.IsZero() != (r.until == 0) {
			k.bad("F3: the rule of %v blocks until %v and %d", r.scope, r.BlockedUntil, r.until)
		}
		if r.until != 0 {
			blocks++
			if k.c.held.blocks == nil || !k.c.held.blocks.Has(r) {
				k.bad("F3: the block of %v has no end", r.scope)
			}
		}
		return true
	})
	if n != t.n {
		k.bad("F6: rules set %v settings, counted %v", n, t.n)
	}
	if k.c.held.blocks != nil && k.c.held.blocks.Len() != blocks {
		k.bad("F3: %d blocks, %d have an end", blocks, k.c.held.blocks.Len())
	}
}
