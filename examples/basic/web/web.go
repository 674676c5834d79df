// Package web is a few hosts on loopback for the examples to crawl.
package web

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/seed-7440039f/frontier/crawler/fetch"
)

// Host is a site with a number of pages, named /1 and on, that link to each other and to the start
// pages of the other hosts.
type Host struct {
	Name    string
	Pages   int
	Latency time.Duration
	Size    int    // bytes of filler on each page
	Robots  string // its robots.txt; empty: 404
	Status  int    // of its robots.txt, if not 200
}

// Web serves hosts until it is closed.
type Web struct {
	hosts  []Host
	server *httptest.Server

	mu   sync.Mutex
	asks map[string]int // guarded by mu
}

// Start serves hosts on a free port of the loopback interface.
func Start(hosts ...Host) *Web {
	w := &Web{hosts: hosts, asks: map[string]int{}}
	w.server = httptest.NewServer(http.HandlerFunc(w.serve))
	return w
}

// Close ends the server.
func (w *Web) Close() { w.server.Close() }

// Addr is the address to connect to for all of the hosts.
func (w *Web) Addr() string { return w.server.Listener.Addr().String() }

// Networks allows what a crawler must not contact otherwise: this machine.
var Networks = fetch.Networks{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}}

// Dial connects to the web whatever the address: a fetch.Options.Dial.
func (w *Web) Dial(ctx context.Context, network, _ string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, network, w.Addr())
}

// Seeds are the start pages of the hosts.
func (w *Web) Seeds() (urls []string) {
	for _, h := range w.hosts {
		urls = append(urls, "http://"+h.Name+"/1")
	}
	return urls
}

// Asks returns how often each URL was requested.
func (w *Web) Asks() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	m := make(map[string]int, len(w.asks))
	for u, n := range w.asks {
		m[u] = n
	}
	return m
}

func (w *Web) serve(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	w.asks["http://"+r.Host+r.URL.Path]++
	w.mu.Unlock()
	for _, h := range w.hosts {
		if h.Name == r.Host {
			time.Sleep(h.Latency)
			h.serve(rw, r, w.hosts)
			return
		}
	}
	http.Error(rw, "no such host", http.StatusMisdirectedRequest)
}

func (h Host) serve(rw http.ResponseWriter, r *http.Request, all []Host) {
	n := 0
	_, err := fmt.Sscanf(strings.TrimPrefix(r.URL.Path, "/private"), "/%d", &n)
	switch {
	case r.URL.Path == "/robots.txt" && h.Status != 0:
		http.Error(rw, "not now", h.Status)
	case r.URL.Path == "/robots.txt" && h.Robots != "":
		fmt.Fprint(rw, h.Robots)
	case err != nil || n < 1 || n > h.Pages:
		http.NotFound(rw, r)
	default:
		rw.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprintf(rw, "<title>%s %d</title><a href=/%d>a</a> <a href=/%d>b</a> <a href=/private/%d>c</a>\n", h.Name, n, 2*n, 2*n+1, n)
		if n == 1 {
			for _, other := range all {
				fmt.Fprintf(rw, "<a href=http://%s/1>%s</a>\n", other.Name, other.Name)
			}
		}
		fmt.Fprint(rw, strings.Repeat("x", h.Size))
	}
}
