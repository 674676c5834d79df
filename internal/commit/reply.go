// This file passes the results of operations to their callers.

package commit

import (
	"context"
	"errors"
	"sync"
)

// ErrReleased is why a caller waits no more that was released.
var ErrReleased = errors.New("commit: released")

// Reply is the way from a commit to the caller of an operation. It gets the result once; before
// that, the caller may be released.
type Reply chan error

// Send passes the result. Nothing may be sent after it.
func (r Reply) Send(result error) { r <- result }

// Release lets the caller return before there is a result. It may be called once, before Send.
func (r Reply) Release() { r <- ErrReleased }

// Result waits for the result, whether the caller was released or not.
func (r Reply) Result() error {
	err := <-r
	if err == ErrReleased {
		err = <-r
	}
	return err
}

// Replies makes replies and uses them again. It belongs to one frontier, since channels cannot
// cross the bubbles of testing/synctest. The zero value is empty. Safe for concurrent use.
type Replies struct{ unused sync.Pool }

// New returns a Reply.
func (p *Replies) New() Reply {
	if r, ok := p.unused.Get().(Reply); ok {
		return r
	}
	return make(Reply, 2)
}

// Wait waits for the result until ctx, which may be nil, ends or the caller is released; left is the
// reason then, and the Reply remains the commit's. After a result it is used again.
func (p *Replies) Wait(ctx context.Context, r Reply) (result, left error) {
	var ended <-chan struct{}
	if ctx != nil {
		ended = ctx.Done()
	}
	if ended == nil {
		result = <-r // a select costs more
	} else {
		select {
		case result = <-r:
		case <-ended:
			result, left = ErrReleased, ctx.Err()
		}
	}
	if result == ErrReleased {
		select {
		case result = <-r: // it has just come
		default:
		}
	}
	if result == ErrReleased {
		if left == nil {
			left = ErrReleased
		}
		return nil, left
	}
	p.unused.Put(r)
	return result, nil
}
