// Package waitqueue keeps the calls that wait for something in the order in which they
// came. It owns who waits, and hands over what the first in line waited for.
//
// No lock: callers hold the frontier's. Only a waiter's channel is received from without.
package waitqueue

// Waiter is a call that waits.
type Waiter[T any] struct {
	// Granted gets what the call waited for, once, or nothing if it left.
	Granted    chan T
	prev, next *Waiter[T]
	waits      bool
}

// Waits reports whether the call still waits: it was given nothing yet.
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

// Remove takes a waiter out that waits here, wherever it is.
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

// Give takes the first waiter out and hands it x. The queue must not be empty.
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
