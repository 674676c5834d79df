package main

import (
	"bytes"
	"context"
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/serve"
	"github.com/seed-7440039f/frontier/urlfrontier"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestAllRowsAreMeasured(t *testing.T) {
	f, err := frontier.Open(t.Context(), urlfrontier.Frontier(frontier.Options{Delay: frontier.FixedDelay(0)}))
	require.NoError(t, err)
	defer f.Close()
	svc, err := serve.New(f, serve.Options{})
	require.NoError(t, err)
	defer svc.Close()
	s, err := urlfrontier.New(t.Context(), svc, urlfrontier.Options{})
	require.NoError(t, err)
	defer s.Close()
	over, web := listen(t), listen(t)
	g, h := s.GRPC(urlfrontier.GRPCOptions{}), svc.HTTP()
	go func() { _ = g.Serve(over) }()
	defer g.Stop()
	go func() { _ = h.Serve(web) }()
	defer h.Close()

	var table bytes.Buffer
	for _, only := range []string{"discovered,put,give,queues", "http-add,http-idle", "http-lease"} {
		require.NoError(t, run(t.Context(), []string{
			"-grpc", over.Addr().String(), "-http", web.Addr().String(), "-only", only, "-urls", "4000", "-single", "2000",
			"-hosts", "200", "-queues", "2000", "-calls", "20", "-span", "200ms", "-streams", "2",
		}, &table))
	}
	for _, row := range []string{
		"PutDiscovered, batches of 1000, 4000 URLs", "PutURLs, one message each, 2000 URLs", "GetURLs + PutURLs known, 4 clients",
		"GetURLs of 1, 2000 queues", "HTTP adds of 1000", "HTTP leases and ends of 100, 4 clients", "HTTP lease of 1, idle",
	} {
		assert.Contains(t, table.String(), row)
	}
	assert.ErrorContains(t, run(t.Context(), []string{"-grpc", over.Addr().String(), "-only", "put", "-single", "2000", "-hosts", "200"}, &table),
		"answered SKIPPED", "the server is no longer empty")
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	return l
}

func TestBadFlags(t *testing.T) {
	for _, c := range []struct{ want, flag, value string }{
		{"nothing to measure is named", "-only", "put,gvie"},
		{"-hosts must be at least 1", "-hosts", "0"},
		{"unexpected argument", "-urls=5", "more"},
	} {
		assert.ErrorContains(t, run(context.Background(), []string{c.flag, c.value}, &bytes.Buffer{}), c.want)
	}
	assert.ErrorContains(t, run(context.Background(), []string{"-pid", "1", "-start", "true"}, &bytes.Buffer{}), "exclude each other")
}
