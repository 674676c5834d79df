// This file tracks badger's logs of keys: each is the file of one of its tables in memory, and is
// removed when that table is on disk.
//
// Badger begins a new log, without syncing the previous one, whenever its table is full, in the
// middle of a commit. So the next log is made ahead, with space on the volume for its contents;
// each log is kept open here, so that it can be synced at any time; and the fill level of the table
// is computed, to know in advance.

package kv

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/dgraph-io/badger/v4"
	"github.com/seed-7440039f/frontier/spill/internal/badgerfiles"
)

const (
	keyLogSuffix   = ".mem"
	valueLogSuffix = ".vlog"

	nodeBytes   = 29 + badgerfiles.VersionLen + 3 // of an entry in badger's table, on average, beside key and value
	nodeScatter = 10                              // times the square root of the entries: the possible error
	entryBytes  = 9 + badgerfiles.VersionLen      // of an entry in the log, beside key and value
	endBytes    = 40                              // of the end of a transaction there
)

var errNoKeyLog = errors.New("badger has no log of keys")

// keyLog is one of the logs.
type keyLog struct {
	id    int
	file  *os.File // nil where none is kept open
	last  uint64   // upper bound of its last version; 0: unknown
	fault error    // a sync failed: what was written before may be lost
}

// keyLogs are the existing logs. Guarded by Badger.turn.
type keyLogs struct {
	dir   string
	table int64     // bytes of a table
	logs  []*keyLog // ascending; the last is being filled
	next  *keyLog   // made ahead; nil: not yet

	early   bool  // nearlyFull has reported it
	entries int   // in the table that is being filled
	inTable int64 // bytes of the table
	inLog   int64 // bytes of its log
}

func keyLogName(id int) string { return fmt.Sprintf("%05d%s", id, keyLogSuffix) }

// keyLogID returns the number in the name of a log.
func keyLogID(name string) (int, bool) {
	number, ok := strings.CutSuffix(name, keyLogSuffix)
	id, err := strconv.Atoi(number)
	return id, ok && err == nil
}

// sortKeyLogs brings names into the order of writing.
func sortKeyLogs(names []string) {
	slices.SortFunc(names, func(a, b string) int {
		x, _ := keyLogID(a)
		y, _ := keyLogID(b)
		return cmp.Or(cmp.Compare(x, y), cmp.Compare(a, b))
	})
}

// openKeyLogs opens the logs of a folder that badger has just opened. It allocates the space of the
// last one.
func openKeyLogs(dir string, table int64) (*keyLogs, error) {
	k := &keyLogs{dir: dir, table: table}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		id, ok := keyLogID(e.Name())
		if !ok {
			continue
		}
		f, err := keepOpen(filepath.Join(dir, e.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue // its table is written
		}
		if err != nil {
			return nil, errors.Join(err, k.close())
		}
		k.logs = append(k.logs, &keyLog{id: id, file: f})
	}
	slices.SortFunc(k.logs, func(a, b *keyLog) int { return cmp.Compare(a.id, b.id) })
	if n := len(k.logs); n == 0 {
		return nil, errNoKeyLog
	} else if err = reserve(k.logs[n-1].file, 2*table); err == nil {
		err = k.ahead()
	}
	if err != nil {
		return nil, errors.Join(err, k.close())
	}
	return k, nil
}

// ahead makes the next log, if it is not there.
func (k *keyLogs) ahead() error {
	if k.next != nil {
		return nil
	}
	id := k.logs[len(k.logs)-1].id + 1
	f, err := makeAhead(filepath.Join(k.dir, keyLogName(id)), 2*k.table)
	if err != nil {
		return err
	}
	k.next = &keyLog{id: id, file: f}
	return nil
}

// turned checks whether badger has begun the next log, and reports it.
func (k *keyLogs) turned() bool {
	if k.next == nil {
		return false
	}
	info, err := os.Stat(filepath.Join(k.dir, keyLogName(k.next.id)))
	if err != nil || info.Size() == 0 {
		return false
	}
	k.logs, k.next = append(k.logs, k.next), nil
	k.early, k.entries, k.inTable, k.inLog = false, 0, 0, 0
	return true
}

// add counts a transaction that was committed.
func (k *keyLogs) add(entries int, bytes int64) {
	k.entries += entries
	k.inTable += bytes + int64(entries)*nodeBytes
	k.inLog += bytes + int64(entries)*entryBytes + endBytes
}

// full reports whether badger may begin another log with the next transaction; with surely, whether
// it certainly will.
func (k *keyLogs) full(surely bool) bool {
	scatter := int64(nodeScatter * math.Sqrt(float64(k.entries)))
	if surely {
		scatter *= 4
	}
	return max(k.inTable+scatter, k.inLog+scatter/8) >= k.table
}

// nearlyFull reports, once for each table, that it is time to sync.
func (k *keyLogs) nearlyFull() bool {
	if k.early || float64(max(k.inTable, k.inLog)) < syncEarly*float64(k.table) {
		return false
	}
	k.early = true
	return true
}

// waiting returns how many logs wait for their tables to be written. It forgets logs that were removed.
func (k *keyLogs) waiting() int {
	last := len(k.logs) - 1
	k.logs = slices.DeleteFunc(k.logs, func(l *keyLog) bool {
		if l == k.logs[last] {
			return false
		}
		if _, err := os.Stat(filepath.Join(k.dir, keyLogName(l.id))); !errors.Is(err, fs.ErrNotExist) {
			return false
		}
		l.close()
		return true
	})
	return len(k.logs) - 1
}

func (l *keyLog) close() {
	if l.file != nil {
		_ = l.file.Close() // nothing was written through it
	}
}

// sync makes a log survive a loss of power. One that is gone needs nothing.
func (l *keyLog) sync(dir string, db *badger.DB) error {
	var err error
	if l.file != nil {
		err = l.file.Sync()
	} else {
		err = syncElsewhere(filepath.Join(dir, keyLogName(l.id)), db)
	}
	if errors.Is(err, fs.ErrClosed) || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// close closes all, and removes the log that was made ahead.
func (k *keyLogs) close() error {
	if k == nil {
		return nil
	}
	for _, l := range k.logs {
		l.close()
	}
	k.logs = nil
	if k.next == nil {
		return nil
	}
	l := k.next
	k.next = nil
	path := filepath.Join(k.dir, keyLogName(l.id))
	info, err := os.Stat(path)
	l.close()
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() > 0 {
		return nil
	}
	return errors.Join(err, os.Remove(path))
}
