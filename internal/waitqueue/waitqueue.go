// Package waitqueue queues calls in the order of their arrival. It owns the queue, and passes to
// the first call what it waits for.
//
// It has no lock: callers hold the frontier's. Only a waiter's channel is received from without it.
package waitqueue

// Waiter is a call that waits.
type Waiter[T any] struct {
	// Granted receives what the call waited for, once, or nothing if it left.
	Granted    chan T
	prev, next *Waiter[T]
	waits      bool
}

// Waits reports whether the call is still waiting.
func (w *Waiter[T]) Waits() bool { return w.waits }

// Queue is a FIFO of waiters. The zero value is empty.
type Queue[T any] struct{ first, last *Waiter[T] }

// Empty reports whether no call waits.
func (q *Queue[T]) Empty() bool { return q.first == nil }

// Push adds a waiter behind the others.
func (q *Queue[T]) Push() *Waiter[T] {
	w := &Waiter[T]{Granted: make(chan T, 1), prev: q.last, waits: true}
	if q.last != nil {
		q.last.next = w
	} else {
		q.first = w
	}
	q.last = w
	return w
}

// Remove removes a waiter, at any position.
func (q *Queue[T]) Remove(w *Waiter[T]) {
	if w.prev != nil {
		w.prev.next = w.next
	} else {
		q.first = w.next
	}
	if w.next != nil {
		w.next.prev = w.prev
	} else {
		q.last = w.prev
	}
	w.prev, w.next, w.waits = nil, nil, false
}

// Give removes the first waiter and passes x to it. The queue must not be empty.
func (q *Queue[T]) Give(x *T) {
	w := q.first
	q.Remove(w)
	w.Granted <- *x
}

// GiveAll hands x to every waiter.
func (q *Queue[T]) GiveAll(x *T) {
	for q.first != nil {
		q.Give(x)
	}
}
