// This file copies a store as it was at one moment, while it goes on changing.

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

// CopyTo copies the store into folder dir, which must not exist, for a backup: as it
// is now, with all that was acknowledged before the call. The copy is a store like
// any other, which Open opens; the frontier on it finds what it would find after the
// death of the process at this moment.
//
// A frontier must have the store, and goes on meanwhile: a commit waits for a moment
// as it does for another commit. Blocks and known URLs are not copied but get second
// names (hard links) if dir is on the same volume, so that the copy takes little time
// and space; what is of no use is left out. It shares files with the store, then, but
// neither changes what the other reads. Memory is bounded, at about 30 MB, however large the
// store is. Space that
// becomes of no use is given back when the copy is complete.
//
// dir appears when the copy is complete and survives a loss of power: until then it is
// called .NAME.partial-NUMBER, in the same folder. After an error, and if ctx ends,
// nothing of it is left; after the death of the process, that is, and may be removed.
// The error wraps fs.ErrExist if dir exists, syscall.ENOSPC if its volume would have
// less than Options.DiskReserve left, and storage.ErrClosed after Close. The store is
// as well after an error as before.
//
// Any number of goroutines may call it, beside everything else but Release and Close,
// which wait for it.
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

// sound is a snapshot in which nothing is that failed.
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
