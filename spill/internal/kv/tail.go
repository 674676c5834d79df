// This file cuts off what a loss of power left at the ends of badger's logs of keys.
//
// Without sync the pages of a log reach the medium in any order, and those of the values that its
// keys point to before or after them. Valid are the transactions before the first one that is
// missing, up to the latest one after which no key points to a missing value. What was ever synced
// must exist; otherwise the folder is damaged.

package kv

import (
	"cmp"
	"errors"
	"log/slog"
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

// tornLogs finds the latest state that is whole.
func (x *inspector) tornLogs(names []string) error {
	if x.holes == nil {
		h, err := openHoles(x.dir, x.contents)
		if err != nil {
			return err
		}
		defer h.close()
		x.holes = h
	}
	to, err := x.lastWhole(names)
	if err != nil {
		return err
	}
	for i, name := range names {
		data, err := x.readLog(name)
		if err != nil {
			return err
		}
		w := walState{name: name}
		n := 0
		end := badgerfiles.LogTransactions(data, badgerfiles.LogHead, func(txn []badgerfiles.Cell) bool {
			if i == to.log && n == to.n {
				return false
			}
			n++
			if txn[0].Meta&badgerfiles.MetaTxn != 0 {
				w.last = txn[0].Version
				w.first = cmp.Or(w.first, w.last)
			}
			return true
		})
		x.logs = append(x.logs, w)
		if i < to.log {
			continue
		}
		rest, behind := data[end:], names[i+1:]
		if allZero(rest) && x.emptyFrom(behind) {
			return nil
		}
		x.tail = tail{log: name, end: int64(end), gone: behind, bytes: used(rest)}
		return x.worthless(rest, behind)
	}
	return nil
}

// worthless returns a *DamageError if something in the tail was on the medium once, and counts the
// bytes of the logs in it.
func (x *inspector) worthless(rest []byte, logs []string) error {
	for _, name := range logs {
		if x.onMedium(rest) {
			break
		}
		data, err := x.readLog(name)
		if err != nil {
			return err
		}
		rest = data[badgerfiles.LogHead:]
		x.tail.bytes += used(rest)
	}
	if x.onMedium(rest) {
		return &DamageError{x.tail.log, errInLog}
	}
	return nil
}

// readLog reads a log that may have been about to be made.
func (x *inspector) readLog(name string) ([]byte, error) {
	data, err := x.read(name)
	if err != nil {
		return nil, err
	}
	if len(data) < badgerfiles.LogHead {
		data = append(data, make([]byte, badgerfiles.LogHead-len(data))...)
	}
	if !allZero(data[:8]) {
		return nil, &DamageError{name, errHead}
	}
	return data, nil
}

// reached is a state: that after the first n transactions of a log.
type reached struct{ log, n int }

// lastWhole returns the latest state whose keys all have their values, among those that come after
// all that was on the medium. If there is none it is the latest with the fewest holes: what is
// missing then is damage, which the log did not cause, and no reason to cut it.
//
// A value that is missing says nothing about the transaction that wrote it: a later one may have
// deleted or moved it, and its file was removed after that.
func (x *inspector) lastWhole(names []string) (reached, error) {
	var to reached
	version, gap, fewest := uint64(0), false, -1
	whole := func(now reached) {
		if n := len(x.holes.keys); fewest < 0 || n <= fewest || max(version, x.last) <= x.confirmed {
			to, fewest = now, n
		}
	}
	whole(to)
	for i, name := range names {
		data, err := x.readLog(name)
		if err != nil {
			return to, err
		}
		n, before, over := 0, version, false
		badgerfiles.LogTransactions(data, badgerfiles.LogHead, func(txn []badgerfiles.Cell) bool {
			v := txn[0].Version
			switch {
			case txn[0].Meta&badgerfiles.MetaTxn == 0: // a value of the value log, moved when that was collected
				x.holes.apply(txn, true)
			case v <= version || v > x.last+1 && v != version+1 && (version > 0 || gap):
				over = true
				return false
			case v > x.last: // others are in tables
				x.holes.apply(txn, v > x.confirmed)
				fallthrough
			default:
				version = v
			}
			n++
			whole(reached{i, n})
			return true
		})
		if over {
			break
		}
		gap = gap || version == before
	}
	return to, nil
}

// onMedium reports whether there is something in data that was synced once, and is in no table.
func (x *inspector) onMedium(data []byte) bool {
	for at := badgerfiles.NextLogEntry(data, 0, metaApart); at >= 0; {
		c, n := badgerfiles.LogEntry(data[at:])
		if x.last < c.Version && c.Version <= x.confirmed {
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

// rehearsal is the name of the folder in which a cut is tried.
const rehearsal = ".rehearsal"

// rehearse cuts the logs in a copy of the folder, and lets the store recover from that: if it cannot,
// nothing is cut, and Repair finds everything.
func rehearse(path string, c Config) (err error) {
	if c.Rehearse == nil {
		return nil
	}
	temp := filepath.Join(path, rehearsal)
	if err := os.RemoveAll(temp); err != nil { // of a process that died
		return err
	}
	if err := os.Mkdir(temp, 0o700); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	from, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	if err := fillView(from, temp, []string{blobFolder, "marks"}, true); err != nil {
		return err
	}
	fn := c.Rehearse
	c.Rehearse, c.Sync, c.Logger = nil, false, slog.New(slog.DiscardHandler)
	d, err := OpenBadger(temp, c)
	if err != nil {
		return err
	}
	return fn(d)
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
