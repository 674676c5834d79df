// This file chooses among the addresses of a frontier: requests go to one until it fails, then to the
// next. It knows nothing of what is asked.

package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/seed-7440039f/frontier"
)

// server is one address of the frontier.
type server struct {
	address string
	base    string // of all URLs, without a final slash
	http    *http.Client
	err     error // guarded by Client.mu; why it failed, if no server has answered since
}

// newServer returns the server at an address, to be connected within patience.
func newServer(address string, o Options, patience time.Duration) (*server, error) {
	base, dial := address, o.Dial
	path, socket := strings.CutPrefix(address, "unix:")
	if socket {
		base = "http://localhost" // the server answers to local names only
	}
	u, err := url.Parse(base)
	if err == nil {
		_, err = net.LookupPort("tcp", u.Port())
	}
	if err != nil || socket && path == "" || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil || u.Port() == "0" {
		return nil, fmt.Errorf("the address is %q; want http://HOST:PORT, https://HOST:PORT or unix:PATH", address)
	}
	if dial == nil {
		dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
			if socket {
				network, addr = "unix", path
			}
			var d net.Dialer
			return d.DialContext(ctx, network, addr)
		}
	}
	return &server{address: address, base: strings.TrimSuffix(u.String(), "/"), http: &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			ctx, cancel := context.WithTimeout(ctx, patience)
			defer cancel()
			return dial(ctx, network, addr)
		},
		TLSClientConfig: o.TLS, ForceAttemptHTTP2: true,
		MaxIdleConnsPerHost: 16, IdleConnTimeout: time.Minute, TLSHandshakeTimeout: 10 * time.Second,
	}}}, nil
}

// server returns the server to ask.
func (c *Client) server() *server {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.servers[c.at]
}

// missed returns the error of a request that may be repeated: at the next server, if this one was still
// the one to ask. It logs the first such error.
func (c *Client) missed(s *server, err error) error {
	if c.isClosed() {
		return frontier.ErrClosed
	}
	if errors.Is(err, context.Canceled) { // the caller's doing
		return &awayError{err: err}
	}
	c.mu.Lock()
	first := !c.away
	c.away, s.err = true, err
	if c.servers[c.at] == s {
		c.at = (c.at + 1) % len(c.servers)
	}
	away := &awayError{err, c.triedLocked()}
	c.mu.Unlock()
	if first {
		c.o.Logger.Warn("the frontier's server is away: requests are repeated", "address", s.address, "error", err)
	}
	return away
}

// triedLocked says why each of several servers failed.
func (c *Client) triedLocked() string {
	var tried []string
	for _, s := range c.servers {
		err := s.err
		if e, ok := errors.AsType[*url.Error](err); ok { // it names the URL again
			err = e.Err
		}
		if err != nil && len(c.servers) > 1 {
			tried = append(tried, s.address+": "+strings.TrimPrefix(err.Error(), "client: "))
		}
	}
	return strings.Join(tried, "; ")
}

// heard records that a server has answered.
func (c *Client) heard(s *server) {
	c.mu.Lock()
	back := c.away
	c.away, c.tries = false, 0
	for _, s := range c.servers {
		s.err = nil
	}
	c.mu.Unlock()
	if back {
		c.o.Logger.Info("the frontier's server is back", "address", s.address)
	}
}
