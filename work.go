// This file has the loops around Next and Done: Leases in the caller's goroutine, Work with
// workers of its own.

package frontier

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"sync"
	"time"
)

// Leaser hands out leases and takes their ends, as *Frontier does, and *client.Client.
type Leaser interface {
	Next(ctx context.Context) (Lease, error)
	Done(l Lease, o Outcome) error
}

// Leases is Next in a loop. It ends without an error when the crawl is over or
// the frontier closed, and after any other error. A loop that is left early must have
// ended its last lease, as every caller of Next.
func (f *Frontier) Leases(ctx context.Context) iter.Seq2[Lease, error] { return Leases(ctx, f) }

// Leases is [Frontier.Leases] of any Leaser.
func Leases(ctx context.Context, from Leaser) iter.Seq2[Lease, error] {
	return func(yield func(Lease, error) bool) {
		for {
			l, err := from.Next(ctx)
			if errors.Is(err, ErrExhausted) || errors.Is(err, ErrClosed) {
				return
			}
			if !yield(l, err) || err != nil {
				return
			}
		}
	}
}

// Work crawls with n workers. Each takes a lease, calls fn, reports what fn returned to Done, and takes
// the next. Work returns when all workers have ended; no lease of theirs is out then. It returns
//
//   - nil if the crawl is over, or Drain or Close was called;
//   - a *HeldError if only URLs are left that an operator holds;
//   - ctx's error if ctx ended;
//   - otherwise the error that stopped it, which is one of fn, Next or Done. Several are
//     joined.
//
// What fn returns says what happened:
//
//   - An Outcome and no error reports the visit. A fetch that failed is a visit, too:
//     return Outcome{Result: Failed} and no error, and the URL is tried again as
//     Options.Retry says.
//   - An error stops Work. Return one if it is useless to go on, as when a database of
//     the program fails. The lease is handed back: its URL comes again first, as the same
//     try, and its host counts as contacted.
//   - A panic counts as a failed try, so that a page at which fn always panics is given up
//     at last. Work stops, and panics with the value and the stack in its caller's
//     goroutine.
//
// The context of fn ends with ctx, when another worker stops Work, and at the lease's first
// deadline. If it ends, fn should return soon. A Failed outcome, or the context's error,
// that fn returns after Work was stopped hands its lease back: a shutdown costs no URL a
// try. After its deadline the lease has ended, as a failed try; its worker goes on.
// To stop without cutting fetches short call Drain instead: Work then returns nil.
//
// fn may use its lease in any way. One that it ended itself, by Done or HandBack, is left alone.
func (f *Frontier) Work(ctx context.Context, n int, fn func(context.Context, Lease) (Outcome, error)) error {
	return Work(ctx, f, n, fn)
}

// Work is [Frontier.Work] with the leases of any Leaser. A lease of one that is no *Frontier
// has its Deadline by the system's clock.
func Work(ctx context.Context, from Leaser, n int, fn func(context.Context, Lease) (Outcome, error)) error {
	if n < 1 {
		return fmt.Errorf("frontier: work with %d workers; want at least 1", n)
	}
	if fn == nil {
		return errors.New("frontier: work: the function is nil")
	}
	w := &work{from: from, fn: fn}
	w.ctx, w.stop = context.WithCancel(ctx)
	defer w.stop()
	var workers sync.WaitGroup
	for range n {
		workers.Go(w.worker)
	}
	workers.Wait()
	switch {
	case w.panicked != nil:
		panic(w.panicked)
	case w.exited:
		runtime.Goexit()
	case len(w.errs) > 0:
		return errors.Join(w.errs...)
	case w.cut:
		return ctx.Err()
	}
	return w.over
}

// work is a call of Work.
type work struct {
	from Leaser
	ctx  context.Context
	stop context.CancelFunc
	fn   func(context.Context, Lease) (Outcome, error)

	mu       sync.Mutex
	errs     []error      // that stopped it
	over     error        // of the end of the crawl, if that is one
	cut      bool         // by the end of ctx, or the error of another worker
	panicked *workerPanic // the first
	exited   bool         // fn ended its goroutine
}

const maxStack = 64 << 10 // bytes of a panic's stack that are kept

// workerPanic is a panic of fn, on its way to the goroutine of Work.
type workerPanic struct {
	value any
	stack []byte
}

// Error returns the value and where it came from.
func (p *workerPanic) Error() string {
	return fmt.Sprintf("%v\n\nin a worker of frontier.Work:\n%s", p.value, p.stack)
}

// Unwrap returns the value, if it is an error.
func (p *workerPanic) Unwrap() error {
	err, _ := p.value.(error)
	return err
}

var errCut = errors.New("frontier: work was stopped")

// worker takes leases until there are no more, or Work stops.
func (w *work) worker() {
	returned := false
	defer func() {
		if returned {
			return
		}
		v := recover()
		w.mu.Lock()
		defer w.mu.Unlock()
		if v == nil {
			w.exited = true
		} else if w.panicked == nil {
			stack := make([]byte, maxStack)
			w.panicked = &workerPanic{v, stack[:runtime.Stack(stack, false)]}
		}
		w.stop()
	}()
	err := w.loop()
	returned = true
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case err == nil:
	case err == errCut:
		w.cut = true
	case errors.Is(err, ErrExhausted):
		w.over = err
	default:
		w.errs = append(w.errs, err)
		w.stop()
	}
}

func (w *work) loop() error {
	for {
		l, err := w.from.Next(w.ctx)
		switch {
		case err == ErrExhausted || errors.Is(err, ErrClosed):
			return nil
		case w.wasCut(err):
			return errCut
		case err != nil:
			return err
		}
		if err := w.visit(l); err != nil {
			return err
		}
	}
}

// wasCut reports whether err came because Work was stopped.
func (w *work) wasCut(err error) bool {
	return w.ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded))
}

// visit calls fn with a lease, and ends it.
func (w *work) visit(l Lease) error {
	ctx, end := untilDeadline(w.ctx, w.from, &l)
	defer end()
	returned := false
	defer func() {
		if !returned {
			_ = w.from.Done(l, Outcome{Result: Failed}) // what fn panics with matters more
		}
	}()
	o, err := w.fn(ctx, l)
	returned = true
	switch {
	case w.wasCut(err):
		o, err = Outcome{Result: Requeue}, errCut
	case context.Cause(ctx) == context.DeadlineExceeded && w.ctx.Err() == nil &&
		(errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)):
		o, err = Outcome{Result: Failed, Failure: FailureTimeout}, nil
	case err != nil:
		o = Outcome{Result: Requeue}
	case o.Result == Failed && w.ctx.Err() != nil:
		o.Result, o.Failure, o.Next = Requeue, 0, time.Time{}
	}
	ended := w.from.Done(l, o)
	if ended == nil || errors.Is(ended, ErrNotLeased) {
		return err
	}
	if errors.Is(ended, ErrClosed) && len(EntryErrors(ended)) == 0 {
		return err // Close was called, and the URL comes again
	}
	// After a faulty outcome the lease is still out.
	again := w.from.Done(l, Outcome{Result: Requeue})
	if again != nil && !errors.Is(again, ErrNotLeased) && !errors.Is(again, ErrClosed) {
		ended = errors.Join(ended, again)
	}
	if ended = fmt.Errorf("%w; the page is %s", ended, l.Entry.URL); err == errCut {
		return ended
	}
	return errors.Join(err, ended)
}

// untilDeadline returns a context that ends at the deadline of a lease that was just handed
// out, by the clock of who handed it out.
func untilDeadline(ctx context.Context, from Leaser, l *Lease) (context.Context, func()) {
	f, ok := from.(*Frontier)
	if !ok {
		return context.WithDeadline(ctx, l.Deadline)
	}
	left := time.Duration(l.moment + int64(f.opts.LeaseTime) - f.moment())
	if f.opts.Clock == (systemClock{}) {
		return context.WithTimeout(ctx, left)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	timer := f.opts.Clock.AfterFunc(left, func() { cancel(context.DeadlineExceeded) })
	return ctx, func() {
		timer.Stop()
		cancel(nil)
	}
}
