package urlfrontier_test

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/fleet/route"
	"github.com/seed-7440039f/frontier/serve"
	"github.com/seed-7440039f/frontier/urlfrontier"
	"github.com/stretchr/testify/require"
)

// routed is a router before parts.
type routed struct {
	address string
	names   []string
	parts   map[string]*onePart
	route   *route.Router
}

// onePart is a part whose server may stop and start again at the same address.
type onePart struct {
	t       *testing.T
	f       *frontier.Frontier
	so      serve.Options
	o       urlfrontier.Options
	address string
	stop    func() // nil: it is stopped
	die     func() // cuts all connections
}

func startRouted(t *testing.T, n int, so serve.Options, o urlfrontier.Options) *routed {
	t.Helper()
	x := &routed{parts: map[string]*onePart{}}
	urls := map[string][]string{}
	to := map[string]urlfrontier.Dial{}
	for i := range n {
		name := fmt.Sprint(i)
		f, err := frontier.Open(t.Context(), urlfrontier.Frontier(frontier.Options{}))
		require.NoError(t, err)
		p := &onePart{t: t, f: f, so: so, o: o, address: "127.0.0.1:0"}
		p.start()
		x.names, x.parts[name] = append(x.names, name), p
		urls[name] = []string{"http://" + p.address}
		to[name] = func(context.Context) (net.Conn, error) { return net.Dial("tcp", p.address) }
	}
	var err error
	x.route, err = route.New(route.Options{Parts: urls})
	require.NoError(t, err)
	r, err := urlfrontier.NewRouter(urlfrontier.RouterOptions{Division: x.route, Parts: to, Wait: o.Wait, Away: 3 * time.Second, Advertised: o.Advertised})
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	x.address = l.Addr().String()
	server := r.GRPC(urlfrontier.GRPCOptions{})
	end := serving(t, server, l)
	t.Cleanup(func() {
		require.NoError(t, r.Stop(server, time.Second))
		end()
		require.NoError(t, x.route.Close())
		for _, p := range x.parts {
			p.end()
			require.NoError(t, p.f.Check())
			require.NoError(t, p.f.Close())
		}
	})
	return x
}

// start serves the part at the address that it had before.
func (p *onePart) start() {
	l, err := net.Listen("tcp", p.address)
	require.NoError(p.t, err)
	p.address = l.Addr().String()
	svc, err := serve.New(p.f, p.so)
	require.NoError(p.t, err)
	o := p.o
	o.TempDir = p.t.TempDir()
	s, err := urlfrontier.New(p.t.Context(), svc, o)
	require.NoError(p.t, err)
	server := s.GRPC(urlfrontier.GRPCOptions{})
	var served sync.WaitGroup
	served.Go(func() { _ = server.Serve(l) })
	p.die = server.Stop
	p.stop = func() {
		server.Stop()
		served.Wait()
		require.NoError(p.t, s.Close())
		require.NoError(p.t, svc.Close())
	}
}

// end stops the part's server, and cuts its connections.
func (p *onePart) end() {
	if p.stop != nil {
		p.stop()
		p.stop = nil
	}
}
