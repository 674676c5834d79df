// Package metarow encodes the row in which a frontier keeps what it must know of
// itself. A store that repairs itself reads it too.
package metarow

import (
	"encoding/binary"
	"errors"
)

// Name is the key of the row.
const Name = "m"

// Version is that of all rows and of the bodies of URLs: a change of them that an
// older program may not overlook changes it. What follows the fields of this row is
// of newer programs, and is skipped.
const Version = 1

// ErrMalformed tells of a row that is none.
var ErrMalformed = errors.New("malformed row")

// Meta is what the row says.
type Meta struct {
	Key   [2]uint64 // of the fingerprints
	Epoch uint64    // how often the frontier was opened
	Clean bool      // it was closed
	Seq   uint64    // last sequence number
	Gen   uint32
	Held  uint64 // when it was last opened after a crash, Unix milliseconds; 0: never
}

// Encode returns the row's value.
func (m Meta) Encode() []byte {
	b := []byte{Version}
	b = binary.LittleEndian.AppendUint64(b, m.Key[0])
	b = binary.LittleEndian.AppendUint64(b, m.Key[1])
	b = binary.AppendUvarint(b, m.Epoch)
	clean := byte(0)
	if m.Clean {
		clean = 1
	}
	b = append(b, clean)
	b = binary.AppendUvarint(b, m.Seq)
	b = binary.AppendUvarint(b, uint64(m.Gen))
	return binary.AppendUvarint(b, m.Held)
}

// Decode reads a value of this version.
func Decode(v []byte) (m Meta, err error) {
	if len(v) < 17 || v[0] != Version {
		return m, ErrMalformed
	}
	m.Key = [2]uint64{binary.LittleEndian.Uint64(v[1:]), binary.LittleEndian.Uint64(v[9:])}
	v = v[17:]
	var fields [4]uint64
	for i := range fields {
		if i == 1 {
			if len(v) == 0 {
				return m, ErrMalformed
			}
			m.Clean = v[0] == 1
			v = v[1:]
		}
		x, n := binary.Uvarint(v)
		if n <= 0 {
			return m, ErrMalformed
		}
		fields[i], v = x, v[n:]
	}
	m.Epoch, m.Seq, m.Gen, m.Held = fields[0], fields[1], uint32(fields[2]), fields[3]
	return m, nil
}
