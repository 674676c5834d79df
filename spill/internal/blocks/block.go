// Package blocks encodes records as blocks, values of the store: those of queues, those that are not
// due yet, and which of them are finished. It keeps the decompressed blocks that were read last.
//
// A block of queues:
//
//	seal 5 | directory length | directory | s2(records)
//
//	directory: for each part
//	  flags 1        1: same queue as the part before
//	  count 1        1 to storage.MaxPart
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
package blocks

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/klauspost/compress/s2"
	"github.com/seed-7440039f/frontier/spill/internal/wire"
	"github.com/seed-7440039f/frontier/storage"
)

const (
	// Target is the raw size of records, in bytes, at which a block is closed.
	Target = 4 << 10
	// Positions is the maximum number of records in a block. A position is a uint16.
	Positions = 1 << 12
	// MaxBody is the size of the largest record, in bytes.
	MaxBody  = 8 << 20
	rawLimit = 2 * MaxBody

	partSame = 1
)

// Writer packs parts into one block. The zero value is ready for use.
type Writer struct {
	Count    int // records
	dir, raw []byte
	queue    storage.Queue
}

// Reset begins a new block.
func (w *Writer) Reset() {
	w.dir, w.raw, w.Count, w.queue = w.dir[:0], w.raw[:0], 0, storage.Queue{}
}

// Full reports whether the block should be closed.
func (w *Writer) Full() bool {
	return len(w.raw) >= Target || w.Count+storage.MaxPart > Positions
}

// Part appends the records that fit into one part of this block, at least one, and returns how many.
func (w *Writer) Part(q storage.Queue, rs []storage.Record) int {
	start, n := len(w.raw), 0
	var seq uint64
	for n < len(rs) && n < storage.MaxPart && (n == 0 || len(w.raw) < Target) {
		w.raw = appendRecord(w.raw, seq, n == 0, &rs[n])
		seq = rs[n].Seq
		n++
	}
	flags := byte(0)
	if w.Count > 0 && q == w.queue {
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
	w.Count += n
	return n
}

// Value returns a copy of the finished block.
func (w *Writer) Value(key []byte) []byte {
	v := make([]byte, 0, wire.SealLen+binary.MaxVarintLen32+len(w.dir)+s2.MaxEncodedLen(len(w.raw)))
	v = wire.AppendSeal(v)
	v = wire.AppendBytes(v, w.dir)
	n := len(v)
	v = v[:n+len(s2.Encode(v[n:cap(v)], w.raw))]
	wire.CloseSeal(key, v)
	return v
}

func appendRecord(dst []byte, before uint64, first bool, r *storage.Record) []byte {
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
	return wire.AppendBytes(dst, r.Body)
}

func zigzag(v int64) uint64   { return uint64(v)<<1 ^ uint64(v>>63) }
func unzigzag(u uint64) int64 { return int64(u>>1) ^ -int64(u&1) }

// entry is one part in the directory.
type entry struct {
	queue  storage.Queue
	first  uint16
	count  uint8
	offset uint64 // of its records in the raw body
	length uint64
}

// readDirectory walks the parts of a block. Host strings are made only for parts
// that want accepts, or for all if want is nil.
func readDirectory(dir []byte, want func(first uint16, count uint8) bool, fn func(entry) error) error {
	s := wire.Scanner{B: dir}
	var p entry
	var host []byte
	var pos uint64
	made := false // p.queue.Host is host
	for parts := 0; len(s.B) > 0; parts++ {
		flags, count := s.Byte(), s.Byte()
		if flags&partSame == 0 {
			host = s.Take(uint64(s.Byte()))
			p.queue.Crawl = uint32(s.Limited(1<<32 - 1))
			p.queue.Priority = s.Byte()
			made = false
		} else if parts == 0 {
			return errors.New("first part refers to one before")
		}
		p.offset += p.length
		p.length = s.Limited(rawLimit)
		if s.Err != nil {
			return s.Err
		}
		if count == 0 || count > storage.MaxPart || len(host) == 0 ||
			flags&^partSame != 0 || pos+uint64(count) > Positions {
			return fmt.Errorf("part %d of the directory: %w", parts, wire.ErrNumber)
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
	return s.Err
}

// split verifies a block and returns its directory and compressed records.
func split(key, value []byte) (dir, body []byte, err error) {
	content, err := wire.Unseal(key, value)
	if err != nil {
		return nil, nil, err
	}
	s := wire.Scanner{B: content}
	dir = s.Bytes()
	return dir, s.B, s.Err
}

// readRecords calls fn with the records of part p whose bit is set in want.
func readRecords(raw []byte, p entry, want uint32, fn func(i int, r storage.Record) error) error {
	if p.offset > uint64(len(raw)) || p.length > uint64(len(raw))-p.offset {
		return wire.ErrShort
	}
	s := wire.Scanner{B: raw[p.offset : p.offset+p.length]}
	var r storage.Record
	for i := range int(p.count) {
		d := s.Uvarint()
		if i == 0 {
			r.Seq = d >> 1
		} else {
			r.Seq += uint64(unzigzag(d >> 1))
		}
		r.Due = 0
		if d&1 != 0 {
			r.Due = s.Varint()
		}
		r.Body = s.Bytes()
		if s.Err != nil {
			return s.Err
		}
		if want&(1<<i) == 0 {
			continue
		}
		if err := fn(i, r); err != nil {
			return err
		}
	}
	return s.End()
}
