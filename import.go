// This file takes what an import reads into a frontier: what each line changes, and whose key it is. Package
// transfer reads the lines.

package frontier

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed-7440039f/frontier/internal/dump"
	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/internal/ledger"
	"github.com/seed-7440039f/frontier/internal/limit"
	"github.com/seed-7440039f/frontier/internal/row"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/storage"
)

const (
	importURLs   = 1000      // admitted in one commit, at most
	importBytes  = 256 << 10 // of their bodies
	importAtOnce = 128       // hosts that are let go under one lock
)

// intake is an import, on its way into a frontier. The crawl is not over until End.
type intake struct {
	f       *Frontier
	op      *op // URLs to be admitted; nil: none
	pending dump.Pending
	members []uint32 // hosts that stay in memory until the end: without URLs they would forget their group
}

// Intake begins an import.
func (f inside) Intake() any {
	f.adding.Add(1)
	return &intake{f: f.Frontier}
}

// End ends an import.
func (im *intake) End() { im.f.addedAll() }

// Settle waits for the commits under way, drops the URLs that are not admitted, and lets hosts leave memory that were kept there.
func (im *intake) Settle() error {
	f := im.f
	err := im.pending.Wait()
	if im.op != nil {
		im.op.free()
		im.op = nil
	}
	for len(im.members) > 0 && f.lockOpen() == nil {
		n := min(len(im.members), importAtOnce)
		for _, id := range im.members[:n] {
			f.ledger.Unpin(id, f.last)
		}
		f.dispatchLocked()
		f.mu.Unlock()
		im.members = im.members[n:]
	}
	im.members = nil
	return err
}

// RuleOf returns a rule of hosts as its operator said it, or what is wrong with it. A block that has passed is not set.
func (im *intake) RuleOf(of row.Scope, stored *row.Rule) (scope.Scope, Rule, error) {
	f := im.f
	now := f.opts.Clock.Now()
	r := ruleStored(stored)
	if !r.BlockedUntil.After(now) {
		r.BlockedUntil = time.Time{}
	}
	s, err := f.spelled(scope.Of(of))
	return s, r, errors.Join(err, f.checkRule(s, &r, now))
}

// RuleOfCrawl is RuleOf for the settings of a crawl.
func (im *intake) RuleOfCrawl(s row.CrawlSettings) (Rule, error) {
	r := ruleOfCrawl(s)
	return r, r.CheckCrawl()
}

// SettingsOf returns what is set for a group, or what is wrong with it.
func (im *intake) SettingsOf(g *row.Group) (GroupSettings, error) {
	s := settingsOf(g)
	return s, s.check()
}

// Value stores a value of the program's.
func (im *intake) Value(key string, v []byte) error {
	return im.submit(func(o *op) error { return im.f.valueLocked(o, key, v) })
}

// Forgotten takes a number with which marks are made, into a frontier that never had a URL: its marks are then those of the export.
func (im *intake) Forgotten(r *row.Forgotten) error {
	return im.submit(func(o *op) error {
		o.Unrule, o.Rows = im.f.forgotten.Put(r), append(o.Rows, r.Row())
		return nil
	})
}

// Prepare prepares a URL for the next commit, and returns its mark. A priority of 0 leaves that to the Prioritizer.
func (im *intake) Prepare(u *dump.URL) (storage.Mark, error) {
	f := im.f
	if (u.Priority < 0 || u.Priority > f.opts.Priorities) && u.Priority != Immediate {
		return storage.Mark{}, &PriorityError{Got: u.Priority, Levels: f.opts.Priorities}
	}
	if im.op == nil {
		im.op = newOp()
		im.op.unlimited = true
	}
	n := ledger.Entry{Index: len(im.op.Entries)}
	e := Entry{URL: u.URL, Host: u.Host, Depth: u.Depth, Weight: u.Weight, Crawl: u.Crawl, Meta: u.Meta, NotBefore: instant.FromMillis(u.Due)}
	e.Finished = u.Due == instant.KeptMillis && f.opts.Keep // else only its mark stays
	h := historyOf(&u.History)
	if err := f.prepareAs(im.op, &n, &e, &h, u.Fails, uint8(u.Priority)); err != nil {
		return n.Mark, err
	}
	im.op.Entries = append(im.op.Entries, n)
	return n.Mark, nil
}

// Drop drops the URL that was prepared last.
func (im *intake) Drop() {
	last := len(im.op.Entries) - 1
	im.op.Unwrite(im.op.Entries[last].Body)
	im.op.Entries = im.op.Entries[:last]
}

// Full reports whether it is time to admit what was prepared.
func (im *intake) Full() bool {
	return len(im.op.Entries) >= importURLs || im.op.Bytes >= importBytes
}

// Admit admits the URLs that were prepared, and returns how many there were and how many of them were new. Clocks of
// their hosts are durable before.
func (im *intake) Admit(ctx context.Context) (n, fresh int64, err error) {
	o := im.op
	if o == nil {
		return 0, 0, nil
	}
	im.op = nil
	defer o.free()
	if err := im.pending.Wait(); err != nil {
		return 0, 0, err
	}
	n = int64(len(o.Entries))
	admitted, err := im.f.add(ctx, o)
	return n, int64(admitted), err
}

// Group leaves a group alone until due, in Unix milliseconds.
func (im *intake) Group(name string, due int64) error {
	f := im.f
	after := im.pending.Begin()
	if err := f.lockOpen(); err != nil {
		after(nil)
		return err
	}
	at := min(f.clock.Moment(instant.FromMillis(due)), f.last+int64(maxDelay))
	if due == 0 || at <= f.last {
		f.mu.Unlock()
		after(nil)
		return nil
	}
	c := f.core
	c.PostponeGroup(c.GroupOf(name), at)
	o := newOp()
	if f.opts.Spill != nil {
		o.Rows = append(o.Rows, f.controls.GroupRow(name, instant.Millis(f.clock.Wall(at))))
	}
	im.submitAndUnlock(o, after)
	return nil
}

// submit submits an op that fill makes, with the lock held.
func (im *intake) submit(fill func(o *op) error) error {
	f := im.f
	after := im.pending.Begin()
	if err := f.lockOpen(); err != nil {
		after(nil)
		return err
	}
	o := newOp()
	if err := fill(o); err != nil {
		f.mu.Unlock()
		o.free()
		after(nil)
		return err
	}
	f.submitAsyncLocked(o, after)
	f.mu.Unlock()
	return nil
}

// Host gives a host what its line says, unless more is known of it.
func (im *intake) Host(name string, s *row.Host) error {
	f := im.f
	after := im.pending.Begin()
	if err := f.lockWithHost(context.Background(), name); err != nil {
		after(nil)
		return err
	}
	now := f.nowLocked()
	x := f.core.Merge(name, s, f.token, now)
	o := newOp()
	if f.opts.Spill != nil {
		f.ledger.Note(&o.Op, x.ID, x.Due, x.Why, now)
	}
	if f.core.EndMerge(x, now) {
		im.members = append(im.members, x.ID)
	}
	im.submitAndUnlock(o, after)
	return nil
}

// submitAndUnlock commits o, if it has anything, and calls after then.
func (im *intake) submitAndUnlock(o *op, after func(error)) {
	f := im.f
	if f.opts.Spill == nil || o.empty() {
		o.free()
		f.dispatchLocked()
		f.mu.Unlock()
		after(nil)
		return
	}
	f.submitAsyncLocked(o, after)
	f.mu.Unlock()
}

// TakeKey makes k the key of the frontier if it is fresh: there never was a URL or host in
// it. It reports whether the frontier's is another one.
func (im *intake) TakeKey(k [2]uint64) (foreign, fresh bool, err error) {
	f := im.f
	if err := f.lockOpen(); err != nil {
		return false, false, err
	}
	f.rekeying.Store(true) // an Add that begins waits for the lock
	c := f.core
	fresh = f.adding.Load() == 1 && f.ledger.Pending() == 0 && f.ledger.Seq() == 0 && f.known.Total() == 0 &&
		c.Hosts.Len() == 0 && c.Dormant.Rows() == 0
	same := c.Key == k
	if fresh {
		c.Key = k
	}
	f.rekeying.Store(false)
	if same || !fresh || f.opts.Spill == nil {
		f.mu.Unlock()
		return !same && !fresh, fresh, nil
	}
	o := newOp()
	defer o.free()
	o.Rows = append(o.Rows, f.ledger.MetaRow(false))
	return false, true, f.ledger.SubmitAndUnlock(&o.Op)
}

// StartAt leaves all hosts alone until a time, in Unix milliseconds: those without a
// line may have been contacted just before.
func (im *intake) StartAt(until int64) error {
	f := im.f
	if until == 0 {
		return nil
	}
	f.lock()
	at := min(f.clock.Moment(instant.FromMillis(until)), f.last+int64(maxDelay))
	if f.closed || at <= f.last || at <= f.core.StartsAt {
		f.mu.Unlock()
		return nil
	}
	f.core.StartAt(at)
	if f.opts.Spill == nil {
		f.mu.Unlock()
		return nil
	}
	o := newOp()
	defer o.free()
	o.Rows = append(o.Rows, f.ledger.MetaRow(false))
	return f.ledger.SubmitAndUnlock(&o.Op)
}

// Used restores the use of the limits of a scope or crawl. It does nothing for one
// without limits.
func (im *intake) Used(of limit.Subject, s row.Usage) error {
	f := im.f
	if err := f.lockOpen(); err != nil {
		return err
	}
	c := f.core
	if !c.Limits.Merge(of, s, c.Date(f.last)) {
		f.mu.Unlock()
		return nil
	}
	if of.Kind == limit.Crawl {
		c.JudgeCrawl(c.FindCrawl(of.Crawl), f.last)
	}
	o := newOp()
	defer o.free()
	o.Counts = f.opts.Spill != nil
	return f.ledger.SubmitAndUnlock(&o.Op)
}

// Marks makes marks known, and returns how many were not.
func (im *intake) Marks(ctx context.Context, ms []storage.Mark) (int64, error) {
	f := im.f
	if len(ms) == 0 {
		return 0, nil
	}
	o := newOp()
	defer o.free()
	o.Context = ctx
	known := make([]bool, len(ms))
	for {
		f.mu.Lock()
		covered := f.known.Checkpoints()
		f.mu.Unlock()
		clear(known)
		if covered > 0 && f.opts.Spill != nil {
			if err := f.opts.Spill.Known(ms, known); err != nil {
				return 0, fmt.Errorf("frontier: import: known URLs: %w", err)
			}
		}
		wait, err := f.lockRoom(o)
		if err != nil {
			return 0, err
		}
		full := f.opts.Spill == nil && f.freeLocked() < int64(len(ms))*16
		if !full && wait == nil && covered == f.known.Checkpoints() {
			break
		}
		f.mu.Unlock()
		if full {
			return 0, ErrFull
		}
		if wait != nil {
			select {
			case <-wait:
			case <-ctx.Done():
				return 0, ctx.Err()
			}
		}
	}
	for i, m := range ms {
		if !known[i] && f.known.Insert(m) {
			o.Marks = append(o.Marks, m)
		}
	}
	n := int64(len(o.Marks))
	if n == 0 {
		f.mu.Unlock()
		return 0, nil
	}
	return n, f.ledger.SubmitAndUnlock(&o.Op)
}
