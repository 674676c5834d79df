// This file encodes what is known of a host for the Spill, and says when that is
// written.
//
// A row has fields (fields.go). One that is missing is 0.

package frontier

import (
	"math"
	"time"
)

// Fields of a host's row.
const (
	hostDue        = 1 // Unix milliseconds
	hostCrawlDelay = 2 // milliseconds
	hostGroup      = 3 // its name
	hostWhy        = 4 // which clock said due
	hostQuiet      = 5 // and the others of its trouble: Unix milliseconds
	hostStep       = 6
	hostFrom       = 7
	hostSearch     = 8
	hostRelapses   = 9
	hostEased      = 10
	hostFails      = 11
	hostProbes     = 12
	hostSlots      = 13 // leases that it may have
	hostAssigned   = 14 // 1: it belongs to its group until somebody says otherwise
	hostFree       = 15 // of its trouble: Unix milliseconds
	hostFailure    = 16 // kind of the last failure
	hostUsual      = 17
	hostUsed       = 32 // and the tags of appendUsage: what it has used of limits
)

// hostState is what the row of a host says.
type hostState struct {
	due        int64 // Unix milliseconds
	crawlDelay int32
	why        why
	group      string
	assigned   bool
	quiet      int64   // Unix milliseconds
	free       int64   // Unix milliseconds
	trouble    trouble // but for these two
	used       usageState
}

// hostRow encodes what is known of a host, which may be contacted from due on.
func (f *Frontier) hostRow(id uint32, due int64, why why) Row {
	c := f.core
	h := c.hosts.at(id)
	b := appendNumber(nil, hostDue, uint64(max(0, f.storedLocked(due))))
	b = appendNumber(b, hostCrawlDelay, uint64(h.crawlDelay))
	if h.group != 0 {
		b = appendText(b, hostGroup, c.groupName(c.groups.at(h.group)))
	}
	b = appendNumber(b, hostWhy, uint64(why))
	if h.has(troubled) {
		t := c.troubles[id]
		b = appendNumber(b, hostQuiet, uint64(max(0, wallMillis(f.wall(t.quiet)))))
		b = appendNumber(b, hostStep, uint64(t.step))
		b = appendNumber(b, hostFrom, uint64(t.from))
		b = appendNumber(b, hostSearch, uint64(t.search))
		b = appendNumber(b, hostRelapses, uint64(t.relapses))
		b = appendNumber(b, hostEased, uint64(btoi(t.eased)))
		b = appendNumber(b, hostFails, uint64(t.fails))
		b = appendNumber(b, hostProbes, uint64(t.probes))
		b = appendNumber(b, hostSlots, uint64(t.lanes))
	}
	b = appendNumber(b, hostAssigned, uint64(btoi(h.has(assigned))))
	if h.has(troubled) {
		b = appendNumber(b, hostFree, uint64(max(0, f.storedLocked(c.troubles[id].free))))
		b = appendNumber(b, hostFailure, uint64(c.troubles[id].kind))
		b = appendNumber(b, hostUsual, uint64(c.troubles[id].usual))
	}
	if _, u := c.ownUsage(id); u != nil {
		b = appendUsage(b, hostUsed, f.usageState(u))
	}
	return Row{Key: rowHost + string(c.name(h)), Value: b}
}

// decodeHost is the inverse of hostRow.
func decodeHost(name string, value []byte) (hostState, error) {
	var s hostState
	t := &s.trouble
	small := func(at *uint8, x uint64) bool { *at = uint8(x); return x <= math.MaxUint8 }
	err := readFields(value, func(tag int, x uint64) error {
		switch tag {
		case hostDue:
			s.due = int64(x)
			return inRange(x <= maxMillis)
		case hostCrawlDelay:
			s.crawlDelay = int32(x)
			return inRange(x <= uint64(maxCrawlDelay/time.Millisecond))
		case hostWhy:
			return inRange(small((*uint8)(&s.why), x) && s.why < whys)
		case hostQuiet:
			s.quiet = int64(x)
			return inRange(x <= maxMillis)
		case hostStep:
			return inRange(small(&t.step, x))
		case hostFrom:
			return inRange(small(&t.from, x))
		case hostSearch:
			return inRange(small(&t.search, x))
		case hostRelapses:
			return inRange(small(&t.relapses, x) && t.relapses <= maxRelapses)
		case hostEased:
			t.eased = x == 1
			return inRange(x == 1)
		case hostFails:
			t.fails = uint16(x)
			return inRange(x <= maxAfter)
		case hostAssigned:
			s.assigned = x == 1
			return inRange(x == 1)
		case hostUsed + useSince, hostUsed + useServed, hostUsed + useBytes, hostUsed + useErrors:
			return s.used.field(tag-hostUsed, x)
		case hostFree:
			s.free = int64(x)
			return inRange(x <= maxMillis)
		case hostProbes:
			return inRange(small(&t.probes, x))
		case hostUsual:
			return inRange(small(&t.usual, x))
		case hostFailure:
			return inRange(small((*uint8)(&t.kind), x) && int(t.kind) < failures)
		case hostSlots:
			t.lanes = uint16(x)
			return inRange(x <= math.MaxUint16)
		}
		return unknown(tag)
	}, func(tag int, text []byte) error {
		if tag != hostGroup {
			return unknown(tag)
		}
		s.group = string(text)
		return inRange(checkGroup(s.group) == nil)
	})
	if err == nil && len(value) == 0 {
		err = errRow
	}
	if err != nil {
		return hostState{}, rowError(rowHost+name, err)
	}
	return s, nil
}

// maxMillis is the latest time that is stored, the end of the year 9999 in Unix
// milliseconds: later ones have no name in exports.
const maxMillis = 253402300799999

// remember gives a host what its row says.
func (f *Frontier) remember(id uint32, s *hostState) {
	c := f.core
	h := c.hosts.at(id)
	h.crawlDelay = s.crawlDelay
	h.set(stored)
	if t := f.stateTrouble(s); !t.over() {
		c.setTrouble(id, t)
		c.outlived(id, f.last)
	}
	if s.used != (usageState{}) {
		b := c.book(f.token)
		u := &usage{} // nobody looked while it was in the row
		f.restore(u, s.used)
		b.hosts[id] = u
		u.first = c.limits.youngest
		h.set(counted)
	}
	if due, why := f.dueOf(s); due >= h.due { // what the row says is more exact
		h.due, h.why = due, why
	}
	if s.group != "" {
		c.joinGroup(h, c.groupOf(s.group))
		if s.assigned {
			h.set(assigned)
		}
	}
}

// stateTrouble is what a row says of a host's failures.
func (f *Frontier) stateTrouble(s *hostState) trouble {
	t := s.trouble
	if f.opts.Backoff.Disabled {
		t.step, t.lanes, t.relapses, t.eased, t.usual = 0, 0, 0, false, 0
	}
	if f.opts.Quarantine.Disabled {
		t.probes = 0
	}
	t.quiet = min(f.owed(millisTime(s.quiet)), f.last)
	t.free = min(f.owed(millisTime(s.free)), f.last+int64(maxDelay))
	t.raised, t.counted = f.token, f.token // leases from before have ended
	return t
}

// dueOf is when a host may be contacted of which the row says s, and which clock
// says so.
func (f *Frontier) dueOf(s *hostState) (int64, why) {
	due := f.owed(millisTime(s.due))
	if s.due != 0 { // the clock may have been set ahead since: in doubt it was before
		due = min(due, lastMoment) + f.core.lead - f.core.leastLead
	}
	due = min(due, f.last+int64(maxDelay))
	if at := f.heldGap(s); at > due {
		return at, whyReopened
	}
	return due, s.why
}

// heldGap is until when a host of which the row says s is left alone because the
// store was opened after a crash.
func (f *Frontier) heldGap(s *hostState) int64 {
	gap := int64(s.crawlDelay) * int64(time.Millisecond)
	t := f.stateTrouble(s)
	if g, why := t.gap(&f.core.cfg); why != whyQuarantine || f.owed(millisTime(s.due)) <= f.heldFrom { // else no probe was under way
		gap = max(gap, int64(f.opts.Backoff.jittered(g)))
	}
	return f.heldUntil(gap)
}

// noteLocked adds a row to o if a crash would otherwise forget something of the
// host: what was learned of it or its group, or a time beyond what every host is
// left alone for after a crash. The host is pinned until o is settled.
func (f *Frontier) noteLocked(o *op, id uint32, due int64, why why, now int64) {
	h := f.core.hosts.at(id)
	if due <= h.due {
		due, why = h.due, h.why
	}
	if h.has(unsaved) || due-now > f.maxDelay {
		h.clear(unsaved | behind)
		h.set(stored)
		f.pinLocked(o, id)
		o.rows = append(o.rows, f.hostRow(id, due, why))
		f.core.rows.Add(f.core.hash(f.core.name(h)))
	}
}

// pinLocked keeps a host in memory until o is settled.
func (f *Frontier) pinLocked(o *op, id uint32) {
	if o.pinned == 0 {
		f.core.hosts.at(id).pins++
		o.pinned = id
	}
}
