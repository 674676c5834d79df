// This file follows one page from its lease to its end: what its callbacks added, what its
// request met, and which outcome that makes.

package frontiercolly

import (
	"errors"
	"net/http"
	"net/url"

	"github.com/gocolly/colly/v2"
	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/polite"
)

// page is a request that is running. Its worker owns it; what other goroutines touch is guarded by Queue.mu.
type page struct {
	lease frontier.Lease
	kept  request
	ctx   *colly.Context // of its callbacks, and of no other page's

	begun    bool             // guarded by Queue.mu; OnRequest was called for it
	answered bool             // guarded by Queue.mu; OnResponseHeaders was called for it
	again    []byte           // guarded by Queue.mu; the Meta of the next try; not nil: a callback called Retry
	links    []frontier.Entry // guarded by Queue.mu
	url      *url.URL         // that the transport sees; nil before OnRequest

	// Of the transport, which the worker calls:
	visit *polite.Visit // nil: the request never reached the transport
	hops  int           // redirects that were followed in place
	resp  *http.Response
	err   error
}

// ErrAborted reports a request that a callback aborted before it was sent.
var ErrAborted = errors.New("frontiercolly: a callback aborted the request")

// ErrTransport ends Run: the collector's client does not use the queue's transport any more. SetProxy,
// SetProxyFunc, WithTransport and SetClient replace it: do not call them once Run has begun, and give a
// transport with a proxy as Options.Transport.
var ErrTransport = errors.New("frontiercolly: the collector's transport was replaced; set Options.Transport instead")

// fetch lets the collector perform the page's request. All callbacks have run when it returns.
func (q *Queue) fetch(p *page, r *colly.Request) error {
	q.mu.Lock()
	q.pages[p.ctx] = p
	q.mu.Unlock()
	defer func() { // even if a callback panics
		q.mu.Lock()
		delete(q.pages, p.ctx)
		q.mu.Unlock()
		if p.url != nil {
			q.wire.forget(p.url)
		}
	}()
	return r.Do()
}

// end returns the outcome of a page whose request ended with err, and an error that stops the queue. The
// page has left q.pages.
func (q *Queue) end(c *colly.Collector, p *page, r *colly.Request, err error) (frontier.Outcome, error) {
	if p.visit == nil {
		return q.unsent(c, p, r, err)
	}
	o := p.visit.Outcome()
	target := len(o.Add) > 0 || p.err == nil && p.resp.StatusCode/100 == 3 && p.resp.Header.Get("Location") != ""
	o.Add = p.links
	switch {
	case p.again != nil:
		o.Meta = p.again
		if o.Result < frontier.Failed {
			o.Result = frontier.Failed
		}
	case p.hops > 0:
		switch last := polite.OutcomeOf(p.resp, p.err); {
		case last.Result == frontier.Requeue && c.Context.Err() == nil:
			o.Result = frontier.Failed // the hop's host is busy: the page comes again, but not for ever
		case last.Result >= frontier.Gone:
			o.Result, o.Failure = last.Result, last.Failure
		}
	case target:
		q.redirect(c, p, r, &o)
	}
	return o, nil
}

// unsent is end for a request that the transport did not see.
func (q *Queue) unsent(c *colly.Collector, p *page, r *colly.Request, err error) (frontier.Outcome, error) {
	aborted := errors.Is(err, colly.ErrAbortedBeforeRequest)
	switch {
	case p.answered && c.CacheDir != "":
		return frontier.Outcome{Add: p.links}, nil
	case p.answered, p.begun && err != nil && !aborted:
		return frontier.Outcome{}, ErrTransport
	case err == nil || aborted:
		err = ErrAborted
	}
	o := q.deny(r, err)
	o.Add = p.links
	return o, nil
}

// redirect adds the target of a redirect to the page's outlinks.
func (q *Queue) redirect(c *colly.Collector, p *page, r *colly.Request, o *frontier.Outcome) {
	to, err := p.kept.redirected(p.resp.StatusCode, p.resp.Header.Get("Location"))
	if err == nil {
		err = fetchable(to.URL)
	}
	var e frontier.Entry
	if err == nil {
		e, err = to.entry()
	}
	if err != nil {
		q.refused(r, err)
		return
	}
	if check(c, &to) != nil {
		return // colly has called OnError
	}
	e.Force = e.URL == p.lease.Entry.URL // to the same page, after it set a cookie
	e.Weight, e.Crawl = p.lease.Entry.Weight, p.lease.Entry.Crawl
	o.Add = append(o.Add, e)
}

func (q *Queue) refused(r *colly.Request, err error) {
	if q.o.OnRefused != nil {
		q.o.OnRefused(r, err)
	}
}

// onRequest makes requests of callbacks (r.Visit, c.Visit, r.Post and the like) entries of the queue
// instead: they would contact a host under no lease.
func (q *Queue) onRequest(name string, c *colly.Collector, r *colly.Request) {
	q.mu.Lock()
	p := q.pages[r.Ctx]
	own := p != nil && !p.begun
	if own {
		p.begun, p.url = true, r.URL
	}
	q.mu.Unlock()
	switch {
	case own:
		q.wire.expect(r.URL, expected{page: p})
		return
	case r.IsAbort():
		return
	}
	k, err := kept(r, c)
	k.Collector = name
	if err == nil && p != nil && r.Depth == p.kept.Depth && same(k, p.kept) {
		var e frontier.Entry
		k.Redirects = p.kept.Redirects
		if e, err = k.entry(); err == nil {
			q.mu.Lock()
			p.again = append([]byte{}, e.Meta...)
			q.mu.Unlock()
			r.Abort()
			return
		}
	}
	if err == nil {
		err = q.admit(k, r.Ctx)
	}
	if err != nil { // the transport returns it, for a callback cannot
		q.wire.expect(r.URL, expected{err: err})
		return
	}
	r.Abort()
}

// onHeaders notes that a page has an answer, from its host or from colly's cache.
func (q *Queue) onHeaders(r *colly.Response) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if p := q.pages[r.Ctx]; p != nil {
		p.answered = true
	}
}
