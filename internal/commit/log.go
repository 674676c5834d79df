// Package commit keeps the operations that wait to be committed, in the order in which
// they came, and runs the goroutine that commits them in groups: callers share the price
// of a write. It owns that queue, and knows nothing of what an operation does.
//
// No lock: callers hold the frontier's. Only Run must be called without it.
package commit

import (
	"iter"
	"runtime"
	"slices"
)

// Log is the queue of operations. The zero value is empty, and none may be added to it.
type Log[O any] struct {
	size    func(O) int  // bytes that an operation takes
	alone   func(O) bool // it is committed by itself
	queue   []O
	bytes   int64
	working bool          // a group is under way
	wake    chan struct{} // has a token when the queue may not be empty
}

// New returns an empty log of operations that take size bytes. Those that must be alone
// share no group.
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

// Busy reports whether an operation waits or is under way.
func (l *Log[O]) Busy() bool { return l.working || len(l.queue) > 0 }

// Bytes is what the operations take that wait or are under way.
func (l *Log[O]) Bytes() int64 { return l.bytes }

// Waiting yields the operations that wait.
func (l *Log[O]) Waiting() iter.Seq[O] { return slices.Values(l.queue) }

// Take takes the next group off the queue: operations of about most bytes, or one that
// must be alone. Until End it is under way.
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
	group := slices.Clone(l.queue[:n])
	clear(l.queue[:n])
	if l.queue = l.queue[n:]; len(l.queue) == 0 {
		l.queue = nil
	}
	l.working = true
	return group
}

// TakeWith takes those off the queue that have what a group has that failed: they
// fail with it. Operations that must be alone stay.
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

// Settled says that an operation that was taken is applied or undone.
func (l *Log[O]) Settled(o O) { l.bytes -= int64(l.size(o)) }

// End says that the group is no longer under way.
func (l *Log[O]) End() { l.working = false }

// Run calls group, which commits one, as long as there is any, and again when operations
// come. Once stop is closed, and no operation comes any more, it returns when none waits.
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
