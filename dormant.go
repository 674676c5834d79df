// This file lets idle hosts about which something was learned leave memory, and brings them back.
//
// What was learned about a dormant host is in its row. A host leaves once its row on disk is up to
// date, and once every call that named the host while it was in memory is settled. It comes back when a
// call names it again: the call reads the row outside the lock and makes the host resident under it. A
// filter in memory knows which hosts have no row, which avoids most reads.
//
// Without a Spill such hosts stay in memory.

package frontier

import (
	"context"
	"fmt"
	"unsafe"

	"github.com/seed-7440039f/frontier/event"
	"github.com/seed-7440039f/frontier/internal/mercator"
	"github.com/seed-7440039f/frontier/internal/patience"
	"github.com/seed-7440039f/frontier/internal/row"
	"github.com/seed-7440039f/frontier/internal/timed"
	"github.com/seed-7440039f/frontier/storage"
)

// namedLocked notes that an op is submitted: departing hosts that it names stay until it is settled.
func (s *shard) namedLocked(entries []newEntry) {
	c := s.core
	if !c.Dormant.Submitted() {
		return
	}
	for i := range entries {
		e := &entries[i]
		if i > 0 && e.ofHost(&entries[i-1]) || !c.Dormant.MayHaveRow(e.hash) {
			continue
		}
		if id := c.Lookup(e.hash, e.host); id != 0 && c.Hosts.At(id).Place == mercator.Departing {
			c.Depart(id)
		}
	}
}

func (e *newEntry) ofHost(other *newEntry) bool {
	return e.hash == other.hash && e.host == other.host
}

// savesLocked returns the rows that saves wants written; settleSavesLocked must follow.
func (s *shard) savesLocked() (rows []storage.Row) {
	rows, hosts := s.core.Saves()
	s.committer.saving = append(s.committer.saving, hosts...)
	return rows
}

// settleSavesLocked ends what savesLocked began.
func (s *shard) settleSavesLocked(err error) {
	for _, id := range s.committer.saving {
		if err != nil {
			h := s.core.Hosts.At(id)
			h.Set(mercator.Unsaved | mercator.Stored) // as far as anybody knows
		}
		s.unpinLocked(id, s.last)
	}
	s.committer.saving = s.committer.saving[:0]
}

// read asks the Spill for a's row.
func (s *shard) readRow(ctx context.Context, a *mercator.Absentee) error {
	key, found := row.HostKey+a.Host, false
	value, err := patience.Ask(ctx, s.abandoned, func() (*[]byte, error) {
		v, found, err := s.opts.Spill.Row(key)
		if !found {
			return nil, err
		}
		return &v, err
	})
	if found = value != nil; err == nil && found {
		a.State, err = row.ParseHost(a.Host, *value)
	}
	if err != nil {
		if s.isClosed() {
			return ErrClosed
		}
		return fmt.Errorf("frontier: host %s: %w", a.Host, err)
	}
	a.Found, a.Known = found, true
	return nil
}

// lockWithHost takes the lock with the host in memory if anything was stored of
// it, which ctx ends. After an error, ErrClosed too, the lock is not held.
func (f *Frontier) lockWithHost(ctx context.Context, host string) error {
	a := mercator.Absentee{Hash: f.core.HashOf(host), Host: host}
	for {
		if err := f.lockOpen(); err != nil {
			return err
		}
		if !f.core.Absent(&a) {
			f.core.ComeBack(&a, f.token, f.last)
			return nil
		}
		f.mu.Unlock()
		if err := f.readRow(ctx, &a); err != nil {
			return err
		}
	}
}

// hostsAbsentLocked reports whether rows must be read before o may be submitted: of hosts that its new
// entries name. If not, all of them are in memory that have one.
func (s *shard) hostsAbsentLocked(o *op) bool {
	absent := false
	present := -1 // an entry of the last host that was found in memory, or without a row
	for i := range o.entries {
		e := &o.entries[i]
		if present >= 0 && e.ofHost(&o.entries[present]) || s.knownLocked(e) {
			continue
		}
		if e.absentee == 0 {
			a := mercator.Absentee{Hash: e.hash, Host: e.host}
			if !s.core.Absent(&a) {
				present = i
				continue
			}
			o.absent = append(o.absent, a)
			e.absentee = int32(len(o.absent))
			absent = true
			continue
		}
		absent = s.core.Absent(&o.absent[e.absentee-1]) || absent
	}
	if absent {
		return true
	}
	for i := range o.absent {
		a := &o.absent[i]
		if !s.core.Absent(a) { // else its entry turned out to be known
			s.core.ComeBack(a, s.token, s.last)
		}
	}
	return false
}

// readHosts reads the rows that hostsAbsentLocked wants.
func (s *shard) readHosts(o *op) error {
	for i := range o.absent {
		if a := &o.absent[i]; !a.Known {
			if err := s.readRow(o.context(), a); err != nil {
				return err
			}
		}
	}
	return nil
}

// newAbsentees lists the hosts of records.
func newAbsentees(records []timed.Loaded) []mercator.Absentee {
	var hosts []mercator.Absentee
	listed := map[string]bool{}
	for i := range records {
		if r := &records[i]; !listed[r.Host] {
			listed[r.Host] = true
			hosts = append(hosts, mercator.Absentee{Hash: r.Hash, Host: r.Host})
		}
	}
	return hosts
}

// readRows reads the rows of hosts.
func (s *shard) readRows(hosts []*mercator.Absentee) error {
	for _, a := range hosts {
		if err := s.readRow(patience.Forever, a); err != nil {
			return err
		}
	}
	return nil
}

// The memory of a frontier with a Spill is shared by URLs and the marks of popular URLs.

const (
	minPopular  = 1 << 20 // bytes for the marks of popular URLs, at least
	offerAtOnce = 128     // marks that become popular under one lock
	recallFrom  = 100_000 // marks on disk from which on an opening recalls some
)

// residentLimitLocked is how many bytes of URLs may be in memory with a Spill:
// what hosts, marks and the rest leave of the budget, and not more than a quarter
// of it: hosts and marks become more. The quarter is at least what Add wants.
func (s *shard) residentLimitLocked() int64 {
	return min(s.opts.MemoryBudget-s.footprint-s.fixedLocked()-minPopular, max(s.opts.MemoryBudget/4, minResident/4))
}

// letHostsLeave commits the rows of hosts that need not be in memory until no more leave.
func (f *Frontier) letHostsLeave(ctx context.Context) {
	c := f.core
	f.mu.Lock()
	left := c.Hosts.Len() + c.Idle.Len()
	f.mu.Unlock()
	for more := true; more && f.lockOpen() == nil; {
		c.Advance(f.last) // hosts whose delays have passed
		c.Departed(f.finishing)
		n := c.Hosts.Len() + c.Idle.Len()
		more = n < left || c.Dormant.Unwritten()
		left = n
		o := newOp() // of nothing: the rows of hosts that leave go with any commit
		o.ctx = ctx
		if f.submitAndUnlock(o) != nil {
			return
		}
		o.free()
	}
}

// lockMeasured takes the lock, after it has asked the Spill whether it takes less than the last checkpoint
// foresaw. If a round ends meanwhile, what this one foresees counts, and lockMeasured asks again.
func (f *Frontier) lockMeasured() {
	f.mu.Lock()
	for gen := f.gen - 1; gen != f.gen && !f.closed; {
		gen = f.gen
		f.mu.Unlock()
		footprint := f.opts.Spill.Footprint()
		f.mu.Lock()
		if gen == f.gen {
			f.footprint = min(f.footprint, footprint)
		}
	}
}

// offer fills the room for popular marks with those that a checkpoint covered.
func (s *shard) offer(ms []storage.Mark) {
	popular := &s.known.Popular
	for len(ms) > 0 {
		s.mu.Lock()
		size := popular.Size()
		for n := min(len(ms), offerAtOnce); n > 0 && popular.Size() == size; n-- { // until a part of them needs a larger table
			popular.Offer(ms[0])
			ms = ms[1:]
		}
		s.mu.Unlock()
	}
}

// recall fills the room for popular marks after an opening. Nothing depends on it:
// it spares reads, one by one and in no order.
func (s *shard) recall() {
	err := s.opts.Spill.Recall(func(ms []storage.Mark) bool {
		s.offer(ms)
		s.mu.Lock()
		defer s.mu.Unlock()
		return !s.closed && !s.known.Popular.Full()
	})
	if err != nil && !s.isClosed() {
		s.emit(event.Event{Kind: event.StoreError, Reason: "recalling known URLs", Err: err})
	}
}

// sharePopularLocked gives popular marks what others leave of the budget, at most a quarter of it.
func (s *shard) sharePopularLocked() {
	budget := s.opts.MemoryBudget
	young := max(0, budget/16-s.known.YoungSize()) // that may yet come
	rest := budget*3/4 - s.footprint - young - s.fixedLocked()
	s.known.Popular.SetLimit(max(minPopular, min(budget/4, rest)))
}

// hostBytes is what a host with one queue costs in memory.
const hostBytes = int64(unsafe.Sizeof(mercator.Host{})+unsafe.Sizeof(mercator.Queue{})) + 24 + 12

// noteLocked adds the host's row to o if it is wanted: see note. Then the host is pinned until o is
// settled.
func (s *shard) noteLocked(o *op, id uint32, due int64, why mercator.Why, now int64) {
	if saved, ok := s.core.Note(id, due, why, now); ok {
		s.pinLocked(o, id)
		o.rows = append(o.rows, saved)
	}
}

// pinLocked keeps a host in memory until o is settled.
func (s *shard) pinLocked(o *op, id uint32) {
	if o.pinned == 0 {
		s.core.Hosts.At(id).Pins++
		o.pinned = id
	}
}
