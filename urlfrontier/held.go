// This file remembers the leases of the URLs that clients have: GetURLs hands out URLs without lease IDs.

package urlfrontier

import (
	"container/heap"
	"sync"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/serve"
)

// leaseKey is the metadata of a URL that is handed out with which its report says what it reports: a URL may be
// out again because its lease has ended, and the report of the first contact may come while the second is under way.
const leaseKey = "frontier.lease"

// urlName names a URL of a crawl.
type urlName struct {
	crawl uint32
	url   string
}

// held is a URL in a client's hands.
type held struct {
	name  urlName
	lease frontier.Lease
	until time.Time
	over  bool // its lease has ended: it is in late
	at    int  // index in its heap
}

// bytes estimates the memory of a held URL whose lease has ended.
func (h *held) bytes() int { return 1<<10 + len(h.name.url) }

// holds is the table of URLs in clients' hands. URLs whose leases have ended stay for a while: the client
// of a slow host reports late, and that report still sets its host's clock. It is safe for concurrent
// use.
type holds struct {
	mu    sync.Mutex
	by    map[urlName]*held // guarded by mu
	ends  endHeap           // guarded by mu; those whose leases run
	late  endHeap           // guarded by mu; those whose leases have ended
	bytes int               // guarded by mu; memory of late
}

const (
	lateFor    = 10 * time.Minute // how long after its lease's end a report still moves the clock
	lateRoom   = 64 << 20         // bytes of late
	agedAtOnce = 64               // entries that one call ages: more than it adds
)

// hold records that a client has the URL of a lease.
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

// ageLocked moves URLs whose leases have ended to late, and drops the oldest of those.
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

// take removes a URL from the table, and returns its lease.
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

// takeOf removes the URLs of a crawl, or of one queue of it, and returns their leases.
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

// endHeap orders held URLs by the end of their leases.
type endHeap []*held

func (e endHeap) Len() int           { return len(e) }
func (e endHeap) Less(i, j int) bool { return e[i].until.Before(e[j].until) }
func (e endHeap) Swap(i, j int)      { e[i], e[j] = e[j], e[i]; e[i].at, e[j].at = i, j }

// Push implements heap.Interface.
func (e *endHeap) Push(x any) { h := x.(*held); h.at = len(*e); *e = append(*e, h) }

// Pop implements heap.Interface.
func (e *endHeap) Pop() any {
	old := *e
	h := old[len(old)-1]
	old[len(old)-1] = nil
	*e = old[:len(old)-1]
	return h
}
