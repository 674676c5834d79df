// Package wire reads and writes the primitives of the stored formats: seals, numbers, byte strings
// and compressed contents. It has no state.
//
// Every value is sealed: the store's Version, then a checksum over key and content, which detects
// values under the wrong key as well as flipped bits. The seal is the same in all versions.
package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/klauspost/compress/s2"
)

// What is wrong with a value.
var (
	ErrShort    = errors.New("value ends early")
	ErrNumber   = errors.New("number out of range")
	ErrChecksum = errors.New("checksum does not match")
	errLong     = errors.New("value has bytes left over")
)

// Castagnoli is the table of all checksums.
var Castagnoli = crc32.MakeTable(crc32.Castagnoli)

const (
	Version = 1 // first byte of every value
	SealLen = 5
)

// AppendSeal reserves the seal; CloseSeal fills it in.
func AppendSeal(dst []byte) []byte { return append(dst, Version, 0, 0, 0, 0) }

// CloseSeal completes the seal of a value that will be stored under key.
func CloseSeal(key, value []byte) {
	binary.BigEndian.PutUint32(value[1:], checksum(key, value[SealLen:]))
}

func checksum(key, content []byte) uint32 {
	return crc32.Update(crc32.Checksum(key, Castagnoli), Castagnoli, content)
}

// Unseal returns the content of a value that was stored under key.
func Unseal(key, value []byte) ([]byte, error) {
	if len(value) < SealLen {
		return nil, ErrShort
	}
	if value[0] != Version {
		return nil, fmt.Errorf("value has format %d; want %d", value[0], Version)
	}
	if binary.BigEndian.Uint32(value[1:]) != checksum(key, value[SealLen:]) {
		return nil, ErrChecksum
	}
	return value[SealLen:], nil
}

// Whole reports whether a value is intact and belongs to key, in this version or another.
func Whole(key, value []byte) bool {
	return len(value) >= SealLen && binary.BigEndian.Uint32(value[1:]) == checksum(key, value[SealLen:])
}

// Scanner reads a value from its front. After the first fault every read returns zero. It never
// panics and never allocates: its results alias its input.
type Scanner struct {
	B   []byte // the unread rest
	Err error  // the first fault
}

// Fail ends the reading with an error, unless there was one before.
func (s *Scanner) Fail(err error) {
	if s.Err == nil {
		s.Err, s.B = err, nil
	}
}

// Uvarint reads a number.
func (s *Scanner) Uvarint() uint64 {
	// One-byte numbers are by far the most frequent.
	if len(s.B) > 0 && s.B[0] < 0x80 {
		v := s.B[0]
		s.B = s.B[1:]
		return uint64(v)
	}
	v, n := binary.Uvarint(s.B)
	if n <= 0 {
		if n == 0 {
			s.Fail(ErrShort)
		} else {
			s.Fail(ErrNumber)
		}
		return 0
	}
	s.B = s.B[n:]
	return v
}

// Varint reads a number that may be negative.
func (s *Scanner) Varint() int64 {
	u := s.Uvarint()
	return int64(u>>1) ^ -int64(u&1)
}

// Limited reads a number that is at most limit.
func (s *Scanner) Limited(limit uint64) uint64 {
	v := s.Uvarint()
	if v > limit {
		s.Fail(ErrNumber)
		return 0
	}
	return v
}

// Byte reads one byte.
func (s *Scanner) Byte() byte {
	if len(s.B) == 0 {
		s.Fail(ErrShort)
		return 0
	}
	v := s.B[0]
	s.B = s.B[1:]
	return v
}

// Take returns the next n bytes, which alias the value.
func (s *Scanner) Take(n uint64) []byte {
	if n > uint64(len(s.B)) {
		s.Fail(ErrShort)
		return nil
	}
	v := s.B[:n:n]
	s.B = s.B[n:]
	return v
}

// Bytes reads a length and that many bytes.
func (s *Scanner) Bytes() []byte { return s.Take(s.Uvarint()) }

// End returns the first fault, or an error if bytes are left over.
func (s *Scanner) End() error {
	if s.Err == nil && len(s.B) > 0 {
		return errLong
	}
	return s.Err
}

// AppendBytes appends v in the form read by Scanner.Bytes.
func AppendBytes[T string | []byte](dst []byte, v T) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(v))), v...)
}

// Inflate decompresses body into buf if it fits. limit is the most that it allocates, since a few
// bytes may claim to decompress to millions.
func Inflate(buf, body []byte, limit int) ([]byte, error) {
	n, err := s2.DecodedLen(body)
	if err != nil {
		return nil, err
	}
	if n > limit {
		return nil, ErrNumber
	}
	return s2.Decode(buf[:cap(buf)], body)
}
