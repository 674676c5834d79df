// This file implements the calls that count, list and delete crawls and queues.

package urlfrontier

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/serve"
	"github.com/seed-7440039f/frontier/storage"
	"github.com/seed-7440039f/frontier/urlfrontier/pb"
)

// pageSize is the default size of a page.
const pageSize = 100

// statusOf converts an error to a gRPC status.
func statusOf(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, frontier.ErrClosed):
		return status.Error(codes.Unavailable, "the frontier is closing")
	case errors.Is(err, serve.ErrWithheld), errors.Is(err, storage.ErrMoved):
		return status.Error(codes.Unavailable, err.Error())
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return status.FromContextError(err).Err()
	}
	return status.Error(codes.Internal, err.Error())
}

// ListNodes implements URLFrontier.
func (s *Server) ListNodes(context.Context, *pb.Empty) (*pb.StringList, error) {
	return &pb.StringList{Values: slices.Sorted(slices.Values(s.o.Advertised))}, nil
}

// active counts a queue's URLs that are not completed.
func active(n inspect.Counts) int64 { return n.Waiting + n.Scheduled + n.Leased }

func total(n inspect.Counts) int64 { return active(n) + n.Finished }

// queueStats counts the URLs of a queue.
func (s *Server) queueStats(crawl uint32, key string) (inspect.Counts, error) {
	n, _, err := s.svc.Inspector().Counts(key, crawl)
	return s.purged.without(queueName{crawl, key}, n), err
}

// open returns an error if the frontier is closed.
func (s *Server) open() error {
	_, err := s.queueStats(0, "")
	return err
}

// queues yields the queues of a crawl after a key, in domain order.
func (s *Server) queues(crawl uint32, after string) iter.Seq2[string, inspect.Counts] {
	return func(yield func(string, inspect.Counts) bool) {
		for key, n := range s.svc.Inspector().Queues(crawl, after) {
			n = s.purged.without(queueName{crawl, key}, n)
			if n != (inspect.Counts{}) && !yield(key, n) {
				return
			}
		}
	}
}

// sum counts the URLs of a crawl, or of one queue.
func (s *Server) sum(crawl uint32, key string) (inspect.Counts, error) {
	if key != "" {
		return s.queueStats(crawl, key)
	}
	c, _ := s.svc.Inspector().Crawl(crawl)
	return s.purged.withoutAll(crawl, inspect.Counts{Waiting: c.Waiting, Scheduled: c.Scheduled, Leased: c.Leased, Finished: c.Finished}), s.open()
}

// ListCrawls implements URLFrontier.
func (s *Server) ListCrawls(context.Context, *pb.Local) (*pb.StringList, error) {
	var names []string
	for _, id := range s.svc.Inspector().Crawls() {
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

// ListQueues implements URLFrontier.
func (s *Server) ListQueues(ctx context.Context, p *pb.Pagination) (*pb.QueueList, error) {
	size := cmp.Or(int(p.GetSize()), pageSize)
	out := &pb.QueueList{Start: p.GetStart(), CrawlID: serve.Normal(p.GetCrawlID())}
	skip := int(p.GetStart())
	defer func() { _ = grpc.SetTrailer(ctx, leftOf(skip)) }()
	id, ok := s.svc.Crawl(p.GetCrawlID())
	if !ok {
		return out, nil
	}
	done, err := s.reading(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	now := time.Now()
	at := s.pages.before(page{crawl: id, inactive: p.GetIncludeInactive(), start: skip}, now.Add(-s.o.ListingAge))
	skip -= at.start
	for key, n := range s.queues(id, at.after) {
		if !p.GetIncludeInactive() && (active(n) == 0 || !s.svc.Frontier().RuleOf(key).BlockedUntil.Before(s.svc.Frontier().Now())) {
			continue
		}
		at.start, at.after = at.start+1, key
		if skip > 0 {
			skip--
			continue
		}
		if out.Values = append(out.Values, key); len(out.Values) == size {
			break
		}
	}
	out.Size = uint32(len(out.Values))
	at.ended = now
	s.pages.keep(at)
	return out, statusOf(s.open())
}

// page is the end of a page of queues.
type page struct {
	crawl    uint32
	inactive bool // inactive queues are included
	start    int  // the number of queues before it
	after    string
	ended    time.Time
}

// pages remembers where recent pages of queues ended, so that the next page need not walk over the queues
// before. The zero value is empty.
type pages struct {
	mu   sync.Mutex
	kept []page // the latest first
}

// mostPages is the most pages remembered.
const mostPages = 256

// before returns the last page since a time that ended at or before the start of p. If there is none, it
// returns p at the first queue.
func (x *pages) before(p page, since time.Time) page {
	x.mu.Lock()
	defer x.mu.Unlock()
	best := page{crawl: p.crawl, inactive: p.inactive}
	for _, k := range x.kept {
		if k.crawl == p.crawl && k.inactive == p.inactive && k.start <= p.start && k.start > best.start && k.ended.After(since) {
			best = k
		}
	}
	return best
}

// keep remembers a page, and replaces an earlier one with the same end.
func (x *pages) keep(p page) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.kept = slices.DeleteFunc(x.kept, func(k page) bool {
		return k.crawl == p.crawl && k.inactive == p.inactive && k.start == p.start
	})
	x.kept = slices.Insert(x.kept, 0, p)
	x.kept = x.kept[:min(len(x.kept), mostPages)]
}

// GetStats implements URLFrontier.
func (s *Server) GetStats(_ context.Context, p *pb.QueueWithinCrawlParams) (*pb.Stats, error) {
	var sum inspect.Counts
	var queues, live uint64
	var err error
	switch id, ok := s.svc.Crawl(p.GetCrawlID()); {
	case !ok:
	case p.GetKey() != "":
		if sum, err = s.queueStats(id, p.GetKey()); total(sum) > 0 {
			queues = 1
		}
		if active(sum) > 0 {
			live = 1
		}
	default:
		c, _ := s.svc.Inspector().Crawl(id)
		queues, live = uint64(c.Hosts), uint64(c.ActiveHosts)
		for _, key := range s.purged.keys(id) {
			n, ok, err := s.svc.Inspector().Counts(key, id)
			if err != nil {
				return nil, statusOf(err)
			}
			if ok && total(s.purged.without(queueName{id, key}, n)) == 0 {
				queues--
			}
		}
		sum, err = s.sum(id, "")
	}
	if err != nil {
		return nil, statusOf(err)
	}
	return &pb.Stats{
		Size: uint64(active(sum)), InProcess: uint32(sum.Leased), NumberOfQueues: queues, CrawlID: serve.Normal(p.GetCrawlID()),
		Counts: map[string]uint64{"completed": uint64(sum.Finished), "active_queues": live},
	}, statusOf(s.open())
}

// DeleteQueue implements URLFrontier.
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
	_, err = s.svc.Frontier().DeleteWith(ctx, frontier.DeleteOptions{Scope: scope.Host(p.GetKey()), Crawls: []uint32{id}, Forget: true})
	if err == nil {
		s.purged.dropAll(id, p.GetKey())
	}
	return &pb.Long{Value: uint64(total(n))}, statusOf(err)
}

// DeleteCrawl implements URLFrontier.
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
	_, err = s.svc.Frontier().Delete(ctx, scope.Crawl(id))
	var late int64 // URLs that other APIs added meanwhile
	if err == nil {
		s.purged.dropAll(id, "")
		late, err = s.svc.ForgetCrawl(ctx, p.GetValue())
	}
	return &pb.Long{Value: uint64(total(sum) + late)}, statusOf(err)
}

// changing locks out other changes and hand-outs until the caller calls done. done then checks the limit
// of key, or all limits if it is empty: deleted URLs may have left room.
func (s *Server) changing(key string) (done func()) {
	s.write.Lock()
	s.hand.Lock()
	return func() {
		keys := []string{key}
		if key == "" {
			keys = s.settings.limited()
		}
		for _, key := range keys {
			s.tryWithhold(key)
		}
		s.hand.Unlock()
		s.write.Unlock()
	}
}

// endAll ends leases of URLs that are about to be deleted. The pauses of their hosts start now.
func (s *Server) endAll(leases []frontier.Lease) {
	for _, l := range leases {
		if err := s.svc.Done(l, frontier.Outcome{Result: frontier.Requeue}); err != nil && !errors.Is(err, frontier.ErrNotLeased) {
			s.log.Error("urlfrontier: the lease of a deleted URL lasts until its deadline", "error", err)
		}
	}
}
