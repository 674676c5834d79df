// This file verifies what is counted for limits.

package frontier

// limits checks that what waits of domains, and whatever else can be walked, is
// counted right (F6), and that the ends of periods are those of who waits for them
// (F3).
func (k *checker) limits(f *Frontier) {
	c := k.c
	b := c.limits
	if b == nil {
		return
	}
	if err := b.ends.check(); err != nil {
		k.bad("F3: heap of limits: %v", err)
	}
	for i, it := range b.ends.Items {
		if h := c.hosts.at(it.id); h.place != held || h.pos != heldLimited || b.endAt[it.id] != i {
			k.bad("F3: host %d in place %d waits for the end of a period", it.id, h.place)
		}
	}
	if b.ends.len() != k.held.hosts[heldLimited] || len(b.endAt) != b.ends.len() {
		k.bad("F3: %d hosts are held by limits, %d wait for an end, %d are found", k.held.hosts[heldLimited], b.ends.len(), len(b.endAt))
	}
	n := 0
	for id := uint32(1); id <= c.hosts.top; id++ {
		h := c.hosts.at(id)
		if h.nameLen == 0 {
			continue
		}
		u := b.hosts[id]
		if (u != nil) != h.has(counted) {
			k.bad("F6: host %d has flags %b and usage %v", id, h.flags, u)
		}
		n += btoi(u != nil)
		if u != nil {
			k.usage(u)
		}
	}
	if n != len(b.hosts) {
		k.bad("F6: %d hosts have usage, counted %d", n, len(b.hosts))
	}
	if f.finishing == 0 && len(b.joining) > 0 {
		k.bad("F6: URLs of %d hosts are on their way, and no call is", len(b.joining))
	}
	k.limitRules(f)
	for _, x := range c.crawls {
		if x != nil {
			k.limitCrawl(f, x)
		}
	}
}

func (k *checker) usage(u *usage) {
	if u.served < 0 || u.bytes < 0 || u.errors < 0 || u.pending < 0 || !u.begun && u.served+u.bytes+u.errors > 0 {
		k.bad("F6: usage is %+v", *u)
	}
}

func (k *checker) limitRules(f *Frontier) {
	c := k.c
	domains := 0
	t := c.controls.table.Load()
	if t == nil {
		return
	}
	t.tree.Ascend(func(r *scopeRule) bool {
		u := r.use
		if (u != nil) != (r.Limits != Limits{}) {
			k.bad("F6: the rule of %v has limits %+v and usage %v", r.scope, r.Limits, u)
		}
		if u == nil {
			return true
		}
		k.usage(u)
		if f.finishing == 0 && u.pending != 0 {
			k.bad("F6: %d URLs of %v are on their way, and no call is", u.pending, r.scope)
		}
		domains += btoi(u.domain.begun)
		if u.domain.all {
			n := int64(0)
			for id := uint32(1); id <= c.hosts.top; id++ {
				if h := c.hosts.at(id); h.nameLen > 0 && r.scope.contains(string(c.name(h))) {
					n += int64(h.waiting)
				}
			}
			if n != u.domain.urls {
				k.bad("F6: %d URLs of %v wait, counted %d", n, r.scope, u.domain.urls)
			}
		}
		return true
	})
	if domains != c.limits.domains {
		k.bad("F6: the URLs of %d domains are counted, counted %d", domains, c.limits.domains)
	}
}

func (k *checker) limitCrawl(f *Frontier, x *crawl) {
	if (x.use != nil) != (x.settings.Limits != Limits{}) {
		k.bad("F6: crawl %d has limits %+v and usage %v", x.id, x.settings.Limits, x.use)
	}
	if x.ends != (x.hold == crawlLimited) {
		k.bad("F3: crawl %d is held for %d, and waits for an end: %v", x.id, x.hold, x.ends)
	}
	if x.ends && k.c.crawls[k.c.limits.crawlEnds.Items[x.endPos].id] != x {
		k.bad("F3: crawl %d is not where it says among the ends", x.id)
	}
	if (x.hold == crawlPaused) != x.settings.Paused {
		k.bad("F3: crawl %d is held for %d; paused: %v", x.id, x.hold, x.settings.Paused)
	}
	if x.use != nil {
		if k.usage(x.use); f.finishing == 0 && x.use.pending != 0 {
			k.bad("F6: %d URLs of crawl %d are on their way, and no call is", x.use.pending, x.id)
		}
	}
}
