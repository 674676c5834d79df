// This file opens a frontier on a store that has something. Package recovery reads it.

package frontier

import (
	"context"
	"errors"
	"fmt"

	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/internal/mercator"
	"github.com/seed-7440039f/frontier/internal/recovery"
	"github.com/seed-7440039f/frontier/internal/row"
	"github.com/seed-7440039f/frontier/storage"
)

const clocksAtOnce = 4096 // hosts or groups that are looked at under one lock, or rows in one batch

// recover fills an empty frontier from its Spill. The store is in use if and only if it returns nil.
func (f *Frontier) recover(ctx context.Context) error {
	r, err := recovery.Read(ctx, recovery.Frontier{
		Core: f.core, Controls: f.controls, Known: &f.known, Notes: &f.notes, Hints: &f.hints, Forgotten: &f.forgotten,
		Spill: f.opts.Spill, HostNames: f.hostNames, Counts: f.opts.Count, Elsewhere: !f.opts.ContactedAt.IsZero(),
	})
	if err != nil {
		return fmt.Errorf("frontier: recover: %w", err) // if it is in use, another uses it
	}
	err = f.begin(r)
	if err == nil && f.opts.Count && !r.Counted {
		err = f.countAnew(ctx)
	}
	if err != nil {
		return errors.Join(err, f.opts.Spill.Release())
	}
	return nil
}

// begin takes over what was found, and commits that the store is in use again.
func (f *Frontier) begin(r *recovery.Recovery) error {
	f.comesAgain(r.Again)
	f.seq, f.gen, f.logBytes = r.Seq, r.Gen, r.LogBytes
	f.epoch = r.Epoch + 1
	f.token = f.epoch << 40
	f.applied.seq, f.applied.marks = f.seq, f.known.Logged()
	b := &storage.Batch{
		ID:   r.Last + 1,
		Time: instant.Millis(f.clock.Start()),
		Rows: []storage.Row{f.metaRowLocked(f.gen, false)},
		Drop: f.core.Blocks.TakeDrops(),
	}
	if !f.opts.Count && r.Counted {
		b.Rows = append(b.Rows, row.Counted(false))
	}
	f.countGroupLocked(nil, b) // what was found dead
	err := f.commitCounted(b, f.seq)
	if f.core.EndCounting(err == nil); err != nil {
		return fmt.Errorf("frontier: open: %w", err)
	}
	f.committer.batchID, f.applied.batch = b.ID, b.ID
	for rows := range r.Stale() {
		if err := f.commitOpening(rows); err != nil {
			return err
		}
	}
	return nil
}

// metaRowLocked returns the row about the frontier itself: key of the fingerprints, how
// often it was opened, whether it was closed, last sequence number, generation, when it was
// last opened after a crash or in another's place, and how hosts are named.
func (s *shard) metaRowLocked(gen uint32, clean bool) storage.Row {
	m := row.Meta{Key: s.core.Key, Epoch: s.epoch, Clean: clean, Seq: s.seq, Gen: gen, Hosts: s.hostNames}
	if s.core.ReopenedAt != mercator.NotReopened {
		m.Held = uint64(instant.Millis(s.wall(s.core.ReopenedAt)))
	}
	return m.Row()
}
