// This file reads badger's logs without badger, which takes the first damaged
// entry for the end, cuts the rest off, and says nothing.
//
//	log:   key number 8, initial vector 12, entries, zeros
//	entry: meta, user meta, length of key, length of value, expiry (varints), key,
//	       value, crc of all that 4
//
// A transaction is entries of one version, and one more that ends it.

package kv

import (
	"encoding/binary"
	"hash/crc32"
	"strconv"
)

const (
	logHead     = 20
	logEntryMin = 2 + 3 + versionLen + 1 + 4
	logKeyMax   = 1 << 10
)

// logEntry returns the entry at the beginning of b, and its length; 0: it is none.
func logEntry(b []byte) (c cell, length int) {
	if len(b) < logEntryMin {
		return c, 0
	}
	c.meta, c.userMeta = b[0], b[1]
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
	if crc32.Checksum(b[:end], castagnoli) != binary.BigEndian.Uint32(b[end:]) {
		return c, 0
	}
	var ok bool
	if c.key, c.version, ok = splitKey(b[at:][:k:k]); !ok {
		return c, 0
	}
	c.value = b[at+int(k) : end : end]
	return c, end + 4
}

// logCells calls fn with the entries of complete transactions from offset at on,
// up to the first damage. It returns where the next entry would begin.
func logCells(data []byte, at int, fn func(cell)) (end int) {
	return logTransactions(data, at, func(txn []cell) bool {
		for _, c := range txn {
			fn(c)
		}
		return true
	})
}

// logTransactions calls fn with each complete transaction from offset at on, up to
// the first damage, or until it returns false. It returns where the next entry would
// begin, or that transaction began.
func logTransactions(data []byte, at int, fn func(txn []cell) bool) (end int) {
	var txn []cell
	end = at
	for at < len(data) {
		c, n := logEntry(data[at:])
		if n == 0 {
			return end
		}
		at += n
		switch {
		case c.meta&metaFinTxn != 0:
			version, err := strconv.ParseUint(string(c.value), 10, 64)
			if err != nil || len(txn) == 0 || version != txn[0].version || !fn(txn) {
				return end
			}
			txn, end = txn[:0], at
		case c.meta&metaTxn != 0:
			if len(txn) > 0 && txn[0].version != c.version {
				return end
			}
			txn = append(txn, c)
		case len(txn) > 0 || !fn([]cell{c}):
			return end
		default:
			end = at
		}
	}
	return end
}

// nextLogEntry returns where the next entry begins from at on, or -1.
func nextLogEntry(data []byte, at int) int {
	for ; at+logEntryMin <= len(data); at++ {
		b := data[at:]
		// Of ours there are few kinds, which spares most of the checksums.
		if b[0]&^(metaDelete|metaPointer|metaTxn|metaFinTxn) != 0 || b[0]&(metaTxn|metaFinTxn) == 0 || b[1]&^metaApart != 0 || b[2] < versionLen+1 {
			continue
		}
		if _, n := logEntry(b); n > 0 {
			return at
		}
	}
	return -1
}

func allZero(b []byte) bool {
	for _, x := range b {
		if x != 0 {
			return false
		}
	}
	return true
}
