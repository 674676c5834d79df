// This file implements GetURLs.

package urlfrontier

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/serve"
	"github.com/seed-7440039f/frontier/urlfrontier/pb"
)

const (
	defaultHold = 30 * time.Second
	chunk       = 100  // hosts per Take
	mostLeases  = 1000 // URLs per Take
	mostPerHost = 1000
	leastWait   = 2 * time.Millisecond
)

// wanted is what a GetURLs asks for.
type wanted struct {
	key   string // empty: any queue
	crawl string // unless any; its number may change while the call waits
	any   bool
	hold  time.Duration

	perHost int // most URLs of a host
}

// holdOf returns how long a client wants to have URLs.
func holdOf(p *pb.GetParams) time.Duration {
	return cmp.Or(time.Duration(p.GetDelayRequestable())*time.Second, defaultHold)
}

// GetURLs implements URLFrontier.
func (s *Server) GetURLs(p *pb.GetParams, stream grpc.ServerStreamingServer[pb.URLInfo]) error {
	w := wanted{key: p.GetKey(), any: true, hold: holdOf(p)}
	if len(w.key) > maxKey {
		return nil
	}
	if most := s.svc.MaxLease(); w.hold > most {
		s.clamped.Do(func() {
			s.log.Warn("urlfrontier: clients ask for longer leases than they may have, and get shorter ones", "client", clientOf(stream.Context()), "asked", w.hold, "most", most)
		})
		w.hold = most
	}
	if w.perHost = min(int(p.GetMaxUrlsPerQueue()), mostPerHost); w.perHost == 0 {
		w.perHost = mostPerHost
	}
	switch item := p.GetItem().(type) {
	case *pb.GetParams_CrawlID:
		w.any, w.crawl = false, item.CrawlID
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
	began := time.Now()
	deadline := began.Add(s.o.Wait)
	if given(stream.Context(), serve.PartHeader) != "" {
		deadline = began // a router waits for all its parts
	}
	_ = stream.SetHeader(metadata.Pairs(holdHeader, w.hold.String()))
	for sent := 0; most == 0 || sent < most; {
		if sent > 0 && time.Since(began) >= w.hold {
			return nil // one lap: the first queue may come again
		}
		ask := chunk
		if most > 0 {
			ask = min(chunk, most-sent)
		}
		leases, until, err := s.takeSome(stream.Context(), w, ask)
		if err != nil {
			return statusOf(err)
		}
		if len(leases) == 0 {
			if sent > 0 || !s.waits(stream.Context(), until, deadline) {
				s.tell(stream, until)
				return nil
			}
			continue
		}
		if all, err := s.send(leases, until, stream); !all {
			return err
		}
		sent += hostsOf(leases)
	}
	return nil
}

// What a router learns of a GetURLs.
const (
	holdHeader  = "frontier-hold" // how long its leases last
	nextTrailer = "frontier-next" // without URLs: how long until there may be one
)

// tell tells a router when to ask again.
func (s *Server) tell(stream grpc.ServerStream, next time.Time) {
	if !next.IsZero() {
		stream.SetTrailer(metadata.Pairs(nextTrailer, max(leastWait, next.Sub(s.svc.Frontier().Now())).String()))
	}
}

// takeSome leases URLs of up to n hosts, and returns when the leases end. If it leases none it returns
// when to ask again, or zero if time alone changes nothing.
func (s *Server) takeSome(ctx context.Context, w wanted, n int) ([]frontier.Lease, time.Time, error) {
	if s.isClosing() || !s.settings.active() {
		return nil, time.Time{}, nil
	}
	s.hand.RLock()
	defer s.hand.RUnlock()
	if w.key != "" {
		if due, err := s.mayServe(ctx, w.key); err != nil || !due.IsZero() {
			return nil, due, err
		}
	}
	o := frontier.TakeOptions{Hosts: n, PerHost: w.perHost, Max: mostLeases, Host: w.key, Lease: w.hold}
	if !w.any {
		id, ok := s.svc.Crawl(w.crawl)
		if !ok {
			return nil, time.Time{}, nil
		}
		o.Crawls = []uint32{id}
	}
	until := time.Now().Add(w.hold)
	leases, err := s.svc.Take(ctx, clientOf(ctx), o)
	later, notDue := errors.AsType[*frontier.NotDueError](err)
	switch {
	case notDue && w.key == "":
		return nil, later.Next, nil
	case notDue, errors.Is(err, frontier.ErrExhausted):
		return nil, time.Time{}, nil
	case err != nil:
		return nil, time.Time{}, err
	}
	if leases = s.withinLimits(leases); len(leases) == 0 {
		return nil, time.Now(), nil // other hosts may have some
	}
	for i := range leases {
		s.holds.hold(leases[i], until)
	}
	return leases, until, nil
}

// mayServe returns when the host's clock next allows a contact: zero if that is now, or if the reason is
// not a clock.
func (s *Server) mayServe(ctx context.Context, key string) (time.Time, error) {
	h, err := s.svc.Inspector().Host(ctx, key)
	if errors.Is(err, frontier.ErrUnknownHost) {
		return time.Time{}, nil
	}
	switch h.Reason {
	case inspect.ReasonDelay, inspect.ReasonCrawlDelay, inspect.ReasonReopened, inspect.ReasonRetryAfter, inspect.ReasonBackoff:
		return h.Until, err
	}
	return time.Time{}, err
}

// putBack returns URLs that no client received to the heads of their queues.
func (s *Server) putBack(leases []frontier.Lease) {
	for _, l := range slices.Backward(leases) { // backward: the first returns to the head of its queue
		s.holds.take(urlName{l.Entry.Crawl, l.Entry.URL}, time.Now())
		if err := s.svc.Done(l, frontier.Outcome{Result: frontier.Requeue, Uncontacted: true}); err != nil && !errors.Is(err, frontier.ErrNotLeased) {
			s.log.Error("urlfrontier: a URL waits for the end of its lease", "error", err)
		}
	}
}

// send sends URLs until their leases end, and reports whether the client has all of them. If the client
// disconnects, the unsent ones wait again.
func (s *Server) send(leases []frontier.Lease, until time.Time, stream grpc.ServerStreamingServer[pb.URLInfo]) (all bool, err error) {
	type end struct {
		sent int
		err  error
	}
	ended := make(chan end, 1)
	go func() { // ends with the call if the client does not read
		var e end
		for ; e.sent < len(leases) && e.err == nil && time.Now().Before(until); e.sent++ {
			l := &leases[e.sent]
			meta := listsOf(envelopeOf(l.Entry.Meta).Meta)
			meta[leaseKey] = &pb.StringList{Values: []string{l.ID()}}
			e.err = stream.Send(&pb.URLInfo{Url: l.Entry.URL, Key: l.Host, CrawlID: s.svc.CrawlName(l.Entry.Crawl), Metadata: meta})
		}
		ended <- e
	}()
	select {
	case e := <-ended:
		if e.err != nil && time.Now().Before(until) {
			s.putBack(leases[e.sent:]) // the client may have received the one before
		}
		return e.err == nil && e.sent == len(leases), e.err
	case <-time.After(time.Until(until)):
		return false, nil // the queues may be served again
	}
}

// waits waits until a time of the frontier's clock. It returns false if that is after the deadline.
func (s *Server) waits(ctx context.Context, until, deadline time.Time) bool {
	d := until.Sub(s.svc.Frontier().Now())
	if until.IsZero() || time.Now().Add(d).After(deadline) {
		return false
	}
	select {
	case <-time.After(max(leastWait, d)):
		return !time.Now().After(deadline.Add(leastWait))
	case <-ctx.Done():
	case <-s.closing:
	}
	return false
}

// hostsOf counts the contacts of leases.
func hostsOf(leases []frontier.Lease) (n int) {
	for i := range leases {
		if i == 0 || !leases[i].SharesContact(leases[i-1]) {
			n++
		}
	}
	return n
}
