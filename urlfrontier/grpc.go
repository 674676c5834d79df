// This file is the gRPC server: its bounds, who may call what, health and reflection.

package urlfrontier

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"time"

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
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"
)

// What a client may send at once.
const (
	maxMessage = 16 << 20 // bytes of a message
	maxStreams = 256      // calls and streams of a connection; more wait
)

// GRPCOptions configure a gRPC server.
type GRPCOptions struct {
	// TLS is for encrypted connections. Nil: they are not.
	TLS *tls.Config
	// Reflection lets clients ask for the messages and calls.
	Reflection bool
}

// GRPC returns a gRPC server with the calls and the health service. Roles are those of the Service's
// tokens, in the metadata authorization, or of certificates.
func (s *Server) GRPC(o GRPCOptions) *grpc.Server {
	creds := insecure.NewCredentials()
	if o.TLS != nil {
		creds = credentials.NewTLS(o.TLS)
	}
	options := append(s.unfinished.options(creds),
		grpc.ForceServerCodecV2(codec{encoding.GetCodecV2(encodingproto.Name)}),
		grpc.MaxRecvMsgSize(maxMessage),
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.InTapHandle(func(ctx context.Context, info *tap.Info) (context.Context, error) { // before a message is read
			who, err := s.allowed(ctx, info.FullMethodName)
			return context.WithValue(ctx, whoKey{}, who), err
		}),
	)
	g := grpc.NewServer(append(options, grpc.ChainUnaryInterceptor(s.audited))...)
	s.Register(g)
	grpc_health_v1.RegisterHealthServer(g, healthOf{s.health, s.svc})
	if o.Reflection {
		reflection.Register(g)
	}
	return g
}

// Stop closes the Server and then the gRPC server: clients get the acknowledgements of what was
// under way, then GOAWAY, and a time to end their streams. It ends at once, and returns an error, if
// patience is so short that its unit must be missing.
func (s *Server) Stop(g *grpc.Server, patience time.Duration) error {
	t := time.AfterFunc(patience, g.Stop) // it also ends a purge that Close waits for
	defer t.Stop()
	err := errors.Join(unit.Check("patience", patience, unit.Measured), s.Close())
	g.GracefulStop()
	return err
}

// roles are those that calls need.
var roles = map[string]serve.Role{
	"GetURLs": serve.Crawl, "PutURLs": serve.Crawl, "PutDiscovered": serve.Crawl,
	"ListNodes": serve.Look, "ListCrawls": serve.Look, "ListQueues": serve.Look, "GetStats": serve.Look, "GetActive": serve.Look,
	"GetURLStatus": serve.Look, "ListURLs": serve.Look, "CountURLs": serve.Look,
}

// audited says in the log who has changed something: calls that only the role operate may make.
func (s *Server) audited(ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	answer, err := handle(ctx, request)
	service, call, _ := strings.Cut(strings.TrimPrefix(info.FullMethod, "/"), "/")
	if _, others := roles[call]; !others && service == pb.URLFrontier_ServiceDesc.ServiceName && err == nil {
		s.log.Info("a client changed something", "call", call, "request", fmt.Sprint(request), "who", clientOf(ctx))
	}
	return answer, err
}

// whoKey is the key of the name of a client in the context of its call.
type whoKey struct{}

// clientOf is what operators call who calls.
func clientOf(ctx context.Context) string {
	who, _ := ctx.Value(whoKey{}).(string)
	address := ""
	if p, ok := peer.FromContext(ctx); ok {
		address = p.Addr.String()
	}
	return serve.ClientName(who, address)
}

// allowed returns the name of a client, and an error if it may not call a method.
func (s *Server) allowed(ctx context.Context, method string) (who string, err error) {
	if s.svc.Open() || strings.HasPrefix(method, "/grpc.health.") {
		return "", nil
	}
	var authorization string
	if md, ok := metadata.FromIncomingContext(ctx); ok {
		if v := md.Get("authorization"); len(v) > 0 {
			authorization = v[0]
		}
	}
	role, who := s.svc.Role(authorization, certified(ctx))
	if role == serve.Nobody {
		return "", status.Error(codes.Unauthenticated, "a token in the metadata authorization is needed")
	}
	need := serve.Operate
	if service, call, ok := strings.Cut(strings.TrimPrefix(method, "/"), "/"); ok {
		if r, ok := roles[call]; ok && service == pb.URLFrontier_ServiceDesc.ServiceName {
			need = r
		} else if strings.HasPrefix(service, "grpc.reflection.") {
			need = serve.Look
		}
	}
	if role < need {
		return "", status.Errorf(codes.PermissionDenied, "the role %v may not do this; want %v", role, need)
	}
	return who, nil
}

// certified are the names of a client's verified certificate.
func certified(ctx context.Context) (names []string) {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return nil
	}
	info, ok := p.AuthInfo.(credentials.TLSInfo)
	if !ok || len(info.State.VerifiedChains) == 0 {
		return nil
	}
	c := info.State.PeerCertificates[0]
	names = append(append(names, c.DNSNames...), c.EmailAddresses...)
	for _, u := range c.URIs {
		names = append(names, u.String())
	}
	for _, ip := range c.IPAddresses {
		names = append(names, ip.String())
	}
	return names
}

// healthOf is the health service: SERVING only while the Service is ready, as /readyz says.
type healthOf struct {
	*health.Server
	svc *serve.Service
}

// Check implements the call.
func (h healthOf) Check(ctx context.Context, r *grpc_health_v1.HealthCheckRequest) (*grpc_health_v1.HealthCheckResponse, error) {
	x, err := h.Server.Check(ctx, r)
	if err == nil && h.svc.Ready() != nil {
		x.Status = grpc_health_v1.HealthCheckResponse_NOT_SERVING
	}
	return x, err
}

// watchEvery is how often Watch looks whether the Service is ready.
const watchEvery = 5 * time.Second

// Watch implements the call. What becomes of a Service that is not ready any more is told at
// the latest after watchEvery; it does not become ready again.
func (h healthOf) Watch(r *grpc_health_v1.HealthCheckRequest, stream grpc_health_v1.Health_WatchServer) error {
	go func() {
		for t := time.NewTicker(watchEvery); ; {
			select {
			case <-stream.Context().Done():
				t.Stop()
				return
			case <-t.C:
				if h.svc.Ready() != nil {
					h.Shutdown()
				}
			}
		}
	}()
	return h.Server.Watch(r, stream)
}
