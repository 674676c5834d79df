// This file copies an index while it is in use.

package neardup

import (
	"context"
	"errors"
	"fmt"

	"github.com/dgraph-io/badger/v4"

	"github.com/seed-7440039f/frontier/internal/durablefs"
)

const (
	copyBytes   = 128 << 10 // of keys and values in one transaction
	copyReserve = 64 << 20  // bytes of a volume that a copy leaves free: badger crashes on a full volume
)

// CopyTo copies the index into folder dir, which must not exist, as a backup. The copy contains
// everything for which Add had returned before the call. Open opens it, with the same options. The
// index can be used meanwhile. dir gets its name when it is complete and survives a loss of power.
// After an error, or if ctx ends, nothing of it is left; the error wraps fs.ErrExist if dir exists,
// and syscall.ENOSPC if less than 64 MiB would be left on its volume.
func (x *Index) CopyTo(ctx context.Context, dir string) error {
	x.life.RLock()
	defer x.life.RUnlock()
	if x.closed {
		return ErrClosed
	}
	err := durablefs.MakeFolder(ctx, dir, func(dir string) error { return x.copyTo(ctx, dir) })
	if err != nil {
		return fmt.Errorf("neardup: copy to %s: %w", dir, err)
	}
	return nil
}

func (x *Index) copyTo(ctx context.Context, dir string) error {
	if err := durablefs.Space(dir, 0, copyReserve); err != nil {
		return err
	}
	o := x.opts
	o.Memory, o.Sync = 16<<20, false // MakeFolder syncs it
	to, err := badger.Open(o.engine(dir))
	if err != nil {
		return err
	}
	err = x.db.View(func(from *badger.Txn) error { return copyRows(ctx, dir, from, to) })
	return errors.Join(err, to.Close())
}

func copyRows(ctx context.Context, dir string, from *badger.Txn, to *badger.DB) error {
	txn, held := to.NewTransaction(true), 0
	defer func() { txn.Discard() }()
	flush := func() error {
		if err := errors.Join(ctx.Err(), durablefs.Space(dir, uint64(held), copyReserve)); err != nil {
			return err
		}
		if err := txn.Commit(); err != nil {
			return err
		}
		txn, held = to.NewTransaction(true), 0
		return nil
	}
	it := from.NewIterator(badger.IteratorOptions{})
	defer it.Close()
	for it.Rewind(); it.Valid(); it.Next() {
		value, err := it.Item().ValueCopy(nil)
		if err != nil {
			return err
		}
		key := it.Item().KeyCopy(nil)
		if held > 0 && held+len(key)+len(value) > copyBytes {
			if err := flush(); err != nil {
				return err
			}
		}
		held += len(key) + len(value)
		if err = txn.Set(key, value); errors.Is(err, badger.ErrTxnTooBig) { // many small ones
			if err = flush(); err == nil {
				held = len(key) + len(value)
				err = txn.Set(key, value)
			}
		}
		if err != nil {
			return err
		}
	}
	return flush()
}
