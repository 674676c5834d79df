// This file verifies what is known of crawls.

package frontier

// crawlCount is what a walk found of a crawl.
type crawlCount struct {
	queues  int
	waiting int64
	byLevel [maxPriorities + 2]int64
	leased  int64
	held    [holdReasons]int64
}

func (n *crawlCount) add(q *queue, h *host) {
	if h.place == held {
		n.held[h.pos] += int64(q.waiting)
	}
	n.queues++
	n.waiting += int64(q.waiting)
	n.byLevel[q.level] += int64(q.waiting)
}

// crawlTable checks each crawl's counters (F6) and whether hand-outs see it (F3).
func (k *checker) crawlTable() {
	c := k.c
	urls, limited, paused := int64(0), int64(0), 0
	for slot, x := range c.crawls {
		if x == nil {
			continue
		}
		if got, ok := c.crawlSlots[x.id]; slot > 0 && (!ok || int(got) != slot) {
			k.bad("F3: crawl %d is in slot %d and found in %d", x.id, slot, got)
		}
		n := &k.crawls[slot]
		if x.queues != n.queues || x.stats.Waiting != n.waiting || x.stats.Leased != n.leased || x.stats.Immediate != n.byLevel[c.immediate()] {
			k.bad("F6: crawl %d has %d queues, %d waiting, %d of them immediate, %d leased; counted %d, %d, %d, %d",
				x.id, n.queues, n.waiting, n.byLevel[c.immediate()], n.leased, x.queues, x.stats.Waiting, x.stats.Immediate, x.stats.Leased)
		}
		if x.held != n.held {
			k.bad("F6: crawl %d has %v URLs of held hosts, counted %v", x.id, n.held, x.held)
		}
		for p, got := range x.stats.WaitingBy {
			if got != n.byLevel[p+1] {
				k.bad("F6: crawl %d has %d waiting of priority %d, counted %d", x.id, n.byLevel[p+1], p+1, got)
			}
		}
		if !x.runs() {
			urls += n.waiting
			paused++
			if x.hold == crawlLimited {
				limited += n.waiting
			}
		}
		k.crawlOffers(slot, x)
	}
	if urls != c.pausedURLs || paused != c.pausedCrawls || limited != c.limitedURLs {
		k.bad("F6: %d URLs of %d paused crawls, counted %d of %d", urls, paused, c.pausedURLs, c.pausedCrawls)
	}
}

// crawlOffers checks that a crawl is in the heaps if and only if it has something
// to offer.
func (k *checker) crawlOffers(slot int, x *crawl) {
	some := func(from, to int) bool {
		for p := from; p <= to; p++ {
			if x.lists[tokens].at[p].n+x.lists[readies].at[p].n > 0 {
				return x.mayOffer() && !k.c.single()
			}
		}
		return false
	}
	top := int(k.c.immediate())
	if x.offered != some(1, top-1) || x.urgent != some(top, top) {
		k.bad("F3: crawl %d in slot %d is offered: %v, urgent: %v", x.id, slot, x.offered, x.urgent)
	}
	if x.offered && k.c.offers.Items[x.pos[0]] != (timeItem{at: x.pass, id: uint32(slot)}) {
		k.bad("F3: crawl %d is not where it says among the offers", x.id)
	}
	if x.urgent && k.c.urgent.Items[x.pos[1]].id != uint32(slot) {
		k.bad("F3: crawl %d is not where it says among the urgent", x.id)
	}
}
