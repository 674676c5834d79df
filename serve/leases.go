// This file remembers which stream each lease went to, and how leases ended.

package serve

import (
	"slices"
	"sync"
	"time"

	"github.com/seed-7440039f/frontier"
)

// streams maps the token of each outstanding lease to the stream that handed it out.
type streams struct {
	mu sync.Mutex
	by map[uint64]*stream // guarded by mu
}

func (x *streams) set(token uint64, st *stream) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.by == nil {
		x.by = map[uint64]*stream{}
	}
	x.by[token] = st
}

// drop forgets leases that have ended.
func (x *streams) drop(tokens ...uint64) {
	for _, token := range tokens {
		x.mu.Lock()
		st := x.by[token]
		delete(x.by, token)
		x.mu.Unlock()
		if st != nil {
			st.over(token)
		}
	}
}

// update replaces a lease by its successor or by a copy with another deadline.
func (x *streams) update(old, l frontier.Lease) {
	x.mu.Lock()
	st := x.by[old.Token()]
	if st != nil { // otherwise it has just ended
		x.by[l.Token()] = st
		st.out(l)
	}
	x.mu.Unlock()
	if old.Token() != l.Token() {
		x.drop(old.Token()) // last, because it frees the stream's place
	}
}

// giveBack returns leases that did not reach the client.
func (s *Service) giveBack(leases []frontier.Lease) {
	for _, l := range slices.Backward(leases) { // backward: the first returns to the head of its queue
		_ = s.Done(l, frontier.Outcome{Result: frontier.Requeue, Uncontacted: true}) // fails only if it has ended
		s.streams.drop(l.Token())
	}
}

// ended remembers leases that ended recently, so that a repeated Done changes nothing, and leases that
// are ending.
type ended struct {
	mu    sync.Mutex
	queue []endedLease             // guarded by mu; the oldest first
	gone  int                      // guarded by mu; how many were removed from queue
	by    map[uint64]int           // guarded by mu; by token, the index in queue plus gone
	size  int                      // guarded by mu; bytes of all answers
	busy  map[uint64]chan struct{} // guarded by mu; leases that are ending; nil: no request waits
}

type endedLease struct {
	token, body uint64
	at          time.Time
	answer      string // empty: no URL was added
}

const (
	endedFor    = 10 * time.Minute
	endedAtMost = 1 << 18
	endedSize   = 32 << 20 // bytes of answers
)

// claim reserves a lease for one request to end; settle must follow. If another request is ending it,
// claim returns the channel to wait on.
func (e *ended) claim(token uint64) (wait <-chan struct{}) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if c, ok := e.busy[token]; ok {
		if c == nil {
			c = make(chan struct{})
			e.busy[token] = c
		}
		return c
	}
	if e.busy == nil {
		e.by, e.busy = map[uint64]int{}, map[uint64]chan struct{}{}
	}
	e.busy[token] = nil
	return nil
}

// settle releases a claim. It remembers how the lease ended, unless x is nil.
func (e *ended) settle(token uint64, x *endedLease) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if c := e.busy[token]; c != nil {
		close(c)
	}
	delete(e.busy, token)
	if x == nil {
		return
	}
	e.size += len(x.answer)
	for len(e.queue) > 0 {
		old := &e.queue[0]
		if len(e.queue) < endedAtMost && e.size <= endedSize && x.at.Sub(old.at) <= endedFor {
			break
		}
		e.size -= len(old.answer)
		delete(e.by, old.token)
		*old = endedLease{}
		e.queue = e.queue[1:]
		e.gone++
	}
	e.by[token] = e.gone + len(e.queue)
	e.queue = append(e.queue, *x)
}

// find returns how a lease ended, if a request with the same body ended it.
func (e *ended) find(token, body uint64) (endedLease, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	i, ok := e.by[token]
	if !ok {
		return endedLease{}, false
	}
	x := e.queue[i-e.gone]
	return x, x.body == body && time.Since(x.at) <= endedFor
}
