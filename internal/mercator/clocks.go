// This file says when a host may be contacted again: its delay, its Crawl-delay, its back-off and
// Retry-After each have a clock, and the latest applies. It keeps the failures of hosts, and lists those
// whose URLs shall be given up.
//
// Hosts in trouble are few: the state from package trouble is in a table beside the hosts, and goes
// to disk with the host's row.

package mercator

import (
	"math/rand/v2"
	"time"

	"github.com/seed-7440039f/frontier/internal/hostkey"
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

// Succeeded is Failed for a contact that succeeded, of a host in trouble.
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

// troubleBytes is what an entry of Core.Troubles takes, about.
const troubleBytes = 96

// SetTrouble replaces what is known about a host's failures by t.
func (s *Core) SetTrouble(id uint32, t trouble.State) {
	h := s.Hosts.At(id)
	old := s.Troubles[id]
	s.Stats.BackedOff += int64(btoi(t.Step > 0) - btoi(old.Step > 0))
	s.Stats.Quarantined += int64(btoi(t.Probes > 0) - btoi(old.Probes > 0))
	if t.Over() {
		h.Clear(Troubled)
		delete(s.Troubles, id)
		return
	}
	h.Set(Troubled)
	s.Troubles[id] = t
}

// outlived forgets the failures of a host without URLs after a time.
func (s *Core) outlived(id uint32, now int64) {
	if h := s.Hosts.At(id); h.Has(Troubled) {
		if t := s.Troubles[id]; t.Until() <= now {
			s.SetTrouble(id, trouble.State{})
			h.Set(Behind)
		}
	}
}

// idlesUntil is when something about a host without URLs may be forgotten.
func (s *Core) idlesUntil(id uint32) int64 {
	until, h := s.RestsUntil(id), s.Hosts.At(id)
	if h.Has(Troubled) && h.CrawlDelay == 0 && !s.Cfg.Spill {
		t := s.Troubles[id]
		until = max(until, t.Until())
	}
	if h.Has(Counted) && !s.Cfg.Spill {
		until = max(until, s.Limits.Rests(id))
	}
	return until
}

// LeaseNumber is the number of the lease with this token: later ones have higher numbers.
func (t *tables) LeaseNumber(token uint64) uint64 { return token ^ t.Hash(hostkey.Bytes("token")) }

// TroubleKept reports whether a row has what must be known about a host's failures.
func (s *Core) TroubleKept(saved *row.Host, youngest uint64, now int64) bool {
	t := s.TroubleOfRow(saved, youngest, now)
	return !t.Over() && t.Until() > 0
}

// Unlearn forgets what was learned about a host in any place. After a crash it is not
// contacted before reopened.
func (s *Core) Unlearn(id uint32, now, reopened int64) {
	h := s.Hosts.At(id)
	h.CrawlDelay = 0
	s.Assign(id, "", now)
	if h.Standing != 0 {
		h.Standing = 0
		s.Relevel(id, now)
	}
	if !h.Has(Troubled) {
		return
	}
	free := max(s.Troubles[id].Free, reopened)
	s.SetTrouble(id, trouble.State{})
	if h.Why.Forgettable() {
		s.advanceDue(id, free, now)
	}
	s.Revise(id, now) // it may have more lanes now
	if h.Place == Idling {
		s.Detach(id) // it waited for its trouble to be outlived
		s.Settle(id, now)
	}
}

// FreeFrom notes that a host in trouble may not be contacted before at, even without its trouble.
func (t *troubleTable) FreeFrom(id uint32, at int64) {
	if state := t.Troubles[id]; at > state.Free {
		state.Free = at
		t.Troubles[id] = state // no row is out of date: who leaves memory is due, and so is this
	}
}

// Learnt is what outcomes have taught about a host's pace.
type Learnt struct {
	CrawlDelay int32
	Troubled   bool
	Trouble    trouble.State // the zero value if it is not troubled
}

// Learnt is what is known of a host's pace.
func (s *Core) Learnt(id uint32) Learnt {
	h := s.Hosts.At(id)
	x := Learnt{CrawlDelay: h.CrawlDelay, Troubled: h.Has(Troubled)}
	if x.Troubled {
		x.Trouble = s.Troubles[id]
	}
	return x
}

const GiveUpAtOnce = 64 // URLs that are given up under one lock

// Hopeless reports whether a host's failures are reason to give up its URLs. When its
// next probe is due they are kept.
func (s *Core) Hopeless(id uint32, now int64) bool {
	h := s.Hosts.At(id)
	if !h.Has(Troubled) || h.Waiting == 0 || h.Due <= now || h.Wanted {
		return false
	}
	t := s.Troubles[id]
	return t.Lost(&s.Cfg.Quarantine) && !t.Kept
}

// despair lists a host whose URLs shall be given up.
func (s *Core) despair(id uint32, now int64) {
	if !s.Hosts.At(id).Has(Troubled) || !s.Hopeless(id, now) {
		return
	}
	if t := s.Troubles[id]; !t.Listed {
		t.Listed = true
		s.Troubles[id] = t
		s.Lost = append(s.Lost, id)
	}
}

// NextLost returns the first listed host whose URLs shall be given up now, and its
// queue; the host is in place loading. Hosts that are not lost after all, or that
// a rule keeps from being served, are taken off the list.
func (s *Core) NextLost(now int64) (id, queue uint32) {
	for n := 0; n < GiveUpAtOnce && len(s.Lost) > 0; n++ {
		id := s.Lost[0]
		if h := s.Hosts.At(id); s.Hopeless(id, now) && s.offering(h) {
			switch h.Place {
			case Unbound, Parked, Pacing, Queued, Ready:
				served := h.Served
				s.Detach(id)
				if !s.withhold(id, now) {
					h.Served = served
					s.Put(h, Loading)
					return id, s.offeredQueue(h)
				}
			}
		}
		s.unlist(id)
	}
	return 0, 0
}

// unlist takes the first host off the list. It is listed again where it is settled, if need be.
func (t *troubleTable) unlist(id uint32) {
	if t.Lost = t.Lost[1:]; len(t.Lost) == 0 {
		t.Lost = nil
	}
	if state, ok := t.Troubles[id]; ok && state.Listed {
		state.Listed = false
		t.Troubles[id] = state
	}
}

// offeredQueue is the host's first queue with URLs that may be handed out.
func (t *tables) offeredQueue(h *Host) uint32 {
	for id := h.Queues; id != 0; id = t.Queues.At(id).Sibling {
		if q := t.Queues.At(id); q.Waiting > 0 && t.CrawlOf(q).Runs() {
			return id
		}
	}
	return 0
}

// KeepURLs lets a host's URLs wait for its next probe: they cannot be given up.
func (t *troubleTable) KeepURLs(id uint32) {
	if state, ok := t.Troubles[id]; ok {
		state.Kept = true
		t.Troubles[id] = state
	}
}
