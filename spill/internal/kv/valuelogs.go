// This file adds to badger's value log what badger lacks. It allocates space on the volume before
// badger writes, since the log is mapped into memory and a write without space ends the process; it
// syncs the files that badger has finished, which badger never does; and it keeps collected files
// until the moved data is on the medium.

package kv

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/dgraph-io/badger/v4"
)

const valueHead = 40 // of a value in the log, at most

// valueLogs tracks the file that badger writes. Badger begins another at the end of a transaction,
// when more than valueLog is in one.
type valueLogs struct {
	dir   string
	flush func(*os.File) error

	mu       sync.Mutex
	id       int   // guarded by mu; of the file; 0: not known
	unsynced int   // guarded by mu; the first file that may not be completely on the medium
	bytes    int64 // guarded by mu; allocated bytes of the file
}

func valueLogName(id int) string { return fmt.Sprintf("%06d%s", id, valueLogSuffix) }

// reserve returns an error if there is no space for that many bytes.
func (v *valueLogs) reserve(bytes int64) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	before := v.id
	if err := v.find(); err != nil {
		return err
	}
	need := max(2*valueLog, valueLog+bytes)
	if v.id == before && need <= v.bytes {
		return nil
	}
	f, err := os.OpenFile(filepath.Join(v.dir, valueLogName(v.id)), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	if err := errors.Join(reserveAhead(f, need), f.Close()); err != nil {
		return err
	}
	v.bytes = need
	return nil
}

// sync syncs the files that badger has finished.
func (v *valueLogs) sync() error {
	v.mu.Lock()
	err := v.find()
	first, last := v.unsynced, v.id
	v.mu.Unlock()
	for id := first; id < last && err == nil; id++ {
		err = v.syncFile(id)
	}
	if err != nil {
		return err
	}
	v.mu.Lock()
	v.unsynced = max(v.unsynced, last)
	v.mu.Unlock()
	return nil
}

func (v *valueLogs) syncFile(id int) error {
	f, err := os.OpenFile(filepath.Join(v.dir, valueLogName(id)), os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it was collected
	}
	if err != nil {
		return err
	}
	return errors.Join(v.flush(f), f.Close())
}

// find looks for the file with the highest number. It needs mu.
func (v *valueLogs) find() error {
	if v.id == 0 {
		entries, err := os.ReadDir(v.dir)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if name, ok := strings.CutSuffix(e.Name(), valueLogSuffix); ok {
				id, _ := strconv.Atoi(name)
				v.id = max(v.id, id)
			}
		}
		v.unsynced = v.id // the earlier life's are synced
	}
	for {
		if _, err := os.Stat(filepath.Join(v.dir, valueLogName(v.id+1))); errors.Is(err, fs.ErrNotExist) {
			return nil
		} else if err != nil {
			return err
		}
		v.id++
	}
}

// collectLog collects badger's value log, which holds few values if any. Badger's tables need no
// help: a merge of level 0 covers all of them, or as many as the base level may have.
func (d *Badger) collectLog() error {
	if err := d.values.reserve(valueLog); err != nil { // live values move to the end
		return err
	}
	txn := d.db.NewTransaction(false)
	o := badger.DefaultIteratorOptions
	o.PrefetchValues = false
	it := txn.NewIterator(o) // while there is one badger removes no file
	moved := false
	err := d.db.RunValueLogGC(0.5)
	for ; err == nil; err = d.db.RunValueLogGC(0.5) {
		moved = true
	}
	if errors.Is(err, badger.ErrNoRewrite) || errors.Is(err, badger.ErrRejected) {
		err = nil
	}
	if !moved {
		it.Close()
		txn.Discard()
		return err
	}
	d.inValueLog.Store(true)
	// After an error the files stay until the store is opened again.
	return errors.Join(err, d.removing(1, func(int) error {
		it.Close()
		txn.Discard()
		return nil
	}))
}
