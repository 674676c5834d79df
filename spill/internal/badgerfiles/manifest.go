// This file reads data in badger's manifest that badger does not report: the tables that it named
// before.
//
//	manifest: head 8, changes
//	changes:  length 4, checksum 4, a protobuf message whose field 1 is each change
//	change:   field 1 is the number of a table, field 2 is 1 if it is merged into others;
//	          all fields are varints
//
// Numbers are big-endian.

package badgerfiles

import "encoding/binary"

const manifestHead = 8

// Format is the format of badger's files that this package reads.
const Format = 8

// FormatOf returns the format that a manifest names, behind 6 other bytes, or 0.
func FormatOf(manifest []byte) uint16 {
	if len(manifest) < manifestHead {
		return 0
	}
	return binary.BigEndian.Uint16(manifest[6:])
}

// MergedTables returns the numbers of tables that a manifest named before and does not name now. It
// stops where the manifest is torn, as badger does.
func MergedTables(b []byte) map[uint64]bool {
	merged := map[uint64]bool{}
	b = b[min(manifestHead, len(b)):]
	for len(b) >= 8 {
		n := uint64(binary.BigEndian.Uint32(b))
		if b = b[8:]; n > uint64(len(b)) {
			break
		}
		changes(b[:n], func(id uint64, gone bool) {
			if gone {
				merged[id] = true
			} else {
				delete(merged, id)
			}
		})
		b = b[n:]
	}
	return merged
}

// changes calls fn with each change of a set of changes.
func changes(b []byte, fn func(id uint64, gone bool)) {
	for len(b) > 0 {
		n, size := binary.Uvarint(b[1:])
		if b[0] != 1<<3|2 || size <= 0 || n > uint64(len(b)-1-size) {
			return
		}
		change := b[1+size:][:n]
		b = b[1+size+int(n):]
		var fields [16]uint64
		for len(change) > 0 {
			v, size := binary.Uvarint(change[1:])
			if size <= 0 {
				return
			}
			fields[change[0]>>3&15] = v
			change = change[1+size:]
		}
		fn(fields[1], fields[2] == 1)
	}
}
