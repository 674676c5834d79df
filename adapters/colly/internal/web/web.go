// Package web serves many small sites on loopback, and checks from its own log that a crawler is
// polite.
//
// Host number i is called h<i>.example. Each has robots.txt and a number of pages, /0, /1 and so on. Page
// /0 links to the others. Page j of host i also links to page /0 of host Seeds + Pages*i + j, so
// that all hosts are found from the first Seeds ones, and each from one page only: a page that is lost
// shows as hosts that were never visited.
package web

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Web is a web of small sites. Set the fields before Start.
type Web struct {
	Hosts int // number of sites
	Pages int // pages of each
	Seeds int // sites that no page links to
	// Delay is what must lie between the starts of two requests to one host.
	Delay time.Duration
	// Addresses is the number of loopback addresses, 127.0.0.1 and so on. Zero means 1. Only
	// Linux has more than one.
	Addresses int
	// Special, if set, may answer a request instead, and reports whether it did.
	Special func(http.ResponseWriter, *http.Request) bool

	servers   []*http.Server
	listeners []net.Listener
	serving   sync.WaitGroup

	mu    sync.Mutex
	hosts map[string]*visits // guarded by mu
	pages int                // guarded by mu; different ones that were served
}

// visits is the log of one host.
type visits struct {
	last     time.Time // start of the last request
	running  int       // requests that are being answered
	early    int       // requests that came too early
	together int       // requests that came while another ran
	least    time.Duration
	pages    map[string]int // times that each path was served
}

// Start listens and serves until Close.
func (w *Web) Start() error {
	w.Reset()
	for i := range max(w.Addresses, 1) {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.%d:0", i+1))
		if err != nil {
			return errors.Join(err, w.Close())
		}
		s := &http.Server{Handler: w, ReadHeaderTimeout: time.Minute}
		w.listeners, w.servers = append(w.listeners, l), append(w.servers, s)
		w.serving.Go(func() { _ = s.Serve(l) })
	}
	return nil
}

// Reset forgets what was served.
func (w *Web) Reset() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hosts, w.pages = map[string]*visits{}, 0
}

// Close ends all connections.
func (w *Web) Close() error {
	var errs []error
	for _, s := range w.servers {
		errs = append(errs, s.Close())
	}
	w.serving.Wait()
	return errors.Join(errs...)
}

// Addrs returns the addresses that are served.
func (w *Web) Addrs() []string {
	var addrs []string
	for _, l := range w.listeners {
		addrs = append(addrs, l.Addr().String())
	}
	return addrs
}

// Transport returns a transport for which every name leads to one of the addresses.
func Transport(addrs []string) *http.Transport {
	var d net.Dialer
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.Proxy = nil
	t.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		h := fnv.New32a()
		_, _ = io.WriteString(h, addr)
		return d.DialContext(ctx, network, addrs[h.Sum32()%uint32(len(addrs))])
	}
	return t
}

// Host returns the name of a site.
func Host(i int) string { return "h" + strconv.Itoa(i) + ".example" }

// SeedURLs returns page /0 of the sites that no page links to.
func (w *Web) SeedURLs() []string {
	var urls []string
	for i := range w.Seeds {
		urls = append(urls, "http://"+Host(i)+"/0")
	}
	return urls
}

// ServeHTTP implements http.Handler.
func (w *Web) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	host, path := r.Host, r.URL.Path
	w.began(host, path)
	defer w.ended(host)
	if w.Special != nil && w.Special(rw, r) {
		return
	}
	if path == "/robots.txt" {
		_, _ = io.WriteString(rw, "User-agent: *\nDisallow: /private\n")
		return
	}
	number, _ := strings.CutSuffix(strings.TrimPrefix(host, "h"), ".example")
	i, err := strconv.Atoi(number)
	j, err2 := strconv.Atoi(strings.TrimPrefix(path, "/"))
	if err != nil || err2 != nil || i < 0 || i >= w.Hosts || j < 0 || j >= w.Pages {
		http.NotFound(rw, r)
		return
	}
	var b strings.Builder
	fmt.Fprintf(&b, "<html><title>page %d of site %d</title><body>", j, i)
	if j == 0 {
		for n := 1; n < w.Pages; n++ {
			fmt.Fprintf(&b, `<a href="/%d">%d</a> `, n, n)
		}
	}
	if to := w.Seeds + w.Pages*i + j; to < w.Hosts {
		fmt.Fprintf(&b, `<a href="http://%s/0">next</a>`, Host(to))
	}
	b.WriteString("</body></html>")
	rw.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = io.WriteString(rw, b.String())
}

func (w *Web) began(host, path string) {
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	v := w.hosts[host]
	if v == nil {
		v = &visits{pages: map[string]int{}}
		w.hosts[host] = v
	}
	if gap := now.Sub(v.last); !v.last.IsZero() {
		if gap < w.Delay {
			v.early++
		}
		if v.least == 0 || gap < v.least {
			v.least = gap
		}
	}
	if v.running > 0 {
		v.together++
	}
	v.running++
	v.last = now
	if path != "/robots.txt" && v.pages[path] == 0 {
		w.pages++
	}
	v.pages[strings.Clone(path)]++ // not the whole head of the request
}

func (w *Web) ended(host string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hosts[host].running--
}

// Log is a summary of what the sites saw.
type Log struct {
	Requests int           // all requests, robots.txt too
	Robots   int           // for robots.txt
	Pages    int           // different pages that were served
	Again    int           // requests for pages that had been served before
	Hosts    int           // hosts that were contacted
	Early    int           // requests less than Delay after the one before, of the same host
	Together int           // requests while another of the same host ran
	Rude     int           // hosts with such requests
	Least    time.Duration // smallest gap between two requests to one host
}

// Log returns the summary as of now.
func (w *Web) Log() Log {
	w.mu.Lock()
	defer w.mu.Unlock()
	var l Log
	for _, v := range w.hosts {
		l.Hosts++
		l.Early += v.early
		l.Together += v.together
		if v.early+v.together > 0 {
			l.Rude++
		}
		if v.least > 0 && (l.Least == 0 || v.least < l.Least) {
			l.Least = v.least
		}
		for path, n := range v.pages {
			l.Requests += n
			if path == "/robots.txt" {
				l.Robots += n
				continue
			}
			l.Pages++
			l.Again += n - 1
		}
	}
	return l
}

// Count returns how many different pages were served, sooner than Log does.
func (w *Web) Count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.pages
}

// Served returns how often a page was requested.
func (w *Web) Served(host, path string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if v := w.hosts[host]; v != nil {
		return v.pages[path]
	}
	return 0
}
