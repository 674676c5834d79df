// This file holds the options and the errors.

package neardup

import (
	"cmp"
	"errors"
	"log/slog"
	"math"

	"github.com/seed-7440039f/frontier/internal/faults"
)

// ErrClosed is returned by calls after Close.
var ErrClosed = errors.New("neardup: closed")

// ErrOptions is returned by Open, wrapped, for a folder that was created with other options: its
// sketches are not comparable.
var ErrOptions = errors.New("neardup: the folder was made with other options")

// Options configure a Hasher and an Index. The zero value is suitable for web pages.
type Options struct {
	// Threshold is the resemblance from which on two pages are near, above 0 and at most 1. The
	// package documentation shows what each threshold finds. Zero means 0.85.
	Threshold float64
	// Shingle is the number of words in a shingle, from 1 to 16. With more, each changed word
	// counts more. Zero means 4.
	Shingle int
	// KeepNumbers distinguishes pages that differ only in numbers. By default dates, times,
	// counters and page numbers are ignored.
	KeepNumbers bool

	// MirrorPages is the number of identical pages, at the same paths of two hosts, that makes one
	// host a mirror of the other. Hosts with fewer pages are compared at the end, by Mirrors. Zero
	// means 10.
	MirrorPages int
	// MirrorShare is the minimum share of these among the indexed pages of the host with fewer
	// pages. Zero means 0.8.
	MirrorShare float64
	// OnMirror, if set, is called with each mirror as soon as it is detected, once per Open; more
	// often only if more than 10,000 pairs of hosts share pages. Mirrors always agrees on which of
	// the two is the mirror. Add calls it, on its goroutine.
	OnMirror func(Mirror)

	// Memory is the approximate memory of the Index in bytes, whatever the number of pages. If many
	// URLs are thousands of bytes long, it may briefly be several times as much, while rows are
	// sorted. Zero means 32 MiB; the minimum is 16 MiB.
	Memory int64
	// Sync makes pages survive a loss of power once Add has returned; without it they survive the
	// death of the process. Lost pages count as new.
	Sync bool
	// Logger receives messages of the store. Nil discards them.
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	o.Threshold = cmp.Or(o.Threshold, 0.85)
	o.Shingle = cmp.Or(o.Shingle, 4)
	o.Shingle = min(max(o.Shingle, 1), maxShingle)
	o.MirrorPages = cmp.Or(o.MirrorPages, 10)
	o.MirrorShare = cmp.Or(o.MirrorShare, 0.8)
	o.Memory = cmp.Or(o.Memory, 32<<20)
	o.Memory = max(o.Memory, 16<<20)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	return o
}

func (o Options) validate() error { // runs after withDefaults; reports every fault at once
	var wrong faults.List
	wrong.If(!(o.Threshold > 0 && o.Threshold <= 1), "Threshold is %v; want > 0 and <= 1", o.Threshold)
	wrong.If(o.MirrorPages < 1, "MirrorPages is %d; want >= 1", o.MirrorPages)
	wrong.If(!(o.MirrorShare > 0 && o.MirrorShare <= 1), "MirrorShare is %v; want > 0 and <= 1", o.MirrorShare)
	return wrong.Of("neardup: options")
}

// bandRows returns the number of values of a sketch in a super-shingle: the most for which a pair of
// pages at the threshold shares one with a probability of 0.97 or more. Broder's 14 suit thresholds from
// 0.95 on.
func bandRows(threshold float64) int {
	for _, rows := range []int{14, 12, 7, 6, 4, 3, 2} {
		if 1-math.Pow(1-math.Pow(threshold, float64(rows)), float64(bins/rows)) >= 0.97 {
			return rows
		}
	}
	return 1
}
