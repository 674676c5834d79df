// This file counts durations in buckets whose width grows with the duration.

package main

import (
	"math/bits"
	"sync/atomic"
	"time"
)

const (
	stepBits = 5             // 32 buckets for each doubling: off by 3 % at most
	steps    = 1 << stepBits // the first buckets hold one nanosecond each
	maxBits  = 43            // two hours
	buckets  = (maxBits - stepBits + 1) * steps
)

// histogram counts durations. One goroutine records, any number may look. It
// does not allocate. The zero value is empty.
type histogram struct {
	counts [buckets]atomic.Uint64
	max    atomic.Int64
}

func bucketOf(d time.Duration) int {
	ns := min(uint64(max(d, 0)), 1<<maxBits-1)
	if ns < steps {
		return int(ns)
	}
	shift := bits.Len64(ns) - stepBits - 1
	return shift<<stepBits + int(ns>>shift)
}

// highest is the longest duration of a bucket.
func highest(bucket int) time.Duration {
	if bucket < 2*steps {
		return time.Duration(bucket)
	}
	shift := bucket>>stepBits - 1
	return time.Duration((bucket-shift<<stepBits+1)<<shift - 1)
}

func (h *histogram) record(d time.Duration) {
	h.counts[bucketOf(d)].Add(1)
	if int64(d) > h.max.Load() {
		h.max.Store(int64(d))
	}
}

// latencies are the counts of histograms at one moment, or between two.
type latencies struct {
	counts [buckets]uint64
	n      uint64
	max    time.Duration
}

// merged adds up histograms.
func merged(hs []*histogram) *latencies {
	l := &latencies{}
	for _, h := range hs {
		for i := range h.counts {
			c := h.counts[i].Load()
			l.counts[i] += c
			l.n += c
		}
		l.max = max(l.max, time.Duration(h.max.Load()))
	}
	return l
}

// since returns what was counted since before was taken. Its max is the upper end of the highest
// bucket, or the overall maximum if that is in it.
func (l *latencies) since(before *latencies) *latencies {
	d := &latencies{}
	for i := range l.counts {
		d.counts[i] = l.counts[i] - before.counts[i]
		d.n += d.counts[i]
		if d.counts[i] > 0 {
			d.max = min(highest(i), l.max)
		}
	}
	return d
}

// at is the duration that a share q of all does not exceed; 0 if there are none.
func (l *latencies) at(q float64) time.Duration {
	if l.n == 0 {
		return 0
	}
	rank, seen := uint64(q*float64(l.n-1)), uint64(0)
	for i, c := range l.counts {
		if seen += c; seen > rank {
			return min(highest(i), l.max)
		}
	}
	return l.max
}
