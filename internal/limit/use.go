package limit

import (
	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/internal/quota"
)

// Use counts the hand-out of a lease, or its end, for scopes and a host. It reports whether the
// count of the host's separate limits may have changed.
func (b *Book) Use(id uint32, host []byte, n quota.Amount, lease uint64, now int64) (alone bool) {
	b.youngest = max(b.youngest, lease)
	own := b.visit(host, func(s *scope) {
		if b.charge(s.use, &s.together, n, lease, now) && b.turn(s.use, &s.together, now) {
			b.caller.Recheck(s.of)
		}
	})
	if own == nil {
		return false
	}
	l := &own.each.Limits
	u := b.usageUnder(id, &own.each)
	if u == nil {
		if l.Served+l.Bytes+l.Errors == 0 || n.Served < 0 || n == (quota.Amount{}) {
			return false
		}
		u = &hostUsage{Usage: quota.New(lease - 1), seen: b.changes}
		b.hosts[id] = u
	}
	if _, counted := u.Charge(l, n, lease, b.youngest, now); counted && b.turnHost(u, l, host, now) {
		b.caller.Recheck(ofHost(string(host)).Scope)
	}
	return true
}

// UseCrawl is Use for a crawl. It reports whether the crawl has limits.
func (b *Book) UseCrawl(id uint32, n quota.Amount, lease uint64, now int64) bool {
	x := b.crawls[id]
	if x == nil {
		return false
	}
	b.charge(&x.usage, &x.limits, n, lease, now)
	return true
}

// charge adds to a usage, and reports whether anything was counted.
func (b *Book) charge(u *usage, l *quota.Limits, n quota.Amount, lease uint64, now int64) (counted bool) {
	changed, counted := u.Charge(l, n, lease, b.youngest, now)
	if changed {
		b.markDirty(u)
	}
	return counted
}

// EndPeriod resets the use of a scope or crawl if its period has ended, and ensures that its row
// does not keep the old value: the next limits may have no period, or a longer one.
func (b *Book) EndPeriod(of Subject, youngest uint64, now int64) {
	u, l := b.find(of)
	b.endPeriod(u, l, youngest, now)
}

func (b *Book) endPeriod(u *usage, l *quota.Limits, youngest uint64, now int64) {
	if u != nil && u.EndPeriod(l, youngest, now) {
		b.markDirty(u)
	}
}

// turn reports to the caller, once each, that a limit is reached and that it is lifted. It returns
// whether withheld hosts must be examined again: because the limit is lifted, or because it is
// reached permanently, so that they no longer wait for the end of a period.
func (b *Book) turn(u *usage, l *quota.Limits, now int64) (look bool) {
	turn, what, until := u.Turn(l, now)
	return turn != quota.Same && b.turned(u.of, turn, what, until)
}

// turnHost is turn for a host alone.
func (b *Book) turnHost(u *hostUsage, l *quota.Limits, host []byte, now int64) (look bool) {
	turn, what, until := u.Turn(l, now)
	return turn != quota.Same && b.turned(ofHost(string(host)), turn, what, until)
}

func (b *Book) turned(of Subject, turn quota.Turn, what string, until int64) (look bool) {
	b.caller.Turned(of, turn, what, until)
	return turn == quota.Lifted || until == instant.Never
}

// HostSpent returns until when limits keep a host from being served: instant.Never if permanently,
// instant.None if they do not.
func (b *Book) HostSpent(id uint32, host []byte, now int64) (until int64) {
	until = instant.None
	own := b.visit(host, func(s *scope) {
		b.turn(s.use, &s.together, now)
		_, at := s.use.Spent(&s.together, now)
		until = max(until, at)
	})
	if own == nil {
		return until
	}
	if u := b.usageUnder(id, &own.each); u != nil {
		b.turnHost(u, &own.each.Limits, host, now)
		_, at := u.Spent(&own.each.Limits, now)
		until = max(until, at)
	}
	return until
}

// CrawlSpent is HostSpent for a crawl.
func (b *Book) CrawlSpent(id uint32, now int64) (until int64) {
	x := b.crawls[id]
	if x == nil {
		return instant.None
	}
	b.turn(&x.usage, &x.limits, now)
	_, until = x.Spent(&x.limits, now)
	return until
}

// Used is what was counted in the current period.
type Used struct {
	quota.Amount
	Since int64 // when it began
	Until int64 // when it ends; instant.Never: it does not
}

// Used returns the use of a scope or crawl; false if it has no limits. The zero Used means that
// nothing was counted.
func (b *Book) Used(of Subject, now int64) (Used, bool) {
	u, l := b.find(of)
	if u == nil {
		return Used{}, false
	}
	return used(&u.Usage, l, now), true
}

// HostUsed is Used for a host's separate limits.
func (b *Book) HostUsed(id uint32, host []byte, now int64) Used {
	if e, u := b.own(id, host); u != nil {
		return used(&u.Usage, &e.Limits, now)
	}
	return Used{}
}

func used(u *quota.Usage, l *quota.Limits, now int64) Used {
	if u.Over(l, now) || !u.Begun() {
		return Used{}
	}
	out := Used{Amount: u.Used(), Since: u.Since(), Until: instant.Never}
	if l.Period > 0 {
		out.Until = out.Since + int64(l.Period)
	}
	return out
}

// Forget forgets what a host has used.
func (b *Book) Forget(id uint32) { delete(b.hosts, id) }

// HostCounts reports whether the use of a host still counts, and until when; instant.Never if without end.
func (b *Book) HostCounts(id uint32, host []byte, now int64) (until int64, ok bool) {
	e, u := b.own(id, host)
	if u == nil || u.Over(&e.Limits, now) || !u.Begun() {
		return 0, false
	}
	if e.Period == 0 {
		return instant.Never, true
	}
	return u.Since() + int64(e.Period), true
}

// Rest records when the caller will examine a host without URLs again, by the caller's own clock.
func (b *Book) Rest(id uint32, at int64) { b.hosts[id].rests = at }

// Rests returns the time passed to Rest.
func (b *Book) Rests(id uint32) int64 { return b.hosts[id].rests }

// Shift moves the start of all periods by step, which is negative, and the ends that are waited
// for: a clock that is set back does not make a period longer. It calls fn with each host that has
// used something.
func (b *Book) Shift(step int64, fn func(host uint32)) {
	shift := func(u *usage) {
		if u != nil && u.Begun() {
			u.Shift(step)
			b.markDirty(u)
		}
	}
	for _, s := range b.scopes.Load().All() {
		shift(s.use)
		if s.each.Ended != NoneEnded {
			s.each.Ended += step
		}
	}
	for _, x := range b.crawls {
		shift(&x.usage)
	}
	for id, u := range b.hosts {
		if u.Begun() {
			u.Usage.Shift(step)
		}
		fn(id)
	}
	b.HostEnds.shift(step)
	b.CrawlEnds.shift(step)
}
