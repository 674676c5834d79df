// This file gathers what an export writes of a frontier without a Spill: a copy of
// all, made under one lock.

package frontier

import (
	"cmp"
	"slices"

	"github.com/seed-7440039f/frontier/internal/arena"
)

func (x *exporter) copyAll() error {
	f := x.f
	c := f.core
	limit := x.sorter.limit
	x.sorter.limit = 0 // nothing is written under the lock, and nothing fails
	defer func() { x.sorter.limit = limit }()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return ErrClosed
	}
	x.beginLocked()
	now := f.last
	take := func(section byte, name, value []byte) { _ = x.addNamed(section, name, fromMemory, value) }
	for _, y := range c.crawls {
		if y == nil {
			continue
		}
		row := crawlRow(y.id, y.settings)
		if err := x.addRow(sectionCrawl, row.Key[len(rowCrawl):], row.Value); err != nil {
			return err
		}
		x.copyUsedLocked(y.use)
	}
	if t := f.controls.table.Load(); t != nil {
		t.tree.Ascend(func(r *scopeRule) bool {
			x.copyUsedLocked(r.use)
			return x.addRow(sectionRule, r.key, ruleRow(r.key, &storedRule{Rule: r.Rule}).Value) == nil
		})
	}
	for name, s := range f.groupRules.all() {
		if f.core.groupNamed(name) == 0 {
			take(sectionGroup, []byte(name), groupRow(name, groupState{GroupSettings: s}).Value)
		}
	}
	for id := uint32(1); id <= c.groups.top; id++ {
		x.addGroupLocked(id, now, take)
	}
	if err := x.copyLeasedLocked(); err != nil {
		return err
	}
	for id := uint32(1); id <= c.hosts.top; id++ {
		if c.hosts.at(id).nameLen == 0 {
			continue
		}
		x.addHostLocked(id, now, take)
		if err := x.copyQueuesLocked(id); err != nil {
			return err
		}
	}
	scheduled := slices.Clone(c.scheduled.Items)
	slices.SortFunc(scheduled, func(a, b timeItem) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(c.record(arena.Ref(a.id)).seq(), c.record(arena.Ref(b.id)).seq()))
	})
	for _, it := range scheduled {
		if err := x.copyURLLocked(it.aux, max(1, wallMillis(f.day(it.at))), c.record(arena.Ref(it.id))); err != nil {
			return err
		}
	}
	if !x.noMarks {
		x.young = make([]Mark, 0, f.known.recent.Len())
		for m := range f.known.recent.All() {
			x.young = append(x.young, m)
		}
	}
	return x.ctx.Err()
}

// copyLeasedLocked copies the URLs that are leased, in the order in which they
// waited.
func (x *exporter) copyLeasedLocked() error {
	c := x.f.core
	var out []leaseRecord
	for _, it := range c.expiry.Items {
		if l := *c.leases.at(it.id); l.record != 0 && l.dead == 0 {
			out = append(out, l)
		}
	}
	slices.SortFunc(out, func(a, b leaseRecord) int {
		return cmp.Compare(c.record(a.record).seq(), c.record(b.record).seq())
	})
	for i := range out {
		if err := x.copyURLLocked(out[i].queue, 0, c.record(out[i].record)); err != nil {
			return err
		}
	}
	return nil
}

// copyQueuesLocked copies the URLs of a host that wait.
func (x *exporter) copyQueuesLocked(id uint32) error {
	c := x.f.core
	for qid := c.hosts.at(id).queues; qid != 0; qid = c.queues.at(qid).sibling {
		q := c.queues.at(qid)
		for _, s := range [...]stretch{q.front, q.back} {
			for ref := s.first; ref != 0; ref = c.record(ref).next() {
				if err := x.copyURLLocked(qid, 0, c.record(ref)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// copyURLLocked copies a record, unless it was deleted.
func (x *exporter) copyURLLocked(qid uint32, due int64, r resident) error {
	c := x.f.core
	q := c.queues.at(qid)
	if r.seq() <= c.doomOf(q).seq {
		return nil
	}
	host := c.name(c.hosts.at(q.host))
	return x.addURLOf(host, c.crawlOf(q).id, q.priority, due, r.body())
}

// copyUsedLocked takes what was used of limits.
func (x *exporter) copyUsedLocked(u *usage) {
	if u != nil {
		_ = x.addRow(sectionUsed, u.key[len(rowUse):], appendUsage(nil, 0, x.f.usageState(u))) // as all here
	}
}
