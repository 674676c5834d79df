// This file asks what groups and lanes cost, without locks, clocks and disks. n is
// how many hosts there are.

package frontier

import (
	"fmt"
	"testing"
)

// groupBench is a core with hosts in groups. Each host has one URL and is due at
// some time.
type groupBench struct {
	*scheduler
	now int64
	ids []uint32
}

// newGroupBench puts host i into the group that groupOf tells; empty: into none.
// The hosts are due within span.
func newGroupBench(n int, span int64, groupOf func(i int) string) *groupBench {
	b := &groupBench{scheduler: benchScheduler()}
	c, url, r := b.scheduler, benchURL(), benchRand()
	names, hashes := benchHosts(n)
	for i := range names {
		id := c.ensure(hashes[i], names[i])
		h := c.hosts.At(id)
		h.due, h.served = r.Int64N(span), 1 // bound, in the heap
		if g := groupOf(i); g != "" {
			c.joinGroup(h, c.groupOf(g))
		}
		c.pushTail(c.queueOf(id, 0, uint8(1+i%8)), c.records.Store(uint64(i+1), url), 0)
		b.ids = append(b.ids, id)
	}
	return b
}

// next hands a URL out, at the time when one may be.
func (g *groupBench) next(b *testing.B) uint32 {
	ch, ok, err := g.scheduler.next(g.now)
	for !ok && err == nil {
		g.now = max(g.now, g.nextEvent(g.now))
		ch, ok, err = g.scheduler.next(g.now)
	}
	if err != nil {
		b.Fatal(err)
	}
	return g.lease(ch.queue, 1, g.now, g.now+1)
}

// done takes it back. Its host is due again after such a time.
func (g *groupBench) done(lease uint32, wait int64) {
	l := g.endLease(lease)
	g.returnHead(l.queue, l.record)
	g.filled(l.queue, g.now)
	g.endGroups(&l, g.now, func(*group) int64 { return g.now + 1 })
	g.settleLease(&l, g.now, clocks{lane: g.now + wait})
}

// BenchmarkGroups works on n hosts, in virtual time.
func BenchmarkGroups(b *testing.B) {
	none := func(int) string { return "" }
	of := func(n int) func(int) string { return func(i int) string { return fmt.Sprint(i / n) } }
	one := func(int) string { return "one" }

	// A URL is handed out and taken back.
	handOut := func(groupOf func(i int) string) func(b *testing.B, n int) {
		return func(b *testing.B, n int) {
			g, r := newGroupBench(n, benchSpan, groupOf), benchRand()
			for b.Loop() {
				g.done(g.next(b), r.Int64N(benchSpan))
			}
		}
	}
	forSizes(b, "op=handout/groups=none", handOut(none))
	forSizes(b, "op=handout/groups=of10", handOut(of(10)))
	forSizes(b, "op=handout/groups=of100", handOut(of(100)))
	forSizes(b, "op=handout/groups=one", handOut(one))

	// All hosts of the only group are due, and wait for its slot.
	forSizes(b, "op=queued/groups=one", func(b *testing.B, n int) {
		g, r := newGroupBench(n, 1, one), benchRand()
		for b.Loop() {
			g.done(g.next(b), r.Int64N(100))
		}
	})

	// A URL is handed out, its host joins another group, and it is taken back.
	forSizes(b, "op=join/groups=of100", func(b *testing.B, n int) {
		g, r := newGroupBench(n, benchSpan, of(100)), benchRand()
		for b.Loop() {
			lease := g.next(b)
			l := g.leases.At(lease)
			to := g.groupOf(fmt.Sprint(r.IntN(n / 100)))
			if l.group != to {
				granted := g.takeSlot(to, g.now)
				g.moveLease(l, to, granted, g.now)
				g.moveHost(l.host, to, g.now)
			}
			g.done(lease, r.Int64N(benchSpan))
		}
	})

	// Any host is assigned to any group.
	forSizes(b, "op=assign/groups=of100", func(b *testing.B, n int) {
		g, r := newGroupBench(n, benchSpan, of(100)), benchRand()
		for b.Loop() {
			g.assign(g.ids[r.IntN(n)], fmt.Sprint(r.IntN(n/100)), g.now)
		}
	})
}

// BenchmarkLanes hands a URL of one of n hosts out and takes it back, in virtual
// time: with one lane for each host, and with four.
func BenchmarkLanes(b *testing.B) {
	for _, lanes := range []int{1, 4} {
		forSizes(b, fmt.Sprintf("op=handout/lanes=%d", lanes), func(b *testing.B, n int) {
			g, r := newGroupBench(n, benchSpan, func(int) string { return "" }), benchRand()
			if lanes > 1 {
				g.concurrency = func([]byte) int { return lanes }
			}
			for b.Loop() {
				g.done(g.next(b), r.Int64N(benchSpan))
			}
		})
	}
}
