// This file reads a store as it was at one moment, while it is in use.
//
// The engine provides a snapshot of its keys and keeps the files that they refer to; marks.Set
// keeps the files of marks. What is valid is determined as in Recover, but nothing is deleted.

package spill

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/seed-7440039f/frontier/spill/internal/blocks"
	"github.com/seed-7440039f/frontier/spill/internal/keys"
	"github.com/seed-7440039f/frontier/spill/internal/kv"
	"github.com/seed-7440039f/frontier/spill/internal/marks"
	"github.com/seed-7440039f/frontier/storage"
)

const marksTold = 512 // marks passed in one call

// snapshot is a storage.Snapshot.
type snapshot struct {
	s     *Store
	db    kv.Snapshot
	marks []*marks.File
	state state
	last  uint64 // batch

	use      sync.RWMutex // held for reading by every method, for writing by Release
	released bool         // guarded by use

	survey sync.Once
	found  recovery // what is valid, after survey
	err    error    // after survey
}

// Snapshot returns the store as it is now.
func (s *Store) Snapshot() (storage.Snapshot, error) {
	if err := s.enter(); err != nil {
		return nil, fmt.Errorf("spill: snapshot: %w", err)
	}
	defer s.leave()
	s.turn.Lock() // no batch is half written, and the state agrees with the marks
	defer s.turn.Unlock()
	x, err := s.snapshotLocked()
	if err != nil {
		return nil, fmt.Errorf("spill: snapshot: %w", err)
	}
	return x, nil
}

func (s *Store) snapshotLocked() (*snapshot, error) {
	db, err := s.db.Snapshot()
	if err != nil {
		return nil, err
	}
	x := &snapshot{s: s, db: db, marks: s.marks.Pin(), state: s.state, last: s.last}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.snapshots = append(s.snapshots, x)
	return x, nil
}

// Release frees what the snapshot kept.
func (x *snapshot) Release() {
	s := x.s
	s.mu.Lock()
	s.snapshots = slices.DeleteFunc(s.snapshots, func(y *snapshot) bool { return x == y })
	s.mu.Unlock()
	x.end()
}

func (x *snapshot) end() {
	x.use.Lock()
	defer x.use.Unlock()
	if x.released {
		return
	}
	x.released = true
	x.db.Release()
	x.s.discardRuns(x.s.marks.Unpin(x.marks))
	x.s.reclaimer.wake()
}

// endSnapshots ends the snapshots that their users have not released.
func (s *Store) endSnapshots() {
	s.mu.Lock()
	left := s.snapshots
	s.snapshots = nil
	s.mu.Unlock()
	for _, x := range left {
		x.end()
	}
}

// read calls fn with what is valid, unless the snapshot was released.
func (x *snapshot) read(what string, fn func(recovery) error) error {
	x.use.RLock()
	defer x.use.RUnlock()
	if x.released {
		return fmt.Errorf("spill: snapshot: %s: %w", what, storage.ErrClosed)
	}
	x.survey.Do(func() { x.err = x.find() })
	if x.err != nil {
		return fmt.Errorf("spill: snapshot: %w", x.err)
	}
	rc := x.found
	err := fn(rc)
	if said, ok := errors.AsType[*usersError](err); ok {
		return said.error
	}
	if err != nil {
		return fmt.Errorf("spill: snapshot: %s: %w", what, err)
	}
	return nil
}

// usersError is an error returned by the caller's function.
type usersError struct{ error }

func theirs(err error) error {
	if err != nil {
		return &usersError{err}
	}
	return nil
}

// find determines what is valid.
func (x *snapshot) find() error {
	rc := recovery{s: x.s, db: x.db, ctx: context.Background(), state: x.state, upTo: x.last}
	if err := rc.survey(); err != nil {
		return err
	}
	if err := rc.surveyLog(); err != nil {
		return err
	}
	x.found = rc
	return nil
}

// Dead is for the frontier.
func (x *snapshot) Dead(fn func(block uint32, bits []byte) error) error {
	return x.read("dead bits", func(rc recovery) error {
		rc.to = teller{dead: fn}
		return rc.told(rc.deadBits())
	})
}

// Batches is for the frontier.
func (x *snapshot) Batches(fn func(*storage.Batch) error) error {
	return x.read("log", func(rc recovery) error {
		rc.to = teller{batch: fn}
		return rc.told(rc.batches())
	})
}

// Rows is for the frontier.
func (x *snapshot) Rows(prefix string, fn func(key string, value []byte) error) error {
	return x.read("rows", func(rc recovery) error {
		rc.to = teller{row: fn}
		return rc.told(rc.rowsFrom(prefix, afterPrefix(keys.Row(prefix))))
	})
}

// told separates the user's errors from the store's.
func (rc *recovery) told(err error) error {
	if rc.theirs != nil {
		return theirs(rc.theirs)
	}
	return err
}

// teller is a Recovery that passes on part of what it receives.
type teller struct {
	storage.Recovery
	dead  func(block uint32, bits []byte) error
	batch func(*storage.Batch) error
	row   func(key string, value []byte) error
}

func (t teller) Dead(block uint32, bits []byte) error { return t.dead(block, bits) }
func (t teller) Batch(b *storage.Batch) error         { return t.batch(b) }
func (t teller) Row(key string, value []byte) error   { return t.row(key, value) }

// Records is for the frontier.
func (x *snapshot) Records(fn func(block uint32, pos int, r *storage.TimedRecord) error) error {
	return x.read("blocks", func(rc recovery) error {
		var b blocks.Block
		return rc.values(keys.KindBlock, func(_ uint32, key, v []byte) error {
			block, _ := keys.Number(key)
			if !rc.has(block) {
				return nil
			}
			if err := b.Fill(key, v, false); err != nil {
				return keys.Corrupt(key, err)
			}
			err := b.Each(func(pos int, r *storage.TimedRecord) error { return theirs(fn(block, pos, r)) })
			return unlessTheirs(key, err)
		})
	})
}

// Timed is for the frontier.
func (x *snapshot) Timed(fn func(block uint32, pos int, r *storage.TimedRecord) error) error {
	return x.read("timed blocks", func(rc recovery) error {
		var raw []byte
		return rc.values(keys.KindTimed, func(_ uint32, key, v []byte) (err error) {
			block, _ := keys.Number(key)
			if !rc.has(block) {
				return nil
			}
			if raw, err = blocks.OpenTimed(raw, key, v); err != nil {
				return keys.Corrupt(key, err)
			}
			var said error
			err = blocks.ReadTimed(raw, true, func(pos int, r storage.TimedRecord) bool {
				said = theirs(fn(block, pos, &r))
				return said == nil
			})
			if err == nil {
				err = said
			}
			return unlessTheirs(key, err)
		})
	})
}

// unlessTheirs makes err one of damage unless the caller's function said it.
func unlessTheirs(key []byte, err error) error {
	if _, said := errors.AsType[*usersError](err); said {
		return err
	}
	return keys.Corrupt(key, err)
}

// Marks is for the frontier.
func (x *snapshot) Marks(fn func([]storage.Mark) error) error {
	return x.read("marks", func(recovery) error {
		ms := make([]storage.Mark, 0, marksTold)
		var last storage.Mark
		any := false
		err := marks.Each(x.marks, func(hi uint64, lo uint32) error {
			m := marks.JoinMark(hi, lo)
			if any && m == last {
				return nil
			}
			last, any = m, true
			if ms = append(ms, m); len(ms) < cap(ms) {
				return nil
			}
			err := theirs(fn(ms))
			ms = ms[:0]
			return err
		})
		if err == nil && len(ms) > 0 {
			err = theirs(fn(ms))
		}
		return err
	})
}
