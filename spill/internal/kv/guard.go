// This file returns errors where badger would panic, end the process or retry forever, for lack of
// a descriptor or space, or because the medium fails.
//
// Before badger begins another table, its needs are checked: descriptors, some of which are
// reserved for it, space, and whether it has written the previous tables. After an error of badger
// in a commit it is not used any more: part of the commit may be missing.

package kv

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"github.com/seed-7440039f/frontier/internal/durablefs"
	"github.com/seed-7440039f/frontier/storage"
)

const (
	spareFiles = 6  // descriptors kept for badger, twice
	openFiles  = 24 // for opening a store, in addition to one for each file
	waitStep   = 5 * time.Millisecond
	waitFlush  = 30 * time.Second // for a table to be written
	faultFresh = 3 * time.Second  // badger tries again each second
	faultQuiet = time.Minute      // a fault of the same kind is reported again after this time without one
	closeWait  = 10 * time.Second
)

// downError is why badger is not touched any more.
type downError struct{ err error }

func (e *downError) Error() string {
	return "kv: the engine failed, and works again when the store is opened again: " + e.err.Error()
}

func (e *downError) Unwrap() []error { return []error{e.err, storage.ErrReopen} }

// fail notes that badger must not be touched any more.
func (d *Badger) fail(err error) error {
	e := &downError{err}
	if d.down.CompareAndSwap(nil, e) {
		d.log.Error("kv: the engine failed; nothing is written until the store is opened again", "error", err)
	}
	return d.down.Load()
}

// guarded runs fn, which uses badger, unless badger failed before. If mapped memory cannot be
// accessed, because its file cannot, it returns an error.
func (d *Badger) guarded(fn func() error) (err error) {
	if e := d.down.Load(); e != nil {
		return e
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = d.caught(p)
		}
	}()
	return fn()
}

// caught converts a panic of badger to an error; other panics continue.
func (d *Badger) caught(p any) error {
	e, ok := p.(runtime.Error)
	if !ok {
		panic(p)
	}
	if _, ok := p.(interface{ Addr() uintptr }); ok {
		return d.fail(e)
	}
	d.turn.Lock() // a commit that fails now leaves badger without a table in memory
	defer d.turn.Unlock()
	if e := d.down.Load(); e != nil {
		return e
	}
	panic(p)
}

// spare are descriptors that are kept until badger needs some.
type spare struct {
	dir  string
	held []*os.File
}

// take opens the reserved descriptors, and checks that one more is available.
func (s *spare) take() error {
	for len(s.held) < spareFiles {
		f, err := os.Open(s.dir)
		if err != nil {
			return err
		}
		s.held = append(s.held, f)
	}
	f, err := os.Open(s.dir)
	if err != nil {
		return err
	}
	return f.Close()
}

func (s *spare) give() {
	for _, f := range s.held {
		_ = f.Close()
	}
	s.held = nil
}

// enoughFiles returns an error unless n descriptors are available.
func enoughFiles(dir string, n int) error {
	s := spare{dir: dir}
	defer s.give()
	for range n {
		f, err := os.Open(dir)
		if err != nil {
			return fmt.Errorf("opening takes %d file descriptors: %w", n, err)
		}
		s.held = append(s.held, f)
	}
	return nil
}

// ready returns an error if badger lacks what it needs to begin another table. The caller holds turn.
func (d *Badger) ready() error {
	if err := d.logs.ahead(); err != nil {
		return err
	}
	if err := d.flushed(); err != nil {
		return err
	}
	// The table that is full now, and the log after the next.
	if err := durablefs.Space(d.path, uint64(4*d.table), 0); err != nil {
		return err
	}
	return d.spare.take()
}

// flushed waits while more tables than badger can queue wait to be written. It returns an error if
// badger reports that it cannot write them, or reports nothing for long.
func (d *Badger) flushed() error {
	for begun := time.Now(); d.logs.waiting() >= tables && d.unwritten() >= tables; time.Sleep(waitStep) {
		if err := d.faults.fresh(); err != nil {
			return fmt.Errorf("the engine cannot write its tables: %w", err)
		}
		if time.Since(begun) > waitFlush {
			return fmt.Errorf("the engine has not written a table for %v", waitFlush)
		}
	}
	return nil
}

// unwritten returns how many logs have data that is in no table on disk. Other logs remain only
// because they are being read.
func (d *Badger) unwritten() (n int) {
	last := uint64(0)
	for _, t := range d.db.Tables() {
		last = max(last, t.MaxVersion)
	}
	for _, l := range d.logs.logs[:len(d.logs.logs)-1] {
		if l.last > last {
			n++
		}
	}
	return n
}

// faults are badger's last messages about failed background work.
type faults struct {
	mu     sync.Mutex
	text   string               // guarded by mu
	at     time.Time            // guarded by mu
	latest map[string]time.Time // guarded by mu; by kind
}

// note reports whether this kind of fault is new: badger retries every second.
func (f *faults) note(kind, text string) (news bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.text, f.at = text, time.Now()
	last, known := f.latest[kind]
	if f.latest == nil {
		f.latest = map[string]time.Time{}
	}
	f.latest[kind] = f.at
	return !known || f.at.Sub(last) > faultQuiet
}

// fresh returns the latest message if it is recent.
func (f *faults) fresh() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.text == "" || time.Since(f.at) > faultFresh {
		return nil
	}
	return errors.New(f.text)
}

// closeDB closes badger. It returns an error if badger cannot write its tables in memory, which are
// also in its logs; badger then retries until the process ends.
func (d *Badger) closeDB() error {
	if d.gate.stuck.Load() {
		return fmt.Errorf("kv: the engine cannot be closed, and has the folder until the process ends: %w", d.down.Load())
	}
	if err := durablefs.Space(d.path, uint64(2*d.table), 0); err != nil {
		return fmt.Errorf("kv: the last table is not written, and the folder in use until the process ends: %w", err)
	}
	done := make(chan error, 1)
	go func() {
		defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
		defer func() {
			if p := recover(); p != nil {
				done <- fmt.Errorf("kv: close: %v", p)
			}
		}()
		done <- d.db.Close()
	}()
	for begun := time.Now(); ; {
		select {
		case err := <-done:
			return err
		case <-time.After(100 * time.Millisecond):
		}
		if err := d.faults.fresh(); err != nil && time.Since(begun) > closeWait {
			return fmt.Errorf("kv: the engine cannot be closed, and has the folder until the process ends: %w", err)
		}
	}
}
