// This file requests robots.txt: each request, also of a redirect, is a contact of its own.

package polite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler/robots"
	"github.com/seed-7440039f/frontier/internal/reply"
)

const (
	// hopWait is how long a redirect of robots.txt waits for its turn. Longer counts as a failure.
	hopWait = 2 * time.Minute
	// inProgress is when a URL comes again whose robots.txt is being read for another lease.
	inProgress = 500 * time.Millisecond
)

// question marks the requests for robots.txt.
type question struct {
	slot    *frontier.Lease // for the first one; nil: none, or it is used
	sibling bool            // the same host answers by the other scheme
}

type questionKey struct{}

func questionOf(ctx context.Context) *question {
	q, _ := ctx.Value(questionKey{}).(*question)
	return q
}

// read requests the robots.txt of a claimed site, and ends the claim. Failures of the site are not
// errors; it returns only the context's error or *BusyError.
func (r *Robots) read(ctx context.Context, rt http.RoundTripper, name string) error {
	q := questionOf(ctx)
	if q == nil {
		q = &question{}
		ctx = context.WithValue(ctx, questionKey{}, q)
	}
	q.sibling = r.sibling(name)
	done := false
	defer func() {
		if !done {
			r.release(name)
		}
	}()
	target := name + "/robots.txt"
	for hops := 0; ; hops++ {
		next, a, err := r.ask(ctx, rt, name, target, hops)
		if err != nil {
			return err
		}
		if next != "" {
			a.end(0)
			target = next
			continue
		}
		done = true
		if a.rules == nil {
			r.finish(name, func(s *site) {
				s.failed(&UnreachableError{Site: name, Status: a.status, Err: a.err}, r, a.retryAfter)
			})
			a.end(0)
			return nil
		}
		r.finish(name, func(s *site) { s.settle(a.rules, r, a.site == name, time.Now()) })
		a.end(cmp.Or(r.pause(a.rules), frontier.NoCrawlDelay))
		if a.site != "" && a.site != name {
			r.found(a.site, a.rules)
		}
		return nil
	}
}

// answer is what became of one request for robots.txt.
type answer struct {
	resp       *http.Response // nil: none; its contact lasts until end
	rules      *robots.Rules  // nil: it is unreachable
	site       string         // whose rules they are; empty: of none that was asked as such
	status     int
	retryAfter time.Duration
	err        error
}

// end ends the contact, and passes on the host's Crawl-delay; 0: unknown.
func (a *answer) end(delay time.Duration) {
	if a.resp == nil {
		return
	}
	if c := contactOf(a.resp); c != nil && delay != 0 {
		c.mu.Lock()
		c.delay = delay
		c.mu.Unlock()
	}
	a.resp.Body.Close()
}

// ask sends one request. It returns the next URL to request, if the answer redirects there.
func (r *Robots) ask(ctx context.Context, rt http.RoundTripper, name, target string, hops int) (next string, _ *answer, _ error) {
	caller := ctx
	if hops > 0 {
		limited, cancel := context.WithTimeout(ctx, hopWait)
		defer cancel()
		ctx = limited
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return "", &answer{err: err}, nil
	}
	if r.Agent != "" {
		req.Header.Set("User-Agent", r.Agent)
	}
	req.Header.Set("Accept", "text/plain,*/*;q=0.8")
	resp, err := rt.RoundTrip(req)
	if err != nil {
		if _, busy := errors.AsType[*BusyError](err); busy && hops == 0 {
			return "", nil, err
		}
		return "", &answer{err: err}, caller.Err()
	}
	a := &answer{resp: resp, status: resp.StatusCode, retryAfter: reply.RetryAfter(resp.Header, time.Now())}
	body, err := io.ReadAll(io.LimitReader(resp.Body, robots.MaxSize+1))
	if err != nil {
		a.err = err
		a.end(0)
		return "", a, caller.Err()
	}
	if to := redirect(resp); to != nil {
		body = nil
		if at := siteOf(to); hops < robots.MaxRedirects {
			if rules := r.known(at); rules != nil && at != name && to.String() == at+"/robots.txt" {
				a.rules = rules
				return "", a, nil
			}
			return to.String(), a, nil
		}
	}
	switch file := robots.FromStatus(resp.StatusCode, body); {
	case file.Access() == robots.Unreachable || reply.AsksForLess(resp.StatusCode, a.retryAfter):
	case file.Access() == robots.Available && resp.Header.Get("Content-Encoding") != "":
		a.err = fmt.Errorf("the Content-Encoding %q cannot be read", resp.Header.Get("Content-Encoding"))
	default:
		a.rules = file.Group(r.Agent)
	}
	if at := siteOf(req.URL); target == at+"/robots.txt" {
		a.site = at
	}
	return "", a, nil
}

// redirect returns the target of an answer that redirects; nil if it does not, or cannot be followed.
func redirect(resp *http.Response) *url.URL {
	switch resp.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
	default:
		return nil
	}
	to, err := resp.Location()
	if err != nil || to.Scheme != "http" && to.Scheme != "https" || to.Host == "" {
		return nil
	}
	to.Fragment, to.RawFragment = "", ""
	return to
}

// Admit decides about the URL of a lease, before it is fetched: by robots.txt, if the Transport has
// Robots, and by whose turn it is at the host's address. A program whose client reports every error
// calls it first, so that a wait is no error. If Admit returns an error, fetch nothing and end the
// lease with OutcomeOf(nil, err):
//
//	if err := t.Admit(ctx, lease); err != nil {
//		err := f.Done(lease, polite.OutcomeOf(nil, err))
//
// ErrHandedBack means that robots.txt had to be read first. Admit has handed the lease back and
// used its host's turn for that; the URL comes again as the first of its host, and Done returns
// frontier.ErrNotLeased. Other errors are *DeniedError, *UnreachableError, *BusyError, the
// frontier's and the context's. Requests under a context of WithLease do this themselves.
func (t *Transport) Admit(ctx context.Context, l frontier.Lease) error {
	if err := t.start(); err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, l.Entry.URL, nil)
	if err != nil {
		return err
	}
	if _, err := t.admit(ctx, l, req.URL); err != nil {
		return err
	}
	c := t.newContact(req)
	c.lease = l
	return busyGroup(l.Host, c.join(req))
}

// admit also returns the Crawl-delay of the site.
func (t *Transport) admit(ctx context.Context, l frontier.Lease, u *url.URL) (delay time.Duration, err error) {
	if t.Robots == nil || l.ContactOnly() {
		return 0, nil
	}
	v, other, err := t.Robots.claim(siteOf(u))
	switch {
	case err != nil:
		return 0, err
	case other != nil:
		return 0, &BusyError{Host: l.Host, Until: time.Now().Add(inProgress)}
	case v.rules != nil && time.Now().Before(v.rest):
		return 0, &BusyError{Host: l.Host, Until: v.rest, delay: v.delay}
	case v.rules != nil:
		return v.delay, v.check(u)
	}
	slot, err := t.f.HandBack(l)
	if err != nil {
		t.Robots.release(siteOf(u))
		return 0, err
	}
	q := &question{slot: &slot}
	err = t.Robots.read(context.WithValue(ctx, questionKey{}, q), t, siteOf(u))
	if q.slot != nil { // nothing was sent
		err = errors.Join(err, t.f.Done(slot, frontier.Outcome{Result: frontier.Requeue, Uncontacted: true}))
	}
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrHandedBack, err)
	}
	return 0, ErrHandedBack
}
