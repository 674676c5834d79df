// This file bounds what clients send and do not finish: parts of messages, which gRPC keeps in memory
// until the rest has come.

package urlfrontier

import (
	"cmp"
	"context"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/experimental"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/stats"
)

// unfinished knows what the connections of a server have sent. It is gRPC's pool of buffers, which
// counts them, a stats.Handler, which sees each message that is whole, and it counts what Listen's
// connections read.
type unfinished struct {
	mem.BufferPool
	most int64
	used atomic.Int64 // bytes in buffers; more if gRPC left some to the collector

	mu    sync.Mutex
	conns map[string]*sender // guarded by mu; by address
}

// sender is a connection.
type sender struct {
	net.Conn
	of   *unfinished
	name string
	open atomic.Int64 // bytes that were read, less those of heads and whole messages, about
}

func newUnfinished(most int64) *unfinished {
	return &unfinished{BufferPool: mem.DefaultBufferPool(), most: most, conns: map[string]*sender{}}
}

// options make a server use u.
func (u *unfinished) options() []grpc.ServerOption {
	return []grpc.ServerOption{experimental.BufferPool(u), grpc.StatsHandler(u)}
}

// Get is mem.BufferPool's.
func (u *unfinished) Get(n int) *[]byte {
	b := u.BufferPool.Get(n)
	if u.used.Add(int64(cap(*b))) > u.most {
		u.relieve()
	}
	return b
}

// Put is mem.BufferPool's.
func (u *unfinished) Put(b *[]byte) {
	u.used.Add(-int64(cap(*b)))
	u.BufferPool.Put(b)
}

// relieve closes the connections that have most open, until half of what may be is left. Often less is
// open: gRPC leaves some buffers to the collector.
func (u *unfinished) relieve() {
	u.mu.Lock()
	defer u.mu.Unlock()
	var sum int64
	all := slices.Collect(maps.Values(u.conns))
	for _, s := range all {
		sum += max(0, s.open.Load())
	}
	slices.SortFunc(all, func(a, b *sender) int { return cmp.Compare(b.open.Load(), a.open.Load()) })
	for _, s := range all {
		if sum <= u.most/2 {
			break
		}
		sum -= s.open.Load()
		delete(u.conns, s.name)
		_ = s.Conn.Close()
	}
	u.used.Store(sum)
}

// Listen returns l, whose connections are counted.
func (s *Server) Listen(l net.Listener) net.Listener { return &counting{l, s.unfinished} }

type counting struct {
	net.Listener
	of *unfinished
}

// Accept is net.Listener's.
func (l *counting) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	s := &sender{Conn: c, of: l.of, name: c.RemoteAddr().String()}
	l.of.mu.Lock()
	l.of.conns[s.name] = s
	l.of.mu.Unlock()
	return s, nil
}

// Read is net.Conn's.
func (s *sender) Read(b []byte) (int, error) {
	n, err := s.Conn.Read(b)
	s.open.Add(int64(n))
	return n, err
}

// Close is net.Conn's.
func (s *sender) Close() error {
	s.of.mu.Lock()
	if s.of.conns[s.name] == s {
		delete(s.of.conns, s.name)
	}
	s.of.mu.Unlock()
	return s.Conn.Close()
}

type senderKey struct{}

// The bytes of a frame of HTTP/2: its head, and the most that clients put behind it.
const (
	frameHead = 9
	frameMost = 16 << 10
)

// TagConn is stats.Handler's.
func (u *unfinished) TagConn(ctx context.Context, info *stats.ConnTagInfo) context.Context {
	u.mu.Lock()
	defer u.mu.Unlock()
	return context.WithValue(ctx, senderKey{}, u.conns[info.RemoteAddr.String()])
}

// HandleRPC is stats.Handler's.
func (u *unfinished) HandleRPC(ctx context.Context, x stats.RPCStats) {
	s, _ := ctx.Value(senderKey{}).(*sender)
	if s == nil {
		return
	}
	switch x := x.(type) {
	case *stats.InHeader:
		s.open.Add(-int64(x.WireLength + frameHead))
	case *stats.InPayload:
		s.open.Add(-int64(x.WireLength + frameHead*(1+x.WireLength/frameMost)))
	}
}

// TagRPC is stats.Handler's.
func (u *unfinished) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// HandleConn is stats.Handler's.
func (u *unfinished) HandleConn(context.Context, stats.ConnStats) {}
