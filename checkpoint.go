// This file ends a round of moving: the log begins anew after what is in blocks.

package frontier

// deadAtOnce is how many blocks' finished positions are copied under one lock.
const deadAtOnce = 1024

// checkpoint ends the round. The marks are written first, without holding up
// anyone. What decides runs between two commits, after all that were
// submitted before it: what was finishing when the round passed its queue, and was
// given no home there, is finished by now, or a commit failed and the round is spoiled.
func (f *Frontier) checkpoint(m *mover, marks int, bytes int64) error {
	f.mu.Lock()
	head := f.logMarks.head(marks)
	f.mu.Unlock()
	m.marks = head.all()
	if err := f.opts.Spill.PackMarks(m.gen, m.marks); err != nil {
		return err
	}
	o := newOp()
	outdated, oldest := f.outdated()
	o.run = func() error {
		f.mu.Lock()
		if f.committer.failures != m.failures {
			f.mu.Unlock()
			return errSpoiled
		}
		b := &Batch{
			ID:   f.committer.batchID + 1,
			Time: wallMillis(f.wall(f.nowLocked())),
			Rows: []Row{f.metaRowLocked(m.gen, false)},
			Drop: f.core.drops,
		}
		stale := f.notes.stale
		b.Rows = append(b.Rows, f.staleNotesLocked()...)
		b.Rows = append(b.Rows, f.deletionRowsLocked()...)
		f.core.drops = nil
		f.mu.Unlock()
		if err := f.opts.Spill.Commit(b); err != nil {
			f.mu.Lock()
			f.core.drops = append(f.core.drops, b.Drop...)
			f.notes.stale = stale
			f.mu.Unlock()
			return err
		}
		f.mu.Lock()
		f.committer.batchID, f.applied.batch = b.ID, b.ID
		cp := &Checkpoint{Gen: m.gen, Through: m.through}
		f.deletionsWrittenLocked()
		over := f.outdatedLocked(m.through)
		dirty := f.core.dirty
		f.core.dirty = nil
		for i, id := range dirty {
			if i%deadAtOnce == deadAtOnce-1 { // what dies meanwhile is in the log, and may be in the bitmaps, too
				f.mu.Unlock()
				f.mu.Lock()
			}
			if x := f.core.blocks.at(id); x != nil {
				x.setClean()
				cp.Dead = append(cp.Dead, DeadBits{Block: id, Bits: f.core.copyDead(x)})
			}
		}
		f.mu.Unlock()
		err := f.opts.Spill.Checkpoint(cp)
		f.mu.Lock()
		if err != nil {
			for i, id := range dirty {
				if i%deadAtOnce == deadAtOnce-1 {
					f.mu.Unlock()
					f.mu.Lock()
				}
				if x := f.core.blocks.at(id); x != nil && !x.dirty() {
					x.setDirty()
					f.core.dirty = append(f.core.dirty, id)
				}
			}
			f.mu.Unlock()
			return err
		}
		f.gen = m.gen
		m.covered = f.known.endRound(true)
		f.dropNotesLocked(outdated, oldest)
		f.logBytes -= bytes
		f.logMarks.drop(marks)
		f.applied.marks = f.logMarks.n
		f.mu.Unlock()
		f.forgetDeletions(over)
		return nil
	}
	f.mu.Lock()
	if f.closed {
		f.mu.Unlock()
		return ErrClosed
	}
	f.finishing++
	f.enqueueLocked(o)
	f.mu.Unlock()
	err := <-o.done
	o.free()
	return err
}
