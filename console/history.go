// This file samples figures: every second for the last ten minutes, and since the start at intervals that
// double as time passes.

package console

import (
	"slices"
	"sync"
	"time"
)

const (
	seconds   = 10 * 60
	coarsest  = 1440             // samples since the start; when full, every other one is dropped
	coarseGap = 15 * time.Second // initial interval of these
)

// sample holds the figures at one moment. Counts only grow.
type sample struct {
	at                             time.Time
	added, handedOut, done, failed int64
	pages, bytes                   int64
	requests, wrong                int64 // requests sent, and those that failed
	waiting, memory                int64
	states                         hostStates
	disk                           int64
	hasDisk                        bool
	figures                        []Figure // only in the last sample
}

// history holds the samples, the newest last.
type history struct {
	mu      sync.Mutex
	fine    []sample
	coarse  []sample
	gap     time.Duration // between coarse samples
	figures []Figure
	disk    int64
	diskAt  time.Time
}

func (h *history) diskIsOld(now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.diskAt.IsZero() || now.Sub(h.diskAt) >= time.Minute
}

func (h *history) add(x sample) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.figures, x.figures = x.figures, nil
	if x.hasDisk {
		h.disk, h.diskAt = x.disk, x.at
	}
	if len(h.fine) == seconds+1 {
		h.fine = slices.Delete(h.fine, 0, 1)
	}
	h.fine = append(h.fine, x)
	h.gap = max(h.gap, coarseGap)
	if n := len(h.coarse); n > 0 && x.at.Sub(h.coarse[n-1].at) < h.gap {
		return
	}
	if len(h.coarse) == coarsest {
		for i := range coarsest / 2 {
			h.coarse[i] = h.coarse[2*i]
		}
		h.coarse, h.gap = h.coarse[:coarsest/2], 2*h.gap
	}
	h.coarse = append(h.coarse, x)
}

// last returns the newest sample, and the figures that are sampled less often.
func (h *history) last() (x sample, figures []Figure, disk int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if n := len(h.fine); n > 0 {
		x = h.fine[n-1]
	}
	return x, h.figures, h.disk
}

// ago returns the newest sample, and the one from d before it, or the oldest.
func (h *history) ago(d time.Duration) (then, now sample) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.fine) == 0 {
		return then, now
	}
	now = h.fine[len(h.fine)-1]
	then = now
	for i := len(h.fine) - 1; i >= 0 && now.at.Sub(h.fine[i].at) <= d; i-- {
		then = h.fine[i]
	}
	return then, now
}

// per returns an average per second.
func per(then, now int64, d time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	return max(0, float64(now-then)/d.Seconds())
}

// Rate is an average per second over the time up to At.
type Rate struct {
	At        time.Time `json:"at"`
	Added     float64   `json:"added"`
	HandedOut float64   `json:"handed_out"`
	Done      float64   `json:"done"`
	Failed    float64   `json:"failed"`
	Pages     float64   `json:"pages"`
	Bytes     float64   `json:"bytes"`
	Waiting   int64     `json:"waiting"`
	Memory    int64     `json:"memory_bytes"`
}

// within returns the samples of the last d, the newest last; all if d is zero.
func (h *history) within(d time.Duration) []sample {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.fine) == 0 {
		return nil
	}
	newest := h.fine[len(h.fine)-1]
	all := h.fine
	if oldest := h.fine[0].at; len(h.coarse) > 0 && h.coarse[0].at.Before(oldest) && (d == 0 || newest.at.Sub(oldest) < d) {
		all = append(h.coarse[:len(h.coarse):len(h.coarse)], newest)
	}
	return slices.DeleteFunc(slices.Clone(all), func(x sample) bool { return d != 0 && newest.at.Sub(x.at) > d })
}

// thin returns about n of the samples, evenly spaced, including the newest.
func thin(all []sample, n int) (out []sample) {
	step := max(1, (len(all)-1+n-1)/n)
	for i := max(0, len(all)-1) % step; i < len(all); i += step {
		out = append(out, all[i])
	}
	return out
}

// rates returns at most n rates of the last ten minutes, the newest last.
func (h *history) rates(n int) (out []Rate) {
	list := thin(h.within(seconds*time.Second), n)
	for i := 1; i < len(list); i++ {
		a, b := list[i-1], list[i]
		dt := b.at.Sub(a.at)
		if dt <= 0 {
			continue
		}
		out = append(out, Rate{
			At: b.at.UTC(), Added: per(a.added, b.added, dt), HandedOut: per(a.handedOut, b.handedOut, dt), Done: per(a.done, b.done, dt),
			Failed: per(a.failed, b.failed, dt), Pages: per(a.pages, b.pages, dt), Bytes: per(a.bytes, b.bytes, dt), Waiting: b.waiting, Memory: b.memory,
		})
	}
	return out
}
