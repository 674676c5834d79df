// This file has what tests ask of a frontier beside its calls: Check, and hooks for the tests of
// this module.

package frontier

import (
	"errors"
	"math"
	"runtime"
	"time"

	"github.com/seed-7440039f/frontier/internal/hook"
	"github.com/seed-7440039f/frontier/internal/mercator"
	"github.com/seed-7440039f/frontier/internal/row"
	"github.com/seed-7440039f/frontier/storage"
)

func init() {
	hook.Of = func(f any) hook.Frontier { return hooked{f.(*Frontier)} }
	hook.Tune = func(o any, change func(*hook.Tuning)) { change(&o.(*Options).tuning) }
}

// hooked is a frontier as hook.Of gives it.
type hooked struct{ *Frontier }

func (f hooked) MoveNow(evict bool) error {
	if evict {
		f.mu.Lock()
		f.core.Cfg.EvictOver, f.core.Cfg.Ahead = 0, 0
		f.mu.Unlock()
	}
	_, err := f.ledger.Round()
	return err
}

func (f hooked) ReadTimed() {
	for f.reader.Read(true) {
	}
}

func (f hooked) Resident(host string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.core.Lookup(f.core.HashOf(host), host) != 0
}

func (f hooked) CommitNow() error {
	if err := f.lockOpen(); err != nil {
		return err
	}
	o := newOp()
	defer o.free()
	o.Counts = true
	return f.ledger.SubmitAndUnlock(&o.Op)
}

func (f hooked) NotesSize() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.found.Rises.Size()
}

func (f hooked) LeaseGroup(lease any) string {
	l := lease.(Lease)
	f.mu.Lock()
	defer f.mu.Unlock()
	if r, err := f.leaseOutLocked(&l); err == nil && r.Group != 0 {
		return f.core.GroupName(f.core.Groups.At(r.Group))
	}
	return ""
}

func (f hooked) Sweep() {
	for more := true; more; {
		f.sweepers.Wait()
		f.mu.Lock()
		f.found.Rises.Hurry()
		more = f.last >= f.found.Rises.NextRound() && f.refusalLocked() == nil
		f.dispatchLocked()
		more = more || f.givingUp // a host that a rule no longer withholds may be lost
		f.mu.Unlock()
	}
}

func (f hooked) LockComesFree() bool {
	for patience := time.Now().Add(5 * time.Second); !f.mu.TryLock(); runtime.Gosched() {
		if time.Now().After(patience) {
			return false
		}
	}
	f.mu.Unlock()
	return true
}

// Check verifies the frontier's invariants and returns every violation found,
// joined. It walks all that is in memory under the lock: it is for tests.
func (f *Frontier) Check() error {
	quiet := f.ledger.Rounds.TryLock()
	if quiet {
		defer f.ledger.Rounds.Unlock()
	}
	counts, version := f.countRows()
	f.mu.Lock()
	defer f.mu.Unlock()
	k := mercator.NewChecker(f.core, mercator.Outside{
		Quiet: quiet, Settled: f.ledger.Pending() == 0, Swept: f.sweeping == 0 && !f.closed, Now: f.nowLocked(),
		Last: f.ledger.Seq(),
	})
	pending := k.Check()
	if pending && f.ledger.Pending() == 0 && f.adding.Load() == 0 && !f.ledger.Saving() && f.steps.pending == 0 {
		k.Bad("F9: hosts wait for a commit, and none is on its way")
	}
	f.controls.Check(k.Bad)
	f.found.Rises.Check(k.Bad)
	f.found.Hints.Check(func(m storage.Mark) bool { return f.known.Checkpoints() > 0 || f.known.Young(m) }, k.Bad)
	if f.core.SettledCounts(version) && f.ledger.Pending() == 0 {
		k.Counts(counts)
	}
	return errors.Join(k.Errs...)
}

// countRows returns all counts by key, and their version, or nothing if they cannot be read. It is for
// tests.
func (f *Frontier) countRows() (rows map[string]row.Count, version uint64) {
	if f.core.Counts == nil {
		return nil, 0
	}
	f.mu.Lock()
	version = f.core.Counts.Version()
	if f.opts.Spill == nil {
		defer f.mu.Unlock()
	} else {
		f.mu.Unlock()
	}
	rows = map[string]row.Count{}
	err := f.core.Counts.Each(row.CountKey, "", func(key, _ string, _ uint32, n row.Count) bool {
		rows[key] = n
		return true
	})
	if err != nil {
		return nil, math.MaxUint64 // a version of no table
	}
	return rows, version
}
