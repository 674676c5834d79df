// This file crawls honest hosts beside hosts that keep the crawler waiting, and beside many names at
// their address.

package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	honestHosts = 5
	honestPages = 301
)

// company is what the honest hosts have beside them.
type company struct {
	name                      string
	silent, dead, slow, crowd int  // hosts of each kind
	together                  bool // the honest hosts have one address
}

var companies = []company{
	{name: "none"},
	{name: "100 silent", silent: 100},
	{name: "100 dead", dead: 100},
	{name: "100 slow", slow: 100},
	{name: "100 silent, 100 dead, 100 slow", silent: 100, dead: 100, slow: 100},
	{name: "none, at one address", together: true},
	{name: "300 names at their address", crowd: 300, together: true},
}

// fairWeb is a web on addresses of loopback.
type fairWeb struct {
	listeners []net.Listener
	servers   []*http.Server
	flags     []string // of the crawl
	seeds     []string
	queued    []net.Conn
	all       sync.WaitGroup

	honest atomic.Int64 // requests for pages
	others atomic.Int64 // and those at the others; of a crowd those for robots.txt, too
}

func newFairWeb(k company) (w *fairWeb, err error) {
	w = &fairWeb{}
	defer func() {
		if err != nil {
			w.close()
		}
	}()
	for i := range k.silent {
		l, err := w.listen(fmt.Sprintf("127.1.0.%d:0", i+1))
		if err != nil {
			return w, err
		}
		w.host(fmt.Sprintf("silent%d.test", i), l.Addr().String())
		w.all.Go(func() { keepSilent(l) })
	}
	hole := 0
	if k.dead > 0 {
		if hole, err = w.blackHole(); err != nil {
			return w, err
		}
	}
	for i := range k.dead {
		addr := fmt.Sprintf("127.2.0.%d:9", i+1) // refused
		if i%2 == 0 {
			addr = fmt.Sprintf("127.2.0.%d:%d", i+1, hole)
		}
		w.host(fmt.Sprintf("dead%d.test", i), addr)
	}
	for i := range k.slow {
		if err := w.serve(fmt.Sprintf("127.3.0.%d:0", i+1), w.trickle, fmt.Sprintf("slow%d.test", i)); err != nil {
			return w, err
		}
	}
	var names []string
	for i := range k.crowd {
		names = append(names, fmt.Sprintf("n%d.crowd.test", i))
	}
	for i := range honestHosts {
		name := fmt.Sprintf("honest%d.test", i)
		if k.together {
			names = append(names, name)
		} else if err := w.serve(fmt.Sprintf("127.4.0.%d:0", i+1), w.page, name); err != nil {
			return w, err
		}
	}
	if k.together {
		return w, w.serve("127.5.0.1:0", w.page, names...)
	}
	return w, nil
}

// host adds a host at an address, and its seed.
func (w *fairWeb) host(name, addr string) {
	w.flags = append(w.flags, "-resolve", name+"="+addr)
	w.seeds = append(w.seeds, "http://"+name+"/")
}

func (w *fairWeb) listen(addr string) (net.Listener, error) {
	l, err := net.Listen("tcp", addr)
	if err == nil {
		w.listeners = append(w.listeners, l)
	}
	return l, err
}

// serve serves h for hosts at an address.
func (w *fairWeb) serve(addr string, h http.HandlerFunc, names ...string) error {
	l, err := w.listen(addr)
	if err != nil {
		return err
	}
	for _, name := range names {
		w.host(name, l.Addr().String())
	}
	s := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
	w.servers = append(w.servers, s)
	w.all.Go(func() { _ = s.Serve(l) })
	return nil
}

func (w *fairWeb) close() {
	for _, s := range w.servers {
		_ = s.Close()
	}
	for _, l := range w.listeners {
		_ = l.Close()
	}
	for _, q := range w.queued {
		_ = q.Close()
	}
	w.all.Wait()
}

// blackHole returns a port that takes no connection and refuses none, at any address of loopback:
// its queue is full.
func (w *fairWeb) blackHole() (int, error) {
	l, err := w.listen("0.0.0.0:0")
	if err != nil {
		return 0, err
	}
	port := l.Addr().(*net.TCPAddr).Port
	if err := noQueue(l.(*net.TCPListener)); err != nil {
		return 0, err
	}
	for range 10 {
		c, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", port), time.Second)
		if err != nil {
			return port, nil
		}
		w.queued = append(w.queued, c)
	}
	return 0, errors.New("the queue of a listener has no end")
}

// keepSilent takes connections, and answers nothing.
func keepSilent(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
	}
}

// page answers for a host of many pages.
func (w *fairWeb) page(rw http.ResponseWriter, r *http.Request) {
	honest := strings.HasPrefix(r.Host, "honest")
	if !honest {
		w.others.Add(1)
	}
	if r.URL.Path == "/robots.txt" {
		http.NotFound(rw, r)
		return
	}
	if honest {
		w.honest.Add(1)
	}
	n, _ := strconv.Atoi(r.URL.Path[1:]) // 0 for the seed
	rw.Header().Set("Content-Type", "text/html")
	for i := range 10 {
		fmt.Fprintf(rw, "<p>Some text, and <a href=/%d>a link</a>.</p>\n", (n*10+i+1)%honestPages)
	}
}

// trickle answers for a host that sends 100 bytes a second.
func (w *fairWeb) trickle(rw http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/robots.txt" {
		http.NotFound(rw, r)
		return
	}
	w.others.Add(1)
	rw.Header().Set("Content-Type", "text/html")
	n, _ := strconv.Atoi(r.URL.Path[1:])
	for i := 0; r.Context().Err() == nil; i++ {
		fmt.Fprintf(rw, "%-100s\n", fmt.Sprintf("<a href=/%d>more</a>", (n*10+i+1)%51))
		_ = http.NewResponseController(rw).Flush() // the crawler may hang up
		time.Sleep(time.Second)
	}
}

// fair crawls the honest hosts in each company for a while, and prints their pace.
func (c *comparison) fair(ctx context.Context) error {
	fmt.Printf("%v each, default flags\n\n| beside five honest hosts | requests a second | of their pace alone | requests at the others | CPU | peak memory |\n|---|---|---|---|---|---|\n", c.limit)
	var faults []error
	alone := 0.0
	for _, k := range companies {
		pace, err := c.accompany(ctx, k, &alone)
		if err != nil {
			return fmt.Errorf("%s: %w", k.name, err)
		}
		if least := min(c.least, k.due(alone*c.limit.Seconds())); pace < least*alone {
			faults = append(faults, fmt.Errorf("%s: %.2f of the pace alone; want %.2f", k.name, pace/alone, least))
		}
	}
	return errors.Join(faults...)
}

// A domain of many names gets one contact in share of those at its address.
const share = 16

// due is the share of their pace alone that honest hosts have by the rule for shared addresses, given the number
// of requests that they made alone. At the begin a crowd has two contacts beyond its share: one as long as nothing is known of the
// address, and that of its first name, which waits like any other host.
func (k company) due(requests float64) float64 {
	if k.crowd == 0 {
		return 1
	}
	return 1 - (2+math.Ceil((requests+honestHosts)/share))/requests
}

// accompany crawls in one company. It returns the pace of the honest hosts, and sets alone if they
// are alone.
func (c *comparison) accompany(ctx context.Context, k company, alone *float64) (pace float64, err error) {
	w, err := newFairWeb(k)
	if err != nil {
		return 0, err
	}
	defer w.close()
	args := append([]string{"crawl", "-max-time", c.limit.String()}, w.flags...)
	cmd := exec.CommandContext(ctx, filepath.Join(c.bin, "frontier"), append(args, w.seeds...)...)
	began := time.Now()
	out, err := cmd.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 4 { // the time that was set has passed
		return 0, fmt.Errorf("%w\n%s", err, out[max(0, len(out)-2000):])
	}
	n := spent(cmd, began)
	pace = float64(w.honest.Load()) / c.limit.Seconds()
	if k.silent+k.dead+k.slow+k.crowd == 0 {
		*alone = pace
	}
	fmt.Printf("| %s | %.2f | %.2f | %d | %.1f s | %d MiB |\n", k.name, pace, pace / *alone, w.others.Load(), n.cpu.Seconds(), n.memory>>20)
	return pace, nil
}
