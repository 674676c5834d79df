package lenient

import (
	"context"
	"io"
	"net"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// lateContext answers Err once it has ended, as to a goroutine that the system lets wait.
type lateContext struct{ context.Context }

func (c lateContext) Err() error {
	<-c.Done()
	return c.Context.Err()
}

// The context of a dial ends when that is done: the tunnel stays.
func TestATunnelOutlivesItsDial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		go func() {
			b := make([]byte, 300)
			_, _ = io.ReadFull(far, b[:3])
			_, _ = far.Write([]byte{5, 0})
			_, _ = io.ReadFull(far, b[:5])
			_, _ = io.ReadFull(far, b[:int(b[4])+2])
			_, _ = far.Write([]byte{5, 0, 0, 1, 0, 0, 0, 0, 0, 0})
			_, _ = io.WriteString(far, "hello")
		}()
		ctx, cancel := context.WithCancel(t.Context())
		c, err := Through(lateContext{ctx}, near, &url.URL{Scheme: "socks5", Host: "p.example:1080"}, nil, time.Second, "a.example:80", 1<<20)
		require.NoError(t, err)
		cancel()
		synctest.Wait()
		b := make([]byte, 5)
		_, err = io.ReadFull(c, b)
		require.NoError(t, err)
		require.NoError(t, c.Close())
	})
}
