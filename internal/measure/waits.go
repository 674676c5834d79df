// Package measure measures how long URLs wait and how fast a frontier works. It owns a table of
// fixed size with a sample of the waiting URLs, and the totals of the last minute. It has no lock:
// callers hold the frontier's.
package measure

import (
	"math/bits"
	"time"
)

// Histogram is a distribution of durations, with the fields of the frontier's.
type Histogram struct {
	Count   int64
	Sum     time.Duration
	Buckets [36]int64 // [0]: below 1 ms; [i]: from 1 ms << (i-1) to below 1 ms << i; the last: longer
}

// add counts n durations d.
func (h *Histogram) add(d time.Duration, n int64) {
	d = max(0, d)
	h.Count += n
	if sum := float64(h.Sum) + float64(n)*float64(d); sum < 1<<62 { // otherwise it stays at its maximum
		h.Sum = time.Duration(sum)
	}
	h.Buckets[min(bits.Len64(uint64(d/time.Millisecond)), len(h.Buckets)-1)] += n
}

const (
	waitSlots = 4096 // a power of 2
	waitsMost = waitSlots * 3 / 4
)

// Waits records since when a sample of URLs has been waiting, by sequence number: from when they
// may be handed out as soon as their hosts may be contacted.
//
// This is not stored with a URL. A table of fixed size records when the URLs of a sample began to
// wait: all URLs as long as there are few, then one in two, one in four, and so on. Each counts for
// the number of URLs that it represents.
//
// A URL that leaves without being handed out stays in the table until its slot is needed.
//
// Invariants, verified by Check:
//   - an entry can be found from its number's own slot without a gap
//   - entries are counted, and at most waitsMost
//   - an entry's number is in the sample of its level
//
// The zero value is empty.
type Waits struct {
	slots []waiting // nil, or waitSlots of them
	n     int
	level uint8 // one URL in 1 << level is chosen
	All   Histogram
	By    []Histogram // by priority, from 1; the caller makes it
}

type waiting struct {
	key   uint64 // sequence number << 8 | level it was chosen at; 0: free
	since int64
}

func waitHash(seq uint64) uint64 { return seq * 0x9E3779B97F4A7C15 }

// chosen reports whether a URL is in the sample of a level.
func chosen(seq uint64, level uint8) bool { return waitHash(seq)>>(64-level) == 0 }

func waitSlot(seq uint64) int { return int(waitHash(seq)>>16) & (waitSlots - 1) }

// Began notes that a URL waits since then.
func (w *Waits) Began(seq uint64, since int64) {
	if !chosen(seq, w.level) {
		return
	}
	if w.slots == nil {
		w.slots = make([]waiting, waitSlots)
	}
	for w.n == waitsMost {
		w.coarsen()
		if !chosen(seq, w.level) {
			return
		}
	}
	w.put(waiting{seq<<8 | uint64(w.level), since})
}

func (w *Waits) put(x waiting) {
	i := waitSlot(x.key >> 8)
	for w.slots[i].key != 0 && w.slots[i].key>>8 != x.key>>8 {
		i = (i + 1) & (waitSlots - 1)
	}
	if w.slots[i].key == 0 {
		w.n++
	}
	w.slots[i] = x
}

// coarsen halves the sample. Those left count twice.
func (w *Waits) coarsen() {
	w.level++
	old := w.slots
	w.slots, w.n = make([]waiting, waitSlots), 0
	for _, x := range old {
		if x.key != 0 && chosen(x.key>>8, w.level) {
			w.put(waiting{x.key&^0xff | max(x.key&0xff, uint64(w.level)), x.since})
		}
	}
}

// Ended records that a URL of a priority is handed out; left is the number that still wait.
func (w *Waits) Ended(seq uint64, priority int, now, left int64) {
	if w.n == 0 || !chosen(seq, w.level) {
		return
	}
	i := waitSlot(seq)
	for w.slots[i].key>>8 != seq {
		if w.slots[i].key == 0 {
			return // it waited before Open, or was not chosen then
		}
		i = (i + 1) & (waitSlots - 1)
	}
	x := w.slots[i]
	d, n := time.Duration(now-x.since), int64(1)<<(x.key&0xff)
	w.All.add(d, n)
	if priority <= len(w.By) {
		w.By[priority-1].add(d, n)
	}
	w.remove(i)
	switch {
	case w.level == 0:
	case left < waitSlots/4: // most entries of the table have left unnoticed
		clear(w.slots)
		w.n, w.level = 0, 0
	case w.n < waitSlots/8:
		w.level--
	}
}

// remove frees slot i, and moves back entries that were displaced by it.
func (w *Waits) remove(i int) {
	w.n--
	for j := i; ; {
		j = (j + 1) & (waitSlots - 1)
		if w.slots[j].key == 0 {
			break
		}
		home := waitSlot(w.slots[j].key >> 8)
		if (j-home)&(waitSlots-1) >= (j-i)&(waitSlots-1) {
			w.slots[i] = w.slots[j]
			i = j
		}
	}
	w.slots[i] = waiting{}
}

// Size returns the memory in bytes.
func (w *Waits) Size() int64 { return int64(len(w.slots))*16 + int64(len(w.By))*8*38 }

// Check calls bad with each invariant that does not hold.
func (w *Waits) Check(bad func(string, ...any)) {
	n := 0
	for i, x := range w.slots {
		if x.key == 0 {
			continue
		}
		n++
		if !chosen(x.key>>8, uint8(x.key)) {
			bad("F3: URL %d waits in a sample that it does not belong to", x.key>>8)
		}
		for j := waitSlot(x.key >> 8); j != i; j = (j + 1) & (waitSlots - 1) {
			if w.slots[j].key == 0 {
				bad("F3: URL %d cannot be found among those that wait", x.key>>8)
				break
			}
		}
	}
	if n != w.n || n > waitsMost {
		bad("F3: %d URLs in the sample of those that wait, counted %d", n, w.n)
	}
}
