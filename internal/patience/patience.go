// Package patience lets a caller abandon a call that does not end in time, such as a read from a
// disk that hangs: the call continues in the background. It owns only what is lent to such a call.
//
// The caller must not hold a lock: the called function may need it.
package patience

import (
	"context"
	"errors"
	"io"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Forever is the context of a caller that waits without limit.
var Forever context.Context

// Ask calls fn and returns its result, or the reason for no longer waiting: the error of ctx, or
// the cause of life. In the latter case fn continues, so it must not write to anything that the
// caller uses. With Forever Ask waits.
func Ask[T any](ctx, life context.Context, fn func() (T, error)) (T, error) {
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
	case <-life.Done():
		return none, context.Cause(life)
	}
}

// Hands are goroutines that make calls for others, and are used again. The zero value has none; End
// ends them.
type Hands struct {
	mu    sync.Mutex
	idle  []*hand // guarded by mu
	ended bool    // guarded by mu; none idles any more
}

// mostIdle is how many goroutines wait for a call, at most.
const mostIdle = 16

// hand is a goroutine, with what it has to do.
type hand struct {
	work chan struct{} // gets a token for each call, and is closed in the end
	done chan struct{} // gets a token when a call has ended whose caller waits

	fn, late func()
	left     atomic.Bool // by the second of the two, the caller or the end of the call
}

// Do calls fn, and returns when it has ended or, with the reason, when the caller waits no longer:
// see Ask. Then late is called after fn.
func (h *Hands) Do(ctx, life context.Context, fn, late func()) error {
	x := h.take()
	x.fn, x.late = fn, late
	x.work <- struct{}{}
	var err error
	select {
	case <-x.done:
	case <-ctx.Done():
		err = ctx.Err()
	case <-life.Done():
		err = context.Cause(life)
	}
	if err != nil {
		if x.left.CompareAndSwap(false, true) {
			return err
		}
		<-x.done // it has ended after all
	}
	x.left.Store(false)
	h.put(x)
	return nil
}

func (h *Hands) take() *hand {
	h.mu.Lock()
	defer h.mu.Unlock()
	if n := len(h.idle); n > 0 {
		x := h.idle[n-1]
		h.idle = h.idle[:n-1]
		return x
	}
	x := &hand{work: make(chan struct{}, 1), done: make(chan struct{}, 1)}
	go h.run(x)
	return x
}

func (h *Hands) put(x *hand) {
	x.fn, x.late = nil, nil
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended || len(h.idle) == mostIdle {
		close(x.work)
		return
	}
	h.idle = append(h.idle, x)
}

func (h *Hands) run(x *hand) {
	for range x.work {
		x.fn()
		if x.left.CompareAndSwap(false, true) {
			x.done <- struct{}{}
			continue
		}
		x.late()
		x.left.Store(false)
		h.put(x)
	}
}

// End ends the goroutines, each after its call. Calls may still come.
func (h *Hands) End() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ended = true
	for _, x := range h.idle {
		close(x.work)
	}
	h.idle = nil
}

// windUp is how long a call that watches its context may take to return after its end.
const windUp = time.Second

// InTime is Ask for such a call; its result counts even then.
func InTime[T any](ctx, life context.Context, fn func() (T, error)) (T, error) {
	late, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(windUp, cancel) })()
	v, err := Ask(late, life, fn)
	if err != nil && late.Err() != nil && ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = ctx.Err()
	}
	return v, err
}

// lent is a reader or writer that is not used any more once its owner has taken it back.
type lent struct {
	mu    sync.Mutex
	r     io.Reader // nil: a writer
	w     io.Writer
	after error // returned by calls that come too late
	ended bool  // guarded by mu
}

// LendReader returns r, a Seeker if r is one, until end is called. Later calls return the error
// after. end waits for a call in progress.
func LendReader(r io.Reader, after error) (lease io.Reader, end func()) {
	x := &lent{r: r, after: after}
	if s, ok := r.(io.Seeker); ok {
		return lentSeeker{x, s}, x.end
	}
	return x, x.end
}

// LendWriter is LendReader for a writer.
func LendWriter(w io.Writer, after error) (lease io.Writer, end func()) {
	x := &lent{w: w, after: after}
	return x, x.end
}

func (x *lent) Read(p []byte) (int, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ended {
		return 0, x.after
	}
	return x.r.Read(p)
}

func (x *lent) Write(p []byte) (int, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ended {
		return 0, x.after
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
		return 0, x.after
	}
	return x.s.Seek(offset, whence)
}

func (x *lent) end() {
	x.mu.Lock()
	x.ended = true
	x.mu.Unlock()
}
