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
	"github.com/seed-7440039f/frontier/storage"
)

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
	for i := range o.Entries {
		e := &o.Entries[i]
		if present >= 0 && e.SameHost(&o.Entries[present]) || s.knownLocked(e) {
			continue
		}
		if e.Absentee == 0 {
			a := mercator.Absentee{Hash: e.Hash, Host: e.Host}
			if !s.core.Absent(&a) {
				present = i
				continue
			}
			o.absent = append(o.absent, a)
			e.Absentee = int32(len(o.absent))
			absent = true
			continue
		}
		absent = s.core.Absent(&o.absent[e.Absentee-1]) || absent
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
			if err := s.readRow(o.Life(), a); err != nil {
				return err
			}
		}
	}
	return nil
}

// The memory of a frontier with a Spill is shared by URLs and the marks of popular URLs.

const (
	minPopular = 1 << 20 // bytes for the marks of popular URLs, at least
	recallFrom = 100_000 // marks on disk from which on an opening recalls some
)

// residentLimitLocked is how many bytes of URLs may be in memory with a Spill:
// what hosts, marks and the rest leave of the budget, and not more than a quarter
// of it: hosts and marks become more. The quarter is at least what Add wants.
func (s *shard) residentLimitLocked() int64 {
	return min(s.opts.MemoryBudget-s.ledger.Footprint()-s.fixedLocked()-minPopular, max(s.opts.MemoryBudget/4, minResident/4))
}

// letHostsLeave commits the rows of hosts that need not be in memory until no more leave.
func (f *Frontier) letHostsLeave(ctx context.Context) {
	c := f.core
	f.mu.Lock()
	left := c.Hosts.Len() + c.Idle.Len()
	f.mu.Unlock()
	for more := true; more && f.lockOpen() == nil; {
		c.Advance(f.last) // hosts whose delays have passed
		c.Departed(f.ledger.Pending())
		n := c.Hosts.Len() + c.Idle.Len()
		more = n < left || c.Dormant.Unwritten()
		left = n
		o := newOp() // of nothing: the rows of hosts that leave go with any commit
		o.Context = ctx
		if f.ledger.SubmitAndUnlock(&o.Op) != nil {
			return
		}
		o.free()
	}
}

// recall fills the room for popular marks after an opening. Nothing depends on it:
// it spares reads, one by one and in no order.
func (s *shard) recall() {
	err := s.opts.Spill.Recall(func(ms []storage.Mark) bool {
		s.ledger.Offer(ms)
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
	rest := budget*3/4 - s.ledger.Footprint() - young - s.fixedLocked()
	s.known.Popular.SetLimit(max(minPopular, min(budget/4, rest)))
}

// hostBytes is what a host with one queue costs in memory.
const hostBytes = int64(unsafe.Sizeof(mercator.Host{})+unsafe.Sizeof(mercator.Queue{})) + 24 + 12
