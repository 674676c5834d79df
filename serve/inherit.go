// This file leaves hosts alone that clients of an earlier Service may be contacting.

package serve

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/seed-7440039f/frontier"
)

// inherited is a contact that a client of an earlier Service may have under way.
type inherited struct {
	host string

	mu    sync.Mutex
	until time.Time        // guarded by mu
	open  int              // guarded by mu; its leases whose end is not known
	lease frontier.Lease   // guarded by mu; keeps the host; zero: it has not come yet
	how   frontier.Outcome // guarded by mu; how it ended, if open is 0
}

// inherit leaves the hosts of contacts alone until these have ended. It returns when the
// frontier knows of all.
func (s *Service) inherit(left []*inherited) error {
	for _, in := range left {
		s.calls.Add(1)
		ready := make(chan struct{})
		go func() {
			defer s.calls.Done()
			s.occupy(in, ready)
		}()
	asking:
		for { // until the Contact is in front of the host's URLs
			h, err := s.f.Host(s.closing, in.host)
			if errors.Is(err, frontier.ErrClosed) {
				return fmt.Errorf("serve: contacts: %w", err)
			}
			if err != nil && !errors.Is(err, frontier.ErrUnknownHost) {
				s.log.Error("serve: a host may be contacted while a client fetches from it", "host", in.host, "error", err)
				break
			}
			if h.Awaited {
				break
			}
			select {
			case <-ready:
				break asking
			case <-time.After(time.Millisecond):
			}
		}
	}
	return nil
}

// occupy gets a contact with a host, and keeps it for as long as the one that is left over.
func (s *Service) occupy(in *inherited, ready chan<- struct{}) {
	defer close(ready)
	var l frontier.Lease
	err := context.DeadlineExceeded
	for until := in.deadline(); errors.Is(err, context.DeadlineExceeded) && time.Now().Before(until); until = in.deadline() { // it may be extended
		ctx, cancel := context.WithDeadline(s.closing, until)
		l, err = s.f.Contact(ctx, in.host)
		cancel()
	}
	if err != nil {
		if s.closing.Err() == nil && !errors.Is(err, context.DeadlineExceeded) {
			s.log.Error("serve: a host may be contacted while a client fetches from it", "host", in.host, "error", err)
		}
		return
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.open == 0 {
		err = s.f.Done(l, s.sinceThen(in))
	} else {
		in.lease = l
		err = s.f.Extend(&in.lease, max(time.Millisecond, time.Until(in.until)))
	}
	if err != nil && !errors.Is(err, frontier.ErrNotLeased) && !errors.Is(err, frontier.ErrClosed) {
		s.log.Error("serve: a host is left alone for longer", "host", in.host, "error", err)
	}
}

// deadline is until when a contact may last.
func (in *inherited) deadline() time.Time {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.until
}

// sinceThen is the outcome of a contact that ended before its host could be kept: what is left of the
// delay since then.
func (s *Service) sinceThen(in *inherited) frontier.Outcome {
	gap := max(s.gapOf(in.host, in.how), in.how.RetryAfter)
	o := frontier.Outcome{Result: frontier.Requeue, Uncontacted: true, CrawlDelay: in.how.CrawlDelay}
	if left := time.Until(in.how.Ended.Add(gap)); left > 0 {
		o.RetryAfter = max(left, time.Microsecond)
	}
	return o
}

// gapOf is how long a host is left alone after a contact.
func (s *Service) gapOf(host string, how frontier.Outcome) time.Duration {
	gap := s.f.DelayOf(host).Delay(host, how)
	if h, err := s.f.Host(s.closing, host); err == nil {
		gap = max(gap, h.CrawlDelay)
	}
	return gap
}

// late ends a contact that was left over, of the lease with an ID or of a URL.
func (s *Service) late(in *inherited, o frontier.Outcome) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.open--; in.open > 0 {
		return
	}
	in.how = frontier.Outcome{Ended: o.Ended, Duration: o.Duration, RetryAfter: o.RetryAfter, CrawlDelay: o.CrawlDelay}
	if o.Result == frontier.Failed {
		in.how.Result, in.how.Failure = o.Result, o.Failure
	}
	if in.how.RetryAfter > 0 {
		in.how.RetryAfter = max(in.how.RetryAfter, time.Microsecond)
	}
	if in.how.Ended.IsZero() {
		in.how.Ended = time.Now()
	}
	if in.lease.Token() == 0 {
		return // occupy does it
	}
	if err := s.f.Done(in.lease, in.how); err != nil && !errors.Is(err, frontier.ErrNotLeased) {
		s.log.Error("serve: a host is left alone until a deadline", "host", in.host, "error", err)
	}
}

// lateID ends the contact of a lease that an earlier Service handed out.
func (s *Service) lateID(id string, o frontier.Outcome) {
	if in := s.contacts.inherits(id); in != nil {
		s.contacts.ended(id)
		s.late(in, o)
	}
}

// lateExtend keeps a host for longer whose client goes on, although the lease has ended.
func (s *Service) lateExtend(id string, d time.Duration) {
	until := time.Now().Add(d)
	in := s.contacts.extended(id, until)
	if in == nil {
		return
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.open > 1 && until.Before(in.until) {
		return // another lease of the bundle may last longer
	}
	if in.until = until; in.lease.Token() != 0 {
		_ = s.f.Extend(&in.lease, d) // if it is over, so is the deadline
	}
}

// Late says that a client has fetched a URL that this Service has not handed out. If an
// earlier one did, the contact with its host has ended.
func (s *Service) Late(crawl uint32, url string, o frontier.Outcome) {
	if id := s.contacts.idOf(crawl, url); id != "" {
		s.lateID(id, o)
	}
}

// Take hands out leases, as the frontier's does.
func (s *Service) Take(ctx context.Context, o frontier.TakeOptions) ([]frontier.Lease, error) {
	leases, err := s.f.Take(ctx, o)
	if err != nil {
		return nil, err
	}
	if err := s.contacts.began(leases...); err != nil {
		s.giveBack(leases)
		return nil, err
	}
	return leases, nil
}

// DoneAll ends leases, as the frontier's does.
func (s *Service) DoneAll(ctx context.Context, ends []frontier.End) []frontier.Ended {
	done := s.f.DoneAll(ctx, ends)
	over := make([]string, 0, len(done))
	for i := range done {
		if done[i].Verdicts != nil || errors.Is(done[i].Err, frontier.ErrNotLeased) {
			over = append(over, ends[i].Lease.ID())
		}
	}
	s.contacts.ended(over...)
	return done
}

// Done ends a lease, as the frontier's does.
func (s *Service) Done(l frontier.Lease, o frontier.Outcome) error {
	err := s.f.Done(l, o)
	if err == nil || errors.Is(err, frontier.ErrNotLeased) {
		s.contacts.ended(l.ID())
	}
	return err
}
