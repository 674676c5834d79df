// This file runs the workers: how they take leases, when they stop, what ends a crawl.
//
// visit.go processes a lease.

package crawler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler/fetch"
	"github.com/seed-7440039f/frontier/crawler/filter"
	"github.com/seed-7440039f/frontier/inspect"
)

// Crawler fetches what a frontier hands out. It is safe for concurrent use.
type Crawler struct {
	frontier described
	opts     Options // read-only after New
	log      *slog.Logger
	scope    *scopeFilter
	filters  []Filter      // scope, and Options.Filters
	rules    filter.Filter // of Scope's kind, but that say why
	lasting  filter.Filter // the subset for URLs that were visited
	traps    *filter.Traps // one of rules
	refusals refusals
	links    *linkMemory
	gate     *gate
	outage   *outage
	store    *storeWait
	crew     *crew
	// contacting bounds how many workers wait for another host's slot.
	contacting chan struct{}
	// addresses is nil if hosts are not grouped by address.
	addresses *addressBook
	parking   *parking
	welcome   welcome
	givingUp  givingUp
	counters  counters
	running   atomic.Bool
	trouble   atomic.Pointer[string] // see Progress.Trouble
	started   atomic.Pointer[time.Time]

	mu        sync.Mutex
	hostPages map[string]int64 // guarded by mu; only with MaxPagesPerHost
}

// ErrRunning is returned by Run while another Run of the Crawler is in progress.
var ErrRunning = errors.New("crawler: already running")

// New returns a Crawler on f, or an error that names every option out of range. The caller closes
// the frontier.
func New(f Frontier, o Options) (*Crawler, error) {
	o, err := o.withDefaults()
	if err == nil {
		err = o.validate()
	}
	if absent(reflect.ValueOf(f)) {
		return nil, errors.Join(errors.New("crawler: no frontier"), err)
	}
	d, without := inspect.Of[described](f)
	if without != nil {
		err = errors.Join(err, fmt.Errorf("crawler: %w", without))
	}
	if _, ok := d.(grouper); !ok && err == nil && o.Groups.Concurrency > 1 {
		err = fmt.Errorf("crawler: options: Groups.Concurrency is %d; want at most 1, as this frontier's groups have no settings", o.Groups.Concurrency)
	}
	if err != nil {
		return nil, err
	}
	c := &Crawler{frontier: d, opts: o, log: o.Logger, gate: newGate(&o), outage: newOutage(o.Logger), store: newStoreWait(o.Logger, o.Now), crew: newCrew(&o),
		contacting: make(chan struct{}, max(1, o.Workers/4)), addresses: newAddressBook(&o), parking: newParking(d), hostPages: map[string]int64{}}
	c.scope = newScopeFilter(o.Scope)
	c.links = &linkMemory{size: sharedLinks, free: sharedLinks}
	c.filters = append([]Filter{c.scope}, o.Filters...)
	c.lasting = filter.All(o.Rules...)
	c.traps = filter.NewTraps(o.Traps)
	c.rules = filter.All(append(slices.Clone(o.Rules), c.traps)...)
	if err := c.loadTraps(); err != nil {
		return nil, err
	}
	if err := c.saveTraps(); err != nil { // better now than once the first minute is lost
		return nil, fmt.Errorf("crawler: TrapsFile: %w", err)
	}
	return c, nil
}

// Seed normalizes URLs and adds them to the frontier at depth 0. It returns how many were new. URLs
// that are malformed or refused by the filters are reported as joined *frontier.EntryError values,
// and the others are added. If any other error is joined, none was added.
func (c *Crawler) Seed(ctx context.Context, urls ...string) (int, error) {
	var errs []error
	var entries []frontier.Entry
	var index []int
	for i, u := range urls {
		norm, err := c.opts.Normalizer.Normalize(u)
		if err == nil {
			err = c.Wanted(frontier.Entry{URL: norm})
		}
		if err != nil {
			errs = append(errs, &frontier.EntryError{Index: i, URL: fetch.Redact(u), Err: err})
			continue
		}
		entries, index = append(entries, frontier.Entry{URL: norm}), append(index, i)
	}
	n, err := c.frontier.Add(ctx, entries...)
	for _, err := range parts(err) {
		if e, ok := errors.AsType[*frontier.EntryError](err); ok {
			err = &frontier.EntryError{Index: index[e.Index], URL: fetch.Redact(urls[index[e.Index]]), Err: e.Err}
		}
		errs = append(errs, err)
	}
	return n, errors.Join(errs...)
}

// Run crawls until nothing is left, MaxPages is reached, or ctx ends. It returns nil, or the error
// of ctx: in that case it has waited for the fetches in progress, or cut them after Options.Grace
// and handed their URLs back. When Run returns, it has ended every lease that it took. To continue
// later, call Run again, or reopen the frontier's folder. Any other error comes from the frontier.
func (c *Crawler) Run(ctx context.Context) error {
	if !c.running.CompareAndSwap(false, true) {
		return ErrRunning
	}
	defer c.running.Store(false)
	if c.started.Load() == nil {
		if err := errors.Join(c.parking.open(untilAgain), c.parking.open(untilRun)); err != nil {
			return fmt.Errorf("crawler: %w", err)
		}
	}
	began := c.now()
	c.started.Store(&began)
	r := &run{c: c, budget: newBudget(c.opts.MaxPages), pace: newPace(c.opts.MaxRate)}
	r.ctx, r.stop = context.WithCancelCause(ctx)
	defer r.stop(nil)
	var cut context.CancelFunc
	r.fetches, cut = context.WithCancel(context.WithoutCancel(ctx))
	defer cut()

	finished := make(chan struct{})
	var house, workers sync.WaitGroup
	house.Go(func() { r.cutAfterGrace(cut, finished) })
	house.Go(func() { c.reportProgress(finished) })
	if c.opts.TrapsFile != "" {
		house.Go(func() { c.keepTraps(finished) })
	}
	house.Go(func() { c.lookAgain(finished) })
	house.Go(func() { r.lookAhead(finished) })
	var start func()
	start = func() {
		w := *r // sent is its own
		w.shift = &shift{start: start}
		workers.Go(func() {
			if err := w.work(); err != nil {
				r.stop(fatalError{err})
			}
		})
	}
	for range c.opts.Workers {
		start()
	}
	workers.Wait()
	close(finished)
	house.Wait()
	for _, x := range append(slices.Collect(maps.Values(c.opts.Protocols)), c.opts.Fetcher) {
		if f, ok := x.(interface{ CloseIdle() }); ok {
			f.CloseIdle()
		}
	}
	if err, ok := errors.AsType[fatalError](context.Cause(r.ctx)); ok {
		return err.error
	}
	return ctx.Err()
}

// fatalError distinguishes an error that ends the run from a cancellation by the caller.
type fatalError struct{ error }

// run is one call of Run.
type run struct {
	c       *Crawler
	ctx     context.Context // ends when no more leases may be taken
	stop    context.CancelCauseFunc
	fetches context.Context // ends when fetches must be cut
	budget  *budget
	pace    *pace
	sent    bool     // a request was sent under the current lease
	tried   bool     // at least one address of the host was tried under the current lease
	saw     evidence // of the present lease
	shift   *shift
}

// work takes leases until there are none.
func (r *run) work() error {
	for r.budget.acquire(r.ctx) {
		if !r.pace.acquire(r.ctx) {
			r.budget.release()
			return nil
		}
		try, ok := r.c.store.acquire(r.ctx)
		probe := false
		if ok {
			probe, ok = r.c.outage.acquire(r.ctx)
		}
		if !ok {
			r.budget.release()
			r.pace.release()
			return nil
		}
		l, err := r.c.frontier.Next(r.ctx)
		if err != nil {
			r.budget.release()
			r.pace.release()
			if try {
				r.c.store.release()
			}
			if _, held := errors.AsType[*frontier.HeldError](err); held && r.c.opts.Held != nil && r.c.opts.Held(r.ctx) {
				continue
			}
			if errors.Is(err, frontier.ErrExhausted) || errors.Is(err, frontier.ErrClosed) {
				return nil
			}
			if r.ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
				return nil
			}
			if _, ok := errors.AsType[*frontier.CorruptError](err); ok {
				continue // the frontier has logged the error and set the URLs aside; the others are not affected
			}
			if r.c.store.failed(err, try) {
				continue
			}
			return fmt.Errorf("crawler: next: %w", err)
		}
		r.c.counters.busy.Add(1)
		r.sent, r.tried, r.saw = false, false, evidence{}
		page := false
		admitted := true
		if !probe { // an outage may have begun while this worker waited for the lease
			probe, admitted = r.c.outage.admit(r.ctx, l.Host)
		}
		if !admitted {
			err = r.handBack(l, 0, 0)
		} else {
			page, err = r.visit(l)
		}
		relieved := r.shift.end(r.c.crew)
		if !relieved {
			r.c.counters.busy.Add(-1)
		}
		if probe && !r.tried {
			r.c.outage.release()
		}
		if !r.sent {
			r.pace.release()
		}
		if page {
			r.budget.spend()
		} else {
			r.budget.release()
		}
		switch {
		case err != nil && !r.c.store.failed(err, try):
			return fmt.Errorf("crawler: %w", err)
		case err == nil && try:
			r.c.store.release()
		}
		if relieved {
			return nil
		}
	}
	return nil
}

// cutAfterGrace cuts the fetches a while after the run should stop.
func (r *run) cutAfterGrace(cut context.CancelFunc, finished <-chan struct{}) {
	select {
	case <-finished:
		return
	case <-r.ctx.Done():
	}
	select {
	case <-finished:
	case <-time.After(r.c.opts.Grace):
		cut()
	case <-r.c.opts.Cut:
		cut()
	}
}

// longRetryAfter is the shortest wait for a host that is logged for the operator.
const longRetryAfter = time.Minute

// fetch sends a request under a lease, which joins the group of the contacted address. If join fails,
// fetch returns its error, and nothing was sent; but silent addresses may have been tried (attempted).
func (r *run) fetch(l *frontier.Lease, q fetch.Request) (*fetch.Result, error) {
	margin := min(time.Second, l.Deadline.Sub(l.LeasedAt)/10) // for closing the connection in time
	ctx, cancel := context.WithDeadline(r.fetches, l.Deadline.Add(-margin))
	defer cancel()
	began := time.Now()
	r.tried = true
	res, err := r.await(ctx, q, func(ctx context.Context, q fetch.Request) (*fetch.Result, error) {
		addrs, err := r.join(ctx, l, q.URL)
		r.c.counters.lookup.Add(int64(time.Since(began)))
		if err != nil {
			return nil, err
		}
		q.Addrs, r.sent = addrs, true
		q.Contact = func(a netip.Addr) error { return r.joinAddress(l, a) }
		return r.c.opts.fetcher(q.URL).Fetch(ctx, q)
	})
	if res == nil {
		res = &fetch.Result{URL: q.URL, Started: began, Ended: time.Now()}
	}
	r.c.counters.lookup.Add(int64(res.Timing.DNS))
	r.c.counters.fetching.Add(int64(time.Since(began)))
	r.c.addresses.note(q.URL, res, err)
	if !uncontacted(err) && !r.stopped(err) {
		r.c.outage.take(l.Host, r.c.gate.answered(siteOf(q.URL)), kindOf(res, err), began, res.Ended)
		if r.c.opts.OnFetch != nil {
			r.c.opts.OnFetch(q.URL, res, err)
		}
	}
	r.c.counters.bytes.Add(res.Bytes)
	if res.RetryAfter > longRetryAfter {
		r.c.log.Info("a host asks for a long pause", "url", fetch.Redact(q.URL), "status", res.Status,
			"retry_after", res.RetryAfter, "honoured", min(res.RetryAfter, r.c.opts.MaxRetryAfter))
	}
	res.RetryAfter = min(res.RetryAfter, r.c.opts.MaxRetryAfter)
	return res, err
}

// stopped reports whether err is the result of the run's own cut.
func (r *run) stopped(err error) bool { return err != nil && r.fetches.Err() != nil }

// attempted reports whether addresses were tried for a fetch that was not sent.
func attempted(res *fetch.Result) bool { return len(res.Failed) > 0 || res.Remote.IsValid() }

// uncontacted reports whether err ended a fetch before it began: the frontier did not allow the
// host to be contacted under this lease.
func uncontacted(err error) bool {
	return errors.Is(err, frontier.ErrGroupBusy) || errors.Is(err, frontier.ErrNotLeased) || errors.Is(err, frontier.ErrClosed)
}

// lost judges an error of the frontier about a lease: nil if the crawl can continue.
func (r *run) lost(l frontier.Lease, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, frontier.ErrNotLeased):
		r.c.log.Warn("a lease ended before its Done", "url", fetch.Redact(l.Entry.URL), "host", l.Host, "deadline", l.Deadline)
		return nil
	}
	return err
}

func (c *Crawler) now() time.Time { return c.opts.Now() }
