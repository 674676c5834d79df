// This file defines Server: its options, its parts, and how it starts and stops.

package urlfrontier

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-7440039f/frontier/internal/unit"
	"github.com/seed-7440039f/frontier/serve"
	"github.com/seed-7440039f/frontier/urlfrontier/pb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
)

// Options configure a Server.
type Options struct {
	// Wait is how long GetURLs waits for a host's clock if no URL is due. Zero means 2 s; a negative
	// value means no wait.
	Wait time.Duration
	// MinDelay is the shortest delay that SetDelay sets.
	MinDelay time.Duration
	// Advertised is what ListNodes returns.
	Advertised []string
	// ListingAge is about how long a connection's listing is kept after it reads a page. Zero means a
	// minute.
	ListingAge time.Duration
	// TempDir is the folder for listings. Empty means os.TempDir.
	TempDir string
	// MaxUnfinished bounds the bytes of incomplete messages of all connections of GRPC. Beyond it the
	// server closes the connections with the most. Zero means 256 MiB.
	MaxUnfinished int64
	// Logger logs what an operator should see. Nil: none.
	Logger *slog.Logger
	// Level is the level that SetLogLevel sets. Nil: it sets none.
	Level *slog.LevelVar
}

// Server answers the calls of the URLFrontier API. It is safe for concurrent use.
type Server struct {
	pb.UnimplementedURLFrontierServer

	svc *serve.Service
	o   Options
	log *slog.Logger

	holds    holds
	purged   *purged
	settings *settings
	listings listings
	pages    pages         // of queues
	reads    chan struct{} // slots for calls that scan

	unreadFor, unreadWait, readWait time.Duration // constants, except in tests
	mostUnread                      int

	unfinished *unfinished
	stored     *room        // messages that are not stored yet
	clamped    sync.Once    // warns about long leases
	acks       atomic.Int64 // bytes of acknowledgements that clients have not read
	health     *health.Server

	write sync.Mutex   // held while URLs are added, changed or deleted
	spent []string     // guarded by write: keys that may have reached their limits
	hand  sync.RWMutex // read-held by hand-outs; write-held by deletions and moves

	groups    chan *group
	committed chan struct{} // closed when the committer ends
	sending   sync.RWMutex  // guards closed together with groups
	closed    bool
	closing   chan struct{}   // closed when Close begins
	life      context.Context // ends after the committer does
	end       context.CancelFunc
}

// New returns a Server over a Service. Close the Server before the Service. If PurgeURLs was ever called,
// New scans all URLs of the frontier once.
func New(ctx context.Context, svc *serve.Service, o Options) (*Server, error) {
	waits := o
	waits.Wait = max(0, o.Wait)
	if err := errors.Join(unit.CheckAll("", waits)...); err != nil {
		return nil, fmt.Errorf("urlfrontier: %w", err)
	}
	o.Wait = cmp.Or(o.Wait, 2*time.Second)
	o.ListingAge = cmp.Or(o.ListingAge, time.Minute)
	o.MaxUnfinished = cmp.Or(o.MaxUnfinished, 256<<20)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	kept, err := openSettings(ctx, svc.Frontier())
	if err != nil {
		return nil, err
	}
	purged, err := openPurged(ctx, svc.Frontier())
	if err != nil {
		return nil, err
	}
	s := &Server{
		svc: svc, o: o, log: o.Logger, purged: purged, settings: kept, groups: make(chan *group, 64),
		committed: make(chan struct{}), closing: make(chan struct{}), unfinished: newUnfinished(o.MaxUnfinished),
		stored: newRoom(mostStored), health: health.NewServer(),
		reads: make(chan struct{}, mostReads), unreadFor: unreadFor, unreadWait: unreadWait, readWait: readWait, mostUnread: mostUnread,
		listings: listings{age: o.ListingAge, log: o.Logger, making: make(chan struct{}, 1), kept: map[net.Addr]keptListing{}},
	}
	s.health.SetServingStatus(pb.URLFrontier_ServiceDesc.ServiceName, grpc_health_v1.HealthCheckResponse_SERVING)
	s.life, s.end = context.WithCancel(context.Background())
	for _, key := range kept.limited() { // the limit may have been reached unnoticed
		if _, err := s.withhold(key); err != nil {
			s.end()
			return nil, fmt.Errorf("urlfrontier: limits of queues: %w", err)
		}
	}
	go s.commitAll()
	return s, nil
}

// Register registers the calls with a gRPC server.
func (s *Server) Register(r grpc.ServiceRegistrar) { pb.RegisterURLFrontierServer(r, s) }

// Close refuses new puts, commits earlier ones, and ends calls that wait. Stop the gRPC server
// afterwards: clients then have their acknowledgements. The Service stays open.
func (s *Server) Close() error {
	s.sending.Lock()
	if s.closed {
		s.sending.Unlock()
		return nil
	}
	s.closed = true
	s.health.Shutdown()
	close(s.closing)
	close(s.groups)
	s.sending.Unlock()
	<-s.committed
	s.end()
	s.listings.close()
	return nil
}

// isClosing reports whether Close has begun.
func (s *Server) isClosing() bool {
	select {
	case <-s.closing:
		return true
	default:
		return false
	}
}
