// This file encodes timed blocks: records that are not due yet, in order of time.
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

package blocks

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/klauspost/compress/s2"
	"github.com/seed-7440039f/frontier/spill/internal/keys"
	"github.com/seed-7440039f/frontier/spill/internal/wire"
	"github.com/seed-7440039f/frontier/storage"
)

// timedTarget is the raw size at which a timed block is closed. Larger blocks would compress
// better, and cost more when only one record is read.
const timedTarget = 12 << 10

var errTimedEmpty = errors.New("timed block without a record")

// CheckTimed returns an error if records are no input of a TimedWriter.
func CheckTimed(records []storage.TimedRecord) error {
	for i := range records {
		r := &records[i]
		switch {
		case len(r.Host) == 0 || len(r.Host) > 255:
			return fmt.Errorf("record %d has a host key of %d bytes; want 1 to 255", i, len(r.Host))
		case len(r.Body) > MaxBody:
			return fmt.Errorf("record %d has a body of %d bytes; want at most %d", i, len(r.Body), MaxBody)
		case i > 0 && r.Due < records[i-1].Due:
			return fmt.Errorf("record %d is due before the one before it", i)
		}
	}
	return nil
}

// TimedWriter encodes one timed block at a time. The zero value is ready for use.
type TimedWriter struct {
	raw    []byte
	queues map[storage.Queue]uint64
}

// Fill adds the records that fit into one block, at least one, and returns how many.
func (w *TimedWriter) Fill(records []storage.TimedRecord) int {
	w.raw = w.raw[:0]
	if w.queues == nil {
		w.queues = map[storage.Queue]uint64{}
	}
	clear(w.queues)
	var due int64
	var seq uint64
	n := 0
	for n < len(records) && n < storage.MaxTimed && len(w.raw) < timedTarget {
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
		w.raw = wire.AppendBytes(w.raw, r.Body)
		due, seq = r.Due, r.Seq
		n++
	}
	return n
}

// Value returns a copy of the finished block.
func (w *TimedWriter) Value(key []byte) []byte {
	v := wire.AppendSeal(make([]byte, 0, wire.SealLen+s2.MaxEncodedLen(len(w.raw))))
	v = v[:wire.SealLen+len(s2.EncodeBetter(v[wire.SealLen:cap(v)], w.raw))]
	wire.CloseSeal(key, v)
	return v
}

// ReadTimed calls fn with the records of a decompressed timed block, in order, until fn returns
// false. Their bodies alias raw. Queues are set only if wanted.
func ReadTimed(raw []byte, wanted bool, fn func(pos int, r storage.TimedRecord) bool) error {
	if len(raw) == 0 {
		return errTimedEmpty
	}
	s := wire.Scanner{B: raw}
	var queues []storage.Queue
	known := uint64(0) // queues
	var r storage.TimedRecord
	for pos := 0; len(s.B) > 0; pos++ {
		q := s.Limited(known)
		if q == 0 {
			host := s.Take(uint64(s.Byte()))
			crawl, priority := uint32(s.Limited(1<<32-1)), s.Byte()
			if len(host) == 0 {
				s.Fail(wire.ErrNumber)
			}
			if wanted {
				queues = append(queues, storage.Queue{Host: string(host), Crawl: crawl, Priority: priority})
			}
			known++
			q = known
		}
		if pos == 0 {
			r.Due = s.Varint()
		} else {
			r.Due += int64(s.Uvarint())
		}
		r.Seq += uint64(s.Varint())
		r.Body = s.Bytes()
		if s.Err != nil {
			return s.Err
		}
		if pos >= storage.MaxTimed {
			return fmt.Errorf("record %d: %w", pos, wire.ErrNumber)
		}
		if wanted {
			r.Queue = queues[q-1]
		}
		if !fn(pos, r) {
			return nil
		}
	}
	return s.Err
}

// OpenTimed verifies and decompresses a timed block, into buf if it fits.
func OpenTimed(buf, key, value []byte) ([]byte, error) {
	body, err := wire.Unseal(key, value)
	if err != nil {
		return nil, err
	}
	return wire.Inflate(buf, body, rawLimit)
}

// TimedHead encodes the description of a timed block, which can be read without the block.
func TimedHead(key []byte, b storage.TimedBlock) []byte {
	v := binary.AppendUvarint(wire.AppendSeal(nil), uint64(b.Count))
	v = binary.AppendVarint(v, b.Due)
	v = append(v, b.Priority)
	wire.CloseSeal(key, v)
	return v
}

// ReadTimedHead returns the block whose head is stored under key.
func ReadTimedHead(key, value []byte) (b storage.TimedBlock, err error) {
	content, err := wire.Unseal(key, value)
	if err != nil {
		return b, err
	}
	s := wire.Scanner{B: content}
	b.Block, _ = keys.Number(key)
	b.Count = int(s.Limited(storage.MaxTimed))
	b.Due = s.Varint()
	b.Priority = s.Byte()
	if err := s.End(); err != nil {
		return b, err
	}
	if b.Count == 0 {
		return b, errTimedEmpty
	}
	return b, nil
}
