// This file makes written data survive a loss of power: first the values, then the keys that point
// to them.
//
// Badger syncs a table before it lists it, but not the logs of keys that wait for their tables, and
// it does not know the values stored separately. So these are synced before a table of keys that
// point to them can be written.

package kv

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/dgraph-io/badger/v4"

	"github.com/seed-7440039f/frontier/internal/durablefs"
)

// syncEarly is the fill level of a table from which on Reclaim syncs what it points to, so that
// little is left to do when it is full.
const syncEarly = 0.75

// Sync is for the store. It holds writers up for moments only.
func (d *Badger) Sync() error { return d.guarded(d.syncAll) }

func (d *Badger) syncAll() error {
	d.syncing.Lock()
	defer d.syncing.Unlock()
	d.log.Debug("kv: a sync begins")
	d.turn.Lock()
	at := d.confirmed.last()
	at.version = d.version.Load()
	d.logs.waiting()
	files, logs := d.blobs.toSync(), append([]*keyLog(nil), d.logs.logs...)
	d.turn.Unlock()

	var errs []error
	if len(files) > 0 {
		errs = append(errs, durablefs.SyncFolder(d.blobs.path))
	}
	for _, f := range files {
		err := f.sync(d.blobs.flush)
		d.turn.Lock()
		errs = append(errs, d.blobs.settled(f, err))
		d.turn.Unlock()
	}
	for _, l := range logs {
		if l.fault == nil {
			l.fault = l.sync(d.path, d.db) // Sync alone looks at it
		}
		errs = append(errs, l.fault)
	}
	errs = append(errs, d.syncValueLog())
	errs = append(errs, durablefs.SyncFolder(d.path))
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("kv: sync: %w", err)
	}
	if err := d.confirmed.onMedium(at); err != nil {
		return fmt.Errorf("kv: sync: %w", err)
	}
	d.log.Debug("kv: a sync has ended")
	return nil
}

// removing removes n files that older states need: remove removes one. Nothing else does in the
// folder of an open store, except badger, which brings its tables and their names to the medium
// before it removes what they replace. A removal may reach the medium at once, and so must come
// after the writes that made the file useless, and after the note that those are there.
func (d *Badger) removing(n int, remove func(i int) error) error {
	if n == 0 {
		return nil
	}
	if err := d.Sync(); err != nil {
		return err
	}
	for i := range n {
		if err := remove(i); err != nil {
			return err
		}
	}
	return nil
}

// RemoveFiles is for the store.
func (d *Badger) RemoveFiles(names ...string) error {
	return d.removing(len(names), func(i int) error {
		if err := os.Remove(d.file(names[i])); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	})
}

// unsyncedBlob is the part of a file to be synced.
type unsyncedBlob struct {
	*blob
	upTo  int64 // its size when the sync began
	again bool  // a sync of it failed already
}

func (b *blobs) toSync() (files []unsyncedBlob) {
	for _, f := range b.unsynced {
		files = append(files, unsyncedBlob{f, f.size.Load(), f.fault != nil})
	}
	return files
}

// sync brings a file to the medium. One that was removed meanwhile needs nothing.
func (f *unsyncedBlob) sync(flush func(*os.File) error) error {
	if f.again {
		return nil
	}
	f.use.RLock()
	defer f.use.RUnlock()
	if err := flush(f.file); !errors.Is(err, fs.ErrClosed) {
		return err
	}
	return nil
}

// settled records the result of a sync. After a failure the file is not synced again, because its
// data may be lost even if the next sync succeeds. Two syncs of a file may run concurrently:
// neither brings data to the medium that was written after both began.
func (b *blobs) settled(f unsyncedBlob, err error) error {
	switch {
	case f.fault != nil:
	case err != nil:
		f.fault = fmt.Errorf("sync of %s: %w", f.file.Name(), err)
	default:
		if f.durable = max(f.durable, f.upTo); f.unsynced() == 0 {
			b.synced(f.blob)
		}
	}
	return f.fault
}

// apply commits a transaction whose entries have the given size in bytes. The caller holds turn.
func (d *Badger) apply(txn *badger.Txn, entries int, bytes int64) error {
	if d.logs.full(true) {
		if err := d.ready(); err != nil {
			return fmt.Errorf("kv: %w", err)
		}
		d.spare.give()
		defer func() { _ = d.spare.take() }() // ready says so if it matters
	}
	if !d.sync && d.logs.full(false) {
		// The table that is full now will be on the medium before Sync is called.
		if err := errors.Join(d.blobs.syncNew(), d.syncValueLog()); err != nil {
			return fmt.Errorf("kv: %w", err)
		}
	}
	full, last := d.logs.logs[len(d.logs.logs)-1], txn.ReadTs()
	if err := txn.Commit(); err != nil {
		return d.fail(err)
	}
	if d.logs.turned() {
		full.last = last
		if !d.sync {
			if err := errors.Join(d.blobs.syncNew(), d.syncValueLog()); err != nil { // usually there is nothing left
				d.log.Warn("kv: values could not be synced in time", "error", err)
			}
		}
		if err := d.logs.ahead(); err != nil {
			d.log.Warn("kv: the next log could not be made ahead", "error", err)
		}
	}
	d.logs.add(entries, bytes)
	if !d.sync && d.logs.nearlyFull() {
		d.early.Store(true)
		d.wasteful.Store(true)
	}
	return nil
}

// syncValueLog syncs what was written to badger's value log since the last time.
func (d *Badger) syncValueLog() error {
	if !d.inValueLog.Swap(false) {
		return nil
	}
	err := errors.Join(d.values.sync(), d.db.Sync())
	if err != nil {
		d.inValueLog.Store(true)
	}
	return err
}

// syncNew syncs what was written since the last time, and the names of files that are new. It skips
// files whose sync failed; Sync keeps reporting that failure.
func (b *blobs) syncNew() error {
	var errs []error
	named := true
	for _, f := range b.toSync() {
		named = named && f.durable > 0
		if !f.again {
			errs = append(errs, b.settled(f, b.flush(f.file)))
		}
	}
	if !named {
		errs = append(errs, durablefs.SyncFolder(b.path))
	}
	return errors.Join(errs...)
}

// syncEarlier syncs what an earlier process wrote and may not have synced before it died: its
// values and its logs. Badger makes tables of the logs as soon as it opens them, and a later sync
// would imply that everything before it is on the medium.
func syncEarlier(dir string, flush func(*os.File) error) error {
	for _, d := range []string{dir, filepath.Join(dir, blobFolder)} {
		entries, err := os.ReadDir(d)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		for _, e := range entries {
			if ext := filepath.Ext(e.Name()); d == dir && ext != keyLogSuffix && ext != valueLogSuffix {
				continue // it does not belong to the store, or its creator has synced it
			}
			f, err := os.OpenFile(filepath.Join(d, e.Name()), os.O_RDWR, 0)
			if err != nil {
				return err
			}
			if err := errors.Join(flush(f), f.Close()); err != nil {
				return fmt.Errorf("sync of %s: %w", f.Name(), err)
			}
		}
		if err := durablefs.SyncFolder(d); err != nil {
			return err
		}
	}
	return nil
}
