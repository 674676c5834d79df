// This file remembers which URLs clients have: GetURLs hands them out without the IDs of their
// leases.

package urlfrontier

import (
	"container/heap"
	"sync"
	"time"

	"github.com/seed-7440039f/frontier"
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
	at    int // in the heap
}

// holds are what clients have. It is safe for concurrent use.
type holds struct {
	mu   sync.Mutex
	by   map[urlName]*held // guarded by mu
	ends endHeap           // guarded by mu; of by
}

// hold notes that a client has the URL of a lease.
func (x *holds) hold(l frontier.Lease, until time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
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
	heap.Remove(&x.ends, h.at)
	delete(x.by, h.name)
}

// take ends that a client has a URL, and returns the lease of it.
func (x *holds) take(name urlName, now time.Time) (frontier.Lease, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for len(x.ends) > 0 && !x.ends[0].until.After(now) {
		x.releaseLocked(x.ends[0])
	}
	h := x.by[name]
	if h == nil {
		return frontier.Lease{}, false
	}
	x.releaseLocked(h)
	return h.lease, true
}

// takeOf is take for all URLs of a crawl, or of a queue of it.
func (x *holds) takeOf(crawl uint32, key string) (out []frontier.Lease) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for name, h := range x.by {
		if name.crawl == crawl && (key == "" || h.lease.Host == key) {
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
