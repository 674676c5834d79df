// This file has the calls that ask for leases: Next, TryNext and Contact for one, Take for several, of
// the next hosts, of one host, or of some crawls.
//
// Waiting calls of Next form one queue, those of Contact one for each host. A Take that names a host
// or crawls waits beside the calls of Next, and is looked at after them: see heap.go.

package frontier

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/internal/mercator"
	"github.com/seed-7440039f/frontier/internal/patience"
	"github.com/seed-7440039f/frontier/internal/unit"
	"github.com/seed-7440039f/frontier/internal/waitqueue"
)

// Next returns the lease of the next URL that may be fetched, and waits for one if necessary. Waiting
// calls are served in the order of their arrival. It returns ctx's error, ErrClosed, ErrExhausted when
// the crawl is over, a *SelectorError, or the Spill's error for URLs that could not be read.
func (f *Frontier) Next(ctx context.Context) (Lease, error) {
	var g grant
	for f.await(ctx, &g, nil) { // any number may be put off after a pause
		g = grant{}
	}
	return g.lease, g.err
}

// await fills g, which must be zero, with what a call of Next gets, or one of Take at first. It reports
// whether there is neither a lease nor an error, so that the caller must ask again.
func (f *Frontier) await(ctx context.Context, g *grant, t *taking) (again bool) {
	if g.err = ctx.Err(); g.err != nil {
		return false // a cancelled worker must not take a host
	}
	f.lock()
	if g.err = f.refusalLocked(); g.err != nil {
		f.mu.Unlock()
		return false
	}
	for t.filtered() || f.waiters.Empty() { // no call came before
		if f.chooseLocked(g, t, f.last) {
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
	calls := f.queueFor(t)
	w := calls.Push()
	f.dispatchLocked() // may give w the end of the crawl
	f.mu.Unlock()
	select {
	case *g = <-w.Granted:
		return f.accept(ctx, g)
	case <-ctx.Done():
	}
	f.mu.Lock()
	if w.Waits() {
		calls.Remove(w)
		f.takers = slices.DeleteFunc(f.takers, func(x *taking) bool { return x == t })
		f.mu.Unlock()
		g.err = ctx.Err()
		return false
	}
	f.mu.Unlock() // a grant is on its way: take it, and give it back
	*g = <-w.Granted
	if g.load != nil {
		*g = f.loadFor(ctx, g.load)
	}
	f.giveBack(g, ctx.Err())
	return false
}

// TryNext is Next without waiting for a host or for an Add; it may read from disk. If no
// URL may be fetched now it returns ErrNotDue and the earliest time at which one may
// become available. Treat it as a lower bound: another rule or group may still withhold
// the host then. A zero time means that only another call can change anything.
func (f *Frontier) TryNext() (Lease, time.Time, error) {
	for {
		l, at, again, err := f.tryNext(context.Background(), nil)
		if again || f.rechecker != nil && err == nil && f.putOff(&l) {
			continue
		}
		return l, at, err
	}
}

func (f *Frontier) tryNext(ctx context.Context, t *taking) (l Lease, at time.Time, again bool, err error) {
	f.lock()
	defer f.mu.Unlock()
	if err := f.refusalLocked(); err != nil {
		return l, at, false, err
	}
	if t.filtered() || f.waiters.Empty() {
		var g grant
		ok := f.chooseLocked(&g, t, f.last)
		if ok && g.load != nil {
			f.mu.Unlock()
			g = f.loadFor(ctx, g.load)
			f.mu.Lock()
		}
		if ok {
			return g.lease, at, g.again, g.err
		}
		if f.moreLocked(f.last) {
			return l, at, true, nil
		}
		if f.reader.Due(f.last) {
			f.mu.Unlock()
			_, err := patience.Ask(ctx, f.abandoned, func() (bool, error) { return f.reader.Read(true), nil })
			f.mu.Lock()
			return l, at, err == nil, err
		}
		if len(f.core.Lost) > 0 || f.givingStep != nil {
			f.mu.Unlock()
			_, err := patience.Ask(ctx, f.abandoned, func() (bool, error) { return f.giveUpSome(false), nil })
			f.mu.Lock()
			return l, at, err == nil, err
		}
		if f.overLocked() {
			return l, at, false, f.exhaustedLocked()
		}
	}
	next := f.nextEventFor(t, f.last)
	if f.core.Places[mercator.Unpurged]+f.core.SweptCrawls > 0 {
		next = min(next, f.last+sweepTime)
	}
	if next != instant.Never {
		at = f.clock.Wall(next)
	}
	return l, at, false, ErrNotDue
}

// Contact waits until a host may be contacted and returns a lease without a URL, for
// robots.txt and the like. host is a host key. One lease is one contact: call Done with
// it, which moves the host's clock. Calls for one host are served in order, and before
// its URLs. While a lease of the host is out, Contact waits for its end. Errors are those
// of Next, except ErrExhausted, and the Spill's if the host's row cannot be read.
func (f *Frontier) Contact(ctx context.Context, host string) (Lease, error) {
	if err := ctx.Err(); err != nil {
		return Lease{}, err
	}
	host, err := f.hostKey(host)
	if err != nil {
		return Lease{}, fmt.Errorf("frontier: contact: %w", err)
	}
	if err := f.lockWithHost(ctx, host); err != nil {
		return Lease{}, err
	}
	if err := f.refusalLocked(); err != nil {
		f.mu.Unlock()
		return Lease{}, err
	}
	id := f.core.Ensure(f.core.HashOf(host), host)
	f.core.WantContact(id, f.last)
	q := f.contacts[id]
	if q == nil {
		q = &waitqueue.Queue[grant]{}
		f.contacts[id] = q
	}
	w := q.Push()
	f.dispatchLocked()
	f.mu.Unlock()
	select {
	case g := <-w.Granted:
		f.accept(ctx, &g) // of nothing that could be put off
		return g.lease, g.err
	case <-ctx.Done():
	}
	f.mu.Lock()
	if !w.Waits() {
		f.mu.Unlock()
		g := <-w.Granted
		f.giveBack(&g, ctx.Err())
		return Lease{}, g.err
	}
	q.Remove(w)
	if q.Empty() {
		f.dropContactsLocked(id, f.nowLocked())
	}
	f.dispatchLocked() // its URLs may be had again, or the crawl is over
	f.mu.Unlock()
	return Lease{}, ctx.Err()
}

// dropContactsLocked forgets the Contact calls of a host: none waits any more.
func (s *shard) dropContactsLocked(id uint32, now int64) {
	delete(s.contacts, id)
	h := s.core.Hosts.At(id)
	h.Wanted = false
	switch h.Place {
	case mercator.Leased, mercator.Loading:
	default:
		s.core.Detach(id)
		s.core.Settle(id, now)
	}
}

// accept makes of a grant what its caller gets: a lease or an error, or neither but to be given back if
// its context ended meanwhile. It reports whether the caller must ask again.
func (f *Frontier) accept(ctx context.Context, g *grant) (again bool) {
	if g.load != nil {
		*g = f.loadFor(ctx, g.load)
	}
	if err := ctx.Err(); err != nil && g.err == nil {
		f.giveBack(g, err)
		return false
	}
	return g.again || f.rechecker != nil && g.err == nil && f.putOff(&g.lease)
}

// giveBack returns the lease of a grant that came too late, uncontacted. What is left
// of the grant is the error.
func (f *Frontier) giveBack(g *grant, err error) {
	switch {
	case g.err != nil:
		return
	case !g.again:
		err = errors.Join(err, f.Done(g.lease, Outcome{Result: Requeue, Uncontacted: true}))
	}
	*g = grant{err: err}
}

// TakeOptions say which leases Take returns. The zero value asks for one, without waiting.
type TakeOptions struct {
	// Hosts is the most hosts, and PerHost the most URLs of each. Zero means 1.
	Hosts, PerHost int
	// Max is the most leases. Zero means Hosts times PerHost.
	Max int
	// Host is the key of the only host whose URLs are wanted. Empty means any.
	Host string
	// Crawls are the only crawls whose URLs are wanted; they take turns by their weights.
	// Nil means all crawls; an empty list is an error.
	Crawls []uint32
	// Lease is how long the leases last, in place of Options.LeaseTime: 1 ms to 720 h. Zero
	// means LeaseTime.
	Lease time.Duration
	// Wait is how long Take waits for the first lease. It never waits for a second.
	Wait time.Duration
	// Clocks limits the waiting: Take waits only while a clock keeps the wanted URLs back,
	// not until a lease ends or a URL is added.
	Clocks bool
}

// errNoCrawls refuses a list of crawls that is empty: it means none, and was not meant so.
var errNoCrawls = errors.New("no crawls: Crawls is empty; want at least one, or nil for all")

// taking is a call of Take.
type taking struct {
	TakeOptions
	until  int64 // it waits no longer
	calls  waitqueue.Queue[grant]
	leases []Lease
	loads  int      // leases whose URLs are being read
	ids    []uint32 // scratch
}

// takeAtOnce is how many leases Take hands out under one lock.
const takeAtOnce = 128

// leastGap is added to a Lease.Gap while only the host's Crawl-delay is known of it: it is not zero.
const leastGap time.Duration = 1

// Take returns leases of several URLs: of up to o.Hosts hosts, which it chooses as Next does, and up to
// o.PerHost URLs of each. The first URL of a host is the one that Next would hand out. The others
// follow by priority, the highest first, within a priority in their order. URLs that must be read from
// disk first, behind those that one read brings, are left for a later call.
//
// The leases of a host are a bundle: together they use one of the contacts that the host and its group
// may have at once. Contact the host for one after the other, and leave Lease.Gap between. Call Done
// for each lease. Each call moves the host's clock, and after the last one the host may be served
// again. A host that is backed off or in quarantine gets one URL. Return URLs that were not tried
// (Requeue) from the last to the first: each becomes the head of its queue.
//
// Take returns what can be had at once. If that is nothing it waits for o.Wait, and then
// returns a *NotDueError. Other errors are those of Next.
func (f *Frontier) Take(ctx context.Context, o TakeOptions) ([]Lease, error) {
	t, err := f.newTaking(o)
	if err != nil {
		return nil, fmt.Errorf("frontier: take: %w", err)
	}
	for {
		l, again, err := f.takeFirst(ctx, t)
		switch {
		case again:
		case err != nil:
			return nil, err
		default:
			f.takeRest(ctx, t, l)
			if err := ctx.Err(); err != nil {
				return nil, errors.Join(err, f.returnAll(t.leases))
			}
			if f.finishTaking(t); len(t.leases) > 0 {
				return t.leases, nil
			}
		}
	}
}

func (f *Frontier) newTaking(o TakeOptions) (*taking, error) {
	if o.Hosts < 0 || o.PerHost < 0 || o.Max < 0 {
		return nil, fmt.Errorf("want 0 or more: Hosts is %d, PerHost %d, Max %d", o.Hosts, o.PerHost, o.Max)
	}
	if err := unit.Check("Wait", o.Wait, unit.Measured); err != nil {
		return nil, err
	}
	if err := unit.Check("Lease", o.Lease, unit.Least); err != nil {
		return nil, err
	}
	if o.Lease > longestLease {
		return nil, fmt.Errorf("Lease is %v; want at most %v", o.Lease, longestLease)
	}
	o.Hosts, o.PerHost, o.Wait = max(1, o.Hosts), max(1, o.PerHost), min(o.Wait, maxDelay)
	if o.Crawls != nil && len(o.Crawls) == 0 {
		return nil, errNoCrawls
	}
	if o.Host != "" {
		host, err := f.hostKey(o.Host)
		if err != nil {
			return nil, err
		}
		o.Host, o.Hosts = host, 1
	}
	o.Max = cmp.Or(o.Max, o.Hosts*o.PerHost)
	return &taking{TakeOptions: o, until: f.moment() + int64(o.Wait)}, nil
}

// takeFirst returns the first lease of a Take, and waits for it if it may. It reports
// whether the caller must ask again.
func (f *Frontier) takeFirst(ctx context.Context, t *taking) (l Lease, again bool, err error) {
	if err := ctx.Err(); err != nil {
		return l, false, err
	}
	l, at, again, err := f.tryNext(ctx, t)
	if err == nil {
		return l, again || f.rechecker != nil && f.putOff(&l), nil
	}
	if err != ErrNotDue {
		return l, false, err
	}
	left := time.Duration(t.until - f.moment())
	if left <= 0 || t.Clocks && !f.clockKeeps(t) {
		return l, false, &NotDueError{Next: at}
	}
	waits, stop := context.WithCancel(ctx)
	defer stop()
	defer f.opts.Clock.AfterFunc(left, stop).Stop()
	var g grant
	if f.await(waits, &g, t) || g.err != nil && waits.Err() != nil && ctx.Err() == nil {
		return l, true, nil // to look once more, at the latest when the time is over
	}
	if g.err == context.Canceled && ctx.Err() != nil {
		g.err = ctx.Err() // the time to wait ended first, and then ctx
	}
	return g.lease, false, g.err
}

// takeRest gives the first lease of a Take company, and adds leases of more hosts.
func (f *Frontier) takeRest(ctx context.Context, t *taking, first Lease) {
	var jobs []*loadJob
	f.lock()
	f.companyLocked(t, &first)
	wanted := func(hosts int) bool {
		return hosts < t.Hosts && len(t.leases)+t.loads < t.Max &&
			(t.filtered() || f.waiters.Empty()) && len(f.faults) == 0 && f.refusalLocked() == nil
	}
	for hosts, at := 1, takeAtOnce; wanted(hosts); {
		var g grant
		switch {
		case f.chooseLocked(&g, t, f.last):
			hosts++
		case f.moreLocked(f.last):
			at = 0
		default:
			hosts = t.Hosts // there are no more
		}
		switch {
		case g.err != nil:
			hosts = t.Hosts // the next call meets it again
		case g.load != nil:
			jobs = append(jobs, g.load)
			t.loads++
		case g.lease.token != 0:
			f.companyLocked(t, &g.lease)
		}
		if len(t.leases) >= at {
			at = len(t.leases) + takeAtOnce
			f.mu.Unlock()
			f.lock()
		}
	}
	f.dispatchLocked() // others may wait for the deadlines
	f.mu.Unlock()
	for _, job := range jobs {
		t.loads--
		g := f.loadFor(ctx, job)
		if g.err != nil || g.again {
			continue // its host comes again
		}
		f.lock()
		f.companyLocked(t, &g.lease)
		f.dispatchLocked()
		f.mu.Unlock()
	}
}

// companyLocked adds a lease to those of a Take, with others of its host.
func (f *Frontier) companyLocked(t *taking, l *Lease) {
	r, err := f.leaseOutLocked(l)
	if err != nil {
		return // it has expired already
	}
	if t.Lease > 0 {
		r.Deadline = r.LeasedAt + int64(t.Lease)
		f.core.Expiry.Fix(int(r.Pos), r.Deadline)
		l.Deadline = f.clock.Wall(r.Deadline)
	}
	i, n := len(t.leases), min(t.PerHost, t.Max-len(t.leases)-t.loads)-1
	t.leases = append(t.leases, *l)
	t.ids = f.core.Join(t.ids[:0], l.record, max(0, n), t.Crawls, f.nextTokenLocked, f.last)
	for _, id := range t.ids {
		t.leases = append(t.leases, Lease{Due: l.Due})
		f.newLeaseLocked(&t.leases[len(t.leases)-1], id)
		last := &t.leases[len(t.leases)-1]
		t.leases[i].Gap, t.leases[i].bundle = last.Gap, last.bundle
	}
}

// finishTaking asks whether the leases that followed a first one should go out, and
// completes those that do.
func (f *Frontier) finishTaking(t *taking) {
	if f.rechecker != nil && len(t.leases) > 0 {
		rest := slices.DeleteFunc(t.leases[1:], func(l Lease) bool { return f.putOff(&l) })
		t.leases = t.leases[:1+len(rest)]
	}
	for i := range t.leases {
		l := &t.leases[i]
		if p := &t.leases[max(0, i-1)]; l.Gap > 0 && p != l && p.Host == l.Host && p.Gap > 0 {
			l.Gap = p.Gap
			continue
		}
		f.setGap(l)
	}
}

// setGap completes the gap of a lease that is of a bundle. It asks the policies.
func (f *Frontier) setGap(l *Lease) {
	if l.Gap == 0 {
		return
	}
	o := Outcome{Ended: f.clock.Wall(f.moment())}
	gap := max(delayBy(f.delayOf(l.Host), l.Host, o), int64(l.Gap-leastGap))
	if l.Group != "" {
		d, ok := f.controls.Group(l.Group).Policy.(DelayPolicy)
		if !ok {
			d = f.opts.GroupDelay
		}
		gap = max(gap, delayBy(d, l.Group, o))
	}
	l.Gap = time.Duration(gap)
}

// returnAll gives leases back that no caller waits for any more.
func (f *Frontier) returnAll(leases []Lease) (err error) {
	for _, l := range slices.Backward(leases) { // the first becomes the head of its queue again
		if e := f.Done(l, Outcome{Result: Requeue, Uncontacted: true}); !errors.Is(e, ErrNotLeased) {
			err = errors.Join(err, e)
		}
	}
	return err
}

// clockKeeps reports whether what a Take wants may become due by time alone.
func (f *Frontier) clockKeeps(t *taking) bool {
	f.lock()
	defer f.mu.Unlock()
	if t.Host == "" {
		return f.core.ClockKeepsSome(t.Crawls)
	}
	id := f.core.Lookup(f.core.HashOf(t.Host), t.Host)
	return id != 0 && f.core.ClockKeeps(id, t.Crawls)
}
