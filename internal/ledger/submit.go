// This file submits operations, and waits for them.

package ledger

import (
	"fmt"

	"github.com/seed-7440039f/frontier/internal/commit"
	"github.com/seed-7440039f/frontier/internal/mercator"
	"github.com/seed-7440039f/frontier/storage"
)

// SubmitAndUnlock commits an operation and waits for it.
func (l *Ledger) SubmitAndUnlock(o *Op) error {
	if l.SubmitYielding(o) {
		l.Mu.Unlock()
		return l.Await(o)
	}
	l.up.Dispatch()
	l.Mu.Unlock()
	return nil
}

// SubmitYielding commits an operation, and reports whether its result must be waited for.
func (l *Ledger) SubmitYielding(o *Op) (waits bool) {
	l.pending++
	if l.Spill != nil || l.up.Closed() {
		l.enqueue(o)
		return true
	}
	l.applyYielding(o)
	l.pending--
	return false
}

// SubmitAsync commits an operation without waiting; o.After gets the result, unless it is nil. The operation has at
// most AtOnce entries, so that the lock is not given up.
func (l *Ledger) SubmitAsync(o *Op) {
	if o.After == nil {
		o.After = func(error) {}
	}
	if !l.SubmitYielding(o) {
		l.afterwards(o, nil)
	}
}

// enqueue hands an operation to the committer's goroutine, which sends on o.done. After
// Stop there is no such goroutine any more: the operation is undone, and fails.
func (l *Ledger) enqueue(o *Op) {
	if o.After == nil {
		o.done = l.replies.New()
	}
	if l.up.Closed() {
		l.Undo(o)
		l.pending--
		if o.After == nil {
			o.done.Send(storage.ErrClosed)
		}
		return
	}
	l.named(o.Entries)
	l.queue.Add(o)
	if l.unwaited {
		o.release()
	}
}

// named notes that entries are submitted: departing hosts that they name stay until they are settled.
func (l *Ledger) named(entries []Entry) {
	c := l.Core
	if !c.Dormant.Submitted() {
		return
	}
	for i := range entries {
		e := &entries[i]
		if i > 0 && e.SameHost(&entries[i-1]) || !c.Dormant.MayHaveRow(e.Hash) {
			continue
		}
		if id := c.Lookup(e.Hash, e.Host); id != 0 && c.Hosts.At(id).Place == mercator.Departing {
			c.Depart(id)
		}
	}
}

// Await waits for an operation that was submitted. If its Context ends before, the operation is the ledger's for good,
// and the error wraps ErrUnsettled. The lock is not held.
func (l *Ledger) Await(o *Op) error {
	err, why := l.replies.Wait(o.Context, o.done)
	if why == nil {
		return err
	}
	o.Left = true
	if why == commit.ErrReleased {
		why = storage.ErrClosed
	}
	return fmt.Errorf("%w: %w", ErrUnsettled, why)
}

// Result waits for an operation that was submitted, whatever ends. The lock is not held.
func (o *Op) Result() error { return o.done.Result() }

// Between calls fn between two commits; without a Spill, with the lock held. It is called without the lock.
func (l *Ledger) Between(fn func() error) error {
	l.Mu.Lock()
	if l.up.Closed() {
		l.Mu.Unlock()
		return storage.ErrClosed
	}
	if l.Spill == nil {
		defer l.Mu.Unlock()
		return fn()
	}
	o := &Op{run: fn}
	l.pending++
	l.enqueue(o)
	l.Mu.Unlock()
	return o.Result()
}

// afterwards calls o.After with the result of the commit, in another goroutine: it may call the frontier, and so
// wait for the committer.
func (l *Ledger) afterwards(o *Op, err error) { l.work.Go(func() { o.After(err) }) }

// settled passes the result of the commit to the caller of an operation.
func (l *Ledger) settled(o *Op, err error) {
	if o.After != nil {
		l.afterwards(o, err)
		return
	}
	o.done.Send(err)
}

// Jobs are operations that replace one record in memory each.
type Jobs struct {
	*Ledger
	jobs []*Op // that wait for a commit
}

// AddYielding submits one.
func (j *Jobs) AddYielding(o *Op) {
	if j.SubmitYielding(o) {
		j.jobs = append(j.jobs, o)
	}
}

// AwaitAndUnlock waits for their commits.
func (j *Jobs) AwaitAndUnlock() (err error) {
	j.up.Dispatch()
	j.Mu.Unlock()
	for _, o := range j.jobs {
		if e := o.Result(); e != nil {
			err = e
		}
	}
	return err
}
