// This file lets hosts leave memory that have learned something and have nothing
// to do, and brings them back.
//
// What was learned of a dormant host waits in its row. A host leaves once the
// row on disk says what memory says, and once every call is settled that named
// the host while it was in memory. It comes back when a call names it again: the
// call reads the row outside the lock and makes the host resident under it. A
// filter in memory tells which hosts have no row, which spares most reads.
//
// Without a Spill such hosts stay in memory.

package frontier

import (
	"context"
	"fmt"
	"time"
)

const (
	departAtOnce = 256 // hosts that leave under one lock
	restAtOnce   = 256 // hosts whose time passes under one lock
	savesAtOnce  = 256 // rows of departing hosts in one batch

	departureShards = 1024 // a power of 2
	unwrittenPos    = -1   // host.pos of a departing host whose row must be written
)

// departures is the FIFO of hosts in place departing. An entry counts if its
// number is still its host's pos: a host that came back, or was named again, has
// left its entry behind.
//
// The zero value is empty.
type departures struct {
	out, in []departure // out[next:] are before in
	next    int
	popped  uint32 // number of the first entry
}

type departure struct {
	after uint64 // the call that must be settled before
	host  uint32
}

func (d *departures) len() int { return len(d.out) - d.next + len(d.in) }

// push appends an entry and returns its number.
func (d *departures) push(x departure) int32 {
	n := d.popped + uint32(d.len())
	d.in = append(d.in, x)
	return int32(n & (1<<31 - 1))
}

// first returns the first entry and its number.
func (d *departures) first() (departure, int32) {
	if d.next == len(d.out) {
		if cap(d.out) > 1<<16 {
			d.out = nil // after a flood
		}
		d.out, d.in, d.next = d.in, d.out[:0], 0
	}
	return d.out[d.next], int32(d.popped & (1<<31 - 1))
}

func (d *departures) pop() { d.next, d.popped = d.next+1, d.popped+1 }

func (d *departures) size() int64 { return int64(cap(d.out)+cap(d.in)) * 16 }

// learned reports whether something is known of a host that must outlive its
// URLs.
func (h *host) learned() bool { return h.crawlDelay > 0 || h.has(troubled|assigned|counted) }

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
func (c *core) depart(id uint32) {
	h := c.hosts.at(id)
	if !h.learned() && h.group != 0 {
		c.leaveGroup(h)
		h.set(unsaved)
	}
	c.put(h, departing)
	h.pos = c.departures.push(departure{c.submitted, id})
}

// departed removes hosts from memory that may leave now that the calls up to
// settled are.
func (c *core) departed(settled uint64) {
	for n := 0; n < departAtOnce && c.departures.len() > 0; n++ {
		x, number := c.departures.first()
		if x.after > settled {
			return
		}
		c.departures.pop()
		h := c.hosts.at(x.host)
		switch {
		case h.place != departing || h.pos != number:
		case h.saved():
			c.left[c.hash(c.name(h))%departureShards]++
			c.put(h, nowhere)
			c.forget(x.host)
		default:
			h.pos = unwrittenPos
			c.unwritten = append(c.unwritten, x.host)
		}
	}
}

// named notes that an op is submitted: departing hosts that it names stay until
// it is settled.
func (c *core) named(entries []newEntry) {
	c.submitted++
	if c.departures.len() == 0 && len(c.unwritten) == 0 {
		return
	}
	for i := range entries {
		e := &entries[i]
		if i > 0 && e.ofHost(&entries[i-1]) || !c.rows.Has(e.hash) {
			continue
		}
		if id := c.lookup(e.hash, e.host); id != 0 && c.hosts.at(id).place == departing {
			c.depart(id)
		}
	}
}

func (e *newEntry) ofHost(other *newEntry) bool {
	return e.hash == other.hash && e.host == other.host
}

// departLocked lets hosts leave whose time has come. It may not be called between
// finding a host in memory and the submission of what names it.
func (f *Frontier) departLocked() {
	if f.core.departures.len() > 0 {
		f.core.departed(f.core.submitted - uint64(f.finishing))
	}
}

// savesLocked returns the rows that must be written before hosts may leave. These
// are pinned until settleSavesLocked.
func (f *Frontier) savesLocked() (rows []Row) {
	c := f.core
	n := min(len(c.unwritten), savesAtOnce)
	for _, id := range c.unwritten[:n] {
		h := c.hosts.at(id)
		if h.place != departing || h.pos != unwrittenPos {
			continue // it came back, or will leave another time
		}
		c.put(h, nowhere)
		h.pins++
		h.clear(unsaved | behind)
		if h.learned() {
			h.set(stored)
			c.rows.Add(c.hash(c.name(h))) // it may be the first
			rows = append(rows, f.hostRow(id, h.due, h.why))
		} else {
			h.clear(stored)
			rows = append(rows, Row{Key: rowHost + string(c.name(h))})
		}
		f.committer.saving = append(f.committer.saving, id)
	}
	if c.unwritten = c.unwritten[n:]; len(c.unwritten) == 0 {
		c.unwritten = nil
	}
	return rows
}

// settleSavesLocked ends what savesLocked began.
func (f *Frontier) settleSavesLocked(err error) {
	for _, id := range f.committer.saving {
		if err != nil {
			h := f.core.hosts.at(id)
			h.set(unsaved | stored) // as far as anybody knows
		}
		f.unpinLocked(id, f.last)
	}
	f.committer.saving = f.committer.saving[:0]
}

// absentee is a host that was not in memory when a call needed it, and what the
// Spill said about it.
type absentee struct {
	hash  uint64
	host  string
	state hostState
	found bool // it has a row
	known bool // the Spill was asked
	left  uint32
}

// absentLocked reports whether a must be read before its host may be named.
func (f *Frontier) absentLocked(a *absentee) bool {
	c := f.core
	if !c.rows.Has(a.hash) || c.lookup(a.hash, a.host) != 0 {
		return false
	}
	left := c.left[a.hash%departureShards]
	if a.known && a.left == left {
		return false
	}
	a.known, a.left = false, left // it may have come and gone since it was read
	return true
}

// returnLocked makes a's host resident if it has a row and is not.
func (f *Frontier) returnLocked(a *absentee) {
	c := f.core
	if !a.known || !a.found || c.lookup(a.hash, a.host) != 0 {
		return
	}
	id := c.ensure(a.hash, a.host)
	f.remember(id, &a.state)
	c.settle(id, f.last)
}

// crawlDelayNs is the host's crawl delay in nanoseconds.
func (h *host) crawlDelayNs() int64 { return int64(h.crawlDelay) * int64(time.Millisecond) }

// heldUntil is until when a host that is left alone so long after a contact may
// not be contacted because the store was opened after a crash.
func (f *Frontier) heldUntil(gap int64) int64 {
	if f.heldFrom == notHeld {
		return 0
	}
	return f.heldFrom + max(f.maxDelay, gap)
}

// read asks the Spill for a's row.
func (f *Frontier) readRow(ctx context.Context, a *absentee) error {
	key, found := rowHost+a.host, false
	value, err := ask(ctx, f, func() (*[]byte, error) {
		v, found, err := f.opts.Spill.Row(key)
		if !found {
			return nil, err
		}
		return &v, err
	})
	if found = value != nil; err == nil && found {
		a.state, err = decodeHost(a.host, *value)
	}
	if err != nil {
		if f.isClosed() {
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
		if !f.absentLocked(&a) {
			f.returnLocked(&a)
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
func (f *Frontier) hostsAbsentLocked(o *op) bool {
	c := f.core
	if c.rows.Len() == 0 {
		return false
	}
	absent := false
	present := -1 // an entry of the last host that was found in memory, or without a row
	for i := range o.entries {
		e := &o.entries[i]
		if present >= 0 && e.ofHost(&o.entries[present]) || f.knownLocked(e) {
			continue
		}
		if e.absentee == 0 {
			a := absentee{hash: e.hash, host: e.host}
			if !f.absentLocked(&a) {
				present = i
				continue
			}
			o.absent = append(o.absent, a)
			e.absentee = int32(len(o.absent))
			absent = true
			continue
		}
		absent = f.absentLocked(&o.absent[e.absentee-1]) || absent
	}
	if absent {
		return true
	}
	for i := range o.absent {
		a := &o.absent[i]
		if !f.absentLocked(a) { // else its entry turned out to be known
			f.returnLocked(a)
		}
	}
	return false
}

// readHosts reads the rows that hostsAbsentLocked wants.
func (f *Frontier) readHosts(o *op) error {
	for i := range o.absent {
		if a := &o.absent[i]; !a.known {
			if err := f.readRow(o.context(), a); err != nil {
				return err
			}
		}
	}
	return nil
}

// newAbsentees lists the hosts of records.
func newAbsentees(records []timedLoaded) []absentee {
	var hosts []absentee
	listed := map[string]bool{}
	for i := range records {
		if r := &records[i]; !listed[r.Host] {
			listed[r.Host] = true
			hosts = append(hosts, absentee{hash: r.hash, host: r.Host})
		}
	}
	return hosts
}

// absenteesLocked returns those of the hosts that must be read before they may be
// named.
func (f *Frontier) absenteesLocked(hosts []absentee) (wanted []*absentee) {
	for i := range hosts {
		if f.absentLocked(&hosts[i]) {
			wanted = append(wanted, &hosts[i])
		}
	}
	return wanted
}

// readRows reads the rows of hosts.
func (f *Frontier) readRows(hosts []*absentee) error {
	for _, a := range hosts {
		if err := f.readRow(patient, a); err != nil {
			return err
		}
	}
	return nil
}
