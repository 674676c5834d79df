// This file holds timed blocks: records that are not due yet, in order of time.
//
//	block: seal 5 | s2(records)
//	records: for each record
//	  queue          1 + how many of the block's queues came before it; 0: a new one,
//	                 and its host length 1, host, crawl, priority 1 follow
//	  zigzag(due)    of the first record
//	  due - due before     of the others
//	  zigzag(seq - seq before)
//	  length, body
//	head: seal 5 | count | zigzag(due of the first record) | highest priority 1
//
// Lengths and numbers are varints. The head lies under a key of its own, so that
// reopening reads no more than heads.

package spill

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"github.com/klauspost/compress/s2"

	"github.com/seed-7440039f/frontier"
)

// timedTarget is the raw size at which a timed block is closed. Larger ones would
// be smaller in all, and cost more where one record is read.
const timedTarget = 12 << 10

var errTimedEmpty = errors.New("timed block without a record")

// PackTimed writes records, which are sorted by Due, into timed blocks. After an
// error nothing of the call is of use: call it again.
func (s *Store) PackTimed(gen uint32, records []frontier.TimedRecord) ([]frontier.TimedBlock, error) {
	if err := s.enter(); err != nil {
		return nil, fmt.Errorf("spill: pack timed: %w", err)
	}
	defer s.leave()
	s.pack.Lock()
	defer s.pack.Unlock()
	if err := checkTimed(records); err != nil {
		return nil, fmt.Errorf("spill: pack timed: %w", err)
	}
	p := packer{s: s, gen: s.generation(gen), kind: kindTimed}
	blocks, err := p.timed(records)
	if err != nil {
		p.abandon()
		return nil, fmt.Errorf("spill: pack timed: %w", err)
	}
	return blocks, nil
}

func checkTimed(records []frontier.TimedRecord) error {
	for i := range records {
		r := &records[i]
		switch {
		case len(r.Host) == 0 || len(r.Host) > 255:
			return fmt.Errorf("record %d has a host key of %d bytes; want 1 to 255", i, len(r.Host))
		case len(r.Body) > maxBody:
			return fmt.Errorf("record %d has a body of %d bytes; want at most %d", i, len(r.Body), maxBody)
		case i > 0 && r.Due < records[i-1].Due:
			return fmt.Errorf("record %d is due before the one before it", i)
		}
	}
	return nil
}

func (p *packer) timed(records []frontier.TimedRecord) ([]frontier.TimedBlock, error) {
	var blocks []frontier.TimedBlock
	var w timedWriter
	for len(records) > 0 {
		n := w.fill(records)
		if err := p.begin(); err != nil {
			return nil, err
		}
		key, head := timedKey(p.gen, p.block), timedHeadKey(p.gen, p.block)
		v := w.value(key)
		b := frontier.TimedBlock{Block: p.block, Count: n, Due: records[0].Due}
		for i := range n {
			b.Priority = max(b.Priority, records[i].Priority)
		}
		blocks = append(blocks, b)
		p.set(key, v)
		p.set(head, timedHead(head, b))
		if err := p.ended(); err != nil {
			return nil, err
		}
		records = records[n:]
	}
	return blocks, p.flush()
}

// timedWriter encodes one timed block at a time. The zero value is ready for use.
type timedWriter struct {
	raw    []byte
	queues map[frontier.Queue]uint64
}

// fill takes as many records as one block holds, at least one, and returns how
// many.
func (w *timedWriter) fill(records []frontier.TimedRecord) int {
	w.raw = w.raw[:0]
	if w.queues == nil {
		w.queues = map[frontier.Queue]uint64{}
	}
	clear(w.queues)
	var due int64
	var seq uint64
	n := 0
	for n < len(records) && n < frontier.MaxTimed && len(w.raw) < timedTarget {
		r := &records[n]
		q := w.queues[r.Queue]
		w.raw = binary.AppendUvarint(w.raw, q)
		if q == 0 {
			w.queues[r.Queue] = uint64(len(w.queues)) + 1
			w.raw = append(w.raw, byte(len(r.Host)))
			w.raw = append(w.raw, r.Host...)
			w.raw = binary.AppendUvarint(w.raw, uint64(r.Crawl))
			w.raw = append(w.raw, r.Priority)
		}
		if n == 0 {
			w.raw = binary.AppendVarint(w.raw, r.Due)
		} else {
			w.raw = binary.AppendUvarint(w.raw, uint64(r.Due-due))
		}
		w.raw = binary.AppendVarint(w.raw, int64(r.Seq-seq))
		w.raw = appendBytes(w.raw, r.Body)
		due, seq = r.Due, r.Seq
		n++
	}
	return n
}

func (w *timedWriter) value(key []byte) []byte {
	v := appendSeal(make([]byte, 0, sealLen+s2.MaxEncodedLen(len(w.raw))))
	v = v[:sealLen+len(s2.EncodeBetter(v[sealLen:cap(v)], w.raw))]
	closeSeal(key, v)
	return v
}

// readTimed calls fn with the records of a decompressed timed block, in order,
// until it returns false. Their bodies alias raw. Queues are given only if they
// are wanted.
func readTimed(raw []byte, wanted bool, fn func(pos int, r frontier.TimedRecord) bool) error {
	if len(raw) == 0 {
		return errTimedEmpty
	}
	s := scanner{b: raw}
	var queues []frontier.Queue
	known := uint64(0) // queues
	var r frontier.TimedRecord
	for pos := 0; len(s.b) > 0; pos++ {
		q := s.limited(known)
		if q == 0 {
			host := s.take(uint64(s.byte()))
			crawl, priority := uint32(s.limited(1<<32-1)), s.byte()
			if len(host) == 0 {
				s.fail(errNumber)
			}
			if wanted {
				queues = append(queues, frontier.Queue{Host: string(host), Crawl: crawl, Priority: priority})
			}
			known++
			q = known
		}
		if pos == 0 {
			r.Due = s.varint()
		} else {
			r.Due += int64(s.uvarint())
		}
		r.Seq += uint64(s.varint())
		r.Body = s.bytes()
		if s.err != nil {
			return s.err
		}
		if pos >= frontier.MaxTimed {
			return fmt.Errorf("record %d: %w", pos, errNumber)
		}
		if wanted {
			r.Queue = queues[q-1]
		}
		if !fn(pos, r) {
			return nil
		}
	}
	return s.err
}

// openTimed verifies and decompresses a timed block, into buf if it fits.
func openTimed(buf, key, value []byte) ([]byte, error) {
	body, err := unseal(key, value)
	if err != nil {
		return nil, err
	}
	return inflate(buf, body, blockRawLimit)
}

// buffers holds memory for decompressed blocks that are read once.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// LoadTimed reads a timed block. It may be called by any number of goroutines.
func (s *Store) LoadTimed(block uint32, from int, fn func(pos int, r frontier.TimedRecord) bool) error {
	if err := s.enter(); err != nil {
		return fmt.Errorf("spill: load timed: %w", err)
	}
	defer s.leave()
	key, ok := s.keyOf(block)
	if !ok || kind(key[headLen-1]) != kindTimed {
		return fmt.Errorf("spill: load timed: %w", corrupt(key, errNoBlock))
	}
	found, err := s.get(key, func(value []byte) error {
		buf := buffers.Get().(*[]byte)
		defer buffers.Put(buf)
		raw, err := openTimed(*buf, key, value)
		if err == nil {
			if cap(raw) <= 16*blockTarget {
				*buf = raw[:0]
			}
			err = readTimed(raw, true, func(pos int, r frontier.TimedRecord) bool { return pos < from || fn(pos, r) })
		}
		if err != nil {
			return corrupt(key, err)
		}
		return nil
	})
	if err == nil && !found {
		err = corrupt(key, errNoBlock)
	}
	if err != nil {
		return fmt.Errorf("spill: load timed: %w", err)
	}
	return nil
}

// timedRecords is records for a timed block.
func (b *openBlock) timedRecords(key []byte, p frontier.Part, want uint32, fn func(int, frontier.Record)) error {
	found := 0
	err := readTimed(b.raw, false, func(pos int, r frontier.TimedRecord) bool {
		i := pos - int(p.First)
		if i >= 0 && i < int(p.Count) {
			found++
			if want&(1<<i) != 0 {
				fn(i, r.Record)
			}
		}
		return i+1 < int(p.Count)
	})
	if err == nil && found < int(p.Count) {
		err = errNoPart
	}
	if err != nil {
		return corrupt(key, err)
	}
	return nil
}

// timedHead encodes what is known of a timed block without reading it.
func timedHead(key []byte, b frontier.TimedBlock) []byte {
	v := binary.AppendUvarint(appendSeal(nil), uint64(b.Count))
	v = binary.AppendVarint(v, b.Due)
	v = append(v, b.Priority)
	closeSeal(key, v)
	return v
}

// readTimedHead returns the block whose head is stored under key.
func readTimedHead(key, value []byte) (b frontier.TimedBlock, err error) {
	content, err := unseal(key, value)
	if err != nil {
		return b, err
	}
	s := scanner{b: content}
	b.Block, _ = number(key)
	b.Count = int(s.limited(frontier.MaxTimed))
	b.Due = s.varint()
	b.Priority = s.byte()
	if err := s.end(); err != nil {
		return b, err
	}
	if b.Count == 0 {
		return b, errTimedEmpty
	}
	return b, nil
}
