// This file runs the queue: it gives the page of each lease to a collector.

package frontiercolly

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/gocolly/colly/v2"
	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/polite"
)

// ErrRunning is returned by Run while another Run of the queue runs.
var ErrRunning = errors.New("frontiercolly: the queue is running")

// Run performs requests with c until none is left, Stop is called, c.Context ends, the frontier is closed
// or fails. Pages that are being fetched end before it returns; URLs that it leaves stay in the frontier.
// It returns nil if the queue is exhausted, stopped or closed, c.Context's error if that ended, a
// *frontier.HeldError if only held URLs are left, or the failure. A panic in a callback counts as a
// failed try of its page, and Run panics.
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
	err := q.f.Work(ctx, q.o.Threads, q.serve)
	if cause := context.Cause(ctx); cause != nil && errors.Is(err, context.Canceled) {
		err = cause
	}
	if err == errStopped {
		return nil
	}
	return err
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
		c.SetRedirectHandler(func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }) // the queue follows them
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

// serve fetches the page of a lease. An error ends Run, and the URL comes again.
func (q *Queue) serve(ctx context.Context, l frontier.Lease) (frontier.Outcome, error) {
	k, bad := requestOf(l.Entry)
	q.mu.Lock()
	c := q.collectors[k.Collector]
	q.mu.Unlock()
	if c == nil {
		return frontier.Outcome{}, fmt.Errorf("frontiercolly: %s belongs to the collector named %q; Attach it before Run", l.Entry.URL, k.Collector)
	}
	r, err := k.of(c)
	switch {
	case err != nil:
		return q.deny(&colly.Request{URL: &url.URL{Opaque: l.Entry.URL}, Depth: k.Depth, Ctx: colly.NewContext()}, err), nil
	case bad == nil:
		bad = check(c, &k)
	}
	if bad != nil {
		return q.deny(r, bad), nil
	}
	if err := q.wire.polite.Admit(ctx, l); err != nil {
		o := polite.OutcomeOf(nil, err)
		if o.Result == frontier.Denied {
			q.refused(r, err)
		}
		return o, nil
	}
	p := &page{lease: l, kept: k, ctx: r.Ctx}
	err = q.fetch(p, r)
	return q.end(c, p, r, err)
}

// deny returns the outcome of a request that will not be made.
func (q *Queue) deny(r *colly.Request, why error) frontier.Outcome {
	q.refused(r, why)
	return frontier.Outcome{Result: frontier.Denied, Uncontacted: true}
}
