// This file encodes rows as tagged fields, so that what is zero takes no room and
// new fields can be added: each field is its tag, shifted left by one, and a
// number, or with the lowest bit set the length of a text, and the text. Tags
// ascend.
//
// In rows of any kind a program skips a field that it does not know if its tag is
// optional or higher; a lower one it refuses with ErrVersion. It does not keep what it
// skips: when it writes the row again, the field is gone. So give a field such a tag if an
// older program may go on without it, and lose it. What else changes needs a new
// metarow.Version.

package frontier

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// optional is the first tag that may be skipped.
const optional = 128

// unknown is what to make of a field with a tag that is not known.
func unknown(tag int) error {
	if tag >= optional {
		return nil
	}
	return fmt.Errorf("row has a field %d: %w", tag, ErrVersion)
}

// inRange is errRow unless a field may have its value.
func inRange(ok bool) error {
	if ok {
		return nil
	}
	return errRow
}

// rowError says which row cannot be read. One of another version is not damaged.
func rowError(key string, err error) error {
	if errors.Is(err, ErrVersion) {
		return fmt.Errorf("row %q: %w", key, err)
	}
	return &CorruptError{Key: []byte(key), Err: err}
}

// appendNumber appends a field, unless it is 0.
func appendNumber(b []byte, tag int, x uint64) []byte {
	if x == 0 {
		return b
	}
	return binary.AppendUvarint(binary.AppendUvarint(b, uint64(tag)<<1), x)
}

// appendText appends a field, unless it is empty.
func appendText(b []byte, tag int, s string) []byte {
	if s == "" {
		return b
	}
	b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(tag)<<1|1), uint64(len(s)))
	return append(b, s...)
}

// noText is for rows whose known fields are numbers.
func noText(tag int, _ []byte) error { return unknown(tag) }

// readFields gives the fields of b to number and text, and returns their first error,
// or errRow if b is malformed.
func readFields(b []byte, number func(tag int, x uint64) error, text func(tag int, s []byte) error) error {
	for last := uint64(0); len(b) > 0; {
		key, n := binary.Uvarint(b)
		if n <= 0 || key>>1 <= last || key>>1 > 1<<16 {
			return errRow
		}
		last = key >> 1
		x, m := binary.Uvarint(b[n:])
		if m <= 0 {
			return errRow
		}
		b = b[n+m:]
		var err error
		if key&1 == 0 {
			err = number(int(last), x)
		} else if x > uint64(len(b)) {
			err = errRow
		} else {
			err = text(int(last), b[:x])
			b = b[x:]
		}
		if err != nil {
			return err
		}
	}
	return nil
}
