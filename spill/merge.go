// This file merges runs, so that looking up a mark needs to read few of them.
//
// A merge runs concurrently with everything else, in small steps. Only at its end does it write the
// state that lists the new run instead of the old ones. A crash before that leaves a file that the
// state does not list, a crash after it leaves the files of the old runs; Recover removes both.

package spill

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/seed-7440039f/frontier/spill/internal/marks"
)

// merger merges runs in the background, one merge after the other.
type merger struct {
	mu      sync.Mutex
	running bool          // guarded by mu
	again   bool          // guarded by mu; look again when done
	halt    chan struct{} // guarded by mu; closed to stop early
	done    chan struct{} // guarded by mu; closed when running ends
}

// mergeLater merges what is due, in the background if the store has background work.
func (s *Store) mergeLater() {
	if s.tidyNow {
		s.mergeAll(nil)
		return
	}
	m := &s.merger
	m.mu.Lock()
	defer m.mu.Unlock()
	m.again = true
	if m.running {
		return
	}
	m.running = true
	m.halt, m.done = make(chan struct{}), make(chan struct{})
	go s.mergeLoop(m.halt, m.done)
}

func (s *Store) mergeLoop(halt, done chan struct{}) {
	defer close(done)
	m := &s.merger
	for {
		m.mu.Lock()
		if !m.again || halted(halt) {
			m.running = false
			m.mu.Unlock()
			return
		}
		m.again = false
		m.mu.Unlock()
		s.mergeAll(halt)
	}
}

// stop interrupts the merge and waits until it has ended.
func (m *merger) stop() {
	m.mu.Lock()
	running, done := m.running, m.done
	if running && !halted(m.halt) {
		close(m.halt)
	}
	m.mu.Unlock()
	if running {
		<-done
	}
}

func halted(halt chan struct{}) bool {
	select {
	case <-halt:
		return true
	default:
		return false
	}
}

// mergeAll merges what is due, and what becomes due as a result. A merge that fails is tried again
// after the next checkpoint.
func (s *Store) mergeAll(halt chan struct{}) {
	defer s.marks.Reserve(0)
	var err error
	for err == nil {
		in := s.marks.Policy.Due(s.marks.List())
		if len(in) == 0 {
			break
		}
		err = s.merge(in, halt)
	}
	if err != errStopped {
		err = errors.Join(err, s.marks.FitFilters())
	}
	if err != nil && err != errStopped {
		s.opts.Logger.Warn("spill: merge marks", "error", err)
	}
}

// merge merges in into one run.
func (s *Store) merge(in []*marks.Run, halt chan struct{}) error {
	ref, err := s.mergeFile(in, halt)
	if err != nil {
		return err
	}
	in, fold := s.marks.MakeRoom(in, ref.Count)
	fresh, err := marks.Open(s.db, ref, fold)
	if err != nil {
		s.removeRuns([]uint32{ref.ID})
		return err
	}
	if err := s.swapRuns(in, fresh); err != nil {
		return err
	}
	s.discardRuns(s.marks.Retire(in))
	return nil
}

// discardRuns closes and removes files of runs that are no longer read.
func (s *Store) discardRuns(gone []*marks.File) {
	var ids []uint32
	for _, r := range gone {
		if err := r.CloseFile(); err != nil {
			s.opts.Logger.Warn("spill: close a run", "error", err)
		}
		ids = append(ids, r.ID)
	}
	s.removeRuns(ids)
}

// mergeFile writes the file of the run that replaces in.
func (s *Store) mergeFile(in []*marks.Run, halt chan struct{}) (marks.Ref, error) {
	var level uint8
	var limit uint64
	for _, r := range in {
		level = max(level, r.Level)
		limit += r.Count
	}
	w, err := marks.Create(s.db, s.marks.NewID(), limit)
	if err != nil {
		return marks.Ref{}, err
	}
	if err = s.mergeInto(w, in, halt); err == nil {
		var ref marks.Ref
		if ref, err = w.Finish(min(level, 254) + 1); err == nil {
			return ref, nil
		}
	}
	s.abandon(w)
	return marks.Ref{}, err
}

// mergeInto writes the marks of in, in order, a step at a time.
func (s *Store) mergeInto(w *marks.Writer, in []*marks.Run, halt chan struct{}) error {
	var files []*marks.File
	for _, r := range in {
		files = append(files, r.File)
	}
	n := 0
	return marks.Each(files, func(hi uint64, lo uint32) error {
		if n++; n%marks.MergeStep == 0 {
			if err := s.mergePause(w, n/marks.MergeStep, halt); err != nil {
				return err
			}
		}
		return w.Add(hi, lo)
	})
}

// mergePause leaves the disk to others for a while. It returns an error when the merge should end.
func (s *Store) mergePause(w *marks.Writer, step int, halt chan struct{}) error {
	if step%marks.MergeSync == 0 {
		if err := w.Sync(); err != nil {
			return err
		}
	}
	if s.tidyNow {
		return nil
	}
	select {
	case <-halt:
	case <-time.After(tidyPause):
		if !halted(halt) {
			return nil
		}
	}
	return errStopped
}

// swapRuns writes the state in which fresh replaces in. In the background it waits for turn; inside
// Checkpoint the caller already holds it.
func (s *Store) swapRuns(in []*marks.Run, fresh *marks.Run) error {
	if !s.tidyNow {
		s.turn.Lock()
		defer s.turn.Unlock()
	}
	next := s.current()
	merged := func(ref marks.Ref) bool {
		return slices.ContainsFunc(in, func(r *marks.Run) bool { return r.ID == ref.ID })
	}
	next.runs = append(slices.DeleteFunc(slices.Clone(s.state.runs), merged), fresh.Ref)
	if err := s.putState(next); err != nil {
		s.retract(fresh)
		s.dropOrphanRuns()
		return err
	}
	s.marks.Replace(in, fresh)
	return nil
}
