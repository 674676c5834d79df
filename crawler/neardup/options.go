// This file holds what can be set, and what can go wrong.

package neardup

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
)

// ErrClosed is returned by calls after Close.
var ErrClosed = errors.New("neardup: closed")

// ErrOptions is returned by Open, wrapped, for a folder that was made with other
// options: its sketches mean something else.
var ErrOptions = errors.New("neardup: the folder was made with other options")

// Options configure a Hasher and an Index. The zero value is fit for web pages.
type Options struct {
	// Threshold is the resemblance from which on two pages are near, more than 0 and
	// at most 1. Zero means 0.85. The package documentation tells what is found.
	Threshold float64
	// Shingle is how many words a shingle has, from 1 to 16. Zero means 4. With more,
	// each changed word counts more.
	Shingle int
	// KeepNumbers tells apart pages that differ in numbers only. By default dates,
	// times, counters and page numbers do not matter.
	KeepNumbers bool

	// MirrorPages is from how many pages that are the same on, at the same paths of
	// two hosts, one host is a mirror of the other. Zero means 10. Hosts with fewer pages
	// are compared at the end, by Mirrors.
	MirrorPages int
	// MirrorShare is which share these must be of the pages of the host with fewer, as
	// far as they are in the index. Zero means 0.8.
	MirrorShare float64
	// OnMirror, if set, is told of each mirror, as soon as it is noticed, once each
	// time that the Index is opened; again only if more than 10,000 pairs of hosts have
	// pages in common. Which of the two is the mirror Mirrors tells alike, later, too.
	// It is called by Add, on its goroutine.
	OnMirror func(Mirror)

	// Memory is about how many bytes the Index may hold. Zero means 32 MiB, and 16
	// MiB is the least. It does not grow with the number of pages. If many URLs have
	// thousands of bytes, it may be some times as much for moments, while rows are put
	// in order.
	Memory int64
	// Sync makes Add survive a loss of power, too; otherwise it survives the death of
	// the process. What is lost is the memory of pages, which then count as new.
	Sync bool
	// Logger gets what the store has to say. Nil means silence.
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	if o.Threshold == 0 {
		o.Threshold = 0.85
	}
	if o.Shingle == 0 {
		o.Shingle = 4
	}
	o.Shingle = min(max(o.Shingle, 1), maxShingle)
	if o.MirrorPages == 0 {
		o.MirrorPages = 10
	}
	if o.MirrorShare == 0 {
		o.MirrorShare = 0.8
	}
	if o.Memory == 0 {
		o.Memory = 32 << 20
	}
	o.Memory = max(o.Memory, 16<<20)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

func (o Options) validate() error { // runs after withDefaults; reports every fault at once
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if !(o.Threshold > 0 && o.Threshold <= 1) {
		bad("Threshold is %v; want > 0 and <= 1", o.Threshold)
	}
	if o.MirrorPages < 1 {
		bad("MirrorPages is %d; want >= 1", o.MirrorPages)
	}
	if !(o.MirrorShare > 0 && o.MirrorShare <= 1) {
		bad("MirrorShare is %v; want > 0 and <= 1", o.MirrorShare)
	}
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("neardup: options: %w", errors.Join(errs...))
}

// bandRows is how many values of a sketch make one super-shingle: as many as leave a
// pair of pages at the threshold a chance of 0.97 or more to have one in common.
// Broder's 14 serve thresholds from 0.95 on.
func bandRows(threshold float64) int {
	for _, rows := range []int{14, 12, 7, 6, 4, 3, 2} {
		if 1-math.Pow(1-math.Pow(threshold, float64(rows)), float64(bins/rows)) >= 0.97 {
			return rows
		}
	}
	return 1
}
