// This file tests the addresses of frontier serve, and the level of its log.

package main

import (
	"context"
	"crypto/x509"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/seed-7440039f/frontier/urlfrontier/pb"
)

// ofServer connects to the gRPC address that a log names.
func ofServer(t *testing.T, log *logged) pb.URLFrontierClient {
	t.Helper()
	at := regexp.MustCompile(`Started URLFrontierServer.* grpc=(\S+)`).FindStringSubmatch(log.String())
	require.NotNil(t, at)
	conn, err := grpc.NewClient(at[1], grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, conn.Close()) })
	return pb.NewURLFrontierClient(conn)
}

func TestServeNamesThePage(t *testing.T) {
	dir := t.TempDir()
	der, key := newAuthority(t).sign(t, &x509.Certificate{DNSNames: []string{"localhost"}})
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	_, stop, log := serving(t, "-dir", filepath.Join(dir, "state"),
		"-tls-cert", written(t, filepath.Join(dir, "cert"), "CERTIFICATE", der), "-tls-key", written(t, filepath.Join(dir, "key"), "PRIVATE KEY", secret))
	require.Eventually(t, func() bool { return strings.Contains(log.String(), "has a page") }, 10*time.Second, time.Millisecond)
	assert.Zero(t, stop())
	assert.Contains(t, log.String(), `url=https://127.0.0.1:`)

	socket := filepath.Join(dir, "a:b")
	_, stop, log = serving(t, "-dir", filepath.Join(dir, "state"), "-http", "unix:"+socket)
	require.Eventually(t, func() bool { return strings.Contains(log.String(), "has a page") }, 10*time.Second, time.Millisecond)
	info, err := os.Stat(socket)
	require.NoError(t, err)
	assert.Equal(t, fs.FileMode(0o600), info.Mode().Perm())
	assert.Zero(t, stop())
	assert.Contains(t, log.String(), `url=http://localhost/ token=`)
}

// The socket of a server that lives stays, however busy it is.
func TestServeLeavesASocketThatIsInUse(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	require.NoError(t, err)
	for range 10_000 { // no process accepts them
		conn, err := net.DialTimeout("unix", path, time.Second)
		if err != nil {
			break
		}
		defer conn.Close()
	}
	_, err = listenOn("unix:" + path)
	require.ErrorContains(t, err, "another process has it")
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	require.NoError(t, l.Close())
	l, err = listenOn("unix:" + path)
	require.NoError(t, err, "it died")
	require.NoError(t, l.Close())
}

func TestASecondServerLeavesTheFirstAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	base, stop, _ := serving(t, "-dir", dir)
	status, _, said := typing(t, "serve", "-dir", dir, "-http", strings.TrimPrefix(base, "http://"))
	assert.Equal(t, exitError, status)
	assert.Contains(t, said, dir, "the folder is what it wants first")
	assert.Zero(t, stop())
}

func TestASecondSignalCutsCallsOfURLFrontier(t *testing.T) {
	ctx, first := context.WithCancel(context.Background())
	cut := make(chan struct{})
	ctx = context.WithValue(ctx, cutKey{}, (<-chan struct{})(cut))
	log, done := &logged{}, make(chan int, 1)
	go func() {
		done <- run(ctx, []string{"serve", "-http", "127.0.0.1:0", "-grpc", "127.0.0.1:0", "-grace", "1h", "-dir", filepath.Join(t.TempDir(), "s")}, strings.NewReader(""), io.Discard, log)
	}()
	require.Eventually(t, func() bool { return strings.Contains(log.String(), "Started") }, 30*time.Second, time.Millisecond)
	stream, err := ofServer(t, log).PutURLs(context.Background())
	require.NoError(t, err)
	require.NoError(t, stream.Send(discovered("http://a.example/")))
	_, err = stream.Recv()
	require.NoError(t, err)
	first()
	select {
	case <-done:
		assert.Fail(t, "a stream may go on for -grace")
	case <-time.After(300 * time.Millisecond):
	}
	close(cut)
	select {
	case status := <-done:
		assert.Zero(t, status)
	case <-time.After(time.Minute):
		assert.Fail(t, "it was not cut")
	}
}

func TestClientsSetTheLevelOfTheLog(t *testing.T) {
	base, stop, log := serving(t, "-dir", filepath.Join(t.TempDir(), "state"))
	c := ofServer(t, log)
	for _, level := range []pb.LogLevelParams_Level{pb.LogLevelParams_WARN, pb.LogLevelParams_INFO} {
		_, err := c.SetLogLevel(t.Context(), &pb.LogLevelParams{Level: level})
		require.NoError(t, err)
		request(t, "GET", base+"/v1/"+level.String(), "", "")
	}
	assert.Zero(t, stop())
	assert.NotContains(t, log.String(), "/v1/WARN")
	assert.Contains(t, log.String(), "/v1/INFO")
}
