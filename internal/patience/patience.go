// Package patience lets a caller leave a call that does not end in time, as a read from a
// disk that is stuck: the call goes on without the caller. It owns nothing but what is
// lent to such a call.
//
// No lock of the caller's may be held: what is called may need it.
package patience

import (
	"context"
	"errors"
	"io"
	"runtime"
	"sync"
	"time"
)

// Forever is the context of a caller that waits however long it takes.
var Forever context.Context

// Ask calls fn and returns what it returns, or why it is not waited for any more: the
// error of ctx, or the cause of life. Then fn goes on, so it must not write to anything
// that the caller uses. With Forever it waits.
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

// windUp is how long a call that looks at its context by itself may take to return when
// that has ended.
const windUp = time.Second

// InTime is Ask for such a call, whose result counts even then.
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

// lent is a reader or writer that is not used any more once its owner has it back.
type lent struct {
	mu    sync.Mutex
	r     io.Reader // nil: a writer
	w     io.Writer
	after error // of calls that come too late
	ended bool  // guarded by mu
}

// LendReader returns r, a Seeker if r is one, until end is called. Later calls return
// the error after. end waits for a call that is under way.
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
