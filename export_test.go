package frontier

import (
	"context"
	"math"
	"runtime"
	"time"
)

// MoveNow moves everything from the log to blocks and, with evict set, keeps as
// little as possible in memory.
func (f *Frontier) MoveNow(evict bool) error {
	if evict {
		f.mu.Lock()
		f.core.cfg.evictOver, f.core.cfg.ahead = 0, 0
		f.mu.Unlock()
	}
	_, err := f.moveRound()
	return err
}

// Homeless returns how many bytes of records in memory have no home in a block.
func (f *Frontier) Homeless() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.core.homeless
}

// Looked returns how many records of queues rounds of moving have looked at.
func (f *Frontier) Looked() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.core.looked
}

// ReadTimed reads what is due of the timed blocks.
func (f *Frontier) ReadTimed() {
	for f.readTimed(true) {
	}
}

// Resident reports whether the host is in memory.
func (f *Frontier) Resident(host string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.core.lookup(f.hostHash(host), host) != 0
}

// GroupOf returns the group that a host belongs to, or "". If the host is not in
// memory that is the one it will come back to.
func (f *Frontier) GroupOf(host string) string {
	f.mu.Lock()
	if id := f.core.lookup(f.hostHash(host), host); id != 0 {
		defer f.mu.Unlock()
		if g := f.core.hosts.at(id).group; g != 0 {
			return f.core.groupName(f.core.groups.at(g))
		}
		return ""
	}
	f.mu.Unlock()
	if f.opts.Spill == nil {
		return ""
	}
	value, found, err := f.opts.Spill.Row(rowHost + host)
	if err != nil || !found {
		return ""
	}
	s, _ := decodeHost(host, value)
	return s.group
}

// CommitNow writes what waits for a batch to go with.
func (f *Frontier) CommitNow() error {
	if err := f.lockOpen(); err != nil {
		return err
	}
	o := newOp()
	defer o.free()
	o.counts = true
	return f.submitLocked(o) // unlocks
}

// DueOf returns when a host may be contacted as far as its own clock is concerned.
func (f *Frontier) DueOf(host string) (due time.Time) {
	if f.lockWithHost(context.Background(), host) != nil {
		return due
	}
	defer f.mu.Unlock()
	if id := f.core.lookup(f.hostHash(host), host); id != 0 {
		due = f.wall(f.core.hosts.at(id).due)
	}
	return due
}

// WalkURLs lists what waits of a host, with steps so short, and calls between
// without the lock after each of them.
func (f *Frontier) WalkURLs(host string, steps int, between func()) (urls []string, err error) {
	w := urlWindow{listing: &urlListing{f: f, ctx: context.Background()}, host: host, n: 1 << 20, bound: math.MaxUint64}
	f.mu.Lock()
	walk := f.core.beginWalk(f.core.lookup(f.hostHash(host), host), nil)
	walk.part, walk.record = w.visitPart, w.visit
	for f.core.walk(walk, steps) {
		f.mu.Unlock()
		between()
		f.mu.Lock()
	}
	f.core.endWalk(walk)
	f.mu.Unlock()
	between()
	if err := w.read(); err != nil {
		return nil, err
	}
	w.cut()
	between()
	if err := w.drop(); err != nil {
		return nil, err
	}
	for _, x := range w.items {
		b, err := decodeBody(x.body)
		if err != nil {
			return nil, err
		}
		urls = append(urls, string(b.url))
	}
	return urls, nil
}

// LeaseGroup returns the group of which a lease that is out holds a slot, or "".
func (f *Frontier) LeaseGroup(l Lease) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r, err := f.heldLocked(&l); err == nil && r.group != 0 {
		return f.core.groupName(f.core.groups.at(r.group))
	}
	return ""
}

// Sweep waits until nothing in memory is dead that was deleted.
func (f *Frontier) Sweep() { f.sweepers.Wait() }

// Deletions is how many deletions are kept on disk.
func (f *Frontier) Deletions() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.deletions)
}

// Doom puts the deletion of a scope in force, and leaves it to hand-outs to find
// what is dead until sweep is called.
func (f *Frontier) Doom(s Scope) (sweep func()) { return f.doom(&deletion{scope: s}) }

// LayAside leaves a host to a sweep, as a hand-out does that finds its next URL dead.
func (f *Frontier) LayAside(host string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	id := f.core.lookup(f.hostHash(host), host)
	f.core.detach(id)
	f.core.put(f.core.hosts.at(id), dying)
}

// DoomCrawl is Doom for a crawl.
func (f *Frontier) DoomCrawl(id uint32) (sweep func()) {
	return f.doom(&deletion{ofCrawl: true, crawl: id})
}

func (f *Frontier) doom(d *deletion) (sweep func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.numberedLocked(d)
	f.core.dooms.add(d)
	f.core.offerDeleted(d)
	return func() { f.sweep(d) }
}

// LockComesFree reports whether the lock can be had soon. If not, the caller holds
// it: nobody else does for longer than a moment.
func (f *Frontier) LockComesFree() bool {
	for patience := time.Now().Add(5 * time.Second); !f.mu.TryLock(); runtime.Gosched() {
		if time.Now().After(patience) {
			return false
		}
	}
	f.mu.Unlock()
	return true
}
