package urlfrontier_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier/serve"
	"github.com/seed-7440039f/frontier/urlfrontier"
	"github.com/seed-7440039f/frontier/urlfrontier/pb"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// streamed opens a stream that never ends, and has one URL acknowledged on it.
func (a *api) streamed(ctx context.Context) error {
	stream, err := a.PutURLs(ctx)
	if err != nil {
		return err
	}
	if err := stream.Send(discovered("", "", "http://endless.example/")); err != nil {
		return err
	}
	_, err = stream.Recv()
	return err
}

func TestStreamsOfAConnectionAreBounded(t *testing.T) {
	a := start(t)
	if *address != "" {
		t.Skip("the bound is our server's")
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for range 256 {
		require.NoError(t, a.streamed(ctx))
	}
	short, stop := context.WithTimeout(ctx, 100*time.Millisecond)
	defer stop()
	require.Equal(t, codes.DeadlineExceeded, status.Code(a.streamed(short)), "one more stream waits")

	other := dial(t, a.conn.Target())
	require.NoError(t, other.streamed(t.Context()), "others are served")
	cancel()
	require.NoError(t, a.streamed(t.Context()), "a stream that ended makes room")
}

// stuck is a connection of a client that stops in the middle of what it sends.
type stuck struct {
	net.Conn
	left int
	gone *atomic.Int64 // counts connections that the server has closed
}

func (c *stuck) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err != nil && !errors.Is(err, net.ErrClosed) {
		c.gone.Add(1)
	}
	return n, err
}

func (c *stuck) Write(b []byte) (int, error) {
	n := min(len(b), c.left)
	c.left -= n
	if _, err := c.Conn.Write(b[:n]); err != nil {
		return 0, err
	}
	return len(b), nil
}

// Those go that hold most, and others are served meanwhile.
func TestUnfinishedMessagesAreBounded(t *testing.T) {
	if *address != "" {
		t.Skip("the bound is our server's")
	}
	at, _ := startWith(t, serve.Options{}, urlfrontier.Options{MaxUnfinished: 8 << 20}, urlfrontier.GRPCOptions{})
	other := dial(t, at)
	stream, err := other.PutURLs(t.Context())
	require.NoError(t, err)
	var big []*pb.URLInfo
	for i := range 100 {
		big = append(big, info("", "", fmt.Sprintf("http://a.example/%d/%s", i, strings.Repeat("x", 60<<10))))
	}
	var gone atomic.Int64
	for range 6 {
		a := dial(t, at, grpc.WithContextDialer(func(ctx context.Context, to string) (net.Conn, error) {
			c, err := new(net.Dialer).DialContext(ctx, "tcp", to)
			return &stuck{c, 5 << 19, &gone}, err
		}))
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(200*time.Millisecond, cancel) // and not a deadline, which the server would see
		batches, err := a.PutDiscovered(ctx)
		require.NoError(t, err)
		_ = batches.Send(&pb.DiscoveredBatch{Items: big})
		_, err = batches.Recv()
		require.Error(t, err)
		require.NoError(t, stream.Send(discovered("", "", "http://b.example/")))
		_, err = stream.Recv()
		require.NoError(t, err)
	}
	require.Positive(t, gone.Load(), "the server has closed connections")
	require.Len(t, other.batch("1", big[:50]...), 50)
}
