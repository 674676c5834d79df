// This file is the frontier that callers see: its type, its lock and all that the lock
// guards, Open and Close.
//
// What a URL goes through to get in is in add.go, who may be contacted when in
// package mercator, how a lease ends in done.go, and how both become durable in package ledger.

package frontier

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-7440039f/frontier/event"
	"github.com/seed-7440039f/frontier/internal/clock"
	"github.com/seed-7440039f/frontier/internal/control"
	"github.com/seed-7440039f/frontier/internal/count"
	"github.com/seed-7440039f/frontier/internal/found"
	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/internal/known"
	"github.com/seed-7440039f/frontier/internal/ledger"
	"github.com/seed-7440039f/frontier/internal/measure"
	"github.com/seed-7440039f/frontier/internal/mercator"
	"github.com/seed-7440039f/frontier/internal/move"
	"github.com/seed-7440039f/frontier/internal/patience"
	"github.com/seed-7440039f/frontier/internal/readahead"
	"github.com/seed-7440039f/frontier/internal/recovery"
	"github.com/seed-7440039f/frontier/internal/row"
	"github.com/seed-7440039f/frontier/internal/timed"
	"github.com/seed-7440039f/frontier/internal/tombstone"
	"github.com/seed-7440039f/frontier/internal/trouble"
	"github.com/seed-7440039f/frontier/internal/view"
	"github.com/seed-7440039f/frontier/internal/waitqueue"
	"github.com/seed-7440039f/frontier/internal/watchlock"
	"github.com/seed-7440039f/frontier/selector"
	"github.com/seed-7440039f/frontier/storage"
)

// Frontier is a polite, prioritized URL frontier. Its methods may be called from
// any goroutine. Make one with Open.
type Frontier struct {
	*shared
	shard

	closeOnce sync.Once
	closeErr  error
}

// shared is what all shards share. It is set by Open and not changed later, or has a lock
// or atomics of its own.
type shared struct {
	opts      Options
	clock     *clock.Clock
	rechecker Rechecker // opts.Scheduler, if it is one
	riser     Riser     // opts.Prioritizer, if it is one; nil: hints alone raise URLs
	ownKeys   bool      // the user's HostKey names hosts, not HostName
	hostNames uint64    // fingerprint of HostKey

	controls  *control.Controls   // readers take no lock; writers hold shard.mu
	forgotten tombstone.Forgotten // the same; for the marks, its lock is taken
	events    *events             // its lock is taken after shard.mu

	adding    atomic.Int64    // Add calls under way: the crawl is not over
	endWaits  atomic.Bool     // and a call waits for it to be, unless more is added
	rekeying  atomic.Bool     // an import takes a key over
	abandoned context.Context // ends, with ErrClosed, when no call waits for the Spill any more
	abandon   context.CancelCauseFunc
	hands     patience.Hands // read for calls that may leave
	peeker    storage.Peeker // opts.Spill, if it is one
}

// shard is hosts with all that they own, the calls that wait for them, and what goes to
// disk, under one lock. A frontier has one.
//
// While mu is held nothing waits, does I/O, or calls the user's code except the Selector, and no step
// looks at more than the "AtOnce" constants allow. The name of a method says what it does with mu:
//
//   - xxxLocked is called with mu held, and holds it throughout.
//   - xxxYieldingLocked gives it up in between and takes it again: look anew at whatever
//     was read before. Functions that take a yield function give mu up when they call it.
//   - xxxAndUnlock is called with mu held and returns without it.
//   - lockXxx takes mu; the other methods are called without it.
//
// Locks are taken in this order: that of rounds (see package ledger), that of a Reader, mu, then those of events, rules and packages.
type shard struct {
	*shared

	background sync.WaitGroup
	sweepers   sync.WaitGroup
	isEnded    chan struct{} // closed when Close has done its work

	mu watchlock.Mutex // guards all below

	// Where time stands, and what was counted last.
	last     int64 // the latest time seen: time does not run backwards
	steps    clockSteps
	token    uint64 // of the last lease
	tokenKey uint64 // 0: not computed yet
	rates    measure.Rates
	badLinks struct { // outlinks that were refused
		count int64 // since the last event about them
		next  int64 // when there may be another one
	}

	// Hosts and URLs.
	core      *mercator.Core
	known     known.URLs
	notes     timed.Notes
	found     *found.Found
	urlRanges view.Ranges
	sweeping  int // goroutines that take away what deletions left dead

	// Values of the program's, if there is no Spill.
	values     map[string][]byte
	valueBytes int64

	// Calls that wait.
	waiters   waitqueue.Queue[grant]
	takers    []*taking                          // Take calls that want some URLs only
	contacts  map[uint32]*waitqueue.Queue[grant] // by host: Contact calls
	timer     Timer                              // nil until the first waiter
	timerAt   int64
	goingOn   bool          // a goroutine is about to dispatch again
	faults    []error       // for callers of Next: timed blocks were lost, or code of the user's panicked or ended its goroutine in no call of its own
	readEnded chan struct{} // closed when a read of a host ends; nil if no call waits

	ledger *ledger.Ledger
	reader *readahead.Reader

	// The end of hosts, and of the frontier.
	givingUp   bool          // a goroutine gives up URLs of lost hosts
	givingStep chan struct{} // closed when those being given up are; nil if none are
	lost       error         // of the Spill: it must be opened again, and so must the frontier
	draining   bool
	closed     bool
	drained    chan struct{} // closed once draining and no lease is out; nil if no call waits
}

// Open makes a frontier. With a Spill it brings back all that was waiting,
// scheduled or leased and not done. If the last frontier on it was not closed,
// every host counts as contacted now. ctx bounds the reading of the store.
func Open(ctx context.Context, o Options) (*Frontier, error) {
	for f, v := range reflect.ValueOf(o).Fields() {
		if v.Kind() != reflect.Interface {
			continue
		}
		if x := v.Elem(); (x.Kind() == reflect.Pointer || x.Kind() == reflect.Func) && x.IsNil() {
			return nil, fmt.Errorf("frontier: options: %s is a %v that is nil; want one that works, or no value at all", f.Name, x.Type())
		}
	}
	ownKeys := o.HostKey != nil
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	if !selector.Take(o.Selector) {
		return nil, errors.New("frontier: options: Selector is in use, by another frontier or in two places of this one; want a value of its own")
	}
	f, err := open(ctx, o, ownKeys)
	if err != nil {
		selector.Leave(o.Selector)
	}
	return f, err
}

// open is Open with options that are complete and valid.
func open(ctx context.Context, o Options, ownKeys bool) (*Frontier, error) {
	all := &shared{
		opts:      o,
		ownKeys:   ownKeys,
		hostNames: hostNames(o.HostKey),
		clock:     newClock(o.Clock),
		events:    newEvents(&o),
	}
	f := &Frontier{shared: all, shard: shard{
		shared:   all,
		isEnded:  make(chan struct{}),
		contacts: map[uint32]*waitqueue.Queue[grant]{},
		known:    known.New(),
		core: mercator.New(mercator.Config{
			Levels:     o.Priorities,
			Quantum:    o.tuning.Quantum,
			ParkAfter:  int64(o.tuning.ParkAfter),
			Choose:     chooseBy(o.Selector),
			Strict:     selector.IsStrict(o.Selector),
			GroupMax:   int64(o.GroupDelay.Max()),
			Spill:      o.Spill != nil,
			MaxDelay:   int64(o.Delay.Max()),
			Lanes:      o.HostConcurrency,
			Ahead:      int64(mercator.TimedAhead),
			Backoff:    trouble.Backoff(o.Backoff),
			Quarantine: trouble.Quarantine(o.Quarantine),
		}),
	}}
	f.events.queue.Deliver = func(e event.Event, lost int64) {
		f.guard("OnEvent", e.Host, func() { f.events.deliver(e, lost) })
	}
	f.abandoned, f.abandon = context.WithCancelCause(context.Background())
	if o.Count {
		f.core.Counts, f.core.Ending = count.NewTable(o.Spill), map[mercator.EndsOf]mercator.Ended{}
	}
	f.core.Clock = f.clock
	f.core.Cfg.Turned = f.limitTurnedLocked
	f.controls = control.New(f.core, func(d row.Delay) control.Policy { return policyOf(d) })
	f.peeker, _ = o.Spill.(storage.Peeker)
	f.rechecker, _ = o.Scheduler.(Rechecker)
	f.riser, _ = o.Prioritizer.(Riser)
	if !o.ContactedAt.IsZero() {
		f.core.Reopen(f.clock.Moment(o.ContactedAt))
	}
	f.ledger = ledger.New(ledger.Config{
		Mu: &f.mu, Core: f.core, Known: &f.known, Notes: &f.notes, Spill: o.Spill, MaxLog: move.MaxLog(o.MemoryBudget), HostNames: f.hostNames, Logger: o.Logger,
		AfterFunc: func(d time.Duration, fn func()) func() bool { return o.Clock.AfterFunc(d, fn).Stop },
	}, inside{f})
	f.found = found.New(found.Config{Ledger: f.ledger, Forgotten: &f.forgotten, Life: f.abandoned, Deferred: o.DeferHints}, inside{f})
	f.found.Rises.Limit = o.MemoryBudget / 64
	f.reader = readahead.New(f.found, inside{f})
	f.reader.KeepOpen, f.reader.NoDedup = o.KeepOpen, o.NoDedup
	_, hinter := o.Scheduler.(Hinter)
	f.found.Hints.Latest = hinter || o.DeferHints // a Hinter gets the later change; without one the earlier time applies
	if o.Spill == nil {
		f.core.Key = mercator.RandomKey()
		return f, nil
	}
	f.core.Cfg.EvictOver = f.residentLimitLocked() / 4
	if err := f.recoverFor(ctx); err != nil {
		return nil, err
	}
	f.sharePopularLocked() // no other goroutine has f
	f.ledger.Start()
	f.background.Go(func() { f.reader.Loop(f.ledger.Stopping()) })
	f.mu.Lock()
	ds := f.core.Deletions.All()
	for _, d := range ds {
		f.core.Timed.Purge(d.Block)
	}
	f.startSweepLocked(ds...)
	f.mu.Unlock()
	if f.known.Total() >= recallFrom {
		f.background.Go(f.recall)
	}
	return f, nil
}

// recoverFor takes the store into use, unless ctx ends before. Then its use ends when
// the store has answered.
func (f *Frontier) recoverFor(ctx context.Context) error {
	c, left := make(chan error), make(chan struct{})
	go func() {
		err := f.recover(ctx)
		select {
		case c <- err:
		case <-left:
			if err == nil {
				_ = f.opts.Spill.Release()
			}
		}
	}()
	select {
	case err := <-c:
		return err
	case <-ctx.Done():
		close(left)
		return ctx.Err()
	}
}

const clocksAtOnce = 4096 // hosts or groups that are looked at under one lock, or rows in one batch

// recover fills an empty frontier from its Spill. The store is in use if and only if it returns nil.
func (f *Frontier) recover(ctx context.Context) error {
	r, err := recovery.Read(ctx, recovery.Frontier{
		Core: f.core, Controls: f.controls, Known: &f.known, Notes: &f.notes, Hints: &f.found.Hints, Forgotten: &f.forgotten,
		Spill: f.opts.Spill, HostNames: f.hostNames, Counts: f.opts.Count, Elsewhere: !f.opts.ContactedAt.IsZero(),
	})
	if err != nil {
		return fmt.Errorf("frontier: recover: %w", err) // if it is in use, another uses it
	}
	f.found.ComesAgain(r.Again)
	err = f.ledger.Open(r, f.opts.Count)
	f.token = f.ledger.Epoch() << 40
	if err == nil && f.opts.Count && !r.Counted {
		err = f.ledger.CountAnew(ctx)
	}
	if err != nil {
		return errors.Join(err, f.opts.Spill.Release())
	}
	return nil
}

// lock takes f.mu, and settles the leases whose deadline has passed. Until the lock is
// released f.last is the time: reading a clock costs more than a heap operation.
func (f *Frontier) lock() {
	f.mu.Lock()
	f.settleOverdueYieldingLocked()
}

// settleOverdueYieldingLocked settles what time has ended: leases, and the stay of hosts in memory.
func (f *Frontier) settleOverdueYieldingLocked() {
	if f.core.Expiry.Min() <= f.nowLocked() {
		f.reapYieldingLocked()
	}
	f.core.Departed(f.ledger.Pending())
}

// lockAt is lock at a moment that was read from the clock just before. Reading the system's
// again would show little, and costs as much as a good part of the work under the lock.
func (f *Frontier) lockAt(at int64) {
	f.mu.Lock()
	if f.clock.Steady() && !f.clock.Stale(at) && f.core.Expiry.Min() > max(f.last, at) {
		f.last = max(f.last, at)
		f.core.Departed(f.ledger.Pending())
	} else {
		f.settleOverdueYieldingLocked()
	}
}

// yield gives the lock up for a moment.
func (s *shard) yield() {
	s.mu.Unlock()
	s.mu.Lock()
}

// lockOpen is lock while the frontier is open. After its error, ErrClosed, the lock is not held.
func (f *Frontier) lockOpen() error {
	f.lock()
	if !f.closed {
		return nil
	}
	f.mu.Unlock()
	return ErrClosed
}

// refusalLocked returns the reason why nothing may be handed out any more.
func (s *shard) refusalLocked() error {
	if s.closed || s.draining {
		return ErrClosed
	}
	return s.lost
}

// Err returns why nothing is handed out any more: ErrClosed after Drain or Close, the error
// of a Spill that must be opened again, which wraps ErrReopen, or nil.
func (f *Frontier) Err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.refusalLocked()
}

// overLocked reports whether the crawl is over: nothing is left, or on its way, that
// could be handed out.
func (s *shard) overLocked() bool {
	return s.core.Over() && s.ledger.Pending() == 0 && !s.opts.KeepOpen && s.contactsPausedLocked() && !s.addsLocked()
}

// contactsPausedLocked reports whether every Contact that waits is for a paused host.
func (s *shard) contactsPausedLocked() bool {
	for id := range s.contacts {
		if h := s.core.Hosts.At(id); h.Place != mercator.Withheld || h.Pos != mercator.WithheldPaused && h.Pos != mercator.WithheldSpent {
			return false
		}
	}
	return true
}

// exhaustedLocked returns the error for callers of Next when the crawl is over.
func (s *shard) exhaustedLocked() error {
	if n := s.core.WithheldForGood(); n > 0 {
		return &HeldError{Held: n}
	}
	return ErrExhausted
}

// nextTokenLocked returns a number that is not 0. The tokens of two stores differ, so
// that a lease of one means nothing to the other.
func (s *shard) nextTokenLocked() uint64 {
	if s.tokenKey == 0 {
		s.tokenKey = s.core.HashOf("token")
	}
	for {
		s.token++
		if t := s.token ^ s.tokenKey; t != 0 {
			return t
		}
	}
}

// Drain stops handing out leases: calls that wait in Next and Contact, and later ones,
// return ErrClosed. Drain returns when the last lease has ended and everything is
// committed, or with ctx's error. Add and Done work until Close.
func (f *Frontier) Drain(ctx context.Context) error {
	if err := f.lockOpen(); err != nil {
		return err
	}
	f.draining = true
	if f.drained == nil {
		f.drained = make(chan struct{})
	}
	done := f.drained
	f.dispatchLocked()
	f.mu.Unlock()
	select {
	case <-done:
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.core.Stats.Leased > 0 {
			return ErrClosed // by Close, with leases out
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close commits what was accepted, delivers the remaining events to OnEvent, and ends the frontier.
// URLs whose leases are out come again when the store is opened next. Afterwards every call returns
// ErrClosed; Close itself may be called again. It does not close the Spill: do so after it. If the
// Spill was closed before, Close returns its error, and the next opening is like one after a crash.
func (f *Frontier) Close() error { return f.CloseContext(context.Background()) }

// CloseContext is Close, but waits no longer than ctx lasts. When ctx ends, every call that waits for
// the Spill returns ErrClosed or an error that wraps ErrUnsettled, and so does CloseContext. What was
// begun continues in the background until the disk answers; the store is in use until then. Another
// call of Close or CloseContext waits for it to end.
func (f *Frontier) CloseContext(ctx context.Context) error {
	f.closeOnce.Do(func() {
		go func() {
			defer close(f.isEnded)
			f.closeErr = f.close()
			f.abandonAll() // no call needs what is being read
			f.hands.End()
		}()
	})
	select {
	case <-f.isEnded:
		return f.closeErr
	case <-ctx.Done():
	}
	select {
	case <-f.isEnded:
		return f.closeErr
	default:
	}
	f.abandonAll()
	return fmt.Errorf("%w: close: %w", ErrUnsettled, ctx.Err())
}

// abandonAll ends the waiting of all calls for the Spill.
func (f *Frontier) abandonAll() {
	f.abandon(ErrClosed)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ledger.ReleaseAll()
}

func (s *shard) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

func (f *Frontier) close() error {
	f.lock()
	f.draining, f.closed = true, true
	f.refuseLocked(ErrClosed)
	if f.drained != nil {
		close(f.drained)
		f.drained = nil
	}
	if f.timer != nil {
		f.timer.Stop()
	}
	f.ledger.FreeRoom()
	f.readEndedLocked()
	f.mu.Unlock()
	defer f.events.queue.End()
	selector.Leave(f.opts.Selector) // nothing is handed out any more
	if f.opts.Spill == nil {
		f.sweepers.Wait()
		return nil
	}
	f.ledger.Stop()
	f.background.Wait()
	f.sweepers.Wait()
	err := f.saveClocks()
	if err != nil {
		f.emit(event.Event{Kind: event.StoreError, Reason: "saving clocks", Err: err})
	}
	return errors.Join(err, f.opts.Spill.Release())
}

// saveClocks writes what makes the next opening continue with exact times, in steps. The last one says
// that the frontier was closed. Nothing else may be on its way to the Spill.
func (f *Frontier) saveClocks() error {
	for _, step := range []struct {
		top func() uint32
		row func(id uint32, now int64) (storage.Row, bool)
	}{
		{func() uint32 { return f.core.Hosts.Top }, f.core.ClosingRow},
		{func() uint32 { return f.core.Groups.Top }, func(id uint32, now int64) (storage.Row, bool) {
			name, at := f.core.ClosingGroup(id, now)
			return f.controls.GroupRow(name, f.clock.Stored(at)), at != 0
		}},
	} {
		for id, more := uint32(1), true; more; {
			f.mu.Lock()
			now := f.nowLocked()
			b := &storage.Batch{Time: instant.Millis(f.clock.Wall(now))}
			for n := 0; n < clocksAtOnce && id <= step.top(); n, id = n+1, id+1 {
				if r, ok := step.row(id, now); ok {
					b.Rows = append(b.Rows, r)
				}
			}
			more = id <= step.top()
			f.mu.Unlock()
			if err := f.ledger.CommitAlone(b); err != nil {
				return err
			}
		}
	}
	f.mu.Lock()
	b := &storage.Batch{
		Time: instant.Millis(f.clock.Wall(f.nowLocked())),
		Rows: append(f.core.Limits.Rows(), f.ledger.MetaRow(true)),
		Drop: f.core.Blocks.TakeDrops(),
	}
	f.mu.Unlock()
	return f.ledger.CommitAlone(b)
}

// lockAdvanced takes the lock and lets time pass, so that the caller sees the present.
func (f *Frontier) lockAdvanced() {
	f.lock()
	f.core.Advance(f.last)
	f.reader.Wake()
}

// lockAdvancedOpen is lockAdvanced while the frontier is open. After its error, ErrClosed, the lock is
// not held.
func (f *Frontier) lockAdvancedOpen() error {
	err := f.lockOpen()
	if err == nil {
		f.core.Advance(f.last)
		f.reader.Wake()
	}
	return err
}
