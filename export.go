// This file writes the content of a frontier as lines of JSON, as it is at one moment,
// while it goes on.
//
// It gathers what is in memory; internal/dump reads the store, sorts and writes the lines.

package frontier

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/seed-7440039f/frontier/internal/arena"
	"github.com/seed-7440039f/frontier/internal/dump"
	"github.com/seed-7440039f/frontier/internal/hostkey"
	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/internal/known"
	"github.com/seed-7440039f/frontier/internal/limit"
	"github.com/seed-7440039f/frontier/internal/mercator"
	"github.com/seed-7440039f/frontier/internal/patience"
	"github.com/seed-7440039f/frontier/internal/record"
	"github.com/seed-7440039f/frontier/internal/row"
	"github.com/seed-7440039f/frontier/internal/timeheap"
	"github.com/seed-7440039f/frontier/internal/tombstone"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/storage"
)

// ExportOptions configure Export. The zero value is ready to use.
type ExportOptions struct {
	// TempDir is the folder of the temporary file that Export needs for more than Memory.
	// Empty means os.TempDir().
	TempDir string
	// Memory is the number of bytes that sorting may use. Zero means 64 MiB.
	Memory int
	// NoMarks leaves out the marks of URLs that are gone: a frontier that imports the
	// export takes them for new.
	NoMarks bool
}

// minExportMemory is the least that ExportOptions.Memory may be.
const minExportMemory = 64 << 10

// Export writes the whole content of the frontier to w, as the lines that docs/export.md describes:
// rules, groups, hosts with their clocks, URLs with all that is known about them, and marks of all URLs
// ever admitted. Leased URLs are written as waiting. Import is its inverse.
//
// With a Spill it shows one moment, while other calls go on; only clocks of hosts and
// groups are read a little later. Without one the lock is held while everything is copied
// to memory, about a second for ten million URLs.
//
// Two frontiers with the same content write the same bytes, except for the time in the first line. The
// order is that of domains, and within a host that in which URLs would be handed out after a reopening.
//
// Export returns ctx's error, ErrClosed if the frontier is closed meanwhile, w's error, or the Spill's.
// The output then lacks its last line {"end":...}, and Import refuses it. Calls may run concurrently.
func (f *Frontier) Export(ctx context.Context, w io.Writer, o ExportOptions) error {
	out, end := patience.LendWriter(w, ErrClosed)
	defer end()
	_, err := patience.InTime(ctx, f.abandoned, func() (none struct{}, err error) { return none, f.export(ctx, out, o) })
	return err
}

func (f *Frontier) export(ctx context.Context, w io.Writer, o ExportOptions) (err error) {
	o.Memory = cmp.Or(o.Memory, 64<<20)
	if o.Memory < minExportMemory {
		return fmt.Errorf("frontier: export: Memory is %d; want at least %d", o.Memory, minExportMemory)
	}
	x := &exporter{Writer: dump.NewWriter(o.TempDir, o.Memory), f: f, ctx: ctx}
	x.Source, x.NoMarks = x, o.NoMarks || f.opts.NoDedup
	x.url = x.AddURL
	defer func() {
		if cerr := x.Close(); err == nil && cerr != nil {
			err = fmt.Errorf("frontier: export: %w", cerr)
		}
	}()
	switch err := x.run(w); {
	case err == nil:
		return nil
	case f.isClosed():
		return ErrClosed
	case ctx.Err() != nil:
		return ctx.Err()
	default:
		return fmt.Errorf("frontier: export: %w", err)
	}
}

// exporter is one call of Export: a Writer, and the Source that it asks.
type exporter struct {
	*dump.Writer
	f       *Frontier
	ctx     context.Context
	steps   int
	scope   scope.Scope   // of a Scan
	deleted tombstone.Set // that the store has
	numbers tombstone.Forgotten

	// url takes the body of a record in memory, which is valid during the call.
	url func(q *storage.Queue, due int64, body []byte) error
}

// Alive returns why the export should end, if it should. It looks now and then.
func (x *exporter) Alive() error {
	if x.steps++; x.steps%256 != 0 {
		return nil
	}
	if err := x.ctx.Err(); err != nil {
		return err
	}
	if x.f.isClosed() {
		return ErrClosed
	}
	return nil
}

func (x *exporter) run(w io.Writer) error {
	if x.f.opts.Spill == nil {
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
func (x *exporter) Delete(key string, value []byte) error {
	d, err := row.ParseDeletion(key, value)
	if err != nil {
		return err
	}
	x.deleted.Add(&tombstone.Tombstone{Deletion: d})
	return nil
}

// Deleted reports whether a record fell to a deletion, or is not wanted.
func (x *exporter) Deleted(q *storage.Queue, seq uint64) bool {
	return !x.scope.Contains(q.Host, q.Crawl) || seq <= x.deleted.Of(hostkey.Bytes(q.Host), q.Crawl).Seq
}

// Forgot takes the row of what was forgotten.
func (x *exporter) Forgot(key string, value []byte) error {
	r, err := row.ParseForgotten(key, value)
	if err != nil {
		return err
	}
	x.numbers.Put(&r)
	return nil
}

// Mark returns the mark of the URL of a record's body.
func (x *exporter) Mark(q *storage.Queue, p []byte) (storage.Mark, error) {
	b, err := record.Decode(p)
	if err != nil {
		return storage.Mark{}, err
	}
	return known.MarkOf(x.f.core.Key, x.numbers.Of(q.Host, q.Crawl), q.Crawl, string(b.URL)), nil
}

// URL decodes a record's body.
func (x *exporter) URL(p []byte, u *dump.URL) error {
	b, err := record.Decode(p)
	if err != nil {
		return err
	}
	*u = dump.URL{URL: hostkey.String(b.URL), Depth: b.Depth, Weight: b.Weight, Fails: b.Fails, Meta: b.Meta, History: b.History}
	return nil
}

// Host removes from a host's row what no longer counts.
func (x *exporter) Host(name string, s *row.Host) {
	f := x.f
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.core.ReopenedAt != mercator.NotReopened { // the store was opened after a crash
		if at := instant.Millis(f.wall(max(f.core.StartOfRow(s, f.last), f.core.StartOfHost(name)))); at > s.Due {
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
	if !f.core.Limits.Counts(name, s.Used, f.date(instant.FromMillis(x.Header.Moment))) {
		s.Used = row.Usage{}
	}
	if t := f.core.TroubleOfRow(s, f.token, f.last); t.Over() || t.Until() <= f.owed(instant.FromMillis(x.Header.Moment)) {
		s.Trouble = row.Trouble{}
	}
	if s.Group == "" || *s != (row.Host{Group: s.Group}) {
		return
	}
	if h := f.core.Lookup(f.core.HashOf(name), name); h == 0 || f.core.Rests(h) {
		s.Group = "" // it belongs to none when it comes back
	}
}

// exportAtOnce is how many hosts or groups are looked at under one lock.
const exportAtOnce = 128

// beginLocked notes the moment of the export and the state that belongs to it.
func (x *exporter) beginLocked() {
	f := x.f
	now := f.nowLocked()
	x.Header.Moment, x.Header.Key = instant.Millis(f.wall(now)), f.core.Key
	if f.core.StartsAt > now {
		x.Header.Held = instant.Millis(f.wall(f.core.StartsAt))
	}
}

// gather takes the content of the store, and clocks from memory. Marks are read from the
// snapshot later.
func (x *exporter) gather() (storage.Snapshot, error) {
	f := x.f
	if err := f.lockOpen(); err != nil {
		return nil, err
	}
	x.beginLocked()
	f.mu.Unlock()
	s, err := f.opts.Spill.Snapshot()
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
func (x *exporter) clocks(storage.Snapshot) error {
	f := x.f
	if err := x.inMemory(func() uint32 { return f.core.Hosts.Top }, x.addHostLocked); err != nil {
		return err
	}
	if err := x.inMemory(func() uint32 { return f.core.Groups.Top }, x.addGroupLocked); err != nil {
		return err
	}
	s, err := f.opts.Spill.Snapshot()
	if err != nil {
		return err
	}
	defer s.Release()
	return x.AddClocks(s)
}

// inMemory calls add with each number up to top, a few under one lock, and takes
// the rows that it makes.
func (x *exporter) inMemory(top func() uint32, add func(id uint32, now int64, take func(storage.Row))) error {
	f := x.f
	var some []storage.Row
	take := func(r storage.Row) { some = append(some, r) }
	for id, more := uint32(1), true; more; {
		if err := f.lockOpen(); err != nil {
			return err
		}
		now := f.nowLocked()
		for end := id + exportAtOnce; id < end && id <= top(); id++ {
			add(id, now, take)
		}
		more = id <= top()
		f.mu.Unlock()
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
func (x *exporter) addHostLocked(id uint32, now int64, take func(storage.Row)) {
	f := x.f
	c := f.core
	h := c.Hosts.At(id)
	if h.NameLen == 0 {
		return
	}
	due := c.RestsUntil(id)
	for range c.LeasesOf(id) { // its contact may go on: it counts as contacted now
		due = max(due, now+max(f.longestDelay(string(c.Name(h))), c.LearnedGap(id)))
		f.core.LeasedTrouble(id, f.longestDelay(string(f.core.NameOf(id))), now)
	}
	if due > now || h.Learned() || h.Group != 0 || h.Has(mercator.Stored) {
		take(f.core.HostRow(id, due, h.Why))
	}
}

func (x *exporter) addGroupLocked(id uint32, now int64, take func(storage.Row)) {
	f := x.f
	g := f.core.Groups.At(id)
	if g.NameLen == 0 {
		return
	}
	name, free := f.core.GroupName(g), f.core.SlotsOf(id).Last()
	if g.Used > 0 {
		free = max(free, now+f.core.Longest(g))
	}
	take(f.controls.GroupRow(name, instant.Millis(f.wall(free))))
}

// copyAll copies the content of a frontier without a Spill, under one lock.
func (x *exporter) copyAll() error {
	f := x.f
	c := f.core
	if err := f.lockOpen(); err != nil {
		return err
	}
	defer f.mu.Unlock()
	x.beginLocked()
	now := f.last
	take := func(r storage.Row) { _ = x.AddRow(r.Key, r.Value, true) }
	for _, y := range c.Crawls {
		if y == nil {
			continue
		}
		take((&row.Crawl{ID: y.ID, CrawlSettings: y.Settings}).Row())
		x.copyUsedLocked(limit.OfCrawl(y.ID), take)
	}
	for r := range f.controls.All(c.Date(now)) {
		x.copyUsedLocked(limit.OfScope(r.Scope), take)
		take(r.Row(r.Scope.Key()))
	}
	x.copyValuesLocked(take)
	x.copyForgottenLocked(take)
	for name := range f.controls.Groups() {
		if c.GroupNamed(name) == 0 {
			take(f.controls.GroupRow(name, 0))
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
		x.GrowMarks(f.known.RecentLen())
		for m := range f.known.Recent() {
			x.AddMark(m)
		}
	}
	return x.ctx.Err()
}

// copyURLsLocked copies all URLs: those that are leased, those that wait in the order
// of their queues, and those that wait for their time.
func (x *exporter) copyURLsLocked() error {
	f := x.f
	c := f.core
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
		if err := x.copyURLLocked(it.Aux, f.clock.DueMillis(it.At), c.Records.At(arena.Ref(it.ID))); err != nil {
			return err
		}
	}
	return nil
}

// copyLeasedLocked copies the URLs that are leased, in the order in which they waited.
func (x *exporter) copyLeasedLocked() error {
	c := x.f.core
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
func (x *exporter) copyQueuesLocked(id uint32) error {
	c := x.f.core
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
func (x *exporter) copyURLLocked(qid uint32, due int64, r record.Resident) error {
	c := x.f.core
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
func (x *exporter) copyUsedLocked(of limit.Subject, take func(storage.Row)) {
	if r, ok := x.f.core.Limits.Row(of); ok {
		take(r)
	}
}

// scan calls take with every record of a scope.
func (f *Frontier) scan(ctx context.Context, s scope.Scope, take func(q *storage.Queue, due int64, body []byte) error) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	x := &exporter{Writer: dump.NewWriter("", 0), f: f, ctx: ctx, scope: s}
	x.Source, x.NoMarks = x, true
	if f.opts.Spill == nil {
		err = x.scanMemory(take)
	} else {
		err = x.scanStore(take)
	}
	if err != nil && f.isClosed() {
		return ErrClosed
	}
	return err
}

func (x *exporter) scanStore(take func(q *storage.Queue, due int64, body []byte) error) error {
	s, err := x.f.opts.Spill.Snapshot()
	if err != nil {
		return err
	}
	defer s.Release()
	return dump.EachURL(s, x, x.AddMark, func(q *storage.Queue, due int64, body []byte) error {
		return take(&storage.Queue{Host: strings.Clone(q.Host), Crawl: q.Crawl, Priority: q.Priority}, due, body)
	})
}

// scanMemory copies all URLs under the lock, and takes them then.
func (x *exporter) scanMemory(take func(q *storage.Queue, due int64, body []byte) error) error {
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
	f := x.f
	f.mu.Lock()
	closed := f.closed
	if !closed {
		_ = x.copyURLsLocked() // it cannot fail
	}
	f.mu.Unlock()
	if closed {
		return ErrClosed
	}
	from := 0
	for _, u := range urls {
		if err := take(&queues[u.queue], u.due, bodies[from:u.end]); err != nil {
			return err
		}
		from = u.end
	}
	return nil
}
