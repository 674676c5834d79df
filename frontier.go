// This file is the frontier that callers see: the one lock around core, the
// waiters, and the clock.
//
// What a URL must go through to get in is in add.go, how a lease ends in
// done.go, and how both become durable in commit.go. No disk, no waiting and no
// code of the user's but the selector runs under the lock.

package frontier

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-7440039f/frontier/internal/seen"
)

// Frontier is a polite, prioritized URL frontier. Its methods may be called from
// any goroutine. Make one with Open.
type Frontier struct {
	opts         Options // read-only after Open
	start        time.Time
	startDate    time.Time              // start without its reading of the steady clock
	startElapsed time.Duration          // of the Clock
	anchor       atomic.Pointer[anchor] // changed with mu held
	nextLook     atomic.Int64           // when the wall clock is looked at again; changed with mu held
	maxDelay     int64                  // nanoseconds: opts.Delay.Max()
	rechecker    Rechecker              // opts.Scheduler, if it is one
	hinter       Hinter                 // nil if it is none
	ownKeys      bool                   // keys of hosts are the user's, not HostName's

	controls     controls
	groupRules   groupRules
	events       *events
	ruling       ruling       // guarded by mu
	crawlChanges crawlChanges // guarded by mu
	adding       atomic.Int64 // Add calls under way: the crawl is not over
	rekeying     atomic.Bool  // an import takes a key over

	reader chan struct{} // holds an element while a timed block is read; filled before mu is taken

	mu          mutex
	core        *core
	urlRanges   urlRanges
	footprint   int64 // bytes that the Spill takes
	known       knownURLs
	last        int64  // the latest time seen: time does not run backwards
	takenLead   int64  // of dates over moments, when the wall clock was last taken to have stepped
	trembles    bool   // the clocks drift apart by less than a step
	steps       int    // of the wall clock that restateClocks has not dealt with
	steppedBack int64  // the longest of them that went back
	token       uint64 // of the last lease
	seq         uint64 // of the last admission
	rates       rates
	waiters     waiterQueue
	contacts    map[uint32]*waiterQueue // by host: Contact calls waiting
	finishing   int                     // ops that were submitted and are not settled
	timer       Timer                   // nil until the first waiter
	timerAt     int64
	goingOn     bool // a goroutine is about to dispatch again
	draining    bool
	closed      bool
	drained     chan struct{} // closed once draining and no lease is out; nil if nobody waits
	committer   committer
	forcing     map[Mark]chan struct{} // URLs being forced; closed when that has ended
	notes       notes
	hints       hints
	deletions   []*deletion   // that have a row, oldest first
	burial      burial        // for their sake
	readEnded   chan struct{} // closed when a read of a host ends; nil if nobody waits
	faults      []error       // of timed blocks that were lost, for callers of Next
	logMarks    markList      // admitted since the last checkpoint
	logBytes    int64         // committed since then
	heldFrom    int64         // when the store was opened after a crash, ns since Open; notHeld if never
	gen         uint32        // generation of the last checkpoint
	epoch       uint64        // how often the store was opened
	applied     struct {      // what of the log is in memory as a whole
		batch, seq uint64
		marks      int // of logMarks
	}
	rounds     sync.Mutex    // held for a round of moving
	givingUp   bool          // a goroutine gives up URLs of lost hosts
	givingStep chan struct{} // closed when those being given up are; nil if none are
	closeOnce  sync.Once
	closeErr   error
	isEnded    chan struct{} // closed when Close has done its work
	leaveOnce  sync.Once
	abandoned  chan struct{} // closed when nobody waits for the Spill any more
	background sync.WaitGroup
	sweepers   sync.WaitGroup
	sweeping   int // sweepers; guarded by mu
}

// notHeld says that no host counts as contacted when the store was opened.
const notHeld int64 = math.MinInt64

// Open makes a frontier. With a Spill it brings back all that was waiting,
// scheduled or leased and not done. If the last frontier on it was not closed,
// every host counts as contacted now. ctx bounds the reading of the store.
func Open(ctx context.Context, o Options) (*Frontier, error) {
	if v := reflect.ValueOf(o.Spill); v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, fmt.Errorf("frontier: options: Spill is a %T that is nil; want one that was opened, or no value at all", o.Spill)
	}
	ownKeys := o.HostKey != nil
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	f := &Frontier{
		reader:       make(chan struct{}, 1),
		isEnded:      make(chan struct{}),
		abandoned:    make(chan struct{}),
		opts:         o,
		ownKeys:      ownKeys,
		start:        o.Clock.Now(),
		startElapsed: o.Clock.Elapsed(),
		maxDelay:     int64(o.Delay.Max()),
		events:       newEvents(&o),
		heldFrom:     notHeld,
		ruling:       ruling{},
		crawlChanges: crawlChanges{},
		contacts:     map[uint32]*waiterQueue{},
		forcing:      map[Mark]chan struct{}{},
		known:        knownURLs{recent: &seen.Set{}, older: &seen.Set{}},
		core: newCore(coreConfig{
			levels:     o.Priorities,
			quantum:    o.Quantum,
			parkAfter:  int64(o.ParkAfter),
			selector:   o.Selector,
			strict:     isStrict(o.Selector),
			groupMax:   int64(o.GroupDelay.Max()),
			spill:      o.Spill != nil,
			ahead:      int64(timedAhead),
			backoff:    o.Backoff,
			quarantine: o.Quarantine,
		}),
	}
	f.startDate = f.start.Round(0)
	f.anchor.Store(&anchor{wall: f.start})
	f.core.concurrency = f.concurrency
	f.core.tell, f.core.wall = f.emitLocked, f.wall
	f.core.groupSettings = f.groupRules.of
	f.core.controls = &f.controls
	f.rechecker, _ = o.Scheduler.(Rechecker)
	f.hinter, _ = o.Scheduler.(Hinter)
	if o.Spill == nil {
		f.core.key = randomKey()
		return f, nil
	}
	f.footprint = o.Spill.Footprint()
	f.core.cfg.evictOver = f.residentLimitLocked() / 4
	if err := f.recoverFor(ctx); err != nil {
		return nil, err
	}
	f.sharePopularLocked() // nobody else has f
	f.startCommitter()
	f.mu.Lock()
	f.resumeSweepsLocked()
	f.mu.Unlock()
	if f.known.total >= recallFrom {
		f.background.Add(1)
		go func() { defer f.background.Done(); f.recall() }()
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

// Next returns the lease of the next URL that may be fetched, and waits for one
// if need be. Waiting calls are served in the order in which they came. It
// returns ctx's error, ErrClosed, ErrExhausted when the crawl is over, a
// *SelectorError, or the Spill's error for URLs that could not be read.
func (f *Frontier) Next(ctx context.Context) (Lease, error) {
	var g grant
	for f.await(ctx, &g) { // any number may be put off after a pause
		g = grant{}
	}
	return g.lease, g.err
}

// await fills g, which must be zero, with what a call of Next gets. It reports whether
// there is neither a lease nor an error, so that the caller must ask again.
func (f *Frontier) await(ctx context.Context, g *grant) (again bool) {
	if g.err = ctx.Err(); g.err != nil {
		return false // a cancelled worker must not take a host
	}
	f.lock()
	if g.err = f.refusalLocked(); g.err != nil {
		f.mu.Unlock()
		return false
	}
	for f.waiters.first == nil { // nobody came before
		if f.nextLocked(g, f.last) {
			f.mu.Unlock()
			return f.accept(ctx, g)
		}
		if !f.moreLocked(f.last) {
			break
		}
		f.mu.Unlock()
		f.lock()
		if g.err = f.refusalLocked(); g.err != nil {
			f.mu.Unlock()
			return false
		}
	}
	w := f.waiters.push()
	f.dispatchLocked() // may tell w that the crawl is over
	f.mu.Unlock()
	select {
	case *g = <-w.grant:
		return f.accept(ctx, g)
	case <-ctx.Done():
	}
	f.mu.Lock()
	if w.queued {
		f.waiters.remove(w)
		f.mu.Unlock()
		g.err = ctx.Err()
		return false
	}
	f.mu.Unlock() // a grant is on its way: take it, and give it back
	*g = <-w.grant
	if g.load != nil {
		*g = f.loadFor(ctx, g.load)
	}
	f.giveBack(g, ctx.Err())
	return false
}

// nextLocked finds what a caller of Next may have now: a lease, a host to read
// for, or an error. It reports whether there is anything. g is large, so it is not
// handed around, and must be zero.
func (f *Frontier) nextLocked(g *grant, now int64) bool {
	if len(f.faults) > 0 {
		g.err = f.faults[0]
		f.faults = f.faults[1:]
		return true
	}
	f.callLocked(now)
	ch, ok, err := f.core.next(now)
	switch {
	case err != nil:
		g.err = err
		return true
	case !ok:
		return false
	case ch.load != 0:
		g.load = f.jobLocked(ch)
		return true
	}
	f.leaseLocked(&g.lease, ch.queue)
	return true
}

// TryNext is Next without waiting for a host or for an Add; it may read from
// disk. If no URL may be fetched now it returns ErrNotDue and the time to ask
// again, which may be early: when a block ends, or a group is free, it can turn
// out that another keeps the host. A zero time means that only another call can
// change anything.
func (f *Frontier) TryNext() (Lease, time.Time, error) {
	for {
		l, at, again, err := f.tryNext()
		if again || f.rechecker != nil && err == nil && f.putOff(&l) {
			continue
		}
		return l, at, err
	}
}

func (f *Frontier) tryNext() (l Lease, at time.Time, again bool, err error) {
	f.lock()
	defer f.mu.Unlock()
	if err := f.refusalLocked(); err != nil {
		return l, at, false, err
	}
	if f.waiters.first == nil {
		var g grant
		ok := f.nextLocked(&g, f.last)
		if ok && g.load != nil {
			f.mu.Unlock()
			g = f.loadFor(context.Background(), g.load)
			f.mu.Lock()
		}
		if ok {
			return g.lease, at, g.again, g.err
		}
		if f.moreLocked(f.last) {
			return l, at, true, nil
		}
		if f.readDueLocked(f.last) {
			f.mu.Unlock()
			_, err := ask(context.Background(), f, func() (bool, error) { return f.readTimed(true), nil })
			f.mu.Lock()
			return l, at, err == nil, err
		}
		if len(f.core.lost) > 0 || f.givingStep != nil {
			f.mu.Unlock()
			_, err := ask(context.Background(), f, func() (bool, error) { return f.giveUpSome(false), nil })
			f.mu.Lock()
			return l, at, err == nil, err
		}
		if f.overLocked() {
			return l, at, false, f.exhaustedLocked()
		}
	}
	next := f.core.nextEvent(f.last)
	if f.core.places[dying]+f.core.sweptCrawls > 0 {
		next = min(next, f.last+sweepTime)
	}
	if next != never {
		at = f.wall(next)
	}
	return l, at, false, ErrNotDue
}

// Leases is Next in a loop. It ends without an error when the crawl is over or
// the frontier closed, and after any other error.
func (f *Frontier) Leases(ctx context.Context) iter.Seq2[Lease, error] {
	return func(yield func(Lease, error) bool) {
		for {
			l, err := f.Next(ctx)
			if errors.Is(err, ErrExhausted) || errors.Is(err, ErrClosed) {
				return
			}
			if !yield(l, err) || err != nil {
				return
			}
		}
	}
}

// lock takes f.mu, and settles the leases whose deadline has passed. Until the
// lock is released f.last is the time: asking a clock costs more than a heap.
func (f *Frontier) lock() {
	f.mu.Lock()
	f.reapLocked()
	f.departLocked()
}

// lockOpen is lock while the frontier is open. After its error, ErrClosed, the lock
// is not held.
func (f *Frontier) lockOpen() error {
	f.lock()
	if !f.closed {
		return nil
	}
	f.mu.Unlock()
	return ErrClosed
}

// refusalLocked is why nothing may be handed out any more.
func (f *Frontier) refusalLocked() error {
	if f.closed || f.draining {
		return ErrClosed
	}
	return nil
}

// overLocked reports whether the crawl is over.
func (f *Frontier) overLocked() bool {
	return f.core.over() && f.finishing == 0 && f.adding.Load() == 0 && !f.opts.KeepOpen && f.contactsPausedLocked()
}

// contactsPausedLocked reports whether no Contact waits but for paused hosts.
func (f *Frontier) contactsPausedLocked() bool {
	for id := range f.contacts {
		if h := f.core.hosts.at(id); h.place != held || h.pos != heldPaused && h.pos != heldSpent {
			return false
		}
	}
	return true
}

// exhaustedLocked is what callers of Next get when the crawl is over.
func (f *Frontier) exhaustedLocked() error {
	if n := f.core.heldForGood(); n > 0 {
		return &HeldError{Held: n}
	}
	return ErrExhausted
}

// nextToken returns a number that is not 0. The tokens of two stores differ, so
// that a lease of one means nothing to the other.
func (f *Frontier) nextToken() uint64 {
	for {
		f.token++
		if t := f.token ^ f.hostHash("token"); t != 0 {
			return t
		}
	}
}
