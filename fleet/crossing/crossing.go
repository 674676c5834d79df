// Package crossing leads clients to the frontier of a partition of a fleet from whichever machine they ask: in
// this process, or through a connection to the machine that has it. It owns these connections, and does not
// know what is said over them.
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
	"strconv"
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
	public  map[gate]net.Addr // guarded by mu
	client  *http.Client      // guarded by mu; to other machines
	node    *fleet.Node       // guarded by mu; nil before it has joined
	members Members           // guarded by mu; or nil
	stop    func(error)       // guarded by mu; ends Run
	here    map[gate]*handed  // guarded by mu; where frontiers are served in this process
	open    map[net.Conn]led  // guarded by mu; connections to other machines
	over    chan struct{}     // closed by Close
}

// gate is one of the addresses at which a partition is served.
type gate struct {
	partition int
	name      string
}

// led is where a pipe leads to.
type led struct {
	partition int
	address   string // inside
}

// New returns a Crossing without clients.
func New(o Options) *Crossing {
	x := &Crossing{
		o: o, log: o.Logger, slots: make(chan struct{}, o.Most), public: map[gate]net.Addr{}, here: map[gate]*handed{}, absent: map[string]*handed{}, open: map[net.Conn]led{}, over: make(chan struct{}),
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

// Add leads the clients of a listener on to a partition until Close. The listener's owner closes it. Nil: all
// clients come by Dial.
func (x *Crossing) Add(name string, partition int, l net.Listener) {
	to, at := gate{partition, name}, net.Addr(address(name))
	if l != nil {
		at = l.Addr()
		defer func() { go x.accept(to, l) }()
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.public[to] = at
}

// Dial opens a connection to a partition, at the address of this name of whichever machine has it.
func (x *Crossing) Dial(name string, partition int) net.Conn {
	at, from := gate{partition, name}, "inside"
	x.mu.Lock()
	local := x.here[at]
	x.mu.Unlock()
	if local == nil {
		if c := x.cross(at, from); c != nil {
			return c
		}
	}
	near, far := net.Pipe()
	go x.lead(at, far, from, local != nil)
	return near
}

// listen returns listeners that get the clients of all addresses of a partition as long as they are open.
func (x *Crossing) listen(partition int) map[string]net.Listener {
	x.mu.Lock()
	defer x.mu.Unlock()
	all := map[string]net.Listener{}
	for to, at := range x.public {
		if to.partition == partition {
			l := newHanded(at)
			all[to.name], x.here[to] = l, l
		}
	}
	return all
}

// cut ends the connections of clients to a partition that is served in this process.
func (x *Crossing) cut(partition int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for to, l := range x.here {
		if to.partition == partition {
			l.cut()
		}
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
func (x *Crossing) accept(to gate, l net.Listener) {
	for {
		c, err := l.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			x.log.Warn("a connection was not accepted", "error", err)
			time.Sleep(10 * time.Millisecond)
		default:
			go x.lead(to, c, c.RemoteAddr().String(), true)
		}
	}
}

// lead leads a client on. further says that another machine may have the frontier.
func (x *Crossing) lead(to gate, c net.Conn, from string, further bool) {
	x.mu.Lock()
	local := x.here[to]
	x.mu.Unlock()
	if local != nil && local.hand(c, from) || further && x.pipe(c, x.cross(to, from)) {
		return
	}
	if l := x.absent[to.name]; l == nil || !l.hand(c, from) {
		_ = c.Close()
	}
}

// pipe connects a client with another machine. Nil: that is not possible, and it returns false.
func (x *Crossing) pipe(c net.Conn, to *crossed) bool {
	if to == nil {
		return false
	}
	x.mu.Lock()
	x.open[c] = x.open[to.Conn] // a client that neither reads nor writes is cut, too
	x.mu.Unlock()
	var both sync.WaitGroup
	end := func() { _, _ = c.Close(), to.Close() }
	both.Go(func() { _, _ = io.Copy(to.Conn, c); end() })
	both.Go(func() { _, _ = io.Copy(c, to.r); end() })
	both.Wait()
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.open, c)
	return true
}

// crossed is a connection to another machine.
type crossed struct {
	readAhead
	x    *Crossing
	once sync.Once
}

// Close implements net.Conn.
func (c *crossed) Close() error {
	c.once.Do(func() {
		c.x.mu.Lock()
		delete(c.x.open, c.Conn)
		c.x.mu.Unlock()
		<-c.x.slots
	})
	return c.Conn.Close()
}

// cross connects with the machine that has a partition. Nil: that is not possible.
func (x *Crossing) cross(at gate, from string) *crossed {
	x.mu.Lock()
	node := x.node
	x.mu.Unlock()
	if node == nil {
		return nil
	}
	_, address, ok := node.Owner(at.partition)
	if !ok {
		return nil
	}
	select {
	case x.slots <- struct{}{}:
	default:
		return nil
	}
	c, r, err := x.dial(at, from, address)
	if err != nil {
		<-x.slots
		x.log.Debug("the machine that has the frontier was not reached", "address", address, "error", err)
		return nil
	}
	x.mu.Lock()
	x.open[c] = led{at.partition, address}
	x.mu.Unlock()
	return &crossed{readAhead: readAhead{c, r}, x: x}
}

// dial opens a connection to a partition at another machine.
func (x *Crossing) dial(at gate, from, address string) (net.Conn, *bufio.Reader, error) {
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
	_, err = fmt.Fprintf(c, "GET /pipe/%d/%s HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: %s\r\n%s: %s\r\n\r\n", at.partition, at.name, u.Host, pipeProto, fromHeader, from)
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
	mux.HandleFunc("GET /pipe/{partition}/{name}", func(w http.ResponseWriter, r *http.Request) {
		to := gate{-1, r.PathValue("name")}
		if p, err := strconv.Atoi(r.PathValue("partition")); err == nil {
			to.partition = p
		}
		x.mu.Lock()
		local := x.here[to]
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
		x.lead(to, readAhead{c, b.Reader}, r.Header.Get(fromHeader), false)
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
		for c, to := range x.open {
			if _, address, _ := x.node.Owner(to.partition); to.address != address {
				_ = c.Close()
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

func (c readAhead) Read(b []byte) (int, error) { return c.r.Read(b) }
