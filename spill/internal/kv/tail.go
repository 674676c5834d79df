// This file cuts off what a loss of power left at the ends of badger's logs of keys.
//
// Without sync the pages of a log reach the medium in any order, and those of the values that its
// keys point to before or after them. Valid are the transactions before the first one that is
// missing, or that has a missing value: those after it would form a later state with a gap. What
// was ever synced must exist; otherwise the folder is damaged.

package kv

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/seed-7440039f/frontier/internal/durablefs"
	"github.com/seed-7440039f/frontier/spill/internal/badgerfiles"
)

// tail is the obsolete data after the last valid transaction.
type tail struct {
	bytes int64
	log   string   // the log that ends early; empty: none
	end   int64    // of it
	gone  []string // logs behind it
}

// tornLogs finds the end of the last valid transaction.
func (x *inspector) tornLogs(names []string) error {
	version := uint64(0)
	blobs, err := readBlobs(x.dir)
	if err != nil {
		return err
	}
	defer blobs.close()
	values := window{blobs: blobs}
	for i, name := range names {
		data, err := x.read(name)
		if err != nil {
			return err
		}
		if len(data) < badgerfiles.LogHead {
			data = append(data, make([]byte, badgerfiles.LogHead-len(data))...) // it was about to be made
		}
		if !allZero(data[:8]) {
			return &DamageError{name, errHead}
		}
		w := walState{name: name}
		end := badgerfiles.LogTransactions(data, badgerfiles.LogHead, func(txn []badgerfiles.Cell) bool {
			v := txn[0].Version
			if txn[0].Meta&badgerfiles.MetaTxn == 0 { // a value of the value log, moved when that was collected
				return x.allWhole(&values, txn)
			}
			if version > 0 && v != version+1 || v > x.confirmed && !x.allWhole(&values, txn) {
				return false
			}
			if w.first == 0 {
				w.first = v
			}
			version, w.last = v, max(w.last, v)
			return true
		})
		x.logs = append(x.logs, w)
		if rest := data[end:]; !allZero(rest) || !x.emptyFrom(names[i+1:]) && w.last == 0 {
			x.tail = tail{log: name, end: int64(end), gone: names[i+1:], bytes: used(rest)}
			if x.onMedium(rest) {
				return &DamageError{name, errInLog}
			}
			break
		}
	}
	for _, name := range x.tail.gone {
		data, err := x.read(name)
		if err != nil {
			return err
		}
		if len(data) > badgerfiles.LogHead {
			x.tail.bytes += used(data[badgerfiles.LogHead:])
			if x.onMedium(data[badgerfiles.LogHead:]) {
				return &DamageError{x.tail.log, errInLog}
			}
		}
	}
	return nil
}

// onMedium reports whether there is something in data that was synced once.
func (x *inspector) onMedium(data []byte) bool {
	for at := badgerfiles.NextLogEntry(data, 0, metaApart); at >= 0; {
		c, n := badgerfiles.LogEntry(data[at:])
		if c.Version <= x.confirmed {
			return true
		}
		at = badgerfiles.NextLogEntry(data, at+n, metaApart)
	}
	return false
}

// used returns the number of bytes up to the last one that is not zero.
func used(b []byte) int64 {
	n := len(b)
	for n > 0 && b[n-1] == 0 {
		n--
	}
	return int64(n)
}

// allWhole reports whether all values of a transaction are intact.
func (x *inspector) allWhole(values *window, txn []badgerfiles.Cell) bool {
	for _, c := range txn {
		if c.Meta&badgerfiles.MetaDelete != 0 {
			continue
		}
		if c.Meta&badgerfiles.MetaPointer != 0 && !x.inValueLog(c) {
			return false
		}
		if c.UserMeta != metaApart {
			continue
		}
		p, err := readPlace(c.Value)
		if err != nil {
			return false
		}
		v, err := values.value(p)
		if err != nil || x.whole != nil && !x.whole(c.Key, v) {
			return false
		}
	}
	return true
}

// inValueLog reports whether the value of a cell is in badger's value log. The cell holds the
// number of the file, the length of the entry, and its position.
func (x *inspector) inValueLog(c badgerfiles.Cell) bool {
	if len(c.Value) != 12 {
		return false
	}
	id, n, at := binary.NativeEndian.Uint32(c.Value), binary.NativeEndian.Uint32(c.Value[4:]), binary.NativeEndian.Uint32(c.Value[8:])
	f, err := os.Open(filepath.Join(x.dir, valueLogName(int(id))))
	if err != nil {
		return false
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || int64(at)+int64(n) > info.Size() {
		return false
	}
	b := make([]byte, n)
	if _, err := f.ReadAt(b, int64(at)); err != nil {
		return false
	}
	e, length := badgerfiles.LogEntry(b)
	return length == len(b) && bytes.Equal(e.Key, c.Key) && e.Version == c.Version
}

// readBlobs opens the files of values of a folder.
func readBlobs(dir string) (*blobs, error) {
	b := &blobs{path: filepath.Join(dir, blobFolder), files: map[uint32]*blob{}}
	names, err := os.ReadDir(b.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, n := range names {
		f, err := openBlob(b.path, n.Name())
		if err != nil {
			return nil, errors.Join(err, b.close())
		}
		if f != nil {
			b.files[f.id] = f
		}
	}
	return b, nil
}

// cut removes the tail, the latest part first: if the process dies, the rest is a tail again.
func (t tail) cut(dir string) error {
	if t.log == "" {
		return nil
	}
	for _, name := range slices.Backward(t.gone) {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	if err := durablefs.SyncFolder(dir); err != nil {
		return err
	}
	return os.Truncate(filepath.Join(dir, t.log), t.end)
}
