// This file answers requests that take leases or change them.

package serve

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/console"
	"github.com/seed-7440039f/frontier/internal/jsonl"
	"github.com/seed-7440039f/frontier/internal/unit"
	"github.com/seed-7440039f/frontier/scope"
)

// longestLease is the frontier's own bound on a lease's length.
const longestLease = 30 * 24 * time.Hour

const (
	maxWait   = time.Minute
	maxLeases = 10_000 // per response
	keepAlive = 15 * time.Second
)

// takeRequest is the body of POST /v1/leases.
type takeRequest struct {
	Hosts   int      `json:"hosts"`
	PerHost int      `json:"per_host"`
	Max     int      `json:"max"`
	Crawls  []string `json:"crawls"`
	Host    *string  `json:"host"`
	LeaseS  float64  `json:"lease_s"`
	WaitS   float64  `json:"wait_s"`
}

// take returns the options of Frontier.Take for the request, except its crawls.
func (r *takeRequest) take(s *Service) (t frontier.TakeOptions, err error) {
	t = frontier.TakeOptions{Hosts: r.Hosts, PerHost: r.PerHost, Max: r.Max}
	if r.Hosts < 0 || r.PerHost < 0 || r.Max < 0 {
		return t, badRequest("hosts, per_host and max: want none or positive ones")
	}
	if t.Max = min(t.Max, maxLeases); t.Max == 0 {
		t.Max = min(maxLeases, max(1, min(r.Hosts, maxLeases))*max(1, min(r.PerHost, maxLeases)))
	}
	if t.Hosts == 0 { // default: as many hosts as leases
		t.Hosts = t.Max
	}
	t.Hosts, t.PerHost = min(t.Hosts, maxLeases), min(t.PerHost, maxLeases)
	if t.Lease, err = s.leaseTime(r.LeaseS); err != nil {
		return t, err
	}
	if t.Wait, err = waitTime(r.WaitS); err != nil {
		return t, err
	}
	if r.Host != nil && *r.Host != "" {
		if t.Host, err = s.host(*r.Host); err != nil {
			return t, err
		}
	}
	switch {
	case r.Crawls != nil && len(r.Crawls) == 0:
		return t, badRequest("crawls is empty: want at least one name, or no crawls at all for every one")
	case slices.Contains(r.Crawls, ""): // null, too, decodes as ""
		return t, badRequest("crawls has an empty name; that of URLs without a crawl is %s", DefaultCrawl)
	}
	return t, nil
}

// take takes leases of crawls by name. It notices crawls that get a name, or a new number, while it
// waits. It returns the crawl numbers of its last attempt.
func (c *call) take(names []string, t frontier.TakeOptions) (leases []frontier.Lease, crawls []uint32, err error) {
	c.undeadline()
	for until := time.Now().Add(t.Wait); ; {
		ctx, cancel := context.WithCancel(c.ctx)
		var leave func()
		crawls, leave = c.s.names.await(names, cancel)
		t.Crawls, t.Wait = crawls, max(0, time.Until(until))
		if leases, err = nil, frontier.ErrExhausted; len(names) == 0 || len(crawls) > 0 {
			leases, err = c.s.Take(ctx, c.client(), t)
		} else if !sleep(ctx, t.Wait) {
			err = ctx.Err()
		}
		changed := ctx.Err() != nil && c.ctx.Err() == nil
		leave()
		cancel()
		if len(leases) > 0 || !changed {
			return leases, crawls, err
		}
	}
}

func seconds(name string, x float64, most time.Duration) (time.Duration, error) {
	if !(x >= 0) || x > longestLease.Seconds() {
		return 0, badRequest("%s is %v; want 0 to %v", name, x, most.Seconds())
	}
	return time.Duration(math.Ceil(x * float64(time.Second))), nil
}

// leaseTime parses lease_s; 0 means the default.
func (s *Service) leaseTime(x float64) (time.Duration, error) {
	d, err := seconds("lease_s", x, s.o.MaxLease)
	switch {
	case err != nil:
	case d > 0 && d < time.Millisecond:
		err = badRequest("lease_s is %v; want 0.001 to %v", x, s.o.MaxLease.Seconds())
	case d > s.o.MaxLease:
		err = badRequest("lease_s is %v, in seconds; a lease lasts %v at most here (-max-lease), and may be extended again and again", x, s.o.MaxLease.Seconds())
	}
	return d, err
}

// waitTime parses wait_s, and caps it at maxWait.
func waitTime(x float64) (time.Duration, error) {
	d, err := seconds("wait_s", x, maxWait)
	if d > 0 {
		d = max(d, unit.Measured) // it may be the rest of a wait
	}
	return min(d, maxWait), err
}

// host returns the key of the host that a client named.
func (s *Service) host(name string) (string, error) {
	key, err := console.KeyOf(s.f, name)
	if err == nil {
		err = s.f.CheckScope(scope.Host(key))
	}
	if err != nil {
		return "", badRequest("host: %w", err)
	}
	return key, nil
}

// postLeases hands out leases. With wait_s it waits for the first.
func (s *Service) postLeases(c *call) error {
	var r takeRequest
	if err := c.decode(&r); err != nil {
		return err
	}
	defer c.untilClosing()()
	t, err := r.take(s)
	if err != nil {
		return err
	}
	if t.Wait > 0 {
		over, err := c.waits()
		if err != nil {
			return err
		}
		defer over()
	}
	leases, crawls, err := c.take(r.Crawls, t)
	heldBack, isHeld := errors.AsType[*frontier.HeldError](err)
	notDue, isNotDue := errors.AsType[*frontier.NotDueError](err)
	exhausted := errors.Is(err, frontier.ErrExhausted)
	switch {
	case isNotDue:
		exhausted = s.nothingLeft(crawls)
	case err != nil && !exhausted:
		return err
	}
	b := make(jsonl.Writer, 0, 64+384*len(leases))
	b = append(b, `{"leases":[`...)
	for i := range leases {
		if i > 0 {
			b = append(b, ',')
		}
		b = s.appendLease(b, &leases[i], c.asked)
	}
	b = append(b, ']')
	if len(leases) == 0 {
		if isNotDue && !exhausted {
			s.appendWait(&b, notDue.Next)
		}
		b.Bool("exhausted", exhausted)
		if isHeld {
			b.Int("held", int64(heldBack.Held))
		}
	}
	b = append(b, '}', '\n')
	return c.lend(leases, b)
}

// lend responds with leases. It gives them back to the frontier if it cannot write the whole response.
func (c *call) lend(leases []frontier.Lease, b []byte) error {
	err := c.ctx.Err()
	if err == nil {
		err = c.s.room.take(0, int64(len(b))) // held until the client has read it
	}
	if err != nil {
		c.s.giveBack(leases)
		return err
	}
	defer c.s.room.used.Add(-int64(len(b)))
	if c.send(http.StatusOK, "application/json", b); c.n < len(b) {
		c.s.giveBack(leases)
	}
	return nil
}

// nothingLeft reports whether no URL of the crawls can ever be handed out; an empty list means all
// crawls.
func (s *Service) nothingLeft(crawls []uint32) bool {
	x := s.f.Stats()
	left := x.Waiting + x.Scheduled + x.Leased
	if len(crawls) > 0 {
		left = 0
		for _, id := range crawls {
			c, _ := s.views.Crawl(id)
			left += c.Waiting + c.Scheduled + c.Leased
		}
	}
	return left+x.Pending == 0
}

// stream is one POST /v1/stream.
type stream struct {
	mu     sync.Mutex
	leases map[uint64]time.Time // guarded by mu; deadline by token
	wake   chan struct{}        // receives when a lease has ended
}

func (st *stream) out(l frontier.Lease) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.leases[l.Token()] = l.Deadline
}

// over removes a lease that has ended.
func (st *stream) over(token uint64) {
	st.mu.Lock()
	delete(st.leases, token)
	st.mu.Unlock()
	select {
	case st.wake <- struct{}{}:
	default:
	}
}

// expire removes leases past their deadline. It returns how many remain, the next deadline, and the
// tokens removed.
func (st *stream) expire(now time.Time) (n int, next time.Time, ended []uint64) {
	st.mu.Lock()
	defer st.mu.Unlock()
	for token, deadline := range st.leases {
		switch {
		case !deadline.After(now):
			delete(st.leases, token)
			ended = append(ended, token)
		case next.IsZero() || deadline.Before(next):
			next = deadline
		}
	}
	return len(st.leases), next, ended
}

// tokens drains the stream: it removes all leases and returns their tokens.
func (st *stream) tokens() (all []uint64) {
	st.mu.Lock()
	defer st.mu.Unlock()
	for token := range st.leases {
		all = append(all, token)
	}
	clear(st.leases)
	return all
}

// streamLeases hands out leases while the client reads, with at most max outstanding.
func (s *Service) streamLeases(c *call) error {
	var r takeRequest
	if err := c.decode(&r); err != nil {
		return err
	}
	if r.WaitS != 0 {
		return badRequest("wait_s: a stream waits for as long as it lasts")
	}
	r.Max = cmp.Or(r.Max, 64)
	over, err := c.waits()
	if err != nil {
		return err
	}
	defer over()
	defer c.untilClosing()()
	t, err := r.take(s)
	if err != nil {
		return err
	}
	most := t.Max
	st := &stream{leases: map[uint64]time.Time{}, wake: make(chan struct{}, 1)}
	defer func() { s.streams.drop(st.tokens()...) }()
	c.undeadline()
	c.send(http.StatusOK, "application/x-ndjson", nil)
	if err := c.flush(); err != nil {
		return err
	}
	for c.ctx.Err() == nil {
		out, next, ended := st.expire(s.f.Now())
		s.streams.drop(ended...)
		var leases []frontier.Lease
		if out < most {
			t.Max, t.Wait = most-out, keepAlive
			if leases, _, err = c.take(r.Crawls, t); err != nil && !errors.Is(err, frontier.ErrNotDue) && !errors.Is(err, frontier.ErrExhausted) {
				return err
			}
		} else if !st.wait(c.ctx, s.f.Now(), next) {
			continue // a lease has ended
		}
		b := make([]byte, 0, 16+384*len(leases))
		for i := range leases {
			s.streams.set(leases[i].Token(), st)
			st.out(leases[i])
			b = append(s.appendLease(b, &leases[i], c.asked), '\n')
		}
		if len(leases) == 0 {
			b = append(b, '\n')
		}
		if err := s.room.take(0, int64(len(b))); err != nil {
			s.giveBack(leases)
			return err
		}
		err := c.stream(b)
		s.room.used.Add(-int64(len(b)))
		if err != nil {
			return nil // the client may have read some: all stay outstanding
		}
	}
	return nil
}

// sleep waits for d. It returns false if ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// wait waits until a lease ends, the deadline passes or ctx ends. It returns true if none did for
// keepAlive: the stream then shows the client that it lives.
func (st *stream) wait(ctx context.Context, now, deadline time.Time) bool {
	d := keepAlive
	if !deadline.IsZero() {
		d = max(0, min(d, deadline.Sub(now)))
	}
	select {
	case <-st.wake:
		return false
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return d == keepAlive
	}
}

// lease returns the lease named in the path.
func (c *call) lease() (frontier.Lease, error) { return c.s.lease(c.r.PathValue("id")) }

// lease finds a lease by its ID. A malformed ID counts as one that has ended.
func (s *Service) lease(id string) (frontier.Lease, error) {
	l, err := s.f.LeaseByID(id)
	if err != nil && !errors.Is(err, frontier.ErrClosed) {
		err = frontier.ErrNotLeased
	}
	return l, err
}

// appendWait appends the time from now until t, rounded up, unless t is zero.
func (s *Service) appendWait(w *jsonl.Writer, t time.Time) {
	if !t.IsZero() {
		appendSpan(w, "next_s", max(0, t.Sub(s.f.Now())+time.Millisecond-1))
	}
}

// appendOne appends a lease, and the pause that a client must leave if it fetches robots.txt under it.
func (c *call) appendOne(l *frontier.Lease) []byte {
	if l.Gap == 0 {
		l.Gap = c.s.gapOf(l.Host)
	}
	b := c.s.appendLease(nil, l, c.asked)
	if l.Gap == 0 {
		b = append(b[:len(b)-1], `,"gap_s":0}`...)
	}
	return append(b, '\n')
}

// replyLease responds with a lease.
func (c *call) replyLease(l *frontier.Lease) error {
	c.send(http.StatusOK, "application/json", c.appendOne(l))
	return nil
}

// getLease responds with a lease's current state. Of several leases it leaves out those that have ended.
func (s *Service) getLease(c *call) error {
	if ids := strings.Split(c.r.PathValue("id"), ","); len(ids) > 1 {
		b := []byte(`{"leases":[`)
		for _, id := range ids {
			if l, err := s.lease(id); err == nil {
				b = append(s.appendLease(b, &l, c.asked), ',')
			}
		}
		c.send(http.StatusOK, "application/json", append(bytes.TrimSuffix(b, []byte(",")), "]}\n"...))
		return nil
	}
	l, err := c.lease()
	if err != nil {
		return err
	}
	return c.replyLease(&l)
}

// postExtend moves a lease's deadline.
func (s *Service) postExtend(c *call) error {
	var r struct {
		LeaseS float64 `json:"lease_s"`
	}
	if err := c.decode(&r); err != nil {
		return err
	}
	d, err := s.leaseTime(r.LeaseS)
	if err != nil {
		return err
	}
	if d == 0 {
		return badRequest("lease_s is missing")
	}
	l, err := c.lease()
	if err == nil {
		err = s.f.Extend(&l, d)
	}
	if errors.Is(err, frontier.ErrNotLeased) {
		s.lateExtend(c.r.PathValue("id"), d)
	}
	if err == nil {
		err = s.contacts.changed(c.ctx, l.ID(), l)
	}
	if err != nil {
		return err
	}
	s.streams.update(l, l)
	return c.replyLease(&l)
}

// postHandBack returns a URL, and responds with a lease for a contact only.
func (s *Service) postHandBack(c *call) error {
	if err := c.decode(&struct{}{}); err != nil {
		return err
	}
	l, err := c.lease()
	if err != nil {
		return err
	}
	contact, err := s.f.HandBack(l)
	if err != nil {
		return err
	}
	s.streams.update(l, contact)
	if err := s.contacts.changed(c.ctx, l.ID(), contact); err != nil {
		s.giveBack([]frontier.Lease{contact})
		return err
	}
	return c.replyLease(&contact)
}

// postJoin puts a lease's host into a group.
func (s *Service) postJoin(c *call) error {
	var r struct {
		Group string `json:"group"`
	}
	if err := c.decode(&r); err != nil {
		return err
	}
	if r.Group == "" || len(r.Group) > 255 {
		return badRequest("group has %d bytes; want 1 to 255", len(r.Group))
	}
	l, err := c.lease()
	if err == nil {
		err = s.f.Join(&l, r.Group)
	}
	if err != nil {
		return err
	}
	return c.replyLease(&l)
}

// postContact waits until a host may be contacted.
func (s *Service) postContact(c *call) error {
	var r struct {
		WaitS  float64 `json:"wait_s"`
		LeaseS float64 `json:"lease_s"`
	}
	if err := c.decode(&r); err != nil {
		return err
	}
	wait, err := waitTime(r.WaitS)
	if err != nil {
		return err
	}
	lease, err := s.leaseTime(r.LeaseS)
	if err != nil {
		return err
	}
	host, err := s.host(c.r.PathValue("host"))
	if err != nil {
		return err
	}
	over, err := c.waits()
	if err != nil {
		return err
	}
	defer over()
	c.undeadline()
	defer c.untilClosing()()
	ctx, cancel := context.WithTimeout(c.ctx, max(time.Millisecond, wait))
	defer cancel()
	l, err := s.f.Contact(ctx, host)
	switch {
	case err != nil && ctx.Err() != nil && c.ctx.Err() == nil:
		next := s.f.Now().Add(time.Second)
		if h, err := s.views.Host(c.ctx, host); err == nil && h.Due.After(next) {
			next = h.Due
		}
		w := jsonl.Writer{'{'}
		s.appendWait(&w, next)
		c.send(http.StatusOK, "application/json", append(w, '}', '\n'))
		return nil
	case err != nil:
		return fmt.Errorf("contact: %w", err)
	case lease > 0:
		err = s.f.Extend(&l, lease)
	}
	if err == nil {
		err = s.contacts.began(c.ctx, c.client(), l)
	}
	if err != nil {
		s.giveBack([]frontier.Lease{l})
		return err
	}
	return c.lend([]frontier.Lease{l}, c.appendOne(&l))
}
