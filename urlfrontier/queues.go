// This file answers questions about crawls and queues, and deletes them.

package urlfrontier

import (
	"context"
	"errors"
	"iter"
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

// active is how many URLs of a queue are not completed.
func active(n frontier.QueueStats) int64 { return n.Waiting + n.Scheduled + n.Leased }

func total(n frontier.QueueStats) int64 { return active(n) + n.Finished }

// queueStats counts the URLs of a queue.
func (s *Server) queueStats(crawl uint32, key string) (frontier.QueueStats, error) {
	n, _, err := s.svc.Frontier().QueueStats(key, crawl)
	return s.purged.without(queueName{crawl, key}, n), err
}

// open returns the error of a frontier that is closed.
func (s *Server) open() error {
	_, err := s.queueStats(0, "")
	return err
}

// queues yields the queues of a crawl, in domain order.
func (s *Server) queues(crawl uint32) iter.Seq2[string, frontier.QueueStats] {
	return func(yield func(string, frontier.QueueStats) bool) {
		for key, n := range s.svc.Frontier().Queues(crawl, "") {
			n = s.purged.without(queueName{crawl, key}, n)
			if n != (frontier.QueueStats{}) && !yield(key, n) {
				return
			}
		}
	}
}

// sum counts the URLs of a crawl, or of the queue with a key.
func (s *Server) sum(crawl uint32, key string) (frontier.QueueStats, error) {
	if key != "" {
		return s.queueStats(crawl, key)
	}
	c, _ := s.svc.Frontier().CrawlStats(crawl)
	return s.purged.withoutAll(crawl, frontier.QueueStats{Waiting: c.Waiting, Scheduled: c.Scheduled, Leased: c.Leased, Finished: c.Finished}), s.open()
}

// ListCrawls implements the call.
func (s *Server) ListCrawls(context.Context, *pb.Local) (*pb.StringList, error) {
	var names []string
	for _, id := range s.svc.Frontier().Crawls() {
		n, err := s.sum(id, "")
		if err != nil {
			return nil, statusOf(err)
		}
		if total(n) > 0 {
			names = append(names, s.svc.CrawlName(id))
		}
	}
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
	id, ok := s.svc.Crawl(p.GetCrawlID())
	if !ok {
		return out, nil
	}
	done, err := s.reading()
	if err != nil {
		return nil, err
	}
	defer done()
	skip := int(p.GetStart())
	now := time.Now()
	for key, n := range s.queues(id) {
		if !p.GetIncludeInactive() && (active(n) == 0 || !s.svc.Frontier().RuleOf(key).BlockedUntil.Before(now)) {
			continue
		}
		if skip > 0 {
			skip--
			continue
		}
		if out.Values = append(out.Values, key); len(out.Values) == size {
			break
		}
	}
	out.Size = uint32(len(out.Values))
	return out, statusOf(s.open())
}

// GetStats implements the call.
func (s *Server) GetStats(_ context.Context, p *pb.QueueWithinCrawlParams) (*pb.Stats, error) {
	var sum frontier.QueueStats
	var queues, live uint64
	count := func(n frontier.QueueStats) {
		if n == (frontier.QueueStats{}) {
			return
		}
		queues++
		if active(n) > 0 {
			live++
		}
		sum.Waiting += n.Waiting
		sum.Scheduled += n.Scheduled
		sum.Leased += n.Leased
		sum.Finished += n.Finished
	}
	switch id, ok := s.svc.Crawl(p.GetCrawlID()); {
	case !ok:
	case p.GetKey() != "":
		n, err := s.queueStats(id, p.GetKey())
		if err != nil {
			return nil, statusOf(err)
		}
		count(n)
	default:
		for _, n := range s.queues(id) {
			count(n)
		}
	}
	return &pb.Stats{
		Size: uint64(active(sum)), InProcess: uint32(sum.Leased), NumberOfQueues: queues, CrawlID: serve.Normal(p.GetCrawlID()),
		Counts: map[string]uint64{"completed": uint64(sum.Finished), "active_queues": live},
	}, statusOf(s.open())
}

// DeleteQueue implements the call.
func (s *Server) DeleteQueue(ctx context.Context, p *pb.QueueWithinCrawlParams) (*pb.Long, error) {
	id, ok := s.svc.Crawl(p.GetCrawlID())
	if !ok || p.GetKey() == "" || len(p.GetKey()) > maxKey {
		return &pb.Long{}, nil
	}
	defer s.changing(p.GetKey())()
	n, err := s.queueStats(id, p.GetKey())
	if err != nil {
		return nil, statusOf(err)
	}
	s.endAll(s.holds.takeOf(id, p.GetKey(), time.Now()))
	_, err = s.svc.Frontier().DeleteWith(ctx, frontier.DeleteOptions{Scope: frontier.Host(p.GetKey()), Crawls: []uint32{id}, Forget: true})
	if err == nil {
		s.purged.dropAll(id, p.GetKey())
	}
	return &pb.Long{Value: uint64(total(n))}, statusOf(err)
}

// DeleteCrawl implements the call.
func (s *Server) DeleteCrawl(ctx context.Context, p *pb.DeleteCrawlMessage) (*pb.Long, error) {
	id, ok := s.svc.Crawl(p.GetValue())
	if !ok {
		return &pb.Long{}, nil
	}
	defer s.changing("")()
	sum, err := s.sum(id, "")
	if err != nil {
		return nil, statusOf(err)
	}
	s.endAll(s.holds.takeOf(id, "", time.Now()))
	_, err = s.svc.Frontier().Delete(ctx, frontier.Crawl(id))
	var late int64 // URLs that other APIs added meanwhile
	if err == nil {
		s.purged.dropAll(id, "")
		late, err = s.svc.ForgetCrawl(ctx, p.GetValue())
	}
	return &pb.Long{Value: uint64(total(sum) + late)}, statusOf(err)
}

// changing keeps others from changing or handing out URLs until the function that it returns is
// called. URLs of a key go meanwhile, or of any if it is empty: limits may leave room again.
func (s *Server) changing(key string) (done func()) {
	s.write.Lock()
	s.hand.Lock()
	return func() {
		keys := []string{key}
		if key == "" {
			keys = s.settings.limited()
		}
		for _, key := range keys {
			if s.settings.limit(key) != (limit{}) {
				s.tryWithhold(key)
			}
		}
		s.hand.Unlock()
		s.write.Unlock()
	}
}

// endAll ends leases of URLs that are about to be deleted. For the hosts' clocks the contacts end now.
func (s *Server) endAll(leases []frontier.Lease) {
	for _, l := range leases {
		if err := s.svc.Done(l, frontier.Outcome{Result: frontier.Requeue}); err != nil && !errors.Is(err, frontier.ErrNotLeased) {
			s.log.Error("urlfrontier: the lease of a deleted URL lasts until its deadline", "error", err)
		}
	}
}
