// Package commit queues operations in the order of their arrival, and runs the goroutine that
// commits them in groups: callers share the cost of a write. It owns the queue, and does not depend
// on what an operation does.
//
// It has no lock: callers hold the frontier's. Only Run must be called without it.
package commit

import (
	"iter"
	"runtime"
	"slices"
)

// Log is the queue of operations. The zero value is empty, and accepts no operations.
type Log[O any] struct {
	size    func(O) int  // memory of an operation in bytes
	alone   func(O) bool // whether it needs a separate group
	queue   []O
	taken   []O // the last group, and then memory for the queue
	bytes   int64
	working bool          // that group is being committed
	wake    chan struct{} // holds a token when the queue may not be empty
}

// New returns an empty log of operations; size returns the memory of an operation, and alone
// whether it needs a separate group.
func New[O any](size func(O) int, alone func(O) bool) Log[O] {
	return Log[O]{size: size, alone: alone, wake: make(chan struct{}, 1)}
}

// Add hands an operation over.
func (l *Log[O]) Add(o O) {
	l.queue = append(l.queue, o)
	l.bytes += int64(l.size(o))
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// Busy reports whether operations are waiting or being committed.
func (l *Log[O]) Busy() bool { return l.working || len(l.queue) > 0 }

// Bytes returns the memory of the operations that are waiting or being committed.
func (l *Log[O]) Bytes() int64 { return l.bytes }

// Waiting yields the operations that wait.
func (l *Log[O]) Waiting() iter.Seq[O] { return slices.Values(l.queue) }

// Unsettled yields the operations that are being committed, and those that wait.
func (l *Log[O]) Unsettled() iter.Seq[O] {
	return func(yield func(O) bool) {
		for _, o := range l.taken {
			if l.working && !yield(o) {
				return
			}
		}
		for _, o := range l.queue {
			if !yield(o) {
				return
			}
		}
	}
}

// Take removes the next group from the queue: operations of about most bytes, or one that needs a
// separate group. The group counts as being committed until End, and is valid until the next Take.
func (l *Log[O]) Take(most int) []O {
	n, size := 0, 0
	for n < len(l.queue) && size < most && !l.alone(l.queue[n]) {
		size += l.size(l.queue[n])
		n++
	}
	if n == 0 {
		if len(l.queue) == 0 {
			return nil
		}
		n = 1
	}
	clear(l.taken)
	if n == len(l.queue) { // the usual case: the two take turns
		l.taken, l.queue = l.queue, l.taken[:0]
	} else {
		l.taken = append(l.taken[:0], l.queue[:n]...)
		l.queue = slices.Delete(l.queue, 0, n)
	}
	l.working = true
	return l.taken[:n:n]
}

// TakeWith removes the operations that have something in common with a failed group: they fail,
// too. Operations that need a separate group stay.
func (l *Log[O]) TakeWith(has func(O) bool) []O {
	var out, kept []O
	for _, o := range l.queue {
		if !l.alone(o) && has(o) {
			out = append(out, o)
		} else {
			kept = append(kept, o)
		}
	}
	l.queue = kept
	return out
}

// Keep records that of the group only these operations are still being committed.
func (l *Log[O]) Keep(group []O) { l.taken = group }

// Settled records that a taken operation was applied or undone.
func (l *Log[O]) Settled(o O) { l.bytes -= int64(l.size(o)) }

// End records that the group is no longer being committed.
func (l *Log[O]) End() { l.working = false }

// Run calls group, which commits one group, while operations are waiting, and whenever new ones
// arrive. After stop is closed, when no more operations arrive, it returns once none is waiting.
func (l *Log[O]) Run(stop <-chan struct{}, group func() (more bool)) {
	for stopped := false; !stopped; {
		select {
		case <-l.wake:
		case <-stop:
			stopped = true
		}
		runtime.Gosched() // callers that are about to add share this commit
		for group() {
		}
	}
}
