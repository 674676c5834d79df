// This file keeps hosts reserved while clients of an earlier Service may still be contacting them.

package serve

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/seed-7440039f/frontier"
)

// inherited is a contact that a client of an earlier Service may still have open.
type inherited struct {
	host string

	mu    sync.Mutex
	until time.Time      // guarded by mu
	open  int            // guarded by mu; its leases that have not ended
	lease frontier.Lease // guarded by mu; reserves the host; zero until it arrives

	// For the frontier the late ends of a bundle are several contacts. But a bundle's failures count
	// once, and a lease that ends after one that slowed the host says nothing about the slower pace.
	failed bool // guarded by mu; one of its leases has failed
	slowed bool // guarded by mu; one failed in a way that made the frontier back off
}

// inherit reserves the hosts of left until their contacts end. It returns once the frontier has
// registered all of them.
func (s *Service) inherit(left []*inherited) error {
	for _, in := range left {
		s.calls.Add(1)
		ready := make(chan struct{})
		go func() {
			defer s.calls.Done()
			s.occupy(in, ready)
		}()
	asking:
		for { // until the Contact waits ahead of the host's URLs
			h, err := s.views.Host(s.closing, in.host)
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

// occupy takes a contact lease of the host, and holds it until the inherited contact ends.
func (s *Service) occupy(in *inherited, ready chan<- struct{}) {
	defer close(ready)
	var l frontier.Lease
	err := context.DeadlineExceeded
	for until := in.deadline(); errors.Is(err, context.DeadlineExceeded) && s.f.Now().Before(until); until = in.deadline() { // a client may have extended it
		ctx, cancel := context.WithTimeout(s.closing, until.Sub(s.f.Now()))
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
		err = s.f.Done(l, frontier.Outcome{Result: frontier.Requeue, Uncontacted: true}) // the ends have moved the host's clock
	} else {
		in.lease = l
		err = s.f.Extend(&in.lease, min(longestLease, max(time.Millisecond, in.until.Sub(s.f.Now()))))
	}
	if err != nil && !errors.Is(err, frontier.ErrNotLeased) && !errors.Is(err, frontier.ErrClosed) {
		s.log.Error("serve: a host is left alone for longer", "host", in.host, "error", err)
	}
}

// deadline returns when the contact ends at the latest.
func (in *inherited) deadline() time.Time {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.until
}

// gapOf returns the pause that a host needs after a contact.
func (s *Service) gapOf(host string) time.Duration {
	gap := s.f.DelayOf(host).Delay(host, frontier.Outcome{})
	if h, err := s.views.Host(s.closing, host); err == nil {
		gap = max(gap, h.CrawlDelay)
	}
	return gap
}

// lateID ends the contact of a lease that an earlier Service handed out. If the outcome is invalid it
// returns an error, and the contact stays open.
//
// Each outcome takes effect when it arrives, like that of any expired lease: the other leases of the
// bundle, and the one that reserves the host, may never end.
func (s *Service) lateID(id string, o frontier.Outcome) error {
	in := s.contacts.inherits(id)
	if in == nil {
		return nil
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if s.contacts.inherits(id) == nil {
		return nil // another call has ended it
	}
	o.Add = nil
	l, failed := in.lease, o.Result == frontier.Failed
	slow := failed && o.Failure.Slows()
	if in.open > 1 || l.Token() == 0 { // the host stays reserved
		l, _ = frontier.RestoreLease(id, frontier.Lease{Host: in.host})
		if (in.slowed || in.failed && failed && !slow) && o.Result < frontier.Requeue && !o.Uncontacted {
			if o.Result, o.Next = frontier.Requeue, (time.Time{}); failed {
				o.Failure = 0
			}
		}
	}
	err := s.f.Done(l, o)
	if errors.Is(err, frontier.ErrOutcome) {
		return err
	}
	if err != nil && !errors.Is(err, frontier.ErrNotLeased) && !errors.Is(err, frontier.ErrClosed) {
		s.log.Error("serve: the end of an earlier contact was not stored", "host", in.host, "error", err)
	}
	s.contacts.ended(id)
	in.open--
	in.failed, in.slowed = in.failed || failed, in.slowed || slow
	return nil
}

// lateExtend reserves a host for longer when a client extends its inherited lease.
func (s *Service) lateExtend(id string, d time.Duration) {
	until := s.f.Now().Add(d)
	in := s.contacts.extended(id, until)
	if in == nil {
		return
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.open > 1 && until.Before(in.until) {
		return // another lease of the bundle lasts longer
	}
	if in.until = until; in.lease.Token() != 0 {
		_ = s.f.Extend(&in.lease, d) // on failure the lease has expired, and so has the contact
	}
}

// Late reports that a client has fetched a URL that this Service did not hand out. If an earlier one did,
// its contact with the host ends.
func (s *Service) Late(crawl uint32, url string, o frontier.Outcome) {
	if id := s.contacts.idOf(crawl, url); id != "" {
		_ = s.lateID(id, o) // an invalid outcome ends nothing
	}
}

// Take hands out leases as Frontier.Take does, and records the client. client is its ClientName.
func (s *Service) Take(ctx context.Context, client string, o frontier.TakeOptions) ([]frontier.Lease, error) {
	leases, err := s.f.Take(ctx, o)
	if err != nil {
		return nil, err
	}
	if err := s.contacts.began(ctx, client, leases...); err != nil {
		s.giveBack(leases)
		return nil, err
	}
	return leases, nil
}

// DoneAll ends leases as Frontier.DoneAll does.
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

// Done ends a lease as Frontier.Done does.
func (s *Service) Done(l frontier.Lease, o frontier.Outcome) error {
	err := s.f.Done(l, o)
	if err == nil || errors.Is(err, frontier.ErrNotLeased) {
		s.contacts.ended(l.ID())
	}
	return err
}
