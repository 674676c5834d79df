// This file encodes which records of blocks are finished.
//
//	seal 5 | s2( for each block, ascending: gap of its number, length, bits )
//
// One value covers deadSegment neighbouring block numbers. The latest generation
// that has a segment is the valid one.

package spill

import (
	"encoding/binary"
	"slices"

	"github.com/klauspost/compress/s2"
)

const (
	deadSegment  = 512
	deadRawLimit = deadSegment * (blockPositions/8 + 8)
)

// segment holds the finished positions of blocks, by their number.
type segment map[uint32][]byte

func segmentOf(block uint32) uint32 { return block / deadSegment }

// set marks positions as finished. What was finished stays so.
func (g segment) set(block uint32, bits []byte) {
	old := g[block]
	if len(old) < len(bits) {
		old = append(old, make([]byte, len(bits)-len(old))...)
	}
	for i, b := range bits {
		old[i] |= b
	}
	g[block] = old
}

func (g segment) value(key []byte) []byte {
	blocks := make([]uint32, 0, len(g))
	for b := range g {
		blocks = append(blocks, b)
	}
	slices.Sort(blocks)
	var raw []byte
	var before uint32
	for _, b := range blocks {
		raw = binary.AppendUvarint(raw, uint64(b-before))
		raw = appendBytes(raw, g[b])
		before = b
	}
	v := append(appendSeal(nil), s2.Encode(nil, raw)...)
	closeSeal(key, v)
	return v
}

// readSegment decodes the value of segment n. The bits are a copy.
func readSegment(n uint32, key, value []byte) (segment, error) {
	content, err := unseal(key, value)
	if err != nil {
		return nil, err
	}
	raw, err := inflate(nil, content, deadRawLimit)
	if err != nil {
		return nil, err
	}
	g := segment{}
	s := scanner{b: raw}
	var block uint64
	for len(s.b) > 0 {
		block += s.limited(1<<32 - 1)
		bits := s.bytes()
		if s.err != nil {
			return nil, s.err
		}
		if block >= 1<<32 || segmentOf(uint32(block)) != n || len(bits) > blockPositions/8 {
			return nil, errNumber
		}
		g[uint32(block)] = bits
	}
	return g, nil
}
