// This file copies a store as it was at one moment, while it is in use.

package spill

import (
	"context"
	"errors"
	"fmt"

	"github.com/seed-7440039f/frontier/internal/durablefs"
	"github.com/seed-7440039f/frontier/spill/internal/kv"
	"github.com/seed-7440039f/frontier/spill/internal/marks"
	"github.com/seed-7440039f/frontier/storage"
)

// CopyTo copies the store to folder dir, which must not exist, as a backup: its state at the time
// of the call, with everything acknowledged before. The copy is an ordinary store, which Open
// opens; a frontier on it finds what it would find if the process had died at this moment.
//
// A frontier must be using the store, and can continue to: a commit is delayed for a moment, as by
// another commit. Blocks and known URLs are not copied but hard-linked if dir is on the same
// volume, so the copy takes little time and space; obsolete data is left out. The copy then shares
// files with the store, but neither changes what the other reads. Memory is bounded, at about 30
// MB, whatever the size of the store. Obsolete space is reclaimed only after the copy is complete.
//
// dir appears when the copy is complete, and survives a loss of power. Until then it is called
// .NAME.partial-NUMBER, in the same folder. If CopyTo fails, or ctx ends, it removes this folder;
// if the process dies, the folder remains and may be deleted. The error wraps fs.ErrExist if dir
// exists, syscall.ENOSPC if less than Options.DiskReserve would be left on its volume, and
// storage.ErrClosed after Close. An error does not affect the store.
//
// CopyTo may be called from any number of goroutines, concurrently with everything else except
// Release and Close, which wait for it.
func (s *Store) CopyTo(ctx context.Context, dir string) error {
	if err := s.enter(); err != nil {
		return fmt.Errorf("spill: copy: %w", err)
	}
	defer s.leave()
	if err := durablefs.MakeFolder(ctx, dir, func(dir string) error { return s.fill(ctx, dir) }); err != nil {
		return fmt.Errorf("spill: copy to %s: %w", dir, err)
	}
	return nil
}

// fill writes the copy.
func (s *Store) fill(ctx context.Context, dir string) error {
	x, err := s.sound()
	if err != nil {
		return err
	}
	defer x.Release()
	x.use.RLock()
	defer x.use.RUnlock()
	if x.released {
		return storage.ErrClosed
	}
	c, ok := x.db.(kv.Copier)
	if !ok {
		return fmt.Errorf("this store is in memory: %w", errors.ErrUnsupported)
	}
	files := make([]string, len(x.marks))
	for i, r := range x.marks {
		files[i] = marks.NameOf(r.ID)
	}
	return c.CopyTo(ctx, dir, x.last, files)
}

// sound returns a snapshot that contains nothing of failed writes.
func (s *Store) sound() (*snapshot, error) {
	s.turn.Lock()
	defer s.turn.Unlock()
	if len(s.undo.logs) > 0 || s.undo.state {
		if err := s.settle(false); err != nil {
			return nil, err
		}
	}
	return s.snapshotLocked()
}
