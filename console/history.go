// This file remembers figures: of the last ten minutes each second, of the last day
// each minute.

package console

import (
	"sync"
	"time"
)

const (
	seconds = 10 * 60
	minutes = 24 * 60
)

// sample is what the figures were at one moment. Counts only grow.
type sample struct {
	at                             time.Time
	added, handedOut, done, failed int64
	waiting, memory                int64
	disk                           int64
	hasDisk                        bool
	figures                        []Figure // nil in what is older than the last sample
}

// history is what was sampled, the newest last.
type history struct {
	mu      sync.Mutex
	fine    []sample
	coarse  []sample
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
	h.fine = push(h.fine, x, seconds+1)
	if n := len(h.coarse); n == 0 || x.at.Sub(h.coarse[n-1].at) >= time.Minute {
		h.coarse = push(h.coarse, x, minutes+1)
	}
}

// push appends, and drops the oldest beyond max.
func push(list []sample, x sample, most int) []sample {
	if len(list) == most {
		copy(list, list[1:])
		list = list[:most-1]
	}
	return append(list, x)
}

// last is the newest sample, with what is taken more rarely.
func (h *history) last() (x sample, figures []Figure, disk int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if n := len(h.fine); n > 0 {
		x = h.fine[n-1]
	}
	return x, h.figures, h.disk
}

// Rate is how much of something happened each second, in the time up to At.
type Rate struct {
	At        time.Time `json:"at"`
	Added     float64   `json:"added"`
	HandedOut float64   `json:"handed_out"`
	Done      float64   `json:"done"`
	Failed    float64   `json:"failed"`
	Waiting   int64     `json:"waiting"`
	Memory    int64     `json:"memory_bytes"`
}

// rates returns at most n rates of the last ten minutes, or of the last day, the newest
// last.
func (h *history) rates(day bool, n int) []Rate {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := h.fine
	if day {
		list = h.coarse
	}
	step := max(1, (len(list)-1+n-1)/n)
	var out []Rate
	for i := (len(list) - 1) % step; i+step < len(list); i += step {
		a, b := list[i], list[i+step]
		dt := b.at.Sub(a.at).Seconds()
		if dt <= 0 {
			continue
		}
		per := func(x, y int64) float64 { return max(0, float64(y-x)/dt) }
		out = append(out, Rate{
			At: b.at.UTC(), Added: per(a.added, b.added), HandedOut: per(a.handedOut, b.handedOut),
			Done: per(a.done, b.done), Failed: per(a.failed, b.failed), Waiting: b.waiting, Memory: b.memory,
		})
	}
	return out
}
