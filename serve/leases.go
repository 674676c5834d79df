// This file remembers which streams leases went to, and how leases ended.

package serve

import (
	"slices"
	"sync"
	"time"

	"github.com/seed-7440039f/frontier"
)

// streams are those that leases were handed out by, by token.
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

// update replaces a lease by one that succeeds it, or has another deadline.
func (x *streams) update(old, l frontier.Lease) {
	x.mu.Lock()
	st := x.by[old.Token()]
	if st != nil { // else it has just ended
		x.by[l.Token()] = st
		st.out(l)
	}
	x.mu.Unlock()
	if old.Token() != l.Token() {
		x.drop(old.Token()) // after that, as its place is free for the stream
	}
}

// giveBack returns leases that did not reach the client.
func (s *Service) giveBack(leases []frontier.Lease) {
	for _, l := range slices.Backward(leases) { // the first becomes the head of its queue again
		_ = s.Done(l, frontier.Outcome{Result: frontier.Requeue, Uncontacted: true}) // unless it has ended
		s.streams.drop(l.Token())
	}
}

// ended are leases that ended lately, so that the same Done twice does no harm, and those that end
// now.
type ended struct {
	mu    sync.Mutex
	queue []endedLease             // guarded by mu; the oldest first
	gone  int                      // guarded by mu; how many have left queue
	by    map[uint64]int           // guarded by mu; by token, the place in queue, and gone
	size  int                      // guarded by mu; bytes of the answers
	busy  map[uint64]chan struct{} // guarded by mu; leases that end now; nil: no request waits for it
}

type endedLease struct {
	token, body uint64
	at          time.Time
	answer      string // empty: nothing was added
}

const (
	endedFor    = 10 * time.Minute
	endedAtMost = 1 << 18
	endedSize   = 32 << 20 // bytes of answers
)

// claim lets a request end a lease, which settle follows. If another one is ending it, claim returns
// what to wait for.
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

// settle ends a claim, and remembers how the lease ended, unless x is nil.
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

// find returns how a lease ended, if it was by the same body.
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
