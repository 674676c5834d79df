// This file encodes which records of blocks are finished.
//
//	seal 5 | s2( for each block, ascending: gap of its number, length, bits )
//
// One value covers deadSegment neighbouring block numbers. The latest generation
// that has a segment is the valid one.

package blocks

import (
	"encoding/binary"
	"maps"
	"slices"

	"github.com/klauspost/compress/s2"
	"github.com/seed-7440039f/frontier/spill/internal/wire"
)

const (
	deadSegment  = 512
	deadRawLimit = deadSegment * (Positions/8 + 8)
)

// Segment holds the finished positions of blocks, by their number.
type Segment map[uint32][]byte

// SegmentOf returns the number of the segment that a block belongs to.
func SegmentOf(block uint32) uint32 { return block / deadSegment }

// Set marks positions as finished. What was finished stays so.
func (g Segment) Set(block uint32, bits []byte) {
	old := g[block]
	if len(old) < len(bits) {
		old = append(old, make([]byte, len(bits)-len(old))...)
	}
	for i, b := range bits {
		old[i] |= b
	}
	g[block] = old
}

// Value encodes the segment.
func (g Segment) Value(key []byte) []byte {
	var raw []byte
	var before uint32
	for _, b := range slices.Sorted(maps.Keys(g)) {
		raw = binary.AppendUvarint(raw, uint64(b-before))
		raw = wire.AppendBytes(raw, g[b])
		before = b
	}
	v := append(wire.AppendSeal(nil), s2.Encode(nil, raw)...)
	wire.CloseSeal(key, v)
	return v
}

// ReadSegment decodes the value of segment n. The bits are a copy.
func ReadSegment(n uint32, key, value []byte) (Segment, error) {
	content, err := wire.Unseal(key, value)
	if err != nil {
		return nil, err
	}
	raw, err := wire.Inflate(nil, content, deadRawLimit)
	if err != nil {
		return nil, err
	}
	g := Segment{}
	s := wire.Scanner{B: raw}
	var block uint64
	for len(s.B) > 0 {
		block += s.Limited(1<<32 - 1)
		bits := s.Bytes()
		if s.Err != nil {
			return nil, s.Err
		}
		if block >= 1<<32 || SegmentOf(uint32(block)) != n || len(bits) > Positions/8 {
			return nil, wire.ErrNumber
		}
		g[uint32(block)] = bits
	}
	return g, nil
}
