// This file writes what must outlive a host's record to its row, and restores a host from it.

package mercator

import (
	"time"

	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/internal/row"
	"github.com/seed-7440039f/frontier/internal/trouble"
	"github.com/seed-7440039f/frontier/storage"
)

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
	saved := row.Host{Due: s.Clock.Stored(due), CrawlDelay: h.CrawlDelay, Why: uint8(why), Assigned: h.Has(Assigned)}
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
		s.JoinGroup(h, s.GroupOf(saved.Group))
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

// DueOfRow returns when a host with this row may be contacted, and which clock
// determines that.
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
