// This file reclaims the space of obsolete values: files without live values are removed, after the
// live values of sparse files were moved together.
//
// After a loss of power at any point each key still has a value to point to: copies are synced
// before keys point to them, and a file is removed only when the new pointers are on the medium,
// too, and the note that they are: see Badger.removing.

package kv

import (
	"errors"
	"fmt"

	"github.com/dgraph-io/badger/v4"
)

// sizes are the thresholds and step sizes of background work, in bytes.
type sizes struct {
	file  int64 // a file is ended
	brief int64 // the same for values that die soon: one of use keeps the whole file
	waste int64 // obsolete bytes in a file that make it worth collecting
	scan  int64 // of a file looked at in one step
	move  int64 // of values moved in one step
}

var usual = sizes{file: 32 << 20, brief: 4 << 20, waste: 1 << 20, scan: 256 << 10, move: 512 << 10}
var small = sizes{file: 64 << 10, brief: 16 << 10, waste: 8 << 10, scan: 8 << 10, move: 16 << 10}

const (
	moveKeys   = 256     // moved in one step
	surveyKeys = 4 << 10 // counted in one step
	smallBlobs = 16      // files of less than an eighth of the usual size that are left alone
)

// worth reports whether collecting f is worth its cost: at most two bytes are moved for one
// reclaimed. A log is never collected, since it ends anyway.
func (d *Badger) worth(f *blob) bool {
	return f.dead() >= d.sizes.waste && !f.stuck && (f.live == 0 || f.life != Brief && 2*f.dead() >= f.live)
}

// Wasteful is for the store.
func (d *Badger) Wasteful() bool { return d.wasteful.Load() }

// Reclaim is for the store.
func (d *Badger) Reclaim(pause func() bool) error {
	return d.guarded(func() error { return d.reclaim(pause) })
}

func (d *Badger) reclaim(pause func() bool) error {
	d.wasteful.Store(false)
	if d.early.Swap(false) {
		if err := d.Sync(); err != nil {
			return err
		}
	}
	if err := d.survey(pause); err != nil {
		return d.unfinished(err)
	}
	for {
		f := d.sparsest()
		if f == nil {
			break
		}
		if err := d.evacuate(f, pause); err != nil {
			return d.unfinished(err)
		}
	}
	if err := d.removeEmpty(pause); err != nil {
		return d.unfinished(err)
	}
	return d.collectLog()
}

var errPaused = errors.New("ended by the caller")

// unfinished sees to it that Reclaim is called again.
func (d *Badger) unfinished(err error) error {
	d.wasteful.Store(true)
	if err == errPaused {
		return nil
	}
	return fmt.Errorf("kv: reclaim: %w", err)
}

// survey counts the live bytes in each file, unless that is known. Concurrent writes are counted
// separately.
func (d *Badger) survey(pause func() bool) error {
	d.turn.Lock()
	if d.counted {
		d.turn.Unlock()
		return nil
	}
	for _, f := range d.blobs.all() {
		f.live = 0
	}
	d.surveys++
	mine := d.surveys
	txn := d.db.NewTransaction(false)
	d.turn.Unlock()
	defer txn.Discard()
	live, err := d.countKeys(txn, pause)
	if err != nil {
		return err
	}
	d.turn.Lock()
	defer d.turn.Unlock()
	if mine != d.surveys {
		return nil // a write failed meanwhile
	}
	for _, f := range d.blobs.all() {
		f.live += live[f.id]
	}
	d.counted = true
	return nil
}

// countKeys adds up the entries of each file that a key points to.
func (d *Badger) countKeys(txn *badger.Txn, pause func() bool) (map[uint32]int64, error) {
	o := badger.DefaultIteratorOptions
	o.PrefetchValues = false
	it := txn.NewIterator(o)
	defer it.Close()
	live := map[uint32]int64{}
	n := 0
	for it.Rewind(); it.Valid(); it.Next() {
		item := it.Item()
		if d.last != nil && string(item.Key()) >= string(d.last) {
			break
		}
		if n++; n%surveyKeys == 0 && !pause() {
			return nil, errPaused
		}
		if item.UserMeta() != metaApart {
			continue
		}
		err := item.Value(func(v []byte) error {
			p, err := readPlace(v)
			live[p.file] += entryLen(len(item.Key()), int(p.n))
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return live, nil
}

// uncounted notes that the outcome of a write is unknown.
func (d *Badger) uncounted() {
	d.counted = false
	d.surveys++
	d.wasteful.Store(true)
}

// sparsest returns the file whose collection reclaims most, and ends writing to it. If there is
// none it returns a small file, provided there are many: each opening of the store leaves some.
func (d *Badger) sparsest() *blob {
	d.turn.Lock()
	defer d.turn.Unlock()
	if !d.counted {
		return nil
	}
	var best, small *blob
	smalls := 0
	for _, f := range d.blobs.all() {
		switch {
		case f.live <= 0 || f.stuck || f.life == Brief:
		case d.worth(f):
			if best == nil || f.dead() > best.dead() {
				best = f
			}
		case f.size.Load() < d.sizes.file/8 && d.blobs.filling[f.life] != f:
			smalls++
			small = f
		}
	}
	if best == nil && smalls > smallBlobs {
		return small
	}
	if best != nil && d.blobs.filling[best.life] == best {
		d.blobs.filling[best.life] = nil
	}
	return best
}

// removeEmpty removes the files without live values.
func (d *Badger) removeEmpty(pause func() bool) error {
	d.turn.Lock()
	var empty []*blob
	for _, f := range d.blobs.all() {
		if d.counted && f.live == 0 && (d.worth(f) || d.blobs.filling[f.life] != f) {
			d.blobs.forget(f)
			empty = append(empty, f)
		}
	}
	d.turn.Unlock()
	return d.removing(len(empty), func(i int) error {
		if err := d.blobs.drop(empty[i]); err != nil {
			return err
		}
		if !pause() {
			return errPaused
		}
		return nil
	})
}
