// This file owns the one connection of an attempt, so that it can be closed for
// certain before Fetch returns.
//
// net/http dials in a goroutine of its own that outlives a cancelled request,
// and closes connections some time after the response. Here both are waited for.

package fetch

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

var errSecondConnection = errors.New("a second connection was asked for")

type attemptKey struct{}

// attempt is a context that carries itself, so that dial finds it even in the
// detached context that net/http dials with.
type attempt struct {
	context.Context
	cancel  context.CancelFunc
	dialers sync.WaitGroup
	addr    netip.Addr // to be dialled; not valid: what the host's name says

	mu     sync.Mutex
	dialed bool       // guarded by mu
	closed bool       // guarded by mu; no dial begins once set
	conn   *timedConn // guarded by mu
}

func newAttempt(ctx context.Context) *attempt {
	a := &attempt{}
	a.Context, a.cancel = context.WithCancel(ctx)
	return a
}

// Value implements context.Context.
func (a *attempt) Value(key any) any {
	if _, ok := key.(attemptKey); ok {
		return a
	}
	return a.Context.Value(key)
}

// begin allows the attempt's only dial.
func (a *attempt) begin() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return context.Canceled
	}
	if a.dialed {
		return errSecondConnection
	}
	a.dialed = true
	a.dialers.Add(1)
	return nil
}

// idle begins the body: the server may now be silent for d at most.
func (a *attempt) idle(d time.Duration) {
	a.mu.Lock()
	c := a.conn
	a.mu.Unlock()
	if c != nil {
		c.setLimit(d)
	}
}

// close ends the attempt: when it returns, its connection is closed and none
// will be opened.
func (a *attempt) close() {
	a.mu.Lock()
	a.closed = true
	a.mu.Unlock()
	a.cancel()
	a.dialers.Wait()
	a.mu.Lock()
	c := a.conn
	a.mu.Unlock()
	if c != nil {
		c.Close()
	}
}

// dial is the transport's DialContext.
func (f *Fetcher) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	a, ok := ctx.Value(attemptKey{}).(*attempt)
	if !ok {
		return nil, errors.New("dial outside an attempt")
	}
	if err := a.begin(); err != nil {
		return nil, err
	}
	defer a.dialers.Done()
	ctx, cancel := context.WithTimeout(a.Context, f.opts.DialTimeout)
	defer cancel()
	raw, err := f.opts.Dial(ctx, network, pinned(f.opts.resolve(addr), a.addr))
	if err != nil {
		return nil, err
	}
	c := &timedConn{Conn: raw}
	c.limit.Store(int64(f.opts.HeaderTimeout))
	a.mu.Lock()
	a.conn = c
	a.mu.Unlock()
	return c, nil
}

// resolve applies Resolve to a dialled address.
func (o *Options) resolve(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil || len(o.Resolve) == 0 {
		return addr
	}
	to, ok := o.Resolve[addr]
	if !ok {
		to, ok = o.Resolve[host]
	}
	for rest := host; !ok && rest != ""; {
		_, rest, _ = strings.Cut(rest, ".")
		to, ok = o.Resolve["*."+rest]
	}
	if !ok {
		to, ok = o.Resolve["*"]
	}
	if !ok {
		return addr
	}
	if _, _, err := net.SplitHostPort(to); err == nil {
		return to
	}
	return net.JoinHostPort(strings.Trim(to, "[]"), port)
}

// timedConn gives each read its own deadline.
type timedConn struct {
	net.Conn
	limit atomic.Int64 // nanoseconds
}

func (c *timedConn) setLimit(d time.Duration) {
	c.limit.Store(int64(d))
	_ = c.SetReadDeadline(time.Now().Add(d)) // for a Read that waits already; Read meets the error again
}

func (c *timedConn) Read(p []byte) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(time.Duration(c.limit.Load()))); err != nil {
		return 0, err
	}
	return c.Conn.Read(p)
}
