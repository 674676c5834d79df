// This file merges runs, so that a mark is looked for in few of them.
//
// A level with enough runs becomes one run of the next level. The merge goes on
// beside everything else, in small steps; only at its end the state that names
// the new run in place of the old ones is written. A crash before leaves a file
// that nobody names, a crash after files of the old runs: Recover removes both.

package spill

import (
	"errors"
	"slices"
	"sync"
	"time"
)

const (
	fanOut    = 6 // runs of a level at which they are merged
	mergeMost = 8 // runs that are merged at once
	mergeStep = 64 * pageMarks
	// mergeBuffers is the memory of a merge, but for the index and the filter.
	mergeBuffers = (mergeMost + 2) * streamBuffer
)

// merger runs merges one after the other in the background.
type merger struct {
	mu      sync.Mutex
	running bool          // guarded by mu
	again   bool          // guarded by mu; look again when done
	halt    chan struct{} // guarded by mu; closed to end early
	done    chan struct{} // guarded by mu; closed when running ends
}

// mergeLater merges what is to be merged, in the background if there is one.
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

// stop ends the merging, where it is, and waits for that.
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

// mergeAll merges until no level has too many runs. What fails is tried again
// after the next checkpoint.
func (s *Store) mergeAll(halt chan struct{}) {
	defer s.marks.reserve(0)
	for {
		in := s.due(s.marks.list())
		if len(in) == 0 {
			break
		}
		if err := s.merge(in, halt); err != nil {
			if err != errStopped {
				s.opts.Logger.Warn("spill: merge marks", "err", err)
			}
			return
		}
	}
	if err := s.fitFilters(); err != nil {
		s.opts.Logger.Warn("spill: fit the filters of marks", "err", err)
	}
}

// due returns the runs to merge next: the oldest ones of the lowest level that
// has enough.
func (s *Store) due(runs []*run) []*run {
	levels := map[uint8][]*run{}
	lowest := -1
	for _, r := range runs {
		l := append(levels[r.level], r)
		levels[r.level] = l
		if len(l) >= s.fanOut && (lowest < 0 || int(r.level) < lowest) {
			lowest = int(r.level)
		}
	}
	if lowest < 0 {
		return nil
	}
	in := levels[uint8(lowest)]
	slices.SortFunc(in, func(a, b *run) int { return int(int64(a.id) - int64(b.id)) })
	return in[:min(len(in), mergeMost)]
}

// merge makes one run of in.
func (s *Store) merge(in []*run, halt chan struct{}) error {
	level := in[0].level
	if level < 255 {
		level++
	}
	var limit uint64
	for _, r := range in {
		limit += r.count
	}
	w, err := newRunWriter(s.db, s.marks.lastID.Add(1), limit)
	if err != nil {
		return err
	}
	err = s.mergeInto(w, in, halt)
	if err == errStopped {
		s.abandon(w)
		return err
	}
	// Always synced: the old files are removed when the new one counts.
	fresh, err := s.finishRun(w, err, level, true, s.foldOf(in, limit))
	if err != nil {
		return err
	}
	if err := s.swapRuns(in, fresh); err != nil {
		return err
	}
	s.retire(in)
	return nil
}

// mergeInto writes the marks of in, in order, a step at a time.
func (s *Store) mergeInto(w *runWriter, in []*run, halt chan struct{}) error {
	var cs []*cursor
	for _, r := range in {
		c := newCursor(r)
		ok, err := c.advance()
		if err != nil {
			return err
		}
		if ok {
			cs = append(cs, c)
		}
	}
	for left := mergeStep; len(cs) > 0; left-- {
		if left == 0 {
			left = mergeStep
			if !s.mergePause(halt) {
				return errStopped
			}
		}
		least := 0
		for i, c := range cs[1:] {
			if b := cs[least]; c.hi < b.hi || c.hi == b.hi && c.lo < b.lo {
				least = i + 1
			}
		}
		c := cs[least]
		if err := w.add(c.hi, c.lo); err != nil {
			return err
		}
		ok, err := c.advance()
		if err != nil {
			return err
		}
		if !ok {
			cs = slices.Delete(cs, least, least+1)
		}
	}
	return nil
}

// mergePause leaves the disk to others for a while. It returns false when the
// merge should end.
func (s *Store) mergePause(halt chan struct{}) bool {
	if s.tidyNow {
		return true
	}
	timer := time.NewTimer(tidyPause)
	defer timer.Stop()
	select {
	case <-halt:
		return false
	case <-timer.C:
		return !halted(halt)
	}
}

// swapRuns is the write that puts fresh in the place of in. In the background it
// takes its turn; inside Checkpoint it has it.
func (s *Store) swapRuns(in []*run, fresh *run) error {
	if !s.tidyNow {
		s.turn.Lock()
		defer s.turn.Unlock()
	}
	next := s.current()
	next.runs = nil
	for _, ref := range s.state.runs {
		if !slices.ContainsFunc(in, func(r *run) bool { return r.id == ref.id }) {
			next.runs = append(next.runs, ref)
		}
	}
	next.runs = append(next.runs, fresh.runRef)
	if err := s.putState(next); err != nil {
		s.disown(fresh)
		return err
	}
	s.marks.replace(in, fresh)
	return nil
}

// retire closes runs that left the list when their last reader is done, and
// removes their files.
func (s *Store) retire(runs []*run) {
	for _, r := range runs {
		r.readers.Wait()
		if err := errors.Join(r.f.Close(), s.db.RemoveFile(r.name())); err != nil {
			s.opts.Logger.Warn("spill: remove a run", "err", err)
			s.marks.orphan(r.id) // the next checkpoint tries again
		}
	}
}

// foldOf tells how the filter of the run that in becomes is folded.
func (s *Store) foldOf(in []*run, marks uint64) int {
	counts := []uint64{marks}
	for _, r := range s.marks.list() {
		if !slices.Contains(in, r) {
			counts = append(counts, r.count)
		}
	}
	folds, _ := foldsFor(counts, s.filterLimitBytes())
	return folds[0]
}

// fitFilters folds the filters that take more than their share.
func (s *Store) fitFilters() error {
	runs := s.marks.acquire()
	defer s.marks.release(runs)
	counts := make([]uint64, len(runs))
	for i, r := range runs {
		counts[i] = r.count
	}
	folds, _ := foldsFor(counts, s.filterLimitBytes())
	for i, r := range runs {
		if folds[i] > r.filter.Load().fold {
			if err := r.loadFilter(folds[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// foresee reserves the memory that the merges after a checkpoint take for a
// while, beside the runs: the next run is there before the old ones go.
func (s *Store) foresee() {
	runs := s.marks.list()
	var most int64
	for in := s.due(runs); len(in) > 0; in = s.due(runs) {
		made := &run{runRef: runRef{id: in[0].id, level: in[0].level + 1}}
		for _, r := range in {
			made.count += r.count
		}
		runs = slices.DeleteFunc(slices.Clone(runs), func(r *run) bool { return slices.Contains(in, r) })
		runs = append(runs, made)
		most = max(most, memoryOf(made.count, 1)+mergeBuffers)
	}
	s.marks.reserve(min(most, s.filterLimitBytes()+mergeBuffers))
}
