// This file lets hosts leave memory when their time has passed, and brings them back when they are
// named again. What must outlive a host's record is in its row.

package mercator

import (
	"time"

	"github.com/seed-7440039f/frontier/internal/dormant"
	"github.com/seed-7440039f/frontier/internal/hostkey"
	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/internal/row"
	"github.com/seed-7440039f/frontier/internal/trouble"
	"github.com/seed-7440039f/frontier/storage"
)

const (
	departAtOnce = 256 // hosts that leave under one lock
	restAtOnce   = 256 // hosts whose time passes under one lock
	savesAtOnce  = 256 // rows of departing hosts in one batch
)

// saved reports whether the host's row says what must be known of the host, or
// is missing if that is nothing.
func (h *Host) saved() bool {
	if !h.Learned() {
		return !h.Has(Stored)
	}
	return h.Has(Stored) && !h.Has(Unsaved|Behind)
}

// Depart lets a host leave that rests, when everything submitted so far is settled.
func (s *Core) Depart(id uint32) {
	h := s.Hosts.At(id)
	if !h.Learned() && h.Group != 0 {
		s.leaveGroup(h)
		h.Set(Unsaved)
	}
	s.Put(h, Departing)
	h.Pos = s.Dormant.Depart(id)
}

// Departed removes hosts from memory that may leave now that all calls are settled but
// the youngest ones under way.
func (s *Core) Departed(underWay int) {
	if s.Dormant.Len() == 0 {
		return
	}
	for range departAtOnce {
		id, place, ok := s.Dormant.Pop(underWay)
		if !ok {
			return
		}
		h := s.Hosts.At(id)
		switch {
		case h.Place != Departing || h.Pos != place:
		case h.saved():
			s.Dormant.Gone(s.Hash(s.Name(h)))
			s.Put(h, Nowhere)
			s.forget(id)
		default:
			h.Pos = s.Dormant.MustWrite(id)
		}
	}
}

// Saves returns the rows that must be written before hosts may leave, and these hosts, which are
// pinned until then.
func (s *Core) Saves() (rows []storage.Row, hosts []uint32) {
	for _, id := range s.Dormant.TakeUnwritten(savesAtOnce) {
		h := s.Hosts.At(id)
		if h.Place != Departing || h.Pos != dormant.Unwritten {
			continue // it came back, or will leave another time
		}
		s.Put(h, Nowhere)
		h.Pins++
		h.Clear(Unsaved | Behind)
		if h.Learned() {
			h.Set(Stored)
			s.Dormant.HasRow(s.Hash(s.Name(h))) // it may be the first
			rows = append(rows, s.HostRow(id, h.Due, h.Why))
		} else {
			h.Clear(Stored)
			rows = append(rows, storage.Row{Key: row.HostKey + string(s.Name(h))})
		}
		hosts = append(hosts, id)
	}
	return rows, hosts
}

// Absentee is a host that was not in memory when a call needed it, and what the Spill said about it.
type Absentee struct {
	Hash  uint64
	Host  string
	State row.Host
	Found bool // it has a row
	Known bool // the Spill was asked
	left  uint32
}

// Absent reports whether a must be read before its host may be named.
func (s *Core) Absent(a *Absentee) bool {
	if !s.Dormant.MayHaveRow(a.Hash) || s.Lookup(a.Hash, a.Host) != 0 {
		return false
	}
	left := s.Dormant.Departures(a.Hash)
	if a.Known && a.left == left {
		return false
	}
	a.Known, a.left = false, left // it may have come and gone since it was read
	return true
}

// ComeBack makes a's host resident if it has a row and is not. youngest is the token of the last lease.
func (s *Core) ComeBack(a *Absentee, youngest uint64, now int64) {
	if !a.Known || !a.Found || s.Lookup(a.Hash, a.Host) != 0 {
		return
	}
	id := s.Ensure(a.Hash, a.Host)
	s.Remember(id, &a.State, youngest, now)
	s.Settle(id, now)
}

// Absentees returns those of the hosts that must be read before they may be named.
func (s *Core) Absentees(hosts []Absentee) (wanted []*Absentee) {
	for i := range hosts {
		if s.Absent(&hosts[i]) {
			wanted = append(wanted, &hosts[i])
		}
	}
	return wanted
}

// Rests reports whether a host has no URLs and no leases.
func (s *Core) Rests(id uint32) bool {
	switch h := s.Hosts.At(id); h.Place {
	case Nowhere, Idling, Departing:
		return h.Waiting == 0 && h.Scheduled == 0 && s.firstLease(id) == 0
	}
	return false
}

// Reopen makes every host count as contacted at a moment, which may be in the future, unless it was
// contacted later.
func (s *Core) Reopen(at int64) {
	s.ReopenedAt = max(s.ReopenedAt, min(at, int64(row.MaxDelay)))
	s.StartsAt = max(0, s.ReopenedAt+s.Cfg.MaxDelay)
	s.GroupStartsAt = func(d OwnPolicy) int64 {
		longest := s.Cfg.GroupMax // a policy of the user's is not asked with the lock held
		if d != nil {
			longest = int64(d.Max())
		}
		return max(0, s.ReopenedAt+longest)
	}
}

// StartOfHost is the time before which a host is left alone because the store was opened after a crash, as far
// as delays say that do not depend on what was learned of it.
func (s *Core) StartOfHost(host string) int64 {
	if s.ReopenedAt == NotReopened {
		return s.StartsAt
	}
	if d := s.ruledDelay(host); d != nil {
		return max(s.StartsAt, s.ReopenedAt+int64(d.Max()))
	}
	return s.StartsAt
}

// ruledDelay returns the policy that rules give a host, or nil.
func (s *Core) ruledDelay(host string) OwnPolicy {
	if s.Cfg.Rules == nil {
		return nil
	}
	return s.Cfg.Rules.Delay(host)
}

// StartAfter is the time before which a host with the given gap between contacts may not
// be contacted because the store was opened after a crash.
func (s *Core) StartAfter(gap int64) int64 {
	if s.ReopenedAt == NotReopened {
		return 0
	}
	return s.ReopenedAt + max(s.Cfg.MaxDelay, gap)
}

// HostRow returns the row of a host that may be contacted from due on.
func (s *Core) HostRow(id uint32, due int64, why Why) storage.Row {
	h := s.Hosts.At(id)
	saved := row.Host{Due: s.Clock.Stored(due), CrawlDelay: h.CrawlDelay, Why: uint8(why), Assigned: h.Has(Assigned), Standing: h.Standing}
	if h.Group != 0 {
		saved.Group = s.GroupName(s.Groups.At(h.Group))
	}
	if h.Has(Troubled) {
		t := s.Troubles[id]
		saved.Trouble = row.Trouble{
			Quiet: instant.Millis(s.Clock.Wall(t.Quiet)), Free: s.Clock.Stored(t.Free),
			Step: t.Step, From: t.From, Search: t.Search, Relapses: t.Relapses, Eased: t.Eased,
			Fails: t.Fails, Probes: t.Probes, Lanes: t.Lanes, Failure: t.Kind, Usual: t.Usual,
		}
	}
	if h.Has(Counted) {
		saved.Used = s.Limits.HostRow(id, s.Name(h))
	}
	return saved.Row(string(s.Name(h)))
}

// Remember restores a host from its row. youngest is the token of the last lease.
func (s *Core) Remember(id uint32, saved *row.Host, youngest uint64, now int64) {
	h := s.Hosts.At(id)
	h.CrawlDelay = saved.CrawlDelay
	h.Set(Stored)
	if saved.Standing != 0 {
		h.Standing = saved.Standing
		s.Relevel(id, now)
	}
	if t := s.TroubleOfRow(saved, youngest, now); !t.Over() {
		s.SetTrouble(id, t)
		s.outlived(id, now)
	}
	if saved.Used != (row.Usage{}) {
		s.Book(youngest).RestoreHost(id, saved.Used, s.Date(now))
		h.Set(Counted)
	}
	if due, why := s.DueOfRow(saved, now); due >= h.Due { // what the row says is more exact
		h.Due, h.Why = due, why
	}
	if saved.Group != "" {
		s.joinGroup(h, s.GroupOf(saved.Group))
		if saved.Assigned {
			h.Set(Assigned)
		}
	}
}

// TroubleOfRow returns a host's failures from its row.
func (s *Core) TroubleOfRow(saved *row.Host, youngest uint64, now int64) trouble.State {
	x := &saved.Trouble
	t := trouble.State{
		Step: x.Step, From: x.From, Search: x.Search, Relapses: x.Relapses, Eased: x.Eased,
		Fails: x.Fails, Probes: x.Probes, Lanes: x.Lanes, Kind: x.Failure, Usual: x.Usual,
	}
	if s.Cfg.Backoff.Disabled {
		t.Step, t.Lanes, t.Relapses, t.Eased, t.Usual = 0, 0, 0, false, 0
	}
	if s.Cfg.Quarantine.Disabled {
		t.Probes = 0
	}
	t.Quiet = min(s.Clock.Moment(instant.FromMillis(x.Quiet)), now)
	t.Free = min(s.Clock.Moment(instant.FromMillis(x.Free)), now+int64(row.MaxDelay))
	t.Raised, t.Counted = youngest, youngest // leases from before have ended
	return t
}

// DueOfRow returns when a host with this row may be contacted, and which clock determines that.
func (s *Core) DueOfRow(saved *row.Host, now int64) (int64, Why) {
	due := s.Clock.Moment(instant.FromMillis(saved.Due))
	if saved.Due != 0 { // the clock may have been set ahead since: in doubt it was before
		due = min(due, instant.LastMoment) + s.Clock.Gained()
	}
	due = min(due, now+int64(row.MaxDelay))
	if at := s.StartOfRow(saved, now); at > due {
		return at, WhyReopened
	}
	return due, Why(saved.Why)
}

// StartOfRow is until when a host with this row is left alone because the store was opened
// after a crash.
func (s *Core) StartOfRow(saved *row.Host, now int64) int64 {
	gap := int64(saved.CrawlDelay) * int64(time.Millisecond)
	t := s.TroubleOfRow(saved, 0, now)
	if g, why := s.Cfg.GapOf(&t); why != WhyQuarantine || s.Clock.Moment(instant.FromMillis(saved.Due)) <= s.ReopenedAt { // else no probe was under way
		gap = max(gap, int64(s.Cfg.Backoff.Longest(g)))
	}
	return s.StartAfter(gap)
}

// Note returns the host's row if a crash would otherwise lose something: what was
// learned about it, its group, or a time beyond that for which every host is left alone
// after a crash. The host may be contacted from due on, or later.
func (s *Core) Note(id uint32, due int64, why Why, now int64) (storage.Row, bool) {
	h := s.Hosts.At(id)
	if due <= h.Due {
		due, why = h.Due, h.Why
	}
	if !h.Has(Unsaved) && due-now <= s.Cfg.MaxDelay {
		return storage.Row{}, false
	}
	h.Clear(Unsaved | Behind)
	h.Set(Stored)
	s.Dormant.HasRow(s.Hash(s.Name(h)))
	return s.HostRow(id, due, why), true
}

// ClosingRow returns the row that a host needs when the frontier is closed, if it has not got it.
func (s *Core) ClosingRow(id uint32, now int64) (storage.Row, bool) {
	h := s.Hosts.At(id)
	if h.NameLen == 0 {
		return storage.Row{}, false
	}
	due, why := s.restsFrom(id)
	for lease := range s.LeasesOf(id) {
		// Its contact may go on: it counts as contacted now.
		l := s.Leases.At(lease)
		if at := s.ContactedNow(id, now); at > due {
			due, why = at, WhyReopened
		}
		for _, g := range [...]uint32{l.Group, h.Group, l.OldGroup} {
			if g != 0 {
				s.StampGroup(g, now+s.Longest(s.Groups.At(g)), now)
			}
		}
	}
	early := due > now && due > s.assumed(id) // without a row it would be contacted too early
	switch {
	case early, (h.Learned() || h.Group != 0) && (h.Has(Unsaved|Behind) || !h.Has(Stored)):
		return s.HostRow(id, due, why), true
	case h.Has(Stored) && !h.Learned() && h.Group == 0:
		return storage.Row{Key: row.HostKey + string(s.Name(h))}, true
	}
	return storage.Row{}, false
}

// restsFrom is when a host without leases may be contacted, and why no earlier.
func (s *Core) restsFrom(id uint32) (int64, Why) {
	h := s.Hosts.At(id)
	if at := s.RestsUntil(id); at > h.Due {
		return at, WhyDelay
	}
	return h.Due, h.Why
}

// assumed is when a host is contacted after an opening for which only the rows on disk count.
func (s *Core) assumed(id uint32) int64 {
	h := s.Hosts.At(id)
	at := s.StartOfHost(hostkey.String(s.Name(h)))
	if h.Has(Stored) && !h.Has(Unsaved|Behind) {
		at = max(at, s.StartAfter(h.CrawlDelayNs()))
	}
	return at
}

// ContactedNow notes that a host's lease counts as a contact that ends now (see FreeFrom), and returns until
// when the host is left alone then.
func (s *Core) ContactedNow(id uint32, now int64) (until int64) {
	h, longest := s.Hosts.At(id), s.Cfg.MaxDelay
	if d := s.ruledDelay(hostkey.String(s.NameOf(id))); d != nil {
		longest = int64(d.Max())
	}
	if h.Has(Troubled) {
		s.FreeFrom(id, now+max(longest, h.CrawlDelayNs()))
	}
	return now + max(longest, s.LearnedGap(id))
}

// RestateRows returns the rows of hosts whose times on disk are wrong because the clock was set, of up
// to n hosts from a number on, and pins these hosts; back is how far it was set back. next is where to go
// on.
func (s *Core) RestateRows(id uint32, n int, back, now int64) (rows []storage.Row, pinned []uint32, next uint32) {
	for ; n > 0 && id <= s.Hosts.Top; n, id = n-1, id+1 {
		h := s.Hosts.At(id)
		due, why := s.restsFrom(id)
		early := due-now > s.Cfg.MaxDelay        // else every host is left alone for as long after a crash
		late := h.Has(Stored) && due-now > -back // its row may have a time from before the clock was set back
		if h.NameLen == 0 || h.Place == Departing || !early && !late {
			continue
		}
		h.Clear(Unsaved | Behind)
		h.Set(Stored)
		s.Dormant.HasRow(s.Hash(s.Name(h)))
		h.Pins++
		pinned = append(pinned, id)
		rows = append(rows, s.HostRow(id, due, why))
	}
	return rows, pinned, id
}

// Merged is a host that Merge is about to change.
type Merged struct {
	ID   uint32
	Due  int64
	Why  Why
	idle bool
}

// Merge takes what a row from elsewhere says about a host into account, as far as it makes the host no
// faster. EndMerge must follow. youngest is the token of the last lease.
func (s *Core) Merge(name string, saved *row.Host, youngest uint64, now int64) Merged {
	id := s.Ensure(s.HashOf(name), name)
	h := s.Hosts.At(id)
	x := Merged{ID: id, Due: h.Due, Why: h.Why, idle: h.Place != Leased && h.Place != Loading}
	if at := min(s.Clock.Moment(instant.FromMillis(saved.Due)), now+int64(row.MaxDelay)); at >= x.Due {
		x.Due, x.Why = at, max(Why(saved.Why), WhyDelay)
		if x.Due == h.Due {
			h.Why = x.Why // the line is more exact
		}
	}
	if x.idle {
		s.Detach(id) // its group changes only while it is in no structure
		s.DropSlot(h, now)
	}
	if saved.CrawlDelay > h.CrawlDelay {
		h.CrawlDelay = saved.CrawlDelay
		h.Set(Unsaved)
	}
	if t := s.TroubleOfRow(saved, youngest, now); !h.Has(Troubled) && !t.Over() {
		s.SetTrouble(id, t)
		h.Set(Unsaved)
	}
	if saved.Standing != 0 && h.Standing == 0 {
		h.Standing = saved.Standing
		s.Relevel(x.ID, now)
		h.Set(Unsaved)
	}
	if saved.Used != (row.Usage{}) {
		s.Book(youngest).MergeHost(id, s.Name(h), saved.Used, s.Date(now))
		h.Set(Counted | Unsaved)
	}
	if saved.Group != "" && h.Group == 0 && x.idle {
		s.joinGroup(h, s.GroupOf(saved.Group))
		h.Set(Unsaved)
		if saved.Assigned {
			h.Set(Assigned)
		}
	}
	return x
}

// EndMerge puts the host of a Merge where it belongs. It reports whether the host would be forgotten with
// its group: then it is pinned.
func (s *Core) EndMerge(x Merged, now int64) (pinned bool) {
	h := s.Hosts.At(x.ID)
	if pinned = h.Group != 0 && !h.Learned(); pinned {
		h.Pins++
	}
	if h.Has(Troubled) && !x.Why.Forgettable() {
		s.FreeFrom(x.ID, x.Due)
	}
	s.Postpone(x.ID, x.Due, x.Why)
	if x.idle {
		s.Settle(x.ID, now)
	}
	return pinned
}
