// This file tests that frontier serve keeps what URLFrontier clients sent, through kills.

package main

import (
	"bufio"
	"context"
	"io"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/seed-7440039f/frontier/urlfrontier/pb"
)

// servedProcess is a process of frontier serve, as clients of URLFrontier see it.
type servedProcess struct {
	cmd    *exec.Cmd
	conn   *grpc.ClientConn
	client pb.URLFrontierClient
}

func startServed(t *testing.T, bin, dir string) *servedProcess {
	t.Helper()
	p := &servedProcess{cmd: exec.Command(bin, "serve", "-dir", dir, "-http", "127.0.0.1:0", "-grpc", "127.0.0.1:0")}
	log, err := p.cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())
	t.Cleanup(func() {
		if p.cmd.ProcessState == nil {
			p.kill(t)
		}
	})
	started := regexp.MustCompile(`Started URLFrontierServer.* grpc=(\S+)`)
	said := ""
	for lines := bufio.NewScanner(log); p.client == nil && lines.Scan(); {
		said += lines.Text() + "\n"
		if m := started.FindStringSubmatch(lines.Text()); m != nil {
			p.conn, err = grpc.NewClient(m[1], grpc.WithTransportCredentials(insecure.NewCredentials()))
			require.NoError(t, err)
			p.client = pb.NewURLFrontierClient(p.conn)
		}
	}
	require.NotNil(t, p.client, said)
	go func() { _, _ = io.Copy(io.Discard, log) }()
	return p
}

func (p *servedProcess) kill(t *testing.T) {
	t.Helper()
	if p.conn != nil {
		assert.NoError(t, p.conn.Close())
	}
	assert.NoError(t, p.cmd.Process.Kill())
	_ = p.cmd.Wait() // it was killed
}

func (p *servedProcess) put(t *testing.T, ctx context.Context, item *pb.URLItem) pb.AckMessage_Status {
	t.Helper()
	stream, err := p.client.PutURLs(ctx)
	require.NoError(t, err)
	require.NoError(t, stream.Send(item))
	ack, err := stream.Recv()
	require.NoError(t, err)
	require.NoError(t, stream.CloseSend())
	_, err = stream.Recv()
	require.ErrorIs(t, err, io.EOF)
	return ack.Status
}

func discovered(url string) *pb.URLItem {
	return &pb.URLItem{Item: &pb.URLItem_Discovered{Discovered: &pb.DiscoveredURLItem{Info: &pb.URLInfo{Url: url}}}}
}

func TestServedURLFrontierThroughKills(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	bin, dir := filepath.Join(t.TempDir(), "frontier"), filepath.Join(t.TempDir(), "state")
	out, err := exec.Command("go", "build", "-o", bin, ".").CombinedOutput()
	require.NoError(t, err, "%s", out)

	p := startServed(t, bin, dir)
	for _, url := range []string{"http://a.example/1", "http://a.example/2", "http://b.example/1"} {
		assert.Equal(t, pb.AckMessage_OK, p.put(t, ctx, discovered(url)))
	}
	until := time.Now().Add(time.Hour)
	_, err = p.client.BlockQueueUntil(ctx, &pb.BlockQueueParams{Key: "b.example", Time: uint64(until.Unix())})
	require.NoError(t, err)
	p.kill(t)

	p = startServed(t, bin, dir)
	assert.Equal(t, pb.AckMessage_SKIPPED, p.put(t, ctx, discovered("http://a.example/1")), "it is known")
	stream, err := p.client.GetURLs(ctx, &pb.GetParams{MaxUrlsPerQueue: 1, MaxQueues: 10})
	require.NoError(t, err)
	got, err := stream.Recv()
	require.NoError(t, err, "the host is left alone for a second after a crash, and the call waits for it")
	assert.Equal(t, "http://a.example/1", got.Url)
	_, err = stream.Recv()
	assert.ErrorIs(t, err, io.EOF, "b.example is blocked, and a.example has one contact at a time")
	completed := &pb.URLItem{Item: &pb.URLItem_Known{Known: &pb.KnownURLItem{Info: &pb.URLInfo{Url: got.Url, Key: got.Key}}}}
	assert.Equal(t, pb.AckMessage_OK, p.put(t, ctx, completed))
	p.kill(t)

	p = startServed(t, bin, dir)
	stats, err := p.client.GetStats(ctx, &pb.QueueWithinCrawlParams{Key: "a.example"})
	require.NoError(t, err)
	assert.EqualValues(t, 1, stats.Size)
	assert.EqualValues(t, 1, stats.Counts["completed"])
	p.kill(t)
}
