// This file remembers which URLs clients have: GetURLs hands them out without the IDs of their
// leases.

package urlfrontier

import (
	"container/heap"
	"sync"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/serve"
)

// urlName names a URL of a crawl.
type urlName struct {
	crawl uint32
	url   string
}

// held is a URL that a client has.
type held struct {
	name  urlName
	lease frontier.Lease
	until time.Time
	over  bool // it is in late
	at    int  // in its heap
}

// bytes is what one takes in memory whose lease is over, about.
func (h *held) bytes() int { return 1<<10 + len(h.name.url) }

// holds are what clients have. A lease that is over stays for a while: the client of a slow host
// reports late, and its host's clock is to know. It is safe for concurrent use.
type holds struct {
	mu    sync.Mutex
	by    map[urlName]*held // guarded by mu
	ends  endHeap           // guarded by mu; of by
	late  endHeap           // guarded by mu; of by, those whose leases are over
	bytes int               // guarded by mu; of late
}

const (
	lateFor    = 10 * time.Minute // after the end of its lease, a report still moves the clock
	lateRoom   = 64 << 20         // bytes of those that are over
	agedAtOnce = 64               // ends that a call looks at: more than it makes
)

// hold notes that a client has the URL of a lease.
func (x *holds) hold(l frontier.Lease, until time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.ageLocked(time.Now())
	name := urlName{l.Entry.Crawl, l.Entry.URL}
	if old := x.by[name]; old != nil {
		x.releaseLocked(old)
	}
	if x.by == nil {
		x.by = map[urlName]*held{}
	}
	h := &held{name: name, lease: l, until: until}
	x.by[name] = h
	heap.Push(&x.ends, h)
}

func (x *holds) releaseLocked(h *held) {
	if delete(x.by, h.name); h.over {
		heap.Remove(&x.late, h.at)
		x.bytes -= h.bytes()
		return
	}
	heap.Remove(&x.ends, h.at)
}

// ageLocked keeps less of those whose leases are over, and in the end nothing.
func (x *holds) ageLocked(now time.Time) {
	for range agedAtOnce {
		if len(x.ends) == 0 || x.ends[0].until.After(now) {
			break
		}
		h := heap.Pop(&x.ends).(*held)
		h.over = true
		kept := serve.Envelope{Created: envelopeOf(h.lease.Entry.Meta).Created}
		h.lease.Entry.Meta = kept.Append(nil)
		heap.Push(&x.late, h)
		x.bytes += h.bytes()
	}
	for range 2 * agedAtOnce {
		if len(x.late) == 0 || x.bytes <= lateRoom && now.Sub(x.late[0].until) <= lateFor {
			break
		}
		x.releaseLocked(x.late[0])
	}
}

// take ends that a client has a URL, or had it lately, and returns the lease of it.
func (x *holds) take(name urlName, now time.Time) (frontier.Lease, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.ageLocked(now)
	h := x.by[name]
	if h == nil {
		return frontier.Lease{}, false
	}
	x.releaseLocked(h)
	return h.lease, true
}

// takeOf ends that clients have URLs of a crawl, or of a queue of it, and returns the leases.
func (x *holds) takeOf(crawl uint32, key string, now time.Time) (out []frontier.Lease) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for name, h := range x.by {
		if name.crawl == crawl && (key == "" || h.lease.Host == key) && h.until.After(now) {
			x.releaseLocked(h)
			out = append(out, h.lease)
		}
	}
	return out
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
