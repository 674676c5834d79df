// Package dormant keeps the hosts that leave memory because they rest: in which order
// they may go, which rows must be written before, and, of those that have left, which
// may have a row on disk. Hosts are numbers, and outside memory hashes of their names.
// No lock: callers hold the frontier's.
package dormant

import "github.com/seed-7440039f/frontier/internal/bloom"

const (
	shards    = 1024 // a power of 2
	placeMask = 1<<31 - 1
)

// Unwritten is the place of a departing host whose row must be written.
const Unwritten int32 = -1

// Hosts is a FIFO of the hosts that depart, and what is known of those that left. An
// entry of the FIFO counts if its number is still its host's place: a host that came
// back, or that a call named again, leaves its entry behind.
//
// The zero value is empty.
type Hosts struct {
	out, in   []entry // out[next:] are before in
	next      int
	popped    uint32         // number of the first entry
	unwritten []uint32       // hosts whose rows must be written before they go
	submitted uint64         // calls so far
	left      [shards]uint32 // how many hosts with a row left memory, by hash
	rows      bloom.Filter   // hashes of the hosts that have a row, and others
}

type entry struct {
	after uint64 // the call that must be settled before
	host  uint32
}

// Len is how many entries the FIFO has.
func (d *Hosts) Len() int { return len(d.out) - d.next + len(d.in) }

// Submitted notes that a call is submitted, and reports whether any host departs: those
// that the call names must depart once more, behind it.
func (d *Hosts) Submitted() (departing bool) {
	d.submitted++
	return d.Len() > 0 || len(d.unwritten) > 0
}

// Depart lets a host leave when all calls submitted so far are settled, and returns its
// place.
func (d *Hosts) Depart(host uint32) (place int32) {
	n := d.popped + uint32(d.Len())
	d.in = append(d.in, entry{d.submitted, host})
	return int32(n & placeMask)
}

// Pop takes the first entry out if the calls before it are settled, all but the
// youngest ones under way. It returns the host, and the place that it has if the entry
// counts.
func (d *Hosts) Pop(underWay int) (host uint32, place int32, ok bool) {
	if d.Len() == 0 {
		return 0, 0, false
	}
	if d.next == len(d.out) {
		if cap(d.out) > 1<<16 {
			d.out = nil // after a flood
		}
		d.out, d.in, d.next = d.in, d.out[:0], 0
	}
	x := d.out[d.next]
	if x.after > d.submitted-uint64(underWay) {
		return 0, 0, false
	}
	place = int32(d.popped & placeMask)
	d.next, d.popped = d.next+1, d.popped+1
	return x.host, place, true
}

// MustWrite notes a host whose row must be written before it goes, and returns its place.
func (d *Hosts) MustWrite(host uint32) (place int32) {
	d.unwritten = append(d.unwritten, host)
	return Unwritten
}

// TakeUnwritten returns up to n hosts of MustWrite, and forgets them: some may have
// another place by now. They are valid until the next MustWrite.
func (d *Hosts) TakeUnwritten(n int) []uint32 {
	out := d.unwritten[:min(n, len(d.unwritten))]
	if d.unwritten = d.unwritten[len(out):]; len(d.unwritten) == 0 {
		d.unwritten = nil
	}
	return out
}

// Gone notes that a host has left. Departures counts those with hashes like this one:
// what was read of a host before it changed may be out of date.
func (d *Hosts) Gone(hash uint64) { d.left[hash%shards]++ }

// Departures is how many hosts with a hash like this have left so far.
func (d *Hosts) Departures(hash uint64) uint32 { return d.left[hash%shards] }

// HasRow notes that a host has a row, or will have one.
func (d *Hosts) HasRow(hash uint64) { d.rows.Add(hash) }

// MayHaveRow reports false of most hosts without a row, and true of all that have one.
func (d *Hosts) MayHaveRow(hash uint64) bool { return d.rows.Has(hash) }

// Rows is how many hosts were found to have rows.
func (d *Hosts) Rows() int { return d.rows.Len() }

// Size is how many bytes it takes, the arrays in it excepted.
func (d *Hosts) Size() int64 { return d.rows.Size() + int64(cap(d.out)+cap(d.in))*16 }

// Places calls see with each host that departs and a place it may have: with the one
// that it has if it will leave.
func (d *Hosts) Places(see func(host uint32, place int32)) {
	n := d.popped
	for _, part := range [][]entry{d.out[d.next:], d.in} {
		for _, x := range part {
			see(x.host, int32(n&placeMask))
			n++
		}
	}
	for _, host := range d.unwritten {
		see(host, Unwritten)
	}
}
