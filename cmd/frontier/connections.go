// This file bounds the connections of frontier serve.

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

// connections bounds an HTTP server's connections. Beyond the limit it closes the one that has been idle
// longest, or the new one if all are busy. It logs that at most once a minute.
type connections struct {
	most int
	log  *slog.Logger

	mu   sync.Mutex
	said time.Time                   // guarded by mu; when it was last logged
	open map[net.Conn]*order.Element // guarded by mu; nil: a request is under way
	idle order.List                  // guarded by mu; of net.Conn, the longest idle first
}

func newConnections(most int, log *slog.Logger) *connections {
	return &connections{most: most, log: log, open: map[net.Conn]*order.Element{}}
}

// state implements http.Server.ConnState.
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
				first = x.NetConn() // TLS's Close would wait for the client
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
