// This file counts what is used of limits: by scopes, hosts and crawls. Whoever has
// no limits pays for one look at a pointer.
//
// Counts of scopes lie beside their rules, those of crawls beside their settings,
// those of hosts in a table. They say nothing of what they count for: the limits
// may change at any time.

package frontier

// usage is what is used in a period. The zero value is a period that has not begun.
type usage struct {
	served, bytes, errors int64
	since                 int64 // date when the period began
	begun                 bool
	told                  bool   // that a limit is reached
	restored              bool   // told is not known: nobody is told again after an opening
	full                  bool   // URLs were refused since there was room last
	rests                 int64  // its host has no URLs, and is looked at again then; 0: not because of this
	seen                  int    // limitBook.changes when somebody looked at a host's usage last
	first                 uint64 // hand-outs of leases up to this number do not count
	pending               int64  // URLs on their way to the store
	domain                domainCount

	key   string // of its row; empty: it has none
	dirty bool   // the row is out of date: it is in limitBook.dirty
}

// over reports whether the period has ended.
func (u *usage) over(l *Limits, now int64) bool {
	return u.begun && l.Period > 0 && now-u.since >= int64(l.Period)
}

// spent tells which limit is reached, and until when; never if there is no period.
// Nothing if none is.
func (u *usage) spent(l *Limits, now int64) (what string, until int64) {
	switch {
	case u.over(l, now):
		return "", 0
	case l.Served > 0 && u.served >= l.Served:
		what = "served"
	case l.Bytes > 0 && u.bytes >= l.Bytes:
		what = "bytes"
	case l.Errors > 0 && u.errors >= l.Errors:
		what = "errors"
	default:
		return "", 0
	}
	if l.Period == 0 {
		return what, never
	}
	return what, u.since + int64(l.Period)
}

// usageBytes is what a host's usage takes in memory, about.
const usageBytes = 208

// limitBook is what is counted, but for what lies with rules and crawls.
type limitBook struct {
	hosts     map[uint32]*usage // by number: of hosts with HostLimits
	joining   map[string]*int64 // by host key: URLs on their way to the store
	ends      timeHeap          // held hosts whose period ends
	endAt     map[uint32]int    // where they are in ends
	crawlEnds timeHeap          // crawls whose period ends, by slot
	stopped   []stoppedCrawl
	domains   int      // usages that count the URLs of a domain
	changes   int      // of HostLimits so far
	youngest  uint64   // number of the youngest lease
	dirty     []*usage // whose rows are out of date
}

// book returns the book, a new one if there was no limit so far. youngest is the
// number of the last lease.
func (c *core) book(youngest uint64) *limitBook {
	if c.limits == nil {
		b := &limitBook{hosts: map[uint32]*usage{}, joining: map[string]*int64{}, endAt: map[uint32]int{}, youngest: youngest}
		b.ends.moved = func(id uint32, i int) { b.endAt[id] = i }
		b.crawlEnds.moved = func(slot uint32, i int) { c.crawls[slot].endPos = i }
		c.limits = b
	}
	return c.limits
}

func (b *limitBook) size() int64 {
	if b == nil {
		return 0
	}
	return int64(len(b.hosts))*usageBytes + b.ends.Size() + int64(len(b.endAt))*24 + b.crawlEnds.Size()
}

// limiting reports whether any rule has limits.
func (c *controls) limiting() bool {
	t := c.table.Load()
	return t != nil && t.n[fieldLimits]+t.n[fieldHostLimits] > 0
}

// eachLimit calls fn with the limits that concern a host, and what is used of them:
// those of its scopes, and then its own, of which the usage is nil if nothing was
// counted. The rule is where they come from.
func (c *core) eachLimit(id uint32, fn func(r *scopeRule, l *Limits, u *usage, own bool)) {
	t := c.controls.table.Load()
	if t == nil || t.n[fieldLimits]+t.n[fieldHostLimits] == 0 {
		return
	}
	var own *scopeRule
	t.visit(c.name(c.hosts.at(id)), func(r *scopeRule) bool {
		if r.use != nil {
			fn(r, &r.Limits, r.use, false)
		}
		if own == nil && r.HostLimits != (Limits{}) {
			own = r
		}
		return true
	})
	if own != nil {
		fn(own, &own.HostLimits, c.hostUsage(id, own), true)
	}
}

// count is what one hand-out, or its end, uses; less than zero gives back.
type count struct {
	served, bytes, errors int64
	lease                 uint64 // number of the lease
}

// use counts for a host and a crawl, which may be nil.
func (c *core) use(id uint32, x *crawl, n count, now int64) {
	b := c.limits
	date := c.date(now)
	b.youngest = max(b.youngest, n.lease)
	c.eachLimit(id, func(r *scopeRule, l *Limits, u *usage, own bool) {
		if !own {
			if c.tally(u, l, n, date, r.event()) {
				c.review(r.scope)
			}
			return
		}
		h := c.hosts.at(id)
		if u == nil {
			if l.Served+l.Bytes+l.Errors == 0 || n.served < 0 || n == (count{lease: n.lease}) {
				return
			}
			u = &usage{first: n.lease - 1, seen: b.changes}
			b.hosts[id] = u
			h.set(counted)
		}
		name := string(c.name(h))
		h.set(behind)
		if c.tally(u, l, n, date, Event{Host: name, Reason: "host "}) {
			c.review(Host(name))
		}
	})
	if x != nil && x.use != nil {
		c.tally(x.use, &x.settings.Limits, n, date, Event{Crawl: x.id, Reason: "crawl "})
		c.judgeCrawl(x, now)
	}
}

// event is what tells of a rule's limits.
func (r *scopeRule) event() Event {
	e := Event{Scope: r.scope}
	if r.scope.named && !r.scope.domain {
		e.Host = r.scope.name
	}
	return e
}

// tally adds to a usage, and reports whether hosts that are held must be looked at
// again.
func (c *core) tally(u *usage, l *Limits, n count, now int64, e Event) (look bool) {
	if c.endPeriod(u, l, c.limits.youngest, now) && n.lease > 0 && n.served > 0 {
		u.first = n.lease - 1
	}
	if n.served < 0 && n.lease <= u.first {
		n.served = 0
	}
	if n.served == 0 && n.bytes == 0 && n.errors == 0 {
		return false
	}
	if !u.begun && (n.served > 0 || n.bytes > 0 || n.errors > 0) {
		u.begun, u.since = true, now
	}
	u.served = max(0, u.served+n.served)
	u.bytes += n.bytes
	if u.bytes < 0 {
		u.bytes = never
	}
	u.errors += n.errors
	if u.served+u.errors == 0 && u.bytes == 0 {
		u.begun = false // all of it came back
	}
	c.soil(u)
	return c.tellUsed(u, l, now, e)
}

// restart begins a period anew. Leases up to a number do not count in it.
func (u *usage) restart(youngest uint64) {
	u.served, u.bytes, u.errors, u.since, u.begun = 0, 0, 0, 0, false
	u.first = youngest
}

// endPeriod restarts a usage if its period has ended under l, and sees to it that its
// row does not tell of it any more: the next limits may have no period, or a longer one.
func (c *core) endPeriod(u *usage, l *Limits, youngest uint64, now int64) (ended bool) {
	if u == nil || !u.over(l, now) {
		return false
	}
	u.restart(youngest)
	c.soil(u)
	return true
}

// soil notes that the row of a usage is out of date.
func (c *core) soil(u *usage) {
	if u.key != "" && !u.dirty && c.cfg.spill {
		u.dirty = true
		c.limits.dirty = append(c.limits.dirty, u)
	}
}

// tellUsed tells once that a limit is reached, and once that it is not any more. It
// reports whether hosts that are held must be looked at again: that it is not, or
// that it is reached for good, so that they wait for no end of a period any more.
func (c *core) tellUsed(u *usage, l *Limits, now int64, e Event) (look bool) {
	what, until := u.spent(l, now)
	if u.restored {
		u.restored, u.told = false, what != ""
	}
	switch {
	case what != "" && !u.told:
		u.told = true
		e.Kind, e.Reason = EventLimitReached, e.Reason+what
		if until != never {
			e.Until = c.wall(c.moment(until))
		}
		c.tell(e)
		return until == never
	case what == "" && u.told:
		u.told = false
		e.Kind, e.Reason = EventLimitLifted, ""
		c.tell(e)
		return true
	}
	return false
}

// limited says until which date limits keep a host from being served: never if they do
// for good, 0 if they do not.
func (c *core) limited(id uint32, now int64) (until int64) {
	c.eachLimit(id, func(r *scopeRule, l *Limits, u *usage, own bool) {
		if u == nil {
			return
		}
		e := r.event()
		if own {
			e = Event{Host: string(c.name(c.hosts.at(id))), Reason: "host "}
		}
		c.tellUsed(u, l, now, e)
		_, at := u.spent(l, now)
		until = max(until, at)
	})
	return until
}

// ruledOut says until when rules and limits keep a host from being served, and why:
// 0 if they do not, never if time does not end it. A pause counts before all else.
func (c *core) ruledOut(id uint32, now int64) (until int64, why holdReason) {
	date := c.date(now)
	until, why = c.controls.hold(c.name(c.hosts.at(id)), date)
	if c.limits != nil && until != never {
		switch at := c.limited(id, date); {
		case at == never:
			until, why = at, heldSpent
		case at > until:
			until, why = at, heldLimited
		}
	}
	if until == 0 {
		return 0, why
	}
	return c.moment(until), why
}

// holding reports whether a rule or a limit may keep any host from being served.
func (c *core) holding() bool {
	return c.controls.holding() || c.limits != nil && c.controls.limiting()
}

// review looks again at the held hosts of a scope.
func (c *core) review(s Scope) {
	if c.places[held] > 0 {
		c.held.reviews = append(c.held.reviews, review{scope: s})
	}
}

// setUse gives a rule that takes the place of another its usage.
func (c *core) setUse(r, old *scopeRule, youngest uint64, now int64) {
	now = c.date(now)
	if old != nil {
		r.use = old.use
		c.endPeriod(r.use, &old.Limits, youngest, now)
	}
	if r.use != nil && (r.Limits.Waiting == 0 || !r.scope.domain) {
		c.uncountDomain(r.use)
	}
	if r.use != nil && r.Limits == (Limits{}) {
		r.use.key, r.use = "", nil // its row is deleted
	}
	if r.Limits != (Limits{}) || r.HostLimits != (Limits{}) {
		c.book(youngest)
	}
	c.endPeriods(r, old, now)
	switch {
	case r.Limits == (Limits{}):
	case r.use == nil:
		r.use = &usage{key: rowUse + "r" + r.key, first: youngest}
	default:
		c.tellUsed(r.use, &r.Limits, now, r.event())
	}
}

// countDoneLocked counts what a lease that ends has used. A host's row, or that of a
// scope or crawl, is written with o.
func (f *Frontier) countDoneLocked(o *op, l *leaseRecord, out *Outcome) {
	c := f.core
	n := count{bytes: max(0, out.Bytes), errors: int64(btoi(out.Result == Failed)), lease: c.leaseNumber(l.token)}
	var x *crawl
	if l.record != 0 {
		x = c.crawlOf(c.queues.at(l.queue))
		n.served = -int64(btoi(out.Uncontacted))
	}
	c.use(l.host, x, n, f.last)
	h := c.hosts.at(l.host)
	if h.has(counted) && !out.Uncontacted {
		h.set(unsaved)
	}
	used := n.bytes+n.errors > 0 || l.record != 0 && !out.Uncontacted
	o.counts = used && f.opts.Spill != nil && len(c.limits.dirty) > 0
}
