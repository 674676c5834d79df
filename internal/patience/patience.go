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
