// This file tests a fleet whose log is at servers that others run.

//go:build unix

package main

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/server/v3/embed"
)

// natsCluster starts a NATS server.
func natsCluster(t *testing.T) string {
	s, err := natsserver.NewServer(&natsserver.Options{
		Host: "127.0.0.1", Port: -1, HTTPHost: "127.0.0.1", HTTPPort: -1, NoSigs: true, NoLog: true, JetStream: true, StoreDir: t.TempDir(), SyncAlways: true, MaxPayload: 2 << 20,
	})
	require.NoError(t, err)
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	require.True(t, s.ReadyForConnections(10*time.Second))
	return fmt.Sprintf("%s?monitor=%d", s.ClientURL(), s.MonitorAddr().Port)
}

// cluster starts an etcd server.
func cluster(t *testing.T) string {
	cfg := embed.NewConfig()
	cfg.Dir, cfg.LogLevel, cfg.LogOutputs = t.TempDir(), "fatal", []string{"/dev/null"}
	at, peers := url.URL{Scheme: "http", Host: freePort(t)}, url.URL{Scheme: "http", Host: freePort(t)}
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = []url.URL{at}, []url.URL{at}
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = []url.URL{peers}, []url.URL{peers}
	cfg.InitialCluster = cfg.Name + "=" + peers.String()
	e, err := embed.StartEtcd(cfg)
	require.NoError(t, err)
	t.Cleanup(e.Close)
	<-e.Server.ReadyNotify()
	return at.String()
}

// Each machine names its own address only, one of two goes on alone, and one with a new disk takes part at once.
func TestAFleetWithACluster(t *testing.T) {
	if testing.Short() {
		t.Skip("processes that die take a while: -short")
	}
	t.Parallel()
	t.Run("etcd", func(t *testing.T) { withCluster(t, "etcd", cluster) })
	t.Run("nats", func(t *testing.T) { withCluster(t, "nats", natsCluster) })
}

func withCluster(t *testing.T, engine string, cluster func(*testing.T) string) {
	t.Parallel()
	more := []string{"-fleet-engine", engine, "-fleet-log", cluster(t)}
	dir := t.TempDir()
	within := func(d time.Duration, what string, ok func() bool) {
		for end := time.Now().Add(d); !ok(); time.Sleep(20 * time.Millisecond) {
			if time.Now().After(end) {
				logs, _ := filepath.Glob(filepath.Join(dir, "*.log"))
				for _, name := range logs {
					b, _ := os.ReadFile(name)
					t.Logf("%s:\n%s", name, b)
				}
				t.Fatal(what + ": not within " + d.String())
			}
		}
	}
	start := func(name string) *machine {
		m := &machine{name: name, dir: filepath.Join(dir, name), log: filepath.Join(dir, name+".log"), address: freePort(t)}
		m.start(t, name+"="+freePort(t), more...)
		t.Cleanup(func() { _ = m.cmd.Process.Kill(); _ = m.cmd.Wait() })
		within(time.Minute, name+" is ready", m.ready)
		return m
	}
	a := start("a")
	a.again(t, "q", more...)
	done, left, until := onePageIsOut(t, a, 3)
	b := start("b")
	require.NoError(t, a.cmd.Process.Kill())
	_ = a.cmd.Wait()
	require.NoError(t, os.RemoveAll(a.dir))

	f := b.client(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	comeAgain(ctx, t, f, until, done, left, 2)
	require.NoError(t, f.Close())

	a.start(t, "a="+freePort(t), more...) // with an empty folder
	within(time.Minute, "a takes part again", a.ready)
	code, out, said := operate(t, "member", "-dir", b.dir, "c=127.0.0.1:1")
	require.NotZero(t, code, out)
	require.Contains(t, said, "takes part as soon as it is started")
	code, _, said = operate(t, "stop", "-dir", b.dir)
	require.Zero(t, code, said)
	require.NoError(t, b.cmd.Wait())
	within(time.Minute, "handed over", a.ready)
	code, out, said = operate(t, "member", "-dir", a.dir, "-remove", "b")
	require.Zero(t, code, said)
	require.NotContains(t, out, "node b\t")
	require.NoError(t, a.cmd.Process.Kill())
	_ = a.cmd.Wait()

	fails := func(text string, more ...string) {
		t.Helper()
		a.start(t, "a="+freePort(t), more...)
		require.Error(t, a.cmd.Wait())
		b, err := os.ReadFile(a.log)
		require.NoError(t, err)
		require.Contains(t, string(b), text)
	}
	fails("has its log at servers of its own: want their URLs", "-fleet-engine", engine)
	fails("the engine does not know it", "-fleet-engine", engine, "-fleet-log", cluster(t))
	require.NoError(t, os.Remove(filepath.Join(a.dir, engine, elsewhere)))
	fails("this machine has a server of its own", more...)
}
