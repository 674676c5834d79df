// This file opens a frontier on a store that has something. Package recovery reads it.

package frontier

import (
	"context"
	"errors"
	"fmt"

	"github.com/seed-7440039f/frontier/internal/recovery"
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
	f.comesAgain(r.Again)
	err = f.ledger.Open(r, f.opts.Count)
	f.token = f.ledger.Epoch() << 40
	if err == nil && f.opts.Count && !r.Counted {
		err = f.countAnew(ctx)
	}
	if err != nil {
		return errors.Join(err, f.opts.Spill.Release())
	}
	return nil
}
