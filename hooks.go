// This file is what the module's tests do to a frontier beside its calls.

package frontier

import (
	"context"
	"runtime"
	"time"

	"github.com/seed-7440039f/frontier/internal/hook"
	"github.com/seed-7440039f/frontier/internal/row"
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
		f.sched.cfg.evictOver, f.sched.cfg.ahead = 0, 0
		f.mu.Unlock()
	}
	_, err := f.moveRound()
	return err
}

func (f hooked) ReadTimed() {
	for f.readTimed(true) {
	}
}

func (f hooked) Resident(host string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.sched.lookup(f.hostHash(host), host) != 0
}

func (f hooked) GroupOf(host string) string {
	f.mu.Lock()
	if id := f.sched.lookup(f.hostHash(host), host); id != 0 {
		defer f.mu.Unlock()
		if g := f.sched.hosts.At(id).group; g != 0 {
			return f.sched.groupName(f.sched.groups.At(g))
		}
		return ""
	}
	f.mu.Unlock()
	if f.opts.Spill == nil {
		return ""
	}
	value, found, err := f.opts.Spill.Row(row.HostKey + host)
	if err != nil || !found {
		return ""
	}
	s, _ := row.ParseHost(host, value)
	return s.Group
}

func (f hooked) CommitNow() error {
	if err := f.lockOpen(); err != nil {
		return err
	}
	o := newOp()
	defer o.free()
	o.counts = true
	return f.submitAndUnlock(o)
}

func (f hooked) DueOf(host string) (due time.Time) {
	if f.lockWithHost(context.Background(), host) != nil {
		return due
	}
	defer f.mu.Unlock()
	if id := f.sched.lookup(f.hostHash(host), host); id != 0 {
		due = f.wall(f.sched.hosts.At(id).due)
	}
	return due
}

func (f hooked) LeaseGroup(lease any) string {
	l := lease.(Lease)
	f.mu.Lock()
	defer f.mu.Unlock()
	if r, err := f.leaseOutLocked(&l); err == nil && r.group != 0 {
		return f.sched.groupName(f.sched.groups.At(r.group))
	}
	return ""
}

func (f hooked) Sweep() { f.sweepers.Wait() }

func (f hooked) LockComesFree() bool {
	for patience := time.Now().Add(5 * time.Second); !f.mu.TryLock(); runtime.Gosched() {
		if time.Now().After(patience) {
			return false
		}
	}
	f.mu.Unlock()
	return true
}
