package etcd

import (
	"context"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/server/v3/embed"

	"github.com/seed-7440039f/frontier/fleet"
	"github.com/seed-7440039f/frontier/fleet/enginetest"
	"github.com/seed-7440039f/frontier/fleet/peer"
)

// outside starts a server that is in no node, and returns its URL for clients.
func outside(t *testing.T, change func(*embed.Config)) string {
	cfg := embed.NewConfig()
	cfg.Dir, cfg.LogLevel, cfg.LogOutputs = t.TempDir(), "fatal", []string{"/dev/null"}
	at := url.URL{Scheme: "http", Host: enginetest.FreePort(t)}
	peers := url.URL{Scheme: "http", Host: enginetest.FreePort(t)}
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = []url.URL{at}, []url.URL{at}
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = []url.URL{peers}, []url.URL{peers}
	cfg.InitialCluster = cfg.Name + "=" + peers.String()
	change(cfg)
	e, err := embed.StartEtcd(cfg)
	require.NoError(t, err)
	t.Cleanup(e.Close)
	<-e.Server.ReadyNotify()
	return at.String()
}

func TestCluster(t *testing.T) {
	at := outside(t, func(c *embed.Config) { c.MaxRequestBytes = 4 << 20 })
	enginetest.TestShared(t, enginetest.StartOf(func(ctx context.Context, o peer.Options) (*Engine, error) {
		return Connect(ctx, Cluster{Fleet: o.Peers["n0"][len("127.0.0.1:"):], URLs: []string{at}})
	}))
}

// Fleets that share servers have nothing in common.
func TestFleetsShareACluster(t *testing.T) {
	at := outside(t, func(*embed.Config) {})
	_, err := Connect(t.Context(), Cluster{Fleet: "a/t", URLs: []string{at}})
	require.ErrorContains(t, err, "a/t")
	all := map[string]*Engine{}
	for _, name := range []string{"a", "ab", "b"} {
		e, err := Connect(t.Context(), Cluster{Fleet: name, URLs: []string{at}})
		require.NoError(t, err)
		defer e.Close()
		all[name] = e
		got, err := e.Get(t.Context(), "k")
		require.NoError(t, err)
		require.Zero(t, got)
		_, err = e.Put(t.Context(), "k", []byte(name), 0)
		require.NoError(t, err)
		_, err = e.Append(t.Context(), 3, 0, make([]byte, 1<<20+100)) // the longest record, which servers take by default
		require.NoError(t, err)
	}
	for name, e := range all {
		seen := make(chan []fleet.Entry, 1)
		go func() { _ = e.Watch(t.Context(), func(x []fleet.Entry) { seen <- x }) }()
		x := <-seen
		require.Len(t, x, 1)
		require.Equal(t, name, string(x[0].Value))
		require.NoError(t, e.Purge(t.Context(), 3, 1))
	}
}

// A cluster that acknowledges what it has not synced keeps no fleet, nor does one that does not say so.
func TestAClusterThatDoesNotSync(t *testing.T) {
	at := outside(t, func(c *embed.Config) { c.UnsafeNoFsync = true })
	_, err := Connect(t.Context(), Cluster{Fleet: "test", URLs: []string{at}})
	require.ErrorContains(t, err, "without --unsafe-no-fsync")
	elsewhere := url.URL{Scheme: "http", Host: enginetest.FreePort(t)}
	at = outside(t, func(c *embed.Config) {
		c.ListenMetricsUrls = []url.URL{elsewhere}
		c.ListenClientHttpUrls = []url.URL{{Scheme: "http", Host: enginetest.FreePort(t)}}
	})
	_, err = Connect(t.Context(), Cluster{Fleet: "test", URLs: []string{at}})
	require.ErrorContains(t, err, "no server says whether it syncs")
}
