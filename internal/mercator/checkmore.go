// This file verifies the invariants of groups, lanes, crawls, limits, failures and deletions.

package mercator

import (
	"encoding/binary"
	"iter"
	"slices"

	"github.com/seed-7440039f/frontier/internal/arena"
	"github.com/seed-7440039f/frontier/internal/count"
	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/internal/limit"
	"github.com/seed-7440039f/frontier/internal/quota"
	"github.com/seed-7440039f/frontier/internal/row"
	"github.com/seed-7440039f/frontier/internal/timeheap"
	"github.com/seed-7440039f/frontier/internal/tombstone"
)

// bundled checks the leases of a host that are bundles (F1), and returns how many lanes its leases use.
func (k *Checker) bundled(host uint32) (lanes int32) {
	c := k.c
	members := map[uint32]int32{}
	for lease := range c.LeasesOf(host) {
		l := c.Leases.At(lease)
		if members[l.Bundle]++; l.Bundle == 0 {
			lanes++
			continue
		}
		for m := range c.sharing(l) {
			if m.Group != l.Group || m.OldGroup != l.OldGroup || m.OldSlot != l.OldSlot {
				k.Bad("F1: the bundle of lease %d of host %d belongs to groups %d and %d", lease, host, l.Group, m.Group)
			}
		}
	}
	delete(members, 0)
	for id, n := range members {
		if left := c.bundles.At(id).left; left != n {
			k.Bad("F1: bundle %d of host %d has %d leases, counted %d", id, host, n, left)
		}
	}
	k.bundles += len(members)
	return lanes + int32(len(members))
}

// departures checks that each host that may leave will do so, and that no row is overlooked (F9).
func (k *Checker) departures() {
	c := k.c
	queued := map[uint32]bool{}
	c.Dormant.Places(func(id uint32, place int32) {
		if h := c.Hosts.At(id); h.Place == Departing && h.Pos == place {
			queued[id] = true
		}
	})
	for id := uint32(1); id <= c.Hosts.Top; id++ {
		h := c.Hosts.At(id)
		if h.NameLen == 0 {
			continue
		}
		if h.Place == Departing && (!queued[id] || h.Pins > 0 || h.Scheduled > 0) {
			k.Bad("F9: host %d will not leave: queued %v, %d pins, %d scheduled", id, queued[id], h.Pins, h.Scheduled)
		}
		if h.Has(Stored) && !c.Dormant.MayHaveRow(c.Hash(c.Name(h))) {
			k.Bad("F9: the row of host %d will not be found", id)
		}
		if h.Learned() && c.Cfg.Spill && !h.Has(Stored) && !h.Has(Unsaved|Behind) {
			k.Bad("F9: what host %d learned will be forgotten", id)
		}
	}
}

// troubles checks that hosts and what is known of their failures agree (F6).
func (k *Checker) troubles() {
	c := k.c
	var backedOff, quarantined int64
	n := 0
	lost := map[uint32]bool{}
	for _, id := range c.Lost {
		lost[id] = true
	}
	for id := uint32(1); id <= c.Hosts.Top; id++ {
		h := c.Hosts.At(id)
		if h.NameLen == 0 {
			continue
		}
		t, ok := c.Troubles[id]
		if ok != h.Has(Troubled) {
			k.Bad("F6: host %d is in trouble: %v, counted %v", id, ok, h.Has(Troubled))
		}
		if !ok {
			continue
		}
		n++
		if t.Listed && !lost[id] {
			k.Bad("F6: host %d shall be given up, and is not listed", id)
		}
		backedOff += int64(btoi(t.Step > 0))
		quarantined += int64(btoi(t.Probes > 0))
		if t.Over() {
			k.Bad("F6: the trouble of host %d is over: %+v", id, t)
		}
	}
	if n != len(c.Troubles) {
		k.Bad("F6: %d hosts are in trouble, counted %d", n, len(c.Troubles))
	}
	if s := c.Stats; s.BackedOff != backedOff || s.Quarantined != quarantined {
		k.Bad("F6: %d hosts are backed off and %d in quarantine; Stats say %d and %d", backedOff, quarantined, s.BackedOff, s.Quarantined)
	}
}

// deleted checks that nothing dead is left of deletions that were swept, and
// that of the others it is at the heads of queues (F7).
func (k *Checker) deleted() {
	c := k.c
	swept := c.Deletions.Check(k.Last, c.Blocks.Last(), k.Bad)
	for id := uint32(1); id <= c.Queues.Top; id++ {
		if q := c.Queues.At(id); q.Host != 0 {
			k.sweptQueue(id, q, swept.Of(c.Name(c.Hosts.At(q.Host)), c.CrawlOf(q).ID))
		}
	}
	for _, it := range c.Scheduled.Items {
		q := c.Queues.At(it.Aux)
		if d := swept.Of(c.Name(c.Hosts.At(q.Host)), c.CrawlOf(q).ID); c.Records.At(arena.Ref(it.ID)).Seq() <= d.Seq {
			k.Bad("F7: record %d is scheduled, and was deleted", it.ID)
		}
	}
	dead := 0
	for id := uint32(1); id <= c.Leases.Top; id++ {
		if c.Leases.At(id).Dead != 0 {
			dead++
		}
	}
	if dead > c.UnsettledDead || k.Settled && dead != c.UnsettledDead {
		k.Bad("F6: %d leases have dead records, counted %d", dead, c.UnsettledDead)
	}
}

func (k *Checker) sweptQueue(id uint32, q *Queue, swept tombstone.Dead) {
	c := k.c
	now := c.DeadIn(q)
	alive := false
	see := func(deleted, dead bool) {
		switch {
		case deleted:
			k.Bad("F7: queue %d has a URL that was deleted", id)
		case dead && alive:
			k.Bad("F7: queue %d has a dead URL behind one that is alive", id)
		}
		alive = alive || !dead
	}
	seeAll := func(refs iter.Seq[arena.Ref]) {
		for ref := range refs {
			seq := c.Records.At(ref).Seq()
			see(seq <= swept.Seq, seq <= now.Seq)
		}
	}
	seeAll(c.Fifo.Front(&q.Queue))
	for pid := range c.Fifo.Parts(&q.Queue) {
		if p := c.Blocks.Part(pid); c.Blocks.Unread(pid) != 0 {
			see(p.Block <= swept.Block, p.Block <= now.Block)
		}
	}
	seeAll(c.Fifo.Back(&q.Queue))
}

// crawlTable checks each crawl's counters (F6) and whether hand-outs see it (F3).
func (k *Checker) crawlTable() {
	c := k.c
	urls, limited, paused := int64(0), int64(0), 0
	for slot, x := range c.Crawls {
		if x == nil {
			continue
		}
		if got, ok := c.CrawlSlots[x.ID]; slot > 0 && (!ok || int(got) != slot) {
			k.Bad("F3: crawl %d is in slot %d and found in %d", x.ID, slot, got)
		}
		n := &k.crawls[slot]
		if x.Queues != n.queues || x.Stats.Waiting != n.waiting || x.Stats.Leased != n.leased || x.Stats.Immediate != n.byLevel[c.immediate()] {
			k.Bad("F6: crawl %d has %d queues, %d waiting, %d of them immediate, %d leased; counted %d, %d, %d, %d",
				x.ID, n.queues, n.waiting, n.byLevel[c.immediate()], n.leased, x.Queues, x.Stats.Waiting, x.Stats.Immediate, x.Stats.Leased)
		}
		if x.withheld != n.withheld {
			k.Bad("F6: crawl %d has %v URLs of withheld hosts, counted %v", x.ID, n.withheld, x.withheld)
		}
		for p, got := range x.Stats.WaitingBy {
			if got != n.byLevel[p+1] {
				k.Bad("F6: crawl %d has %d waiting of priority %d, counted %d", x.ID, n.byLevel[p+1], p+1, got)
			}
		}
		if !x.Runs() {
			urls += n.waiting
			paused++
			if x.Stop == CrawlLimited {
				limited += n.waiting
			}
		}
		k.crawlOffers(slot, x)
	}
	if urls != c.pausedURLs || paused != c.PausedCrawls || limited != c.limitedURLs {
		k.Bad("F6: %d URLs of %d paused crawls, counted %d of %d", urls, paused, c.pausedURLs, c.PausedCrawls)
	}
}

// Counts compares the counts with their sums, and with Stats unless one of them has what is dead, or
// cannot be read (F6).
func (k *Checker) Counts(rows map[string]row.Count) {
	c := k.c
	sums := map[uint32]row.CountSum{}
	var all count.Numbers
	for key, n := range rows {
		crawl := binary.BigEndian.Uint32([]byte(key[len(row.CountKey):]))
		s := sums[crawl]
		sums[crawl] = row.CountSum{
			Total: s.Total + n.Total, Finished: s.Finished + n.Finished, Hosts: s.Hosts + 1, Active: s.Active + int64(btoi(n.Total > n.Finished)),
		}
		if all.Add(count.Numbers{Total: n.Total, Finished: n.Finished}, 1); n.Total <= 0 || n.Finished < 0 || n.Finished > n.Total {
			k.Bad("F6: %q counts %+v", key, n)
		}
	}
	for _, crawl := range c.Counts.Crawls() {
		if s := c.Counts.Sum(crawl); s != sums[crawl] {
			k.Bad("F6: crawl %d has %+v, its hosts have %+v", crawl, s, sums[crawl])
		}
		delete(sums, crawl)
	}
	if len(sums) > 0 {
		k.Bad("F6: no sums of %v", sums)
	}
	if c.Deletions.InForce.Len()+c.Deletions.Stored.Len() > 0 || c.Stats.Unreadable > 0 {
		return
	}
	total := c.Stats.Waiting + c.Stats.Scheduled + c.Stats.Finished
	for id := uint32(1); id <= c.Leases.Top; id++ {
		if l := c.Leases.At(id); l.Token != 0 && l.Record != 0 && l.Dead == 0 {
			total++
		}
	}
	if all.Total != total || all.Finished != c.Stats.Finished {
		k.Bad("F6: counted %+v; Stats say %d, %d of them finished", all, total, c.Stats.Finished)
	}
}

// crawlOffers checks that a crawl is in the heaps if and only if it has something to offer.
func (k *Checker) crawlOffers(slot int, x *Crawl) {
	some := func(from, to int) bool {
		for p := from; p <= to; p++ {
			if x.Lists[tokens].At[p].N+x.Lists[Readies].At[p].N > 0 {
				return x.mayOffer() && !k.c.single()
			}
		}
		return false
	}
	top := int(k.c.immediate())
	if x.offered != some(1, top-1) || x.urgent != some(top, top) {
		k.Bad("F3: crawl %d in slot %d is offered: %v, urgent: %v", x.ID, slot, x.offered, x.urgent)
	}
	if x.offered && k.c.offers.Items[x.pos[0]] != (timeheap.Item{At: x.pass, ID: uint32(slot)}) {
		k.Bad("F3: crawl %d is not where it says among the offers", x.ID)
	}
	if x.urgent && k.c.urgent.Items[x.pos[1]].ID != uint32(slot) {
		k.Bad("F3: crawl %d is not where it says among the urgent", x.ID)
	}
}

// lanes checks the leases of a host that may have several (F1).
func (k *Checker) lanes(id uint32, h *Host) {
	x := k.c.lanesOf(id)
	if x == nil {
		return
	}
	prev := uint32(0)
	for lease := range k.c.LeasesOf(id) {
		if l := k.c.Leases.At(lease); l.Prev != prev {
			k.Bad("F3: lease %d of host %d is linked wrongly", lease, id)
		}
		prev = lease
	}
	n := k.bundled(id)
	if n != x.used || n > 0 && n > x.limit || x.Host != id {
		k.Bad("F1: host %d has leases on %d lanes, counted %d, of %d", id, n, x.used, x.limit)
	}
	if !slices.IsSorted(x.until) {
		k.Bad("F3: the lanes of host %d are not in order", id)
	}
	if h.Place == Leased && n == 0 {
		k.Bad("F2: host %d is in place leased without a lease", id)
	}
	if due := x.next(k.c.allowed(id)); h.Place != Leased && h.Due < x.opens || h.Due > max(x.Last(), due) {
		k.Bad("F4: host %d is due at %d, its lanes at %d", id, h.Due, due)
	}
}

// groups checks slots, members and keys (F1, F3).
func (k *Checker) groups() {
	c := k.c
	if k.bundles != c.bundles.Len() {
		k.Bad("F1: %d bundles are out, counted %d", k.bundles, c.bundles.Len())
	}
	if len(k.c.laned) != k.c.HostLanes.Len() {
		k.Bad("F1: %d hosts have lanes, counted %d", len(k.c.laned), k.c.HostLanes.Len())
	}
	taken := map[uint32]int32{}
	members := map[uint32]int32{}
	for id := uint32(1); id <= c.Hosts.Top; id++ {
		h := c.Hosts.At(id)
		if h.NameLen == 0 {
			continue
		}
		members[h.Group]++
		if h.Has(HasSlot) {
			taken[h.Group]++
		}
		seen := map[uint32]bool{}
		for lease := range c.LeasesOf(id) {
			l := c.Leases.At(lease)
			if l.Bundle != 0 && seen[l.Bundle] {
				continue
			}
			seen[l.Bundle] = true
			taken[l.Group]++
			if l.OldGroup != 0 {
				members[l.OldGroup]++
			}
			if l.OldSlot {
				taken[l.OldGroup]++
			}
		}
	}
	lonely := slices.Sorted(slices.Values(c.lonely))
	for id := uint32(1); id <= c.Groups.Top; id++ {
		g := c.Groups.At(id)
		if g.NameLen == 0 {
			continue
		}
		k.named += arena.Cost(int(g.NameLen))
		name := c.GroupName(g)
		if c.GroupNamed(name) != id || g.Used != taken[id] || g.Members != members[id] {
			k.Bad("F1: group %q: %d slots taken and %d members, counted %d and %d", name, taken[id], members[id], g.Used, g.Members)
		}
		if _, listed := slices.BinarySearch(lonely, id); g.Members == 0 && !listed {
			k.Bad("F2: group %q has no members and is not listed", name)
		}
		k.group(id, g, name)
	}
}

func (k *Checker) group(id uint32, g *Group, name string) {
	c, s := k.c, k.c.SlotsOf(id)
	if g.Used > max(g.most, g.Limit) {
		k.Bad("F1: group %q: %d of %d slots taken", name, g.Used, g.Limit)
	}
	if next := s.next(g.Limit); g.Free != next && max(g.Free, next) > k.Now || !slices.IsSorted(s.until) {
		k.Bad("F4: group %q is free at %d, its slots at %d", name, g.Free, next)
	}
	if at := c.groupKey(g); (at != instant.Never) != g.queued {
		k.Bad("F2: group %q in the heap: %v", name, g.queued)
	} else if g.queued {
		if it := c.Pace.Items[g.pos]; it.ID != id|groupBit || it.At != at {
			k.Bad("F3: group %q: its key in the heap is wrong", name)
		}
	}
}

// grouped checks the heaps of a group (F3): its hosts that pace, that wait for a
// slot, and that have one and are ready.
func (k *Checker) grouped(id uint32) {
	c, g := k.c, k.c.Groups.At(id)
	heap := func(root uint32, want place, right func(h *Host, it timeheap.Item) bool) (found int32) {
		if err := c.grouped.Check(root); err != nil {
			k.Bad("F3: hosts of group %d in place %d: %v", id, want, err)
		}
		for n := range c.grouped.All(root) {
			it := c.grouped.At(n).Item
			if h := c.Hosts.At(it.ID); h.Place != want || h.Pos != int32(n) || h.Group != id || !right(h, it) {
				k.Bad("F3: host %d of group %d in place %d has place %d, position %d of %d, time %d of %d, urgency %d of %d",
					it.ID, id, want, h.Place, h.Pos, n, it.At, h.Due, it.Aux, c.urgency(h))
			}
			found++
		}
		return found
	}
	n := heap(g.hosts, Pacing, func(h *Host, it timeheap.Item) bool { return it.At == h.Due })
	n += heap(g.offered, Ready, func(h *Host, _ timeheap.Item) bool { return h.Has(HasSlot) })
	crowds := map[crowd]int32{}
	waits := heap(g.due, Queued, func(h *Host, it timeheap.Item) bool {
		crowds[c.crowdOf(h, it.Aux)]++
		return it.Aux >= c.urgency(h)
	})
	for x, n := range crowds {
		if c.crowds[x] != n {
			k.Bad("F3: %d hosts of a domain wait for a slot of group %d, counted %d", n, id, c.crowds[x])
		}
	}
	if waits != g.Waits {
		k.Bad("F3: %d hosts of group %d wait for a slot, counted %d", waits, id, g.Waits)
	}
	k.inGroups += int(n + waits)
}

// limits checks that package limit knows the limits that crawls have, that hosts and crawls wait for the ends of periods that limits withhold (F3), and that what
// is counted is right (F6).
func (k *Checker) limits() {
	c, b := k.c, k.c.Limits
	if b == nil {
		return
	}
	b.Check(k.Bad, k.Settled, func(s row.Scope) (n int64) {
		for id := uint32(1); id <= c.Hosts.Top; id++ {
			if h := c.Hosts.At(id); h.NameLen > 0 && s.Contains(string(c.Name(h))) {
				n += int64(h.Waiting)
			}
		}
		return n
	})
	for _, it := range b.HostEnds.Items {
		if h := c.Hosts.At(it.ID); h.Place != Withheld || h.Pos != WithheldLimited {
			k.Bad("F3: host %d in place %d waits for the end of a period", it.ID, h.Place)
		}
	}
	if n := b.HostEnds.Len(); n != k.withheld.hosts[WithheldLimited] {
		k.Bad("F3: %d hosts are withheld by limits, %d wait for an end", k.withheld.hosts[WithheldLimited], n)
	}
	n := 0
	for id := uint32(1); id <= c.Hosts.Top; id++ {
		if h := c.Hosts.At(id); h.NameLen > 0 && h.Has(Counted) {
			n++
			if !b.HasHost(id) {
				k.Bad("F6: host %d has flags %b and no usage", id, h.flags)
			}
		}
	}
	if n != b.Hosts() {
		k.Bad("F6: %d hosts have usage, counted %d", n, b.Hosts())
	}
	for _, x := range c.Crawls {
		if x != nil {
			k.limitCrawl(x)
		}
	}
}

func (k *Checker) limitCrawl(x *Crawl) {
	b := k.c.Limits
	if _, ok := b.Row(limit.OfCrawl(x.ID)); ok != (x.Settings.Limits != quota.Limits{}) {
		k.Bad("F6: crawl %d has limits %+v, and usage: %v", x.ID, x.Settings.Limits, ok)
	}
	if ends := b.CrawlEnds.Has(x.ID); ends != (x.Stop == CrawlLimited) {
		k.Bad("F3: crawl %d is held for %d, and waits for an end: %v", x.ID, x.Stop, ends)
	}
	if (x.Stop == crawlPaused) != x.Settings.Paused {
		k.Bad("F3: crawl %d is held for %d; paused: %v", x.ID, x.Stop, x.Settings.Paused)
	}
}

// withheldHosts checks that the tree and the counts of withheld hosts are those of the
// hosts in place withheld (F2, F3, F6), and that hosts with nothing to do are not.
func (k *Checker) withheldHosts() {
	x := &k.c.Withheld
	if x.hosts != k.withheld.hosts || x.urls != k.withheld.urls {
		k.Bad("F6: %v hosts with %v URLs are withheld; counted %v, %v", k.withheld.hosts, k.withheld.urls, x.hosts, x.urls)
	}
	x.set.Check(k.Bad, func(id uint32) bool { return k.c.Hosts.At(id).Place == Withheld })
	if n := x.set.Len(); n != k.places[Withheld] {
		k.Bad("F2: %d hosts are withheld, %d in order", k.places[Withheld], n)
	}
}
