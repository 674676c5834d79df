// This file bounds the connections to frontier serve.

package main

import (
	order "container/list"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
)

// connections bounds those of an HTTP server. Beyond the limit it closes the connection that has been
// idle longest, or the new one if all are busy.
type connections struct {
	most int

	mu   sync.Mutex
	open map[net.Conn]*order.Element // guarded by mu; nil: it has a request
	idle order.List                  // guarded by mu; of net.Conn, the longest idle first
}

func newConnections(most int) *connections {
	return &connections{most: most, open: map[net.Conn]*order.Element{}}
}

// state is the server's ConnState.
func (c *connections) state(conn net.Conn, to http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at := c.open[conn]; at != nil {
		c.idle.Remove(at)
	}
	switch to {
	case http.StateActive:
		c.open[conn] = nil
	case http.StateNew, http.StateIdle:
		c.open[conn] = c.idle.PushBack(conn)
		if len(c.open) > c.most {
			first := c.idle.Remove(c.idle.Front()).(net.Conn)
			delete(c.open, first)
			if x, ok := first.(*tls.Conn); ok {
				first = x.NetConn() // or Close waits for the client
			}
			_ = first.Close()
		}
	default:
		delete(c.open, conn)
	}
}
