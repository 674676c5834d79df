// This file encodes blocks: records of several queues in one value.
//
//	seal 5 | directory length | directory | s2(records)
//
//	directory: for each part
//	  flags 1        1: same queue as the part before
//	  count 1        1 to frontier.MaxPart
//	  host length 1, host, crawl, priority 1   unless same queue
//	  length         of its records, uncompressed
//	records: for each record of each part
//	  seq << 1 | has due   of the part's first record
//	  zigzag(seq - seq before) << 1 | has due   of the others
//	  zigzag(due)    if it has one
//	  length, body
//
// Lengths and numbers are varints. The directory stands apart so that reopening
// need not decompress the records.

package spill

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/klauspost/compress/s2"

	"github.com/seed-7440039f/frontier"
)

const (
	blockTarget    = 4 << 10 // raw bytes of records at which a block is closed
	blockPositions = 1 << 12 // records per block; a position is a uint16
	maxBody        = 8 << 20 // bytes of one record
	blockRawLimit  = 2 * maxBody

	partSame = 1
)

var errNoPart = errors.New("block has no such part")

// blockWriter packs parts into one block. The zero value is ready for use.
type blockWriter struct {
	dir, raw []byte
	queue    frontier.Queue
	count    int // records
}

func (w *blockWriter) reset() {
	w.dir, w.raw, w.count, w.queue = w.dir[:0], w.raw[:0], 0, frontier.Queue{}
}

func (w *blockWriter) full() bool {
	return len(w.raw) >= blockTarget || w.count+frontier.MaxPart > blockPositions
}

// part appends as many records as one part of this block takes, at least one,
// and returns how many.
func (w *blockWriter) part(q frontier.Queue, rs []frontier.Record) int {
	start, n := len(w.raw), 0
	var seq uint64
	for n < len(rs) && n < frontier.MaxPart && (n == 0 || len(w.raw) < blockTarget) {
		w.raw = appendRecord(w.raw, seq, n == 0, &rs[n])
		seq = rs[n].Seq
		n++
	}
	flags := byte(0)
	if w.count > 0 && q == w.queue {
		flags |= partSame
	}
	w.dir = append(w.dir, flags, byte(n))
	if flags&partSame == 0 {
		w.dir = append(w.dir, byte(len(q.Host)))
		w.dir = append(w.dir, q.Host...)
		w.dir = binary.AppendUvarint(w.dir, uint64(q.Crawl))
		w.dir = append(w.dir, q.Priority)
	}
	w.dir = binary.AppendUvarint(w.dir, uint64(len(w.raw)-start))
	w.queue = q
	w.count += n
	return n
}

// value returns the finished block in memory of its own.
func (w *blockWriter) value(key []byte) []byte {
	v := make([]byte, 0, sealLen+binary.MaxVarintLen32+len(w.dir)+s2.MaxEncodedLen(len(w.raw)))
	v = appendSeal(v)
	v = appendBytes(v, w.dir)
	n := len(v)
	v = v[:n+len(s2.Encode(v[n:cap(v)], w.raw))]
	closeSeal(key, v)
	return v
}

func appendRecord(dst []byte, before uint64, first bool, r *frontier.Record) []byte {
	d := r.Seq
	if !first {
		d = zigzag(int64(r.Seq - before))
	}
	d <<= 1
	if r.Due != 0 {
		d |= 1
	}
	dst = binary.AppendUvarint(dst, d)
	if r.Due != 0 {
		dst = binary.AppendVarint(dst, r.Due)
	}
	return appendBytes(dst, r.Body)
}

func zigzag(v int64) uint64   { return uint64(v)<<1 ^ uint64(v>>63) }
func unzigzag(u uint64) int64 { return int64(u>>1) ^ -int64(u&1) }

// partEntry is one part as the directory tells it.
type partEntry struct {
	queue  frontier.Queue
	first  uint16
	count  uint8
	offset uint64 // of its records in the raw body
	length uint64
}

// readDirectory walks the parts of a block. Host strings are made only for parts
// that want accepts, or for all if want is nil.
func readDirectory(dir []byte, want func(first uint16, count uint8) bool, fn func(partEntry) error) error {
	s := scanner{b: dir}
	var p partEntry
	var host []byte
	var pos uint64
	made := false // p.queue.Host is host
	for parts := 0; len(s.b) > 0; parts++ {
		flags, count := s.byte(), s.byte()
		if flags&partSame == 0 {
			host = s.take(uint64(s.byte()))
			p.queue.Crawl = uint32(s.limited(1<<32 - 1))
			p.queue.Priority = s.byte()
			made = false
		} else if parts == 0 {
			return errors.New("first part refers to one before")
		}
		p.offset += p.length
		p.length = s.limited(blockRawLimit)
		if s.err != nil {
			return s.err
		}
		if count == 0 || count > frontier.MaxPart || len(host) == 0 ||
			flags&^partSame != 0 || pos+uint64(count) > blockPositions {
			return fmt.Errorf("part %d of the directory: %w", parts, errNumber)
		}
		p.first, p.count = uint16(pos), count
		pos += uint64(count)
		if want != nil && !want(p.first, p.count) {
			continue
		}
		if !made && want == nil {
			p.queue.Host, made = string(host), true
		}
		if err := fn(p); err != nil {
			return err
		}
	}
	return s.err
}

// splitBlock verifies a block and returns its directory and compressed records.
func splitBlock(key, value []byte) (dir, body []byte, err error) {
	content, err := unseal(key, value)
	if err != nil {
		return nil, nil, err
	}
	s := scanner{b: content}
	dir = s.bytes()
	return dir, s.b, s.err
}

// inflate decompresses body into buf if it fits. A few bytes may claim to become
// millions, so limit is what is allocated at most.
func inflate(buf, body []byte, limit int) ([]byte, error) {
	n, err := s2.DecodedLen(body)
	if err != nil {
		return nil, err
	}
	if n > limit {
		return nil, errNumber
	}
	return s2.Decode(buf[:cap(buf)], body)
}

// readRecords calls fn with the records of part p whose bit is set in want.
func readRecords(raw []byte, p partEntry, want uint32, fn func(i int, r frontier.Record) error) error {
	if p.offset > uint64(len(raw)) || p.length > uint64(len(raw))-p.offset {
		return errShort
	}
	s := scanner{b: raw[p.offset : p.offset+p.length]}
	var r frontier.Record
	for i := range int(p.count) {
		d := s.uvarint()
		if i == 0 {
			r.Seq = d >> 1
		} else {
			r.Seq += uint64(unzigzag(d >> 1))
		}
		r.Due = 0
		if d&1 != 0 {
			r.Due = s.varint()
		}
		r.Body = s.bytes()
		if s.err != nil {
			return s.err
		}
		if want&(1<<i) == 0 {
			continue
		}
		if err := fn(i, r); err != nil {
			return err
		}
	}
	return s.end()
}
