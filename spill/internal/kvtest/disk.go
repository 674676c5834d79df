// Package kvtest has engines of a store for tests: a disk in memory that can lose its power (Disk), and one
// that fails where a test wants it to (Faulty).
package kvtest

import (
	"bytes"
	"errors"
	"sync"

	"github.com/google/btree"

	"github.com/seed-7440039f/frontier/spill/internal/kv"
)

// Disk is a kv.DB in memory. It keeps the writes since the last sync apart, in order. It can be used again after Close: it represents the disk, not the
// program. The zero value is not usable; see NewDisk.
type Disk struct {
	// MaxOps is the maximum number of changes in a Write; 0: unlimited.
	MaxOps int

	mu     sync.RWMutex
	now    *btree.BTreeG[kv.Op] // guarded by mu; what a reader sees
	synced *btree.BTreeG[kv.Op] // guarded by mu; what a loss of power leaves
	later  []*btree.BTreeG[kv.Op]
	noted  uint64           // guarded by mu; see Confirm
	before uint64           // noted when the disk was made
	files  map[string]image // guarded by mu
	open   map[string]int   // guarded by mu; how often each file is open
}

// NewDisk returns an empty disk.
func NewDisk() *Disk {
	less := func(a, b kv.Op) bool { return bytes.Compare(a.Key, b.Key) < 0 }
	return &Disk{now: btree.NewG(16, less), synced: btree.NewG(16, less), files: map[string]image{}, open: map[string]int{}}
}

// Copy returns a disk with the same content, as it would be after the death of the process at this
// moment.
func (d *Disk) Copy() *Disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	return &Disk{
		MaxOps: d.MaxOps, now: d.now.Clone(), synced: d.now.Clone(), noted: d.noted, before: d.noted,
		files: survivors(d.files, FilesKept), open: map[string]int{},
	}
}

// PowerLoss returns a disk as it would be after a loss of power at this moment, if the first kept
// of the writes since the last sync had reached the medium. fate determines the content of unsynced
// files; removed files are gone.
func (d *Disk) PowerLoss(kept int, fate Fate) *Disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	left := d.synced
	if kept = min(kept, len(d.later)); kept > 0 {
		left = d.later[kept-1]
	}
	return &Disk{
		MaxOps: d.MaxOps, now: left.Clone(), synced: left.Clone(),
		files: survivors(d.files, fate), open: map[string]int{},
	}
}

// Unsynced is how many writes there were since the last sync.
func (d *Disk) Unsynced() int {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return len(d.later)
}

// Damage replaces each value, and the content of each file, by the result of fn: nil removes it.
func (d *Disk) Damage(fn func(key, value []byte) []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.now.Clone().Ascend(func(o kv.Op) bool {
		if v := fn(bytes.Clone(o.Key), bytes.Clone(o.Value)); v == nil {
			d.now.Delete(o)
		} else {
			d.now.ReplaceOrInsert(kv.Op{Key: o.Key, Value: v})
		}
		return true
	})
	d.synced, d.later = d.now.Clone(), nil
	for name, f := range d.files {
		if v := fn([]byte(name), bytes.Clone(f.now)); v == nil {
			delete(d.files, name)
		} else {
			d.files[name] = image{now: v, synced: v, durable: true}
		}
	}
}

// Write is for the store.
func (d *Disk) Write(b *kv.Batch, sync bool) error {
	if !d.Fits(b) {
		return errors.New("kv: write is too large")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, o := range b.Ops {
		o.Key = bytes.Clone(o.Key)
		if o.Value == nil {
			d.now.Delete(o)
		} else {
			o.Value = append([]byte{}, o.Value...)
			d.now.ReplaceOrInsert(o)
		}
	}
	if sync {
		d.synced, d.later = d.now.Clone(), nil
	} else {
		d.later = append(d.later, d.now.Clone())
	}
	return nil
}

// Sync is for the store.
func (d *Disk) Sync() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.synced, d.later = d.now.Clone(), nil
	return nil
}

// Confirm is called by the store. What it records does not survive a loss of power.
func (d *Disk) Confirm(n uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.noted = n
}

// Confirmed is for the store.
func (d *Disk) Confirmed() uint64 { return d.before }

// Fits is for the store.
func (d *Disk) Fits(b *kv.Batch) bool { return d.MaxOps == 0 || len(b.Ops) <= d.MaxOps }

// Locate is for the store. Nothing has a place.
func (d *Disk) Locate([]byte) (kv.Place, bool) { return kv.Place{}, false }

// Peek is for the store.
func (d *Disk) Peek(kv.Place, func([]byte) error) bool { return false }

// Get is for the store.
func (d *Disk) Get(key []byte, fn func([]byte) error) (bool, error) {
	d.mu.RLock()
	o, ok := d.now.Get(kv.Op{Key: key})
	d.mu.RUnlock()
	if !ok {
		return false, nil
	}
	return true, fn(o.Value)
}

// Iterate is for the store.
func (d *Disk) Iterate(from, to []byte, fn func([]byte, func() ([]byte, error)) error) error {
	d.mu.Lock()
	at := d.now.Clone()
	d.mu.Unlock()
	var err error
	at.AscendRange(kv.Op{Key: from}, kv.Op{Key: to}, func(o kv.Op) bool {
		err = fn(o.Key, func() ([]byte, error) { return o.Value, nil })
		return err == nil
	})
	return err
}

// Footprint is for the store.
func (d *Disk) Footprint() int64 { return 0 }

// Wasteful is for the store.
func (d *Disk) Wasteful() bool { return false }

// Reclaim is for the store.
func (d *Disk) Reclaim(func() bool) error { return nil }

// Close is for the store. The disk stays as it is.
func (d *Disk) Close() error { return nil }

// Snapshot is called by the store. It shares what does not change.
func (d *Disk) Snapshot() (kv.Snapshot, error) {
	return &diskSnapshot{d.Copy()}, nil
}

type diskSnapshot struct{ *Disk }

func (diskSnapshot) Release() {}
