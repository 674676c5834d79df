// This file reads marks back in bulk.

package spill

import (
	"fmt"

	"github.com/seed-7440039f/frontier"
)

// Recall calls fn with marks of completed checkpoints, the latest runs first,
// until it returns false. fn must not keep what it is given.
func (s *Store) Recall(fn func(ms []frontier.Mark) bool) error {
	if err := s.enter(); err != nil {
		return fmt.Errorf("spill: recall: %w", err)
	}
	defer s.leave()
	runs := s.marks.acquire()
	defer s.marks.release(runs)
	var ms []frontier.Mark
	for i := len(runs) - 1; i >= 0; i-- {
		c := newCursor(runs[i].runFile)
		for {
			page, err := c.fill()
			if err != nil {
				return fmt.Errorf("spill: recall: %w", err)
			}
			if page == nil {
				break
			}
			for ms = ms[:0]; len(page) > 0; page = page[markLen:] {
				ms = append(ms, frontier.Mark(page[:markLen]))
			}
			if !fn(ms) {
				return nil
			}
		}
	}
	return nil
}
