// This file passes calls with one answer on: to the part of a key, or to all parts.

package urlfrontier

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/seed-7440039f/frontier/urlfrontier/pb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
)

// method is a call with an answer, or with a stream of them.
type method[Q, A any] func(pb.URLFrontierClient, context.Context, *Q, ...grpc.CallOption) (A, error)

// ask lets a part answer.
func ask[Q, A any](ctx context.Context, r *Router, p *part, call method[Q, A], q *Q, o ...grpc.CallOption) (a A, err error) {
	c, to, err := p.client(ctx)
	if err == nil {
		a, err = call(c, to, q, o...)
	}
	if err != nil {
		err = r.failed(ctx, p, err)
	}
	return a, err
}

// askAll lets parts answer at once. The error names those that have not.
func askAll[Q, A any](ctx context.Context, r *Router, parts []*part, call method[Q, A], q *Q) ([]A, error) {
	all, errs := make([]A, len(parts)), make([]error, len(parts))
	var asked sync.WaitGroup
	for i, p := range parts {
		asked.Go(func() { all[i], errs[i] = ask(ctx, r, p, call, q) })
	}
	asked.Wait()
	not := slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	if len(not) == 0 {
		return all, nil
	}
	var text []string
	for _, err := range not {
		text = append(text, status.Convert(err).Message())
	}
	if len(not) < len(parts) {
		text = append(text, fmt.Sprintf("the other %d parts have answered: send it again, which does no harm", len(parts)-len(not)))
	}
	return nil, status.Error(status.Code(not[0]), strings.Join(text, "; "))
}

// sum adds the answers of parts.
func sum[Q any](ctx context.Context, r *Router, parts []*part, call method[Q, *pb.Long], q *Q) (*pb.Long, error) {
	all, err := askAll(ctx, r, parts, call, q)
	if err != nil {
		return nil, err
	}
	total := &pb.Long{}
	for _, n := range all {
		total.Value += n.GetValue()
	}
	return total, nil
}

// change makes a change at parts.
func change[Q any](ctx context.Context, r *Router, parts []*part, call method[Q, *pb.Empty], q *Q) (*pb.Empty, error) {
	_, err := askAll(ctx, r, parts, call, q)
	return &pb.Empty{}, err
}

// ListNodes implements URLFrontier. A part judges whether the client may ask.
func (r *Router) ListNodes(ctx context.Context, q *pb.Empty) (_ *pb.StringList, err error) {
	for _, p := range r.inTurn("") {
		if _, err = ask(ctx, r, p, pb.URLFrontierClient.ListNodes, q); err == nil || refused(err) {
			break
		}
	}
	return &pb.StringList{Values: slices.Sorted(slices.Values(r.o.Advertised))}, err
}

// ListCrawls implements URLFrontier.
func (r *Router) ListCrawls(ctx context.Context, q *pb.Local) (*pb.StringList, error) {
	all, err := askAll(ctx, r, r.parts, pb.URLFrontierClient.ListCrawls, q)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, some := range all {
		names = append(names, some.GetValues()...)
	}
	slices.Sort(names)
	return &pb.StringList{Values: slices.Compact(names)}, nil
}

// GetStats implements URLFrontier.
func (r *Router) GetStats(ctx context.Context, q *pb.QueueWithinCrawlParams) (*pb.Stats, error) {
	all, err := askAll(ctx, r, r.of(q.GetKey()), pb.URLFrontierClient.GetStats, q)
	if err != nil {
		return nil, err
	}
	total := &pb.Stats{CrawlID: all[0].GetCrawlID(), Counts: map[string]uint64{}}
	for _, s := range all {
		total.Size += s.GetSize()
		total.InProcess += s.GetInProcess()
		total.NumberOfQueues += s.GetNumberOfQueues()
		for name, n := range s.GetCounts() {
			total.Counts[name] += n
		}
	}
	return total, nil
}

// GetActive implements URLFrontier. The Router is active if all parts are.
func (r *Router) GetActive(ctx context.Context, q *pb.Local) (*pb.Boolean, error) {
	all, err := askAll(ctx, r, r.parts, pb.URLFrontierClient.GetActive, q)
	if err != nil {
		return nil, err
	}
	return &pb.Boolean{State: !slices.ContainsFunc(all, func(b *pb.Boolean) bool { return !b.GetState() })}, nil
}

// GetURLStatus implements URLFrontier.
func (r *Router) GetURLStatus(ctx context.Context, q *pb.URLStatusRequest) (*pb.URLItem, error) {
	return ask(ctx, r, r.home(q.GetKey(), q.GetUrl()), pb.URLFrontierClient.GetURLStatus, q)
}

// CountURLs implements URLFrontier.
func (r *Router) CountURLs(ctx context.Context, q *pb.CountUrlParams) (*pb.Long, error) {
	return sum(ctx, r, r.of(q.GetKey()), pb.URLFrontierClient.CountURLs, q)
}

// PurgeURLs implements URLFrontier.
func (r *Router) PurgeURLs(ctx context.Context, q *pb.PurgeUrlParams) (*pb.Long, error) {
	return sum(ctx, r, r.of(q.GetKey()), pb.URLFrontierClient.PurgeURLs, q)
}

// DeleteQueue implements URLFrontier.
func (r *Router) DeleteQueue(ctx context.Context, q *pb.QueueWithinCrawlParams) (*pb.Long, error) {
	return sum(ctx, r, r.of(q.GetKey()), pb.URLFrontierClient.DeleteQueue, q)
}

// DeleteCrawl implements URLFrontier.
func (r *Router) DeleteCrawl(ctx context.Context, q *pb.DeleteCrawlMessage) (*pb.Long, error) {
	return sum(ctx, r, r.parts, pb.URLFrontierClient.DeleteCrawl, q)
}

// BlockQueueUntil implements URLFrontier.
func (r *Router) BlockQueueUntil(ctx context.Context, q *pb.BlockQueueParams) (*pb.Empty, error) {
	return change(ctx, r, r.of(q.GetKey()), pb.URLFrontierClient.BlockQueueUntil, q)
}

// SetDelay implements URLFrontier.
func (r *Router) SetDelay(ctx context.Context, q *pb.QueueDelayParams) (*pb.Empty, error) {
	return change(ctx, r, r.of(q.GetKey()), pb.URLFrontierClient.SetDelay, q)
}

// SetCrawlLimit implements URLFrontier. Its limit is of one key, so one part keeps it.
func (r *Router) SetCrawlLimit(ctx context.Context, q *pb.CrawlLimitParams) (*pb.Empty, error) {
	return ask(ctx, r, r.home(q.GetKey(), ""), pb.URLFrontierClient.SetCrawlLimit, q)
}

// SetActive implements URLFrontier.
func (r *Router) SetActive(ctx context.Context, q *pb.Active) (*pb.Empty, error) {
	return change(ctx, r, r.parts, pb.URLFrontierClient.SetActive, q)
}

// SetLogLevel implements URLFrontier.
func (r *Router) SetLogLevel(ctx context.Context, q *pb.LogLevelParams) (*pb.Empty, error) {
	return change(ctx, r, r.parts, pb.URLFrontierClient.SetLogLevel, q)
}
