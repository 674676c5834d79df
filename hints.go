// This file takes hints: what is new of a URL that is known and scheduled, when it
// is found again.
//
// Nobody knows where a scheduled URL lies, and an index of them would cost more than
// all else that is kept of them. So hints are collected, by the URLs' marks, each with
// a row of its own, and then looked for all at once: one walk through what is
// scheduled, in memory and on disk, serves any number of them. Walks take about a
// tenth of the time at most. What comes from disk for its own sake is looked at, too.
// A URL that has changed replaces its record, in one commit.

package frontier

import (
	"slices"
	"time"
)

const (
	// hintBytes is what a hint takes in memory, about, beside its Meta.
	hintBytes = 160
	// hintsAtOnce is how many of the found are answered in one commit or round of commits.
	hintsAtOnce = 64
	// hintsListed is how many are looked at under one lock.
	hintsListed = 1024
	// walkBlock is the price of a block in a walk, and of so many scheduled URLs in memory.
	walkBlock, walkHeap = 250 * time.Microsecond, 512
	// walkUnasked is the price up to which a walk need not wait.
	walkUnasked = 40 * time.Millisecond
	// walkShare is how many times the price of a walk goes by from one to the next.
	walkShare = 10
)

// hint is what was said of a URL.
type hint struct {
	entry Entry // but for URL and Crawl
	walk  int   // number of the first walk that finds the URL if it is scheduled
}

// hints are those that were not answered yet.
//
// The zero value is empty. It is guarded by Frontier.mu.
type hints struct {
	at      map[Mark]hint
	bytes   int64
	since   int64 // when the first of them came
	ended   int64 // when the last walk did
	walks   int   // begun
	walking bool
	gone    []Mark // whose rows are to be deleted
}

func (h *hints) size() int64 { return h.bytes + int64(cap(h.gone))*12 }

func (h *hints) drop(m Mark) {
	if x, ok := h.at[m]; ok {
		h.bytes -= hintBytes + int64(len(x.entry.Meta))
		delete(h.at, m)
		h.gone = append(h.gone, m)
	}
}

// hintLocked keeps the hint that e is, whose URL is known. With a Spill its row goes
// with o. It returns an *EntryError if there is no room for it.
func (f *Frontier) hintLocked(o *op, e *newEntry) error {
	b, err := decodeBody(e.body)
	if err != nil {
		return nil // prepareAs encoded it
	}
	h := &f.hints
	x := hint{walk: h.walks + 1}
	x.entry = Entry{Depth: b.depth, Weight: b.weight, Meta: slices.Clone(b.meta), NotBefore: millisTime(e.news)}
	switch old, ok := h.at[e.mark]; {
	case ok:
		x.entry.Weight, x.entry.Depth = max(x.entry.Weight, old.entry.Weight), min(x.entry.Depth, old.entry.Depth)
		x.entry.NotBefore = f.saidLast(old.entry.NotBefore, x.entry.NotBefore)
		h.bytes -= hintBytes + int64(len(old.entry.Meta))
	case h.bytes > f.opts.MemoryBudget/64:
		return &EntryError{Index: e.index, URL: shortened(string(b.url)), Err: ErrHints}
	}
	if f.opts.Spill != nil {
		o.rows = append(o.rows, hintRow(e.mark, &x))
	}
	if len(h.at) == 0 {
		h.since = f.nowLocked()
	}
	h.keep(e.mark, x)
	return nil
}

// saidLast is the NotBefore of two hints of a URL: a Hinter is told of the later change,
// otherwise the URL comes at the earlier time.
func (f *Frontier) saidLast(a, b time.Time) time.Time {
	claims := f.hinter != nil || f.opts.HoldHints
	if b.IsZero() || !a.IsZero() && a.After(b) == claims {
		return a
	}
	return b
}

func (h *hints) keep(m Mark, x hint) {
	if h.at == nil {
		h.at = map[Mark]hint{}
	}
	h.at[m] = x
	h.bytes += hintBytes + int64(len(x.entry.Meta))
}

// hintRow encodes a hint for the store, as the body of a URL that was last modified
// when a visit is said to find something new.
func hintRow(m Mark, x *hint) Row {
	b := body{depth: x.entry.Depth, weight: x.entry.Weight, meta: x.entry.Meta}
	b.history.LastModified = x.entry.NotBefore
	return Row{Key: rowHint + string(m[:]), Value: b.append(nil)}
}

func readHint(key string, v []byte) (m Mark, x hint, err error) {
	b, err := decodeBody(v)
	if err != nil || len(key) != len(rowHint)+len(m) {
		return m, x, errRow
	}
	copy(m[:], key[len(rowHint):])
	x.entry = Entry{Depth: b.depth, Weight: b.weight, Meta: slices.Clone(b.meta), NotBefore: b.history.LastModified}
	return m, x, nil
}

// hintsDueLocked is when the next walk may begin; never if nothing is to be found. The
// first hint waits for others for as long as the walk is going to take.
func (f *Frontier) hintsDueLocked() int64 {
	h := &f.hints
	if len(h.at) == 0 || h.walking || f.opts.HoldHints {
		return never
	}
	c := f.core
	price := walkBlock*time.Duration(c.timed.unread.len()) + walkBlock*time.Duration(c.scheduled.len()/walkHeap)
	if price <= walkUnasked {
		return h.since
	}
	due := h.since + int64(price)
	if h.walks > 0 {
		due = max(due, h.ended+int64(price*walkShare))
	}
	return due
}

// startHintsLocked begins a walk if it is time.
func (f *Frontier) startHintsLocked() {
	if len(f.hints.at) == 0 || f.closed || f.draining || f.hintsDueLocked() > f.last {
		return
	}
	f.hints.walking = true
	f.hints.walks++
	walk := f.hints.walks
	f.sweepers.Add(1)
	go func() {
		defer f.sweepers.Done()
		f.walkHints(walk)
	}()
}

// walkHints looks for all URLs of which there were hints when the walk began: first in
// memory, for from there they go to disk.
func (f *Frontier) walkHints(walk int) {
	f.hintScheduled()
	l := f.listTimed()
	f.mu.Lock()
	f.endListLocked(l)
	f.mu.Unlock()
	var blocks []uint32
	for _, it := range l.all() {
		blocks = append(blocks, it.id)
	}
	slices.Sort(blocks)
	for _, id := range blocks {
		if !f.hintBlock(id) {
			break
		}
	}
	f.lock()
	defer f.mu.Unlock()
	h := &f.hints
	if !f.closed && !f.draining { // else they are looked for when the store is opened next
		n := 0
		for m, x := range h.at {
			if n++; n%hintsListed == 0 {
				f.mu.Unlock()
				f.lock()
			}
			if x.walk <= walk { // it is not scheduled
				h.drop(m)
			}
		}
		f.dropHintRowsLocked()
	}
	h.walking, h.since, h.ended = false, f.last, f.last
	f.dispatchLocked()
}

// dropHintRowsLocked deletes the rows of hints that are answered, or of no use. Nobody
// waits for it. It releases the lock between steps.
func (f *Frontier) dropHintRowsLocked() {
	h := &f.hints
	for len(h.gone) > 0 && f.opts.Spill != nil && !f.closed {
		o := newOp()
		n := min(len(h.gone), hintsListed)
		for _, m := range h.gone[:n] {
			if _, again := h.at[m]; !again {
				o.rows = append(o.rows, Row{Key: rowHint + string(m[:])})
			}
		}
		h.gone = h.gone[n:]
		o.after = func(error) {}
		f.submitAsyncLocked(o)
		f.mu.Unlock()
		f.lock()
	}
	h.gone = nil
}

// hintBlock reads a timed block for the sake of hints, if it is still unread. It
// reports whether the walk may go on.
func (f *Frontier) hintBlock(id uint32) bool {
	f.reader <- struct{}{}
	defer func() { <-f.reader }()
	f.mu.Lock()
	t := &f.core.timed
	if f.closed || f.draining || len(f.hints.at) == 0 {
		f.mu.Unlock()
		return false
	}
	i := t.unread.find(id)
	if i == 0 {
		f.mu.Unlock()
		return true
	}
	it := t.unread.remove(i)
	t.reading = it
	f.mu.Unlock()
	f.readBlock(it, true)
	return true
}

// hint restores a hint whose row was found.
func (r *recovery) hint(key string, value []byte) error {
	m, x, err := readHint(key, value)
	if err != nil {
		return rowError(key, err)
	}
	x.walk = 1
	r.f.hints.keep(m, x)
	return nil
}
