// This file is the book of all URLs: in which queue each is, what of it is held by clients,
// and how many there are. It is in memory, 28 bytes a URL in a map, and made anew at the start.

package urlfrontier

import (
	"container/heap"
	"hash/maphash"
	"sync"
	"time"

	"github.com/seed-7440039f/frontier"
)

// mark stands for a URL of a crawl.
type mark struct{ a, b uint64 }

// ref is where a URL is, when it was created in seconds since 1970, and whether it is completed.
type ref struct {
	queue    uint32
	created  uint32
	finished bool
}

// queueName names a queue.
type queueName struct {
	crawl uint32
	key   string
}

// queue is one key of one crawl. A queue that was deleted stays in book.queues, and the marks that
// refer to it count as unknown.
type queue struct {
	queueName
	active, finished int64
	held             int
	deleted          bool
}

// crawl are the sums of its queues.
type crawl struct {
	queues           []uint32 // in the order in which they began
	active, finished int64
	held             int
	live             int64 // queues with active URLs
}

// held is a URL that a client has.
type held struct {
	mark  mark
	queue uint32
	lease frontier.Lease
	until time.Time
	at    int // in the heap
}

// book is safe for concurrent use. Only holders of Server.write change which URLs there are.
type book struct {
	seedA, seedB maphash.Seed

	mu     sync.Mutex
	refs   map[mark]ref         // guarded by mu
	queues []*queue             // guarded by mu; ref.queue is an index of it
	byName map[queueName]uint32 // guarded by mu
	crawls map[uint32]*crawl    // guarded by mu
	leases map[mark]*held       // guarded by mu
	ends   endHeap              // guarded by mu; of leases
}

func newBook() *book {
	return &book{
		seedA: maphash.MakeSeed(), seedB: maphash.MakeSeed(), refs: map[mark]ref{}, byName: map[queueName]uint32{},
		crawls: map[uint32]*crawl{}, leases: map[mark]*held{},
	}
}

// markOf returns the mark of a URL.
func (b *book) markOf(crawl uint32, url string) mark {
	return mark{maphash.String(b.seedA, url) ^ uint64(crawl)*0x9e3779b97f4a7c15, maphash.String(b.seedB, url) + uint64(crawl)}
}

// findLocked returns where a URL is.
func (b *book) findLocked(m mark) (ref, bool) {
	r, ok := b.refs[m]
	return r, ok && !b.queues[r.queue].deleted
}

func (b *book) knows(m mark) bool {
	_, ok := b.find(m)
	return ok
}

func (b *book) find(m mark) (ref, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.findLocked(m)
}

// queueLocked returns the queue of a name, and makes it if need be.
func (b *book) queueLocked(name queueName) uint32 {
	if id, ok := b.byName[name]; ok {
		return id
	}
	id := uint32(len(b.queues))
	b.queues = append(b.queues, &queue{queueName: name})
	b.byName[name] = id
	c := b.crawls[name.crawl]
	if c == nil {
		c = &crawl{}
		b.crawls[name.crawl] = c
	}
	c.queues = append(c.queues, id)
	return id
}

// addLocked counts n URLs.
func (b *book) addLocked(id uint32, finished bool, n int64) {
	q := b.queues[id]
	if q.deleted {
		return
	}
	c := b.crawls[q.crawl]
	if finished {
		q.finished += n
		c.finished += n
		return
	}
	was := q.active > 0
	q.active += n
	c.active += n
	if is := q.active > 0; is != was {
		if is {
			c.live++
		} else {
			c.live--
		}
	}
}

// putLocked notes where a URL is from now on.
func (b *book) putLocked(m mark, name queueName, created uint32, finished bool) {
	if r, ok := b.findLocked(m); ok {
		b.addLocked(r.queue, r.finished, -1)
	}
	id := b.queueLocked(name)
	b.refs[m] = ref{id, created, finished}
	b.addLocked(id, finished, 1)
}

// dropLocked forgets a URL.
func (b *book) dropLocked(m mark) {
	if r, ok := b.findLocked(m); ok {
		b.addLocked(r.queue, r.finished, -1)
	}
	delete(b.refs, m)
}

// forgetLocked forgets a queue with all its URLs, and returns how many they were and what clients
// held of them.
func (b *book) forgetLocked(id uint32) (n int64, out []frontier.Lease) {
	q := b.queues[id]
	for _, h := range b.leases {
		if h.queue == id {
			out = append(out, h.lease)
		}
	}
	for _, h := range append(endHeap(nil), b.ends...) {
		if h.queue == id {
			b.releaseLocked(h)
		}
	}
	n = q.active + q.finished
	c := b.crawls[q.crawl]
	b.addLocked(id, false, -q.active)
	b.addLocked(id, true, -q.finished)
	q.deleted = true
	delete(b.byName, q.queueName)
	for i, other := range c.queues {
		if other == id {
			c.queues = append(c.queues[:i], c.queues[i+1:]...)
			break
		}
	}
	if len(c.queues) == 0 {
		delete(b.crawls, q.crawl)
	}
	return n, out
}

// settleLocked ends what clients held until now.
func (b *book) settleLocked(now time.Time) {
	for len(b.ends) > 0 && !b.ends[0].until.After(now) {
		b.releaseLocked(b.ends[0])
	}
}

// holdLocked notes that a client has a URL.
func (b *book) holdLocked(m mark, id uint32, l frontier.Lease, until time.Time) {
	if old := b.leases[m]; old != nil {
		b.releaseLocked(old)
	}
	h := &held{mark: m, queue: id, lease: l, until: until}
	b.leases[m] = h
	heap.Push(&b.ends, h)
	q := b.queues[id]
	q.held++
	b.crawls[q.crawl].held++
}

// releaseLocked notes that no client has the URL any more.
func (b *book) releaseLocked(h *held) {
	heap.Remove(&b.ends, h.at)
	delete(b.leases, h.mark)
	q := b.queues[h.queue]
	q.held--
	if !q.deleted {
		b.crawls[q.crawl].held--
	}
}

// take ends that a client has a URL, and returns the lease of it.
func (b *book) take(m mark, now time.Time) (frontier.Lease, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.settleLocked(now)
	h := b.leases[m]
	if h == nil {
		return frontier.Lease{}, false
	}
	b.releaseLocked(h)
	return h.lease, true
}

// endHeap orders what is held by its end.
type endHeap []*held

func (e endHeap) Len() int           { return len(e) }
func (e endHeap) Less(i, j int) bool { return e[i].until.Before(e[j].until) }
func (e endHeap) Swap(i, j int)      { e[i], e[j] = e[j], e[i]; e[i].at, e[j].at = i, j }

// Push is container/heap's.
func (e *endHeap) Push(x any) { h := x.(*held); h.at = len(*e); *e = append(*e, h) }

// Pop is container/heap's.
func (e *endHeap) Pop() any {
	old := *e
	h := old[len(old)-1]
	old[len(old)-1] = nil
	*e = old[:len(old)-1]
	return h
}

// keyOf is the key of a queue.
func (b *book) keyOf(id uint32) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.queues[id].key
}
