// This file answers requests for leases.

package serve

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/console"
	"github.com/seed-7440039f/frontier/internal/unit"
)

// longestLease is the longest lease of a frontier.
const longestLease = 30 * 24 * time.Hour

const (
	maxWait   = time.Minute
	maxLeases = 10_000 // in one answer
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

// take is what it asks for, without its crawls.
func (r *takeRequest) take(s *Service) (t frontier.TakeOptions, err error) {
	t = frontier.TakeOptions{Hosts: r.Hosts, PerHost: r.PerHost, Max: r.Max}
	if r.Hosts < 0 || r.PerHost < 0 || r.Max < 0 {
		return t, badRequest("hosts, per_host and max: want none or positive ones")
	}
	if t.Max = min(t.Max, maxLeases); t.Max == 0 {
		t.Max = min(maxLeases, max(1, min(r.Hosts, maxLeases))*max(1, min(r.PerHost, maxLeases)))
	}
	if t.Hosts == 0 { // as many as there may be leases
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
	case slices.Contains(r.Crawls, ""): // also for null
		return t, badRequest("crawls has an empty name; that of URLs without a crawl is %s", DefaultCrawl)
	}
	return t, nil
}

// take hands out leases of crawls by their names. A crawl that comes while it waits is seen, also one that
// was forgotten and comes anew. It returns the numbers that it took from last.
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

func seconds(name string, x float64) (time.Duration, error) {
	if !(x >= 0) || x > longestLease.Seconds() {
		return 0, badRequest("%s is %v; want 0 to 2592000", name, x)
	}
	return time.Duration(math.Ceil(x * float64(time.Second))), nil
}

// leaseTime is lease_s; 0: as long as leases last.
func (s *Service) leaseTime(x float64) (time.Duration, error) {
	d, err := seconds("lease_s", x)
	switch {
	case err != nil:
	case d > 0 && d < time.Millisecond:
		err = badRequest("lease_s is %v; want 0.001 or more", x)
	case d > s.o.MaxLease:
		err = badRequest("lease_s is %v, in seconds; a lease lasts %v at most here (-max-lease), and may be extended again and again", x, s.o.MaxLease.Seconds())
	}
	return d, err
}

// waitTime parses wait_s, and caps it.
func waitTime(x float64) (time.Duration, error) {
	d, err := seconds("wait_s", x)
	if d > 0 {
		d = max(d, unit.Measured) // it may be the rest of a wait
	}
	return min(d, maxWait), err
}

// host is the key of a host that a client names.
func (s *Service) host(name string) (string, error) {
	key, err := console.KeyOf(s.f, name)
	if err == nil {
		err = s.f.CheckScope(frontier.Host(key))
	}
	if err != nil {
		return "", badRequest("host: %w", err)
	}
	return key, nil
}

// postLeases hands leases out, and waits for the first if it is asked to.
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
	b := make([]byte, 0, 64+384*len(leases))
	b = append(b, `{"leases":[`...)
	for i := range leases {
		if i > 0 {
			b = append(b, ',')
		}
		b = s.appendLease(b, &leases[i], c.asked)
	}
	b = append(b, ']')
	if len(leases) == 0 {
		if isNotDue {
			b = s.appendWait(b, notDue.Next)
		}
		if exhausted {
			b = append(b, `,"exhausted":true`...)
		}
		if isHeld {
			b = appendInt(b, "held", int(heldBack.Held))
		}
	}
	b = append(b, '}', '\n')
	return c.lend(leases, b)
}

// lend answers with leases, unless the client is gone. It gives back what cannot have reached it.
func (c *call) lend(leases []frontier.Lease, b []byte) error {
	err := c.ctx.Err()
	if err == nil {
		err = c.s.room.take(0, int64(len(b))) // until the client has read it
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

// nothingLeft reports whether the crawls have no URL that may be handed out some time; without crawls, whether
// none has.
func (s *Service) nothingLeft(crawls []uint32) bool {
	x := s.f.Stats()
	left := x.Waiting + x.Scheduled + x.Leased
	if len(crawls) > 0 {
		left = 0
		for _, id := range crawls {
			c, _ := s.f.CrawlStats(id)
			left += c.Waiting + c.Scheduled + c.Leased
		}
	}
	return left+x.Pending == 0
}

// stream is one POST /v1/stream.
type stream struct {
	mu     sync.Mutex
	leases map[uint64]time.Time // guarded by mu; by token, until when they are out
	wake   chan struct{}        // gets an element when a lease has ended
}

func (st *stream) out(l frontier.Lease) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.leases[l.Token()] = l.Deadline
}

// over forgets a lease that has ended.
func (st *stream) over(token uint64) {
	st.mu.Lock()
	delete(st.leases, token)
	st.mu.Unlock()
	select {
	case st.wake <- struct{}{}:
	default:
	}
}

// expire forgets leases whose deadline has passed, and returns how many are out, and when
// the next deadline is.
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

// tokens are those of the leases that are out.
func (st *stream) tokens() (all []uint64) {
	st.mu.Lock()
	defer st.mu.Unlock()
	for token := range st.leases {
		all = append(all, token)
	}
	clear(st.leases)
	return all
}

// streamLeases hands leases out for as long as the client reads, so that never more than max of them are out.
func (s *Service) streamLeases(c *call) error {
	var r takeRequest
	if err := c.decode(&r); err != nil {
		return err
	}
	if r.WaitS != 0 {
		return badRequest("wait_s: a stream waits for as long as it lasts")
	}
	if r.Max == 0 {
		r.Max = 64
	}
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
		err := c.write(b)
		s.room.used.Add(-int64(len(b)))
		if err != nil {
			return nil // the client may have read some of it: all stay out
		}
		if err := c.flush(); err != nil {
			return nil
		}
	}
	return nil
}

// sleep waits, and reports whether the request goes on.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// wait waits for the end of a lease, and reports whether it is time to show the client
// that the connection lives.
func (st *stream) wait(ctx context.Context, now, deadline time.Time) bool {
	d := keepAlive
	if !deadline.IsZero() {
		d = max(0, min(d, deadline.Sub(now)))
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-st.wake:
		return false
	case <-ctx.Done():
		return false
	case <-t.C:
		return d == keepAlive
	}
}

// lease returns the lease named in the path.
func (c *call) lease() (frontier.Lease, error) { return c.s.lease(c.r.PathValue("id")) }

// lease finds one by its id. An id that no lease can have is one that has ended.
func (s *Service) lease(id string) (frontier.Lease, error) {
	l, err := s.f.LeaseByID(id)
	if err != nil && !errors.Is(err, frontier.ErrClosed) {
		err = frontier.ErrNotLeased
	}
	return l, err
}

// appendWait appends how long it is until a time of the frontier's clock, unless it is zero; rounded up.
func (s *Service) appendWait(b []byte, t time.Time) []byte {
	if t.IsZero() {
		return b
	}
	return appendSpan(b, "next_s", max(0, t.Sub(s.f.Now())+time.Millisecond-1))
}

// appendOne appends a lease, and the gap that a client must leave that fetches robots.txt under it.
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

// replyLease answers with a lease.
func (c *call) replyLease(l *frontier.Lease) error {
	c.send(http.StatusOK, "application/json", c.appendOne(l))
	return nil
}

// getLease answers with a lease as it is now.
func (s *Service) getLease(c *call) error {
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
		err = s.contacts.changed(l.ID(), l)
	}
	if err != nil {
		return err
	}
	s.streams.update(l, l)
	return c.replyLease(&l)
}

// postHandBack gives a URL back, and answers with a lease for contact only.
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
	if err := s.contacts.changed(l.ID(), contact); err != nil {
		s.giveBack([]frontier.Lease{contact})
		return err
	}
	return c.replyLease(&contact)
}

// postJoin puts the host of a lease into a group.
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
		if h, err := s.f.Host(c.ctx, host); err == nil && h.Due.After(next) {
			next = h.Due
		}
		c.send(http.StatusOK, "application/json", append(s.appendWait([]byte{'{'}, next), '}', '\n'))
		return nil
	case err != nil:
		return fmt.Errorf("contact: %w", err)
	case lease > 0:
		err = s.f.Extend(&l, lease)
	}
	if err == nil {
		err = s.contacts.began(c.client(), l)
	}
	if err != nil {
		s.giveBack([]frontier.Lease{l})
		return err
	}
	return c.lend([]frontier.Lease{l}, c.appendOne(&l))
}
