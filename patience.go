// This file says how long a call waits for the Spill: until its context ends, or
// that of CloseContext.
//
// A Spill's calls have no context, and a disk that is stuck answers none. So what a
// caller would have to wait for goes on without the caller: a commit with the
// goroutine that does it, a read in a goroutine of its own.

package frontier

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
	"time"
)

// awaitOp waits for an op that was handed over. If that ends before the op is
// settled the op belongs to the committer, and is not used again.
func (f *Frontier) awaitOp(o *op) error {
	var ended <-chan struct{}
	if o.ctx != nil {
		ended = o.ctx.Done()
	}
	cause := ErrClosed
	select {
	case err := <-o.done:
		return err
	case <-ended:
		cause = o.ctx.Err()
	case <-f.abandoned:
	}
	select {
	case err := <-o.done:
		return err
	default:
	}
	o.left = true
	return fmt.Errorf("%w: %w", ErrUnsettled, cause)
}

// context is how long whoever submits the op waits.
func (o *op) context() context.Context {
	if o.ctx == nil {
		return context.Background()
	}
	return o.ctx
}

// patient is the context of a goroutine of the background, which waits: none.
var patient context.Context

// ask calls fn, which reads from the Spill, and returns what it returns, or why that
// is not waited for: ctx's error or ErrClosed. Then fn goes on, so it may not write to
// anything of the caller's. If ctx is patient, ask waits.
func ask[T any](ctx context.Context, f *Frontier, fn func() (T, error)) (T, error) {
	if ctx == nil {
		return fn()
	}
	type answer struct {
		value    T
		err      error
		panicked any
		returned bool
	}
	c := make(chan answer, 1)
	go func() {
		var a answer
		defer func() {
			if !a.returned {
				a.panicked = recover()
			}
			c <- a
		}()
		a.value, a.err = fn()
		a.returned = true
	}()
	var none T
	select {
	case a := <-c:
		switch {
		case a.returned:
			return a.value, a.err
		case a.panicked == nil:
			runtime.Goexit()
		}
		panic(a.panicked)
	case <-ctx.Done():
		return none, ctx.Err()
	case <-f.abandoned:
		return none, ErrClosed
	}
}

// windUp is how long a call that looks at its context by itself may take to return when
// that has ended.
const windUp = time.Second

// inTime is ask for such a call, whose result counts even then.
func inTime[T any](ctx context.Context, f *Frontier, fn func() (T, error)) (T, error) {
	late, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(windUp, cancel) })()
	v, err := ask(late, f, fn)
	if err != nil && late.Err() != nil && ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = ctx.Err()
	}
	return v, err
}

// loadFor is load for a caller that waits until ctx ends. A lease that comes later is
// given back.
func (f *Frontier) loadFor(ctx context.Context, job *loadJob) grant {
	c, left := make(chan grant), make(chan struct{})
	go func() {
		g := f.load(job)
		select {
		case c <- g:
		case <-left:
			f.giveBack(&g, nil)
		}
	}()
	select {
	case g := <-c:
		return g
	case <-ctx.Done():
		close(left)
		return grant{err: ctx.Err()}
	case <-f.abandoned:
		close(left)
		return grant{err: ErrClosed}
	}
}

// lent is a reader or writer of a caller's that is not used any more once the caller
// has returned.
type lent struct {
	mu    sync.Mutex
	r     io.Reader // nil: a writer
	w     io.Writer
	ended bool // guarded by mu
}

func (x *lent) Read(p []byte) (int, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ended {
		return 0, ErrClosed
	}
	return x.r.Read(p)
}

func (x *lent) Write(p []byte) (int, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ended {
		return 0, ErrClosed
	}
	return x.w.Write(p)
}

// lentSeeker is a lent reader that seeks.
type lentSeeker struct {
	*lent
	s io.Seeker
}

func (x lentSeeker) Seek(offset int64, whence int) (int64, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ended {
		return 0, ErrClosed
	}
	return x.s.Seek(offset, whence)
}

// end waits for a call that is under way.
func (x *lent) end() {
	x.mu.Lock()
	x.ended = true
	x.mu.Unlock()
}
