// This file stops a run at its bounds: -max-time and -max-bytes.

package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/seed-7440039f/frontier"
)

// runBounds are the bounds of one run. Zero means no bound.
type runBounds struct {
	time  time.Duration
	bytes byteSize

	began time.Time    // the command
	got   atomic.Int64 // bytes fetched in this run
	stop  context.CancelCauseFunc
}

func (b *runBounds) define(fs *flagSet) {
	fs.DurationVar(&b.time, "max-time", 0, "stop after this `time` since the command began, as Ctrl-C would (default: never)")
	fs.Var(b.bytes.set(0), "max-bytes", "stop once this run has transferred this many `bytes`; fetches under way end first; k, M, G may follow (default: never)")
}

func (b *runBounds) validate(o *options) { o.badIf(b.time < 0, "want >= 0", "max-time") }

// bound is the cause of a context that ended at a bound. It names the bound.
type bound string

func (r bound) Error() string { return string(r) }

// boundOf returns the bound at which ctx ended, if it did.
func boundOf(ctx context.Context) (bound, bool) { return errors.AsType[bound](context.Cause(ctx)) }

// begin returns a context that ends at a bound, at that of time once apply knows it, or when stop is called.
func (b *runBounds) begin(ctx context.Context) context.Context {
	ctx, b.stop = context.WithCancelCause(ctx)
	return ctx
}

// apply sets the bound of time, if this is a run.
func (b *runBounds) apply(ctx context.Context) {
	if b.time > 0 && b.stop != nil {
		t := time.AfterFunc(time.Until(b.began.Add(b.time)), func() { b.stop(bound(fmt.Sprintf("-max-time %s", short(b.time)))) })
		context.AfterFunc(ctx, func() { t.Stop() })
	}
}

// add counts the bytes of a fetch.
func (b *runBounds) add(o frontier.Outcome) {
	if b.bytes > 0 && b.got.Add(o.Bytes) >= int64(b.bytes) {
		b.stop(bound(fmt.Sprintf("-max-bytes %s", b.bytes.String())))
	}
}
