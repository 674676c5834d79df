// This file says why no URL of a host is handed out.

package mercator

import (
	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/internal/limit"
)

// Reason is why no URL of a host is handed out: see inspect.Reason.
type Reason uint8

// Reasons, in the order of those of package inspect.
const (
	ForTurn Reason = iota
	ForNothing
	ForNotBefore
	ForLeased
	ForDelay
	ForCrawlDelay
	ForRetryAfter
	ForBackoff
	ForQuarantine
	ForReopened
	ForGroup
	ForBackQueue
	ForReading
	ForPaused
	ForBlocked
	ForLimit
	Reasons = iota // how many there are
)

// Reason returns why no URL of a host is handed out now, and when that ends by time
// alone; never if that is not known.
func (s *Core) Reason(id uint32, now int64) (Reason, int64) {
	h := s.Hosts.At(id)
	free, why := s.WithheldUntil(id, now)
	switch {
	case h.Waiting > 0 && free == instant.Never && why == WithheldSpent:
		return ForLimit, instant.Never
	case h.Waiting > 0 && free == instant.Never:
		return ForPaused, instant.Never
	case h.Waiting > 0 && s.PausedCrawls > 0 && !s.Has(h, (*Crawl).Runs):
		return s.stopReason(h, now)
	case h.Place == Leased:
		return ForLeased, instant.Never
	case h.Waiting == 0 && h.Scheduled > s.Kept[id]:
		return ForNotBefore, instant.Never
	case h.Waiting == 0:
		return ForNothing, instant.Never
	}
	reason, until := ForTurn, now
	longer := func(r Reason, at int64) {
		if at > until {
			reason, until = r, at
		}
	}
	longer(clockOf(&s.Reopened, h), h.Due)
	if why == WithheldBlocked {
		longer(ForBlocked, free)
	}
	if why == WithheldLimited {
		longer(ForLimit, free)
	}
	longer(ForReopened, s.StartsAt)
	if h.Group != 0 && !h.Has(HasSlot) {
		g := s.Groups.At(h.Group)
		longer(ForGroup, g.Free)
		if g.Used >= g.Limit {
			longer(ForGroup, instant.Never)
		}
	}
	if reason != ForTurn {
		return reason, until
	}
	switch h.Place {
	case Unbound, Unpurged:
		return ForBackQueue, instant.Never
	case Loading:
		return ForReading, instant.Never
	case Pacing, Queued: // others of its group are before it
		return ForGroup, instant.Never
	}
	return ForTurn, instant.Never
}

// clockOf is the reason for which a host's own clock was set.
func clockOf(r *Reopened, h *Host) Reason {
	if h.Due <= r.StartsAt || h.Why >= Whys {
		return ForReopened
	}
	return clockReasons[h.Why]
}

var clockReasons = [Whys]Reason{
	WhyNone: ForDelay, WhyDelay: ForDelay, WhyCrawlDelay: ForCrawlDelay, WhyRetryAfter: ForRetryAfter,
	WhyBackoff: ForBackoff, WhyQuarantine: ForQuarantine, WhyReopened: ForReopened,
}

// stopReason returns why no URL of a host's crawls is handed out, and until when.
func (s *Core) stopReason(h *Host, now int64) (Reason, int64) {
	reason, until := ForPaused, instant.Never
	for qid := h.Queues; qid != 0; qid = s.Queues.At(qid).Sibling {
		q := s.Queues.At(qid)
		switch x := s.CrawlOf(q); {
		case q.Waiting == 0:
		case x.Stop == CrawlLimited:
			reason = ForLimit
			u, _ := s.Limits.Used(limit.OfCrawl(x.ID), s.Date(now))
			until = min(until, s.Moment(u.Until))
		case x.Stop == CrawlSpent:
			reason = ForLimit
		}
	}
	return reason, until
}
