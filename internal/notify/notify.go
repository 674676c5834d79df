// Package notify delivers the events of a frontier. It owns a bounded queue, which keeps the order
// and never blocks senders, and a record of repeated failures. Both have their own locks, which are
// never held while a reader runs.
package notify

import "sync"

const maxPending = 4096 // events that wait for their delivery at most

// Queue is a queue of events. A goroutine delivers them while there are any.
//
// Invariant: a goroutine runs deliver if and only if delivering is set, which it is while events
// are pending; at most maxPending are.
//
// The zero value with Deliver set is ready. Safe for concurrent use.
type Queue[E any] struct {
	Deliver func(e E, lost int64) // lost: events that did not fit in just before e; set before Put

	mu         sync.Mutex
	queue      []entry[E]
	pending    int // in queue, or taken from it and not yet delivered
	delivering bool
	ended      bool
	lost       int64 // since the last event that was queued
	dropped    int64
	idle       chan struct{} // made by End; closed when the last event is delivered
}

type entry[E any] struct {
	event E
	lost  int64
}

// Put queues an event, or counts it if too many wait.
func (q *Queue[E]) Put(e E) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ended || q.pending == maxPending {
		q.lost++
		q.dropped++
		return
	}
	q.queue = append(q.queue, entry[E]{e, q.lost})
	q.lost = 0
	q.pending++
	if !q.delivering {
		q.delivering = true
		go q.deliver()
	}
}

// deliver delivers events until there are none.
func (q *Queue[E]) deliver() {
	q.mu.Lock()
	for q.pending > 0 {
		batch := q.queue
		q.queue = nil
		for _, e := range batch {
			q.pending--
			q.mu.Unlock()
			q.Deliver(e.event, e.lost)
			q.mu.Lock()
		}
	}
	q.delivering = false
	if q.idle != nil {
		close(q.idle)
	}
	q.mu.Unlock()
}

// End waits until all events are delivered. Later ones are lost.
func (q *Queue[E]) End() {
	q.mu.Lock()
	q.ended = true
	if q.delivering {
		q.idle = make(chan struct{})
	}
	idle := q.idle
	q.mu.Unlock()
	if idle != nil {
		<-idle
	}
}

// Lost returns how many events were lost so far.
func (q *Queue[E]) Lost() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.dropped
}
