// This file reads badger's logs. Badger itself treats the first damaged entry as the end, and
// silently cuts off the rest.
//
//	log:   key number 8, initial vector 12, entries, zeros
//	entry: meta, user meta, length of key, length of value, expiry (varints), key,
//	       value, crc of all that 4
//
// A transaction consists of entries of one version, and one more that ends it.

package badgerfiles

import (
	"encoding/binary"
	"hash/crc32"
	"strconv"

	"github.com/seed-7440039f/frontier/spill/internal/wire"
)

// Lengths of parts of a log.
const (
	LogHead     = 20
	logEntryMin = 2 + 3 + VersionLen + 1 + 4
	logKeyMax   = 1 << 10
)

// LogEntry returns the entry at the beginning of b, and its length, or 0 if there is none.
func LogEntry(b []byte) (c Cell, length int) {
	if len(b) < logEntryMin {
		return c, 0
	}
	c.Meta, c.UserMeta = b[0], b[1]
	at := 2
	var lens [3]uint64
	for i := range lens {
		v, n := binary.Uvarint(b[at:])
		if n <= 0 {
			return c, 0
		}
		lens[i], at = v, at+n
	}
	k, v := lens[0], lens[1]
	if k > logKeyMax || v > uint64(len(b)) || uint64(at)+k+v+4 > uint64(len(b)) {
		return c, 0
	}
	end := at + int(k+v)
	if crc32.Checksum(b[:end], wire.Castagnoli) != binary.BigEndian.Uint32(b[end:]) {
		return c, 0
	}
	var ok bool
	if c.Key, c.Version, ok = splitKey(b[at:][:k:k]); !ok {
		return c, 0
	}
	c.Value = b[at+int(k) : end : end]
	return c, end + 4
}

// LogCells calls fn with the entries of complete transactions from offset at on,
// up to the first damage. It returns where the next entry would begin.
func LogCells(data []byte, at int, fn func(Cell)) (end int) {
	return LogTransactions(data, at, func(txn []Cell) bool {
		for _, c := range txn {
			fn(c)
		}
		return true
	})
}

// LogTransactions calls fn with each complete transaction from offset at on, up to the first damage, or
// until it returns false. It returns where the next entry would begin, or that transaction began.
func LogTransactions(data []byte, at int, fn func(txn []Cell) bool) (end int) {
	var txn []Cell
	end = at
	for at < len(data) {
		c, n := LogEntry(data[at:])
		if n == 0 {
			return end
		}
		at += n
		switch {
		case c.Meta&MetaFinTxn != 0:
			version, err := strconv.ParseUint(string(c.Value), 10, 64)
			if err != nil || len(txn) == 0 || version != txn[0].Version || !fn(txn) {
				return end
			}
			txn, end = txn[:0], at
		case c.Meta&MetaTxn != 0:
			if len(txn) > 0 && txn[0].Version != c.Version {
				return end
			}
			txn = append(txn, c)
		case len(txn) > 0 || !fn([]Cell{c}):
			return end
		default:
			end = at
		}
	}
	return end
}

// NextLogEntry returns the position of the next entry from at on, or -1. Entries have no bits of
// user meta except the given ones.
func NextLogEntry(data []byte, at int, userMeta byte) int {
	for ; at+logEntryMin <= len(data); at++ {
		b := data[at:]
		// The store's entries are of few kinds, which avoids most of the checksums.
		if b[0]&^(MetaDelete|MetaPointer|MetaTxn|MetaFinTxn) != 0 || b[0]&(MetaTxn|MetaFinTxn) == 0 || b[1]&^userMeta != 0 || b[2] < VersionLen+1 {
			continue
		}
		if _, n := LogEntry(b); n > 0 {
			return at
		}
	}
	return -1
}
