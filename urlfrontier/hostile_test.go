package urlfrontier_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
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
