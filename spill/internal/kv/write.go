// This file writes: large values to their files, then keys, small values and places to badger.

package kv

import (
	"errors"
	"fmt"
	"slices"

	"github.com/dgraph-io/badger/v4"

	"github.com/seed-7440039f/frontier/internal/durablefs"
)

// Write is for the store. Values that lie apart are written first: a key never
// points to what is not there.
func (d *Badger) Write(b *Batch, sync bool) error {
	return d.guarded(func() error { return d.writeGuarded(b, sync) })
}

func (d *Badger) writeGuarded(b *Batch, sync bool) error {
	if err := d.room(b); err != nil {
		return err
	}
	if err := d.write(b, sync); err != nil {
		return err
	}
	if sync && !d.sync {
		return d.Sync()
	}
	return nil
}

func (d *Badger) write(b *Batch, sync bool) error {
	d.turn.Lock()
	defer d.turn.Unlock()
	places, own, err := d.putApart(b.Ops)
	if err != nil {
		return fmt.Errorf("kv: %w", err)
	}
	if sync {
		if err := d.blobs.sync(own); err != nil {
			return fmt.Errorf("kv: %w", err)
		}
	}
	died, err := d.commit(b.Ops, places)
	if err != nil {
		d.uncounted()
		return err
	}
	d.count(b.Ops, places, died)
	if d.syncFault.Swap(false) {
		return errors.New("kv: value log could not be synced")
	}
	return nil
}

// putApart writes the large values to their files, and returns where each op's
// value is and how many bytes of each life there are.
func (d *Badger) putApart(ops []Op) (places []place, own [lives]int64, err error) {
	for i := range d.bufs {
		d.bufs[i] = d.bufs[i][:0]
	}
	lifeOf := make([]Life, len(ops))
	for i, o := range ops {
		if len(o.Value) < apartFrom {
			continue
		}
		if l := d.life(o.Key); l != Inline {
			lifeOf[i] = l
			d.bufs[l] = appendEntry(d.bufs[l], o.Key, o.Value)
		}
	}
	for l := Brief; l < lives; l++ {
		if len(d.bufs[l]) == 0 {
			continue
		}
		if places == nil {
			places = make([]place, len(ops))
		}
		f, at, err := d.blobs.append(l, d.bufs[l])
		if err != nil {
			return nil, own, err
		}
		own[l] = int64(len(d.bufs[l]))
		for i, o := range ops {
			if lifeOf[i] == l {
				at += entryLen(len(o.Key), len(o.Value))
				places[i] = place{f.id, uint32(at) - uint32(len(o.Value)), uint32(len(o.Value))}
			}
		}
		if cap(d.bufs[l]) > keptBuffer {
			d.bufs[l] = nil
		}
	}
	return places, own, nil
}

// entry is what a key pointed to.
type entry struct {
	place
	key int // its length
}

// commit applies ops to badger. It returns what the keys pointed to before.
func (d *Badger) commit(ops []Op, places []place) (died []entry, err error) {
	txn := d.db.NewTransaction(true)
	defer txn.Discard()
	var bytes, large int64
	for i, o := range ops {
		bytes += int64(len(o.Key))
		if d.life(o.Key) != Inline {
			p, found, err := placeOf(txn, o.Key)
			if err != nil {
				return nil, err
			}
			if found {
				died = append(died, entry{p, len(o.Key)})
			}
		}
		switch {
		case o.Value == nil:
			err = txn.Delete(o.Key)
		case places != nil && places[i].file != 0:
			bytes += placeLen
			err = txn.SetEntry(badger.NewEntry(o.Key, places[i].bytes()).WithMeta(metaApart))
		case len(o.Value) >= d.large:
			bytes += placeLen // of one in badger's value log
			large += int64(len(o.Key)+len(o.Value)) + valueHead
			err = txn.Set(o.Key, o.Value)
		default:
			bytes += int64(len(o.Value))
			err = txn.Set(o.Key, o.Value)
		}
		if err != nil {
			return nil, err
		}
	}
	if large > 0 {
		if err := d.values.reserve(large); err != nil {
			return nil, fmt.Errorf("kv: %w", err)
		}
	}
	if err := d.apply(txn, len(ops), bytes); err != nil {
		return nil, err
	}
	d.version.Store(txn.ReadTs() + 1) // there is one writer
	if large > 0 {
		d.inValueLog.Store(true)
	}
	return died, nil
}

// placeOf returns where the value of key lies if it lies apart.
func placeOf(txn *badger.Txn, key []byte) (p place, found bool, err error) {
	item, err := txn.Get(key)
	if errors.Is(err, badger.ErrKeyNotFound) {
		return p, false, nil
	}
	if err != nil || item.UserMeta() != metaApart {
		return p, false, err
	}
	err = item.Value(func(v []byte) error {
		p, err = readPlace(v)
		return err
	})
	return p, err == nil, err
}

// count keeps how much of each file is of use.
func (d *Badger) count(ops []Op, places []place, died []entry) {
	d.blobs.mu.RLock()
	defer d.blobs.mu.RUnlock()
	for i, p := range places {
		if f := d.blobs.files[p.file]; f != nil {
			f.live += entryLen(len(ops[i].Key), int(p.n))
		}
	}
	for _, e := range died {
		if f := d.blobs.files[e.file]; f != nil {
			f.live -= entryLen(e.key, int(e.n))
			if d.counted && d.worth(f) {
				d.wasteful.Store(true)
			}
		}
	}
}

// room refuses writes when the volume is nearly full, small ones when half of the reserve is left. What
// frees space or ends what is stored is taken as long as badger has what it needs: see ready.
func (d *Badger) room(b *Batch) error {
	if b.Bytes <= d.allowed {
		d.allowed -= b.Bytes
		return nil
	}
	if b.Spare || !slices.ContainsFunc(b.Ops, func(o Op) bool { return o.Value != nil }) {
		return nil
	}
	reserve := d.reserve
	if b.Bytes < smallWrite {
		reserve /= 2
	}
	if err := durablefs.Space(d.path, 0, reserve); err != nil {
		d.allowed = 0
		return fmt.Errorf("kv: %w", err)
	}
	if reserve == d.reserve {
		d.allowed = max(0, checkEvery-b.Bytes)
	}
	return nil
}

// Fits is for the store.
func (d *Badger) Fits(b *Batch) bool {
	if int64(len(b.Ops)) > d.db.MaxBatchCount()/2 {
		return false
	}
	var size int64
	for _, o := range b.Ops {
		size += int64(len(o.Key)) + 64
		if len(o.Value) < d.large && (len(o.Value) < apartFrom || d.life(o.Key) == Inline) {
			size += int64(len(o.Value))
		}
	}
	return size < d.db.MaxBatchSize()*3/4 && b.Bytes < maxBlobs
}
