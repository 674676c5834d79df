package nats

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier/fleet"
	"github.com/seed-7440039f/frontier/fleet/enginetest"
	"github.com/seed-7440039f/frontier/fleet/peer"
)

// outside starts a server that is in no node, and returns its URL for clients.
func outside(t *testing.T, change func(*server.Options)) string {
	o := &server.Options{
		Host: "127.0.0.1", Port: -1, HTTPHost: "127.0.0.1", HTTPPort: -1, NoSigs: true, NoLog: true, JetStream: true, StoreDir: t.TempDir(), SyncAlways: true,
		MaxPayload: 2 << 20,
	}
	change(o)
	s, err := server.NewServer(o)
	require.NoError(t, err)
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	require.True(t, s.ReadyForConnections(10*time.Second))
	port := 1
	if m := s.MonitorAddr(); m != nil {
		port = m.Port
	}
	return fmt.Sprintf("%s?monitor=%d", s.ClientURL(), port)
}

func TestCluster(t *testing.T) {
	at := outside(t, func(o *server.Options) { o.MaxPayload = recordMost + 1<<10 })
	enginetest.TestShared(t, enginetest.StartOf(func(ctx context.Context, o peer.Options) (*Engine, error) {
		return Connect(ctx, Cluster{Fleet: o.Peers["n0"][len("127.0.0.1:"):], URLs: []string{at}})
	}))
}

// Servers whose clients use TLS say over TLS what they are.
func TestAClusterWithTLS(t *testing.T) {
	x := httptest.NewTLSServer(http.NotFoundHandler()) // for its certificate
	defer x.Close()
	at := outside(t, func(o *server.Options) {
		o.TLSConfig, o.HTTPPort, o.HTTPSPort = &tls.Config{Certificates: x.TLS.Certificates}, 0, -1
	})
	require.Equal(t, "tls://", at[:6])
	_, err := Connect(t.Context(), Cluster{Fleet: "test", URLs: []string{at}})
	require.ErrorContains(t, err, "unknown authority")
	trust := &tls.Config{RootCAs: x509.NewCertPool()}
	trust.RootCAs.AddCert(x.Certificate())
	e, err := Connect(t.Context(), Cluster{Fleet: "test", URLs: []string{at}, TLS: trust})
	require.NoError(t, err)
	require.NoError(t, e.Close())
}

// Each stream of a cluster of three is on all of them, and one may end.
func TestAClusterOfThree(t *testing.T) {
	var routes []*url.URL
	var ports []string
	for range 3 {
		at := enginetest.FreePort(t)
		ports = append(ports, at)
		routes = append(routes, &url.URL{Scheme: "nats", Host: at})
	}
	var urls []string
	ends := make([]*server.Server, 3)
	for i := range 3 {
		_, port, _ := net.SplitHostPort(ports[i])
		n, err := strconv.Atoi(port)
		require.NoError(t, err)
		o := &server.Options{
			ServerName: fmt.Sprint("s", i), Host: "127.0.0.1", Port: -1, HTTPHost: "127.0.0.1", HTTPPort: -1, NoSigs: true, NoLog: true, JetStream: true, StoreDir: t.TempDir(),
			SyncAlways: true, MaxPayload: 2 << 20, Cluster: server.ClusterOpts{Name: "test", Host: "127.0.0.1", Port: n}, Routes: routes,
		}
		ends[i], err = server.NewServer(o)
		require.NoError(t, err)
		ends[i].Start()
		t.Cleanup(func() {
			ends[i].Shutdown()
			ends[i].WaitForShutdown()
		})
	}
	for _, s := range ends {
		require.True(t, s.ReadyForConnections(20*time.Second))
		urls = append(urls, fmt.Sprintf("%s?monitor=%d", s.ClientURL(), s.MonitorAddr().Port))
	}
	e, err := Connect(t.Context(), Cluster{Fleet: "test", URLs: urls})
	require.NoError(t, err)
	defer e.Close()
	last, err := e.Append(t.Context(), 1, 0, []byte("r"))
	require.NoError(t, err)
	a, err := call(t.Context(), e.conn, "$JS.API.STREAM.INFO."+e.logOf(1), nil)
	require.NoError(t, err)
	require.Equal(t, 3, a.Config.Replicas)
	ends[0].Shutdown()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.NoError(t, again(ctx, func() error {
		n, r, err := e.Last(ctx, 1)
		if err == nil && (n != last || string(r) != "r") {
			t.Errorf("%d %s", n, r)
		}
		return err
	}))
	other, err := Connect(ctx, Cluster{Fleet: "test", URLs: urls})
	require.NoError(t, err, "a machine that starts meanwhile")
	require.NoError(t, other.Close())
}

// Fleets that share servers have nothing in common.
func TestFleetsShareACluster(t *testing.T) {
	at := outside(t, func(*server.Options) {})
	_, err := Connect(t.Context(), Cluster{Fleet: "a/t", URLs: []string{at}})
	require.ErrorContains(t, err, "a/t")
	all := map[string]*Engine{}
	for _, name := range []string{"a", "a.b", "a-b", "b"} {
		e, err := Connect(t.Context(), Cluster{Fleet: name, URLs: []string{at}})
		require.NoError(t, err)
		defer e.Close()
		all[name] = e
		got, err := e.Get(t.Context(), "k")
		require.NoError(t, err)
		require.Zero(t, got)
		_, err = e.Put(t.Context(), "k", []byte(name), 0)
		require.NoError(t, err)
		_, err = e.Append(t.Context(), 3, 0, make([]byte, 1<<20+100)) // the longest record
		require.NoError(t, err)
	}
	for name, e := range all {
		seen := make(chan []fleet.Entry, 1)
		go func() { _ = e.Watch(t.Context(), func(x []fleet.Entry) { seen <- x }) }()
		x := <-seen
		require.Len(t, x, 1)
		require.Equal(t, name, string(x[0].Value))
		last, _, err := e.Last(t.Context(), 3)
		require.NoError(t, err)
		require.NoError(t, e.Purge(t.Context(), 3, last))
	}
}

// Servers that acknowledge what they have not synced keep no fleet, nor do those that do not say so.
func TestAClusterThatDoesNotSync(t *testing.T) {
	good := outside(t, func(*server.Options) {})
	client, _, _ := strings.Cut(good, "?")
	silent := httptest.NewServer(http.NotFoundHandler())
	defer silent.Close()
	for want, urls := range map[string][]string{
		"sync_interval: always":                         {good, outside(t, func(o *server.Options) { o.SyncAlways = false })},
		"the server does not say whether it syncs: Get": {outside(t, func(o *server.Options) { o.HTTPPort = 0 })},
		"answers 404 Not Found":                         {client + "?monitor=" + silent.URL[len("http://127.0.0.1:"):]},
		"that of another server":                        {outside(t, func(*server.Options) {})[:len(client)] + good[len(client):]},
		"has no JetStream":                              {outside(t, func(o *server.Options) { o.JetStream = false })},
		"max_payload must be at least 2MB":              {outside(t, func(o *server.Options) { o.MaxPayload = 1 << 20 })},
		"no servers available":                          {"nats://" + enginetest.FreePort(t)},
	} {
		e, err := Connect(t.Context(), Cluster{Fleet: "test", URLs: urls})
		require.ErrorContains(t, err, want)
		require.Nil(t, e)
	}
}
