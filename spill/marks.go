// This file encodes runs of marks.
//
//	seal 5 | count | for each mark, ascending: gap of its first 5 bytes, last 7
//
// A run stays below the size at which badger moves a value out of its tables:
// marks live for ever, and would have to be carried along by each clean-up of
// the value log.

package spill

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/seed-7440039f/frontier"
)

const marksPerRun = 700

func sortMarks(ms []frontier.Mark) {
	slices.SortFunc(ms, func(a, b frontier.Mark) int { return bytes.Compare(a[:], b[:]) })
}

// appendMarks encodes ms, which are sorted and at most marksPerRun.
func appendMarks(dst, key []byte, ms []frontier.Mark) []byte {
	start := len(dst)
	dst = appendSeal(dst)
	dst = binary.AppendUvarint(dst, uint64(len(ms)))
	var before uint64
	for i := range ms {
		head := markHead(&ms[i])
		dst = binary.AppendUvarint(dst, head-before)
		dst = append(dst, ms[i][5:]...)
		before = head
	}
	closeSeal(key, dst[start:])
	return dst
}

// readMarks decodes a run into buf.
func readMarks(buf []frontier.Mark, key, value []byte) ([]frontier.Mark, error) {
	content, err := unseal(key, value)
	if err != nil {
		return nil, err
	}
	s := scanner{b: content}
	buf = buf[:0]
	var head uint64
	for range s.limited(marksPerRun) {
		head += s.limited(1<<40 - 1)
		tail := s.take(7)
		if s.err != nil {
			return nil, s.err
		}
		if head >= 1<<40 {
			return nil, errNumber
		}
		var m frontier.Mark
		var b [8]byte
		binary.BigEndian.PutUint64(b[:], head)
		copy(m[:5], b[3:])
		copy(m[5:], tail)
		buf = append(buf, m)
	}
	return buf, s.end()
}

func markHead(m *frontier.Mark) uint64 {
	return uint64(m[0])<<32 | uint64(binary.BigEndian.Uint32(m[1:5]))
}
