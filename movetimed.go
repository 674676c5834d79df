// This file is the part of a round that moves scheduled records to timed blocks.
// All but those that are due soon leave memory with that.

package frontier

import (
	"cmp"
	"slices"

	"github.com/seed-7440039f/frontier/internal/arena"
)

const (
	timedPacked = 4096 // scheduled records that are packed at once
	timedCopied = 256  // of them, copied under one lock
)

// timedCopy is a scheduled record on its way to a timed block.
type timedCopy struct {
	TimedRecord
	from location
	at   int64
}

// moveScheduled moves the scheduled records of the round in order of time. If it
// fails, what is left is up to the next round.
func (m *mover) moveScheduled(items []timeItem) error {
	slices.SortFunc(items, func(a, b timeItem) int { return cmp.Compare(a.at, b.at) })
	for len(items) > 0 {
		copies := make([]timedCopy, 0, timedPacked)
		bodies := make([]byte, 0, moveBytes)
		n := 0
		var err error
		for n < len(items) && n < timedPacked && len(bodies) < moveBytes && err == nil {
			end := min(n+timedCopied, len(items))
			copies, bodies, err = m.copyTimed(copies, bodies, items[n:end])
			n = end
		}
		if err == nil {
			err = m.packTimed(copies)
		}
		if err != nil {
			f := m.f
			f.mu.Lock()
			f.core.unplaced = append(f.core.unplaced, items...)
			f.mu.Unlock()
			return err
		}
		items = items[n:]
	}
	return nil
}

// copyTimed appends copies of the records and their bodies, under one lock.
func (m *mover) copyTimed(out []timedCopy, bodies []byte, items []timeItem) ([]timedCopy, []byte, error) {
	f := m.f
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, nil, ErrClosed
	}
	c := f.core
	for _, x := range items {
		ref := arena.Ref(x.id)
		i, ok := c.scheduledAt(ref)
		if !ok {
			continue // it waits by now, or is finished, and its place perhaps put to another use
		}
		it := c.scheduled.Items[i]
		if c.record(ref).seq() <= c.condemned(c.queues.at(it.aux)).seq {
			continue // it needs no home
		}
		if !m.takes(ref) {
			if c.record(ref).part() == 0 {
				c.unplaced = append(c.unplaced, it) // of the next round
			}
			continue
		}
		q := c.queues.at(it.aux)
		var r Record
		r, bodies = c.copyRecord(ref, bodies)
		r.Due = wallMillis(f.day(it.at))
		out = append(out, timedCopy{
			TimedRecord: TimedRecord{
				Queue:  Queue{Host: string(c.name(c.hosts.at(q.host))), Crawl: c.crawlOf(q).id, Priority: q.priority},
				Record: r,
			},
			from: c.locate(ref), at: it.at,
		})
	}
	return out, bodies, nil
}

// packTimed packs records and lets go of them.
func (m *mover) packTimed(copies []timedCopy) error {
	// An item of unplaced whose record is gone may have led to another one, which has
	// an item of its own.
	slices.SortFunc(copies, func(a, b timedCopy) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.Seq, b.Seq)) })
	copies = slices.CompactFunc(copies, func(a, b timedCopy) bool { return a.Seq == b.Seq })
	if len(copies) == 0 {
		return nil
	}
	records := make([]TimedRecord, len(copies))
	for i := range copies {
		records[i] = copies[i].TimedRecord
	}
	blocks, err := m.f.opts.Spill.PackTimed(m.gen, records)
	if err != nil {
		return err
	}
	m.moved = true
	for _, b := range blocks {
		m.f.mu.Lock()
		m.settleTimedLocked(b, copies[:b.Count])
		m.f.freedLocked()
		m.f.mu.Unlock()
		copies = copies[b.Count:]
	}
	return nil
}

// settleTimedLocked drops the records of a new block from memory, but for the
// first ones if they are due soon or not scheduled any more: these learn their
// home.
func (m *mover) settleTimedLocked(b TimedBlock, where []timedCopy) {
	f := m.f
	c := f.core
	now := f.nowLocked()
	stay, live := 0, len(where)
	dead := make([]bool, len(where))
	c.lastBlock = max(c.lastBlock, b.Block)
	for i, w := range where {
		if !c.holds(w.from) || w.Seq <= c.stored.of(bytesOf(w.Host), w.Crawl).seq {
			dead[i] = true
		} else if _, ok := c.scheduledAt(w.from.ref); !ok || w.at <= c.date(now)+c.cfg.ahead {
			stay = i + 1
		}
	}
	first := timeItem{id: b.Block}
	for i, w := range where {
		switch {
		case dead[i]:
			c.bury(b.Block, len(where), i)
			live--
		case i < stay:
			_ = c.touched(b.Block, len(where))
			c.setHome(w.from.ref, c.newPart(Part{Block: b.Block, First: uint16(i), Count: 1}), 0)
			live--
		default:
			if first.at == 0 {
				first.at, first.aux = w.at, uint32(i)
			}
			c.dismiss(w.from.ref, now)
		}
	}
	if live > 0 {
		first.aux = timedAux(int(first.aux), live)
		c.timed.add(first)
	}
}
