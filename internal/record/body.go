// This file packs a URL and its data into bytes.
//
// The same body is used in memory, in the log and in blocks, so a URL is encoded only once.

package record

import (
	"encoding/binary"
	"errors"
	"math"
)

// Body: a byte of flags, the fields that are flagged, and the URL to the end.
const (
	hasDepth   = 1 << iota // uvarint
	hasWeight              // 8 bytes, IEEE 754; see hasShort
	hasFails               // uvarint: tries that failed since the last success
	hasHistory             // 2 uvarints, 4 varints of Unix milliseconds
	hasMeta                // uvarint length, bytes
	hasLast                // 1 byte, which may have hasShort
	hasState               // 12 bytes
	isNamed                // nothing: see Body.Named
)

// History is the result of earlier visits. Times are Unix milliseconds, 0 for none.
type History struct {
	Visits, Changes int
	FirstVisit      int64
	LastVisit       int64
	LastChange      int64
	LastModified    int64
	Last            byte // how the last try ended: up to MaxLast
	State           [12]byte
}

// MaxLast is the greatest value for the end of a try.
const MaxLast = 5

// hasShort is added to the byte of hasLast if the first 2 bytes of a weight, as float32, follow it: the
// others are zero. So a weight with a mantissa of 8 bits takes 3 bytes.
const hasShort = 8

// visited reports whether the history shows visits.
func (h *History) visited() bool {
	return h.Visits != 0 || h.Changes != 0 || h.FirstVisit != 0 || h.LastVisit != 0 || h.LastChange != 0 || h.LastModified != 0
}

// Body is a decoded record. Its byte slices point into the decoded data.
type Body struct {
	Depth   int
	Weight  float64
	Fails   int
	History History
	Meta    []byte
	URL     []byte
	Named   bool // its host was given with it, and does not follow from the URL
}

// Most returns how many bytes Append appends at most.
func (b *Body) Most() int {
	const numbers = 1 + 8 + 8*binary.MaxVarintLen64 + binary.MaxVarintLen64 + 1 + len(b.History.State)
	return numbers + len(b.Meta) + len(b.URL)
}

// Append appends b, packed, to dst. The URL comes last: if there is none, the caller may append it.
func (b *Body) Append(dst []byte) []byte {
	at := len(dst)
	dst = append(dst, 0)
	var flags byte
	if b.Depth > 0 {
		flags |= hasDepth
		dst = binary.AppendUvarint(dst, uint64(b.Depth))
	}
	weight := math.Float32bits(float32(b.Weight))
	short := b.Weight != 0 && weight<<16 == 0 && float64(math.Float32frombits(weight)) == b.Weight
	if b.Weight != 0 && !short {
		flags |= hasWeight
		dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(b.Weight))
	}
	if b.Fails > 0 {
		flags |= hasFails
		dst = binary.AppendUvarint(dst, uint64(b.Fails))
	}
	if h := &b.History; h.visited() {
		flags |= hasHistory
		dst = binary.AppendUvarint(dst, uint64(h.Visits))
		dst = binary.AppendUvarint(dst, uint64(h.Changes))
		dst = binary.AppendVarint(dst, h.FirstVisit)
		dst = binary.AppendVarint(dst, h.LastVisit)
		dst = binary.AppendVarint(dst, h.LastChange)
		dst = binary.AppendVarint(dst, h.LastModified)
	}
	if len(b.Meta) > 0 {
		flags |= hasMeta
		dst = binary.AppendUvarint(dst, uint64(len(b.Meta)))
		dst = append(dst, b.Meta...)
	}
	switch {
	case short:
		flags |= hasLast
		dst = append(dst, b.History.Last|hasShort, byte(weight>>24), byte(weight>>16))
	case b.History.Last != 0:
		flags |= hasLast
		dst = append(dst, b.History.Last)
	}
	if b.History.State != ([12]byte{}) {
		flags |= hasState
		dst = append(dst, b.History.State[:]...)
	}
	if b.Named {
		flags |= isNamed
	}
	dst[at] = flags
	return append(dst, b.URL...)
}

// Named returns Body.Named of a packed body.
func Named(p []byte) bool { return len(p) > 0 && p[0]&isNamed != 0 }

var errBody = errors.New("malformed record")

// Must is Decode of bytes that Append made, or that Decode has checked. It panics if they are none.
func Must(p []byte) Body {
	b, err := Decode(p)
	if err != nil {
		panic("frontier: a record in memory is malformed")
	}
	return b
}

// Decode unpacks p, which may contain anything.
func Decode(p []byte) (b Body, err error) {
	if len(p) == 0 {
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
	b.Named = flags&isNamed != 0
	if flags&hasDepth != 0 {
		b.Depth = uvarint()
	}
	if flags&hasWeight != 0 {
		if len(p) < 8 {
			return b, errBody
		}
		b.Weight = math.Float64frombits(binary.LittleEndian.Uint64(p))
		p = p[8:]
	}
	if flags&hasFails != 0 {
		b.Fails = uvarint()
	}
	if flags&hasHistory != 0 {
		b.History.Visits, b.History.Changes = uvarint(), uvarint()
		b.History.FirstVisit, b.History.LastVisit = varint(), varint()
		b.History.LastChange, b.History.LastModified = varint(), varint()
	}
	if flags&hasMeta != 0 {
		n := uvarint()
		if n > len(p) {
			return b, errBody
		}
		b.Meta, p = p[:n], p[n:]
	}
	if flags&hasLast != 0 {
		if len(p) == 0 || p[0]&^hasShort > MaxLast {
			return b, errBody
		}
		short := p[0]&hasShort != 0
		b.History.Last, p = p[0]&^hasShort, p[1:]
		if short {
			if len(p) < 2 || flags&hasWeight != 0 {
				return b, errBody
			}
			b.Weight, p = float64(math.Float32frombits(uint32(p[0])<<24|uint32(p[1])<<16)), p[2:]
		}
	}
	if flags&hasState != 0 {
		if len(p) < len(b.History.State) {
			return b, errBody
		}
		b.History.State, p = [12]byte(p[:len(b.History.State)]), p[len(b.History.State):]
	}
	b.URL = p
	return b, err
}
