package mercator

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/seed-7440039f/frontier/internal/fifo"
	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/internal/record"
	"github.com/seed-7440039f/frontier/internal/row"
	"github.com/seed-7440039f/frontier/internal/timeheap"
	"github.com/seed-7440039f/frontier/selector"
	"github.com/seed-7440039f/frontier/storage"
)

// forSizes runs fn as what/n=1e3 to what/n=1e6.
func forSizes(b *testing.B, what string, fn func(b *testing.B, n int)) {
	for e, n := 3, 1000; e <= 6; e, n = e+1, n*10 {
		b.Run(fmt.Sprintf("%s/n=1e%d", what, e), func(b *testing.B) {
			b.ReportAllocs()
			fn(b, n)
		})
	}
}

func benchRand() *rand.Rand { return rand.New(rand.NewPCG(1, 2)) }

// benchSpan is the time over which benchmarks spread what they order.
const benchSpan = 1 << 40

// BenchmarkHeap orders n hosts.
func BenchmarkHeap(b *testing.B) {
	filled := func(n int) (*timeheap.Heap, []int32, *rand.Rand) {
		pos, r := make([]int32, n), benchRand()
		h := &timeheap.Heap{Moved: func(id uint32, i int) { pos[id] = int32(i) }}
		for i := range n {
			h.Push(timeheap.Item{At: r.Int64N(benchSpan), ID: uint32(i)})
		}
		return h, pos, r
	}
	// The earliest is taken and put back later, as at each contact.
	forSizes(b, "op=pushpop", func(b *testing.B, n int) {
		h, _, r := filled(n)
		for b.Loop() {
			it := h.Pop()
			it.At += r.Int64N(benchSpan)
			h.Push(it)
		}
	})
	// Any one gets another time, as a group does.
	forSizes(b, "op=fix", func(b *testing.B, n int) {
		h, pos, r := filled(n)
		for b.Loop() {
			h.Fix(int(pos[r.IntN(n)]), r.Int64N(benchSpan))
		}
	})
	// Any one leaves and comes back, as a lease that is out.
	forSizes(b, "op=remove", func(b *testing.B, n int) {
		h, pos, r := filled(n)
		for b.Loop() {
			id := uint32(r.IntN(n))
			h.Remove(int(pos[id]))
			h.Push(timeheap.Item{At: r.Int64N(benchSpan), ID: id})
		}
	})
}

// benchHosts returns names of n hosts and hashes to find them by.
func benchHosts(n int) ([]string, []uint64) {
	names, hashes, c := make([]string, n), make([]uint64, n), benchScheduler()
	for i := range names {
		names[i] = fmt.Sprintf("host%d.example.com", i)
		hashes[i] = c.Hash([]byte(names[i]))
	}
	return names, hashes
}

func benchScheduler() *Core {
	return New(Config{Levels: 8, Quantum: 32, ParkAfter: math.MaxInt64, Choose: choose(selector.BiasedRandom(1))})
}

// BenchmarkHosts finds hosts among n by their keys.
func BenchmarkHosts(b *testing.B) {
	// Twice as many names as hosts: those of the first half are in the table.
	filled := func(n int) (c *Core, names []string, hashes []uint64, ids []uint32) {
		c, ids = benchScheduler(), make([]uint32, 2*n)
		names, hashes = benchHosts(2 * n)
		for i := range n {
			ids[i] = c.Ensure(hashes[i], names[i])
		}
		return c, names, hashes, ids
	}
	lookup := func(known bool) func(b *testing.B, n int) {
		return func(b *testing.B, n int) {
			c, names, hashes, _ := filled(n)
			bytes := float64(c.Memory())
			from, r := 0, benchRand()
			if !known {
				from = n
			}
			for b.Loop() {
				i := from + r.IntN(n)
				if id := c.Lookup(hashes[i], names[i]); (id != 0) != known {
					b.Fatal(names[i], id)
				}
			}
			b.ReportMetric(bytes/float64(n), "B/host")
		}
	}
	forSizes(b, "op=known", lookup(true))
	forSizes(b, "op=unknown", lookup(false))
	// A new host comes, and the oldest is forgotten.
	forSizes(b, "op=replace", func(b *testing.B, n int) {
		c, names, hashes, ids := filled(n)
		old, young := 0, n
		for b.Loop() {
			ids[young] = c.Ensure(hashes[young], names[young])
			c.forget(ids[old])
			old, young = (old+1)%(2*n), (young+1)%(2*n)
		}
	})
}

// benchURL is a URL of the usual length, as it is stored.
func benchURL() []byte {
	return (&record.Body{Depth: 3, URL: []byte("http://host1.example.com/some/path/to/a/page/12345.html")}).Append(nil)
}

// BenchmarkFrontQueue moves tokens of n hosts, each with URLs of two priorities.
func BenchmarkFrontQueue(b *testing.B) {
	filled := func(n int) (*Core, []uint32) {
		c, url := benchScheduler(), benchURL()
		names, hashes := benchHosts(n)
		ids := make([]uint32, n)
		for i := range ids {
			ids[i] = c.Ensure(hashes[i], names[i])
			for _, p := range []int{1 + i%4, 5 + i%4} {
				c.PushTail(c.QueueOf(ids[i], 0, uint8(p)), c.Records.Store(uint64(i+1), url), 0)
			}
		}
		return c, ids
	}
	// The first token of a queue becomes its last.
	forSizes(b, "op=rotate", func(b *testing.B, n int) {
		c, _ := filled(n)
		p := 0
		for b.Loop() {
			p = p%c.Cfg.Levels + 1
			q := c.Crawls[0].Lists[tokens].At[p].first
			c.delist(tokens, q)
			c.enlist(tokens, q)
		}
	})
	// Any host gets a back queue and gives it up again.
	forSizes(b, "op=bind", func(b *testing.B, n int) {
		c, ids := filled(n)
		r := benchRand()
		for b.Loop() {
			id := ids[r.IntN(n)]
			h := c.Hosts.At(id)
			c.bind(h)
			c.unbind(id, h)
		}
	})
}

// BenchmarkBackQueue holds n URLs, as many for each host as a part of a block.
func BenchmarkBackQueue(b *testing.B) {
	// The URLs lie in parts, too, and are in memory as if just read.
	filled := func(n int) (c *Core, queues []uint32, read []fifo.Loaded) {
		c = benchScheduler()
		for i := range storage.MaxPart {
			read = append(read, fifo.Loaded{Pos: i, Seq: uint64(i + 1), Body: benchURL()})
		}
		names, hashes := benchHosts(n / storage.MaxPart)
		for i := range names {
			id := c.Ensure(hashes[i], names[i])
			qid := c.QueueOf(id, 0, 1)
			q := c.Queues.At(qid)
			p := c.Blocks.AddPart(storage.Part{Block: uint32(i + 1), Count: storage.MaxPart})
			c.Fifo.Chain(&q.Queue, p)
			c.Counted(q, storage.MaxPart)
			c.Fifo.Install(&q.Queue, p, read)
			c.Hosts.At(id).Served = 1 // it is bound
			c.Settle(id, 0)
			queues = append(queues, qid)
		}
		return c, queues, read
	}
	// The first URL of any queue becomes its last.
	forSizes(b, "op=pushpop", func(b *testing.B, n int) {
		c, queues, _ := filled(n)
		r := benchRand()
		for b.Loop() {
			qid := queues[r.IntN(len(queues))]
			c.PushTail(qid, c.Pop(c.Queues.At(qid)), 0)
		}
	})
	// The URLs of a part leave memory and are read again, less the disk.
	forSizes(b, "op=reload", func(b *testing.B, n int) {
		c, queues, read := filled(n)
		r := benchRand()
		for b.Loop() {
			qid := queues[r.IntN(len(queues))]
			q := &c.Queues.At(qid).Queue
			c.Fifo.Evict(q, false)
			part, _ := c.Fifo.Next(q)
			c.Fifo.Install(q, part, read)
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/storage.MaxPart, "ns/url")
	})
}

// BenchmarkRecord stores a URL in memory, reads it and frees it.
func BenchmarkRecord(b *testing.B) {
	c := New(Config{Levels: 1})
	keep := c.Records.Store(1, []byte{0}) // the arena is never empty
	body := benchURL()
	b.ReportAllocs()
	for b.Loop() {
		ref := c.Records.Store(1, body)
		if _, err := record.Decode(c.Records.At(ref).Body()); err != nil {
			b.Fatal(err)
		}
		c.Records.Discard(ref)
	}
	c.Records.Discard(keep)
	b.ReportMetric(float64(record.Cost(len(body))), "B/record")
}

// groupBench is a core with hosts in groups. Each host has one URL and is due at
// some time.
type groupBench struct {
	*Core
	now int64
	ids []uint32
}

// newGroupBench puts host i into the group that groupOf returns; empty: into none.
// The hosts are due within span.
func newGroupBench(n int, span int64, groupOf func(i int) string) *groupBench {
	b := &groupBench{Core: benchScheduler()}
	c, url, r := b.Core, benchURL(), benchRand()
	names, hashes := benchHosts(n)
	for i := range names {
		id := c.Ensure(hashes[i], names[i])
		h := c.Hosts.At(id)
		h.Due, h.Served = r.Int64N(span), 1 // bound, in the heap
		if g := groupOf(i); g != "" {
			c.joinGroup(h, c.GroupOf(g))
		}
		c.PushTail(c.QueueOf(id, 0, uint8(1+i%8)), c.Records.Store(uint64(i+1), url), 0)
		b.ids = append(b.ids, id)
	}
	return b
}

// next hands a URL out, at the time when one may be.
func (g *groupBench) next(b *testing.B) uint32 {
	ch, ok, err := g.Core.Next(g.now, nil)
	for !ok && err == nil {
		g.now = max(g.now, g.NextEvent(g.now))
		ch, ok, err = g.Core.Next(g.now, nil)
	}
	if err != nil {
		b.Fatal(err)
	}
	return g.Lease(ch.Queue, 1, g.now, g.now+1)
}

// done takes it back. Its host is due again after such a time.
func (g *groupBench) done(lease uint32, wait int64) {
	l := g.EndLease(lease)
	g.ReturnHead(l.Queue, l.Record)
	g.Filled(l.Queue, g.now)
	g.EndGroups(&l, g.now, func(*Group) int64 { return g.now + 1 })
	g.SettleLease(&l, g.now, clocks{lane: g.now + wait})
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
			l := g.Leases.At(lease)
			to := g.GroupOf(fmt.Sprint(r.IntN(n / 100)))
			if l.Group != to {
				granted := g.TakeSlot(to, g.now)
				g.MoveLease(l, to, granted, g.now)
				g.MoveHost(l.Host, to, g.now)
			}
			g.done(lease, r.Int64N(benchSpan))
		}
	})

	// Any host is assigned to any group.
	forSizes(b, "op=assign/groups=of100", func(b *testing.B, n int) {
		g, r := newGroupBench(n, benchSpan, of(100)), benchRand()
		for b.Loop() {
			g.Assign(g.ids[r.IntN(n)], fmt.Sprint(r.IntN(n/100)), g.now)
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
				g.Cfg.Lanes = lanes
			}
			for b.Loop() {
				g.done(g.next(b), r.Int64N(benchSpan))
			}
		})
	}
}

// pausedRules pauses all hosts, or none.
type pausedRules bool

func (p pausedRules) Delay(string) OwnPolicy           { return nil }
func (p pausedRules) Concurrency([]byte) int           { return 0 }
func (p pausedRules) Withholding() bool                { return true }
func (p pausedRules) Priority(_ []byte, q uint8) uint8 { return q }
func (p pausedRules) EndBlock(row.Scope, int64)        {}
func (p pausedRules) Withholds([]byte, int64) (int64, WithheldReason) {
	if p {
		return instant.Never, WithheldPaused
	}
	return instant.None, WithheldPaused
}

// BenchmarkHeld has n paused hosts.
func BenchmarkHeld(b *testing.B) {
	rule := func(c *Core, paused bool) {
		c.Cfg.Rules = pausedRules(paused)
		c.Ruled(row.Scope{}, instant.None, instant.None, paused, 0)
	}
	filled := func(n int) (*Core, []uint32) {
		c, url := benchScheduler(), benchURL()
		rule(c, true)
		names, hashes := benchHosts(n)
		ids := make([]uint32, n)
		for i := range ids {
			ids[i] = c.Ensure(hashes[i], names[i])
			c.PushTail(c.QueueOf(ids[i], 0, 1), c.Records.Store(uint64(i+1), url), 0)
			c.Detach(ids[i])
			c.withhold(ids[i], 0)
		}
		return c, ids
	}
	// One host is let go, and found to be held when its turn comes.
	forSizes(b, "op=aside", func(b *testing.B, n int) {
		c, ids := filled(n)
		r := benchRand()
		for b.Loop() {
			id := ids[r.IntN(n)]
			c.Detach(id)
			c.Settle(id, 0)
			c.Detach(id)
			c.withhold(id, 0)
		}
	})
	// As many as under one lock are looked at again, and stay.
	forSizes(b, "op=recheck", func(b *testing.B, n int) {
		c, _ := filled(n)
		for b.Loop() {
			if len(c.Withheld.rechecks) == 0 {
				c.Withheld.rechecks = append(c.Withheld.rechecks, recheck{})
			}
			c.expireWithheld(0)
		}
	})
	// The same, and all of them go.
	b.Run("op=release", func(b *testing.B) {
		n := 100_000
		c, ids := filled(n)
		left := 0
		for b.Loop() {
			if left == 0 {
				b.StopTimer()
				rule(c, true)
				for _, id := range ids {
					c.Detach(id)
					c.withhold(id, 0)
				}
				c.Withheld.rechecks = nil
				rule(c, false)
				left = n
				b.StartTimer()
			}
			c.expireWithheld(0)
			left = c.Places[Withheld]
		}
	})
}

func BenchmarkHostOrder(b *testing.B) {
	for _, n := range []int{1000, 1000000} {
		b.Run(fmt.Sprintf("insert/hosts=%d", n), func(b *testing.B) {
			c := New(Config{Levels: 1, Quantum: 1})
			for i := range n {
				name := fmt.Sprintf("www.site%d.example", (i*7919)%n)
				c.Ensure(c.Hash([]byte(name)), name)
			}
			for !c.OrderSome(1000) {
			}
			i := 0
			for b.Loop() {
				id := uint32(1 + i*104729%n)
				c.order.Leaves(id)
				c.order.Came(id)
				i++
			}
		})
	}
}

// choose asks a selector that does not panic.
func choose(s selector.Selector) func(available []int) (int, any) {
	return func(available []int) (int, any) { return s.Select(available), nil }
}
