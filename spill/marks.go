// This file holds the marks of completed checkpoints: the runs in use, and what
// becomes of those that are not any more.
//
// A list of runs is never changed, only replaced, so that whoever reads has a
// list of its own; the files of a run go when its last reader has.

package spill

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/seed-7440039f/frontier"
)

// markSet is the runs of a store. The zero value has none.
type markSet struct {
	lastID atomic.Uint32 // of a file

	mu      sync.Mutex
	runs    []*run   // guarded by mu, the slice is never changed; the largest first
	expects int64    // guarded by mu; bytes of memory before the runs are opened
	passing int64    // guarded by mu; bytes that merges take for a while
	orphans []uint32 // guarded by mu; files to remove when no state on disk names them

	ready    *run   // guarded by mu; written ahead of a checkpoint; nil: none
	readyGen uint32 // guarded by mu; its generation
}

// list returns the runs, for who keeps them from being closed.
func (m *markSet) list() []*run {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.runs
}

func (m *markSet) reserve(bytes int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.passing = bytes
}

func (m *markSet) orphan(id uint32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.orphans = append(m.orphans, id)
}

// acquire returns the runs; release must follow.
func (m *markSet) acquire() []*run {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.runs {
		r.readers.Add(1)
	}
	return m.runs
}

func (m *markSet) release(runs []*run) {
	for _, r := range runs {
		r.readers.Done()
	}
}

// pin returns the files of the runs for a snapshot, which stay as they are until
// unpin.
func (m *markSet) pin() []*runFile {
	m.mu.Lock()
	defer m.mu.Unlock()
	files := make([]*runFile, len(m.runs))
	for i, r := range m.runs {
		r.pins++
		files[i] = r.runFile
	}
	return files
}

// unpin returns those of the files that are to be discarded now.
func (m *markSet) unpin(files []*runFile) (gone []*runFile) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range files {
		if r.pins--; r.pins == 0 && r.retired {
			gone = append(gone, r)
		}
	}
	return gone
}

// retire reports whether the file of a run that left the list may be discarded
// now; else the last snapshot that reads it does so.
func (m *markSet) retire(r *runFile) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	r.retired = true
	return r.pins == 0
}

// replace takes old out of the list and adds fresh. The caller retires old.
func (m *markSet) replace(old []*run, fresh ...*run) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var runs []*run
	for _, r := range m.runs {
		if !slices.Contains(old, r) {
			runs = append(runs, r)
		}
	}
	runs = append(runs, fresh...)
	sortRuns(runs)
	m.runs, m.expects = runs, 0
}

// adopt adds the run that was ready to the list.
func (m *markSet) adopt(r *run) {
	m.replace(nil, r)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ready = nil
}

// sortRuns brings runs into the order of a list.
func sortRuns(runs []*run) {
	slices.SortFunc(runs, func(a, b *run) int {
		return cmp.Or(cmp.Compare(b.count, a.count), cmp.Compare(a.id, b.id))
	})
}

// close waits for the readers of all runs and closes them.
func (m *markSet) close() error {
	m.mu.Lock()
	runs, ready := m.runs, m.ready
	m.runs, m.orphans, m.passing, m.ready = nil, nil, 0, nil
	m.mu.Unlock()
	var errs []error
	if ready != nil {
		errs = append(errs, ready.close())
	}
	for _, r := range runs {
		r.readers.Wait()
		errs = append(errs, r.close())
	}
	return errors.Join(errs...)
}

// bytes is the memory that the runs take.
func (m *markSet) bytes() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.expects + m.passing
	for _, r := range m.runs {
		n += r.bytes()
	}
	return n
}

// foldsFor tells how often the filters of runs with so many marks are folded, so
// that together they take limit bytes at most and let few marks through. Past
// maxFold a filter is of no use.
func foldsFor(counts []uint64, limit int64) (folds []int, bytes int64) {
	folds = make([]int, len(counts))
	for i, n := range counts {
		folds[i] = 1
		bytes += filterMemory(n, 1)
	}
	for bytes > limit {
		best, cost := -1, 0.0
		for i, n := range counts {
			if k := folds[i]; k < maxFold {
				saved := filterMemory(n, k) - filterMemory(n, k+1)
				c := float64(passes[k+1]-passes[k]) / float64(saved)
				if best < 0 || c < cost {
					best, cost = i, c
				}
			}
		}
		if best < 0 {
			break
		}
		bytes -= filterMemory(counts[best], folds[best])
		folds[best]++
		bytes += filterMemory(counts[best], folds[best])
	}
	return folds, bytes
}

// filterMemory is how many bytes the filter of n marks takes.
func filterMemory(n uint64, fold int) int64 {
	return int64(filterBlocks(n)) * filterBlock / int64(fold)
}

func refsOf(runs []*run) []runRef {
	refs := make([]runRef, len(runs))
	for i, r := range runs {
		refs[i] = r.runRef
	}
	return refs
}

func countsOf(refs []runRef) []uint64 {
	counts := make([]uint64, len(refs))
	for i, r := range refs {
		counts[i] = r.count
	}
	return counts
}

// expect estimates the memory of runs that are not open yet.
func (s *Store) expect(refs []runRef) {
	_, n := foldsFor(countsOf(refs), s.filterShare())
	for _, r := range refs {
		n += indexMemory(r.count)
	}
	s.marks.mu.Lock()
	defer s.marks.mu.Unlock()
	s.marks.expects = n
}

// openRuns opens the runs that the state names. Those of an earlier use are
// closed.
func (s *Store) openRuns(refs []runRef) error {
	if err := s.marks.close(); err != nil {
		return err
	}
	folds, _ := foldsFor(countsOf(refs), s.filterShare())
	last := uint32(0)
	for i, ref := range refs {
		r, err := openRun(s.db, ref, folds[i])
		if err != nil {
			return err
		}
		s.marks.replace(nil, r)
		last = max(last, ref.id)
	}
	s.marks.lastID.Store(last)
	return nil
}

// sweepRuns removes the files of runs that the state does not name.
func (s *Store) sweepRuns(refs []runRef) error {
	names, err := s.db.ListFiles(runFolder)
	if err != nil {
		return err
	}
	durable := false
	for _, name := range names {
		id, ok := runID(name)
		if !ok || slices.ContainsFunc(refs, func(r runRef) bool { return r.id == id }) {
			continue
		}
		if !durable { // until then the state on the medium may be one that names it
			if err := s.db.Sync(); err != nil {
				return err
			}
			durable = true
		}
		if err := s.db.RemoveFile(name); err != nil {
			return err
		}
		s.marks.lastID.Store(max(s.marks.lastID.Load(), id))
	}
	return nil
}

// PackMarks writes the marks of generation gen, in place of any that were written
// for it before. After an error nothing of the call is of use.
func (s *Store) PackMarks(gen uint32, ms []frontier.Mark) error {
	if err := s.enter(); err != nil {
		return fmt.Errorf("spill: pack marks: %w", err)
	}
	defer s.leave()
	s.pack.Lock()
	defer s.pack.Unlock()
	r, err := s.writeRun(ms)
	if err != nil {
		return fmt.Errorf("spill: pack marks: %w", err)
	}
	s.retract(s.marks.prepare(r, s.generation(gen)))
	return nil
}

// prepare keeps a run for the checkpoint of a generation, and returns the one
// that it kept before.
func (m *markSet) prepare(r *run, gen uint32) (old *run) {
	m.mu.Lock()
	defer m.mu.Unlock()
	old, m.ready, m.readyGen = m.ready, r, gen
	return old
}

// readyFor returns the run that was written for a generation, or nil.
func (m *markSet) readyFor(gen uint32) *run {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.readyGen != gen {
		return nil
	}
	return m.ready
}

// writeRun writes marks as a run of level 0, and opens it.
func (s *Store) writeRun(ms []frontier.Mark) (*run, error) {
	if len(ms) == 0 {
		return nil, nil
	}
	sortMarks(ms)
	w, err := newRunWriter(s.db, s.marks.lastID.Add(1), uint64(len(ms)))
	if err != nil {
		return nil, err
	}
	for i := range ms {
		hi, lo := splitMark(ms[i][:])
		if err = w.add(hi, lo); err != nil {
			break
		}
	}
	var r *run
	if err == nil {
		var ref runRef
		if ref, err = w.finish(0); err == nil {
			// Read before it counts: the log is given up for it.
			r, err = openRun(s.db, ref, 1)
		}
	}
	if err != nil {
		s.abandon(w)
		return nil, fmt.Errorf("write run %s: %w", runName(w.id), err)
	}
	return r, nil
}

// abandon leaves nothing of a run that is not complete.
func (s *Store) abandon(w *runWriter) {
	if err := w.abandon(s.db); err != nil {
		s.opts.Logger.Warn("spill: remove an unfinished run", "error", err)
		s.marks.orphan(w.id)
	}
}

// retract closes a run that the state does not name, or only after a write that
// failed.
func (s *Store) retract(r *run) {
	if r == nil {
		return
	}
	if err := r.close(); err != nil {
		s.opts.Logger.Warn("spill: close a run", "error", err)
	}
	s.marks.orphan(r.id)
}

// dropOrphanRuns removes files that are of no use, once no state on the medium can
// name them. It needs the turn.
func (s *Store) dropOrphanRuns() {
	if s.undo.state {
		return
	}
	s.marks.mu.Lock()
	ids := s.marks.orphans
	s.marks.orphans = nil
	s.marks.mu.Unlock()
	s.removeRuns(ids)
}

// removeRuns removes the files of runs that are closed and that the state does not
// name, now or after a later checkpoint. The state must be on the medium before.
func (s *Store) removeRuns(ids []uint32) {
	if len(ids) == 0 {
		return
	}
	err := s.db.Sync()
	for _, id := range ids {
		if err == nil {
			err = s.db.RemoveFile(runName(id))
		}
		if err != nil {
			s.marks.orphan(id)
		}
	}
	if err != nil {
		s.opts.Logger.Warn("spill: remove files of marks", "error", err)
	}
}
