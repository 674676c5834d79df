// This file tests what clients do not see.

package urlfrontier

import (
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/serve"
	"github.com/seed-7440039f/frontier/urlfrontier/pb"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// startInside starts a server on a socket, and returns what connects to it.
func startInside(t *testing.T) (*Server, *grpc.Server, func() pb.URLFrontierClient) {
	f, err := frontier.Open(t.Context(), Frontier(frontier.Options{}))
	require.NoError(t, err)
	svc, err := serve.New(f, serve.Options{})
	require.NoError(t, err)
	s, err := New(t.Context(), svc, Options{TempDir: t.TempDir()})
	require.NoError(t, err)
	g := s.GRPC(GRPCOptions{})
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- g.Serve(l) }()
	t.Cleanup(func() {
		require.NoError(t, s.Stop(g, time.Second))
		require.NoError(t, <-served)
		require.NoError(t, svc.Close())
		require.NoError(t, f.Close())
	})
	return s, g, func() pb.URLFrontierClient {
		conn, err := grpc.NewClient("unix:"+path, grpc.WithTransportCredentials(insecure.NewCredentials()))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, conn.Close()) })
		return pb.NewURLFrontierClient(conn)
	}
}

func itemOfURL(url string) *pb.URLItem {
	return &pb.URLItem{Item: &pb.URLItem_Discovered{Discovered: &pb.DiscoveredURLItem{Info: &pb.URLInfo{Url: url}}}}
}

// What connections send beside messages is not held against them.
func TestHealthyConnectionsHaveNothingUnfinished(t *testing.T) {
	s, _, connect := startInside(t)
	for c := range 2 {
		client := connect()
		stream, err := client.PutURLs(t.Context())
		require.NoError(t, err)
		for i := range 300 {
			require.NoError(t, stream.Send(itemOfURL(fmt.Sprintf("http://a.example/%d/%d/%s", c, i, strings.Repeat("x", i*100)))))
			_, err := stream.Recv()
			require.NoError(t, err)
			_, err = client.GetStats(t.Context(), &pb.QueueWithinCrawlParams{})
			require.NoError(t, err)
		}
	}
	s.unfinished.mu.Lock()
	defer s.unfinished.mu.Unlock()
	require.Len(t, s.unfinished.conns, 2, "over a socket, too")
	for c := range s.unfinished.conns {
		require.Less(t, c.open.Load(), int64(600), "less than a byte for each message")
		require.EqualValues(t, 1, c.calls.Load())
	}
}

func TestClosedConnectionsAreNotCounted(t *testing.T) {
	u := &unfinished{most: 1000, conns: map[*sender]struct{}{}}
	client, server := net.Pipe()
	defer client.Close()
	conn, _, err := counted{insecure.NewCredentials(), u}.ServerHandshake(server)
	require.NoError(t, err)
	go func() {
		_, _ = client.Write(make([]byte, preface))
		_, _ = client.Write([]byte{0, 8, 0, 0, 0, 0, 0, 0, 1})
		_, _ = client.Write(make([]byte, 2048))
	}()
	b := make([]byte, 512)
	for _, want := range []int64{0, 0, 512, 0} { // more than may be: the connection is closed
		_, err = conn.Read(b)
		require.NoError(t, err)
		require.Equal(t, want, u.open.Load())
	}
	_, err = conn.Read(b)
	require.Error(t, err)
	require.NoError(t, conn.Close())
	require.Zero(t, u.open.Load())
	require.Empty(t, u.conns)
}

func TestMessagesWaitForRoom(t *testing.T) {
	s, _, connect := startInside(t)
	s.acks.Add(mostAcks) // other clients read nothing
	client := connect()
	stream, err := client.PutURLs(t.Context())
	require.NoError(t, err)
	got := make(chan error, 1)
	put := func() {
		require.NoError(t, stream.Send(itemOfURL("http://a.example/")))
		go func() { _, err := stream.Recv(); got <- err }()
	}
	for range 10 {
		put()
		require.NoError(t, <-got, "one that reads goes on")
	}
	s.stored.take(mostStored)
	put()
	select {
	case <-got:
		require.Fail(t, "there is no room")
	case <-time.After(100 * time.Millisecond):
	}
	s.stored.give(mostStored)
	require.NoError(t, <-got)
	require.NoError(t, stream.CloseSend())
}

func TestStopCutsWhatCloseWaitsFor(t *testing.T) {
	s, g, connect := startInside(t)
	stream, err := connect().PutURLs(t.Context())
	require.NoError(t, err)
	s.write.Lock() // as a long purge does, until it is cut
	require.NoError(t, stream.Send(itemOfURL("http://a.example/")))
	go func() {
		_, _ = stream.Recv()
		s.write.Unlock()
	}()
	require.Eventually(t, func() bool {
		s.stored.mu.Lock()
		defer s.stored.mu.Unlock()
		return s.stored.used > 0
	}, 10*time.Second, time.Millisecond)
	stopped := make(chan error, 1)
	go func() { stopped <- s.Stop(g, 50*time.Millisecond) }()
	select {
	case err := <-stopped:
		require.NoError(t, err)
	case <-time.After(10 * time.Second):
		require.Fail(t, "it waits for ever")
	}
}
