package client

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/internal/faults"
	"github.com/seed-7440039f/frontier/internal/unit"
)

// Options configure a Client. The zero value is for a server on this machine.
type Options struct {
	// Crawl is the name of the crawl to which the Client adds URLs, and from which it takes them. Empty
	// means that it adds to the crawl DEFAULT, and takes URLs of any crawl: for a server with one crawl.
	Crawl string
	// Token authenticates this client to the server; empty if the server requires none. It is sent with
	// each request: use https for any server that is not on this machine.
	Token string
	// TLS configures https: the authorities to trust, and a client certificate. Nil means the system's
	// defaults.
	TLS *tls.Config
	// Dial connects to the server. Nil means TCP, or the address's Unix socket. Each of several addresses
	// has an equal part of Timeout to be connected.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// LeaseTime is how long leases last. Zero means the server's default.
	LeaseTime time.Duration
	// Wait is how long one request of Next may wait at the server, 1 s to 60 s. Zero means 20 s.
	Wait time.Duration
	// Timeout bounds each request and, for calls without a context, all their repetitions. Zero
	// means 30 s.
	Timeout time.Duration
	// Retry is the server's frontier.Options.Retry, for TriesAgain. Nil means that every failed URL comes
	// again.
	Retry frontier.RetryPolicy
	// Logger logs when the server is unreachable, and when it is back. Nil: none.
	Logger *slog.Logger
}

// Client is a served frontier. It is safe for concurrent use.
type Client struct {
	o        Options         // read-only after New
	crawls   []string        // to take URLs from; nil: all
	servers  []*server       // of the frontier, one or more, in the order of their addresses
	ctx      context.Context // ends with Close
	end      context.CancelFunc
	requests sync.WaitGroup // requests shared by several callers

	mu      sync.Mutex
	at      int            // guarded by mu; the server to ask: each failure of it moves on to the next
	closed  bool           // guarded by mu
	waiters []*waiter      // guarded by mu; calls of Next, the longest-waiting first
	asked   int            // guarded by mu; leases that running polls ask for
	polls   int            // guarded by mu; number of running polls
	ends    []*ending      // guarded by mu; calls of Done not yet in a request
	senders int            // guarded by mu; number of running requests
	away    bool           // guarded by mu; no server has answered since one failed
	tries   int            // guarded by mu; consecutive failed polls
	last    frontier.Stats // guarded by mu; the latest
}

// New returns a Client of the server at an address: http://HOST:PORT, https://HOST:PORT, or unix:PATH for
// a Unix socket. Several addresses of one frontier are separated by commas, each given once; an address
// has no comma. New does not contact the server. Close the Client after use.
func New(address string, o Options) (*Client, error) {
	c := &Client{o: o}
	wrong := faults.List(unit.CheckAll("", o))
	wrong.If(strings.ContainsFunc(o.Token, func(r rune) bool { return r <= ' ' || r >= 0x7f }), "Token has a blank, a line feed or another character that no token has")
	wrong.If(len(o.Crawl) > maxName || !utf8.ValidString(o.Crawl), "Crawl is %.80q; want UTF-8 of at most %d bytes", o.Crawl, maxName)
	if o.Crawl != "" {
		c.crawls = []string{o.Crawl}
	}
	c.o.Wait = cmp.Or(o.Wait, 20*time.Second)
	c.o.Timeout = cmp.Or(o.Timeout, 30*time.Second)
	c.o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	wrong.If(c.o.Wait < time.Second || c.o.Wait > time.Minute, "out of range: Wait is %v; want 1s to 1m", o.Wait)
	wrong.If(o.LeaseTime > 0 && o.LeaseTime < time.Second, "out of range: LeaseTime is %v; want 1s or more", o.LeaseTime)
	list := strings.Split(address, ",")
	for i, address := range list {
		address = strings.TrimSpace(address)
		list[i] = strings.TrimSuffix(address, "/")
		x, err := newServer(address, o, c.o.Timeout/time.Duration(len(list)))
		if err == nil && slices.Contains(list[:i], list[i]) {
			err = fmt.Errorf("the address %q is there twice", address)
		}
		wrong.Add(err)
		c.servers = append(c.servers, x)
	}
	if err := wrong.Of("client"); err != nil {
		return nil, err
	}
	c.ctx, c.end = context.WithCancel(context.Background())
	return c, nil
}

// Close ends waiting calls with frontier.ErrClosed, and closes the connections. Outstanding leases stay
// outstanding.
func (c *Client) Close() error {
	c.mu.Lock()
	c.closed = true
	for _, w := range c.waiters {
		w.got <- given{err: frontier.ErrClosed}
	}
	c.waiters = nil
	c.mu.Unlock()
	c.end()
	c.requests.Wait()
	c.mu.Lock()
	for _, e := range c.ends {
		e.got <- ended{err: frontier.ErrClosed}
	}
	c.ends = nil
	c.mu.Unlock()
	for _, x := range c.servers {
		x.http.CloseIdleConnections()
	}
	return nil
}

// isClosed reports whether Close was called.
func (c *Client) isClosed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

// HostKey returns frontier.HostName(url).
func (c *Client) HostKey(url string) (string, error) { return frontier.HostName(url) }

// TriesAgain reports whether Options.Retry lets a lease's URL come again if the lease ends with o as
// Failed.
func (c *Client) TriesAgain(l frontier.Lease, o frontier.Outcome) bool {
	if c.o.Retry == nil {
		return true
	}
	_, again := c.o.Retry.Retry(l.Entry, l.Attempt, o)
	return again
}
