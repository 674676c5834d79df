// This file hands URLs out.

package urlfrontier

import (
	"context"
	"errors"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/urlfrontier/pb"
	"google.golang.org/grpc"
)

const (
	defaultHold = 30 * time.Second
	chunk       = 100 // hosts that are asked for at once
	leastWait   = 2 * time.Millisecond
)

// wanted is what a GetURLs may get.
type wanted struct {
	key   string // empty: any
	crawl uint32 // unless any
	any   bool
	hold  time.Duration
}

// GetURLs implements the call.
func (s *Server) GetURLs(p *pb.GetParams, stream grpc.ServerStreamingServer[pb.URLInfo]) error {
	w := wanted{key: p.GetKey(), any: true, hold: time.Duration(p.GetDelayRequestable()) * time.Second}
	if w.hold == 0 {
		w.hold = defaultHold
	}
	switch item := p.GetItem().(type) {
	case *pb.GetParams_CrawlID:
		id, ok := s.svc.Crawl(item.CrawlID)
		if !ok {
			return nil
		}
		w.any, w.crawl = false, id
	case nil:
		if w.key != "" {
			s.log.Error("urlfrontier: GetURLs with a key but no crawl", "host", w.key)
			return nil
		}
	}
	most := int(p.GetMaxQueues())
	if w.key != "" {
		most = 1
	}
	deadline := time.Now().Add(s.o.Wait)
	for sent := 0; most == 0 || sent < most; {
		ask := chunk
		if most > 0 {
			ask = min(chunk, most-sent)
		}
		leases, next, err := s.takeSome(stream.Context(), w, ask)
		if err != nil {
			return statusOf(err)
		}
		if len(leases) == 0 {
			if sent > 0 || !s.waits(stream.Context(), next, deadline) {
				return nil
			}
			continue
		}
		if err := s.send(leases, stream); err != nil {
			return err
		}
		sent += len(leases)
	}
	return nil
}

// takeSome leases up to n URLs of different hosts. Without any it returns when to ask again; zero
// if time alone changes nothing.
func (s *Server) takeSome(ctx context.Context, w wanted, n int) ([]frontier.Lease, time.Time, error) {
	if s.isClosing() || !s.settings.active() {
		return nil, time.Time{}, nil
	}
	s.hand.RLock()
	defer s.hand.RUnlock()
	if w.key != "" {
		return s.takeKey(ctx, w)
	}
	var leases, missed []frontier.Lease
	defer func() { s.putBack(missed) }()
	for len(leases) < n && ctx.Err() == nil {
		l, next, err := s.svc.Frontier().TryNext()
		switch {
		case errors.Is(err, frontier.ErrNotDue), errors.Is(err, frontier.ErrExhausted):
			return leases, next, nil
		case err != nil:
			s.putBack(leases)
			return nil, time.Time{}, err
		case !w.any && l.Entry.Crawl != w.crawl:
			missed = append(missed, l)
		default:
			if s.hold(&l, w.hold) {
				leases = append(leases, l)
			}
		}
	}
	return leases, time.Time{}, ctx.Err()
}

// takeKey leases the most urgent URL of one key: it makes it the most urgent of all for
// a moment, if the host may be contacted.
func (s *Server) takeKey(ctx context.Context, w wanted) ([]frontier.Lease, time.Time, error) {
	s.keyed.Lock()
	defer s.keyed.Unlock()
	f := s.svc.Frontier()
	h, err := f.Host(ctx, w.key)
	if errors.Is(err, frontier.ErrUnknownHost) {
		return nil, time.Time{}, nil
	}
	if err != nil {
		return nil, time.Time{}, err
	}
	switch h.Reason {
	case frontier.ReasonTurn, frontier.ReasonBackQueue, frontier.ReasonReading:
	case frontier.ReasonDelay, frontier.ReasonCrawlDelay, frontier.ReasonReopened, frontier.ReasonRetryAfter, frontier.ReasonBackoff:
		return nil, h.Until, nil
	default:
		return nil, time.Time{}, nil
	}
	var best *frontier.WaitingURL
	for u, err := range f.URLs(ctx, frontier.Host(w.key), "") {
		if err != nil {
			return nil, time.Time{}, err
		}
		if (w.any || u.Entry.Crawl == w.crawl) && u.Host == w.key && (best == nil || u.Priority > best.Priority) {
			best = &u
		}
	}
	if best == nil {
		return nil, time.Time{}, nil
	}
	if _, err := f.CrawlNow(ctx, best.Entry); err != nil {
		return nil, time.Time{}, err
	}
	l, _, err := f.TryNext()
	switch {
	case errors.Is(err, frontier.ErrNotDue), errors.Is(err, frontier.ErrExhausted):
		return nil, time.Time{}, nil
	case err != nil:
		return nil, time.Time{}, err
	case l.Host != w.key || l.Entry.URL != best.Entry.URL || l.Entry.Crawl != best.Entry.Crawl:
		s.putBack([]frontier.Lease{l}) // another call was faster
		return nil, time.Time{}, nil
	case !s.hold(&l, w.hold):
		return nil, time.Time{}, nil
	}
	return []frontier.Lease{l}, time.Time{}, nil
}

// hold notes that a client has the URL of a lease.
func (s *Server) hold(l *frontier.Lease, d time.Duration) bool {
	until := time.Now().Add(d)
	if err := s.svc.Frontier().Extend(l, d); err != nil {
		return false // it has ended
	}
	b := s.book
	m := b.markOf(l.Entry.Crawl, servedURL(l.Entry.URL))
	b.mu.Lock()
	defer b.mu.Unlock()
	b.settleLocked(until.Add(-d))
	r, ok := b.findLocked(m)
	if !ok { // it came by another way than this API
		b.putLocked(m, queueName{l.Entry.Crawl, l.Host}, uint32(max(0, envelopeOf(l.Entry.Meta).Created.Unix())), false)
		r = b.refs[m]
	}
	b.holdLocked(m, r.queue, *l, until)
	return true
}

// putBack returns URLs that no client got to the heads of their queues.
func (s *Server) putBack(leases []frontier.Lease) {
	for _, l := range leases {
		s.book.take(s.book.markOf(l.Entry.Crawl, servedURL(l.Entry.URL)), time.Now())
		if err := s.svc.Frontier().Done(l, frontier.Outcome{Result: frontier.Requeue, Uncontacted: true}); err != nil && !errors.Is(err, frontier.ErrNotLeased) {
			s.log.Error("urlfrontier: a URL waits for the end of its lease", "error", err)
		}
	}
}

// send sends URLs. When the client has gone, those that were not sent wait again.
func (s *Server) send(leases []frontier.Lease, stream grpc.ServerStreamingServer[pb.URLInfo]) error {
	for i, l := range leases {
		err := stream.Send(&pb.URLInfo{
			Url: servedURL(l.Entry.URL), Key: l.Host, CrawlID: s.svc.CrawlName(l.Entry.Crawl), Metadata: listsOf(envelopeOf(l.Entry.Meta).Meta),
		})
		if err != nil {
			s.putBack(leases[i+1:]) // the client may have got this one
			return err
		}
	}
	return nil
}

// waits waits until a time, and reports whether that was before the deadline.
func (s *Server) waits(ctx context.Context, until, deadline time.Time) bool {
	if until.IsZero() || until.After(deadline) {
		return false
	}
	t := time.NewTimer(max(leastWait, time.Until(until)))
	defer t.Stop()
	select {
	case <-t.C:
		return !time.Now().After(deadline.Add(leastWait))
	case <-ctx.Done():
	case <-s.closing:
	}
	return false
}
