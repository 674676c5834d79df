// This file decides which runs to merge, and reads several in order.

package marks

import (
	"cmp"
	"slices"
)

const (
	mergeMost = 16             // runs that are merged at once
	MergeStep = 64 * PageMarks // marks between pauses
	MergeSync = 64             // steps between syncs: one sync of all would hold up commits
	// mergeBuffers is the memory of a merge besides the index and the filter.
	mergeBuffers = (mergeMost + 3) * streamBuffer

	FanOut   = 6 // runs of a level that become one
	topMarks = 1 << 20
)

// Policy decides what is merged. A level with FanOut runs becomes one run, so that there are few of
// each size. When all runs except the largest together hold half as many marks as the largest, and
// at least Top, all become one: known marks are then found in the first run searched, and most of
// the limited memory for filters goes to one filter instead of several that each let some marks
// through. In return each mark is written three times more in all.
type Policy struct {
	FanOut int
	Top    uint64
}

// Due returns which of runs, in the order of Set.List, to merge next.
func (p Policy) Due(runs []*Run) []*Run {
	levels := map[uint8][]*Run{}
	lowest, rest := -1, uint64(0)
	for i, r := range runs {
		l := append(levels[r.Level], r)
		levels[r.Level] = l
		if len(l) >= p.FanOut && (lowest < 0 || int(r.Level) < lowest) {
			lowest = int(r.Level)
		}
		if i > 0 {
			rest += r.Count
		}
	}
	switch {
	case lowest >= 0:
		in := levels[uint8(lowest)]
		slices.SortFunc(in, func(a, b *Run) int { return cmp.Compare(a.ID, b.ID) })
		return in[:min(len(in), mergeMost)]
	case len(runs) > 1 && rest >= max(p.Top, runs[0].Count/2):
		return runs[:min(len(runs), mergeMost)]
	}
	return nil
}

// Each calls fn with the marks of all files, in order.
func Each(files []*File, fn func(hi uint64, lo uint32) error) error {
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
