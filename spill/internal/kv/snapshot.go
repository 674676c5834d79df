// This file reads a DB as it was at one moment, while it is in use.

package kv

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/dgraph-io/badger/v4"
)

// Snapshot is the state of a DB when Snapshot was called. Get and Iterate are as for a DB, and may
// be called from any number of goroutines. Until Release, obsolete disk space is not reclaimed.
type Snapshot interface {
	Reader
	Release()
}

// Snapshot is for the store.
func (d *Badger) Snapshot() (Snapshot, error) {
	if e := d.down.Load(); e != nil {
		return nil, e
	}
	d.blobs.pin() // before the transaction: what its keys point to then stays
	return &badgerSnapshot{d, d.blobs, d.db.NewTransaction(false)}, nil
}

type badgerSnapshot struct {
	db    *Badger
	blobs *blobs
	txn   *badger.Txn
}

func (s *badgerSnapshot) Release() {
	s.txn.Discard()
	s.blobs.unpin()
}

func (s *badgerSnapshot) Get(key []byte, fn func([]byte) error) (found bool, err error) {
	err = s.db.guarded(func() (err error) { found, err = s.get(key, fn); return err })
	return found, err
}

func (s *badgerSnapshot) get(key []byte, fn func([]byte) error) (bool, error) {
	item, err := s.txn.Get(key)
	if errors.Is(err, badger.ErrKeyNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	var theirs error
	err = item.Value(func(v []byte) error {
		if item.UserMeta() != metaApart {
			theirs = fn(v)
			return theirs
		}
		p, err := readPlace(v)
		if err != nil {
			return err
		}
		w := window{blobs: s.blobs}
		if v, err = w.value(p); err != nil {
			return err
		}
		theirs = fn(v)
		return theirs
	})
	return true, unreadable(err, theirs)
}

func (s *badgerSnapshot) Iterate(from, to []byte, fn func([]byte, func() ([]byte, error)) error) error {
	return s.db.guarded(func() error { return iterate(s.txn, s.blobs, from, to, fn) })
}

// iterate is Iterate in a transaction. The files must be pinned.
func iterate(txn *badger.Txn, files *blobs, from, to []byte, fn func([]byte, func() ([]byte, error)) error) error {
	o := badger.DefaultIteratorOptions
	o.PrefetchValues = false
	o.Prefix = commonPrefix(from, to)
	it := txn.NewIterator(o)
	defer it.Close()
	ahead := window{blobs: files}
	var buf []byte
	for it.Seek(from); it.Valid(); it.Next() {
		item := it.Item()
		key := item.Key()
		if bytes.Compare(key, to) >= 0 {
			return nil
		}
		err := fn(key, func() ([]byte, error) {
			v, err := item.ValueCopy(buf)
			if err != nil {
				return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
			}
			buf = v[:0]
			if item.UserMeta() != metaApart {
				return v, nil
			}
			p, err := readPlace(v)
			if err != nil {
				return nil, err
			}
			return ahead.value(p)
		})
		if err != nil {
			return err
		}
	}
	return nil
}
