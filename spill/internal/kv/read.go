// This file reads: from badger, and from where badger's values point to.

package kv

import (
	"errors"
	"fmt"

	"github.com/dgraph-io/badger/v4"
)

// Get is for the store.
func (d *Badger) Get(key []byte, fn func([]byte) error) (found bool, err error) {
	err = d.guarded(func() (err error) { found, err = d.get(key, fn); return err })
	return found, err
}

func (d *Badger) get(key []byte, fn func([]byte) error) (bool, error) {
	for {
		txn := d.db.NewTransaction(false)
		item, err := txn.Get(key)
		switch {
		case errors.Is(err, badger.ErrKeyNotFound):
			txn.Discard()
			return false, nil
		case err != nil:
			txn.Discard()
			return false, err
		case item.UserMeta() != metaApart:
			var theirs error
			err = item.Value(func(v []byte) error { theirs = fn(v); return theirs })
			txn.Discard()
			return true, unreadable(err, theirs)
		}
		var p place
		err = item.Value(func(v []byte) (err error) { p, err = readPlace(v); return err })
		txn.Discard()
		if err != nil {
			return true, unreadable(err, nil)
		}
		if again, err := d.getApart(key, p, fn); !again {
			return true, err
		}
	}
}

// Locate is for the store.
func (d *Badger) Locate(key []byte) (p Place, ok bool) {
	err := d.guarded(func() (err error) {
		txn := d.db.NewTransaction(false)
		defer txn.Discard()
		p, ok, err = placeOf(txn, key)
		return err
	})
	return p, ok && err == nil
}

// Peek is for the store. It touches nothing of badger's, whose tables are mapped into memory and
// whose lock is held while a log is made.
func (d *Badger) Peek(p Place, fn func([]byte) error) bool {
	if d.down.Load() != nil {
		return false
	}
	f := d.blobs.hold(p.file)
	if f == nil {
		return false
	}
	buf := buffers.Get().(*[]byte)
	v, ok := f.peek(*buf, int64(p.at), int64(p.n))
	f.use.RUnlock()
	*buf = v
	ok = ok && fn(v) == nil
	if cap(*buf) <= keptBuffer {
		buffers.Put(buf)
	}
	return ok
}

// getApart calls fn with the value of key, which was at p a moment ago. It returns again if it has
// moved.
func (d *Badger) getApart(key []byte, p place, fn func([]byte) error) (again bool, err error) {
	f := d.blobs.hold(p.file)
	if f == nil {
		if d.movedSince(key, p) {
			return true, nil
		}
		return false, errNoBlob(p.file)
	}
	buf := buffers.Get().(*[]byte)
	v, err := f.read(*buf, int64(p.at), int64(p.n))
	f.use.RUnlock()
	if err == nil {
		*buf = v
		err = fn(v)
	}
	if cap(*buf) <= keptBuffer {
		buffers.Put(buf)
	}
	return false, err
}

// movedSince reports whether the value of key is no longer at p.
func (d *Badger) movedSince(key []byte, p place) bool {
	txn := d.db.NewTransaction(false)
	defer txn.Discard()
	now, found, err := placeOf(txn, key)
	return err != nil || !found || now != p
}

// unreadable separates read errors of the engine from errors of the caller's function.
func unreadable(err, theirs error) error {
	if err != nil && theirs == nil && !errors.Is(err, ErrDamaged) {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return err
}

// Iterate is for the store.
func (d *Badger) Iterate(from, to []byte, fn func([]byte, func() ([]byte, error)) error) error {
	return d.guarded(func() error {
		d.blobs.pin()
		defer d.blobs.unpin()
		txn := d.db.NewTransaction(false)
		defer txn.Discard()
		return iterate(txn, d.blobs, from, to, fn)
	})
}

func commonPrefix(a, b []byte) []byte {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return a[:n]
}
