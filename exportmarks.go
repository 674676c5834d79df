// This file writes the lines of an export that tell which URLs are known.

package frontier

import (
	"bytes"
	"errors"
	"slices"
)

// writeMarks writes all marks, ascending: those of the Spill among the young ones.
func (x *exporter) writeMarks(s Snapshot) error {
	line := make([]Mark, 0, marksPerLine)
	flush := func() error {
		if len(line) == 0 {
			return nil
		}
		err := x.put(x.line.marks(line))
		line = line[:0]
		return err
	}
	var last Mark
	first := true
	take := func(m Mark) error {
		if m == last && !first {
			return nil
		}
		last, first = m, false
		if line = append(line, m); len(line) < cap(line) {
			return nil
		}
		return flush()
	}
	slices.SortFunc(x.young, compareMarks)
	youngBefore := func(m *Mark) error {
		for len(x.young) > 0 && (m == nil || compareMarks(x.young[0], *m) < 0) {
			if err := take(x.young[0]); err != nil {
				return err
			}
			x.young = x.young[1:]
		}
		return nil
	}
	var err error
	if s != nil {
		err = s.Marks(func(ms []Mark) error {
			for i := range ms {
				if err := errors.Join(x.alive(), youngBefore(&ms[i]), take(ms[i])); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err == nil {
		err = youngBefore(nil)
	}
	if err == nil {
		err = flush()
	}
	return err
}

func compareMarks(a, b Mark) int { return bytes.Compare(a[:], b[:]) }
