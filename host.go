// This file keeps one record for each host about which anything must be known, and finds
// it by the host's key.
//
// A host without URLs, leases and a learned delay whose time has passed has no record:
// its defaults apply. A host with a learned delay has none either, once its row is saved:
// see dormant.go.

package frontier

import (
	"math/rand/v2"
	"time"
	"unsafe"

	"github.com/seed-7440039f/frontier/internal/arena"
	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/internal/row"
	"github.com/seed-7440039f/frontier/internal/trouble"
	"github.com/seed-7440039f/frontier/storage"
)

// place is the structure that a host is in. It is in exactly one.
type place uint8

const (
	nowhere   place = iota // nothing waits, and its time has passed or is not known
	idling                 // nothing waits; scheduler.idle holds its time
	departing              // nothing waits, and its time has passed; it leaves memory when its row is saved
	unbound                // has a token in each front queue that it has URLs for
	parked                 // scheduler.parked holds its time; no resident URLs
	withheld               // a rule keeps it from being served; scheduler.withheld has it; no resident URLs
	unpurged               // a deletion has its next URL; its sweep, which is yet to come, puts the host where it belongs
	pacing                 // bound: in the heap, by itself or within its group
	queued                 // bound: due, and waits for a slot of its group
	ready                  // bound: in each ready list that it has URLs for
	called                 // bound: a Contact waits for it and may have it now
	loading                // bound: a caller reads its next URLs from disk
	leased                 // bound: it has as many leases out as it may
)

// host is the record of one host. It contains no pointers.
type host struct {
	due        int64     // it may be contacted from here on, ns since Open
	name       arena.Ref // its key, with nameLen bytes
	queues     uint32    // first of its queues, by descending priority
	group      uint32    // that it belongs to; 0: none
	waiting    int32     // URLs in its queues
	scheduled  int32     // URLs with a future time
	pins       int32     // completions and rows of it on their way to disk
	crawlDelay int32     // milliseconds
	pos        int32     // in what place implies: the heap, core.dormant, scheduler.leases; or a withheldReason
	served     uint16    // hand-outs since it was bound
	nameLen    uint8
	place      place
	wanted     bool // Contact calls wait for it
	hasSlot    bool // while not leased: it occupies a slot of its group
	flags      hostFlags
	why        why // it may not be contacted before due
}

// hostFlags are facts about a host.
type hostFlags uint8

const (
	stored   hostFlags = 1 << iota // a row of it is on disk, or on its way
	unsaved                        // the row is out of date
	behind                         // the same, and only a host that leaves memory needs a new row
	troubled                       // it has an entry in scheduler.troubles
	assigned                       // Assign put it into its group
	counted                        // something is counted for it alone: see limit.Book
)

// has reports whether one of the flags is set.
func (h *host) has(f hostFlags) bool { return h.flags&f != 0 }

func (h *host) set(f hostFlags) { h.flags |= f }

func (h *host) clear(f hostFlags) { h.flags &^= f }

// put notes that a host is in another place.
func (t *tables) put(h *host, p place) {
	t.places[h.place]--
	h.place = p
	t.places[p]++
}

func (t *tables) name(h *host) []byte {
	return t.names.Bytes(h.name)[:h.nameLen]
}

// lookup returns the host's number, or 0.
func (t *tables) lookup(hash uint64, name string) uint32 {
	for id := range t.index.Candidates(hash) {
		if string(t.name(t.hosts.At(id))) == name {
			return id
		}
	}
	return 0
}

// ensure returns the host's number, of a new record if there is none. A new host
// may be contacted at once, or after a crash when the scheduler starts.
func (s *scheduler) ensure(hash uint64, name string) uint32 {
	if id := s.lookup(hash, name); id != 0 {
		return id
	}
	id := s.hosts.Alloc()
	s.places[nowhere]++
	h := s.hosts.At(id)
	var mem []byte
	h.name, mem = s.names.Alloc(len(name))
	copy(mem, name)
	h.nameLen, h.due = uint8(len(name)), s.startsAt
	if s.hostStartsAt != nil {
		h.due = max(h.due, s.hostStartsAt(name))
	}
	if h.due > 0 {
		h.why = whyReopened
	}
	s.index.Add(hash, id)
	s.order.Came(id)
	return id
}

// forget removes the record of a host that is nowhere.
func (s *scheduler) forget(id uint32) {
	h := s.hosts.At(id)
	for q := h.queues; q != 0; {
		x := s.queues.At(q)
		s.fifo.End(&x.Queue)
		next := x.sibling
		s.releaseQueue(q)
		q = next
	}
	s.leaveGroup(h)
	if h.has(troubled) {
		s.setTrouble(id, trouble.State{})
	}
	if h.has(counted) {
		s.dropUsage(id)
	}
	s.order.Leaves(id)
	s.fifo.Gone(id)
	s.index.Remove(s.hash(s.name(h)), id)
	s.places[nowhere]--
	s.names.Free(h.name, int(h.nameLen))
	s.hosts.Release(id)
}

// hostBytes is what a host with one queue costs in memory.
const hostBytes = int64(unsafe.Sizeof(host{})+unsafe.Sizeof(queue{})) + 24 + 12

// hostRow returns the row of a host that may be contacted from due on.
func (s *scheduler) hostRow(id uint32, due int64, why why) storage.Row {
	h := s.hosts.At(id)
	saved := row.Host{Due: s.clock.Stored(due), CrawlDelay: h.crawlDelay, Why: uint8(why), Assigned: h.has(assigned)}
	if h.group != 0 {
		saved.Group = s.groupName(s.groups.At(h.group))
	}
	if h.has(troubled) {
		t := s.troubles[id]
		saved.Trouble = row.Trouble{
			Quiet: instant.Millis(s.clock.Wall(t.Quiet)), Free: s.clock.Stored(t.Free),
			Step: t.Step, From: t.From, Search: t.Search, Relapses: t.Relapses, Eased: t.Eased,
			Fails: t.Fails, Probes: t.Probes, Lanes: t.Lanes, Failure: t.Kind, Usual: t.Usual,
		}
	}
	if h.has(counted) {
		saved.Used = s.limits.HostRow(id, s.name(h))
	}
	return saved.Row(string(s.name(h)))
}

// remember restores a host from its row. youngest is the token of the last lease.
func (s *scheduler) remember(id uint32, saved *row.Host, youngest uint64, now int64) {
	h := s.hosts.At(id)
	h.crawlDelay = saved.CrawlDelay
	h.set(stored)
	if t := s.troubleOfRow(saved, youngest, now); !t.Over() {
		s.setTrouble(id, t)
		s.outlived(id, now)
	}
	if saved.Used != (row.Usage{}) {
		s.book(youngest).RestoreHost(id, saved.Used, s.date(now))
		h.set(counted)
	}
	if due, why := s.dueOfRow(saved, now); due >= h.due { // what the row says is more exact
		h.due, h.why = due, why
	}
	if saved.Group != "" {
		s.joinGroup(h, s.groupOf(saved.Group))
		if saved.Assigned {
			h.set(assigned)
		}
	}
}

// troubleOfRow returns a host's failures from its row.
func (s *scheduler) troubleOfRow(saved *row.Host, youngest uint64, now int64) trouble.State {
	x := &saved.Trouble
	t := trouble.State{
		Step: x.Step, From: x.From, Search: x.Search, Relapses: x.Relapses, Eased: x.Eased,
		Fails: x.Fails, Probes: x.Probes, Lanes: x.Lanes, Kind: x.Failure, Usual: x.Usual,
	}
	if s.cfg.backoff.Disabled {
		t.Step, t.Lanes, t.Relapses, t.Eased, t.Usual = 0, 0, 0, false, 0
	}
	if s.cfg.quarantine.Disabled {
		t.Probes = 0
	}
	t.Quiet = min(s.clock.Moment(instant.FromMillis(x.Quiet)), now)
	t.Free = min(s.clock.Moment(instant.FromMillis(x.Free)), now+int64(row.MaxDelay))
	t.Raised, t.Counted = youngest, youngest // leases from before have ended
	return t
}

// dueOfRow returns when a host with this row may be contacted, and which clock
// determines that.
func (s *scheduler) dueOfRow(saved *row.Host, now int64) (int64, why) {
	due := s.clock.Moment(instant.FromMillis(saved.Due))
	if saved.Due != 0 { // the clock may have been set ahead since: in doubt it was before
		due = min(due, instant.LastMoment) + s.clock.Gained()
	}
	due = min(due, now+int64(row.MaxDelay))
	if at := s.startOfRow(saved, now); at > due {
		return at, whyReopened
	}
	return due, why(saved.Why)
}

// startOfRow is until when a host with this row is left alone because the store was opened
// after a crash.
func (s *scheduler) startOfRow(saved *row.Host, now int64) int64 {
	gap := int64(saved.CrawlDelay) * int64(time.Millisecond)
	t := s.troubleOfRow(saved, 0, now)
	if g, why := s.cfg.gapOf(&t); why != whyQuarantine || s.clock.Moment(instant.FromMillis(saved.Due)) <= s.reopenedAt { // else no probe was under way
		gap = max(gap, int64(s.cfg.backoff.Longest(g)))
	}
	return s.startAfter(gap)
}

// note returns the host's row if a crash would otherwise lose something: what was
// learned about it, its group, or a time beyond that for which every host is left alone
// after a crash. The host may be contacted from due on, or later.
func (s *scheduler) note(id uint32, due int64, why why, now int64) (storage.Row, bool) {
	h := s.hosts.At(id)
	if due <= h.due {
		due, why = h.due, h.why
	}
	if !h.has(unsaved) && due-now <= s.cfg.maxDelay {
		return storage.Row{}, false
	}
	h.clear(unsaved | behind)
	h.set(stored)
	s.dormant.HasRow(s.hash(s.name(h)))
	return s.hostRow(id, due, why), true
}

// noteLocked adds the host's row to o if it is wanted: see note. Then the host is pinned until o is
// settled.
func (s *shard) noteLocked(o *op, id uint32, due int64, why why, now int64) {
	if saved, ok := s.sched.note(id, due, why, now); ok {
		s.pinLocked(o, id)
		o.rows = append(o.rows, saved)
	}
}

// pinLocked keeps a host in memory until o is settled.
func (s *shard) pinLocked(o *op, id uint32) {
	if o.pinned == 0 {
		s.sched.hosts.At(id).pins++
		o.pinned = id
	}
}

// why names the clock that a host's due comes from.
type why uint8

const (
	whyNone       why = iota // none: it was not contacted
	whyDelay                 // the delay policy's
	whyCrawlDelay            // Crawl-delay
	whyRetryAfter            // Retry-After
	whyBackoff               // its back-off
	whyQuarantine            // the next probe
	whyReopened              // the store was opened after a crash
	whys
)

// clocks is when a host may be contacted again.
type clocks struct {
	lane int64 // under the lane of the contact: its end and the delay; 0: unchanged
	all  int64 // of all lanes; 0: unchanged
	why  why   // that says when all of them may be used
}

// due is the later of both, and which clock says so.
func (x clocks) due() (int64, why) {
	if x.lane >= x.all {
		return x.lane, whyDelay
	}
	return x.all, x.why
}

// contact is a contact that has ended.
type contact struct {
	end        int64         // a moment
	gap        int64         // that the delay asks for; less than 0: there was no contact
	retryAfter time.Duration // that the host asked for; 0: none
}

// clocksAfter is when a host may be contacted again after a contact that ended as
// planned. Its Crawl-delay, its back-off and Retry-After apply to all lanes.
func (s *scheduler) clocksAfter(id uint32, k contact) clocks {
	h := s.hosts.At(id)
	var x clocks
	later := func(t int64, w why) {
		if t > x.all {
			x.all, x.why = t, w
		}
	}
	if k.gap >= 0 {
		x.lane = k.end + k.gap
		if h.crawlDelay > 0 {
			later(k.end+h.crawlDelayNs(), whyCrawlDelay)
		}
	}
	if k.retryAfter > 0 {
		later(k.end+int64(min(k.retryAfter, row.MaxDelay)), whyRetryAfter)
	}
	if h.has(troubled) {
		s.freeFrom(id, max(x.lane, x.all))
		if gap, w := s.troubleGap(id); gap > 0 && k.gap >= 0 {
			later(k.end+int64(gap+s.cfg.backoff.AtRandom(gap, rand.Uint64())), w)
		}
	}
	return x
}

// crawlDelayNs is the host's crawl delay in nanoseconds.
func (h *host) crawlDelayNs() int64 { return int64(h.crawlDelay) * int64(time.Millisecond) }

// learned reports whether something about a host must outlive its URLs.
func (h *host) learned() bool { return h.crawlDelay > 0 || h.has(troubled|assigned|counted) }
