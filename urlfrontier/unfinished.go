// This file bounds incomplete messages: gRPC keeps their parts in memory until the rest arrives.

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
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/stats"
)

// unfinished tracks incomplete messages per connection: it counts the bytes that a connection reads, and
// as a stats.Handler subtracts each complete message.
type unfinished struct {
	most int64
	open atomic.Int64 // bytes of all connections

	mu    sync.Mutex
	conns map[*sender]struct{} // guarded by mu
}

func newUnfinished(most int64) *unfinished {
	return &unfinished{most: most, conns: map[*sender]struct{}{}}
}

// sender is a connection after decryption.
type sender struct {
	net.Conn
	raw   net.Conn
	of    *unfinished
	addr  address
	open  atomic.Int64 // bytes of data read, less those of complete messages
	calls atomic.Int64

	// Position in the HTTP/2 frames:
	head [9]byte
	have int  // bytes of head
	left int  // bytes until the next frame
	data bool // the frame is a DATA frame
}

// address identifies one connection: connections over a Unix socket have equal addresses.
type address struct {
	net.Addr
	of *sender
}

const (
	preface    = 24 // bytes of the client preface (RFC 9113)
	leastFrame = 64 // least memory of a DATA frame
)

// options make a server use u, with credentials c.
func (u *unfinished) options(c credentials.TransportCredentials) []grpc.ServerOption {
	return []grpc.ServerOption{grpc.Creds(counted{c, u}), grpc.StatsHandler(u)}
}

// counted wraps credentials to count bytes of their connections.
type counted struct {
	credentials.TransportCredentials
	of *unfinished
}

// ServerHandshake implements credentials.TransportCredentials.
func (c counted) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := c.TransportCredentials.ServerHandshake(raw)
	if err != nil {
		return nil, nil, err
	}
	s := &sender{Conn: conn, raw: raw, of: c.of, left: preface}
	s.addr = address{conn.RemoteAddr(), s}
	c.of.mu.Lock()
	c.of.conns[s] = struct{}{}
	c.of.mu.Unlock()
	return s, info, nil
}

// RemoteAddr implements net.Conn.
func (s *sender) RemoteAddr() net.Addr { return &s.addr }

// Read implements net.Conn.
func (s *sender) Read(b []byte) (int, error) {
	n, err := s.Conn.Read(b)
	if s.add(s.dataIn(b[:n])); s.of.open.Load() > s.of.most {
		s.of.relieve()
	}
	return n, err
}

// dataIn parses the frames in b, and returns how many bytes are DATA.
func (s *sender) dataIn(b []byte) (n int64) {
	for len(b) > 0 {
		if s.left > 0 {
			some := min(s.left, len(b))
			if s.data {
				n += int64(some)
			}
			s.left, b = s.left-some, b[some:]
			continue
		}
		some := copy(s.head[s.have:], b)
		s.have, b = s.have+some, b[some:]
		if s.have == len(s.head) {
			s.have, s.left = 0, int(s.head[0])<<16|int(s.head[1])<<8|int(s.head[2])
			if s.data = s.head[3] == 0; s.data && s.left > 0 {
				n += int64(max(0, leastFrame-s.left))
			}
		}
	}
	return n
}

// add adds n to the bytes, which never fall below 0.
func (s *sender) add(n int64) {
	for {
		old := s.open.Load()
		if to := max(0, old+n); s.open.CompareAndSwap(old, to) {
			s.of.open.Add(to - old)
			return
		}
	}
}

// Close implements net.Conn.
func (s *sender) Close() error {
	s.of.mu.Lock()
	s.leaveLocked()
	s.of.mu.Unlock()
	return s.Conn.Close()
}

func (s *sender) leaveLocked() {
	delete(s.of.conns, s)
	s.of.open.Add(-s.open.Swap(0))
}

// relieve closes the connections with the most bytes until half of the limit is free.
func (u *unfinished) relieve() {
	u.mu.Lock()
	defer u.mu.Unlock()
	all := slices.Collect(maps.Keys(u.conns))
	slices.SortFunc(all, func(a, b *sender) int { return cmp.Compare(b.open.Load(), a.open.Load()) })
	for _, s := range all {
		if u.open.Load() <= u.most/2 {
			return
		}
		s.leaveLocked()
		_ = s.raw.Close() // not TLS's Close, which waits for the client
	}
}

type senderKey struct{}

// TagConn implements stats.Handler.
func (u *unfinished) TagConn(ctx context.Context, info *stats.ConnTagInfo) context.Context {
	if at, ok := info.RemoteAddr.(*address); ok {
		return context.WithValue(ctx, senderKey{}, at.of)
	}
	return ctx
}

// HandleRPC implements stats.Handler.
func (u *unfinished) HandleRPC(ctx context.Context, x stats.RPCStats) {
	s, _ := ctx.Value(senderKey{}).(*sender)
	if s == nil {
		return
	}
	switch x := x.(type) {
	case *stats.Begin:
		s.calls.Add(1)
	case *stats.InPayload:
		s.add(-int64(max(leastFrame, x.WireLength)))
	case *stats.End:
		if s.calls.Add(-1) == 0 { // the rest belonged to calls that broke off
			s.add(-s.open.Load())
		}
	}
}

// TagRPC implements stats.Handler.
func (u *unfinished) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// HandleConn implements stats.Handler.
func (u *unfinished) HandleConn(context.Context, stats.ConnStats) {}
