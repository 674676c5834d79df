// This file gathers what an export writes: from a snapshot of the Spill, and from
// memory what the Spill does not have.

package frontier

import (
	"bytes"
)

// exportAtOnce is how many hosts or groups are looked at under one lock.
const exportAtOnce = 128

// begin notes the moment, and what must be known of it, under the lock.
func (x *exporter) beginLocked() {
	f := x.f
	now := f.nowLocked()
	x.moment, x.key = wallMillis(f.wall(now)), f.core.key
	if f.core.hold > now {
		x.held = wallMillis(f.wall(f.core.hold))
	}
}

// gather sorts what the store holds. The snapshot has the marks still.
func (x *exporter) gather() (Snapshot, error) {
	f := x.f
	f.mu.Lock()
	if f.closed {
		f.mu.Unlock()
		return nil, ErrClosed
	}
	x.beginLocked()
	f.mu.Unlock()
	s, err := f.opts.Spill.Snapshot()
	if err != nil {
		return nil, err
	}
	for _, step := range []func(Snapshot) error{x.controls, x.urls, x.hosts} {
		if err := step(s); err != nil {
			s.Release()
			return nil, err
		}
	}
	return s, nil
}

// controls gathers what an operator said.
func (x *exporter) controls(s Snapshot) error {
	err := s.Rows(rowCrawl, func(key string, value []byte) error {
		return x.addRow(sectionCrawl, key[len(rowCrawl):], value)
	})
	if err != nil {
		return err
	}
	err = s.Rows(rowRule, func(key string, value []byte) error {
		return x.addRow(sectionRule, key[len(rowRule):], value)
	})
	if err != nil {
		return err
	}
	return s.Rows(rowUse, func(key string, value []byte) error {
		return x.addRow(sectionUsed, key[len(rowUse):], value)
	})
}

// finished tells which records of a snapshot do not count any more.
type finishedRecords struct {
	dead  map[uint32][]byte // of blocks, by position
	first uint64            // sequence number of the log's first record
	log   []uint64          // bits, from first on
	notes map[Mark]note
	dooms dooms // deletions
}

// deleted reports whether a record fell to a deletion.
func (d *finishedRecords) deleted(q *Queue, seq uint64) bool {
	return d.dooms.n > 0 && seq <= d.dooms.of(bytesOf(q.Host), q.Crawl).seq
}

func (d *finishedRecords) inBlock(block uint32, pos int) bool {
	b := d.dead[block]
	return pos/8 < len(b) && b[pos/8]&(1<<(pos%8)) != 0
}

func (d *finishedRecords) inLog(seq uint64) bool {
	i := seq - d.first
	return i/64 < uint64(len(d.log)) && d.log[i/64]&(1<<(i%64)) != 0
}

// finish notes a completion of the log.
func (d *finishedRecords) finish(c *Completion) {
	if i := c.Seq - d.first; c.Seq >= d.first && i/64 < uint64(len(d.log)) {
		d.log[i/64] |= 1 << (i % 64)
	}
	if c.Block == 0 {
		return
	}
	b := d.dead[c.Block]
	if n := int(c.Pos)/8 + 1 - len(b); n > 0 {
		b = append(b, make([]byte, n)...)
	}
	b[c.Pos/8] |= 1 << (c.Pos % 8)
	d.dead[c.Block] = b
}

// readFinished reads what is finished.
func (x *exporter) readFinished(s Snapshot) (*finishedRecords, error) {
	d := &finishedRecords{dead: map[uint32][]byte{}, notes: map[Mark]note{}}
	err := s.Dead(func(block uint32, bits []byte) error {
		d.dead[block] = bytes.Clone(bits)
		return x.alive()
	})
	if err != nil {
		return nil, err
	}
	err = s.Rows(rowNote, func(key string, value []byte) error {
		m, n, err := readNote(key, value)
		if err != nil {
			return &CorruptError{Key: []byte(key), Err: err}
		}
		d.notes[m] = n
		return x.alive()
	})
	if err != nil {
		return nil, err
	}
	err = s.Rows(rowDeletion, func(key string, value []byte) error {
		x, err := readDeletion(key, value)
		if err != nil {
			return &CorruptError{Key: []byte(key), Err: err}
		}
		d.dooms.add(x)
		return nil
	})
	if err != nil {
		return nil, err
	}
	err = s.Batches(func(b *Batch) error { // a record is admitted before it is finished
		for i := range b.Admit {
			seq := b.Admit[i].Seq
			if len(d.log) == 0 {
				d.first = seq
			}
			for uint64(len(d.log))*64 <= seq-min(seq, d.first) {
				d.log = append(d.log, 0)
			}
			if b.Admit[i].HasMark && !x.noMarks {
				x.young = append(x.young, b.Admit[i].Mark)
			}
		}
		if !x.noMarks {
			x.young = append(x.young, b.Marks...)
		}
		for i := range b.Finish {
			d.finish(&b.Finish[i])
		}
		return x.alive()
	})
	return d, err
}

// urls gathers the URLs that are not finished.
func (x *exporter) urls(s Snapshot) error {
	d, err := x.readFinished(s)
	if err != nil {
		return err
	}
	err = s.Records(func(block uint32, pos int, r *TimedRecord) error {
		if d.inBlock(block, pos) || d.deleted(&r.Queue, r.Seq) {
			return nil
		}
		return x.addURL(&r.Queue, 0, r.Body)
	})
	if err != nil {
		return err
	}
	err = s.Timed(func(block uint32, pos int, r *TimedRecord) error {
		if d.inBlock(block, pos) || d.deleted(&r.Queue, r.Seq) {
			return nil
		}
		return x.addTimed(d, r)
	})
	if err != nil {
		return err
	}
	var r TimedRecord
	return s.Batches(func(b *Batch) error {
		for i := range b.Admit {
			a := &b.Admit[i]
			if d.inLog(a.Seq) || d.deleted(&a.Queue, a.Seq) {
				continue
			}
			var err error
			if r.Queue, r.Record = a.Queue, a.Record; a.Due != 0 {
				err = x.addTimed(d, &r)
			} else {
				err = x.addURL(&r.Queue, 0, r.Body)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// addTimed is addURL for a record with a time, unless a Force replaced it.
func (x *exporter) addTimed(d *finishedRecords, r *TimedRecord) error {
	if len(d.notes) > 0 {
		b, err := decodeBody(r.Body)
		if err != nil {
			return &CorruptError{Err: err}
		}
		if n, ok := d.notes[x.f.markOf(r.Crawl, string(b.url))]; ok && r.Seq < n.seq {
			return nil
		}
	}
	return x.addURL(&r.Queue, r.Due, r.Body)
}

// hosts gathers what is known of hosts and groups: from memory, and then from the
// store what left memory before it was looked at.
func (x *exporter) hosts(Snapshot) error {
	f := x.f
	if err := x.inMemory(func() uint32 { return f.core.hosts.top }, x.addHostLocked); err != nil {
		return err
	}
	if err := x.inMemory(func() uint32 { return f.core.groups.top }, x.addGroupLocked); err != nil {
		return err
	}
	s, err := f.opts.Spill.Snapshot()
	if err != nil {
		return err
	}
	defer s.Release()
	for _, kind := range []struct {
		prefix  string
		section byte
	}{{rowHost, sectionHost}, {rowGroup, sectionGroup}} {
		err := s.Rows(kind.prefix, func(key string, value []byte) error {
			if err := x.alive(); err != nil {
				return err
			}
			return x.addNamed(kind.section, bytesOf(key[len(kind.prefix):]), fromRow, value)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// inMemory calls add with each number up to top, a few under one lock, and takes
// the rows that it makes.
func (x *exporter) inMemory(top func() uint32, add func(id uint32, now int64, take func(section byte, name, value []byte))) error {
	f := x.f
	type named struct {
		section     byte
		name, value []byte
	}
	var some []named
	take := func(section byte, name, value []byte) { some = append(some, named{section, name, value}) }
	for id, more := uint32(1), true; more; {
		f.mu.Lock()
		if f.closed {
			f.mu.Unlock()
			return ErrClosed
		}
		now := f.nowLocked()
		for end := id + exportAtOnce; id < end && id <= top(); id++ {
			add(id, now, take)
		}
		more = id <= top()
		f.mu.Unlock()
		for _, n := range some {
			if err := x.addNamed(n.section, n.name, fromMemory, n.value); err != nil {
				return err
			}
		}
		some = some[:0]
		if err := x.ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

// addHostLocked takes a host in memory of which something must be known, or of
// which the store knows something that may not hold any more.
func (x *exporter) addHostLocked(id uint32, now int64, take func(byte, []byte, []byte)) {
	f := x.f
	c := f.core
	h := c.hosts.at(id)
	if h.nameLen == 0 {
		return
	}
	due := c.restsUntil(id)
	for range c.leasesOf(id) { // its contact may go on: it counts as contacted now
		due = max(due, now+max(f.longestDelay(string(c.name(h))), c.learnedGap(id)))
		f.leasedTroubleLocked(id, now)
	}
	if due > now || h.learned() || h.group != 0 || h.has(stored) {
		take(sectionHost, bytes.Clone(c.name(h)), f.hostRow(id, due, h.why).Value)
	}
}

func (x *exporter) addGroupLocked(id uint32, now int64, take func(byte, []byte, []byte)) {
	f := x.f
	g := f.core.groups.at(id)
	if g.nameLen == 0 {
		return
	}
	name, free := f.core.groupName(g), f.core.slotsOf(id).last()
	if g.used > 0 {
		free = max(free, now+f.core.longest(g))
	}
	take(sectionGroup, []byte(name), groupRow(name, groupState{f.groupRules.of(name), wallMillis(f.wall(free))}).Value)
}
