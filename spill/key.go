// This file says under which key each thing is stored.
//
// Generation first, kind second: data that is written together is compacted
// together. What belongs to no generation comes last, next to the newest one: at
// the front it would stretch every table over all generations.
//
//	generation 4 | kind 1 | rest
//	2^32-1       | 'V'    |                     format version
//	2^32-1       | 'S'    |                     state, see state.go
//	2^32-1       | 'R'    | key                 row
//	g            | 'B'    | block 4             block
//	g            | 'D'    | segment 4           dead bits of deadSegment blocks
//	g            | 'H'    | block 4             head of a timed block
//	g            | 'L'    | batch 8 | piece 2   log; piece 0 makes the batch valid
//	g            | 'T'    | block 4             timed block, see timed.go
//
// Numbers are big-endian. Marks are not among these: they lie in files, see run.go.

package spill

import (
	"encoding/binary"

	"github.com/seed-7440039f/frontier/spill/internal/kv"
)

type kind byte

const (
	kindVersion kind = 'V'
	kindState   kind = 'S'
	kindRow     kind = 'R'
	kindBlock   kind = 'B'
	kindDead    kind = 'D'
	kindLog     kind = 'L'
	kindHead    kind = 'H'
	kindTimed   kind = 'T'
)

const (
	fixed   = 1<<32 - 1 // generation of what belongs to none
	headLen = 5         // generation and kind
)

func prefixKey(gen uint32, k kind) []byte {
	return append(binary.BigEndian.AppendUint32(make([]byte, 0, 16), gen), byte(k))
}

func rowKey(key string) []byte { return append(prefixKey(fixed, kindRow), key...) }

func blockKey(gen, block uint32) []byte {
	return binary.BigEndian.AppendUint32(prefixKey(gen, kindBlock), block)
}

func timedKey(gen, block uint32) []byte {
	return binary.BigEndian.AppendUint32(prefixKey(gen, kindTimed), block)
}

func timedHeadKey(gen, block uint32) []byte {
	return binary.BigEndian.AppendUint32(prefixKey(gen, kindHead), block)
}

func deadKey(gen, segment uint32) []byte {
	return binary.BigEndian.AppendUint32(prefixKey(gen, kindDead), segment)
}

func logKey(gen uint32, id uint64, piece uint16) []byte {
	k := binary.BigEndian.AppendUint64(prefixKey(gen, kindLog), id)
	return binary.BigEndian.AppendUint16(k, piece)
}

// number returns the uint32 behind the head of a key that has just one.
func number(key []byte) (uint32, bool) {
	if len(key) != headLen+4 {
		return 0, false
	}
	return binary.BigEndian.Uint32(key[headLen:]), true
}

// logName returns batch and piece of a log key.
func logName(key []byte) (id uint64, piece uint16, ok bool) {
	if len(key) != headLen+10 {
		return 0, 0, false
	}
	return binary.BigEndian.Uint64(key[headLen:]), binary.BigEndian.Uint16(key[headLen+8:]), true
}

// after returns the first key behind all those of the generation and kind.
func after(gen uint32, k kind) []byte { return prefixKey(gen, k+1) }

// lifeOf tells how long the value of a key is likely to be of use.
func lifeOf(key []byte) kv.Life {
	if len(key) < headLen {
		return kv.Inline
	}
	switch kind(key[headLen-1]) {
	case kindLog:
		return kv.Brief
	case kindBlock, kindTimed:
		return kv.Lasting
	default:
		return kv.Inline
	}
}
