// This file defines Router: its options, its connections to the parts, and its gRPC server.

package urlfrontier

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-7440039f/frontier/internal/unit"
	"github.com/seed-7440039f/frontier/serve"
	"github.com/seed-7440039f/frontier/urlfrontier/pb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
)

// Division says which part has a host. A route.Router is one.
type Division interface {
	// Home returns the name of the part that has the host of a key.
	Home(key string) (part string)
	// Mark returns what the servers of a part know it by: see serve.PartHeader.
	Mark(part string) string
}

// Dial opens a connection.
type Dial = func(context.Context) (net.Conn, error)

// RouterOptions configure a Router.
type RouterOptions struct {
	// Division divides the hosts.
	Division Division
	// Parts connect with the gRPC server of each part, by name.
	Parts map[string]Dial
	// Wait is how long GetURLs waits for a host's clock if no URL is due. Zero means 2 s; a negative
	// value means no wait.
	Wait time.Duration
	// Away is how long a part may be away before the URLs that are put there fail. Zero means 45 s, as
	// StormCrawler waits for a minute; a negative value means no time.
	Away time.Duration
	// Advertised is what ListNodes returns.
	Advertised []string
	// MaxUnfinished bounds the bytes of incomplete messages. See Options.
	MaxUnfinished int64
	// Logger logs parts that do not answer. Nil: none.
	Logger *slog.Logger
}

// Router answers the calls of the URLFrontier API for several parts of a frontier, each with a Server of its
// own. It keeps no URL. It is safe for concurrent use.
//
// Each connection of a client has its own connections to the parts: a part keeps listings, and counts
// calls, by connection.
type Router struct {
	pb.UnimplementedURLFrontierServer

	o     RouterOptions
	parts []*part // by name
	by    map[string]*part
	turn  atomic.Uint32 // of the part that is asked first

	unfinished *unfinished
	passing    *room        // messages on their way to parts
	waiting    atomic.Int64 // bytes of what waits for acknowledgements
	health     *health.Server
	own        *caller // for the health of the parts
	closing    context.Context
	close      context.CancelFunc
}

// part has some of the hosts.
type part struct {
	name, mark string
	dial       Dial
	rests      atomic.Int64 // until then, in Unix nanoseconds, it is asked last
}

const (
	restFor    = 2 * time.Second
	idleFor    = 2 * time.Minute // then a connection is closed, with the listing that a part keeps for it
	maxAnswer  = 64 << 20        // bytes
	healthWait = 5 * time.Second
)

// NewRouter returns a Router. It does not contact the parts. Close the Router after use.
func NewRouter(o RouterOptions) (*Router, error) {
	waits := o
	waits.Wait, waits.Away = max(0, o.Wait), max(0, o.Away)
	if err := errors.Join(unit.CheckAll("", waits)...); err != nil {
		return nil, fmt.Errorf("urlfrontier: router: %w", err)
	}
	if len(o.Parts) == 0 {
		return nil, errors.New("urlfrontier: router: there is no part")
	}
	o.Wait, o.Away, o.MaxUnfinished, o.Logger = cmp.Or(o.Wait, 2*time.Second), cmp.Or(o.Away, 45*time.Second), cmp.Or(o.MaxUnfinished, 256<<20), cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	r := &Router{o: o, by: map[string]*part{}, unfinished: newUnfinished(o.MaxUnfinished), passing: newRoom(mostStored), health: health.NewServer(), own: newCaller()}
	for _, name := range slices.Sorted(maps.Keys(o.Parts)) {
		p := &part{name: name, mark: o.Division.Mark(name), dial: o.Parts[name]}
		r.parts, r.by[name] = append(r.parts, p), p
	}
	r.health.SetServingStatus(pb.URLFrontier_ServiceDesc.ServiceName, grpc_health_v1.HealthCheckResponse_SERVING)
	r.closing, r.close = context.WithCancel(context.Background())
	return r, nil
}

// GRPC returns a gRPC server with the calls and the health service. The parts judge the tokens of clients.
func (r *Router) GRPC(o GRPCOptions) *grpc.Server {
	g := newGRPC(o, r.unfinished, grpc.StatsHandler(callers{}))
	pb.RegisterURLFrontierServer(g, r)
	grpc_health_v1.RegisterHealthServer(g, healthOf{r.health, r.ready})
	return g
}

// Close ends calls that wait for a clock. Stop the gRPC server afterwards.
func (r *Router) Close() error {
	r.health.Shutdown()
	r.close()
	r.own.close()
	return nil
}

// Stop closes the Router and then the gRPC server, as Server.Stop does.
func (r *Router) Stop(g *grpc.Server, patience time.Duration) error {
	return stop(r.Close, g, patience)
}

// home returns the part of a key, or of a URL that came without one.
func (r *Router) home(key, url string) *part { return r.by[r.o.Division.Home(cmp.Or(key, keyOf(url)))] }

// of returns the parts that have a key: with none, all of them.
func (r *Router) of(key string) []*part {
	if key == "" {
		return r.parts
	}
	return []*part{r.home(key, "")}
}

// inTurn returns the parts of a key, beginning with another each time. Those that did not answer lately
// come last.
func (r *Router) inTurn(key string) []*part {
	parts := r.of(key)
	first := int(r.turn.Add(1) % uint32(len(parts)))
	order, now := slices.Concat(parts[first:], parts[:first]), time.Now().UnixNano()
	slices.SortStableFunc(order, func(a, b *part) int { return cmp.Compare(max(now, a.rests.Load()), max(now, b.rests.Load())) })
	return order
}

// failed notes that a part has not answered a call, and returns the error for the client.
func (r *Router) failed(ctx context.Context, p *part, err error) error {
	if ctx.Err() != nil {
		return status.FromContextError(ctx.Err()).Err()
	}
	now := time.Now()
	if !refused(err) && p.rests.Swap(now.Add(restFor).UnixNano()) < now.UnixNano() {
		r.o.Logger.Warn("a part does not answer gRPC", "partition", p.name, "error", err)
	}
	s := status.Convert(err)
	return status.Errorf(s.Code(), "part %s: %s", p.name, s.Message())
}

// refused reports whether a part has answered with an error that comes again when the call is repeated.
func refused(err error) bool {
	switch status.Code(err) {
	case codes.Unauthenticated, codes.PermissionDenied, codes.FailedPrecondition, codes.InvalidArgument, codes.NotFound, codes.Unimplemented:
		return true
	}
	return false
}

// ready returns why no part is ready, or nil: one is enough.
func (r *Router) ready() error {
	ctx, cancel := context.WithTimeout(r.closing, healthWait)
	defer cancel()
	answers := make(chan error, len(r.parts))
	for _, p := range r.parts {
		go func() { answers <- r.own.health(ctx, p) }()
	}
	var all []string
	for range r.parts {
		err := <-answers
		if err == nil {
			return nil
		}
		all = append(all, err.Error())
	}
	return fmt.Errorf("no part is ready: %s", strings.Join(all, "; "))
}

// caller has the connections to the parts for one client's connection.
type caller struct {
	mu    sync.Mutex
	conns map[*part]*grpc.ClientConn
	gone  bool // the client's connection has ended
	order order
}

func newCaller() *caller {
	return &caller{conns: map[*part]*grpc.ClientConn{}, order: order{stored: map[turn]bool{}}}
}

// conn returns the connection to a part.
func (c *caller) conn(p *part) (conn *grpc.ClientConn, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone {
		return nil, status.Error(codes.Canceled, "the client has gone")
	}
	if conn = c.conns[p]; conn == nil {
		conn, err = grpc.NewClient("passthrough:///"+p.name,
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return p.dial(ctx) }),
			grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxAnswer)),
			grpc.WithIdleTimeout(idleFor),
			grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: probeEvery, Timeout: probeEvery / 2}),
			grpc.WithConnectParams(grpc.ConnectParams{
				Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: restFor},
				MinConnectTimeout: 3 * time.Second,
			}),
		)
		c.conns[p] = conn
	}
	return conn, err
}

// health returns why a part is not ready, or nil.
func (c *caller) health(ctx context.Context, p *part) error {
	conn, err := c.conn(p)
	if err != nil {
		return err
	}
	x, err := grpc_health_v1.NewHealthClient(conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{})
	if err == nil && x.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING {
		err = fmt.Errorf("part %s is %v", p.name, x.GetStatus())
	}
	return err
}

func (c *caller) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gone = true
	for _, conn := range c.conns {
		_ = conn.Close()
	}
}

// client returns what calls a part, and the context of such calls, for a client's call.
func (p *part) client(ctx context.Context) (pb.URLFrontierClient, context.Context, error) {
	conn, err := ctx.Value(callerKey{}).(*caller).conn(p)
	sent := metadata.Pairs(serve.PartHeader, p.mark)
	if token := given(ctx, authorization); token != "" {
		sent.Set(authorization, token)
	}
	return pb.NewURLFrontierClient(conn), metadata.NewOutgoingContext(ctx, sent), err
}

type callerKey struct{}

// callers is a stats.Handler that makes a caller for each connection.
type callers struct{}

// TagConn implements stats.Handler.
func (callers) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context {
	return context.WithValue(ctx, callerKey{}, newCaller())
}

// HandleConn implements stats.Handler.
func (callers) HandleConn(ctx context.Context, x stats.ConnStats) {
	if _, over := x.(*stats.ConnEnd); over {
		ctx.Value(callerKey{}).(*caller).close()
	}
}

// TagRPC implements stats.Handler.
func (callers) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// HandleRPC implements stats.Handler.
func (callers) HandleRPC(context.Context, stats.RPCStats) {}
