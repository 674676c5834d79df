// This file answers questions about single URLs and lists of them.

package urlfrontier

import (
	"context"
	"strings"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/urlfrontier/pb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// GetURLStatus implements the call.
func (s *Server) GetURLStatus(ctx context.Context, p *pb.URLStatusRequest) (*pb.URLItem, error) {
	if p.GetKey() == "" && keyOf(p.GetUrl()) == "" {
		return nil, status.Errorf(codes.InvalidArgument, "the URL %.100q has no host, and the request no key", p.GetUrl())
	}
	missing := status.Error(codes.NotFound, "the URL is not known")
	id, ok := s.svc.Crawl(p.GetCrawlID())
	if !ok {
		return nil, missing
	}
	r, ok := s.book.find(s.book.markOf(id, p.GetUrl()))
	if !ok {
		return nil, missing
	}
	key := s.book.keyOf(r.queue)
	if p.GetKey() != "" && p.GetKey() != key {
		return nil, missing
	}
	u, err := s.svc.Frontier().StatusOf(ctx, frontier.Entry{URL: p.GetUrl(), Host: key, Crawl: id})
	if err != nil {
		return nil, statusOf(err)
	}
	switch u.State {
	case frontier.URLUnknown, frontier.URLKnown:
		return nil, missing
	case frontier.URLScheduled:
		u.Entry.NotBefore = u.Until
	}
	return itemOf(u.Entry, key, s.svc.CrawlName(id)), nil
}

// selected are the URLs of a crawl, of one queue or all, whose text contains something.
type selected struct {
	crawl, key string
	filter     string
	ignoreCase bool
	start      int // those before are skipped
	size       int // 0: all
}

// each calls f for each of them.
func (s *Server) each(ctx context.Context, x selected, f func(*pb.URLItem) error) error {
	id, ok := s.svc.Crawl(x.crawl)
	if !ok {
		return nil
	}
	l, leave, err := s.listing(ctx)
	if err != nil {
		return statusOf(err)
	}
	defer leave()
	if x.ignoreCase {
		x.filter = strings.ToLower(x.filter)
	}
	n := 0
	var other uint32 // the last queue that is not wanted
	isOther := false
	for _, at := range l.at {
		if at.crawl != id || isOther && at.name == other {
			continue
		}
		if x.key == "" && x.filter == "" && x.start > 0 {
			x.start--
			continue
		}
		if err := ctx.Err(); err != nil {
			return statusOf(err)
		}
		item := &pb.URLItem{}
		if err := l.read(at, item); err != nil {
			return statusOf(err)
		}
		info := item.GetKnown().GetInfo()
		if x.key != "" && info.GetKey() != x.key {
			other, isOther = at.name, true
			continue
		}
		url := info.GetUrl()
		if x.ignoreCase {
			url = strings.ToLower(url)
		}
		if !strings.Contains(url, x.filter) {
			continue
		}
		if x.start > 0 {
			x.start--
			continue
		}
		if err := f(item); err != nil {
			return err
		}
		if n++; n == x.size {
			return nil
		}
	}
	return nil
}

// ListURLs implements the call.
func (s *Server) ListURLs(p *pb.ListUrlParams, stream grpc.ServerStreamingServer[pb.URLItem]) error {
	x := selected{
		crawl: p.GetCrawlID(), key: p.GetKey(), filter: p.GetFilter(), ignoreCase: p.GetIgnoreCase(),
		start: int(p.GetStart()), size: int(p.GetSize()),
	}
	if x.size == 0 {
		x.size = pageSize
	}
	return s.each(stream.Context(), x, stream.Send)
}

// CountURLs implements the call.
func (s *Server) CountURLs(ctx context.Context, p *pb.CountUrlParams) (*pb.Long, error) {
	if p.GetFilter() == "" {
		sum, _ := s.sums(p.GetCrawlID(), p.GetKey())
		return &pb.Long{Value: uint64(sum.active + sum.finished)}, nil
	}
	var n uint64
	x := selected{crawl: p.GetCrawlID(), key: p.GetKey(), filter: p.GetFilter(), ignoreCase: p.GetIgnoreCase()}
	err := s.each(ctx, x, func(*pb.URLItem) error { n++; return nil })
	return &pb.Long{Value: n}, err
}

// PurgeURLs implements the call.
func (s *Server) PurgeURLs(ctx context.Context, p *pb.PurgeUrlParams) (*pb.Long, error) {
	id, ok := s.svc.Crawl(p.GetCrawlID())
	if !ok {
		return &pb.Long{}, nil
	}
	defer s.changing(ctx)()
	before := time.Now().Unix() - int64(p.GetDays())*24*60*60
	var purged []mark
	var out []frontier.Lease
	err := s.remove(ctx, func(u *frontier.StoredURL) bool {
		if u.Entry.Crawl != id || p.GetKey() != "" && u.Host != p.GetKey() {
			return false
		}
		m := s.book.markOf(id, u.Entry.URL)
		if r, ok := s.book.find(m); !ok || int64(r.created) >= before {
			return false
		}
		purged = append(purged, m)
		return true
	})
	for _, m := range purged {
		if l, ok := s.book.take(m, time.Now()); ok {
			out = append(out, l)
		}
	}
	s.endAll(out)
	b := s.book
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, m := range purged {
		b.dropLocked(m)
	}
	return &pb.Long{Value: uint64(len(purged))}, statusOf(err)
}
