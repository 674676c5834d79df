// This file implements the calls that look up, list and count URLs.

package urlfrontier

import (
	"cmp"
	"context"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/urlfrontier/pb"
)

// GetURLStatus implements URLFrontier.
func (s *Server) GetURLStatus(ctx context.Context, p *pb.URLStatusRequest) (*pb.URLItem, error) {
	key := cmp.Or(p.GetKey(), keyOf(p.GetUrl()))
	if key == "" {
		return nil, status.Errorf(codes.InvalidArgument, "the URL %.100q has no host, and the request no key", p.GetUrl())
	}
	missing := status.Error(codes.NotFound, "the URL is not known")
	id, ok := s.svc.Crawl(p.GetCrawlID())
	if !ok || len(key) > maxKey {
		return nil, missing
	}
	u, err := s.svc.Inspector().Status(ctx, frontier.Entry{URL: p.GetUrl(), Host: key, Crawl: id})
	if err != nil {
		return nil, statusOf(err)
	}
	switch {
	case u.State == inspect.URLUnknown, u.State == inspect.URLKnown, isPurged(&u.Entry):
		return nil, missing
	case u.State == inspect.URLScheduled:
		u.Entry.NotBefore = u.Until
	}
	return itemOf(u.Entry, key, s.svc.CrawlName(id)), nil
}

// selected are the URLs of a crawl, or of one queue of it, whose text contains a string.
type selected struct {
	crawl, key string
	filter     string
	ignoreCase bool
	start      int // how many to skip
	size       int // how many to return; 0: all
}

// each calls f for each selected URL, and counts down x.start to what is left to skip.
func (s *Server) each(ctx context.Context, x *selected, f func(*pb.URLItem) error) error {
	id, ok := s.svc.Crawl(x.crawl)
	if !ok || len(x.key) > maxKey {
		return nil
	}
	done, err := s.reading(ctx)
	if err != nil {
		return err
	}
	defer done()
	q := queueName{id, x.key}
	l, leave, err := s.listing(ctx, q, x.start == 0)
	if err != nil {
		return statusOf(err)
	}
	defer leave()
	filter := x.filter
	if x.ignoreCase {
		filter = strings.ToLower(filter)
	}
	n := 0
	for _, at := range l.within(q) {
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
			continue // another queue with the same hash
		}
		url := info.GetUrl()
		if x.ignoreCase {
			url = strings.ToLower(url)
		}
		if !strings.Contains(url, filter) {
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

// ListURLs implements URLFrontier.
func (s *Server) ListURLs(p *pb.ListUrlParams, stream grpc.ServerStreamingServer[pb.URLItem]) error {
	x := selected{
		crawl: p.GetCrawlID(), key: p.GetKey(), filter: p.GetFilter(), ignoreCase: p.GetIgnoreCase(),
		start: int(p.GetStart()), size: int(p.GetSize()),
	}
	x.size = cmp.Or(x.size, pageSize)
	return s.sendEach(x, stream)
}

// leftTrailer is the trailer of a page that says how much of its start lies behind the end of the list.
const leftTrailer = "frontier-left"

func leftOf(start int) metadata.MD { return metadata.Pairs(leftTrailer, strconv.Itoa(start)) }

// unreadFor is how long a client may leave a URL of a listing unread.
const unreadFor = time.Minute

// sendEach sends URLs. If the client does not read, it fails: the call occupies one of mostReads slots.
func (s *Server) sendEach(x selected, stream grpc.ServerStreamingServer[pb.URLItem]) error {
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	stuck := time.AfterFunc(s.unreadFor, cancel)
	stuck.Stop()
	defer stuck.Stop()
	ended := make(chan error, 1)
	go func() { // ends with the call if the client does not read
		err := s.each(ctx, &x, func(item *pb.URLItem) error {
			stuck.Reset(s.unreadFor)
			defer stuck.Stop()
			return stream.Send(item)
		})
		stream.SetTrailer(leftOf(x.start))
		ended <- err
	}()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	if stream.Context().Err() != nil {
		return statusOf(stream.Context().Err())
	}
	return status.Error(codes.ResourceExhausted, "the client does not read what it has asked for")
}

// reading waits for one of the mostReads slots. done releases it.
func (s *Server) reading(ctx context.Context) (done func(), err error) {
	late := time.NewTimer(s.readWait)
	defer late.Stop()
	select {
	case s.reads <- struct{}{}:
		return func() { <-s.reads }, nil
	case <-ctx.Done():
		return nil, statusOf(ctx.Err())
	case <-late.C:
		return nil, status.Error(codes.ResourceExhausted, "too many calls list or count URLs, or list queues, at once: try again")
	}
}

// CountURLs implements URLFrontier.
func (s *Server) CountURLs(ctx context.Context, p *pb.CountUrlParams) (*pb.Long, error) {
	if p.GetFilter() == "" {
		id, ok := s.svc.Crawl(p.GetCrawlID())
		if !ok {
			return &pb.Long{}, nil
		}
		n, err := s.sum(id, p.GetKey())
		return &pb.Long{Value: uint64(total(n))}, statusOf(err)
	}
	var n uint64
	x := &selected{crawl: p.GetCrawlID(), key: p.GetKey(), filter: p.GetFilter(), ignoreCase: p.GetIgnoreCase()}
	err := s.each(ctx, x, func(*pb.URLItem) error { n++; return nil })
	return &pb.Long{Value: n}, err
}
