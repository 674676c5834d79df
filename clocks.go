// This file carries what is known of hosts and groups from one frontier on a
// store to the next: when they may be contacted, what was learned of them, who
// belongs together.
//
// What a reader would assume of a host or group without a row has none.

package frontier

import (
	"encoding/binary"
	"fmt"
	"math"
)

const (
	clocksAtOnce = 4096    // hosts or groups that are looked at under one lock, or rows in one batch
	maxStale     = 4 << 20 // bytes of keys of rows that one opening deletes
)

// saveClocks writes what makes the next opening continue with exact times, in
// steps. The last one says that the frontier was closed. Nothing else may be on
// its way to the Spill.
func (f *Frontier) saveClocks() error {
	for _, step := range []struct {
		top  func() uint32
		rows func(id uint32, now int64) []Row
	}{
		{func() uint32 { return f.core.hosts.top }, f.closingHostLocked},
		{func() uint32 { return f.core.groups.top }, f.closingGroupLocked},
	} {
		for id, more := uint32(1), true; more; {
			f.mu.Lock()
			now := f.nowLocked()
			b := &Batch{Time: wallMillis(f.wall(now))}
			for n := 0; n < clocksAtOnce && id <= step.top(); n, id = n+1, id+1 {
				b.Rows = append(b.Rows, step.rows(id, now)...)
			}
			more = id <= step.top()
			f.mu.Unlock()
			if err := f.commitRows(b); err != nil {
				return err
			}
		}
	}
	f.mu.Lock()
	b := &Batch{
		Time: wallMillis(f.wall(f.nowLocked())),
		Rows: append(f.usageRowsLocked(), f.metaRowLocked(f.gen, true)),
		Drop: f.core.drops,
	}
	f.mu.Unlock()
	return f.commitRows(b)
}

// commitRows commits b, if it has any rows, while no committer is running.
func (f *Frontier) commitRows(b *Batch) error {
	if len(b.Rows) == 0 {
		return nil
	}
	b.ID = f.committer.batchID + 1
	if err := f.opts.Spill.Commit(b); err != nil {
		return err
	}
	f.committer.batchID = b.ID
	return nil
}

// closingHostLocked returns the row that a host needs, if it has not got it.
func (f *Frontier) closingHostLocked(id uint32, now int64) []Row {
	c := f.core
	h := c.hosts.at(id)
	if h.nameLen == 0 {
		return nil
	}
	due, why := h.due, h.why
	if at := c.restsUntil(id); at > due {
		due, why = at, whyDelay
	}
	for lease := range c.leasesOf(id) {
		// Its contact may go on: it counts as contacted now.
		l := c.leases.at(lease)
		if at := now + max(f.longestDelay(string(c.name(h))), c.learnedGap(id)); at > due {
			due, why = at, whyReopened
		}
		f.leasedTroubleLocked(id, now)
		for _, g := range [...]uint32{l.group, h.group, l.oldGroup} {
			if g != 0 {
				c.stampGroup(g, now+c.longest(c.groups.at(g)), now)
			}
		}
	}
	early := due > now && due > f.assumed(id) // without a row it would be contacted too early
	switch {
	case early, (h.learned() || h.group != 0) && (h.has(unsaved|behind) || !h.has(stored)):
		return []Row{f.hostRow(id, due, why)}
	case h.has(stored) && !h.learned() && h.group == 0:
		return []Row{{Key: rowHost + string(c.name(h))}}
	}
	return nil
}

// assumed is until when a reader would leave a host alone whose row tells no
// time.
func (f *Frontier) assumed(id uint32) int64 {
	h := f.core.hosts.at(id)
	at := f.core.hold
	if f.core.holdOf != nil {
		at = max(at, f.core.holdOf(string(f.core.name(h))))
	}
	if h.has(stored) && !h.has(unsaved|behind) {
		at = max(at, f.heldUntil(h.crawlDelayNs()))
	}
	return at
}

func (f *Frontier) closingGroupLocked(id uint32, now int64) []Row {
	c := f.core
	g, last := c.groups.at(id), c.slotsOf(id).last()
	if g.nameLen == 0 || last <= now || c.groupHold != nil && last <= c.groupHold(c.delayOf(g)) {
		return nil
	}
	name := c.groupName(g)
	return []Row{groupRow(name, groupState{f.groupRules.of(name), f.storedLocked(last)})}
}

// Begin learns what must be known before the first host.
func (r *recovery) Begin(row func(string) ([]byte, bool, error)) error {
	value, found, err := row(rowMeta)
	if err != nil {
		return err
	}
	if !found {
		r.f.core.key = randomKey()
		return nil
	}
	return r.meta(value)
}

// Row gives hosts and groups what was stored of them.
func (r *recovery) Row(key string, value []byte) error {
	if len(key) < 2 {
		return nil // rowMeta, or not ours to judge
	}
	switch kind, name := key[:2], key[2:]; kind {
	case rowRule:
		return r.rule(key, value)
	case rowGroup:
		s, err := decodeGroup(name, value)
		if err != nil {
			return err
		}
		r.group(name, &s)
	case rowCrawl:
		id, s, err := decodeCrawl(name, value)
		if err != nil {
			return rowError(key, err)
		}
		r.f.core.setCrawl(id, s, 0, 0)
	case rowUse:
		return r.usage(key, value)
	case rowDeletion:
		return r.deletion(key, value)
	case rowNote:
		m, x, err := readNote(key, value)
		if err != nil {
			return rowError(key, err)
		}
		r.f.notes.set(m, x)
	case rowHint:
		return r.hint(key, value)
	case rowHost:
		s, err := decodeHost(name, value)
		if err != nil {
			return err
		}
		r.host(name, s)
	}
	return nil
}

// rule puts a stored rule in force. A block that has passed is not set any more.
func (r *recovery) rule(key string, value []byte) error {
	s, rule, err := decodeRule(key[len(rowRule):], value)
	if err != nil {
		return rowError(key, err)
	}
	x := &scopeRule{key: s.ruleKey(), scope: s, Rule: rule.Rule}
	if !rule.BlockedUntil.IsZero() {
		x.until = r.f.date(rule.BlockedUntil)
	}
	if x.Rule = x.at(r.f.core.date(0)); x.empty() {
		r.obsolete(key)
		return nil
	}
	r.f.enforceLocked(x)
	x.ended, x.changed = math.MinInt64, 0 // it takes the place of none
	if rule.ended != 0 {
		b := r.f.core.limits // there are HostLimits
		b.changes = 1
		x.ended, x.changed = r.f.date(millisTime(rule.ended)), 1 // nobody looked since
	}
	return nil
}

// host gives a host that has URLs what its row says. Others stay on disk, unless
// the row says nothing any more.
func (r *recovery) host(name string, s hostState) {
	f := r.f
	hash := f.hostHash(name)
	id := f.core.lookup(hash, name)
	if id == 0 && s.crawlDelay == 0 && !s.assigned && f.owed(millisTime(s.due)) <= 0 && !f.troubleKept(&s) {
		if s.used == (usageState{}) {
			r.obsolete(rowHost + name)
			return
		}
		if len(r.counted) < maxStale/64 { // rules come later
			r.counted = append(r.counted, countedHost{name, f.date(millisTime(s.used.since))})
		}
	}
	f.core.rows.Add(hash)
	if id != 0 {
		f.remember(id, &s)
	}
}

func (r *recovery) group(name string, s *groupState) {
	c := r.f.core
	if s.GroupSettings != (GroupSettings{}) {
		r.f.groupRules.set(name, s.GroupSettings)
	}
	at := min(r.f.owed(millisTime(s.due)), int64(maxDelay))
	if s.due == 0 || at <= 0 || c.groupHold != nil && at <= c.groupHold(nil) {
		if s.GroupSettings == (GroupSettings{}) {
			r.groups = append(r.groups, name)
		}
		return
	}
	c.holdGroup(c.groupOf(name), at)
}

// obsolete notes that a row is to be deleted. What is too much is left for the
// next opening.
func (r *recovery) obsolete(key string) {
	if len(r.stale) < maxStale {
		r.stale = append(binary.AppendUvarint(r.stale, uint64(len(key))), key...)
	}
}

// deleteStale deletes the rows that say nothing any more.
func (r *recovery) deleteStale() error {
	f := r.f
	for _, name := range r.groups {
		if f.core.groupNamed(name) == 0 {
			r.obsolete(rowGroup + name)
		}
	}
	r.staleUsage()
	for len(r.stale) > 0 {
		b := &Batch{Time: wallMillis(f.start)}
		for len(r.stale) > 0 && len(b.Rows) < clocksAtOnce {
			n, k := binary.Uvarint(r.stale)
			end := k + int(n)
			b.Rows = append(b.Rows, Row{Key: string(r.stale[k:end])})
			r.stale = r.stale[end:]
		}
		if err := f.commitRows(b); err != nil {
			return fmt.Errorf("frontier: open: %w", err)
		}
		f.applied.batch = b.ID
	}
	return nil
}
