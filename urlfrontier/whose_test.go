package urlfrontier_test

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/console"
	"github.com/seed-7440039f/frontier/serve"
	"github.com/seed-7440039f/frontier/urlfrontier"
	"github.com/seed-7440039f/frontier/urlfrontier/pb"
)

// What a client of this API has, an operator sees and ends; for more than the longest lease no client gets
// it, whatever it asks for.
func TestOperatorsEndWhatGetURLsHandedOut(t *testing.T) {
	f, err := frontier.Open(t.Context(), urlfrontier.Frontier(frontier.Options{Delay: frontier.FixedDelay(0)}))
	require.NoError(t, err)
	svc, err := serve.New(f, serve.Options{MaxLease: time.Minute})
	require.NoError(t, err)
	s, err := urlfrontier.New(t.Context(), svc, urlfrontier.Options{})
	require.NoError(t, err)
	at, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := s.GRPC(urlfrontier.GRPCOptions{})
	served := make(chan error, 1)
	go func() { served <- server.Serve(at) }()
	t.Cleanup(func() {
		require.NoError(t, s.Stop(server, time.Second))
		require.NoError(t, <-served)
		require.NoError(t, svc.Close())
		require.NoError(t, f.Check())
		require.NoError(t, f.Close())
	})
	a := dial(t, at.Addr().String())
	a.put(discovered("DEFAULT", "a.example", "http://a.example/"))
	require.Len(t, a.get(&pb.GetParams{DelayRequestable: 4294967295, Item: anyCrawl}), 1)
	l := svc.Leases(console.LeaseQuery{}).Leases
	require.Len(t, l, 1)
	assert.Equal(t, []string{"127.0.0.1", "a.example", "http://a.example/", "DEFAULT"}, []string{l[0].Client, l[0].Host, l[0].URL, l[0].Crawl})
	assert.LessOrEqual(t, l[0].Until.Sub(l[0].Since), time.Minute)
	n, err := svc.EndLeases(console.LeaseQuery{Client: "127.0.0.1"})
	require.NoError(t, err)
	assert.Equal(t, 1, n)
	assert.Len(t, a.get(&pb.GetParams{Item: anyCrawl}), 1, "it came again")
}
