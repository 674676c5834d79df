// Package crossing leads clients to the frontier of a fleet from whichever machine they ask: in this
// process, or through a connection to the machine that has it. It owns these connections, and does not know
// what is said over them.
package crossing

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/seed-7440039f/frontier/fleet"
)

const (
	fromHeader = "Frontier-From" // the client's address
	pipeProto  = "frontier"      // of an upgraded connection
	dialTime   = 5 * time.Second
	ownerAgain = 500 * time.Millisecond // at whose the frontier is
)

// Options configure a Crossing.
type Options struct {
	// Most is the most connections that lead through this machine to another at once.
	Most int
	// Inside is how the machines talk to each other. Nil: without TLS.
	Inside *tls.Config
	// Plain names the addresses whose clients speak HTTP; while no machine has the frontier, they get
	// status 503. Those of Secure do so over TLS. Clients of other addresses are cut.
	Plain, Secure []string
	// TLS is for the clients of Secure.
	TLS *tls.Config
	// MayLook reports whether the client of a request may see the state of the fleet. Nil: none may.
	MayLook func(*http.Request) bool
	// Logger gets what an operator should see.
	Logger *slog.Logger
}

// Crossing hands connections over. It is safe for concurrent use.
type Crossing struct {
	o      Options
	log    *slog.Logger
	vacant *http.Server       // answers while no machine has the frontier
	absent map[string]*handed // its listeners, by address
	slots  chan struct{}      // pipes through this machine

	mu      sync.Mutex
	public  map[string]net.Addr // guarded by mu
	client  *http.Client        // guarded by mu; to other machines
	node    *fleet.Node         // guarded by mu; nil before it has joined
	members Members             // guarded by mu; or nil
	here    map[string]*handed  // guarded by mu; where the frontier is served in this process, by address
	open    map[net.Conn]string // guarded by mu; pipes from here, and the address inside that they lead to
	over    chan struct{}       // closed by Close
}

// New returns a Crossing without clients.
func New(o Options) *Crossing {
	x := &Crossing{
		o: o, log: o.Logger, slots: make(chan struct{}, o.Most), public: map[string]net.Addr{}, here: map[string]*handed{}, absent: map[string]*handed{}, open: map[net.Conn]string{}, over: make(chan struct{}),
	}
	x.vacant = x.server(http.HandlerFunc(x.noOwner))
	for _, name := range slices.Concat(o.Plain, o.Secure) {
		l := newHanded(&net.TCPAddr{})
		x.absent[name] = l
		var at net.Listener = l
		if slices.Contains(o.Secure, name) {
			at = tls.NewListener(l, o.TLS)
		}
		go func() { _ = x.vacant.Serve(at) }()
	}
	go x.watch()
	return x
}

func (x *Crossing) server(h http.Handler) *http.Server {
	return &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, ErrorLog: slog.NewLogLogger(x.log.Handler(), slog.LevelDebug)}
}

// noOwner answers a request while no machine has the frontier.
func (x *Crossing) noOwner(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Connection", "close") // the next request may find one
	switch {
	case r.URL.Path == "/livez":
		return
	case r.URL.Path == Path && r.Method == http.MethodGet && x.o.MayLook != nil && x.o.MayLook(r):
		x.ServeHTTP(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("Retry-After", "1")
	w.WriteHeader(http.StatusServiceUnavailable)
	_, _ = io.WriteString(w, `{"type":"https://github.com/seed-7440039f/frontier/problems/busy","title":"The service is busy","status":503,"detail":"the frontier is not to be had here at the moment: another machine is taking over, too few are alive, or too many connections lead through this one"}`+"\n")
}

// Add leads the clients of a listener on until Close. The listener's owner closes it.
func (x *Crossing) Add(name string, l net.Listener) {
	x.mu.Lock()
	x.public[name] = l.Addr()
	x.mu.Unlock()
	go x.accept(name, l)
}

// listen returns listeners that get the clients of all addresses as long as they are open.
func (x *Crossing) listen() map[string]net.Listener {
	x.mu.Lock()
	defer x.mu.Unlock()
	all := map[string]net.Listener{}
	for name, at := range x.public {
		l := newHanded(at)
		all[name], x.here[name] = l, l
	}
	return all
}

// cut ends the connections of clients to this process's frontier.
func (x *Crossing) cut() {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, l := range x.here {
		l.cut()
	}
}

// Close cuts all connections through this machine.
func (x *Crossing) Close() {
	close(x.over)
	_ = x.vacant.Close()
	x.mu.Lock()
	defer x.mu.Unlock()
	for c := range x.open {
		_ = c.Close()
	}
}

// accept leads the clients of an address on until its listener is closed.
func (x *Crossing) accept(name string, l net.Listener) {
	for {
		c, err := l.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			x.log.Warn("a connection was not accepted", "error", err)
			time.Sleep(10 * time.Millisecond)
		default:
			go x.lead(name, c, c.RemoteAddr().String(), true)
		}
	}
}

// lead leads a client on. further says that another machine may have the frontier.
func (x *Crossing) lead(name string, c net.Conn, from string, further bool) {
	x.mu.Lock()
	local, node := x.here[name], x.node
	x.mu.Unlock()
	if local != nil && local.hand(c, from) {
		return
	}
	if node != nil && further {
		if _, address, ok := node.Owner(0); ok && x.pipe(name, c, from, address) {
			return
		}
	}
	if l := x.absent[name]; l == nil || !l.hand(c, from) {
		_ = c.Close()
	}
}

// pipe connects a client with another machine, and reports whether that was possible.
func (x *Crossing) pipe(name string, c net.Conn, from, address string) bool {
	select {
	case x.slots <- struct{}{}:
		defer func() { <-x.slots }()
	default:
		return false
	}
	to, r, err := x.dial(name, from, address)
	if err != nil {
		x.log.Debug("the machine that has the frontier was not reached", "address", address, "error", err)
		return false
	}
	x.mu.Lock()
	x.open[c], x.open[to] = address, address
	x.mu.Unlock()
	both := make(chan struct{}, 2)
	end := func() {
		_ = c.Close()
		_ = to.Close()
		both <- struct{}{}
	}
	go func() { _, _ = io.Copy(to, c); end() }()
	go func() { _, _ = io.Copy(c, r); end() }()
	<-both
	<-both
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.open, c)
	delete(x.open, to)
	return true
}

// dial opens a connection to another machine's frontier.
func (x *Crossing) dial(name, from, address string) (net.Conn, *bufio.Reader, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), dialTime)
	defer cancel()
	d := &net.Dialer{KeepAlive: 10 * time.Second}
	var c net.Conn
	if x.o.Inside != nil {
		c, err = (&tls.Dialer{NetDialer: d, Config: x.o.Inside}).DialContext(ctx, "tcp", u.Host)
	} else {
		c, err = d.DialContext(ctx, "tcp", u.Host)
	}
	if err != nil {
		return nil, nil, err
	}
	_ = c.SetDeadline(time.Now().Add(dialTime))
	r := bufio.NewReader(c)
	_, err = fmt.Fprintf(c, "GET /pipe/%s HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: %s\r\n%s: %s\r\n\r\n", name, u.Host, pipeProto, fromHeader, from)
	var a *http.Response
	if err == nil {
		a, err = http.ReadResponse(r, nil)
	}
	if err == nil && a.StatusCode != http.StatusSwitchingProtocols {
		err = errors.New(a.Status)
	}
	if err != nil {
		return nil, nil, errors.Join(err, c.Close())
	}
	return c, r, c.SetDeadline(time.Time{})
}

// inside answers the other machines.
func (x *Crossing) inside(node *fleet.Node) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", node.Handler())
	mux.Handle(Path, x)
	mux.HandleFunc("GET /pipe/{name}", func(w http.ResponseWriter, r *http.Request) {
		name := r.PathValue("name")
		x.mu.Lock()
		local := x.here[name]
		x.mu.Unlock()
		if local == nil || local.over.Err() != nil {
			http.Error(w, "the frontier is not here", http.StatusServiceUnavailable)
			return
		}
		c, b, err := http.NewResponseController(w).Hijack()
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_ = c.SetDeadline(time.Time{})
		if _, err := fmt.Fprintf(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n", pipeProto); err != nil {
			_ = c.Close()
			return
		}
		x.lead(name, &readAhead{c, b.Reader}, r.Header.Get(fromHeader), false)
	})
	return mux
}

// watch cuts pipes to machines that do not have the frontier any more: they may never say so.
func (x *Crossing) watch() {
	again := time.NewTicker(ownerAgain)
	defer again.Stop()
	for {
		select {
		case <-x.over:
			return
		case <-again.C:
		}
		x.mu.Lock()
		if x.node != nil && len(x.open) > 0 {
			_, address, _ := x.node.Owner(0)
			for c, to := range x.open {
				if to != address {
					_ = c.Close()
				}
			}
		}
		x.mu.Unlock()
	}
}

// readAhead is a connection with bytes that were read already.
type readAhead struct {
	net.Conn
	r *bufio.Reader
}

func (c *readAhead) Read(b []byte) (int, error) { return c.r.Read(b) }
