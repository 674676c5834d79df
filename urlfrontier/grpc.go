// This file builds the gRPC server: limits, authorization, health and reflection.

package urlfrontier

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/internal/unit"
	"github.com/seed-7440039f/frontier/serve"
	"github.com/seed-7440039f/frontier/urlfrontier/pb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	encodingproto "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"
)

// Limits on what a client sends.
const (
	maxMessage = 16 << 20 // bytes per message
	maxStreams = 256      // calls per connection; more wait
)

// probeEvery is how long a router hears nothing of a part before it asks whether it is there.
const probeEvery = 20 * time.Second

// GRPCOptions configure a gRPC server.
type GRPCOptions struct {
	// TLS encrypts connections. Nil: they are not encrypted.
	TLS *tls.Config
	// Reflection serves the descriptions of messages and calls.
	Reflection bool
}

// GRPC returns a gRPC server with the calls and the health service. Roles come from the Service: by the
// token in the metadata authorization, or by certificate.
func (s *Server) GRPC(o GRPCOptions) *grpc.Server {
	g := newGRPC(o, s.unfinished,
		grpc.InTapHandle(func(ctx context.Context, info *tap.Info) (context.Context, error) { // before the message is read
			who, err := s.allowed(ctx, info.FullMethodName)
			return context.WithValue(ctx, whoKey{}, who), err
		}),
		grpc.ChainUnaryInterceptor(s.audited),
	)
	s.Register(g)
	grpc_health_v1.RegisterHealthServer(g, healthOf{s.health, s.ready})
	return g
}

// newGRPC returns a gRPC server without calls.
func newGRPC(o GRPCOptions, u *unfinished, more ...grpc.ServerOption) *grpc.Server {
	creds := insecure.NewCredentials()
	if o.TLS != nil {
		creds = credentials.NewTLS(o.TLS)
	}
	g := grpc.NewServer(append(append(u.options(creds),
		grpc.ForceServerCodecV2(codec{encoding.GetCodecV2(encodingproto.Name)}),
		grpc.MaxRecvMsgSize(maxMessage),
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: probeEvery / 2, PermitWithoutStream: true}),
	), more...)...)
	if o.Reflection {
		reflection.Register(g)
	}
	return g
}

// ready returns why no URL is handed out at the moment, or nil.
func (s *Server) ready() error {
	if s.isClosing() {
		return frontier.ErrClosed
	}
	return s.svc.Ready()
}

// Stop closes the Server and then the gRPC server: clients get the acknowledgements of calls under way,
// then GOAWAY, and up to patience to end their streams. If patience is too short to have a unit, Stop
// returns an error at once.
func (s *Server) Stop(g *grpc.Server, patience time.Duration) error {
	return stop(s.Close, g, patience)
}

// stop stops a gRPC server after what it calls.
func stop(closes func() error, g *grpc.Server, patience time.Duration) error {
	t := time.AfterFunc(patience, g.Stop) // also ends a purge that closes waits for
	defer t.Stop()
	err := errors.Join(unit.Check("patience", patience, unit.Measured), closes())
	g.GracefulStop()
	return err
}

// roles maps calls to the roles that they need.
var roles = map[string]serve.Role{
	"GetURLs": serve.Crawl, "PutURLs": serve.Crawl, "PutDiscovered": serve.Crawl,
	"ListNodes": serve.Look, "ListCrawls": serve.Look, "ListQueues": serve.Look, "GetStats": serve.Look, "GetActive": serve.Look,
	"GetURLStatus": serve.Look, "ListURLs": serve.Look, "CountURLs": serve.Look,
}

// audited logs the client of each change: of calls that need the role operate.
func (s *Server) audited(ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	answer, err := handle(ctx, request)
	service, call, _ := strings.Cut(strings.TrimPrefix(info.FullMethod, "/"), "/")
	if _, others := roles[call]; !others && service == pb.URLFrontier_ServiceDesc.ServiceName && err == nil {
		s.log.Info("a client changed something", "call", call, "request", fmt.Sprint(request), "who", clientOf(ctx))
	}
	return answer, err
}

// whoKey is the context key of a client's name.
type whoKey struct{}

// clientOf returns the operators' name for the client of a call.
func clientOf(ctx context.Context) string {
	who, _ := ctx.Value(whoKey{}).(string)
	address := ""
	if p, ok := peer.FromContext(ctx); ok {
		address = p.Addr.String()
	}
	return serve.ClientName(who, address)
}

// allowed returns the client's name, or an error if it may not call a method.
func (s *Server) allowed(ctx context.Context, method string) (who string, err error) {
	if strings.HasPrefix(method, "/grpc.health.") {
		return "", nil
	}
	need := serve.Operate
	if service, call, ok := strings.Cut(strings.TrimPrefix(method, "/"), "/"); ok {
		if r, ok := roles[call]; ok && service == pb.URLFrontier_ServiceDesc.ServiceName {
			need = r
		} else if strings.HasPrefix(service, "grpc.reflection.") {
			need = serve.Look
		}
	}
	role := serve.Operate
	if !s.svc.Open() {
		role, who = s.svc.Role(given(ctx, authorization), over(ctx))
	}
	switch {
	case role == serve.Anonymous:
		return "", status.Error(codes.Unauthenticated, "a token in the metadata authorization is needed")
	case role < need:
		return "", status.Errorf(codes.PermissionDenied, "the role %v may not do this; want %v", role, need)
	}
	if err := s.svc.IsPart(ctx, given(ctx, serve.PartHeader), need > serve.Look); err != nil {
		return "", status.Error(codes.FailedPrecondition, err.Error())
	}
	return who, nil
}

// authorization is the metadata with a client's token.
const authorization = "authorization"

// given returns the value of metadata that a client has sent, or nothing.
func given(ctx context.Context, name string) string {
	if v := metadata.ValueFromIncomingContext(ctx, name); len(v) > 0 {
		return v[0]
	}
	return ""
}

// over returns the TLS connection of a client, or nil if it is in the clear.
func over(ctx context.Context) *tls.ConnectionState {
	if p, ok := peer.FromContext(ctx); ok {
		if info, ok := p.AuthInfo.(credentials.TLSInfo); ok {
			return &info.State
		}
	}
	return nil
}

// healthOf is the health service: SERVING while ready returns nil, as for /readyz.
type healthOf struct {
	*health.Server
	ready func() error
}

// Check implements grpc.health.v1.Health.
func (h healthOf) Check(ctx context.Context, r *grpc_health_v1.HealthCheckRequest) (*grpc_health_v1.HealthCheckResponse, error) {
	x, err := h.Server.Check(ctx, r)
	if err == nil && h.ready() != nil {
		x.Status = grpc_health_v1.HealthCheckResponse_NOT_SERVING
	}
	return x, err
}

// watchEvery is the interval at which Watch checks that.
const watchEvery = 5 * time.Second

// Watch implements grpc.health.v1.Health. It reports within watchEvery that nothing is ready any more, or is
// again.
func (h healthOf) Watch(r *grpc_health_v1.HealthCheckRequest, stream grpc_health_v1.Health_WatchServer) error {
	go func() {
		for t := time.NewTicker(watchEvery); ; {
			select {
			case <-stream.Context().Done():
				t.Stop()
				return
			case <-t.C:
				if h.ready() != nil {
					h.Shutdown()
				} else {
					h.Resume()
				}
			}
		}
	}()
	return h.Server.Watch(r, stream)
}
