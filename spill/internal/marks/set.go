// Package marks stores the marks of known URLs in files: runs, each sorted and written once, with a
// filter in memory. A [Set] owns the runs in use, the memory of their filters, and the numbers of
// files; it has its own lock. The package decides which runs to merge; the store decides when, and
// which files of a crash are valid.
//
// A list of runs is never changed, only replaced, so a reader's list stays the same. The files of a
// run are removed after its last reader has finished.
package marks

import (
	"cmp"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/seed-7440039f/frontier/spill/internal/kv"
)

// Set holds the runs of a store. The zero value is empty.
type Set struct {
	Share  int64         // bytes of memory for filters; read-only
	Policy Policy        // read-only
	lastID atomic.Uint32 // of a file

	mu      sync.Mutex
	runs    []*Run   // guarded by mu, the slice is never changed; the largest first
	expects int64    // guarded by mu; bytes of memory before the runs are opened
	passing int64    // guarded by mu; bytes temporarily reserved for merges
	orphans []uint32 // guarded by mu; files to remove when no state on disk lists them

	ready    *Run   // guarded by mu; written ahead of a checkpoint; nil: none
	readyGen uint32 // guarded by mu; its generation
}

// Init sets the memory for filters in bytes, and the default policy of merges.
func (m *Set) Init(share int64) {
	m.Share, m.Policy = share, Policy{FanOut, topMarks}
}

// List returns the runs, the largest first. The caller keeps them from being closed.
func (m *Set) List() []*Run {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.runs
}

// Reserve sets the bytes temporarily reserved for merges.
func (m *Set) Reserve(bytes int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.passing = bytes
}

// TakeOrphans returns and forgets the files passed to Orphan.
func (m *Set) TakeOrphans() []uint32 {
	m.mu.Lock()
	defer m.mu.Unlock()
	ids := m.orphans
	m.orphans = nil
	return ids
}

// Orphan notes a file to remove once no state on disk names it.
func (m *Set) Orphan(id uint32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.orphans = append(m.orphans, id)
}

// acquire returns the runs, which stay open until release.
func (m *Set) acquire() []*Run {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.runs {
		r.readers.Add(1)
	}
	return m.runs
}

// release reverts acquire.
func (m *Set) release(runs []*Run) {
	for _, r := range runs {
		r.readers.Done()
	}
}

// Pin returns the files of the runs for a snapshot; they stay unchanged until Unpin.
func (m *Set) Pin() []*File {
	m.mu.Lock()
	defer m.mu.Unlock()
	files := make([]*File, len(m.runs))
	for i, r := range m.runs {
		r.pins++
		files[i] = r.File
	}
	return files
}

// Unpin reverts Pin, and returns the files to discard now.
func (m *Set) Unpin(files []*File) (gone []*File) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range files {
		if r.pins--; r.pins == 0 && r.retired {
			gone = append(gone, r)
		}
	}
	return gone
}

// Retire waits for the readers of runs that have left the list, and returns the files that may be
// discarded now. Files still read by snapshots are returned by the last Unpin.
func (m *Set) Retire(runs []*Run) (gone []*File) {
	for _, r := range runs {
		r.readers.Wait()
		r.Filter.free()
		m.mu.Lock()
		r.retired = true
		if r.pins == 0 {
			gone = append(gone, r.File)
		}
		m.mu.Unlock()
	}
	return gone
}

// Replace removes old from the list and adds fresh. The caller retires old.
func (m *Set) Replace(old []*Run, fresh ...*Run) {
	m.mu.Lock()
	defer m.mu.Unlock()
	runs := append(slices.DeleteFunc(slices.Clone(m.runs), func(r *Run) bool { return slices.Contains(old, r) }), fresh...)
	sortRuns(runs)
	m.runs, m.expects = runs, 0
}

// Adopt adds the run that was ready to the list.
func (m *Set) Adopt(r *Run) {
	m.Replace(nil, r)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ready = nil
}

// sortRuns brings runs into the order of a list.
func sortRuns(runs []*Run) {
	slices.SortFunc(runs, func(a, b *Run) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.ID, b.ID))
	})
}

// Close waits for the readers of all runs and closes them.
func (m *Set) Close() error {
	m.mu.Lock()
	runs, ready := m.runs, m.ready
	m.runs, m.orphans, m.passing, m.ready = nil, nil, 0, nil
	m.mu.Unlock()
	var errs []error
	if ready != nil {
		errs = append(errs, ready.Close())
	}
	for _, r := range runs {
		r.readers.Wait()
		errs = append(errs, r.Close())
	}
	return errors.Join(errs...)
}

// Bytes returns the memory of the runs in bytes.
func (m *Set) Bytes() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.expects + m.passing
	for _, r := range m.runs {
		n += r.bytes()
	}
	return n
}

// foldsFor returns how often to fold the filters of runs with these numbers of marks, so that together
// they take at most limit bytes and let few marks through. Beyond MaxFold a filter is useless.
func foldsFor(counts []uint64, limit int64) (folds []int, bytes int64) {
	folds = make([]int, len(counts))
	for i, n := range counts {
		folds[i] = 1
		bytes += FilterMemory(n, 1)
	}
	for bytes > limit {
		best, cost := -1, 0.0
		for i, n := range counts {
			if k := folds[i]; k < MaxFold {
				saved := FilterMemory(n, k) - FilterMemory(n, k+1)
				c := float64(passes[k+1]-passes[k]) / float64(saved)
				if best < 0 || c < cost {
					best, cost = i, c
				}
			}
		}
		if best < 0 {
			break
		}
		bytes -= FilterMemory(counts[best], folds[best])
		folds[best]++
		bytes += FilterMemory(counts[best], folds[best])
	}
	return folds, bytes
}

// FilterMemory returns the memory of the filter of n marks in bytes.
func FilterMemory(n uint64, fold int) int64 {
	return int64(FilterBlocks(n)) * filterBlock / int64(fold)
}

func refsOf(runs []*Run) []Ref {
	refs := make([]Ref, len(runs))
	for i, r := range runs {
		refs[i] = r.Ref
	}
	return refs
}

func countsOf(refs []Ref) []uint64 {
	counts := make([]uint64, len(refs))
	for i, r := range refs {
		counts[i] = r.Count
	}
	return counts
}

// Expect estimates the memory of runs that are not open yet.
func (m *Set) Expect(refs []Ref) {
	_, n := foldsFor(countsOf(refs), m.Share)
	for _, r := range refs {
		n += indexMemory(r.Count)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.expects = n
}

// Open opens the runs listed in refs, replacing those that are open.
func (m *Set) Open(db kv.Files, refs []Ref) error {
	if err := m.Close(); err != nil {
		return err
	}
	folds, _ := foldsFor(countsOf(refs), m.Share)
	last := uint32(0)
	for i, ref := range refs {
		r, err := Open(db, ref, folds[i])
		if err != nil {
			return err
		}
		m.Replace(nil, r)
		last = max(last, ref.ID)
	}
	m.lastID.Store(last)
	return nil
}

// NewID returns the number of a new file.
func (m *Set) NewID() uint32 { return m.lastID.Add(1) }

// TakenID records that a file with this number exists or existed.
func (m *Set) TakenID(id uint32) { m.lastID.Store(max(m.lastID.Load(), id)) }

// Prepare stores a run for the checkpoint of a generation, and returns the run stored before.
func (m *Set) Prepare(r *Run, gen uint32) (old *Run) {
	m.mu.Lock()
	defer m.mu.Unlock()
	old, m.ready, m.readyGen = m.ready, r, gen
	return old
}

// ReadyFor returns the run that was written for a generation, or nil.
func (m *Set) ReadyFor(gen uint32) *Run {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.readyGen != gen {
		return nil
	}
	return m.ready
}
