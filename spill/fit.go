// This file keeps the filters of runs within their share of memory.

package spill

import (
	"errors"
	"slices"
)

// filterShare is how many bytes of memory filters may take.
func (s *Store) filterShare() int64 { return s.opts.MemoryBudget / 2 }

// refilter puts a run with another filter, or with none, in the place of r.
func (s *Store) refilter(r *run, f *filter) *run {
	fresh := &run{runFile: r.runFile, filter: f}
	s.marks.replace([]*run{r}, fresh)
	r.readers.Wait()
	r.filter.free()
	return fresh
}

// makeRoom sees to it that there is memory for the filter of the run of n marks
// that in becomes, and tells how it is folded. Where there is none beside their
// own, the filters of in go before it comes: for a short while new marks then
// cost a read of each.
func (s *Store) makeRoom(in []*run, n uint64) ([]*run, int) {
	counts, used := []uint64{n}, int64(0)
	for _, r := range s.marks.list() {
		used += r.filter.bytes()
		if !slices.Contains(in, r) {
			counts = append(counts, r.count)
		}
	}
	folds, _ := foldsFor(counts, s.filterShare())
	if used+filterMemory(n, folds[0]) > s.filterShare() {
		in = slices.Clone(in)
		for i, r := range in {
			in[i] = s.refilter(r, nil)
		}
	}
	return in, folds[0]
}

// fitFilters folds the filters that take more than their share, and loads those
// that makeRoom freed for nothing.
func (s *Store) fitFilters() error {
	runs := s.marks.list()
	folds, _ := foldsFor(countsOf(refsOf(runs)), s.filterShare())
	var errs []error
	for i, r := range runs {
		if r.filter != nil && r.filter.fold >= folds[i] {
			continue
		}
		f, err := r.loadFilter(folds[i])
		if err != nil {
			errs = append(errs, err)
			continue
		}
		s.refilter(r, f)
	}
	return errors.Join(errs...)
}

// foresee reserves the memory that the merges after a checkpoint take for a
// while.
func (s *Store) foresee() {
	runs := s.marks.list()
	var filters, most int64
	for _, r := range runs {
		filters += r.filter.bytes()
	}
	for in := s.policy.due(runs); len(in) > 0; in = s.policy.due(runs) {
		var made runFile
		for _, r := range in {
			made.level = max(made.level, min(r.level, 254)+1)
			made.count += r.count
		}
		filter := min(filterMemory(made.count, 1), max(0, s.filterShare()-filters))
		// The index is in memory twice: as it is written, and as it is read.
		most = max(most, filter+2*indexMemory(made.count)+mergeBuffers)
		runs = slices.DeleteFunc(slices.Clone(runs), func(r *run) bool { return slices.Contains(in, r) })
		runs = append(runs, &run{runFile: &made})
		sortRuns(runs)
	}
	s.marks.reserve(most)
}

func indexMemory(n uint64) int64 { return int64(pagesFor(n)) * indexEntry }
