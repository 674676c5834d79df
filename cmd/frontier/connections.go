// This file bounds the connections to frontier serve.

package main

import (
	order "container/list"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// connections bounds those of an HTTP server. Beyond the limit it closes the connection that has been
// idle longest, or the new one if all are busy, and says so at most once a minute.
type connections struct {
	most int
	log  *slog.Logger

	mu   sync.Mutex
	said time.Time                   // guarded by mu; when it was last said
	open map[net.Conn]*order.Element // guarded by mu; nil: it has a request
	idle order.List                  // guarded by mu; of net.Conn, the longest idle first
}

func newConnections(most int, log *slog.Logger) *connections {
	return &connections{most: most, log: log, open: map[net.Conn]*order.Element{}}
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
			if now := time.Now(); now.Sub(c.said) >= time.Minute {
				c.said = now
				c.log.Warn("there are more HTTP connections than -max-connections: some are closed")
			}
		}
	default:
		delete(c.open, conn)
	}
}
