// This file says when a host may be contacted again: its delay, its Crawl-delay, its back-off and
// Retry-After each have a clock, and the latest applies.

package mercator

import (
	"math/rand/v2"
	"time"

	"github.com/seed-7440039f/frontier/internal/row"
	"github.com/seed-7440039f/frontier/internal/trouble"
)

// Why names the clock that a host's due comes from.
type Why uint8

// clocks is when a host may be contacted again.
type clocks struct {
	lane int64 // under the lane of the contact: its end and the delay; 0: unchanged
	all  int64 // of all lanes; 0: unchanged
	why  Why   // that says when all of them may be used
}

// Due is the later of both, and which clock says so.
func (x clocks) Due() (int64, Why) {
	if x.lane >= x.all {
		return x.lane, WhyDelay
	}
	return x.all, x.why
}

// Contact is a contact that has ended.
type Contact struct {
	End        int64         // a moment
	Gap        int64         // that the delay asks for; less than 0: there was no contact
	RetryAfter time.Duration // that the host asked for; 0: none
}

// ClocksAfter is when a host may be contacted again after a contact that ended as
// planned. Its Crawl-delay, its back-off and Retry-After apply to all lanes.
func (s *Core) ClocksAfter(id uint32, k Contact) clocks {
	h := s.Hosts.At(id)
	var x clocks
	later := func(t int64, w Why) {
		if t > x.all {
			x.all, x.why = t, w
		}
	}
	if k.Gap >= 0 {
		x.lane = k.End + k.Gap
		if h.CrawlDelay > 0 {
			later(k.End+h.CrawlDelayNs(), WhyCrawlDelay)
		}
	}
	if k.RetryAfter > 0 {
		later(k.End+int64(min(k.RetryAfter, row.MaxDelay)), WhyRetryAfter)
	}
	if h.Has(Troubled) {
		s.FreeFrom(id, max(x.lane, x.all))
		if gap, w := s.troubleGap(id); gap > 0 && k.Gap >= 0 {
			later(k.End+int64(gap+s.Cfg.Backoff.AtRandom(gap, rand.Uint64())), w)
		}
	}
	return x
}

// Failed counts a contact that failed, and returns what is known of the host's failures before and
// after.
func (s *Core) Failed(id uint32, k Contact, x trouble.Failure) (old, t trouble.State) {
	h := s.Hosts.At(id)
	old = s.Troubles[id]
	if t = old; !h.Has(Troubled) {
		t.Free = h.Due
	}
	x.End, x.Lanes = k.End, s.allowed(id)
	x.Slowed = t.Step > 0 && int64(s.Cfg.Backoff.Gap(t.Step)) > max(k.Gap, h.CrawlDelayNs())
	t.Failed(x, &s.Cfg.Backoff, &s.Cfg.Quarantine)
	if int32(t.Lanes) >= s.concurrencyOf(id) {
		t.Lanes = 0
	}
	s.changeTrouble(id, &old, &t)
	return old, t
}

// Succeeded is failed for a contact that succeeded, of a host in trouble.
func (s *Core) Succeeded(id uint32, k Contact, lease uint64, took time.Duration) (old, t trouble.State) {
	h := s.Hosts.At(id)
	old = s.Troubles[id]
	t = old
	gap := int64(0)
	if t.Step > 0 {
		gap = int64(s.Cfg.Backoff.Gap(t.Step))
	}
	t.Succeeded(lease, k.End, int64(took)+max(k.Gap, h.CrawlDelayNs(), gap), s.concurrencyOf(id), &s.Cfg.Backoff)
	s.changeTrouble(id, &old, &t)
	return old, t
}

// changeTrouble notes what is known of a host's failures, and whether its row says so.
func (s *Core) changeTrouble(id uint32, old, t *trouble.State) {
	s.SetTrouble(id, *t)
	h := s.Hosts.At(id)
	if t.Step != old.Step || t.Probes != old.Probes || t.Lanes != old.Lanes {
		h.Set(Unsaved)
	} else if t.Over() != old.Over() || t.Fails != old.Fails || t.Quiet != old.Quiet || t.Usual != old.Usual {
		h.Set(Behind)
	}
}

// GapOf is how long a host is left alone after a contact because of what failed
// before, without jitter, and which clock says so.
func (cfg *Config) GapOf(t *trouble.State) (time.Duration, Why) {
	switch {
	case t.Probes > 0:
		return cfg.Quarantine.Interval(t.Probes), WhyQuarantine
	case t.Step > 0:
		return cfg.Backoff.Gap(t.Step), WhyBackoff
	}
	return 0, WhyNone
}

// troubleGap is the gap of a host.
func (s *Core) troubleGap(id uint32) (time.Duration, Why) {
	if !s.Hosts.At(id).Has(Troubled) {
		return 0, WhyNone
	}
	t := s.Troubles[id]
	return s.Cfg.GapOf(&t)
}

// LearnedGap is how long a host is left alone after a contact, as far as that was
// learned of it, at most.
func (s *Core) LearnedGap(id uint32) int64 {
	gap, _ := s.troubleGap(id)
	return max(s.Hosts.At(id).CrawlDelayNs(), int64(s.Cfg.Backoff.Longest(gap)))
}

// Forgettable reports whether a host in trouble would be due earlier without it.
func (w Why) Forgettable() bool { return w == WhyBackoff || w == WhyQuarantine || w == WhyReopened }

// advanceDue lets a host be contacted earlier, from at on.
func (s *Core) advanceDue(id uint32, at, now int64) {
	h := s.Hosts.At(id)
	x := s.lanesOf(id)
	if x != nil {
		x.opens = min(x.opens, at)
	}
	if at >= h.Due {
		return
	}
	switch h.Place {
	case Leased, Loading, Unbound, Withheld, Unpurged:
		h.Due, h.Why = at, WhyDelay
	default:
		s.Detach(id)
		h.Due, h.Why = at, WhyDelay
		s.Settle(id, now)
	}
}

// Later leaves a host alone until due, wherever it is.
func (s *Core) Later(id uint32, due int64, why Why, now int64) {
	switch s.Hosts.At(id).Place {
	case Leased, Loading:
		s.Postpone(id, due, why)
	case Unbound, Withheld, Unpurged:
		s.Postpone(id, due, why) // found out when a token of it is taken
	default:
		s.Detach(id)
		s.Postpone(id, due, why)
		s.Settle(id, now)
	}
}

// LearnCrawlDelay takes over what robots.txt asked of a host: d; nothing new if that is 0, and no delay
// if it is less.
func (h *Host) LearnCrawlDelay(d time.Duration) {
	ms := h.CrawlDelay
	switch {
	case d > 0:
		ms = int32((min(d, row.MaxCrawlDelay) + time.Millisecond - 1) / time.Millisecond)
	case d < 0:
		ms = 0
	}
	if ms != h.CrawlDelay {
		h.CrawlDelay = ms
		h.Set(Unsaved)
	}
}
