// This file reads badger's manifest for what badger does not tell of it: the tables that
// it named before.
//
//	manifest: head 8, changes
//	changes:  length 4, checksum 4, a protobuf message whose field 1 is each change
//	change:   field 1 is the number of a table, field 2 is 1 if it is merged into others;
//	          all fields are varints
//
// Numbers are big-endian.

package kv

import "encoding/binary"

const manifestHead = 8

// mergedTables returns the numbers of tables that a manifest named, and names no more. It
// stops where the manifest is torn, as badger does.
func mergedTables(b []byte) map[uint64]bool {
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
