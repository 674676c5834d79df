// This file saves and restores what a Scheduler knows beyond the states of pages.

package recrawl

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"math"
	"slices"
	"time"
)

// snapshotVersion is the first byte of a snapshot. In every version the last four bytes are the
// checksum of all before them, which distinguishes a snapshot of another version from a damaged one.
const snapshotVersion = 2

// ErrVersion is wrapped by the error for a snapshot whose format this version cannot read. The
// snapshot is not damaged: the version that wrote it can read it.
var ErrVersion = errors.New("recrawl: another version's snapshot")

// CorruptError reports saved state that cannot be read. The Scheduler is unchanged; it can be
// rebuilt from the pages with Learn.
type CorruptError struct{ Reason string }

// Error implements error.
func (e *CorruptError) Error() string { return "recrawl: corrupt snapshot: " + e.Reason }

// MarshalBinary returns the state of the Scheduler for UnmarshalBinary: a few bytes for each pair
// of rate and weight in use, and 100 to 3,000 bytes for each host that has a rate or a record of
// claims. The caller must store the states of the pages; a snapshot belongs to the page states of
// the same moment.
func (s *Scheduler) MarshalBinary() ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := writer{b: []byte{snapshotVersion}}
	w.uint(s.random)
	w.floats(s.prices.log, s.promised, s.hostTake, s.flow.share, s.flow.asides, s.budget.perDay, s.budget.gap, s.pace.held)
	w.bools(s.budget.given, s.flow.measured)
	w.ints(s.wait, s.blank, s.flow.arrived, s.flow.first, s.flow.aside, s.flow.visits, s.budget.done, s.budget.late)
	w.floats(s.budget.elapsed, s.volatiles.logOdds)
	w.times(s.budget.last, s.pace.next)
	c := s.stats
	w.ints(int64(c.visits), int64(c.first), int64(c.probes), int64(c.late), int64(c.held), int64(c.solves))
	for _, n := range s.demand.fresh {
		w.int(n)
	}
	w.cells(&s.demand)
	w.spread(&s.demand.free)
	w.uint(uint64(len(s.hosts)))
	for _, id := range slices.Sorted(maps.Keys(s.hosts)) {
		w.host(id, s.hosts[id])
	}
	return binary.BigEndian.AppendUint32(w.b, crc32.ChecksumIEEE(w.b)), nil
}

// UnmarshalBinary replaces the state of the Scheduler by one that MarshalBinary returned. The options
// stay: create the Scheduler with those of the saved one, and call SetBudget again if the budget has
// changed. The error is a *CorruptError or wraps ErrVersion; after an error the Scheduler is unchanged.
func (s *Scheduler) UnmarshalBinary(data []byte) error {
	if len(data) < 5 || crc32.ChecksumIEEE(data[:len(data)-4]) != binary.BigEndian.Uint32(data[len(data)-4:]) {
		return &CorruptError{"its checksum is wrong"}
	}
	if data[0] != snapshotVersion {
		return fmt.Errorf("%w: it has version %d, this program knows %d", ErrVersion, data[0], snapshotVersion)
	}
	r := reader{b: data[1 : len(data)-4]}
	n := &Scheduler{hosts: map[uint32]*host{}}
	n.demand.prior = s.prior[0]
	n.random = r.uint()
	log := 0.
	r.floats(leastPrice, mostPrice, &log)
	r.floats(0, mostSum, &n.promised, &n.hostTake)
	r.floats(0, 1, &n.flow.share, &n.flow.asides)
	r.floats(0, math.MaxFloat64, &n.budget.perDay)
	r.floats(0, mostSum, &n.budget.gap, &n.pace.held)
	r.bools(&n.budget.given, &n.flow.measured)
	r.ints(&n.wait, &n.blank, &n.flow.arrived, &n.flow.first, &n.flow.aside, &n.flow.visits, &n.budget.done, &n.budget.late)
	r.floats(0, mostSum, &n.budget.elapsed)
	r.floats(math.Log(leastOdds), 0, &n.volatiles.logOdds)
	r.times(&n.budget.last, &n.pace.next)
	for _, c := range []*uint64{&n.stats.visits, &n.stats.first, &n.stats.probes, &n.stats.late, &n.stats.held, &n.stats.solves} {
		*c = uint64(r.int())
	}
	for w := range n.demand.fresh {
		r.ints(&n.demand.fresh[w])
		n.demand.news += n.demand.fresh[w]
	}
	r.cells(&n.demand)
	r.spread(&n.demand.free)
	for left := r.uint(); left > 0 && r.err == nil; left-- {
		id, h := r.host()
		if n.hosts[id] != nil {
			r.err = errors.New("a host comes twice")
			break
		}
		n.hosts[id] = h
		if h.own != nil {
			n.hostCopy.add(h.copy, 1)
			n.atHosts += h.own.pages
		}
	}
	if r.err == nil && n.wait > mostWait {
		r.err = errors.New("its price would never be found again")
	}
	if r.err == nil && len(r.b) > 0 {
		r.err = errors.New("something follows its end")
	}
	if r.err != nil {
		return &CorruptError{r.err.Error()}
	}
	n.prices.set(log)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.random, s.demand, s.prices, s.hosts, s.hostTake, s.hostCopy = n.random, n.demand, n.prices, n.hosts, n.hostTake, n.hostCopy
	s.atHosts, s.blank, s.promised, s.wait = n.atHosts, n.blank, n.promised, n.wait
	s.budget, s.flow, s.pace, s.stats, s.volatiles = n.budget, n.flow, n.pace, n.stats, n.volatiles
	return nil
}

// writer appends values.
type writer struct{ b []byte }

func (w *writer) uint(v uint64) { w.b = binary.AppendUvarint(w.b, v) }
func (w *writer) int(v int64)   { w.b = binary.AppendVarint(w.b, v) }

func (w *writer) ints(v ...int64) {
	for _, x := range v {
		w.int(x)
	}
}

func (w *writer) floats(v ...float64) {
	for _, x := range v {
		w.b = binary.BigEndian.AppendUint64(w.b, math.Float64bits(x))
	}
}

func (w *writer) bools(v ...bool) {
	for _, x := range v {
		n := byte(0)
		if x {
			n = 1
		}
		w.b = append(w.b, n)
	}
}

// times keeps a time's nanoseconds since 1970; 0: the zero time.
func (w *writer) times(v ...time.Time) {
	for _, x := range v {
		n := int64(0)
		if !x.IsZero() {
			n = max(1, x.Sub(time.Unix(0, 0)).Nanoseconds()) // within its bounds
		}
		w.int(n)
	}
}

// cells writes each cell as the distance from the previous one, and its count.
func (w *writer) cells(d *demand) {
	n, last := 0, -1
	count := len(w.b)
	w.b = append(w.b, 0, 0, 0)
	for i := range 256 * 256 {
		if k := d.cells[i/256][i%256]; k != 0 {
			w.uint(uint64(i - last))
			w.uint(uint64(k))
			last = i
			n++
		}
	}
	w.b[count], w.b[count+1], w.b[count+2] = byte(n>>16), byte(n>>8), byte(n)
}

func (w *writer) host(id uint32, h *host) {
	w.uint(uint64(id))
	w.b = append(w.b, h.hits, h.misses)
	w.uint(uint64(h.pending))
	w.bools(h.own != nil)
	if h.own == nil {
		return
	}
	w.floats(h.most, h.shift, h.take, h.promised, h.copy.fresh, h.copy.weight)
	w.ints(h.blank, h.wait)
	w.spread(h.own)
}

func (w *writer) spread(s *spread) {
	last := -1
	for b, n := range s.count {
		if n != 0 {
			w.uint(uint64(b - last))
			w.uint(uint64(n))
			w.floats(s.rates[b])
			last = b
		}
	}
	w.uint(0)
}

// reader decodes values from a byte slice. After an error it returns zeros.
type reader struct {
	b   []byte
	err error
}

func (r *reader) fail() { r.err, r.b = errors.New("it ends too early"), nil }

func (r *reader) uint() uint64 { return number(r, binary.Uvarint) }
func (r *reader) int() int64   { return number(r, binary.Varint) }

func number[T uint64 | int64](r *reader, read func([]byte) (T, int)) T {
	v, n := read(r.b)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.b = r.b[n:]
	return v
}

// mostCounted is more than anything that is counted, mostSum than anything that is summed up.
const (
	mostCounted = 1 << 48
	mostSum     = 1e30
)

func (r *reader) ints(v ...*int64) {
	for _, x := range v {
		if *x = r.int(); *x < -1 || *x > mostCounted { // a wait may exceed it by one
			r.err = errors.New("a count is out of bounds")
		}
	}
}

func (r *reader) floats(least, most float64, v ...*float64) {
	for _, x := range v {
		if len(r.b) < 8 {
			r.fail()
			return
		}
		*x = math.Float64frombits(binary.BigEndian.Uint64(r.b))
		if !(*x >= least && *x <= most) { // also refuses NaN
			r.err = errors.New("a number is out of bounds")
		}
		r.b = r.b[8:]
	}
}

func (r *reader) byte() byte {
	if len(r.b) == 0 {
		r.fail()
		return 0
	}
	v := r.b[0]
	r.b = r.b[1:]
	return v
}

func (r *reader) bools(v ...*bool) {
	for _, x := range v {
		*x = r.byte() == 1
	}
}

func (r *reader) times(v ...*time.Time) {
	for _, x := range v {
		if n := r.int(); n != 0 {
			*x = time.Unix(0, n)
		}
	}
}

func (r *reader) cells(d *demand) {
	n := int(r.byte())<<16 | int(r.byte())<<8 | int(r.byte())
	for i := -1; n > 0 && r.err == nil; n-- {
		step, k := r.uint(), r.uint()
		if step == 0 || step > uint64(256*256-1-i) || k > math.MaxInt32 {
			r.err = errors.New("a cell is outside of the histogram")
			return
		}
		i += int(step)
		d.add(State{byte(i / 256), 1, byte(i%256) ^ 0x80}, int32(k))
	}
}

func (r *reader) host() (uint32, *host) {
	id := uint32(r.uint())
	h := &host{hits: r.byte(), misses: r.byte(), pending: uint16(r.uint())}
	var own bool
	if r.bools(&own); !own {
		return id, h
	}
	h.own = new(spread)
	r.floats(0, math.MaxFloat64, &h.most)
	r.floats(0, mostPrice-leastPrice, &h.shift)
	r.floats(0, mostSum, &h.take, &h.promised, &h.copy.fresh, &h.copy.weight)
	r.ints(&h.blank, &h.wait)
	r.spread(h.own)
	return id, h
}

func (r *reader) spread(s *spread) {
	for b := -1; r.err == nil; {
		step := r.uint()
		if step == 0 {
			break
		}
		if step > uint64(bins-1-b) {
			r.err = errors.New("a page is outside of its host's histogram")
			break
		}
		b += int(step)
		n := r.uint()
		if n > math.MaxInt32 {
			r.err = errors.New("a host has too many pages")
			break
		}
		s.count[b] = int32(n)
		s.pages += int64(n)
		r.floats(0, 2*float64(n)*rates[255], &s.rates[b])
	}
}
