// This file runs the queue: threads take leases from the frontier, one page each.

package frontiercolly

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"

	"github.com/gocolly/colly/v2"
	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/polite"
)

// ErrRunning is returned by Run while another Run of the queue runs.
var ErrRunning = errors.New("frontiercolly: the queue is running")

// Run performs requests with c until none is left, Stop is called, c.Context ends, or the frontier
// fails. Pages that are being fetched then end before it returns; URLs that it leaves stay in the
// frontier. The error is nil if the queue is exhausted or was stopped, that of c.Context, a
// *frontier.HeldError if only held URLs are left, or what went wrong.
//
// Run attaches c first, under the empty name.
func (q *Queue) Run(c *colly.Collector) error {
	q.mu.Lock()
	if q.running {
		q.mu.Unlock()
		return ErrRunning
	}
	q.running = true
	q.mu.Unlock()
	ctx, cancel := context.WithCancelCause(context.Background())
	defer func() {
		cancel(nil)
		q.mu.Lock()
		q.running, q.stop = false, nil
		q.mu.Unlock()
	}()
	if err := q.Attach("", c); err != nil {
		return err
	}
	defer context.AfterFunc(c.Context, func() { cancel(context.Cause(c.Context)) })()
	q.mu.Lock()
	q.stop = func() { cancel(errStopped) }
	if t := q.wire.polite; t.Robots == nil && !q.o.IgnoreRobots {
		t.Robots = &polite.Robots{Agent: c.UserAgent}
	}
	q.mu.Unlock()
	var threads sync.WaitGroup
	for range q.o.Threads {
		threads.Go(func() {
			if err := q.work(ctx); err != nil {
				cancel(err) // the first one counts
			}
		})
	}
	threads.Wait()
	switch err := context.Cause(ctx); {
	case errors.Is(err, errStopped), err == frontier.ErrExhausted: // *HeldError is more than that
		return nil
	default:
		return err
	}
}

var errStopped = errors.New("frontiercolly: stopped")

// Attach lets the queue perform the requests of a collector: from now on c.Visit and the like add to
// the queue. Run does it for its own collector. Further ones, such as a clone for another kind of page,
// need a name each, which is kept with their requests and must stay the same as long as the store.
//
// It takes over from c: the transport of its client, robots.txt, what it remembers of visited URLs (the
// frontier does), Async, and redirects unless Options.Follow is set. It refuses collectors with
// MaxRequests and CheckHead.
func (q *Queue) Attach(name string, c *colly.Collector) error {
	if c == nil {
		return errors.New("frontiercolly: the collector is nil")
	}
	var errs []error
	if c.MaxRequests > 0 {
		errs = append(errs, fmt.Errorf("MaxRequests is %d; want 0: colly counts links as well, so use Frontier.UpdateRule with Limits", c.MaxRequests))
	}
	if c.CheckHead {
		errs = append(errs, errors.New("CheckHead is set; want a queue without it: each HEAD is a contact of its own, so add HEAD requests by AddRequest"))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("frontiercolly: collector: %w", err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	known := q.collectors[name]
	if known != nil && known != c {
		return fmt.Errorf("frontiercolly: the queue has another collector named %q", name)
	}
	c.Async, c.AllowURLRevisit, c.IgnoreRobotsTxt = false, true, true
	c.WithTransport(q.wire)
	if q.o.Follow {
		c.SetRequestTimeout(0) // it would count the waits
	} else {
		c.SetRedirectHandler(noFollow)
	}
	if known == nil {
		q.collectors[name] = c
		c.OnRequest(func(r *colly.Request) { q.onRequest(name, c, r) })
		c.OnResponseHeaders(q.onHeaders)
	}
	return nil
}

// Stop lets Run return when the pages that are being fetched have ended. Without a Run it does nothing.
func (q *Queue) Stop() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.stop != nil {
		q.stop()
	}
}

func (q *Queue) work(ctx context.Context) error {
	for {
		l, err := q.f.Next(ctx)
		if err != nil {
			return err
		}
		if err := q.serve(ctx, l); err != nil {
			return err
		}
	}
}

// serve fetches the page of a lease and ends the lease.
func (q *Queue) serve(ctx context.Context, l frontier.Lease) error {
	k, bad := requestOf(l.Entry)
	q.mu.Lock()
	c := q.collectors[k.Collector]
	q.mu.Unlock()
	if c == nil {
		err := fmt.Errorf("frontiercolly: %s belongs to the collector named %q; Attach it before Run", l.Entry.URL, k.Collector)
		return errors.Join(err, q.done(l, frontier.Outcome{Result: frontier.Requeue, Uncontacted: true}))
	}
	r, err := k.of(c)
	switch {
	case err != nil:
		return q.deny(l, &colly.Request{URL: &url.URL{Opaque: l.Entry.URL}, Depth: k.Depth, Ctx: colly.NewContext()}, err)
	case bad == nil:
		bad = check(c, &k)
	}
	if bad != nil {
		return q.deny(l, r, bad)
	}
	switch err := q.wire.polite.Admit(ctx, l); {
	case errors.Is(err, polite.ErrHandedBack):
		return nil
	case err != nil:
		o := polite.OutcomeOf(nil, err)
		if o.Result == frontier.Denied {
			q.refused(r, err)
		}
		return q.done(l, o)
	}
	p := &page{lease: l, kept: k, ctx: r.Ctx}
	err = q.fetch(p, r)
	o, broken := q.end(c, p, r, err)
	return errors.Join(broken, q.done(l, o))
}

// deny ends the lease of a request that will not be made.
func (q *Queue) deny(l frontier.Lease, r *colly.Request, why error) error {
	q.refused(r, why)
	return q.done(l, frontier.Outcome{Result: frontier.Denied, Uncontacted: true})
}

// done ends a lease.
func (q *Queue) done(l frontier.Lease, o frontier.Outcome) error {
	err := q.f.Done(l, o)
	if errors.Is(err, frontier.ErrNotLeased) {
		return nil // it took longer than Options.LeaseTime: the URL comes again, and its links with it
	}
	if err != nil {
		return fmt.Errorf("frontiercolly: %s: %w", l.Entry.URL, err)
	}
	return nil
}
