// This file reads badger's tables. Badger itself skips a damaged table and reports that only in its
// log.
//
//	table:    blocks, index, length of the index 4, checksum, its length 4
//	block:    entries, offsets of the entries (4 each, little-endian), their number 4,
//	          checksum, its length 4
//	entry:    overlap with the first key of the block 2, length of the rest 2
//	          (little-endian), rest of the key, meta, user meta, expiry (varint), value
//	checksum: a protobuf message
//
// Other numbers are big-endian. The store's tables are neither compressed nor encrypted. The
// results alias the table.

package badgerfiles

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"

	"github.com/dgraph-io/badger/v4/fb"
	"github.com/seed-7440039f/frontier/spill/internal/wire"
)

var (
	errTable = errors.New("table is malformed")
)

// What badger notes of an entry.
const (
	MetaDelete  = 1 << 0
	MetaPointer = 1 << 1 // the value lies in the value log
	MetaTxn     = 1 << 6
	MetaFinTxn  = 1 << 7
	VersionLen  = 8 // bytes of a key that are its version
)

// Cell is one version of a key in badger.
type Cell struct {
	Key            []byte
	Version        uint64
	Meta, UserMeta byte
	Value          []byte
}

// splitKey splits badger's key into key and version.
func splitKey(k []byte) (key []byte, version uint64, ok bool) {
	n := len(k) - VersionLen
	if n < 1 {
		return nil, 0, false
	}
	return k[:n], math.MaxUint64 - binary.BigEndian.Uint64(k[n:]), true
}

// trailer removes the checksum at the end of data, and verifies it.
func trailer(data []byte) ([]byte, error) {
	n := len(data) - 4
	if n < 0 {
		return nil, errTable
	}
	size := uint64(binary.BigEndian.Uint32(data[n:]))
	if size > uint64(n) {
		return nil, errTable
	}
	at := n - int(size)
	return data[:at], verify(data[:at], data[at:n])
}

// verify checks data against a checksum: field 1 is the algorithm, only the first of which is
// supported, field 2 the sum.
func verify(data, message []byte) error {
	var sum uint64
	for len(message) > 0 {
		tag := message[0]
		v, n := binary.Uvarint(message[1:])
		if n <= 0 || tag != 1<<3 && tag != 2<<3 || tag == 1<<3 && v != 0 {
			return errTable
		}
		if tag == 2<<3 {
			sum = v
		}
		message = message[1+n:]
	}
	if uint64(crc32.Checksum(data, wire.Castagnoli)) != sum {
		return wire.ErrChecksum
	}
	return nil
}

// TableIndex returns the index of a table of that size, and where it begins.
func TableIndex(r io.ReaderAt, bytes int64) (index []byte, begins int64, err error) {
	sum, at, err := sized(r, bytes)
	if err != nil {
		return nil, 0, err
	}
	if index, at, err = sized(r, at); err != nil {
		return nil, 0, err
	}
	if len(index) < 4 {
		return nil, 0, errTable
	}
	if err := verify(index, sum); err != nil {
		return nil, 0, fmt.Errorf("index: %w", err)
	}
	return index, at, nil
}

// sized reads data that precedes its length, which ends at end, and returns where it begins.
func sized(r io.ReaderAt, end int64) (b []byte, begins int64, err error) {
	var length [4]byte
	if end -= int64(len(length)); end < 0 {
		return nil, 0, errTable
	}
	if _, err := r.ReadAt(length[:], end); err != nil {
		return nil, 0, err
	}
	n := int64(binary.BigEndian.Uint32(length[:]))
	if n > end {
		return nil, 0, errTable
	}
	b = make([]byte, n)
	_, err = r.ReadAt(b, end-n)
	return b, end - n, err
}

// TableBlocks returns the blocks of a table, and its highest version.
func TableBlocks(data []byte) (blocks [][]byte, last uint64, err error) {
	index, end, err := TableIndex(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, 0, err
	}
	x := fb.GetRootAsTableIndex(index, 0)
	var o fb.BlockOffset
	for i := range x.OffsetsLength() {
		if !x.Offsets(&o, i) || uint64(o.Offset())+uint64(o.Len()) > uint64(end) {
			return nil, 0, errTable
		}
		blocks = append(blocks, data[o.Offset():][:o.Len():o.Len()])
	}
	return blocks, x.MaxVersion(), nil
}

// BlockCells calls fn with the entries of a block. Keys are copies.
func BlockCells(block []byte, fn func(Cell)) error {
	body, err := trailer(block)
	if err != nil {
		return err
	}
	n := len(body) - 4
	if n < 0 {
		return errTable
	}
	count := uint64(binary.BigEndian.Uint32(body[n:]))
	if 4*count > uint64(n) {
		return errTable
	}
	offsets, entries := body[n-int(4*count):n], body[:n-int(4*count)]
	var first []byte
	for i := range int(count) {
		from, to := binary.LittleEndian.Uint32(offsets[4*i:]), uint32(len(entries))
		if i+1 < int(count) {
			to = binary.LittleEndian.Uint32(offsets[4*i+4:])
		}
		if from > to || to > uint32(len(entries)) || to-from < 4 {
			return errTable
		}
		e := entries[from:to]
		overlap, rest := int(binary.LittleEndian.Uint16(e)), int(binary.LittleEndian.Uint16(e[2:]))
		if e = e[4:]; overlap > len(first) || rest+3 > len(e) {
			return errTable
		}
		k := append(append([]byte(nil), first[:overlap]...), e[:rest]...)
		if first == nil {
			first = k
		}
		c := Cell{Meta: e[rest], UserMeta: e[rest+1]}
		_, n := binary.Uvarint(e[rest+2:])
		var ok bool
		if c.Key, c.Version, ok = splitKey(k); !ok || n <= 0 {
			return errTable
		}
		c.Value = e[rest+2+n:]
		fn(c)
	}
	return nil
}
