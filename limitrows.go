// This file stores what was used of limits: of scopes and crawls in rows of their
// own, written with the commits that change them, the last value once in each; of
// hosts in their rows.

package frontier

import (
	"encoding/binary"
	"math"
	"strings"
	"time"
)

// usageState is a usage as it is stored.
type usageState struct {
	since                 int64 // Unix milliseconds
	served, bytes, errors int64
}

// Fields of a row of usage.
const (
	useSince  = 1
	useServed = 2
	useBytes  = 3
	useErrors = 4
)

// appendUsage appends a usage as fields with tags from base+1 on.
func appendUsage(b []byte, base int, s usageState) []byte {
	b = appendNumber(b, base+useSince, uint64(max(0, s.since)))
	b = appendNumber(b, base+useServed, uint64(s.served))
	b = appendNumber(b, base+useBytes, uint64(s.bytes))
	return appendNumber(b, base+useErrors, uint64(s.errors))
}

// field takes in one field that appendUsage wrote with base 0.
func (s *usageState) field(tag int, x uint64) error {
	if tag <= useErrors && x >= uint64(never) {
		return errRow
	}
	switch tag {
	case useSince:
		s.since = int64(x)
		return inRange(x <= maxMillis)
	case useServed:
		s.served = int64(x)
	case useBytes:
		s.bytes = int64(x)
	case useErrors:
		s.errors = int64(x)
	default:
		return unknown(tag)
	}
	return nil
}

func (f *Frontier) usageState(u *usage) (s usageState) {
	if u != nil && u.begun {
		s = usageState{wallMillis(f.day(u.since)), u.served, min(u.bytes, never-1), u.errors}
	}
	return s
}

// restore makes a usage what was stored of it.
func (f *Frontier) restore(u *usage, s usageState) {
	u.begun, u.restored = s != usageState{}, true
	u.since = min(f.date(millisTime(s.since)), f.core.date(f.last))
	u.served, u.bytes, u.errors = s.served, s.bytes, s.errors
}

// usageRowsLocked returns the rows that are out of date, and remembers them until
// usageSavedLocked.
func (f *Frontier) usageRowsLocked() (rows []Row) {
	b := f.core.limits
	if b == nil || len(b.dirty) == 0 {
		return nil
	}
	f.committer.usages, b.dirty = b.dirty, nil
	for _, u := range f.committer.usages {
		u.dirty = false
		if u.key != "" { // else its limits were taken back meanwhile
			rows = append(rows, Row{Key: u.key, Value: appendUsage(nil, 0, f.usageState(u))})
		}
	}
	return rows
}

// usageSavedLocked ends what usageRowsLocked began.
func (f *Frontier) usageSavedLocked(err error) {
	if err != nil {
		for _, u := range f.committer.usages {
			f.core.soil(u)
		}
	}
	f.committer.usages = nil
}

// crawlUseKey names the row of what a crawl has used.
func crawlUseKey(id uint32) string {
	return string(binary.BigEndian.AppendUint32([]byte(rowUse+"c"), id))
}

func decodeUsage(key string, value []byte) (s usageState, err error) {
	if err = readFields(value, s.field, noText); err != nil {
		err = rowError(key, err)
	}
	return s, err
}

// usage restores what a scope or crawl has used. Its limits were met before.
func (r *recovery) usage(key string, value []byte) error {
	s, err := decodeUsage(key, value)
	if err != nil {
		return err
	}
	name := key[len(rowUse):]
	if u := r.f.usageOf(name); u != nil {
		r.f.restore(u, s)
		return nil
	}
	if !strings.HasPrefix(name, "r") && !strings.HasPrefix(name, "c") {
		return &CorruptError{Key: []byte(key), Err: errRow}
	}
	r.obsolete(key)
	return nil
}

// usageOf finds what a row is about by its name behind rowUse; nil if it has no
// limits.
func (f *Frontier) usageOf(name string) *usage {
	switch {
	case strings.HasPrefix(name, "r"):
		if r, ok := f.controls.rule(name[1:]); ok {
			return r.use
		}
	case strings.HasPrefix(name, "c") && len(name) == 5:
		if x := f.core.findCrawl(binary.BigEndian.Uint32([]byte(name[1:]))); x != nil {
			return x.use
		}
	}
	return nil
}

// merge takes in what an import tells: the greater counts, and the later beginning.
func (f *Frontier) merge(u *usage, l *Limits, s usageState, now int64) {
	if u.over(l, now) {
		u.restart(f.core.limits.youngest)
	}
	if !u.begun {
		f.restore(u, s)
		return
	}
	u.since = max(u.since, min(f.date(millisTime(s.since)), now))
	u.served, u.bytes, u.errors = max(u.served, s.served), max(u.bytes, s.bytes), max(u.errors, s.errors)
}

// hostLimits is the rule that says what a host may do alone; nil if none does.
func (c *controls) hostLimits(host []byte) *scopeRule {
	t := c.setting(fieldHostLimits)
	if t == nil {
		return nil
	}
	return t.of(host, fieldHostLimits)
}

// counts reports whether what the row of a host says that it has used since a date
// counts at another one.
func (c *controls) counts(host string, since, now int64) bool {
	r := c.hostLimits(bytesOf(host))
	return r != nil && since > r.ended && (r.HostLimits.Period == 0 || now-since < int64(r.HostLimits.Period))
}

// countedHost is a host that is on disk only, and of which nothing must be known
// unless it has used something in a period that has not ended.
type countedHost struct {
	name  string
	since int64
}

// staleUsage lets the rows go of hosts whose periods have ended.
func (r *recovery) staleUsage() {
	for _, h := range r.counted {
		if !r.f.controls.counts(h.name, h.since, 0) {
			r.obsolete(rowHost + h.name)
		}
	}
	r.counted = nil
}

// dormantUsage is what the row of a host says that it has used; nil if that counts no
// more.
func (f *Frontier) dormantUsage(a *absentee) *usage {
	if !f.controls.counts(a.host, f.date(millisTime(a.state.used.since)), f.core.date(f.last)) {
		return nil
	}
	u := &usage{}
	f.restore(u, a.state.used)
	return u
}

// importUsed takes in what is told of the limits of a scope or crawl. Of one that has
// none it means nothing.
func (f *Frontier) importUsed(name string, s usageState) error {
	if err := f.lockOpen(); err != nil {
		return err
	}
	c := f.core
	u := f.usageOf(name)
	if u == nil {
		f.mu.Unlock()
		return nil
	}
	if r, ok := f.controls.rule(name[1:]); ok && r.use == u {
		f.merge(u, &r.Limits, s, c.date(f.last))
		c.tellUsed(u, &r.Limits, c.date(f.last), r.event())
	} else {
		x := c.findCrawl(binary.BigEndian.Uint32([]byte(name[1:])))
		f.merge(u, &x.settings.Limits, s, c.date(f.last))
		c.judgeCrawl(x, f.last)
	}
	c.soil(u)
	o := newOp()
	defer o.free()
	o.counts = f.opts.Spill != nil
	return f.submitLocked(o) // unlocks
}

// importHostUsed takes in what is told of what a host has used.
func (f *Frontier) importHostUsed(id uint32, s usageState) {
	c := f.core
	b, h := c.book(f.token), c.hosts.at(id)
	if b.hosts[id] == nil {
		b.hosts[id] = &usage{first: b.youngest}
		h.set(counted)
	}
	u, l := b.hosts[id], &Limits{}
	r := c.controls.hostLimits(c.name(h))
	if r != nil {
		u, l = c.hostUsage(id, r), &r.HostLimits
	}
	f.merge(u, l, s, c.date(f.last))
	if r != nil && r.ended != math.MinInt64 { // it counts, though the limits changed here since the period began
		u.since = max(u.since, r.ended+int64(time.Millisecond))
	}
	h.set(unsaved)
}
