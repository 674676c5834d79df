// This file admits URLs: Add, CrawlNow, and the outlinks of a Done.
//
// Which of them are known, forget.go finds out.

package frontier

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/seed-7440039f/frontier/internal/hint"
	"github.com/seed-7440039f/frontier/internal/hostkey"
	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/internal/ledger"
	"github.com/seed-7440039f/frontier/internal/record"
)

// A completion with more outlinks than these is committed in parts: what a commit has takes memory
// several times.
const (
	partBytes   = 1 << 20 // of URLs and Meta; the last may be longer
	partEntries = 8 << 10
)

// askAtOnce is how many marks are looked for in memory under one lock.
const askAtOnce = 256

// Add admits entries and returns how many were new. Known URLs are no error. Add reports bad entries as
// joined *EntryErrors and admits the others. On any other error it admits none. When Add has returned
// they survive as the Spill promises. Add copies what it keeps.
//
// Known entries with Force are re-admitted after the others, each in a separate commit;
// one that fails, for any reason, counts as a bad entry.
//
// With a Spill, Add waits while the disk is behind, and for the disk; ctx ends the wait.
// If its entries were already submitted, the error wraps ErrUnsettled. It fails with the
// Spill's error if the stored state of a URL or host cannot be read. Without a Spill it
// returns ErrFull when the MemoryBudget is used up.
func (f *Frontier) Add(ctx context.Context, entries ...Entry) (int, error) {
	_, n, err := f.addAs(ctx, entries, 0, nil)
	return n, err
}

// CrawlNow admits entries as the most urgent: their priority is Immediate, above all
// others. A hand-out takes them before it chooses a crawl or asks the selector; crawls
// that have such URLs take turns. The clocks of hosts and groups, pauses and blocks apply
// as usual. The entries are durable when CrawlNow returns.
//
// Known URLs are re-admitted as with Entry.Force: a waiting one is moved, a scheduled one
// comes now, a leased one comes again after its Done. NotBefore is ignored. New entries
// of a call come before known ones. Later tries and visits have the priority that the
// Prioritizer gives. The number returned and the errors are those of Add.
func (f *Frontier) CrawlNow(ctx context.Context, entries ...Entry) (int, error) {
	_, n, err := f.addAs(ctx, entries, Immediate, nil)
	return n, err
}

// addAs is Add or, with priority Immediate, CrawlNow. It notes verdicts, unless they are nil.
// admitted reports whether all errors are those of single entries.
func (f *Frontier) addAs(ctx context.Context, entries []Entry, p uint8, verdicts []Verdict) (admitted bool, n int, err error) {
	if err := ctx.Err(); err != nil {
		return false, 0, err
	}
	f.adding.Add(1)
	defer f.addedAll()     // if code of the user's panics, too
	if f.rekeying.Load() { // an import takes a key over, under the lock
		_ = f.isClosed()
	}
	o := newOp()
	o.Context, o.verdicts = ctx, verdicts
	f.prepare(o, entries, 0, p, nil)
	n, err = f.add(ctx, o)
	admitted = err == nil
	if len(o.found) > 0 {
		f.tell(o)
	}
	if len(o.refused) > 0 {
		err = f.refused(o.refused, err)
	}
	o.free()
	return admitted, n, err
}

// addedAll notes that a call adds no more, and so may no longer keep the crawl from being
// over. It takes the lock only if that is what a call waits for.
func (f *Frontier) addedAll() {
	if f.adding.Add(-1) > 0 || !f.endWaits.CompareAndSwap(true, false) {
		return
	}
	f.lock()
	f.dispatchLocked()
	f.mu.Unlock()
}

// addsLocked reports whether a call adds. If so the end of the last one dispatches.
func (s *shard) addsLocked() bool {
	if s.adding.Load() == 0 {
		return false
	}
	s.endWaits.Store(true)
	return s.adding.Load() > 0 // it may have ended just before, and looked in vain
}

func (f *Frontier) add(ctx context.Context, o *op) (int, error) {
	for {
		if err := f.lookUp(o); err != nil {
			return 0, err
		}
		wait, err := f.lockRoom(o)
		if err != nil {
			return 0, err
		}
		stale := f.staleLocked(o)
		absent := wait == nil && !stale && f.core.Dormant.Rows() > 0 && f.hostsAbsentLocked(o)
		if wait == nil && !stale && !absent {
			break
		}
		f.mu.Unlock()
		if absent {
			if err := f.readHosts(o); err != nil {
				return 0, err
			}
		}
		if wait == nil {
			continue
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-f.abandoned.Done():
			return 0, ErrClosed
		}
	}
	var yield func()
	if f.opts.Spill == nil { // no checkpoint completes without one
		yield = f.yield
	}
	f.ledger.BeginSteps()
	known := f.dedupLocked(o, yield)
	f.ledger.EndSteps()
	if f.core.Limits != nil {
		f.limitLocked(o)
	}
	if len(o.Entries) == 0 && len(known) == 0 && len(o.Rows) == 0 && !f.ledger.Busy() {
		f.dispatchLocked() // there may be hints
		f.mu.Unlock()
		return 0, nil
	}
	n := len(o.Entries)
	if err := f.ledger.SubmitAndUnlock(&o.Op); err != nil {
		return 0, err
	}
	if len(known) == 0 {
		return n, nil
	}
	again, bad := f.forceAll(ctx, known)
	o.verdictsOfForced(known, bad)
	o.refused = append(o.refused, bad...)
	return n + again, nil
}

// dedupLocked removes known entries from o and remembers the others. It returns
// the known ones to force. It calls yield, if that is not nil, between
// steps: no checkpoint may complete meanwhile.
func (f *Frontier) dedupLocked(o *op, yield func()) (forced []ledger.Entry) {
	if f.opts.NoDedup {
		return nil
	}
	kept := 0
	for i := range o.Entries {
		if yield != nil && i > 0 && i%ledger.AtOnce == 0 {
			yield()
		}
		e := &o.Entries[i]
		switch {
		case !e.Stored && f.known.Insert(e.Mark):
			e.Marked = true
			if kept < i {
				o.Entries[kept] = *e
			}
			kept++
			continue
		case e.Fetched:
			f.known.Popular.Insert(e.Mark)
		}
		if e.Force {
			forced = append(forced, *e)
			continue
		}
		f.core.Stats.Duplicates++
		o.verdict(e.Index, EntryKnown)
		if e.Hint {
			e.Hint = f.hintLocked(o, e)
		}
		if e.Hint || f.riser != nil {
			o.found = append(o.found, *e)
		}
	}
	o.Entries = o.Entries[:kept]
	return forced
}

// prepare checks and encodes entries, outside the lock, and appends the good
// ones to o, the others to those refused. The first has the given index. The priority is that
// of prepareAs; Immediate ones are forced, and have no time. Links of a page inherit from its lease.
func (s *shard) prepare(o *op, entries []Entry, first int, p uint8, page *Lease) {
	o.Links = true
	o.forgets = s.forgotten.Version()
	o.Entries = slices.Grow(o.Entries, len(entries))
	var linked Entry
	for i := range entries {
		last := len(o.Entries)
		o.Entries = append(o.Entries, ledger.Entry{Index: first + i})
		e, given := &o.Entries[last], &entries[i]
		if page != nil && !given.AsIs {
			linked = page.link(given)
			given = &linked
		}
		if err := s.prepareNamed(o, e, given, p); err != nil {
			o.refuse(first+i, EntryBad, &EntryError{Index: first + i, URL: shortened(entries[i].URL), Err: err})
			o.Entries = o.Entries[:last]
			continue
		}
		if p == Immediate {
			e.Force, e.Due = true, 0
		}
	}
}

// part returns the first part of outlinks, and the rest.
func part(links []Entry) (first, rest []Entry) {
	n, bytes := 0, 0
	for n < len(links) && n < partEntries && bytes < partBytes {
		bytes += len(links[n].URL) + len(links[n].Meta)
		n++
	}
	return links[:n], links[n:]
}

// prepareLinks prepares the last part of a completion's outlinks, after it has added the others. bad
// is why good ones are lost for want of room. If a part could not be committed, undone is why, and
// out becomes an outcome that leaves the URL waiting. After err the call waits no longer.
func (f *Frontier) prepareLinks(ctx context.Context, l *Lease, out *Outcome, verdicts []Verdict) (last *op, bad, undone, err error) {
	o := newOp()
	o.Context, o.verdicts = ctx, verdicts
	links, rest := part(out.Add)
	for len(rest) > 0 && f.isOut(l) {
		f.prepare(o, links, len(out.Add)-len(links)-len(rest), 0, l)
		f.orphans(o, l, out.Add)
		_, err := f.add(ctx, o)
		if len(o.found) > 0 {
			f.tell(o)
		}
		refused := o.refused
		switch {
		case errors.Is(err, ErrFull):
			o.refuseLinks()
			bad = fmt.Errorf("outlinks: %w", err)
		case err != nil && (ctx.Err() != nil || f.isClosed()):
			o.free()
			return nil, nil, nil, cmp.Or(ctx.Err(), ErrClosed)
		case err != nil:
			undone = fmt.Errorf("outlinks: %w", err)
			*out = Outcome{Result: Requeue, Uncontacted: out.Uncontacted, Ended: out.Ended, Duration: out.Duration,
				RetryAfter: out.RetryAfter, CrawlDelay: out.CrawlDelay, Bytes: out.Bytes}
			links, rest = nil, nil
		}
		o.free()
		o = newOp()
		o.Context, o.verdicts, o.refused = ctx, verdicts, refused
		if undone == nil {
			links, rest = part(rest)
		}
	}
	if len(links) > 0 {
		f.prepare(o, links, len(out.Add)-len(links)-len(rest), 0, l)
	}
	return o, bad, undone, nil
}

// prepareNamed is prepareAs for an entry whose URL is as the program spells it.
func (s *shard) prepareNamed(o *op, n *ledger.Entry, e *Entry, p uint8) error {
	if e.Finished && p == Immediate {
		return errors.New("not in CrawlNow: Finished")
	}
	if s.opts.Normalize != nil {
		url, err := s.opts.Normalize(e.URL)
		switch {
		case err != nil && !hostkey.HasScheme(e.URL):
			return &mistakeError{err: fmt.Errorf("%w: resolve links against the URL of their page", err)}
		case err != nil:
			return err
		case url == "":
			return &mistakeError{err: errors.New("Options.Normalize returned an empty URL and no error"), code: true}
		}
		x := *e
		x.URL = url
		e = &x
	}
	return s.prepareAs(o, n, e, &History{}, 0, p)
}

func shortened(url string) string {
	if len(url) > 200 {
		return url[:200] + "..."
	}
	return url
}

// prepareAs checks and encodes one entry into n, with the given number of failed tries,
// and with priority p unless that is 0.
func (s *shard) prepareAs(o *op, n *ledger.Entry, e *Entry, h *History, fails int, p uint8) error {
	switch {
	case e.URL == "":
		return &mistakeError{err: errors.New("empty URL")}
	case len(e.URL) > MaxURL:
		return fmt.Errorf("too long: URL has %d bytes; want at most %d", len(e.URL), MaxURL)
	case len(e.Meta) > MaxMeta:
		return fmt.Errorf("too long: Meta has %d bytes; want at most %d", len(e.Meta), MaxMeta)
	case e.Depth < 0:
		return &mistakeError{err: fmt.Errorf("out of range: Depth is %d; want >= 0", e.Depth)}
	case e.Depth > 1<<30:
		return fmt.Errorf("out of range: Depth is %d; want at most %d", e.Depth, 1<<30)
	case e.Finished && !s.opts.Keep:
		return &mistakeError{err: errors.New("not kept: Finished is for frontiers with Options.Keep")}
	case e.Finished && e.Hint:
		return &mistakeError{err: errors.New("either Finished or Hint: a hint is for a URL to come")}
	}
	host, err := s.hostOf(e)
	if err != nil {
		return err
	}
	if p == 0 {
		if p, err = s.priority(*e, *h); err != nil {
			return &mistakeError{err: err, code: true}
		}
	}
	n.Host, n.URL, n.Hash, n.Crawl, n.Priority, n.Force = host, e.URL, s.core.HashOf(host), e.Crawl, p, e.Force
	if !s.opts.NoDedup {
		n.Mark = s.found.Mark(host, e.Crawl, e.URL)
	}
	switch {
	case e.Finished:
		n.Due = instant.Never
	case !e.NotBefore.IsZero():
		n.Due = s.clock.Due(e.NotBefore)
	}
	if n.Hint = e.Hint && !s.opts.NoDedup; n.Hint {
		n.News = instant.Millis(e.NotBefore)
	}
	n.Body = o.Encode(&record.Body{Depth: e.Depth, Weight: e.Weight, Meta: e.Meta, Fails: fails, History: h.kept(), Named: e.Host != ""}, e.URL)
	return nil
}

// priority asks the prioritizer, outside the lock.
func (s *shared) priority(e Entry, h History) (uint8, error) {
	p := s.opts.Prioritizer.Priority(e, h)
	if p < 1 || p > s.opts.Priorities {
		return 0, &PriorityError{Got: p, Levels: s.opts.Priorities}
	}
	return uint8(p), nil
}

// lockRoom decides as roomLocked does, and takes the lock unless it returns an error. Before it refuses, it gives
// back what the budget counts and nothing needs any more: as long as calls are refused there may be no commit,
// and no round, to do that. Hosts may leave, once their rows are written, and the merges that the last
// checkpoint foresaw may be over.
func (f *Frontier) lockRoom(o *op) (<-chan struct{}, error) {
	f.mu.Lock()
	wait, err := f.roomLocked(o)
	if err != nil && f.opts.Spill != nil && !f.closed {
		f.mu.Unlock()
		f.letHostsLeave(o.Context)
		f.ledger.LockMeasured()
		wait, err = f.roomLocked(o)
	}
	if f.closed {
		err = ErrClosed
	}
	if err != nil {
		f.mu.Unlock()
	}
	return wait, err
}

// roomLocked decides whether o may be admitted: at once (nil, nil), after waiting for the
// channel, or not at all.
func (s *shard) roomLocked(o *op) (<-chan struct{}, error) {
	need := int64(0)
	for i := range o.Entries {
		need += record.Cost(len(o.Entries[i].Body)) + 16
	}
	if s.opts.Spill == nil {
		if need > s.freeLocked() {
			return nil, s.reallyFullLocked(o)
		}
		return nil, nil
	}
	limit := s.residentLimitLocked()
	if limit < ledger.LeastLimit {
		s.ledger.WakeMover() // hosts of finished URLs leave with these
		return nil, ErrFull  // hosts and marks alone use the budget up
	}
	wait, refused := s.ledger.AskRoom(need, limit, o.space)
	switch {
	case refused && need > limit/2:
		return nil, fmt.Errorf("%w: the %d entries of the call take %d bytes of the %d that URLs may have in memory now; fewer at once may be admitted", ErrFull, len(o.Entries), need, limit)
	case refused:
		return nil, ErrFull
	case wait == nil:
		return nil, nil
	}
	o.space = wait
	return wait.Free, nil
}

// freeLocked is the room for URLs without a Spill, in bytes. Freed records in the arena
// count as room; a 64th of the budget is kept for tables, which grow in steps.
func (s *shard) freeLocked() int64 {
	return s.opts.MemoryBudget*63/64 - s.memoryLocked() + s.core.Records.Size() - s.core.Records.Used()
}

// reallyFullLocked looks closer when the budget seems to be used up: known URLs need no room.
func (s *shard) reallyFullLocked(o *op) error {
	room := s.freeLocked()
	for i := range o.Entries {
		e := &o.Entries[i]
		if !s.opts.NoDedup && s.known.Young(e.Mark) && !e.Force {
			continue
		}
		room -= record.Cost(len(e.Body)) + 16
		if s.core.Lookup(e.Hash, e.Host) == 0 {
			room -= hostBytes
		}
		if room < 0 {
			return ErrFull
		}
	}
	return nil
}

// awaitRoom waits while the disk is behind and outlinks would fill the memory, but
// not during shutdown. Its error is why the call waits no longer.
func (f *Frontier) awaitRoom(o *op) error {
	for len(o.Entries) > 0 && f.opts.Spill != nil {
		wait, err := f.lockRoom(o)
		if err != nil {
			return nil // it is refused, or closed, when the links are added
		}
		stop := f.draining
		f.mu.Unlock()
		if wait == nil || stop {
			return nil
		}
		select {
		case <-wait:
		case <-o.Life().Done():
			return o.Life().Err()
		case <-f.abandoned.Done():
			return ErrClosed
		}
	}
	return nil
}

// lockKnowing asks the Spill which outlinks in o it knows, brings the hosts of the others into memory
// if they have rows, and takes the lock. If the Spill cannot answer, the outlinks are refused. After
// err, the reason why the call waits no longer, the lock is not held.
func (f *Frontier) lockKnowing(o *op) (refused, err error) {
	for {
		if lerr := f.lookUp(o); lerr != nil {
			if err := f.waitedEnough(o); err != nil {
				return nil, err
			}
			o.refuseLinks()
			refused = fmt.Errorf("outlinks: %w", lerr)
		}
		f.lock()
		stale := f.staleLocked(o)
		if !stale && (f.core.Dormant.Rows() == 0 || !f.hostsAbsentLocked(o)) {
			return refused, nil
		}
		f.mu.Unlock()
		if stale {
			continue
		}
		if rerr := f.readHosts(o); rerr != nil {
			if err := f.waitedEnough(o); err != nil {
				return nil, err
			}
			o.refuseLinks()
			refused = fmt.Errorf("outlinks: %w", rerr)
		}
	}
}

// waitedEnough returns why the call of o waits no longer; nil if it still waits.
func (s *shared) waitedEnough(o *op) error {
	if err := o.Life().Err(); err != nil {
		return err
	}
	if s.abandoned.Err() != nil {
		return ErrClosed
	}
	return nil
}

// outlinksLocked removes known URLs from o, and all outlinks if there is no room.
func (f *Frontier) outlinksLocked(o *op) error {
	var own []ledger.Entry // the URL's own next record is last, and never refused
	if last := len(o.Entries) - 1; o.Entries[last].Index < 0 {
		own = append(own, o.Entries[last])
		o.Entries = o.Entries[:last]
	}
	if len(o.Entries) > 0 {
		if _, err := f.roomLocked(o); err != nil {
			o.refuseLinks()
			o.Entries = append(o.Entries, own...)
			return fmt.Errorf("outlinks: %w", err)
		}
	}
	o.forced = f.dedupLocked(o, nil)
	if f.core.Limits != nil {
		f.limitLocked(o)
	}
	o.Entries = append(o.Entries, own...)
	return nil
}

// memoryLocked is how many bytes the frontier's structures take, Spill excepted.
func (s *shard) memoryLocked() int64 {
	return s.core.Memory() + s.controls.Size() + s.known.Size() + s.notes.Size() + s.found.Size() + s.urlRanges.Size() + s.valueBytes
}

// fixedLocked is how much of that cannot give way: it is neither URLs, nor marks
// that the Spill has too.
func (s *shard) fixedLocked() int64 {
	c := s.core
	return s.memoryLocked() - s.known.Popular.Size() - c.Records.Size()
}

// hintLocked keeps e, a hint for a known URL, and reports whether there is room for it. With a Spill its
// row goes with o.
func (f *Frontier) hintLocked(o *op, e *ledger.Entry) bool {
	b := record.Must(e.Body)
	if f.found.Hints.Len() == 0 {
		f.nowLocked()
	}
	h, ok := f.found.Hints.Add(e.Mark, hint.New(&b, instant.FromMillis(e.News)), f.last, f.opts.MemoryBudget/64)
	if !ok {
		o.refuse(e.Index, EntryRefused, &EntryError{Index: e.Index, URL: shortened(string(b.URL)), Err: ErrHints})
		return false
	}
	o.verdict(e.Index, EntryHinted)
	if f.opts.Spill != nil {
		o.Rows = append(o.Rows, h.Row(e.Mark))
	}
	return true
}
