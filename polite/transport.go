// This file has the Transport: how a request waits for its turn.

package polite

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"sync"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/internal/faults"
	"github.com/seed-7440039f/frontier/internal/unit"
)

// Frontier is what a Transport needs of its frontier: a *frontier.Frontier, or a *client.Client of a
// served one. It must describe its hosts, too: a type that wraps a *frontier.Frontier embeds an
// inspect.Frontier in its place.
type Frontier interface {
	HostKey(url string) (string, error)
	Contact(ctx context.Context, host string) (frontier.Lease, error)
	Join(l *frontier.Lease, group string) error
	HandBack(l frontier.Lease) (frontier.Lease, error)
	Done(l frontier.Lease, o frontier.Outcome) error
}

// described is a Frontier that describes its hosts.
type described interface {
	Frontier
	Host(ctx context.Context, host string) (inspect.Host, error)
}

// Transport is an http.RoundTripper that contacts each host one request at a time, and leaves it
// alone between requests for as long as the Frontier says. Set its fields before its first use. It
// is safe for concurrent use; do not copy it.
type Transport struct {
	// Frontier has the hosts' clocks. All Transports and workers of a process that should be
	// polite together must share it. Nil means one in memory for this Transport alone, open
	// until the process ends: a program that makes many Transports should set one, and close it.
	Frontier Frontier
	// Base sends the requests. Nil means an http.Transport like http.DefaultTransport that connects
	// to the address whose turn it is.
	Base http.RoundTripper
	// Robots, if set, is asked before each request whether it is allowed. A request that has no
	// User-Agent is sent with Robots.Agent.
	Robots *Robots
	// MaxWait is how long a request waits for its turn. If that is not enough, it fails with a
	// *BusyError, at once if the time is known. Zero means as long as its context lasts.
	MaxWait time.Duration
	// Timeout bounds each contact, from the host's turn to the end of the body. It does not count
	// the wait, as http.Client.Timeout does. Zero, or more than the lease lasts, means until the
	// lease ends (frontier.Options.LeaseTime).
	Timeout time.Duration
	// Judge decides what an answer, or an error, means for its host. Nil means OutcomeOf. It is
	// called when the body has ended, and gets the answer without it. The Transport itself fills in
	// times and Bytes.
	Judge func(*http.Response, error) frontier.Outcome
	// Lookup returns the addresses of a host name, best first. Hosts that share an address take turns:
	// they are in one group of the Frontier, named after the address or, for IPv6, its first 64 bits. Nil
	// means the system's resolver, or, if Base is set, no lookup and no groups. The Transport cannot
	// choose the address for a Base of your own: it uses the first one's group.
	Lookup func(ctx context.Context, host string) ([]netip.Addr, error)
	// Exempt lists networks whose hosts make no group, such as those of content delivery networks.
	Exempt []netip.Prefix

	once    sync.Once
	f       described
	err     error // of opening f
	sending http.RoundTripper
	proxy   func(*http.Request) (*url.URL, error) // of sending; nil: none
	tunnels bool                                  // dial opens them, not net/http
	book    addressBook
}

var _ http.RoundTripper = (*Transport)(nil)

// start sets up what the fields leave open.
func (t *Transport) start() error {
	t.once.Do(func() {
		wrong := faults.List(unit.CheckAll("", t))
		if t.Robots != nil {
			wrong.Add(t.Robots.check()...)
		}
		if t.err = wrong.Of("polite"); t.err != nil {
			return
		}
		t.sending = t.Base
		if t.sending == nil {
			t.sending = t.newBase()
		} else if direct, ok := t.sending.(*http.Transport); ok {
			t.proxy = direct.Proxy
		}
		f := t.Frontier
		if f == nil {
			f, t.err = frontier.Open(context.Background(), frontier.Options{KeepOpen: true})
		}
		if t.err == nil {
			t.f, t.err = inspect.Of[described](f)
		}
		if t.err != nil {
			t.err = fmt.Errorf("polite: %w", t.err)
		}
	})
	return t.err
}

// RoundTrip implements http.RoundTripper. It waits until the host of the request, and its group, may be
// contacted. The contact ends when the response's body has been read to its end, or is closed. Errors of
// the wait are the request context's, frontier.ErrClosed, *BusyError, and, with Robots, *DeniedError and
// *UnreachableError.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	called := time.Now()
	c, err := t.turn(req)
	if err != nil {
		closeBody(req)
		return nil, err
	}
	return c.roundTrip(req, called)
}

// closeBody closes the body of a request that is not sent, as a RoundTripper must.
func closeBody(req *http.Request) {
	if req.Body != nil {
		req.Body.Close()
	}
}

// CloseIdleConnections closes the connections that Base keeps for later requests, for
// http.Client.CloseIdleConnections.
func (t *Transport) CloseIdleConnections() {
	if t.start() != nil {
		return
	}
	if c, ok := t.sending.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// turn waits until req may be sent.
func (t *Transport) turn(req *http.Request) (*contact, error) {
	if err := t.start(); err != nil {
		return nil, err
	}
	if req.URL == nil {
		return nil, errors.New("polite: the request has no URL")
	}
	ctx := req.Context()
	host, err := t.f.HostKey(contacted(req.URL))
	if err != nil {
		return nil, err
	}
	if q := questionOf(ctx); q != nil {
		if q.slot != nil && q.slot.Host == host {
			c := t.newContact(req)
			c.lease, c.own = *q.slot, true
			if err := c.join(req); err != nil {
				return nil, busyGroup(host, err)
			}
			q.slot = nil
			return c, nil
		}
		return t.contact(req, host, 0)
	}
	v := visitOf(ctx)
	if v != nil {
		leased, err := v.claim(req, host)
		if err != nil {
			return nil, err
		}
		if leased {
			return v.begin(t, req)
		}
	}
	if t.Robots == nil {
		return t.contact(req, host, 0)
	}
	rules, err := t.Robots.rules(ctx, t, req.URL)
	if err == nil {
		err = rules.check(req.URL)
	}
	if err == nil && time.Now().Before(rules.rest) {
		err = t.postpone(ctx, host, rules)
	}
	if err != nil {
		return nil, err
	}
	return t.contact(req, host, rules.delay)
}

// contacted returns a URL of the host that a request for u contacts, which Opaque does not change.
func contacted(u *url.URL) string {
	if u.Opaque == "" {
		return u.String()
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: "/"}).String()
}

// busyGroup returns a *BusyError for a group that may not be contacted now.
func busyGroup(host string, err error) error {
	if errors.Is(err, frontier.ErrGroupBusy) {
		return &BusyError{Host: host}
	}
	return err
}

// contact waits for a lease of a host, and for its group. Many goroutines wait here, so its frame
// is small: no Lease is on the stack.
func (t *Transport) contact(req *http.Request, host string, delay time.Duration) (*contact, error) {
	c := t.newContact(req)
	c.own, c.delay = true, delay
	until := time.Now().Add(t.MaxWait)
	for {
		if err := c.wait(req.Context(), host, until); err != nil {
			return nil, err
		}
		err := c.join(req)
		if err == nil && c.left() > 0 {
			return c, nil
		} else if err == nil {
			err = frontier.ErrNotLeased // Lookup took too long
		}
		o := &frontier.Outcome{Result: frontier.Requeue, Uncontacted: true}
		if errors.Is(err, frontier.ErrGroupBusy) {
			o.RetryAfter = rejoin
		}
		if done := c.f.Done(c.lease, *o); done != nil && !errors.Is(done, frontier.ErrNotLeased) {
			return nil, errors.Join(err, done)
		}
		if !errors.Is(err, frontier.ErrGroupBusy) && !errors.Is(err, frontier.ErrNotLeased) {
			return nil, err
		}
	}
}

// rejoin keeps a host in the group that it must wait for, until its turn is requested again.
const rejoin = 100 * time.Millisecond

// wait gets a lease for contact only.
func (c *contact) wait(ctx context.Context, host string, until time.Time) (err error) {
	if c.t.MaxWait > 0 {
		return c.waitBriefly(ctx, host, until)
	}
	c.lease, err = c.f.Contact(ctx, host)
	return err
}

// waitBriefly is wait, but gives up at once if the lease cannot come in time.
func (c *contact) waitBriefly(ctx context.Context, host string, until time.Time) (err error) {
	busy := &BusyError{Host: host, Until: c.freeAt(ctx, host)}
	if busy.Until.After(until) {
		return busy
	}
	limited, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	c.lease, err = c.f.Contact(limited, host)
	if err != nil && ctx.Err() == nil && limited.Err() != nil {
		busy.Until = c.freeAt(ctx, host)
		return busy
	}
	return err
}

// freeAt returns when a host's clocks next allow a contact.
func (c *contact) freeAt(ctx context.Context, host string) (at time.Time) {
	info, err := c.f.Host(ctx, host)
	if err != nil {
		return at // unknown: at once
	}
	for _, t := range []time.Time{info.Due, info.GroupDue, info.Rule.BlockedUntil} {
		if t.After(at) {
			at = t
		}
	}
	return at
}

// postpone records a host's Crawl-delay in the frontier without contacting the host.
func (t *Transport) postpone(ctx context.Context, host string, v verdict) error {
	c := &contact{t: t, f: t.f}
	if err := c.wait(ctx, host, time.Now().Add(t.MaxWait)); err != nil {
		return err
	}
	return t.f.Done(c.lease, frontier.Outcome{
		Result: frontier.Requeue, Uncontacted: true, RetryAfter: max(0, time.Until(v.rest)), CrawlDelay: v.delay,
	})
}
