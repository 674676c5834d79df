// This file passes hosts and crawls to package limit, which counts what they use.

package mercator

import (
	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/internal/limit"
	"github.com/seed-7440039f/frontier/internal/quota"
	"github.com/seed-7440039f/frontier/internal/row"
)

// Book returns what is counted, a new book if there was no limit so far. youngest is the
// number of the last lease.
func (s *Core) Book(youngest uint64) *limit.Book {
	if s.Limits == nil {
		s.Limits = limit.New(limit.Caller{
			Turned:  s.Cfg.Turned,
			Recheck: s.recheck,
		}, s.Clock.Day(0), s.Cfg.Spill, youngest)
	}
	return s.Limits
}

// SetLimits puts the limits of a scope's rule in force: those of all its hosts together, and of each.
func (s *Core) SetLimits(of row.Scope, all, each quota.Limits, youngest uint64, now int64) {
	if s.Limits != nil || all != (quota.Limits{}) || each != (quota.Limits{}) {
		s.Book(youngest).SetScope(of, all, each, youngest, s.Date(now))
	}
}

// Use counts what the hand-out or the end of a lease uses of the limits of a host and a
// crawl, which may be nil.
func (s *Core) Use(id uint32, x *Crawl, n quota.Amount, lease uint64, now int64) {
	h := s.Hosts.At(id)
	if s.Limits.Use(id, s.Name(h), n, lease, s.Date(now)) {
		h.Set(Counted | Behind)
	}
	if x != nil && s.Limits.UseCrawl(x.ID, n, lease, s.Date(now)) {
		s.JudgeCrawl(x, now)
	}
}

// Refusing reports whether limits refuse new URLs of a host because too many wait.
func (s *Core) Refusing(id uint32) (full bool) {
	if s.Limits == nil {
		return false
	}
	h := s.Hosts.At(id)
	g := s.Limits.Gate(string(s.Name(h)))
	return g.Closed(limit.Waiting{All: s.Stats.Waiting, Host: int64(h.Waiting)})
}

// CountAllDomains is countDomain for all rules after an opening.
func (s *Core) CountAllDomains() {
	if !s.Limits.CountDomains() {
		return
	}
	for id := uint32(1); id <= s.Hosts.Top; id++ {
		if h := s.Hosts.At(id); h.NameLen > 0 && h.Waiting > 0 {
			s.Limits.Waits(s.Name(h), int64(h.Waiting))
		}
	}
}

// unused forgets what a host without URLs has used if it no longer counts.
func (s *Core) unused(id uint32, now int64) {
	h := s.Hosts.At(id)
	if !h.Has(Counted) {
		return
	}
	switch until, ok := s.Limits.HostCounts(id, s.Name(h), s.Date(now)); {
	case !ok:
		s.dropUsage(id)
		h.Set(Behind)
	case until != instant.Never:
		s.Limits.Rest(id, s.Moment(until))
	}
}

func (s *Core) dropUsage(id uint32) {
	s.Hosts.At(id).Clear(Counted)
	s.Limits.Forget(id)
}
