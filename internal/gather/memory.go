// This file copies what is in memory.

package gather

import (
	"cmp"
	"slices"

	"github.com/seed-7440039f/frontier/internal/arena"
	"github.com/seed-7440039f/frontier/internal/hostkey"
	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/internal/limit"
	"github.com/seed-7440039f/frontier/internal/mercator"
	"github.com/seed-7440039f/frontier/internal/record"
	"github.com/seed-7440039f/frontier/internal/row"
	"github.com/seed-7440039f/frontier/internal/timeheap"
	"github.com/seed-7440039f/frontier/storage"
)

// copiedAtOnce is how many hosts or groups are looked at under one lock.
const copiedAtOnce = 128

// beginLocked notes the moment of the copy and the state that belongs to it.
func (x *copier) beginLocked() {
	now := x.Last()
	x.Header.Moment, x.Header.Key = instant.Millis(x.Core.Clock.Wall(now)), x.Core.Key
	if x.Core.StartsAt > now {
		x.Header.Held = instant.Millis(x.Core.Clock.Wall(x.Core.StartsAt))
	}
}

// gather takes the content of the store, and clocks from memory. Marks are read from the
// snapshot later.
func (x *copier) gather() (storage.Snapshot, error) {
	if err := x.LockOpen(); err != nil {
		return nil, err
	}
	x.beginLocked()
	x.Unlock()
	s, err := x.Spill.Snapshot()
	if err != nil {
		return nil, err
	}
	for _, step := range [...]func(storage.Snapshot) error{x.AddControls, x.AddURLs, x.clocks} {
		if err := step(s); err != nil {
			s.Release()
			return nil, err
		}
	}
	return s, nil
}

// clocks takes what is known of hosts and groups: from memory, and then from the
// store what left memory before it was looked at.
func (x *copier) clocks(storage.Snapshot) error {
	if err := x.inMemory(func() uint32 { return x.Core.Hosts.Top }, x.addHostLocked); err != nil {
		return err
	}
	if err := x.inMemory(func() uint32 { return x.Core.Groups.Top }, x.addGroupLocked); err != nil {
		return err
	}
	s, err := x.Spill.Snapshot()
	if err != nil {
		return err
	}
	defer s.Release()
	return x.AddClocks(s)
}

// inMemory calls add with each number up to top, a few under one lock, and takes
// the rows that it makes.
func (x *copier) inMemory(top func() uint32, add func(id uint32, now int64, take func(storage.Row))) error {
	var some []storage.Row
	take := func(r storage.Row) { some = append(some, r) }
	for id, more := uint32(1), true; more; {
		if err := x.LockOpen(); err != nil {
			return err
		}
		now := x.Last()
		for end := id + copiedAtOnce; id < end && id <= top(); id++ {
			add(id, now, take)
		}
		more = id <= top()
		x.Unlock()
		for _, r := range some {
			if err := x.AddRow(r.Key, r.Value, true); err != nil {
				return err
			}
		}
		some = some[:0]
		if err := x.ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

// addHostLocked takes a host in memory about which something must be known, or whose row in
// the store may be out of date.
func (x *copier) addHostLocked(id uint32, now int64, take func(storage.Row)) {
	c := x.Core
	h := c.Hosts.At(id)
	if h.NameLen == 0 {
		return
	}
	due := c.RestsUntil(id)
	for range c.LeasesOf(id) { // its contact may go on: it counts as contacted now
		due = max(due, c.ContactedNow(id, now))
	}
	if due > now || h.Learned() || h.Group != 0 || h.Has(mercator.Stored) {
		take(c.HostRow(id, due, h.Why))
	}
}

func (x *copier) addGroupLocked(id uint32, now int64, take func(storage.Row)) {
	c := x.Core
	g := c.Groups.At(id)
	if g.NameLen == 0 {
		return
	}
	name, free := c.GroupName(g), c.SlotsOf(id).Last()
	if g.Used > 0 {
		free = max(free, now+c.Longest(g))
	}
	take(x.Controls.GroupRow(name, instant.Millis(c.Clock.Wall(free))))
}

// copyAll copies the content of a frontier without a Spill, under one lock.
func (x *copier) copyAll() error {
	c := x.Core
	if err := x.LockOpen(); err != nil {
		return err
	}
	defer x.Unlock()
	x.beginLocked()
	now := x.Last()
	take := func(r storage.Row) { _ = x.AddRow(r.Key, r.Value, true) }
	for _, y := range c.Crawls {
		if y == nil {
			continue
		}
		take((&row.Crawl{ID: y.ID, CrawlSettings: y.Settings}).Row())
		x.copyUsedLocked(limit.OfCrawl(y.ID), take)
	}
	for r := range x.Controls.All(c.Date(now)) {
		x.copyUsedLocked(limit.OfScope(r.Scope), take)
		take(r.Row(r.Scope.Key()))
	}
	for key, v := range *x.Values {
		take(row.Value(key, v))
	}
	for r := range x.Forgotten.All() {
		take(r.Row())
	}
	for name := range x.Controls.Groups() {
		if c.GroupNamed(name) == 0 {
			take(x.Controls.GroupRow(name, 0))
		}
	}
	for id := uint32(1); id <= c.Groups.Top; id++ {
		x.addGroupLocked(id, now, take)
	}
	for id := uint32(1); id <= c.Hosts.Top; id++ {
		x.addHostLocked(id, now, take)
	}
	if err := x.copyURLsLocked(); err != nil {
		return err
	}
	if !x.NoMarks {
		x.GrowMarks(x.Known.RecentLen())
		for m := range x.Known.Recent() {
			x.AddMark(m)
		}
	}
	return x.ctx.Err()
}

// copyURLsLocked copies all URLs: those that are leased, those that wait in the order
// of their queues, and those that wait for their time.
func (x *copier) copyURLsLocked() error {
	c := x.Core
	if err := x.copyLeasedLocked(); err != nil {
		return err
	}
	for id := uint32(1); id <= c.Hosts.Top; id++ {
		if c.Hosts.At(id).NameLen == 0 {
			continue
		}
		if err := x.copyQueuesLocked(id); err != nil {
			return err
		}
	}
	scheduled := slices.Clone(c.Scheduled.Items)
	slices.SortFunc(scheduled, func(a, b timeheap.Item) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(c.Records.At(arena.Ref(a.ID)).Seq(), c.Records.At(arena.Ref(b.ID)).Seq()))
	})
	for _, it := range scheduled {
		if err := x.copyURLLocked(it.Aux, c.Clock.DueMillis(it.At), c.Records.At(arena.Ref(it.ID))); err != nil {
			return err
		}
	}
	return nil
}

// copyLeasedLocked copies the URLs that are leased, in the order in which they waited.
func (x *copier) copyLeasedLocked() error {
	c := x.Core
	var out []mercator.Lease
	for _, it := range c.Expiry.Items {
		if l := *c.Leases.At(it.ID); l.Record != 0 && l.Dead == 0 {
			out = append(out, l)
		}
	}
	slices.SortFunc(out, func(a, b mercator.Lease) int {
		return cmp.Compare(c.Records.At(a.Record).Seq(), c.Records.At(b.Record).Seq())
	})
	for i := range out {
		if err := x.copyURLLocked(out[i].Queue, 0, c.Records.At(out[i].Record)); err != nil {
			return err
		}
	}
	return nil
}

// copyQueuesLocked copies the URLs of a host that wait.
func (x *copier) copyQueuesLocked(id uint32) error {
	c := x.Core
	for qid, q := range c.QueuesOf(id) {
		for ref := range c.Fifo.After(&q.Queue, 0) {
			if err := x.copyURLLocked(qid, 0, c.Records.At(ref)); err != nil {
				return err
			}
		}
	}
	return nil
}

// copyURLLocked copies a record, unless it was deleted.
func (x *copier) copyURLLocked(qid uint32, due int64, r record.Resident) error {
	c := x.Core
	q := c.Queues.At(qid)
	if r.Seq() <= c.DeadIn(q).Seq {
		return nil
	}
	host := hostkey.String(c.Name(c.Hosts.At(q.Host)))
	if !x.scope.Contains(host, c.CrawlNumber(q)) {
		return nil
	}
	return x.url(&storage.Queue{Host: host, Crawl: c.CrawlNumber(q), Priority: q.Priority}, due, r.Body())
}

// copyUsedLocked copies the use of limits.
func (x *copier) copyUsedLocked(of limit.Subject, take func(storage.Row)) {
	if r, ok := x.Core.Limits.Row(of); ok {
		take(r)
	}
}
