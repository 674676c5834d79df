// Package dormant tracks the hosts that leave memory because they are at rest: the order in which
// they may leave, the rows that must be written first, and which of the departed hosts may have a
// row on disk. Hosts are identified by numbers, and outside memory by hashes of their names. It has
// no lock: callers hold the frontier's.
package dormant

import "github.com/seed-7440039f/frontier/internal/bloom"

const (
	shards    = 1024 // a power of 2
	placeMask = 1<<31 - 1
)

// Unwritten is the place of a departing host whose row must be written first.
const Unwritten int32 = -1

// Hosts is a FIFO of departing hosts, with data about departed ones. An entry of the FIFO is valid
// if its number is still its host's place: a host that came back, or that another call named,
// leaves an invalid entry behind.
//
// The zero value is empty.
type Hosts struct {
	out, in   []entry // out[next:] are before in
	next      int
	popped    uint32         // number of the first entry
	unwritten []uint32       // hosts whose rows must be written before they leave
	submitted uint64         // calls so far
	left      [shards]uint32 // how many hosts with a row left memory, by hash
	rows      bloom.Filter   // hashes of hosts that have a row, and some others
}

type entry struct {
	after uint64 // the call that must be settled before
	host  uint32
}

// Len returns the number of entries in the FIFO.
func (d *Hosts) Len() int { return len(d.out) - d.next + len(d.in) }

// Submitted records that a call was submitted, and reports whether any host is departing: those
// that the call names must call Depart again.
func (d *Hosts) Submitted() (departing bool) {
	d.submitted++
	return d.Len() > 0 || len(d.unwritten) > 0
}

// Depart queues a host to leave when all calls submitted so far are settled, and returns its place.
func (d *Hosts) Depart(host uint32) (place int32) {
	n := d.popped + uint32(d.Len())
	d.in = append(d.in, entry{d.submitted, host})
	return int32(n & placeMask)
}

// Pop removes the first entry if the calls before it are settled; underWay is the number of youngest
// calls that are not. It returns the host, and the place that the host has if the entry is valid.
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

// MustWrite records that the row of a host must be written before it leaves, and returns the host's
// place.
func (d *Hosts) MustWrite(host uint32) (place int32) {
	d.unwritten = append(d.unwritten, host)
	return Unwritten
}

// TakeUnwritten returns and forgets up to n hosts of MustWrite; some may have another place by now.
// The slice is valid until the next MustWrite.
func (d *Hosts) TakeUnwritten(n int) []uint32 {
	out := d.unwritten[:min(n, len(d.unwritten))]
	if d.unwritten = d.unwritten[len(out):]; len(d.unwritten) == 0 {
		d.unwritten = nil
	}
	return out
}

// Unwritten reports whether there are hosts for TakeUnwritten.
func (d *Hosts) Unwritten() bool { return len(d.unwritten) > 0 }

// Gone records that a host has left. Departures counts the departed hosts with similar hashes: if
// the count has changed, what was read about a host before may be outdated.
func (d *Hosts) Gone(hash uint64) { d.left[hash%shards]++ }

// Departures returns how many hosts with a similar hash have left so far.
func (d *Hosts) Departures(hash uint64) uint32 { return d.left[hash%shards] }

// HasRow records that a host has a row, or will have one.
func (d *Hosts) HasRow(hash uint64) { d.rows.Add(hash) }

// MayHaveRow returns true for all hosts with a row, and false for most others.
func (d *Hosts) MayHaveRow(hash uint64) bool { return d.rows.Has(hash) }

// Rows returns the number of hosts recorded as having rows.
func (d *Hosts) Rows() int { return d.rows.Len() }

// Size returns its memory in bytes, without the arrays.
func (d *Hosts) Size() int64 { return d.rows.Size() + int64(cap(d.out)+cap(d.in))*16 }

// Places calls see with each departing host and a place; the host will leave if that is its place.
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
