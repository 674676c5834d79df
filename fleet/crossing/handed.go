// This file has the listeners and connections that are handed over inside a process.

package crossing

import (
	"context"
	"net"
	"sync"
)

// handed is a listener of connections that others have accepted.
type handed struct {
	at    net.Addr
	conns chan net.Conn
	over  context.Context // ends with Close
	end   context.CancelFunc

	mu   sync.Mutex
	open map[net.Conn]bool // guarded by mu
}

func newHanded(at net.Addr) *handed {
	over, end := context.WithCancel(context.Background())
	return &handed{at: at, conns: make(chan net.Conn), over: over, end: end, open: map[net.Conn]bool{}}
}

// hand passes a connection on, and reports whether the listener is open.
func (l *handed) hand(c net.Conn, from string) bool {
	own := &caller{Conn: c, l: l, from: from}
	l.mu.Lock()
	l.open[own] = true
	l.mu.Unlock()
	select {
	case l.conns <- own:
		return true
	case <-l.over.Done():
		l.gone(own)
		return false
	}
}

func (l *handed) gone(c net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, c)
}

// cut closes the connections.
func (l *handed) cut() {
	l.mu.Lock()
	all := make([]net.Conn, 0, len(l.open))
	for c := range l.open {
		all = append(all, c)
	}
	l.mu.Unlock()
	for _, c := range all {
		_ = c.Close()
	}
}

// Accept implements net.Listener.
func (l *handed) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.over.Done():
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *handed) Close() error {
	l.end()
	return nil
}

// Addr implements net.Listener.
func (l *handed) Addr() net.Addr { return l.at }

// caller is a client's connection, which may come through another machine.
type caller struct {
	net.Conn
	l    *handed
	from string
}

// Close implements net.Conn.
func (c *caller) Close() error {
	c.l.gone(c)
	return c.Conn.Close()
}

// RemoteAddr implements net.Conn.
func (c *caller) RemoteAddr() net.Addr { return address(c.from) }

type address string

func (a address) Network() string { return "tcp" }
func (a address) String() string  { return string(a) }
