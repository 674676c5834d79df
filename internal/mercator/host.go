// This file has one record for each host about which anything must be known, and finds it by the
// host's key.
//
// A host without URLs, leases and a learned delay whose time has passed has no record: its defaults
// apply. A host with a learned delay leaves memory too, once its row is saved: see dormant.go.

package mercator

import (
	"time"

	"github.com/seed-7440039f/frontier/internal/arena"
	"github.com/seed-7440039f/frontier/internal/hostkey"
	"github.com/seed-7440039f/frontier/internal/trouble"
)

// place is the structure that a host is in. It is in exactly one.
type place uint8

const (
	Nowhere   place = iota // nothing waits, and its time has passed or is not known
	Idling                 // nothing waits; Core.Idle holds its time
	Departing              // nothing waits, and its time has passed; it leaves memory when its row is saved
	Unbound                // has a token in each front queue that it has URLs for
	Parked                 // Core.Parks holds its time; no resident URLs
	Withheld               // a rule keeps it from being served; Core.Withheld has it; no resident URLs
	Unpurged               // a deletion has its next URL; its sweep, which is yet to come, puts the host where it belongs
	Pacing                 // bound: in the heap, by itself or within its group
	Queued                 // bound: due, and waits for a slot of its group
	Ready                  // bound: in each ready list that it has URLs for
	Called                 // bound: a Contact waits for it and may have it now
	Loading                // bound: a caller reads its next URLs from disk
	Leased                 // bound: it has as many leases out as it may
)

// Host is the record of one host. It contains no pointers.
type Host struct {
	Due        int64     // it may be contacted from here on, ns since Open
	name       arena.Ref // its key, with NameLen bytes
	Queues     uint32    // first of its queues, by descending priority
	Group      uint32    // that it belongs to; 0: none
	Waiting    int32     // URLs in its queues
	Scheduled  int32     // URLs with a future time
	Pins       int32     // completions and rows of it on their way to disk
	CrawlDelay int32     // milliseconds
	Pos        int32     // in what place implies: the heap, Core.Dormant, Core.Leases; or a WithheldReason
	Served     uint16    // hand-outs since it was bound
	NameLen    uint8
	Place      place
	Wanted     bool // Contact calls wait for it
	Standing   int8 // levels by which its URLs are moved up or down
	flags      hostFlags
	Why        Why // it may not be contacted before due
}

// hostFlags are facts about a host.
type hostFlags uint8

const (
	Stored   hostFlags = 1 << iota // a row of it is on disk, or on its way
	Unsaved                        // the row is out of date
	Behind                         // the same, and only a host that leaves memory needs a new row
	Troubled                       // it has an entry in Core.Troubles
	Assigned                       // Assign put it into its group
	Counted                        // something is counted for it alone: see limit.Book
	HasSlot                        // while not leased: it occupies a slot of its group
)

// Has reports whether one of the flags is set.
func (h *Host) Has(f hostFlags) bool { return h.flags&f != 0 }

// Set sets flags.
func (h *Host) Set(f hostFlags) { h.flags |= f }

// Mark sets or clears flags.
func (h *Host) Mark(f hostFlags, on bool) {
	if h.Clear(f); on {
		h.Set(f)
	}
}

// Clear clears flags.
func (h *Host) Clear(f hostFlags) { h.flags &^= f }

// Put notes that a host is in another place.
func (t *tables) Put(h *Host, p place) {
	t.Places[h.Place]--
	h.Place = p
	t.Places[p]++
}

func (t *tables) Name(h *Host) []byte {
	return t.names.Bytes(h.name)[:h.NameLen]
}

// HashOf is the hash of a host's key.
func (t *tables) HashOf(key string) uint64 { return t.Hash(hostkey.Bytes(key)) }

// Lookup returns the host's number, or 0.
func (t *tables) Lookup(hash uint64, name string) uint32 {
	for id := range t.index.Candidates(hash) {
		if string(t.Name(t.Hosts.At(id))) == name {
			return id
		}
	}
	return 0
}

// Ensure returns the host's number, of a new record if there is none. A new host
// may be contacted at once, or after a crash when StartsAt has come.
func (s *Core) Ensure(hash uint64, name string) uint32 {
	if id := s.Lookup(hash, name); id != 0 {
		return id
	}
	id := s.Hosts.Alloc()
	s.Places[Nowhere]++
	h := s.Hosts.At(id)
	var mem []byte
	h.name, mem = s.names.Alloc(len(name))
	copy(mem, name)
	h.NameLen, h.Due = uint8(len(name)), s.StartOfHost(name)
	if h.Due > 0 {
		h.Why = WhyReopened
	}
	s.index.Add(hash, id)
	s.order.Came(id)
	return id
}

// forget removes the record of a host that is nowhere.
func (s *Core) forget(id uint32) {
	h := s.Hosts.At(id)
	for q := h.Queues; q != 0; {
		x := s.Queues.At(q)
		s.Fifo.End(&x.Queue)
		next := x.Sibling
		s.releaseQueue(q)
		q = next
	}
	s.leaveGroup(h)
	if h.Has(Troubled) {
		s.SetTrouble(id, trouble.State{})
	}
	if h.Has(Counted) {
		s.dropUsage(id)
	}
	s.order.Leaves(id)
	s.Fifo.Gone(id)
	s.index.Remove(s.Hash(s.Name(h)), id)
	s.Places[Nowhere]--
	s.names.Free(h.name, int(h.NameLen))
	s.Hosts.Release(id)
}

const (
	WhyNone       Why = iota // none: it was not contacted
	WhyDelay                 // the delay policy's
	WhyCrawlDelay            // Crawl-delay
	WhyRetryAfter            // Retry-After
	WhyBackoff               // its back-off
	WhyQuarantine            // the next probe
	WhyReopened              // the store was opened after a crash
	Whys
)

// CrawlDelayNs is the host's crawl delay in nanoseconds.
func (h *Host) CrawlDelayNs() int64 { return int64(h.CrawlDelay) * int64(time.Millisecond) }

// Learned reports whether something about a host must outlive its URLs.
func (h *Host) Learned() bool {
	return h.CrawlDelay > 0 || h.Has(Troubled|Assigned|Counted) || h.Standing != 0
}
