// This file moves scheduled records to timed blocks. All except those that are due soon then leave
// memory.

package move

import (
	"cmp"
	"errors"
	"slices"

	"github.com/seed-7440039f/frontier/internal/arena"
	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/internal/record"
	"github.com/seed-7440039f/frontier/internal/timed"
	"github.com/seed-7440039f/frontier/internal/timeheap"
	"github.com/seed-7440039f/frontier/storage"
)

const (
	timedPacked = 4096 // scheduled records that are packed at once
	timedCopied = 256  // of them, copied under one lock
)

// timedCopy is a scheduled record on its way to a timed block.
type timedCopy struct {
	storage.TimedRecord
	from record.Location
	at   int64
}

// moveScheduled moves the scheduled records of the round in order of time. If it fails, the next
// round moves the rest.
func (r *Round) moveScheduled() error {
	items := r.scheduled
	r.scheduled = nil
	slices.SortFunc(items, func(a, b timeheap.Item) int { return cmp.Compare(a.At, b.At) })
	for len(items) > 0 {
		copies := make([]timedCopy, 0, timedPacked)
		bodies := make([]byte, 0, copyBytes)
		n := 0
		var err error
		for n < len(items) && n < timedPacked && len(bodies) < copyBytes && err == nil {
			end := min(n+timedCopied, len(items))
			copies, bodies, err = r.copyTimed(copies, bodies, items[n:end])
			n = end
		}
		if err == nil {
			err = r.packTimed(copies)
		}
		if err != nil {
			r.src.Lock()
			r.m.scheduled.NeedHome(items...)
			r.src.Unlock()
			return err
		}
		items = items[n:]
	}
	return nil
}

// copyTimed appends copies of the records and their bodies, under one lock.
func (r *Round) copyTimed(out []timedCopy, bodies []byte, items []timeheap.Item) ([]timedCopy, []byte, error) {
	r.src.Lock()
	defer r.src.Unlock()
	if r.src.Closed() {
		return nil, nil, storage.ErrClosed
	}
	m := r.m
	for _, x := range items {
		ref := arena.Ref(x.ID)
		i, ok := m.scheduled.Find(ref)
		if !ok {
			continue // it waits by now, or is finished, and its memory may have been reused
		}
		it := m.scheduled.Items[i]
		body := m.records.At(ref)
		if body.Seq() <= r.src.Dead(it.Aux) {
			continue // it needs no home
		}
		if !r.takes(body) {
			if body.Part() == 0 {
				m.scheduled.NeedHome(it) // of the next round
			}
			continue
		}
		var copied storage.Record
		var queue storage.Queue
		copied, bodies = copyRecord(body, bodies)
		queue, r.names = r.src.Name(it.Aux, r.names)
		copied.Due = r.src.Millis(it.At)
		out = append(out, timedCopy{
			TimedRecord: storage.TimedRecord{Queue: queue, Record: copied},
			from:        m.records.Locate(ref), at: it.At,
		})
	}
	return out, bodies, nil
}

// packTimed packs records and releases them.
func (r *Round) packTimed(copies []timedCopy) error {
	r.names = nil // the copies have them
	// The record of an item may be gone, and another one, which also has an item, in its place.
	slices.SortFunc(copies, func(a, b timedCopy) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.Seq, b.Seq)) })
	copies = slices.CompactFunc(copies, func(a, b timedCopy) bool { return a.Seq == b.Seq })
	// A block of records that are never due has no others.
	due, _ := slices.BinarySearchFunc(copies, instant.Never, func(x timedCopy, at int64) int { return cmp.Compare(x.at, at) })
	return errors.Join(r.packSorted(copies[:due]), r.packSorted(copies[due:]))
}

func (r *Round) packSorted(copies []timedCopy) error {
	if len(copies) == 0 {
		return nil
	}
	records := make([]storage.TimedRecord, len(copies))
	for i := range copies {
		records[i] = copies[i].TimedRecord
	}
	blocks, err := r.store.PackTimed(r.gen, records)
	if err != nil {
		return err
	}
	r.moved = true
	for _, b := range blocks {
		r.src.Lock()
		r.settleTimed(b, copies[:b.Count])
		r.src.Freed()
		r.src.Unlock()
		copies = copies[b.Count:]
	}
	return nil
}

// settleTimed drops the records of a new block from memory. The first ones stay, up to the last
// that is due soon or no longer scheduled: their home is set.
func (r *Round) settleTimed(b storage.TimedBlock, where []timedCopy) {
	m := r.m
	soon := r.src.Soon()
	stay, live := 0, len(where)
	dead := make([]bool, len(where))
	m.blocks.Made(b.Block)
	for i, w := range where {
		if !m.records.Holds(w.from) || w.Seq <= r.src.DeadOf(w.Queue) {
			dead[i] = true
		} else if _, ok := m.scheduled.Find(w.from.Ref); !ok || w.at <= soon {
			stay = i + 1
		}
	}
	first, due := -1, int64(0)
	for i, w := range where {
		switch {
		case dead[i]:
			m.blocks.Bury(b.Block, len(where), i)
			live--
		case i < stay:
			m.blocks.Touch(b.Block, len(where))
			m.fifo.SetHome(w.from.Ref, m.blocks.NewPart(storage.Part{Block: b.Block, First: uint16(i), Count: 1}), 0)
			live--
		default:
			if first < 0 {
				first, due = i, w.at
			}
			r.src.Dismiss(w.from.Ref)
		}
	}
	if live > 0 {
		m.timed.Add(timed.Item(b.Block, due, first, live))
	}
}
