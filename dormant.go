// This file lets idle hosts about which something was learned leave memory, and brings
// them back.
//
// What was learned about a dormant host is in its row. A host leaves once its row on disk
// is up to date, and once every call that named the host while it was in memory is
// settled. It comes back when a call names it again: the call reads the row outside the
// lock and makes the host resident under it. A filter in memory knows which hosts have no
// row, which avoids most reads.
//
// Without a Spill such hosts stay in memory.

package frontier

import (
	"context"
	"fmt"

	"github.com/seed-7440039f/frontier/internal/dormant"
	"github.com/seed-7440039f/frontier/internal/patience"
	"github.com/seed-7440039f/frontier/internal/row"
	"github.com/seed-7440039f/frontier/internal/timed"
	"github.com/seed-7440039f/frontier/storage"
)

const (
	departAtOnce = 256 // hosts that leave under one lock
	restAtOnce   = 256 // hosts whose time passes under one lock
	savesAtOnce  = 256 // rows of departing hosts in one batch
)

// saved reports whether the host's row says what must be known of the host, or
// is missing if that is nothing.
func (h *host) saved() bool {
	if !h.learned() {
		return !h.has(stored)
	}
	return h.has(stored) && !h.has(unsaved|behind)
}

// depart lets a host leave that rests, when everything submitted so far is
// settled.
func (s *scheduler) depart(id uint32) {
	h := s.hosts.At(id)
	if !h.learned() && h.group != 0 {
		s.leaveGroup(h)
		h.set(unsaved)
	}
	s.put(h, departing)
	h.pos = s.dormant.Depart(id)
}

// departed removes hosts from memory that may leave now that all calls are settled but
// the youngest ones under way.
func (s *scheduler) departed(underWay int) {
	for range departAtOnce {
		id, place, ok := s.dormant.Pop(underWay)
		if !ok {
			return
		}
		h := s.hosts.At(id)
		switch {
		case h.place != departing || h.pos != place:
		case h.saved():
			s.dormant.Gone(s.hash(s.name(h)))
			s.put(h, nowhere)
			s.forget(id)
		default:
			h.pos = s.dormant.MustWrite(id)
		}
	}
}

// namedLocked notes that an op is submitted: departing hosts that it names stay until
// it is settled.
func (s *shard) namedLocked(entries []newEntry) {
	c := s.sched
	if !c.dormant.Submitted() {
		return
	}
	for i := range entries {
		e := &entries[i]
		if i > 0 && e.ofHost(&entries[i-1]) || !c.dormant.MayHaveRow(e.hash) {
			continue
		}
		if id := c.lookup(e.hash, e.host); id != 0 && c.hosts.At(id).place == departing {
			c.depart(id)
		}
	}
}

func (e *newEntry) ofHost(other *newEntry) bool {
	return e.hash == other.hash && e.host == other.host
}

// departLocked lets hosts leave whose time has come. It may not be called between
// finding a host in memory and the submission of what names it.
func (s *shard) departLocked() {
	if s.sched.dormant.Len() > 0 {
		s.sched.departed(s.finishing)
	}
}

// saves returns the rows that must be written before hosts may leave, and these hosts, which are
// pinned until then.
func (s *scheduler) saves() (rows []storage.Row, hosts []uint32) {
	for _, id := range s.dormant.TakeUnwritten(savesAtOnce) {
		h := s.hosts.At(id)
		if h.place != departing || h.pos != dormant.Unwritten {
			continue // it came back, or will leave another time
		}
		s.put(h, nowhere)
		h.pins++
		h.clear(unsaved | behind)
		if h.learned() {
			h.set(stored)
			s.dormant.HasRow(s.hash(s.name(h))) // it may be the first
			rows = append(rows, s.hostRow(id, h.due, h.why))
		} else {
			h.clear(stored)
			rows = append(rows, storage.Row{Key: row.HostKey + string(s.name(h))})
		}
		hosts = append(hosts, id)
	}
	return rows, hosts
}

// savesLocked returns the rows that saves wants written; settleSavesLocked must follow.
func (s *shard) savesLocked() (rows []storage.Row) {
	rows, hosts := s.sched.saves()
	s.committer.saving = append(s.committer.saving, hosts...)
	return rows
}

// settleSavesLocked ends what savesLocked began.
func (s *shard) settleSavesLocked(err error) {
	for _, id := range s.committer.saving {
		if err != nil {
			h := s.sched.hosts.At(id)
			h.set(unsaved | stored) // as far as anybody knows
		}
		s.unpinLocked(id, s.last)
	}
	s.committer.saving = s.committer.saving[:0]
}

// absentee is a host that was not in memory when a call needed it, and what the
// Spill said about it.
type absentee struct {
	hash  uint64
	host  string
	state row.Host
	found bool // it has a row
	known bool // the Spill was asked
	left  uint32
}

// absent reports whether a must be read before its host may be named.
func (s *scheduler) absent(a *absentee) bool {
	if !s.dormant.MayHaveRow(a.hash) || s.lookup(a.hash, a.host) != 0 {
		return false
	}
	left := s.dormant.Departures(a.hash)
	if a.known && a.left == left {
		return false
	}
	a.known, a.left = false, left // it may have come and gone since it was read
	return true
}

// comeBack makes a's host resident if it has a row and is not. youngest is the token of the last
// lease.
func (s *scheduler) comeBack(a *absentee, youngest uint64, now int64) {
	if !a.known || !a.found || s.lookup(a.hash, a.host) != 0 {
		return
	}
	id := s.ensure(a.hash, a.host)
	s.remember(id, &a.state, youngest, now)
	s.settle(id, now)
}

// startAfter is the time before which a host with the given gap between contacts may not
// be contacted because the store was opened after a crash.
func (s *scheduler) startAfter(gap int64) int64 {
	if s.reopenedAt == notReopened {
		return 0
	}
	return s.reopenedAt + max(s.cfg.maxDelay, gap)
}

// read asks the Spill for a's row.
func (s *shard) readRow(ctx context.Context, a *absentee) error {
	key, found := row.HostKey+a.host, false
	value, err := patience.Ask(ctx, s.abandoned, func() (*[]byte, error) {
		v, found, err := s.opts.Spill.Row(key)
		if !found {
			return nil, err
		}
		return &v, err
	})
	if found = value != nil; err == nil && found {
		a.state, err = row.ParseHost(a.host, *value)
	}
	if err != nil {
		if s.isClosed() {
			return ErrClosed
		}
		return fmt.Errorf("frontier: host %s: %w", a.host, err)
	}
	a.found, a.known = found, true
	return nil
}

// lockWithHost takes the lock with the host in memory if anything was stored of
// it, which ctx ends. After an error, ErrClosed too, the lock is not held.
func (f *Frontier) lockWithHost(ctx context.Context, host string) error {
	a := absentee{hash: f.hostHash(host), host: host}
	for {
		if err := f.lockOpen(); err != nil {
			return err
		}
		if !f.sched.absent(&a) {
			f.sched.comeBack(&a, f.token, f.last)
			return nil
		}
		f.mu.Unlock()
		if err := f.readRow(ctx, &a); err != nil {
			return err
		}
	}
}

// hostsAbsentLocked reports whether rows must be read before o may be submitted:
// of hosts that its new entries name. If not, all of them are in memory that
// have one.
func (s *shard) hostsAbsentLocked(o *op) bool {
	c := s.sched
	if c.dormant.Rows() == 0 {
		return false
	}
	absent := false
	present := -1 // an entry of the last host that was found in memory, or without a row
	for i := range o.entries {
		e := &o.entries[i]
		if present >= 0 && e.ofHost(&o.entries[present]) || s.knownLocked(e) {
			continue
		}
		if e.absentee == 0 {
			a := absentee{hash: e.hash, host: e.host}
			if !s.sched.absent(&a) {
				present = i
				continue
			}
			o.absent = append(o.absent, a)
			e.absentee = int32(len(o.absent))
			absent = true
			continue
		}
		absent = s.sched.absent(&o.absent[e.absentee-1]) || absent
	}
	if absent {
		return true
	}
	for i := range o.absent {
		a := &o.absent[i]
		if !s.sched.absent(a) { // else its entry turned out to be known
			s.sched.comeBack(a, s.token, s.last)
		}
	}
	return false
}

// readHosts reads the rows that hostsAbsentLocked wants.
func (s *shard) readHosts(o *op) error {
	for i := range o.absent {
		if a := &o.absent[i]; !a.known {
			if err := s.readRow(o.context(), a); err != nil {
				return err
			}
		}
	}
	return nil
}

// newAbsentees lists the hosts of records.
func newAbsentees(records []timed.Loaded) []absentee {
	var hosts []absentee
	listed := map[string]bool{}
	for i := range records {
		if r := &records[i]; !listed[r.Host] {
			listed[r.Host] = true
			hosts = append(hosts, absentee{hash: r.Hash, host: r.Host})
		}
	}
	return hosts
}

// absentees returns those of the hosts that must be read before they may be named.
func (s *scheduler) absentees(hosts []absentee) (wanted []*absentee) {
	for i := range hosts {
		if s.absent(&hosts[i]) {
			wanted = append(wanted, &hosts[i])
		}
	}
	return wanted
}

// readRows reads the rows of hosts.
func (s *shard) readRows(hosts []*absentee) error {
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

// makeRoom gives back what the budget counts and nothing needs any more, after roomLocked
// refused: as long as calls are refused there may be no commit, and no round, to do it.
// The merges that the last checkpoint foresaw may be over, and hosts may leave. It reports
// whether that freed anything. The lock is not held.
func (f *Frontier) makeRoom() (freed bool) {
	if f.opts.Spill == nil {
		return false
	}
	c := f.sched
	f.mu.Lock()
	gen, left := f.gen, c.hosts.Len()+c.idle.Len()
	f.mu.Unlock()
	footprint := f.opts.Spill.Footprint()
	f.mu.Lock()
	if f.gen == gen && footprint < f.footprint { // else a later checkpoint foresees others
		f.footprint, freed = footprint, true
	}
	f.mu.Unlock()
	for f.lockOpen() == nil {
		c.advance(f.last) // hosts whose delays have passed
		f.departLocked()
		n := c.hosts.Len() + c.idle.Len()
		fewer := n < left
		left, freed = n, freed || fewer
		f.dispatchLocked()
		f.mu.Unlock()
		if !fewer {
			break
		}
	}
	return freed
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
		s.emit(Event{Kind: EventStoreError, Reason: "recalling known URLs", Err: err})
	}
}

// sharePopularLocked gives popular marks what others leave of the budget, at
// most a quarter of it.
func (s *shard) sharePopularLocked() {
	budget := s.opts.MemoryBudget
	young := max(0, budget/16-s.known.YoungSize()) // that may yet come
	rest := budget*3/4 - s.footprint - young - s.fixedLocked()
	s.known.Popular.SetLimit(max(minPopular, min(budget/4, rest)))
}
