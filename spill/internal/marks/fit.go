// This file keeps the filters of runs within their share of memory.

package marks

import (
	"errors"
	"slices"
)

// refilter puts a run with another filter, or with none, in the place of r.
func (m *Set) refilter(r *Run, f *filter) *Run {
	fresh := &Run{File: r.File, Filter: f}
	m.Replace([]*Run{r}, fresh)
	r.readers.Wait()
	r.Filter.free()
	return fresh
}

// MakeRoom makes room for the filter of the run of n marks that replaces in. It returns in, and how
// often to fold that filter. If there is no room beside the filters of in, these are freed first:
// for a short time each new mark then costs a read per run.
func (m *Set) MakeRoom(in []*Run, n uint64) ([]*Run, int) {
	counts, used := []uint64{n}, int64(0)
	for _, r := range m.List() {
		used += r.Filter.Bytes()
		if !slices.Contains(in, r) {
			counts = append(counts, r.Count)
		}
	}
	folds, _ := foldsFor(counts, m.Share)
	if used+FilterMemory(n, folds[0]) > m.Share {
		in = slices.Clone(in)
		for i, r := range in {
			in[i] = m.refilter(r, nil)
		}
	}
	return in, folds[0]
}

// FitFilters folds the filters that take more than their share, and loads again those that MakeRoom
// freed unnecessarily.
func (m *Set) FitFilters() error {
	runs := m.List()
	folds, _ := foldsFor(countsOf(refsOf(runs)), m.Share)
	var errs []error
	for i, r := range runs {
		if r.Filter != nil && r.Filter.Fold >= folds[i] {
			continue
		}
		f, err := r.loadFilter(folds[i])
		if err != nil {
			errs = append(errs, err)
			continue
		}
		m.refilter(r, f)
	}
	return errors.Join(errs...)
}

// Foresee reserves the memory for the merges after a checkpoint.
func (m *Set) Foresee() {
	runs := m.List()
	var filters, most int64
	for _, r := range runs {
		filters += r.Filter.Bytes()
	}
	for in := m.Policy.Due(runs); len(in) > 0; in = m.Policy.Due(runs) {
		var made File
		for _, r := range in {
			made.Level = max(made.Level, min(r.Level, 254)+1)
			made.Count += r.Count
		}
		filter := min(FilterMemory(made.Count, 1), max(0, m.Share-filters))
		// The index is in memory twice: as it is written, and as it is read.
		most = max(most, filter+2*indexMemory(made.Count)+mergeBuffers)
		runs = slices.DeleteFunc(slices.Clone(runs), func(r *Run) bool { return slices.Contains(in, r) })
		runs = append(runs, &Run{File: &made})
		sortRuns(runs)
	}
	m.Reserve(most)
}

// indexMemory returns the bytes that the index of n marks takes.
func indexMemory(n uint64) int64 { return int64(PagesFor(n)) * IndexEntry }
