package mercator

import (
	"fmt"
	"testing"

	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/selector"
	"github.com/stretchr/testify/require"
)

// groupedCore has hosts, all in one group, with one URL each of the priority given.
func groupedCore(t *testing.T, s selector.Selector, priorities ...uint8) (*Core, []uint32) {
	c := New(Config{Levels: 8, Quantum: 32, ParkAfter: instant.Never, Choose: choose(s), Strict: selector.IsStrict(s)})
	var ids []uint32
	for i, p := range priorities {
		ids = append(ids, addGrouped(c, fmt.Sprintf("host%d.example", i), p))
	}
	return c, ids
}

func addGrouped(c *Core, name string, p uint8) uint32 {
	id := c.Ensure(c.Hash([]byte(name)), name)
	h := c.Hosts.At(id)
	h.Served = 1 // bound
	c.joinGroup(h, c.GroupOf("g"))
	c.PushTail(c.QueueOf(id, 0, p), c.Records.Store(1, benchURL()), 0)
	return id
}

// serve hands one URL out and takes it back at once. The group is free a second
// later, and the host due.
func serve(t *testing.T, c *Core, now int64) uint32 {
	ch, ok, bad := c.Next(now, nil)
	require.Nil(t, bad)
	require.True(t, ok)
	l := c.EndLease(c.Lease(ch.Queue, 1, now, now+1))
	c.ReturnHead(l.Queue, l.Record)
	c.EndGroups(&l, now, func(*Group) int64 { return now + 1e9 })
	c.SettleLease(&l, now, clocks{lane: now + 1e9})
	return ch.Host
}

func TestGroupServesTheMostUrgentHostFirst(t *testing.T) {
	for name, s := range map[string]selector.Selector{"strict": selector.Strict(), "round robin": selector.RoundRobin(), "random": selector.BiasedRandom(1)} {
		t.Run(name, func(t *testing.T) {
			c, ids := groupedCore(t, s, 1, 3, 8, 5, 8)
			for i := range ids {
				c.Hosts.At(ids[i]).Due = int64(-i)
			}
			require.Equal(t, ids[2], serve(t, c, 0))
			require.Equal(t, ids[4], serve(t, c, 1e9-1+1))
		})
	}
}

func TestReadyHostGivesItsSlotToAMoreUrgentOne(t *testing.T) {
	c, ids := groupedCore(t, selector.Strict(), 2, 1)
	c.Advance(0)
	require.Equal(t, Ready, c.Hosts.At(ids[0]).Place)
	urgent := addGrouped(c, "urgent.example", 8)
	require.Equal(t, urgent, serve(t, c, 0))
	c.PushTail(c.QueueOf(ids[1], 0, 8), c.Records.Store(1, benchURL()), 0) // it waits for a slot, and gets a better URL
	require.Equal(t, ids[1], serve(t, c, 1e9))
}

func TestNoHostOfAGroupStarves(t *testing.T) {
	c, ids := groupedCore(t, selector.BiasedRandom(1), 1, 8, 8, 8)
	served := map[uint32]int{}
	n := 0
	for now := int64(0); served[ids[0]] == 0; now += 1e9 {
		served[serve(t, c, now)]++
		n++
		require.LessOrEqual(t, n, 8*agePerLevel+4)
	}
	require.Greater(t, n, 6*agePerLevel, "a priority is worth that many slots")
}

func TestStrictStarvesInAGroupToo(t *testing.T) {
	c, ids := groupedCore(t, selector.Strict(), 1, 8)
	for now := range int64(20 * agePerLevel) {
		require.Equal(t, ids[1], serve(t, c, now*1e9))
	}
}

// A domain with many names at an address leaves the others their pace, and starves of it as little.
func TestManyNamesOfADomainCountLittle(t *testing.T) {
	c, _ := groupedCore(t, selector.BiasedRandom(1))
	for i := range 300 {
		addGrouped(c, fmt.Sprintf("n%d.crowd.example", i), 3)
	}
	c.Advance(0)
	single := addGrouped(c, "www.single.example", 3)
	served := map[uint32]int{}
	for now := range int64(3200) {
		served[serve(t, c, now*1e9)]++
	}
	require.InDelta(t, 3200*(agePerLevel-1)/agePerLevel, served[single], 3200/agePerLevel)
	require.Less(t, served[single], 3200-20, "the others have slots, too")
}

// groupOrder is who gets the slots of a group in which each host has one URL, and is
// due at once when it was served, from a moment and a number of slots on.
func groupOrder(t *testing.T, by selector.Selector, from, given int64, priorities ...uint8) []uint32 {
	c, ids := groupedCore(t, by, priorities...)
	c.Groups.At(c.GroupOf("g")).given = given
	for i, id := range ids {
		h := c.Hosts.At(id)
		c.Detach(id)
		h.Due = from + int64(i)*1e6
		c.Settle(id, 0)
	}
	var order []uint32
	for n := range int64(1000) {
		order = append(order, serve(t, c, from+n*1e9+1e8))
	}
	return order
}

func TestGroupsOrderOutlivesItsCount(t *testing.T) {
	for name, s := range map[string]func() selector.Selector{"strict": selector.Strict, "random": func() selector.Selector { return selector.BiasedRandom(1) }} {
		for _, priorities := range [][]uint8{{3, 3, 3, 3, 3, 3, 3, 3, 3, 3}, {1, 8, 8, 5, 2, 8, 3, 3}} {
			fresh := groupOrder(t, s(), 0, 0, priorities...)
			for _, from := range []int64{1224 * 3600e9, 5 * 365 * 24 * 3600e9, 30 * 365 * 24 * 3600e9} {
				require.Equal(t, fresh, groupOrder(t, s(), from, 0, priorities...), "%s: open for %d s", name, from/1e9)
			}
			for _, given := range []int64{ageSpan - 1, ageSpan - 500, mostAge - calledUrgency*agePerLevel} {
				require.Equal(t, fresh, groupOrder(t, s(), 0, given, priorities...), "%s: after %d slots", name, given)
			}
		}
	}
}

// A group that is busy does not keep the lock while all of its hosts are looked
// at.
func TestHostsAreBoundInSmallNumbers(t *testing.T) {
	const n = 10 * bindAtOnce
	c, _ := groupedCore(t, selector.Strict())
	for i := range n {
		id := addGrouped(c, fmt.Sprintf("host%d.example", i), 1)
		h := c.Hosts.At(id)
		c.Detach(id)
		c.unbind(id, h)
	}
	ch, ok, bad := c.Next(0, nil)
	require.Nil(t, bad)
	require.True(t, ok, "the group is free")
	c.Lease(ch.Queue, 1, 0, instant.Never)
	before := n - 1
	for c.Places[Unbound] > 0 {
		_, ok, bad := c.Next(0, nil)
		require.Nil(t, bad)
		require.False(t, ok)
		left := c.Places[Unbound]
		require.LessOrEqual(t, before-left, bindAtOnce)
		require.Equal(t, left > 0, c.NextEvent(0) <= 0, "it says that there is more")
		before = left
	}
}

func TestHostsBecomeDueInSmallNumbers(t *testing.T) {
	const n = 4 * readyAtOnce
	c := New(Config{Levels: 8, Quantum: 32, ParkAfter: instant.Never, Choose: choose(selector.Strict())})
	for i := range n {
		name := fmt.Sprintf("host%d.example", i)
		id := c.Ensure(c.Hash([]byte(name)), name)
		h := c.Hosts.At(id)
		h.Served, h.Due = 1, 5
		c.PushTail(c.QueueOf(id, 0, uint8(1+i%8)), c.Records.Store(1, benchURL()), 0)
	}
	for left := n; left > 0; {
		c.Advance(5)
		now := c.Pace.Len()
		require.LessOrEqual(t, left-now, readyAtOnce)
		require.Equal(t, now > 0, c.NextEvent(5) <= 5)
		left = now
	}
}

// Crawls get their shares however many hand-outs there were. One that was not in
// Core.offers when passes began anew has no more than its share either.
func TestSharesOutliveTheirCount(t *testing.T) {
	const none, some, most = 1, 2, 3 // crawls
	for _, pass := range []int64{0, mostPass - 20*turn} {
		c := New(Config{Levels: 1, Quantum: 32, ParkAfter: instant.Never, Choose: choose(selector.Strict()), Strict: true})
		add := func(crawl uint32, n int) {
			for i := range n {
				name := fmt.Sprintf("host%d.crawl%d.example", i, crawl)
				id := c.Ensure(c.Hash([]byte(name)), name)
				c.PushTail(c.QueueOf(id, crawl, 1), c.Records.Store(1, benchURL()), 0)
			}
		}
		c.slotOf(none)
		c.pass = pass
		c.Crawls[c.slotOf(none)].pass = pass
		add(some, 400)
		add(most, 400)
		c.Crawls[c.slotOf(most)].Settings.Weight = 3
		got := map[uint32]int{}
		serve := func(n int) {
			for range n {
				ch, ok, bad := c.Next(0, nil)
				require.Nil(t, bad)
				require.True(t, ok)
				got[c.CrawlOf(c.Queues.At(ch.Queue)).ID]++
				c.Pop(c.Queues.At(ch.Queue))
			}
		}
		serve(400)
		require.Equal(t, map[uint32]int{some: 100, most: 300}, got)
		clear(got)
		add(none, 100)
		serve(50)
		require.Equal(t, map[uint32]int{none: 10, some: 10, most: 30}, got)
	}
}
