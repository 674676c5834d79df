// This file answers questions about crawls and queues, and deletes them.

package urlfrontier

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/serve"
	"github.com/seed-7440039f/frontier/urlfrontier/pb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// pageSize is the size of a page that names none.
const pageSize = 100

// statusOf is the status of an error.
func statusOf(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, frontier.ErrClosed):
		return status.Error(codes.Unavailable, "the frontier is closing")
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return status.FromContextError(err).Err()
	}
	return status.Error(codes.Internal, err.Error())
}

// ListNodes implements the call.
func (s *Server) ListNodes(context.Context, *pb.Empty) (*pb.StringList, error) {
	return &pb.StringList{Values: slices.Sorted(slices.Values(s.o.Advertised))}, nil
}

// ListCrawls implements the call.
func (s *Server) ListCrawls(context.Context, *pb.Local) (*pb.StringList, error) {
	var names []string
	s.book.mu.Lock()
	for id := range s.book.crawls {
		names = append(names, s.svc.CrawlName(id))
	}
	s.book.mu.Unlock()
	slices.Sort(names)
	return &pb.StringList{Values: names}, nil
}

// ListQueues implements the call.
func (s *Server) ListQueues(_ context.Context, p *pb.Pagination) (*pb.QueueList, error) {
	size := int(p.GetSize())
	if size == 0 {
		size = pageSize
	}
	out := &pb.QueueList{Start: p.GetStart(), CrawlID: serve.Normal(p.GetCrawlID())}
	skip := int(p.GetStart())
	now := time.Now()
	for _, q := range s.queuesOf(p.GetCrawlID(), "") {
		if !p.GetIncludeInactive() && (q.active == 0 || !s.svc.Frontier().RuleOf(q.key).BlockedUntil.Before(now)) {
			continue
		}
		if skip > 0 {
			skip--
			continue
		}
		if out.Values = append(out.Values, q.key); len(out.Values) == size {
			break
		}
	}
	out.Size = uint32(len(out.Values))
	return out, nil
}

// queuesOf returns copies of the queues of a crawl, in the order in which they began, or the one
// with a key.
func (s *Server) queuesOf(name, key string) (queues []queue) {
	id, ok := s.svc.Crawl(name)
	if !ok {
		return nil
	}
	b := s.book
	b.mu.Lock()
	defer b.mu.Unlock()
	b.settleLocked(time.Now())
	if key != "" {
		if q, ok := b.byName[queueName{id, key}]; ok {
			return []queue{*b.queues[q]}
		}
		return nil
	}
	if c := b.crawls[id]; c != nil {
		queues = make([]queue, len(c.queues))
		for i, q := range c.queues {
			queues[i] = *b.queues[q]
		}
	}
	return queues
}

// sums are the sums of a crawl, or of the queue with a key.
func (s *Server) sums(name, key string) (sum crawl, queues int) {
	id, ok := s.svc.Crawl(name)
	if !ok {
		return sum, 0
	}
	b := s.book
	b.mu.Lock()
	defer b.mu.Unlock()
	b.settleLocked(time.Now())
	if key == "" {
		if c := b.crawls[id]; c != nil {
			return *c, len(c.queues)
		}
		return sum, 0
	}
	at, ok := b.byName[queueName{id, key}]
	if !ok {
		return sum, 0
	}
	q := b.queues[at]
	sum.active, sum.finished, sum.held = q.active, q.finished, q.held
	if q.active > 0 {
		sum.live = 1
	}
	return sum, 1
}

// GetStats implements the call.
func (s *Server) GetStats(_ context.Context, p *pb.QueueWithinCrawlParams) (*pb.Stats, error) {
	sum, queues := s.sums(p.GetCrawlID(), p.GetKey())
	return &pb.Stats{
		Size: uint64(sum.active), InProcess: uint32(sum.held), NumberOfQueues: uint64(queues), CrawlID: serve.Normal(p.GetCrawlID()),
		Counts: map[string]uint64{"completed": uint64(sum.finished), "active_queues": uint64(sum.live)},
	}, nil
}

// DeleteQueue implements the call.
func (s *Server) DeleteQueue(ctx context.Context, p *pb.QueueWithinCrawlParams) (*pb.Long, error) {
	id, ok := s.svc.Crawl(p.GetCrawlID())
	if !ok {
		return &pb.Long{}, nil
	}
	defer s.changing(ctx)()
	b := s.book
	b.mu.Lock()
	at, ok := b.byName[queueName{id, p.GetKey()}]
	if !ok {
		b.mu.Unlock()
		return &pb.Long{}, nil
	}
	shared := false
	for other := range b.crawls {
		_, has := b.byName[queueName{other, p.GetKey()}]
		shared = shared || has && other != id
	}
	n, out := b.forgetLocked(at)
	b.mu.Unlock()
	s.endAll(out)
	var err error
	if shared {
		err = s.remove(ctx, func(u *frontier.StoredURL) bool { return u.Entry.Crawl == id && u.Host == p.GetKey() })
	} else {
		_, err = s.svc.Frontier().Delete(ctx, frontier.Host(p.GetKey()))
	}
	if err == nil && s.settings.limit(p.GetKey()) > 0 {
		err = s.withhold(p.GetKey())
	}
	return &pb.Long{Value: uint64(n)}, statusOf(err)
}

// DeleteCrawl implements the call.
func (s *Server) DeleteCrawl(ctx context.Context, p *pb.DeleteCrawlMessage) (*pb.Long, error) {
	id, ok := s.svc.Crawl(p.GetValue())
	if !ok {
		return &pb.Long{}, nil
	}
	defer s.changing(ctx)()
	b := s.book
	b.mu.Lock()
	var n int64
	var out []frontier.Lease
	if c := b.crawls[id]; c != nil {
		for _, q := range slices.Backward(slices.Clone(c.queues)) {
			urls, leases := b.forgetLocked(q)
			n += urls
			out = append(out, leases...)
		}
	}
	b.mu.Unlock()
	s.endAll(out)
	_, err := s.svc.Frontier().Delete(ctx, frontier.Crawl(id))
	if err == nil {
		err = s.svc.ForgetCrawl(p.GetValue())
	}
	return &pb.Long{Value: uint64(n)}, statusOf(err)
}

// changing keeps others from changing or handing out URLs until the function that it returns is
// called.
func (s *Server) changing(ctx context.Context) (done func()) {
	s.listings.forget(ctx)
	s.write.Lock()
	s.hand.Lock()
	return func() {
		s.changes.Add(1)
		s.hand.Unlock()
		s.write.Unlock()
	}
}

// endAll ends leases of URLs that are about to be deleted. For the hosts' clocks the contacts end now.
func (s *Server) endAll(leases []frontier.Lease) {
	for _, l := range leases {
		if err := s.svc.Frontier().Done(l, frontier.Outcome{Result: frontier.Requeue}); err != nil && !errors.Is(err, frontier.ErrNotLeased) {
			s.log.Error("urlfrontier: the lease of a deleted URL lasts until its deadline", "error", err)
		}
	}
}

// removeAtOnce is the number of URLs that are removed in one Add.
const removeAtOnce = 10_000

// remove takes URLs out of the frontier, one by one.
func (s *Server) remove(ctx context.Context, match func(*frontier.StoredURL) bool) error {
	var adds []frontier.Entry
	flush := func() error {
		_, err := s.svc.Frontier().Add(ctx, adds...)
		adds = adds[:0]
		return err
	}
	for u, err := range s.svc.Frontier().Scan(ctx) {
		if err != nil {
			return err
		}
		if !u.Entry.NotBefore.Before(removed) || !match(&u) {
			continue
		}
		adds = append(adds, frontier.Entry{URL: u.Entry.URL, Host: u.Host, Crawl: u.Entry.Crawl, Force: true, NotBefore: removed})
		if len(adds) == removeAtOnce {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}
