// This file reads a store as it was at one moment, while it goes on changing.
//
// The engine has a snapshot of its keys and keeps the files that they point to;
// the files of marks are kept by markSet. What is valid is found as Recover finds
// it, but nothing is deleted.

package spill

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/spill/internal/kv"
)

const marksTold = 512 // marks that are told in one call

// snapshot is a frontier.Snapshot.
type snapshot struct {
	s     *Store
	db    kv.Snapshot
	marks []*runFile
	state state
	last  uint64 // batch

	use      sync.RWMutex // held for reading by every method, for writing by Release
	released bool         // guarded by use

	survey sync.Once
	found  recovery // after survey; what is valid
	err    error    // after survey
}

// Snapshot returns the store as it is now.
func (s *Store) Snapshot() (frontier.Snapshot, error) {
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
	x := &snapshot{s: s, db: db, marks: s.marks.pin(), state: s.state, last: s.last}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.snapshots = append(s.snapshots, x)
	return x, nil
}

// Release gives back what the snapshot kept.
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
	x.s.discardRuns(x.s.marks.unpin(x.marks))
	x.s.reclaimer.wake()
}

// endSnapshots ends those that their users did not.
func (s *Store) endSnapshots() {
	s.mu.Lock()
	left := s.snapshots
	s.snapshots = nil
	s.mu.Unlock()
	for _, x := range left {
		x.end()
	}
}

// read calls fn, with what is valid, unless the snapshot was released.
func (x *snapshot) read(what string, fn func(recovery) error) error {
	x.use.RLock()
	defer x.use.RUnlock()
	if x.released {
		return fmt.Errorf("spill: snapshot: %s: %w", what, frontier.ErrClosed)
	}
	x.survey.Do(func() { x.err = x.find() })
	if x.err != nil {
		return fmt.Errorf("spill: snapshot: %w", x.err)
	}
	rc := x.found
	err := fn(rc)
	var said *usersError
	switch {
	case errors.As(err, &said):
		return said.error
	case err != nil:
		return fmt.Errorf("spill: snapshot: %s: %w", what, err)
	}
	return nil
}

// usersError is what the caller's function said.
type usersError struct{ error }

func theirs(err error) error {
	if err != nil {
		return &usersError{err}
	}
	return nil
}

// find finds out what is valid.
func (x *snapshot) find() error {
	rc := recovery{s: x.s, db: x.db, ctx: context.Background(), state: x.state, upTo: x.last}
	if err := rc.survey(); err != nil {
		return err
	}
	if err := rc.surveyLog(); err != nil {
		return err
	}
	rc.log = slices.DeleteFunc(rc.log, func(e logEntry) bool { return !e.head })
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
func (x *snapshot) Batches(fn func(*frontier.Batch) error) error {
	return x.read("log", func(rc recovery) error {
		rc.to = teller{batch: fn}
		return rc.told(rc.batches())
	})
}

// Rows is for the frontier.
func (x *snapshot) Rows(prefix string, fn func(key string, value []byte) error) error {
	return x.read("rows", func(rc recovery) error {
		rc.to = teller{row: fn}
		return rc.told(rc.rowsOf(prefix))
	})
}

// told tells the user's error from ours.
func (rc *recovery) told(err error) error {
	if rc.theirs != nil {
		return theirs(rc.theirs)
	}
	return err
}

// teller is a Recovery that passes on some of what it is told.
type teller struct {
	frontier.Recovery
	dead  func(block uint32, bits []byte) error
	batch func(*frontier.Batch) error
	row   func(key string, value []byte) error
}

func (t teller) Dead(block uint32, bits []byte) error { return t.dead(block, bits) }
func (t teller) Batch(b *frontier.Batch) error        { return t.batch(b) }
func (t teller) Row(key string, value []byte) error   { return t.row(key, value) }

// Records is for the frontier.
func (x *snapshot) Records(fn func(block uint32, pos int, r *frontier.TimedRecord) error) error {
	return x.read("blocks", func(rc recovery) error {
		var raw []byte
		var t frontier.TimedRecord
		return rc.values(kindBlock, func(_ uint32, key, v []byte) error {
			block, _ := number(key)
			if !rc.has(block) {
				return nil
			}
			dir, body, err := splitBlock(key, v)
			if err == nil {
				raw, err = inflate(raw, body, blockRawLimit)
			}
			if err != nil {
				return corrupt(key, err)
			}
			err = readDirectory(dir, nil, func(e partEntry) error {
				t.Queue = e.queue
				return readRecords(raw, e, 1<<32-1, func(i int, r frontier.Record) error {
					t.Record = r
					return theirs(fn(block, int(e.first)+i, &t))
				})
			})
			return unlessTheirs(key, err)
		})
	})
}

// Timed is for the frontier.
func (x *snapshot) Timed(fn func(block uint32, pos int, r *frontier.TimedRecord) error) error {
	return x.read("timed blocks", func(rc recovery) error {
		var raw []byte
		return rc.values(kindTimed, func(_ uint32, key, v []byte) (err error) {
			block, _ := number(key)
			if !rc.has(block) {
				return nil
			}
			if raw, err = openTimed(raw, key, v); err != nil {
				return corrupt(key, err)
			}
			var said error
			err = readTimed(raw, true, func(pos int, r frontier.TimedRecord) bool {
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
	var said *usersError
	if err == nil || errors.As(err, &said) {
		return err
	}
	return corrupt(key, err)
}

// Marks is for the frontier.
func (x *snapshot) Marks(fn func([]frontier.Mark) error) error {
	return x.read("marks", func(recovery) error {
		ms := make([]frontier.Mark, 0, marksTold)
		var last frontier.Mark
		any := false
		err := eachMark(x.marks, func(hi uint64, lo uint32) error {
			m := joinMark(hi, lo)
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
