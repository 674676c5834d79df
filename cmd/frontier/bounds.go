// This file stops a run at its bounds: -max-time and -max-bytes.

package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/seed-7440039f/frontier"
)

// runBounds are the bounds of one run. Zero means no bound.
type runBounds struct {
	time  time.Duration
	bytes byteSize

	got  atomic.Int64 // bytes fetched in this run
	stop context.CancelCauseFunc
}

func (b *runBounds) define(fs *flagSet) {
	fs.DurationVar(&b.time, "max-time", 0, "stop after this `time`, as Ctrl-C would (default: never)")
	fs.Var(b.bytes.set(0), "max-bytes", "stop once this run has transferred this many `bytes`; fetches under way end first; k, M, G may follow (default: never)")
}

func (b *runBounds) validate(o *options) {
	if b.time < 0 {
		o.bad("want >= 0", "max-time")
	}
}

// bound is the cause of a context that ended at a bound. It names the bound.
type bound string

func (r bound) Error() string { return string(r) }

// begin returns a context that ends at a bound. The caller must call the returned function.
func (b *runBounds) begin(ctx context.Context) (context.Context, func()) {
	ctx, b.stop = context.WithCancelCause(ctx)
	release := func() { b.stop(nil) }
	if b.time > 0 {
		t := time.AfterFunc(b.time, func() { b.stop(bound(fmt.Sprintf("-max-time %s", short(b.time)))) })
		release = func() { t.Stop(); b.stop(nil) }
	}
	return ctx, release
}

// add counts the bytes of a fetch.
func (b *runBounds) add(o frontier.Outcome) {
	if b.bytes > 0 && b.got.Add(o.Bytes) >= int64(b.bytes) {
		b.stop(bound(fmt.Sprintf("-max-bytes %s", b.bytes.String())))
	}
}
