// This file packs a URL and what is known of it into bytes, and lays the bytes
// out in memory.
//
// The same body serves in memory, in the log and in blocks, so a URL is encoded
// once. A resident record is a body behind a header that links it into a queue
// and tells where on disk it lies.

package frontier

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/seed-7440039f/frontier/internal/arena"
)

// Body: a byte of flags, the fields that are flagged, and the URL to the end.
const (
	hasDepth   = 1 << iota // uvarint
	hasWeight              // 8 bytes, IEEE 754
	hasFails               // uvarint: tries that failed since the last success
	hasHistory             // 2 uvarints, 4 varints of Unix milliseconds
	hasMeta                // uvarint length, bytes
	hasLast                // 1 byte: the last Result
	hasState               // 12 bytes
	knownFlags = 1<<iota - 1
)

// body is a decoded record. Its byte slices point into what was decoded.
type body struct {
	depth   int
	weight  float64
	fails   int
	history History
	meta    []byte
	url     []byte
}

func (b *body) append(dst []byte) []byte {
	at := len(dst)
	dst = append(dst, 0)
	var flags byte
	if b.depth > 0 {
		flags |= hasDepth
		dst = binary.AppendUvarint(dst, uint64(b.depth))
	}
	if b.weight != 0 {
		flags |= hasWeight
		dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(b.weight))
	}
	if b.fails > 0 {
		flags |= hasFails
		dst = binary.AppendUvarint(dst, uint64(b.fails))
	}
	if h := &b.history; h.visited() {
		flags |= hasHistory
		dst = binary.AppendUvarint(dst, uint64(h.Visits))
		dst = binary.AppendUvarint(dst, uint64(h.Changes))
		dst = binary.AppendVarint(dst, wallMillis(h.FirstVisit))
		dst = binary.AppendVarint(dst, wallMillis(h.LastVisit))
		dst = binary.AppendVarint(dst, wallMillis(h.LastChange))
		dst = binary.AppendVarint(dst, wallMillis(h.LastModified))
	}
	if len(b.meta) > 0 {
		flags |= hasMeta
		dst = binary.AppendUvarint(dst, uint64(len(b.meta)))
		dst = append(dst, b.meta...)
	}
	if b.history.Last != 0 {
		flags |= hasLast
		dst = append(dst, byte(b.history.Last))
	}
	if b.history.State != (State{}) {
		flags |= hasState
		dst = append(dst, b.history.State[:]...)
	}
	dst[at] = flags
	return append(dst, b.url...)
}

var errBody = errors.New("malformed record")

// decodeBody reads p; it never reads past it, whatever p holds.
func decodeBody(p []byte) (b body, err error) {
	if len(p) == 0 || p[0]&^byte(knownFlags) != 0 {
		return b, errBody
	}
	flags := p[0]
	p = p[1:]
	uvarint := func() int {
		x, n := binary.Uvarint(p)
		if n <= 0 || x > math.MaxInt32 {
			err = errBody
			return 0
		}
		p = p[n:]
		return int(x)
	}
	varint := func() int64 {
		x, n := binary.Varint(p)
		if n <= 0 {
			err = errBody
			return 0
		}
		p = p[n:]
		return x
	}
	if flags&hasDepth != 0 {
		b.depth = uvarint()
	}
	if flags&hasWeight != 0 {
		if len(p) < 8 {
			return b, errBody
		}
		b.weight = math.Float64frombits(binary.LittleEndian.Uint64(p))
		p = p[8:]
	}
	if flags&hasFails != 0 {
		b.fails = uvarint()
	}
	if flags&hasHistory != 0 {
		b.history.Visits, b.history.Changes = uvarint(), uvarint()
		b.history.FirstVisit, b.history.LastVisit = millisTime(varint()), millisTime(varint())
		b.history.LastChange, b.history.LastModified = millisTime(varint()), millisTime(varint())
	}
	if flags&hasMeta != 0 {
		n := uvarint()
		if n > len(p) {
			return b, errBody
		}
		b.meta, p = p[:n], p[n:]
	}
	if flags&hasLast != 0 {
		if len(p) == 0 || Result(p[0]) > Denied {
			return b, errBody
		}
		b.history.Last, p = Result(p[0]), p[1:]
	}
	if flags&hasState != 0 {
		if len(p) < len(State{}) {
			return b, errBody
		}
		b.history.State, p = State(p[:len(State{})]), p[len(State{}):]
	}
	b.url = p
	return b, err
}

// Header of a resident record: 4 bytes next record, 4 bytes part, 8 bytes
// sequence number (its highest byte is the position in the part), 4 bytes
// length of the body.
const headerSize = 20

// recordSize is what a body of n bytes takes in the arena's terms.
func recordSize(n int) int { return headerSize + n }

// resident is the header and body of a record in memory.
type resident []byte

func (r resident) next() arena.Ref     { return arena.Ref(binary.LittleEndian.Uint32(r)) }
func (r resident) setNext(x arena.Ref) { binary.LittleEndian.PutUint32(r, uint32(x)) }

// part is the number of the part that holds the record on disk; 0 means that it
// lies in the log, or is not on disk at all.
func (r resident) part() uint32 { return binary.LittleEndian.Uint32(r[4:]) }
func (r resident) seq() uint64  { return binary.LittleEndian.Uint64(r[8:]) & (1<<48 - 1) }
func (r resident) pos() int     { return int(r[15]) }
func (r resident) length() int  { return int(binary.LittleEndian.Uint32(r[16:])) }
func (r resident) body() []byte { return r[headerSize : headerSize+r.length()] }
func (r resident) setHome(part uint32, pos int) {
	binary.LittleEndian.PutUint32(r[4:], part)
	r[15] = byte(pos)
}

// store copies a body into the arena. The record is in no list and not on disk.
func (c *core) store(seq uint64, b []byte) arena.Ref {
	ref, mem := c.mem.Alloc(recordSize(len(b)))
	binary.LittleEndian.PutUint64(mem, 0)
	binary.LittleEndian.PutUint64(mem[8:], seq)
	binary.LittleEndian.PutUint32(mem[16:], uint32(len(b)))
	copy(mem[headerSize:], b)
	c.resident += arena.Cost(len(mem))
	c.homeless += arena.Cost(len(mem))
	return ref
}

// setHome notes that a record lies in a block, too. It must not be read from
// there.
func (c *core) setHome(ref arena.Ref, part uint32, pos int) {
	r := c.record(ref)
	if r.part() == 0 {
		c.homeless -= arena.Cost(recordSize(r.length()))
	}
	r.setHome(part, pos)
	c.take(c.parts.at(part), 1<<pos)
}

func (c *core) record(ref arena.Ref) resident { return c.mem.Bytes(ref) }

// discard frees a record's memory. Its sequence number is wiped, so that a
// stale reference can be told.
func (c *core) discard(ref arena.Ref) {
	r := c.record(ref)
	n := r.length()
	c.resident -= arena.Cost(recordSize(n))
	if r.part() == 0 {
		c.homeless -= arena.Cost(recordSize(n))
	}
	clear(r[:headerSize])
	c.mem.Free(ref, recordSize(n))
}
