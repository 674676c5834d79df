// This file deletes: a deletion declares all URLs of a scope or crawl admitted so far dead.
//
// A deletion is a rule with a number: URLs with a sequence number up to it are dead. It is one row on
// disk, whatever the number of URLs, and in force when the row is written: each hand-out checks it, and
// a sweep removes the dead in the background. All deletions that contain a host apply, not only the
// most specific one. The row stays on disk until nothing older is left there.

package frontier

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/seed-7440039f/frontier/internal/mercator"
	"github.com/seed-7440039f/frontier/internal/row"
	"github.com/seed-7440039f/frontier/internal/tombstone"
	"github.com/seed-7440039f/frontier/scope"
)

// Delete removes all waiting and scheduled URLs of a scope. When it has returned without an error the
// deletion is durable, and none of them is handed out any more. Clocks of hosts do not change, and the
// URLs remain known: Add refuses them as duplicates unless they are forced (DeleteWith can forget
// them). A leased URL keeps its slot until its lease ends, and does not come again, whatever the
// outcome. URLs that are added while Delete is under way may be removed or not.
//
// Delete waits until memory has been searched, some URLs at a time, and returns how many URLs it
// removed; if ctx ends that wait, it returns how many so far, and no error. Scheduled URLs on disk are
// removed later. Until they are found, Stats count dead URLs as waiting or scheduled, and Next waits
// for the search instead of returning ErrExhausted. The scope need not have any hosts.
func (f *Frontier) Delete(ctx context.Context, s scope.Scope) (int64, error) {
	return f.DeleteWith(ctx, DeleteOptions{Scope: s})
}

// DeleteOptions say what DeleteWith deletes. The zero value means all URLs.
type DeleteOptions struct {
	Scope  scope.Scope // of hosts, or a crawl; zero is scope.All()
	Crawls []uint32    // of the scope's hosts only the URLs of these crawls; nil means all, and an empty list is an error

	// Forget makes unknown what is deleted, and all other URLs that these hosts have had in these
	// crawls: Add admits them again, as new. It takes effect when DeleteWith begins, unless that fails.
	// Clocks of hosts stay. The old marks stay, too: they take their room, and Stats.Known counts them.
	// Each scope or crawl that was ever forgotten takes a small row in the store.
	Forget bool
}

// DeleteWith is Delete for the URLs that the hosts of a scope have in certain crawls. Each
// crawl is deleted in a commit; after an error, some of them may be.
func (f *Frontier) DeleteWith(ctx context.Context, o DeleteOptions) (n int64, err error) {
	s := o.Scope
	if id, ok := s.Crawl(); ok {
		if o.Crawls != nil {
			return 0, fmt.Errorf("frontier: delete: the scope is %v, and there are Crawls; want one of them", s)
		}
		s, o.Crawls = scope.All(), []uint32{id}
	}
	if s, err = f.spelled(s); err != nil {
		return 0, fmt.Errorf("frontier: delete: %w", err)
	}
	if o.Crawls == nil {
		return f.delete(ctx, tombstone.NewDeletion(row.Deletion{Scope: s.Hosts()}), o.Forget)
	}
	if len(o.Crawls) == 0 {
		return 0, fmt.Errorf("frontier: delete: %w", errNoCrawls)
	}
	for _, crawl := range o.Crawls {
		removed, err := f.delete(ctx, tombstone.NewDeletion(row.Deletion{Scope: s.Hosts(), OfCrawl: true, Crawl: crawl}), o.Forget)
		n += removed
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

func (f *Frontier) delete(ctx context.Context, d *tombstone.Deletion, forget bool) (int64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	tried := make(chan struct{})
	d.Tried = sync.OnceFunc(func() { close(tried) })
	o := newOp()
	defer o.free()
	o.Deletion, o.Context = d, ctx
	lock := f.lockOpen
	if forget {
		lock = f.lockSteadyOpen
	}
	if err := lock(); err != nil {
		return 0, err
	}
	if forget {
		r, undo := f.forgotten.Forget(&d.Tombstone)
		o.Unrule, o.Rows = undo, append(o.Rows, r.Row())
	}
	if err := f.ledger.SubmitAndUnlock(&o.Op); err != nil {
		return 0, err
	}
	select {
	case <-tried:
	case <-ctx.Done():
	case <-f.abandoned.Done():
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return d.Removed, nil
}

// endDeadLocked plans the end of a dead record: nothing replaces it but what was forced since.
func (s *shard) endDeadLocked(o *op, l *mercator.Lease, p plan) {
	again := s.ledger.Again(l.Record)
	s.ledger.End(&o.Op, l.Queue, l.Record)
	o.Dead = true
	s.core.Uncount(&o.Outgoing) // the deletion took it out already
	switch {
	case again != nil && again.ForcedAt >= l.Dead:
		o.AdmitAgain(again)
	case p.givenUp: // its tries ended, and not the deletion
		o.Tally = &s.core.Stats.GivenUp
		s.giveUpLocked(o, s.core.Hosts.At(l.Host), l, &p)
	case p.stays || p.outcome.Result == Requeue:
		s.core.Stats.Deleted++
	}
}

// sweepSteps is how many steps a sweep takes under one lock. A step takes some 20 ns, and 200 if its record is
// in no cache.
const sweepSteps = 1024

// sweepTime is when to ask again for a URL if a sweep may find some, in nanoseconds.
const sweepTime = int64(time.Millisecond)

// sweep looks through all that is in memory for what d has left dead.
func (f *Frontier) sweep(d *tombstone.Deletion) {
	for ended := false; !ended; {
		sweep := f.core.Sweep(&d.Tombstone)
		complete := f.sweepInSteps(func(steps int) (done, wait bool) { return sweep(steps, f.last) })
		f.ledger.SweepCounts(d)
		f.lock()
		ended = !complete || f.core.Deletions.EndSweep(d)
		f.mu.Unlock()
	}
	at := uint32(0)
	f.sweepInSteps(func(steps int) (done, wait bool) { return f.core.FreeUnpurged(&at, steps, f.last), false })
	d.Tried()
}

// startSweepLocked sweeps for deletions, one after the other, in the background.
func (f *Frontier) startSweepLocked(ds ...*tombstone.Deletion) {
	if len(ds) == 0 {
		return
	}
	f.sweepers.Add(1)
	f.sweeping++
	go func() {
		defer f.sweepers.Done()
		for _, d := range ds {
			f.sweep(d)
		}
		f.mu.Lock()
		f.sweeping--
		f.mu.Unlock()
	}()
}

// sweepInSteps calls step under the lock, with as many steps as it may take, until it is
// done. step reports whether it is done, and whether it must wait for a read to end.
// sweepInSteps reports whether the sweep was completed.
func (f *Frontier) sweepInSteps(step func(steps int) (done, wait bool)) bool {
	for {
		if f.lockOpen() != nil {
			return false
		}
		done, wait := step(sweepSteps)
		var ended chan struct{}
		if wait {
			if f.readEnded == nil {
				f.readEnded = make(chan struct{})
			}
			ended = f.readEnded
		}
		f.dispatchLocked()
		f.mu.Unlock()
		if done {
			return true
		}
		if ended != nil {
			<-ended
		}
		runtime.Gosched()
	}
}

// readEndedLocked lets sweeps go on that wait for the end of a read.
func (s *shard) readEndedLocked() {
	if s.readEnded != nil {
		close(s.readEnded)
		s.readEnded = nil
	}
}
