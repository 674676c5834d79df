// Package keys names what is stored. It keeps no state.
//
// Generation first, kind second: data that is written together is compacted
// together. What belongs to no generation comes last, next to the newest one: at
// the front it would stretch every table over all generations.
//
//	generation 4 | kind 1 | rest
//	2^32-1       | 'V'    |                     format version
//	2^32-1       | 'S'    |                     state
//	2^32-1       | 'R'    | key                 row
//	g            | 'B'    | block 4             block
//	g            | 'D'    | segment 4           dead bits of a segment of blocks
//	g            | 'H'    | block 4             head of a timed block
//	g            | 'L'    | batch 8 | piece 2   log; piece 0 makes the batch valid
//	g            | 'T'    | block 4             timed block
//
// Numbers are big-endian. Marks are not among these: they lie in files, see package marks.
package keys

import (
	"bytes"
	"encoding/binary"

	"github.com/seed-7440039f/frontier/spill/internal/kv"
	"github.com/seed-7440039f/frontier/storage"
)

// Kind is the kind of data under a key.
type Kind byte

// The kinds.
const (
	KindVersion Kind = 'V'
	KindState   Kind = 'S'
	KindRow     Kind = 'R'
	KindBlock   Kind = 'B'
	KindDead    Kind = 'D'
	KindLog     Kind = 'L'
	KindHead    Kind = 'H'
	KindTimed   Kind = 'T'
)

const (
	// Fixed is the generation of data that belongs to none.
	Fixed = 1<<32 - 1
	// HeadLen is the length of generation and kind, in bytes.
	HeadLen = 5
)

// Prefix returns the prefix of all keys of a generation and kind.
func Prefix(gen uint32, k Kind) []byte {
	return append(binary.BigEndian.AppendUint32(make([]byte, 0, 16), gen), byte(k))
}

// Row is the key of a row.
func Row(key string) []byte { return append(Prefix(Fixed, KindRow), key...) }

// Block is the key of a block.
func Block(gen, block uint32) []byte {
	return binary.BigEndian.AppendUint32(Prefix(gen, KindBlock), block)
}

// Timed is the key of a timed block.
func Timed(gen, block uint32) []byte {
	return binary.BigEndian.AppendUint32(Prefix(gen, KindTimed), block)
}

// Head is the key of the head of a timed block.
func Head(gen, block uint32) []byte {
	return binary.BigEndian.AppendUint32(Prefix(gen, KindHead), block)
}

// Dead is the key of the dead bits of a segment.
func Dead(gen, segment uint32) []byte {
	return binary.BigEndian.AppendUint32(Prefix(gen, KindDead), segment)
}

// Log is the key of a piece of a batch.
func Log(gen uint32, id uint64, piece uint16) []byte {
	k := binary.BigEndian.AppendUint64(Prefix(gen, KindLog), id)
	return binary.BigEndian.AppendUint16(k, piece)
}

// Number returns the block or segment in a key, if it has one.
func Number(key []byte) (uint32, bool) {
	if len(key) != HeadLen+4 {
		return 0, false
	}
	return binary.BigEndian.Uint32(key[HeadLen:]), true
}

// LogName returns batch and piece of a log key.
func LogName(key []byte) (id uint64, piece uint16, ok bool) {
	if len(key) != HeadLen+10 {
		return 0, 0, false
	}
	return binary.BigEndian.Uint64(key[HeadLen:]), binary.BigEndian.Uint16(key[HeadLen+8:]), true
}

// After returns the first key after all keys of the generation and kind.
func After(gen uint32, k Kind) []byte { return Prefix(gen, k+1) }

// LifeOf returns how long the value of a key is likely to be needed.
func LifeOf(key []byte) kv.Life {
	if len(key) < HeadLen {
		return kv.Inline
	}
	switch Kind(key[HeadLen-1]) {
	case KindLog:
		return kv.Brief
	case KindBlock, KindTimed:
		return kv.Lasting
	default:
		return kv.Inline
	}
}

// Corrupt is the error for a value that cannot be read, because of err; nil if err is.
func Corrupt(key []byte, err error) error {
	if err == nil {
		return nil
	}
	return &storage.CorruptError{Key: bytes.Clone(key), Err: err}
}
