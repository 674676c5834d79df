// This file makes a DB fail where a test wants it to.

package kvtest

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/seed-7440039f/frontier/spill/internal/kv"
)

// Point is a place where a Faulty can fail.
type Point int

// The points, in the order in which a write passes them.
const (
	Write Point = iota // nothing of the write is applied; removing a file, too
	Sync               // the write, or all writes to a file, are applied; only their confirmation fails
	Read               // Get and each value of Iterate; Snapshot; each ReadAt of a file
	Open               // opening or making a file
	points
)

// Faulty is a kv.DB whose calls can be made to fail or to wait. A write to a file that fails with
// io.ErrShortWrite has written half, and a read that fails with io.ErrUnexpectedEOF has read half.
type Faulty struct {
	kv.DB

	mu    sync.Mutex
	rules []rule      // guarded by mu
	seen  [points]int // guarded by mu; calls so far
}

type rule struct {
	point Point
	n     int // calls until it applies; then it stays if forever
	last  bool
	err   error
	do    func()
}

// FailNth makes the n-th call from now on (1 is the next) fail with err.
func (f *Faulty) FailNth(p Point, n int, err error) { f.add(rule{point: p, n: n, err: err}) }

// FailFrom makes the n-th call from now on and all later ones fail with err.
func (f *Faulty) FailFrom(p Point, n int, err error) {
	f.add(rule{point: p, n: n, last: true, err: err})
}

// Before runs fn before the n-th call from now on, which waits for it.
func (f *Faulty) Before(p Point, n int, fn func()) { f.add(rule{point: p, n: n, do: fn}) }

// Heal removes all rules.
func (f *Faulty) Heal() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rules = nil
}

// Calls is how many calls passed p so far.
func (f *Faulty) Calls(p Point) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.seen[p]
}

func (f *Faulty) add(r rule) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rules = append(f.rules, r)
}

func (f *Faulty) pass(p Point) error {
	f.mu.Lock()
	f.seen[p]++
	var err error
	var do []func()
	kept := f.rules[:0:0]
	for _, r := range f.rules {
		if r.point == p {
			r.n--
			if r.n <= 0 {
				if r.do != nil {
					do = append(do, r.do)
				}
				if err == nil {
					err = r.err
				}
				if !r.last {
					continue
				}
			}
		}
		kept = append(kept, r)
	}
	f.rules = kept
	f.mu.Unlock()
	for _, fn := range do {
		fn()
	}
	return err
}

// Write is for the store.
func (f *Faulty) Write(b *kv.Batch, sync bool) error {
	if err := f.pass(Write); err != nil {
		return err
	}
	if err := f.DB.Write(b, sync); err != nil {
		return err
	}
	return f.pass(Sync)
}

// Sync is for the store.
func (f *Faulty) Sync() error {
	if err := f.DB.Sync(); err != nil {
		return err
	}
	return f.pass(Sync)
}

// Get is for the store.
func (f *Faulty) Get(key []byte, fn func([]byte) error) (bool, error) {
	return f.get(f.DB, key, fn)
}

// Peek is for the store. It finds nothing, so that every read passes Get.
func (f *Faulty) Peek(kv.Place, func([]byte) error) bool { return false }

func (f *Faulty) get(from kv.Reader, key []byte, fn func([]byte) error) (bool, error) {
	if err := f.pass(Read); err != nil {
		return false, err
	}
	return from.Get(key, fn)
}

// Iterate is for the store.
func (f *Faulty) Iterate(from, to []byte, fn func([]byte, func() ([]byte, error)) error) error {
	return f.iterate(f.DB, from, to, fn)
}

func (f *Faulty) iterate(r kv.Reader, from, to []byte, fn func([]byte, func() ([]byte, error)) error) error {
	return r.Iterate(from, to, func(k []byte, value func() ([]byte, error)) error {
		return fn(k, func() ([]byte, error) {
			if err := f.pass(Read); err != nil {
				return nil, err
			}
			return value()
		})
	})
}

// CreateFile is for the store.
func (f *Faulty) CreateFile(name string, size int64) (kv.FileWriter, error) {
	if err := f.pass(Open); err != nil {
		return nil, err
	}
	w, err := f.DB.CreateFile(name, size)
	if err != nil {
		return nil, err
	}
	return &faultyWriter{w, f}, nil
}

// RemoveFiles is for the store.
func (f *Faulty) RemoveFiles(names ...string) error {
	if len(names) == 0 {
		return nil
	}
	if err := f.Sync(); err != nil {
		return err
	}
	for _, name := range names {
		if err := f.pass(Write); err != nil {
			return err
		}
		if err := f.DB.RemoveFiles(name); err != nil {
			return err
		}
	}
	return nil
}

// OpenFile is for the store.
func (f *Faulty) OpenFile(name string) (kv.FileReader, error) {
	if err := f.pass(Open); err != nil {
		return nil, err
	}
	r, err := f.DB.OpenFile(name)
	if err != nil {
		return nil, err
	}
	return &faultyReader{r, f}, nil
}

type faultyWriter struct {
	kv.FileWriter
	f *Faulty
}

// WriteAt is for the store.
func (w *faultyWriter) WriteAt(p []byte, off int64) (int, error) {
	err := w.f.pass(Write)
	switch {
	case errors.Is(err, io.ErrShortWrite):
		n, also := w.FileWriter.WriteAt(p[:len(p)/2], off)
		return n, errors.Join(err, also)
	case err != nil:
		return 0, err
	}
	return w.FileWriter.WriteAt(p, off)
}

// Sync is for the store.
func (w *faultyWriter) Sync() error {
	if err := w.FileWriter.Sync(); err != nil {
		return err
	}
	return w.f.pass(Sync)
}

type faultyReader struct {
	kv.FileReader
	f *Faulty
}

// ReadAt is for the store.
func (r *faultyReader) ReadAt(p []byte, off int64) (int, error) {
	err := r.f.pass(Read)
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		n, also := r.FileReader.ReadAt(p[:len(p)/2], off)
		return n, errors.Join(err, also)
	case err != nil:
		return 0, err
	}
	return r.FileReader.ReadAt(p, off)
}

// Snapshot is called by the store. Its reads fail like those of the kv.DB.
func (f *Faulty) Snapshot() (kv.Snapshot, error) {
	if err := f.pass(Read); err != nil {
		return nil, err
	}
	s, err := f.DB.Snapshot()
	if err != nil {
		return nil, err
	}
	return &faultySnapshot{s, f}, nil
}

type faultySnapshot struct {
	kv.Snapshot
	f *Faulty
}

// CopyTo is for the store.
func (s *faultySnapshot) CopyTo(ctx context.Context, dir string, number uint64, files []string) error {
	if err := s.f.pass(Read); err != nil {
		return err
	}
	c, ok := s.Snapshot.(kv.Copier)
	if !ok {
		return errors.ErrUnsupported
	}
	return c.CopyTo(ctx, dir, number, files)
}

func (s *faultySnapshot) Get(key []byte, fn func([]byte) error) (bool, error) {
	return s.f.get(s.Snapshot, key, fn)
}

func (s *faultySnapshot) Iterate(from, to []byte, fn func([]byte, func() ([]byte, error)) error) error {
	return s.f.iterate(s.Snapshot, from, to, fn)
}
