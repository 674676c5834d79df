// This file lets a request use a lease that its caller holds.

package polite

import (
	"context"
	"errors"
	"net/http"
	"sync"

	"github.com/seed-7440039f/frontier"
)

// Visit is the use of a lease by requests under the context that WithLease returned with it.
type Visit struct {
	ctx context.Context

	mu      sync.Mutex
	lease   frontier.Lease
	used    bool
	request *http.Request // that used the lease
	contact *contact      // its contact
	err     error         // why there was none
}

type visitKey struct{}

// WithLease returns a context for the request that a lease of the Transport's Frontier is for. The
// first request to the lease's host under that context uses the lease instead of waiting for a turn
// of its own. The lease stays the caller's: end it with Done and the Outcome of the Visit, after
// all processing of the page.
//
//	ctx, visit := polite.WithLease(ctx, lease)
//	req, err := http.NewRequestWithContext(ctx, "GET", lease.Entry.URL, nil)
//	...
//	resp, err := client.Do(req) // these three lines are visit.Get(client)
//	...
//	err = f.Done(lease, visit.Outcome())
//
// A second request to the host fails with ErrLeaseUsed, and a redirect with a *RedirectError:
// neither may follow at once, and a wait for another host would hold this one up. An http.Client
// whose CheckRedirect is LastResponse returns the answer that redirects instead of the error. In
// both cases Visit.Outcome adds the target to the frontier. Requests to other hosts wait for turns
// of their own while the lease is out: two leases that wait for each other's hosts do so until one
// ends, so set Transport.MaxWait.
//
// With Transport.Robots, a request for which robots.txt must be read first fails with
// ErrHandedBack; see Transport.Admit.
func WithLease(ctx context.Context, l frontier.Lease) (context.Context, *Visit) {
	v := &Visit{lease: l}
	v.ctx = context.WithValue(ctx, visitKey{}, v)
	return v.ctx, v
}

// Get requests the URL of the lease.
func (v *Visit) Get(client *http.Client) (*http.Response, error) {
	req, err := http.NewRequestWithContext(v.ctx, http.MethodGet, v.lease.Entry.URL, nil)
	if err != nil {
		return nil, err
	}
	return client.Do(req)
}

func visitOf(ctx context.Context) *Visit {
	v, _ := ctx.Value(visitKey{}).(*Visit)
	return v
}

// LastResponse is an http.Client's CheckRedirect that does not follow redirects of requests under a
// lease. Others are followed as by default, at most ten times.
func LastResponse(req *http.Request, via []*http.Request) error {
	if visitOf(req.Context()) != nil {
		return http.ErrUseLastResponse
	}
	if len(via) >= 10 {
		return errors.New("stopped after 10 redirects")
	}
	return nil
}

// claim decides whether a request uses the lease.
func (v *Visit) claim(req *http.Request, host string) (bool, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if from := req.Response; from != nil && from.Request != nil && from.Request == v.request {
		return false, &RedirectError{From: from.Request.URL.String(), To: req.URL.String()}
	}
	if host != v.lease.Host {
		return false, nil
	}
	if v.used {
		return false, ErrLeaseUsed
	}
	v.used, v.request = true, req
	return true, nil
}

// begin starts the contact of the lease.
func (v *Visit) begin(t *Transport, req *http.Request) (*contact, error) {
	delay, err := t.admit(v.ctx, v.lease, req.URL)
	c := t.newContact(req)
	c.lease, c.delay = v.lease, delay
	if err == nil {
		err = busyGroup(v.lease.Host, c.join(req))
	}
	if err == nil && c.left() <= 0 {
		err = frontier.ErrNotLeased
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if err != nil {
		v.err = err
		return nil, err
	}
	v.contact = c
	return c, nil
}

// Outcome returns how the requests under the lease ended, for Done. It closes the body of the answer if
// that is still open. The target of a redirect is in Add, with the depth and weight of the lease's URL.
// If no request was sent, the Result is Requeue if the URL must come again, as when robots.txt has to be
// read first, otherwise Denied.
func (v *Visit) Outcome() frontier.Outcome {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case v.contact != nil:
	case v.err != nil:
		o := outcomeOf(nil, v.err)
		o.Uncontacted = o.Result >= frontier.Denied
		return o
	case v.used, v.ctx.Err() != nil: // it is still to be sent, or Lookup panicked
		return frontier.Outcome{Result: frontier.Requeue, Uncontacted: true}
	default:
		return frontier.Outcome{Result: frontier.Denied, Uncontacted: true}
	}
	o := v.contact.outcomeNow(nil)
	if e, ok := v.target(); ok {
		o.Add = append(o.Add, e)
	}
	return o
}

// target returns the entry for the target of a redirect.
func (v *Visit) target() (frontier.Entry, bool) {
	resp, from := v.contact.resp, v.lease.Entry
	if resp == nil || from.URL == "" {
		return frontier.Entry{}, false
	}
	return Redirect(from, resp)
}

// Redirect returns the entry for the target of a redirect, which has the depth, weight and crawl of
// the URL that was requested. It returns false if resp is no redirect that a GET can follow.
func Redirect(from frontier.Entry, resp *http.Response) (frontier.Entry, bool) {
	to := redirect(resp)
	if to == nil {
		return frontier.Entry{}, false
	}
	if s := resp.StatusCode; s == http.StatusTemporaryRedirect || s == http.StatusPermanentRedirect {
		if m := resp.Request.Method; m != "" && m != http.MethodGet && m != http.MethodHead {
			return frontier.Entry{}, false
		}
	}
	return frontier.Entry{URL: to.String(), Depth: from.Depth, Weight: from.Weight, Crawl: from.Crawl, AsIs: true}, true
}
