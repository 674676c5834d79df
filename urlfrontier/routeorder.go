// This file decides when a report of a page may go on to its part: when the links that came before it are stored at
// theirs. It knows nothing of streams.

package urlfrontier

import (
	"context"
	"sync"
)

// turn is the place of a link or of a batch of links among all that one connection has sent. 0: none.
type turn uint64

// order holds reports back that came on one connection, whatever the stream.
type order struct {
	mu       sync.Mutex
	last     turn          // guarded by mu; of the latest link or report
	queue    []place       // guarded by mu; begins with a link that is not stored
	stored   map[turn]bool // guarded by mu; links in the queue that are done with
	from, to turn          // guarded by mu; reports between them fail
}

// place is one in a queue. report is nil for links.
type place struct {
	turn
	report func(stored bool)
}

func orderOf(ctx context.Context) *order { return &ctx.Value(callerKey{}).(*caller).order }

// link notes that links came. done must follow.
func (o *order) link() turn {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.last++
	o.queue = append(o.queue, place{turn: o.last})
	return o.last
}

// report notes that a report came. If links wait that came before it, then gets to know whether all are stored.
func (o *order) report(then func(stored bool)) (waits bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.queue) == 0 {
		return false
	}
	o.last++
	o.queue = append(o.queue, place{o.last, then})
	return true
}

// done notes that links are stored, or that they are not and reports that wait for them fail.
func (o *order) done(t turn, stored bool) {
	if t == 0 {
		return
	}
	o.mu.Lock()
	o.stored[t] = true
	if !stored {
		if o.to < o.queue[0].turn {
			o.from = t
		}
		o.from, o.to = min(o.from, t), o.last
	}
	var free []func()
	for len(o.queue) > 0 {
		p := o.queue[0]
		if p.report == nil && !o.stored[p.turn] {
			break
		}
		if p.report != nil {
			ok := p.turn < o.from || p.turn > o.to
			free = append(free, func() { p.report(ok) })
		}
		delete(o.stored, p.turn)
		o.queue = o.queue[1:]
	}
	o.mu.Unlock()
	for _, then := range free {
		then()
	}
}
