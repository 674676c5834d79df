// This file reads and writes the primitives of the stored formats.
//
// A scanner never panics and never allocates: what it returns aliases its input.
// Every value is sealed: the store's Version, then a checksum over key and content,
// so that a value under the wrong key is found as well as a flipped bit. The seal is
// the same in all versions.

package spill

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

var (
	errShort    = errors.New("value ends early")
	errLong     = errors.New("value has bytes left over")
	errNumber   = errors.New("number out of range")
	errChecksum = errors.New("checksum does not match")
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

const (
	format  = Version // first byte of every value
	sealLen = 5
)

// appendSeal reserves the seal; closeSeal fills it when the value is complete.
func appendSeal(dst []byte) []byte { return append(dst, format, 0, 0, 0, 0) }

func closeSeal(key, value []byte) {
	binary.BigEndian.PutUint32(value[1:], checksum(key, value[sealLen:]))
}

func checksum(key, content []byte) uint32 {
	return crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, content)
}

// unseal returns the content of a value that was stored under key.
func unseal(key, value []byte) ([]byte, error) {
	if len(value) < sealLen {
		return nil, errShort
	}
	if value[0] != format {
		return nil, fmt.Errorf("value has format %d; want %d", value[0], format)
	}
	if binary.BigEndian.Uint32(value[1:]) != checksum(key, value[sealLen:]) {
		return nil, errChecksum
	}
	return value[sealLen:], nil
}

// wholeValue reports whether a value is what was stored under key, by this version or
// another.
func wholeValue(key, value []byte) bool {
	return len(value) >= sealLen && binary.BigEndian.Uint32(value[1:]) == checksum(key, value[sealLen:])
}

// scanner reads a value from its front. After the first fault every read gives
// zero and err tells what was wrong.
type scanner struct {
	b   []byte
	err error
}

func (s *scanner) fail(err error) {
	if s.err == nil {
		s.err, s.b = err, nil
	}
}

func (s *scanner) uvarint() uint64 {
	// One-byte numbers are by far the most frequent.
	if len(s.b) > 0 && s.b[0] < 0x80 {
		v := s.b[0]
		s.b = s.b[1:]
		return uint64(v)
	}
	v, n := binary.Uvarint(s.b)
	if n <= 0 {
		if n == 0 {
			s.fail(errShort)
		} else {
			s.fail(errNumber)
		}
		return 0
	}
	s.b = s.b[n:]
	return v
}

func (s *scanner) varint() int64 {
	u := s.uvarint()
	return int64(u>>1) ^ -int64(u&1)
}

// limited reads a number that is at most limit.
func (s *scanner) limited(limit uint64) uint64 {
	v := s.uvarint()
	if v > limit {
		s.fail(errNumber)
		return 0
	}
	return v
}

func (s *scanner) byte() byte {
	if len(s.b) == 0 {
		s.fail(errShort)
		return 0
	}
	v := s.b[0]
	s.b = s.b[1:]
	return v
}

// take returns the next n bytes, which alias the value.
func (s *scanner) take(n uint64) []byte {
	if n > uint64(len(s.b)) {
		s.fail(errShort)
		return nil
	}
	v := s.b[:n:n]
	s.b = s.b[n:]
	return v
}

// bytes reads a length and that many bytes.
func (s *scanner) bytes() []byte { return s.take(s.uvarint()) }

// end reports the first fault, or that something is left.
func (s *scanner) end() error {
	if s.err == nil && len(s.b) > 0 {
		return errLong
	}
	return s.err
}

func appendBytes[T string | []byte](dst []byte, v T) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(v))), v...)
}
