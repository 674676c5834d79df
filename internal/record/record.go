// Package record stores URLs in memory, and packs the data of each into bytes.
//
// A record in memory is a body after a header, which links it into a list and contains its location
// on disk. The package owns the memory of records, and counts the part that belongs to records in
// no block. It has no lock: callers hold the frontier's.
package record

import (
	"bytes"
	"encoding/binary"

	"github.com/seed-7440039f/frontier/internal/arena"
)

// Header of a resident record: 4 bytes next record, 4 bytes part, 6 bytes
// sequence number, 1 byte print, 1 byte position in the part, 4 bytes
// length of the body. A record of a ring has the links of that behind its body.
const (
	headerSize = 20
	ringSize   = 8
	inRing     = 1 << 31 // in the length: it has links
)

// Cost returns the memory of a record with a body of n bytes.
func Cost(n int) int64 { return arena.Cost(headerSize + n) }

// Resident is the header and body of a record in memory.
type Resident []byte

// Next returns the record after this one in its list, or another value that its owner set with SetNext.
func (r Resident) Next() arena.Ref { return arena.Ref(binary.LittleEndian.Uint32(r)) }

// SetNext sets what Next returns.
func (r Resident) SetNext(x arena.Ref) { binary.LittleEndian.PutUint32(r, uint32(x)) }

// Part returns the number of the part that holds the record on disk; 0 means that it is in the log,
// or not on disk.
func (r Resident) Part() uint32 { return binary.LittleEndian.Uint32(r[4:]) }

// Seq is the record's sequence number, below 1<<48.
func (r Resident) Seq() uint64 { return binary.LittleEndian.Uint64(r[8:]) & (1<<48 - 1) }

// Print is the eighth byte of the URL's mark; 0 if it is not known.
func (r Resident) Print() byte { return r[14] }

// SetPrint sets what Print returns.
func (r Resident) SetPrint(p byte) { r[14] = p }

// Pos is the record's position in its part.
func (r Resident) Pos() int { return int(r[15]) }

// Len returns the length of the body in bytes.
func (r Resident) Len() int { return int(binary.LittleEndian.Uint32(r[16:]) &^ inRing) }

// size is the number of the record's bytes.
func (r Resident) size() int {
	n := headerSize + r.Len()
	if binary.LittleEndian.Uint32(r[16:])&inRing != 0 {
		n += ringSize
	}
	return n
}

// Cost returns the memory of the record.
func (r Resident) Cost() int64 { return arena.Cost(r.size()) }

// links are those of a record of a ring: to the one before and the one after it.
func (r Resident) links() []byte { return r[headerSize+r.Len():][:ringSize] }

// After is the record after this one in its ring.
func (r Resident) After() arena.Ref { return arena.Ref(binary.LittleEndian.Uint32(r.links()[4:])) }

func (r Resident) before() arena.Ref { return arena.Ref(binary.LittleEndian.Uint32(r.links())) }

func (r Resident) setBefore(x arena.Ref) { binary.LittleEndian.PutUint32(r.links(), uint32(x)) }

func (r Resident) setAfter(x arena.Ref) { binary.LittleEndian.PutUint32(r.links()[4:], uint32(x)) }

// Body is the body as Append encoded it. It lies in the arena.
func (r Resident) Body() []byte { return r[headerSize : headerSize+r.Len()] }

// Arena holds records in memory, by their refs.
//
// The zero value is empty. Not safe for concurrent use.
type Arena struct {
	mem      arena.Arena
	homeless int64 // bytes of records that are in no block
}

// Store copies a body into memory. The record is in no list and not on disk.
func (a *Arena) Store(seq uint64, body []byte) arena.Ref { return a.store(seq, body, 0, 0) }

// StoreForRing is Store for a record that can be in a ring.
func (a *Arena) StoreForRing(seq uint64, body []byte) arena.Ref {
	return a.store(seq, body, ringSize, inRing)
}

func (a *Arena) store(seq uint64, body []byte, more int, flag uint32) arena.Ref {
	ref, mem := a.mem.Alloc(headerSize + len(body) + more)
	binary.LittleEndian.PutUint64(mem, 0)
	binary.LittleEndian.PutUint64(mem[8:], seq)
	binary.LittleEndian.PutUint32(mem[16:], uint32(len(body))|flag)
	copy(mem[headerSize:], body)
	a.homeless += arena.Cost(headerSize + len(body) + more)
	return ref
}

// Join puts a record of StoreForRing at the end of a ring, whose first record is first; 0 if it is empty.
func (a *Arena) Join(first *arena.Ref, ref arena.Ref) {
	r := a.At(ref)
	if *first == 0 {
		*first = ref
		r.setBefore(ref)
		r.setAfter(ref)
		return
	}
	head := a.At(*first)
	last := head.before()
	r.setBefore(last)
	r.setAfter(*first)
	head.setBefore(ref)
	a.At(last).setAfter(ref)
}

// Leave takes a record out of its ring.
func (a *Arena) Leave(first *arena.Ref, ref arena.Ref) {
	r := a.At(ref)
	before, after := r.before(), r.After()
	if after == ref {
		*first = 0
		return
	}
	a.At(before).setAfter(after)
	a.At(after).setBefore(before)
	if *first == ref {
		*first = after
	}
}

// At returns a record. If it was discarded, its sequence number is 0, or that of a new record in
// its place.
func (a *Arena) At(ref arena.Ref) Resident { return a.mem.Bytes(ref) }

// Prefetch begins to fetch a record into the processor's cache, for a call of At to come.
func (a *Arena) Prefetch(ref arena.Ref) { a.mem.Prefetch(ref) }

// SetHome records that a record is also in a block, as record pos of a part.
func (a *Arena) SetHome(ref arena.Ref, part uint32, pos int) {
	r := a.At(ref)
	if r.Part() == 0 {
		a.homeless -= r.Cost()
	}
	binary.LittleEndian.PutUint32(r[4:], part)
	r[15] = byte(pos)
}

// Discard frees a record's memory. Its sequence number is cleared, so that a stale reference can be
// recognized.
func (a *Arena) Discard(ref arena.Ref) {
	r := a.At(ref)
	n := r.size()
	if r.Part() == 0 {
		a.homeless -= r.Cost()
	}
	clear(r[:headerSize])
	a.mem.Free(ref, n)
}

// HasURL reports whether a record has the given URL.
func (a *Arena) HasURL(ref arena.Ref, url []byte) bool { return HasURL(a.At(ref).Body(), url) }

// HasURL reports whether a body has the given URL.
func HasURL(p, url []byte) bool {
	if !bytes.HasSuffix(p, url) {
		return false
	}
	b, err := Decode(p)
	return err == nil && bytes.Equal(b.URL, url)
}

// Location is where a record was in memory. If the memory was reused since, its epoch has changed.
// The zero location is none.
type Location struct {
	Ref   arena.Ref
	epoch uint32
	Seq   uint64
}

// Locate returns where a record is, for use with Holds.
func (a *Arena) Locate(ref arena.Ref) Location {
	return Location{ref, a.mem.Epoch(ref), a.At(ref).Seq()}
}

// Holds reports whether the record that was there still is.
func (a *Arena) Holds(l Location) bool {
	return a.mem.Epoch(l.Ref) == l.epoch && a.At(l.Ref).Seq() == l.Seq
}

// Used returns the memory of the records in bytes.
func (a *Arena) Used() int64 { return a.mem.Used() }

// Homeless returns the part of it that belongs to records in no block.
func (a *Arena) Homeless() int64 { return a.homeless }

// Size is how many bytes of memory are held for records.
func (a *Arena) Size() int64 { return a.mem.Size() }
