// This file encodes rows as tagged fields, so that what is zero takes no room and
// new fields can be added: each field is its tag, shifted left by one, and a
// number, or with the lowest bit set the length of a text, and the text. Tags
// ascend.

package frontier

import "encoding/binary"

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

// readFields gives the fields of b to number and text, which report whether they
// know the tag and may have the value. If one does not, or b is malformed, it
// returns errRow.
func readFields(b []byte, number func(tag int, x uint64) bool, text func(tag int, s []byte) bool) error {
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
		if key&1 == 0 {
			if !number(int(last), x) {
				return errRow
			}
			continue
		}
		if x > uint64(len(b)) || !text(int(last), b[:x]) {
			return errRow
		}
		b = b[x:]
	}
	return nil
}
