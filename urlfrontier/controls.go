// This file implements the calls that change how queues are served.

package urlfrontier

import (
	"context"
	"log/slog"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/urlfrontier/pb"
)

// The frontier refuses blocks longer than 100 years and delays longer than 30 days.
const (
	longestBlock = 99 * 365 * 24 * time.Hour
	longestDelay = 720 * time.Hour
)

// BlockQueueUntil implements URLFrontier.
func (s *Server) BlockQueueUntil(_ context.Context, p *pb.BlockQueueParams) (*pb.Empty, error) {
	if p.GetKey() == "" || len(p.GetKey()) > maxKey {
		return &pb.Empty{}, nil
	}
	until, now := timeOf(p.GetTime()), s.svc.Frontier().Now()
	if latest := now.Add(longestBlock); until.After(latest) {
		until = latest
	}
	if until.Sub(now) < time.Millisecond { // over before the frontier sees it
		until = time.Time{}
	}
	err := s.svc.Frontier().UpdateRule(scope.Host(p.GetKey()), func(r *frontier.Rule) { r.BlockedUntil = until })
	return &pb.Empty{}, statusOf(err)
}

// SetDelay implements URLFrontier.
func (s *Server) SetDelay(_ context.Context, p *pb.QueueDelayParams) (*pb.Empty, error) {
	if len(p.GetKey()) > maxKey {
		return &pb.Empty{}, nil
	}
	of := scope.All()
	if p.GetKey() != "" {
		of = scope.Host(p.GetKey())
	}
	d := min(longestDelay, max(s.o.MinDelay, time.Duration(p.GetDelayRequestable())*time.Second))
	err := s.svc.Frontier().UpdateRule(of, func(r *frontier.Rule) { r.Delay = frontier.FixedDelay(d) })
	return &pb.Empty{}, statusOf(err)
}

// SetActive implements URLFrontier.
func (s *Server) SetActive(ctx context.Context, p *pb.Active) (*pb.Empty, error) {
	return &pb.Empty{}, statusOf(s.settings.setActive(ctx, p.GetState()))
}

// GetActive implements URLFrontier.
func (s *Server) GetActive(context.Context, *pb.Local) (*pb.Boolean, error) {
	return &pb.Boolean{State: s.settings.active()}, nil
}

// SetCrawlLimit implements URLFrontier.
func (s *Server) SetCrawlLimit(ctx context.Context, p *pb.CrawlLimitParams) (*pb.Empty, error) {
	var n inspect.Counts
	id, ok := s.svc.Crawl(p.GetCrawlID())
	if ok && p.GetKey() != "" {
		var err error
		if n, err = s.queueStats(id, p.GetKey()); err != nil {
			return nil, statusOf(err)
		}
	}
	if n == (inspect.Counts{}) {
		return nil, status.Errorf(codes.NotFound, "there is no queue %.300q in this crawl", p.GetKey())
	}
	if most := frontier.MaxValueKey - len(limitKey); len(p.GetKey()) > most {
		return nil, status.Errorf(codes.InvalidArgument, "the key has %d bytes: want at most %d", len(p.GetKey()), most)
	}
	s.write.Lock()
	defer s.write.Unlock()
	return &pb.Empty{}, statusOf(s.setLimit(ctx, p.GetKey(), int64(p.GetLimit())))
}

var levels = map[pb.LogLevelParams_Level]slog.Level{
	pb.LogLevelParams_TRACE: -8, pb.LogLevelParams_DEBUG: slog.LevelDebug, pb.LogLevelParams_INFO: slog.LevelInfo,
	pb.LogLevelParams_WARN: slog.LevelWarn, pb.LogLevelParams_ERROR: slog.LevelError,
}

// SetLogLevel implements URLFrontier. All packages share one level.
func (s *Server) SetLogLevel(_ context.Context, p *pb.LogLevelParams) (*pb.Empty, error) {
	level, ok := levels[p.GetLevel()]
	if !ok {
		return nil, status.Errorf(codes.InvalidArgument, "there is no level %d", p.GetLevel())
	}
	if s.o.Level != nil {
		s.o.Level.Set(level)
	}
	return &pb.Empty{}, nil
}
