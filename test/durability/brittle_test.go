// This file is a Spill that fails at the n-th of its calls.

package durability

import (
	"context"
	"sync"
	"time"

	"github.com/seed-7440039f/frontier/storage"
)

// trouble is what happens to a call.
type trouble struct {
	err  error         // nil: the call succeeds
	late bool          // it has done its work by then, if that is allowed
	wait time.Duration // it takes so much longer
}

// brittle is a Spill one of whose calls has trouble. Calls are counted whichever
// method they are of, unless only names one.
type brittle struct {
	storage.Spill

	only string // "", or the one method whose calls count

	mu    sync.Mutex
	calls int     // guarded by mu
	at    int     // guarded by mu; which of them it is
	next  trouble // guarded by mu
	what  string  // guarded by mu; the method that it was
}

// breaks lets the n-th call from now on (1 is the next) have trouble.
func (s *brittle) breaks(n int, x trouble) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls, s.at, s.next, s.what = 0, n, x, ""
}

// broke names the method it was that had trouble; "": none had.
func (s *brittle) broke() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.what
}

func (s *brittle) trouble(what string) (x trouble) {
	if s.only != "" && what != s.only {
		return x
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls++; s.calls == s.at {
		x, s.what = s.next, what
	}
	return x
}

// before is for calls that do nothing if they fail.
func (s *brittle) before(what string, do func() error) error {
	x := s.trouble(what)
	time.Sleep(x.wait)
	if x.err != nil {
		return x.err
	}
	return do()
}

// around is for calls whose failure says nothing of what they did.
func (s *brittle) around(what string, do func() error) error {
	x := s.trouble(what)
	time.Sleep(x.wait)
	if x.err != nil && !x.late {
		return x.err
	}
	if err := do(); err != nil {
		return err
	}
	return x.err
}

func (s *brittle) Recover(ctx context.Context, r storage.Recovery) error {
	x := s.trouble("Recover")
	time.Sleep(x.wait)
	if x.err != nil && !x.late {
		return x.err
	}
	if err := s.Spill.Recover(ctx, r); err != nil || x.err == nil {
		return err
	}
	_ = s.Spill.Release() // as after a failure at the last moment
	return x.err
}

// Commit never fails late: nothing of a batch whose Commit failed may come back, and
// the same holds for Checkpoint, Pack and PackTimed.
func (s *brittle) Commit(b *storage.Batch) error {
	return s.before("Commit", func() error { return s.Spill.Commit(b) })
}

func (s *brittle) Checkpoint(c *storage.Checkpoint) error {
	return s.before("Checkpoint", func() error { return s.Spill.Checkpoint(c) })
}

func (s *brittle) Pack(gen uint32, runs []storage.Run) (parts [][]storage.Part, err error) {
	err = s.before("Pack", func() (err error) { parts, err = s.Spill.Pack(gen, runs); return err })
	if err != nil {
		return nil, err
	}
	return parts, nil
}

func (s *brittle) PackTimed(gen uint32, rs []storage.TimedRecord) (blocks []storage.TimedBlock, err error) {
	err = s.before("PackTimed", func() (err error) { blocks, err = s.Spill.PackTimed(gen, rs); return err })
	if err != nil {
		return nil, err
	}
	return blocks, nil
}

func (s *brittle) PackMarks(gen uint32, ms []storage.Mark) error {
	return s.around("PackMarks", func() error { return s.Spill.PackMarks(gen, ms) })
}

func (s *brittle) Load(p storage.Part, want uint32, fn func(int, storage.Record)) error {
	return s.around("Load", func() error { return s.Spill.Load(p, want, fn) })
}

func (s *brittle) LoadTimed(block uint32, from int, fn func(int, storage.TimedRecord) bool) error {
	return s.around("LoadTimed", func() error { return s.Spill.LoadTimed(block, from, fn) })
}

func (s *brittle) Known(ms []storage.Mark, known []bool) error {
	return s.around("Known", func() error { return s.Spill.Known(ms, known) })
}

func (s *brittle) Recall(fn func([]storage.Mark) bool) error {
	return s.around("Recall", func() error { return s.Spill.Recall(fn) })
}

func (s *brittle) Row(key string) (value []byte, found bool, err error) {
	err = s.before("Row", func() (err error) { value, found, err = s.Spill.Row(key); return err })
	return value, found, err
}

func (s *brittle) Snapshot() (x storage.Snapshot, err error) {
	err = s.before("Snapshot", func() (err error) { x, err = s.Spill.Snapshot(); return err })
	if err != nil {
		return nil, err
	}
	return &brittleSnapshot{x, s}, nil
}

// Release is of use however it ends.
func (s *brittle) Release() error {
	x := s.trouble("Release")
	time.Sleep(x.wait)
	if err := s.Spill.Release(); err != nil {
		return err
	}
	return x.err
}

type brittleSnapshot struct {
	storage.Snapshot
	s *brittle
}

func (x *brittleSnapshot) Dead(fn func(uint32, []byte) error) error {
	return x.s.around("Snapshot.Dead", func() error { return x.Snapshot.Dead(fn) })
}

func (x *brittleSnapshot) Records(fn func(uint32, int, *storage.TimedRecord) error) error {
	return x.s.around("Snapshot.Records", func() error { return x.Snapshot.Records(fn) })
}

func (x *brittleSnapshot) Timed(fn func(uint32, int, *storage.TimedRecord) error) error {
	return x.s.around("Snapshot.Timed", func() error { return x.Snapshot.Timed(fn) })
}

func (x *brittleSnapshot) Batches(fn func(*storage.Batch) error) error {
	return x.s.around("Snapshot.Batches", func() error { return x.Snapshot.Batches(fn) })
}

func (x *brittleSnapshot) Rows(prefix string, fn func(string, []byte) error) error {
	return x.s.around("Snapshot.Rows", func() error { return x.Snapshot.Rows(prefix, fn) })
}

func (x *brittleSnapshot) Marks(fn func([]storage.Mark) error) error {
	return x.s.around("Snapshot.Marks", func() error { return x.Snapshot.Marks(fn) })
}
