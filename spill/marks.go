// This file handles files of marks for the store: it writes one ahead of each checkpoint and
// removes those that the state does not list. Package marks does the rest.

package spill

import (
	"fmt"
	"slices"

	"github.com/seed-7440039f/frontier/spill/internal/marks"
	"github.com/seed-7440039f/frontier/storage"
)

// sweepRuns removes the files of runs that the state does not list.
func (s *Store) sweepRuns(refs []marks.Ref) error {
	names, err := s.db.ListFiles(marks.Folder)
	if err != nil {
		return err
	}
	var unlisted []string
	for _, name := range names {
		id, ok := marks.IDOf(name)
		if !ok || slices.ContainsFunc(refs, func(r marks.Ref) bool { return r.ID == id }) {
			continue
		}
		unlisted = append(unlisted, name)
		s.marks.TakenID(id)
	}
	return s.db.RemoveFiles(unlisted...)
}

// PackMarks writes the marks of generation gen, replacing any written for it before. After an error
// the generation has no marks of this call.
func (s *Store) PackMarks(gen uint32, ms []storage.Mark) error {
	return s.during("pack marks", func() error {
		s.pack.Lock()
		defer s.pack.Unlock()
		r, err := s.writeRun(ms)
		if err == nil {
			s.retract(s.marks.Prepare(r, s.generation(gen)))
		}
		return err
	})
}

// writeRun writes marks as a run of level 0, and opens it.
func (s *Store) writeRun(ms []storage.Mark) (*marks.Run, error) {
	if len(ms) == 0 {
		return nil, nil
	}
	w, err := marks.Create(s.db, s.marks.NewID(), uint64(len(ms)))
	if err != nil {
		return nil, err
	}
	var r *marks.Run
	if err = w.AddAll(ms); err == nil {
		var ref marks.Ref
		if ref, err = w.Finish(0); err == nil {
			// Read it before it becomes part of the state: the log is deleted in exchange.
			r, err = marks.Open(s.db, ref, 1)
		}
	}
	if err != nil {
		s.abandon(w)
		return nil, fmt.Errorf("write run %s: %w", marks.NameOf(w.ID), err)
	}
	return r, nil
}

// abandon removes an incomplete run.
func (s *Store) abandon(w *marks.Writer) {
	if err := w.Abandon(s.db); err != nil {
		s.opts.Logger.Warn("spill: remove an unfinished run", "error", err)
		s.marks.Orphan(w.ID)
	}
}

// retract closes a run that the state does not list, or lists only because of a failed write.
func (s *Store) retract(r *marks.Run) {
	if r == nil {
		return
	}
	if err := r.Close(); err != nil {
		s.opts.Logger.Warn("spill: close a run", "error", err)
	}
	s.marks.Orphan(r.ID)
}

// dropOrphanRuns removes unused files once no state on the medium can list them. The caller holds turn.
func (s *Store) dropOrphanRuns() {
	if s.undo.state {
		return
	}
	s.removeRuns(s.marks.TakeOrphans())
}

// removeRuns removes the files of closed runs that the state does not list, now or after a later
// checkpoint.
func (s *Store) removeRuns(ids []uint32) {
	var names []string
	for _, id := range ids {
		names = append(names, marks.NameOf(id))
	}
	if err := s.db.RemoveFiles(names...); err != nil {
		s.opts.Logger.Warn("spill: remove files of marks", "error", err)
		for _, id := range ids {
			s.marks.Orphan(id)
		}
	}
}

// Known sets known[i] for each ms[i] that is among the marks of completed checkpoints. Elements
// that are already set are not looked up. If it fails, some elements may have been set, all of them
// correctly.
func (s *Store) Known(ms []storage.Mark, known []bool) error {
	return s.during("known", func() error {
		if len(known) != len(ms) || len(ms) > 1<<31-1 {
			return fmt.Errorf("%d marks, room for %d answers", len(ms), len(known))
		}
		return s.marks.Ask(ms, known)
	})
}

// Recall calls fn with marks of completed checkpoints, the latest runs first, until fn returns
// false. fn must not keep its argument.
func (s *Store) Recall(fn func(ms []storage.Mark) bool) error {
	return s.during("recall", func() error { return s.marks.Recall(fn) })
}
