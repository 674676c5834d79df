// Package gather copies the content of a frontier for an export or a scan, as it is at one moment, while the
// frontier goes on: what is in memory in short steps, the rest from a snapshot of the store. It owns what one
// call has collected; package dump sorts and writes it.
package gather

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/seed-7440039f/frontier/internal/arena"
	"github.com/seed-7440039f/frontier/internal/control"
	"github.com/seed-7440039f/frontier/internal/dump"
	"github.com/seed-7440039f/frontier/internal/hostkey"
	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/internal/known"
	"github.com/seed-7440039f/frontier/internal/limit"
	"github.com/seed-7440039f/frontier/internal/mercator"
	"github.com/seed-7440039f/frontier/internal/record"
	"github.com/seed-7440039f/frontier/internal/row"
	"github.com/seed-7440039f/frontier/internal/timeheap"
	"github.com/seed-7440039f/frontier/internal/tombstone"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/storage"
)

// Frontier is what is copied. All but the Spill needs its lock.
type Frontier struct {
	Locker
	Core      *mercator.Core
	Controls  *control.Controls
	Known     *known.URLs
	Forgotten *tombstone.Forgotten
	Values    *map[string][]byte // of the program's, if there is no Spill
	Spill     storage.Spill      // nil: everything is in memory
}

// Locker is the lock of a frontier.
type Locker interface {
	LockOpen() error // for a look at the present, while the frontier is open
	Lock()           // as it is
	Unlock()
	Last() int64  // the present; with the lock
	Alive() error // storage.ErrClosed if it is closed; without the lock
}

// Export writes the content of a frontier as docs/export.md describes it. It sorts within memory bytes, and
// beyond that with a temporary file in dir.
func Export(ctx context.Context, f Frontier, w io.Writer, dir string, memory int, noMarks bool) (err error) {
	x := &copier{Frontier: f, Writer: dump.NewWriter(dir, memory), ctx: ctx}
	x.Source, x.NoMarks = x, noMarks
	x.url = x.AddURL
	defer func() {
		if cerr := x.Close(); err == nil && cerr != nil {
			err = fmt.Errorf("frontier: export: %w", cerr)
		}
	}()
	err = x.run(w)
	switch closed := f.Alive(); {
	case err == nil:
		return nil
	case closed != nil:
		return closed
	case ctx.Err() != nil:
		return ctx.Err()
	default:
		return fmt.Errorf("frontier: export: %w", err)
	}
}

// copier is one export or scan: a Writer, and the Source that it asks.
type copier struct {
	Frontier
	*dump.Writer
	ctx     context.Context
	steps   int
	scope   scope.Scope   // of a scan
	deleted tombstone.Set // that the store has
	numbers tombstone.Forgotten

	// url takes the body of a record in memory, which is valid during the call.
	url func(q *storage.Queue, due int64, body []byte) error
}

// Alive returns why the export should end, if it should. It looks now and then.
func (x *copier) Alive() error {
	if x.steps++; x.steps%256 != 0 {
		return nil
	}
	return cmp.Or(x.ctx.Err(), x.Frontier.Alive())
}

func (x *copier) run(w io.Writer) error {
	if x.Spill == nil {
		if err := x.InMemory(x.copyAll); err != nil { // nothing is written under the lock, and nothing fails
			return err
		}
		return x.Write(w, nil)
	}
	s, err := x.gather()
	if err != nil {
		return err
	}
	defer s.Release()
	return x.Write(w, s)
}

// Delete takes the row of a deletion.
func (x *copier) Delete(key string, value []byte) error {
	d, err := row.ParseDeletion(key, value)
	if err != nil {
		return err
	}
	x.deleted.Add(&tombstone.Tombstone{Deletion: d})
	return nil
}

// Deleted reports whether a record fell to a deletion, or is not wanted.
func (x *copier) Deleted(q *storage.Queue, seq uint64) bool {
	return !x.scope.Contains(q.Host, q.Crawl) || seq <= x.deleted.Of(hostkey.Bytes(q.Host), q.Crawl).Seq
}

// Forgot takes the row of what was forgotten.
func (x *copier) Forgot(key string, value []byte) error {
	r, err := row.ParseForgotten(key, value)
	if err != nil {
		return err
	}
	x.numbers.Put(&r)
	return nil
}

// Mark returns the mark of the URL of a record's body.
func (x *copier) Mark(q *storage.Queue, p []byte) (storage.Mark, error) {
	b, err := record.Decode(p)
	if err != nil {
		return storage.Mark{}, err
	}
	return known.MarkOf(x.Core.Key, x.numbers.Of(q.Host, q.Crawl), q.Crawl, string(b.URL)), nil
}

// URL decodes a record's body.
func (x *copier) URL(p []byte, u *dump.URL) error {
	b, err := record.Decode(p)
	if err != nil {
		return err
	}
	*u = dump.URL{URL: hostkey.String(b.URL), Depth: b.Depth, Weight: b.Weight, Fails: b.Fails, Meta: b.Meta, History: b.History}
	return nil
}

// Host removes from a host's row what no longer counts.
func (x *copier) Host(name string, s *row.Host) {
	x.Lock()
	defer x.Unlock()
	c := x.Core
	if c.ReopenedAt != mercator.NotReopened { // the store was opened after a crash
		if at := instant.Millis(c.Clock.Wall(max(c.StartOfRow(s, x.Last()), c.StartOfHost(name)))); at > s.Due {
			s.Due, s.Why = at, uint8(mercator.WhyReopened)
		}
	}
	if s.Due <= max(x.Header.Moment, x.Header.Held) { // the header has the time that holds for all
		s.Due, s.Why = 0, uint8(mercator.WhyNone)
	} else if s.Why == uint8(mercator.WhyNone) { // as of a host that is being contacted
		s.Why = uint8(mercator.WhyDelay)
	}
	if s.Trouble.Free <= max(x.Header.Moment, x.Header.Held) || !mercator.Why(s.Why).Forgettable() {
		s.Trouble.Free = 0 // or it is due
	}
	if !c.Limits.Counts(name, s.Used, c.Clock.Date(instant.FromMillis(x.Header.Moment))) {
		s.Used = row.Usage{}
	}
	if t := c.TroubleOfRow(s, 0, x.Last()); t.Over() || t.Until() <= c.Clock.Moment(instant.FromMillis(x.Header.Moment)) {
		s.Trouble = row.Trouble{}
	}
	if s.Group == "" || *s != (row.Host{Group: s.Group}) {
		return
	}
	if h := c.Lookup(c.HashOf(name), name); h == 0 || c.Rests(h) {
		s.Group = "" // it belongs to none when it comes back
	}
}

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

// Scan calls take with every record of a scope, in no particular order.
func Scan(ctx context.Context, f Frontier, s scope.Scope, take func(q *storage.Queue, due int64, body []byte) error) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	x := &copier{Frontier: f, Writer: dump.NewWriter("", 0), ctx: ctx, scope: s}
	x.Source, x.NoMarks = x, true
	if x.Spill == nil {
		err = x.scanMemory(take)
	} else {
		err = x.scanStore(take)
	}
	if closed := f.Alive(); err != nil && closed != nil {
		return closed
	}
	return err
}

func (x *copier) scanStore(take func(q *storage.Queue, due int64, body []byte) error) error {
	s, err := x.Spill.Snapshot()
	if err != nil {
		return err
	}
	defer s.Release()
	return dump.EachURL(s, x, x.AddMark, func(q *storage.Queue, due int64, body []byte) error {
		return take(&storage.Queue{Host: strings.Clone(q.Host), Crawl: q.Crawl, Priority: q.Priority}, due, body)
	})
}

// scanMemory copies all URLs under the lock, and takes them then.
func (x *copier) scanMemory(take func(q *storage.Queue, due int64, body []byte) error) error {
	type copied struct {
		queue int
		due   int64
		end   int // of its body
	}
	var (
		queues []storage.Queue
		urls   []copied
		bodies []byte
	)
	x.url = func(q *storage.Queue, due int64, body []byte) error {
		if n := len(queues); n == 0 || queues[n-1] != *q {
			c := *q
			c.Host = strings.Clone(q.Host)
			queues = append(queues, c)
		}
		bodies = append(bodies, body...)
		urls = append(urls, copied{len(queues) - 1, due, len(bodies)})
		return nil
	}
	if err := x.LockOpen(); err != nil {
		return err
	}
	_ = x.copyURLsLocked() // it cannot fail
	x.Unlock()
	from := 0
	for _, u := range urls {
		if err := take(&queues[u.queue], u.due, bodies[from:u.end]); err != nil {
			return err
		}
		from = u.end
	}
	return nil
}
