package row

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/seed-7440039f/frontier/storage"
)

// fields writes or reads a row of tagged fields: each consists of its tag, shifted left by one, and
// a number; or, with the lowest bit set, the length of a text, and the text. Tags ascend.
//
// A struct lists its fields once, in the order of their tags, for both directions. The zero fields
// value writes; readFields returns one that reads.
//
// A program skips an unknown field if its tag is optional or higher; for a lower one it returns
// storage.ErrVersion. It does not keep what it skips: when it writes the row again, the field is
// gone. So give a field such a tag if an older program may continue without it, and lose it. Any
// other change needs a new Version.
type fields struct {
	row     []byte // the output, or the input after the next field
	reading bool
	err     error

	// Reading: the next field.
	tag    int // 0: there is none
	isText bool
	number uint64
	text   []byte
}

// optional is the first tag that may be skipped.
const optional = 128

// maxTag limits the tags of future programs.
const maxTag = 1 << 16

// unknown returns the error for an unknown tag, if it may not be skipped.
func unknown(tag int) error {
	if tag >= optional {
		return nil
	}
	return fmt.Errorf("row has a field %d: %w", tag, storage.ErrVersion)
}

func readFields(b []byte) fields {
	f := fields{row: b, reading: true}
	f.advance()
	return f
}

// advance reads the next field.
func (f *fields) advance() {
	last := f.tag
	f.tag = 0
	if len(f.row) == 0 || f.err != nil {
		return
	}
	key, n := binary.Uvarint(f.row)
	if n <= 0 || key>>1 <= uint64(last) || key>>1 > maxTag {
		f.err = ErrMalformed
		return
	}
	x, m := binary.Uvarint(f.row[n:])
	if m <= 0 {
		f.err = ErrMalformed
		return
	}
	f.row = f.row[n+m:]
	f.isText, f.number = key&1 != 0, x
	if f.isText {
		if x > uint64(len(f.row)) {
			f.err = ErrMalformed
			return
		}
		f.text, f.row = f.row[:x], f.row[x:]
	}
	f.tag = int(key >> 1)
}

// at skips fields before tag, and reports whether the next one has that tag.
func (f *fields) at(tag int, isText bool) bool {
	for f.err == nil && f.tag != 0 && (f.tag < tag || f.tag == tag && f.isText != isText) {
		if err := unknown(f.tag); err != nil {
			f.err = err
			return false
		}
		f.advance()
	}
	return f.err == nil && f.tag == tag
}

// take ends the reading of a field; ok reports whether its value is valid.
func (f *fields) take(ok bool) {
	if !ok && f.err == nil {
		f.err = ErrMalformed
		return
	}
	f.advance()
}

// require makes a row malformed unless ok: its fields contradict each other.
func (f *fields) require(ok bool) {
	if f.reading && !ok && f.err == nil {
		f.err = ErrMalformed
	}
}

// end returns the error of the row.
func (f *fields) end() error {
	f.at(maxTag+1, false)
	return f.err
}

type integer interface {
	~int | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64
}

// number is a field that is not negative and at most most.
func number[T integer](f *fields, tag int, x *T, most uint64) {
	if !f.reading {
		if *x > 0 {
			f.row = binary.AppendUvarint(binary.AppendUvarint(f.row, uint64(tag)<<1), uint64(*x))
		}
		return
	}
	if f.at(tag, false) {
		*x = T(f.number)
		f.take(f.number <= most)
	}
}

// signed is a field that may be negative.
func signed(f *fields, tag int, x *int64) {
	u := uint64(*x)<<1 ^ uint64(*x>>63)
	number(f, tag, &u, math.MaxUint64)
	*x = int64(u>>1) ^ -int64(u&1)
}

// flag is a field that is true or left out.
func flag(f *fields, tag int, x *bool) {
	var n uint8
	if *x {
		n = 1
	}
	number(f, tag, &n, 1)
	*x = n == 1
}

// text is a field of at most most bytes.
func text(f *fields, tag int, s *string, most int) {
	if !f.reading {
		if *s != "" {
			f.row = binary.AppendUvarint(binary.AppendUvarint(f.row, uint64(tag)<<1|1), uint64(len(*s)))
			f.row = append(f.row, *s...)
		}
		return
	}
	if f.at(tag, true) {
		*s = string(f.text)
		f.take(len(f.text) > 0 && len(f.text) <= most)
	}
}
