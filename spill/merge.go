// This file merges runs, so that a mark is looked for in few of them.
//
// The merge goes on beside everything else, in small steps; only at its end the
// state that names the new run in place of the old ones is written. A crash
// before leaves a file that nobody names, a crash after files of the old runs:
// Recover removes both.

package spill

import (
	"cmp"
	"errors"
	"slices"
	"sync"
	"time"
)

const (
	mergeMost = 16             // runs that are merged at once
	mergeStep = 64 * pageMarks // marks between pauses
	mergeSync = 64             // steps between syncs: one of all would hold up those of commits
	// mergeBuffers is the memory of a merge, but for the index and the filter.
	mergeBuffers = (mergeMost + 3) * streamBuffer

	fanOut   = 6
	topMarks = 1 << 20
)

// mergePolicy says what is merged. A level with fanOut runs becomes one run, so
// that there are few of any size. When all runs but the largest hold half as
// many marks as that, and at least top, all become one: what is known is then
// found in the first run asked, and most of the memory for filters, which is
// limited, goes to one filter, not to several that each let some marks through.
// That writes a mark three times more in all.
type mergePolicy struct {
	fanOut int
	top    uint64
}

// due returns the runs to merge next, which are in the order of a list.
func (p mergePolicy) due(runs []*run) []*run {
	levels := map[uint8][]*run{}
	lowest, rest := -1, uint64(0)
	for i, r := range runs {
		l := append(levels[r.level], r)
		levels[r.level] = l
		if len(l) >= p.fanOut && (lowest < 0 || int(r.level) < lowest) {
			lowest = int(r.level)
		}
		if i > 0 {
			rest += r.count
		}
	}
	switch {
	case lowest >= 0:
		in := levels[uint8(lowest)]
		slices.SortFunc(in, func(a, b *run) int { return cmp.Compare(a.id, b.id) })
		return in[:min(len(in), mergeMost)]
	case len(runs) > 1 && rest >= max(p.top, runs[0].count/2):
		return runs[:min(len(runs), mergeMost)]
	}
	return nil
}

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

// mergeAll merges what is due, and what becomes due by it. What fails is tried
// again after the next checkpoint.
func (s *Store) mergeAll(halt chan struct{}) {
	defer s.marks.reserve(0)
	var err error
	for err == nil {
		in := s.policy.due(s.marks.list())
		if len(in) == 0 {
			break
		}
		err = s.merge(in, halt)
	}
	if err != errStopped {
		err = errors.Join(err, s.fitFilters())
	}
	if err != nil && err != errStopped {
		s.opts.Logger.Warn("spill: merge marks", "error", err)
	}
}

// merge makes one run of in.
func (s *Store) merge(in []*run, halt chan struct{}) error {
	ref, err := s.mergeFile(in, halt)
	if err != nil {
		return err
	}
	in, fold := s.makeRoom(in, ref.count)
	fresh, err := openRun(s.db, ref, fold)
	if err != nil {
		s.removeRuns([]uint32{ref.id})
		return err
	}
	if err := s.swapRuns(in, fresh); err != nil {
		return err
	}
	var gone []*runFile
	for _, r := range in {
		r.readers.Wait()
		r.filter.free()
		if s.marks.retire(r.runFile) {
			gone = append(gone, r.runFile)
		}
	}
	s.discardRuns(gone)
	return nil
}

// discardRuns closes files of runs that nobody reads any more, and removes them.
func (s *Store) discardRuns(gone []*runFile) {
	var ids []uint32
	for _, r := range gone {
		if err := r.f.Close(); err != nil {
			s.opts.Logger.Warn("spill: close a run", "error", err)
		}
		ids = append(ids, r.id)
	}
	s.removeRuns(ids)
}

// mergeFile writes the file of the run that in becomes.
func (s *Store) mergeFile(in []*run, halt chan struct{}) (runRef, error) {
	var level uint8
	var limit uint64
	for _, r := range in {
		level = max(level, r.level)
		limit += r.count
	}
	w, err := newRunWriter(s.db, s.marks.lastID.Add(1), limit)
	if err != nil {
		return runRef{}, err
	}
	if err = s.mergeInto(w, in, halt); err == nil {
		var ref runRef
		if ref, err = w.finish(min(level, 254) + 1); err == nil {
			return ref, nil
		}
	}
	s.abandon(w)
	return runRef{}, err
}

// mergeInto writes the marks of in, in order, a step at a time.
func (s *Store) mergeInto(w *runWriter, in []*run, halt chan struct{}) error {
	var files []*runFile
	for _, r := range in {
		files = append(files, r.runFile)
	}
	n := 0
	return eachMark(files, func(hi uint64, lo uint32) error {
		if n++; n%mergeStep == 0 {
			if err := s.mergePause(w, n/mergeStep, halt); err != nil {
				return err
			}
		}
		return w.add(hi, lo)
	})
}

// eachMark calls fn with the marks of all files, in order.
func eachMark(files []*runFile, fn func(hi uint64, lo uint32) error) error {
	var cs []*cursor
	for _, r := range files {
		c := newCursor(r)
		ok, err := c.advance()
		if err != nil {
			return err
		}
		if ok {
			cs = append(cs, c)
		}
	}
	for len(cs) > 0 {
		least := 0
		for i, c := range cs[1:] {
			if b := cs[least]; c.hi < b.hi || c.hi == b.hi && c.lo < b.lo {
				least = i + 1
			}
		}
		c := cs[least]
		if err := fn(c.hi, c.lo); err != nil {
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

// mergePause leaves the disk to others for a while. It fails when the merge
// should end.
func (s *Store) mergePause(w *runWriter, step int, halt chan struct{}) error {
	if step%mergeSync == 0 {
		if err := w.f.Sync(); err != nil {
			return err
		}
	}
	if s.tidyNow {
		return nil
	}
	timer := time.NewTimer(tidyPause)
	defer timer.Stop()
	select {
	case <-halt:
	case <-timer.C:
		if !halted(halt) {
			return nil
		}
	}
	return errStopped
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
		s.retract(fresh)
		s.dropOrphanRuns()
		return err
	}
	s.marks.replace(in, fresh)
	return nil
}
