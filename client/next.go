// This file takes leases: waiting calls of Next share requests.

package client

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/seed-7440039f/frontier"
)

const (
	maxLeases = 64 // per request
	maxPolls  = 4  // requests waiting at the server

	shortPause = 50 * time.Millisecond // between requests that return at once without a lease
	longPause  = time.Second
)

// waiter is a call of Next.
type waiter struct{ got chan given } // buffer of one

type given struct {
	lease frontier.Lease
	err   error
}

// Next waits for a lease, as frontier.Frontier.Next does.
func (c *Client) Next(ctx context.Context) (frontier.Lease, error) {
	if err := ctx.Err(); err != nil {
		return frontier.Lease{}, err
	}
	w := &waiter{make(chan given, 1)}
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return frontier.Lease{}, frontier.ErrClosed
	}
	c.waiters = append(c.waiters, w)
	c.askLocked()
	c.mu.Unlock()
	select {
	case g := <-w.got:
		return g.lease, g.err
	case <-ctx.Done():
	}
	c.mu.Lock()
	i := slices.Index(c.waiters, w)
	if i >= 0 {
		c.waiters = slices.Delete(c.waiters, i, i+1)
	}
	c.mu.Unlock()
	if i < 0 {
		if g := <-w.got; g.err == nil {
			return g.lease, nil
		}
	}
	return frontier.Lease{}, ctx.Err()
}

// Leases is Next in a loop, as frontier.Frontier.Leases is.
func (c *Client) Leases(ctx context.Context) iter.Seq2[frontier.Lease, error] {
	return frontier.Leases(ctx, c)
}

// Work crawls with n workers, as frontier.Frontier.Work does. After Close it returns nil, and its
// workers' leases stay outstanding until their deadlines.
func (c *Client) Work(ctx context.Context, n int, fn func(context.Context, frontier.Lease) (frontier.Outcome, error)) error {
	return frontier.Work(ctx, c, n, fn)
}

// TryNext returns a lease if there is one now, as frontier.Frontier.TryNext does. If no server is
// reachable, it returns an error.
func (c *Client) TryNext() (frontier.Lease, time.Time, error) {
	if c.isClosed() {
		return frontier.Lease{}, time.Time{}, frontier.ErrClosed
	}
	a, asked, err := c.take(1, 0)
	for range c.servers[1:] {
		if _, away := errors.AsType[*awayError](err); away {
			a, asked, err = c.take(1, 0)
		}
	}
	if err == nil && len(a.Leases) == 0 {
		if err = a.over(); err == nil {
			return frontier.Lease{}, a.at(), frontier.ErrNotDue
		}
	}
	if err != nil {
		return frontier.Lease{}, time.Time{}, err
	}
	l, err := c.leaseOf(&a.Leases[0], asked)
	return l, time.Time{}, err
}

// askLocked asks for leases for waiting calls that no request covers yet.
func (c *Client) askLocked() {
	n := min(len(c.waiters)-c.asked, maxLeases)
	if n <= 0 || c.polls == maxPolls || c.closed {
		return
	}
	c.asked += n
	c.polls++
	c.requests.Go(func() { c.poll(n) })
}

// poll asks for n leases and hands them to calls of Next.
func (c *Client) poll(n int) {
	began := time.Now()
	a, asked, err := c.take(n, c.o.Wait)
	var out []given
	for i := range a.Leases {
		l, err := c.leaseOf(&a.Leases[i], asked)
		out = append(out, given{l, err})
	}
	if len(out) == 0 && err == nil {
		if err = a.over(); err == nil {
			c.rest(began, a.at())
		}
	}
	_, away := errors.AsType[*awayError](err)
	if away {
		c.mu.Lock()
		tries := c.tries
		c.tries++
		c.mu.Unlock()
		c.pause(c.ctx, tries, err)
	}
	c.mu.Lock()
	c.asked -= n
	c.polls--
	if err != nil && !away {
		for range c.waiters {
			out = append(out, given{err: err})
		}
	}
	served := min(len(out), len(c.waiters))
	for i, w := range c.waiters[:served] {
		w.got <- out[i]
	}
	c.waiters = slices.Delete(c.waiters, 0, served)
	for _, g := range out[served:] { // their callers are gone
		if g.err == nil {
			c.returnLocked(g.lease)
		}
	}
	c.askLocked()
	c.mu.Unlock()
}

// rest waits briefly after a response that came at once without leases.
func (c *Client) rest(began, next time.Time) {
	d := shortPause
	if !next.IsZero() {
		d = max(d, min(time.Until(next), longPause))
	}
	if d -= time.Since(began); d <= 0 {
		return
	}
	select {
	case <-time.After(d):
	case <-c.ctx.Done():
	}
}

// take asks for up to n leases of different hosts. It returns when it sent the request.
func (c *Client) take(n int, wait time.Duration) (a leases, asked time.Time, err error) {
	q, err := jsonRequest(http.MethodPost, "/v1/leases", &take{
		Hosts: n, PerHost: 1, Max: n, Crawls: c.crawls, Lease: c.o.LeaseTime.Seconds(), Wait: wait.Seconds(),
	})
	if err != nil {
		return a, asked, err
	}
	err = c.once(c.ctx, q, c.o.Timeout+wait, into(&a))
	return a, q.sent, err
}

// over returns the error of a response without leases that says that none will come.
func (a *leases) over() error {
	switch {
	case a.Held > 0:
		return &frontier.HeldError{Held: a.Held}
	case a.Exhausted:
		return frontier.ErrExhausted
	}
	return nil
}

// Contact waits until a host may be contacted without a URL, as frontier.Frontier.Contact does.
func (c *Client) Contact(ctx context.Context, host string) (frontier.Lease, error) {
	for tries := 0; ; {
		if err := ctx.Err(); err != nil {
			return frontier.Lease{}, err
		}
		wait := c.o.Wait
		if t, ok := ctx.Deadline(); ok {
			wait = max(0, min(wait, time.Until(t)))
		}
		began := time.Now()
		answer := make(chan contactAnswer)
		c.mu.Lock()
		if c.closed {
			c.mu.Unlock()
			return frontier.Lease{}, frontier.ErrClosed
		}
		c.requests.Go(func() { c.contact(ctx, host, wait, answer) })
		c.mu.Unlock()
		select {
		case <-ctx.Done():
			return frontier.Lease{}, ctx.Err()
		case a := <-answer:
			_, away := errors.AsType[*awayError](a.err)
			switch {
			case away:
				c.pause(ctx, tries, a.err)
				tries++
			case errors.Is(a.err, frontier.ErrNotDue):
				c.rest(began, a.next)
			default:
				return a.lease, a.err
			}
		}
	}
}

type contactAnswer struct {
	lease frontier.Lease
	next  time.Time // with ErrNotDue: when to ask again, if known
	err   error
}

// contact asks once. It continues after the call has returned, so that no lease is lost: it gives back a
// lease that comes too late.
func (c *Client) contact(ctx context.Context, host string, wait time.Duration, answer chan<- contactAnswer) {
	q, err := jsonRequest(http.MethodPost, "/v1/hosts/"+url.PathEscape(host)+"/contact", &take{Lease: c.o.LeaseTime.Seconds(), Wait: wait.Seconds()})
	var w contact
	if err == nil {
		err = c.once(c.ctx, q, c.o.Timeout+wait, into(&w))
	}
	a := contactAnswer{next: w.at(), err: err}
	switch {
	case err != nil:
	case w.Lease == "":
		a.err = frontier.ErrNotDue
	default:
		a.lease, a.err = c.leaseOf(&w.lease, q.sent)
	}
	select {
	case answer <- a:
	case <-ctx.Done():
		if a.err == nil {
			c.mu.Lock()
			c.returnLocked(a.lease)
			c.mu.Unlock()
		}
	}
}
