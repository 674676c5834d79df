// This file has the web that is crawled, and judges every contact of its hosts.
//
// Every page but a host's first is linked from exactly one page, so a lost message loses all that lies
// behind it. The web's clock is the only one that counts. It knows nothing of nodes and faults.

package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
)

// delay is the pause that is owed to each host; the nodes get it as -delay.
const delay = time.Second

// visit is what a fetcher says when it asks for a page, and what it gets.
type visit struct {
	URL      string    `json:"url"`
	Fetcher  string    `json:"fetcher"`
	Lease    string    `json:"lease"`
	Via      string    `json:"via"`       // the node that it had the lease through
	LeasedAt time.Time `json:"leased_at"` // when the answer was read
	Until    time.Time `json:"until"`     // when the lease ends at the latest
	HoldMS   int64     `json:"hold_ms"`   // how long the page takes; 0: as long as it likes
}

// contact is one visit as the web saw it.
type contact struct {
	visit
	host, page int
	start, end time.Time
}

// page is one page of the web.
type page struct {
	host, parent int // parent is -1 for a host's first page of a wave
	links        []int
	known        time.Time // when a node acknowledged the page's URL
	first        time.Time // when it was first fetched
	done         time.Time // when a node acknowledged its end
	visits       int
}

// host is a host of the web.
type host struct {
	open int      // contacts under way
	last *contact // the latest one that ended
}

// web is safe for concurrent use.
type web struct {
	say func(format string, args ...any)

	mu       sync.Mutex
	r        *rand.Rand // guarded by mu
	pages    []page     // guarded by mu
	hosts    []host     // guarded by mu; contacts are judged by the first host of an address
	shared   int        // hosts that have an address in common
	contacts []*contact // guarded by mu; in the order of their ends
	fetched  int        // guarded by mu; pages
	early    int        // guarded by mu
	overlap  int        // guarded by mu
	undone   int        // guarded by mu; visits of pages whose end was acknowledged before
	over     int        // guarded by mu; visits beyond the end of the lease: the fetcher's own fault
	lastSeen time.Time  // guarded by mu; when a contact began
}

func newWeb(seed uint64, hosts, shared int, say func(string, ...any)) *web {
	return &web{say: say, r: rand.New(rand.NewPCG(seed, 1)), hosts: make([]host, hosts), shared: shared}
}

// grow adds n pages, and returns the URLs of those that no page links to: one of each host.
func (w *web) grow(n int) (roots []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	from := len(w.pages)
	for i := range n {
		id := len(w.pages)
		if i < len(w.hosts) {
			w.pages = append(w.pages, page{host: i, parent: -1})
			roots = append(roots, w.urlLocked(id))
			continue
		}
		parent := from + w.r.IntN(i)
		w.pages = append(w.pages, page{host: w.r.IntN(len(w.hosts)), parent: parent})
		w.pages[parent].links = append(w.pages[parent].links, id)
	}
	return roots
}

func (w *web) urlLocked(id int) string {
	return fmt.Sprintf("http://h%d.example/p%d", w.pages[id].host, id)
}

// pageOf finds a page by its URL.
func (w *web) pageOf(s string) (id int, ok bool) {
	u, err := url.Parse(s)
	if err != nil {
		return 0, false
	}
	id, err = strconv.Atoi(strings.TrimPrefix(u.Path, "/p"))
	w.mu.Lock()
	defer w.mu.Unlock()
	return id, err == nil && id >= 0 && id < len(w.pages) && w.urlLocked(id) == s
}

// acknowledged notes that a node has taken URLs in for good.
func (w *web) acknowledged(urls ...string) {
	for _, s := range urls {
		if id, ok := w.pageOf(s); ok {
			w.mu.Lock()
			w.pages[id].known = time.Now()
			w.mu.Unlock()
		}
	}
}

// ServeHTTP answers fetchers: POST /fetch gives a page's links, POST /done says that a node acknowledged
// the end of a page.
func (w *web) ServeHTTP(a http.ResponseWriter, r *http.Request) {
	if r.URL.IsAbs() {
		w.page(a, r)
		return
	}
	var v visit
	if err := json.NewDecoder(r.Body).Decode(&v); err != nil {
		http.Error(a, err.Error(), http.StatusBadRequest)
		return
	}
	id, ok := w.pageOf(v.URL)
	if !ok {
		w.say("WEB: %s is no page", v.URL)
		http.NotFound(a, r)
		return
	}
	if r.URL.Path == "/done" {
		w.ended(id)
		return
	}
	c, takes, links := w.begin(id, v)
	select {
	case <-time.After(takes):
	case <-r.Context().Done():
	}
	whole := r.Context().Err() == nil
	w.end(c, whole)
	if whole {
		_ = json.NewEncoder(a).Encode(links)
	}
}

func (w *web) ended(id int) {
	w.mu.Lock()
	links := make([]string, 0, len(w.pages[id].links))
	for _, l := range w.pages[id].links {
		links = append(links, w.urlLocked(l))
	}
	w.pages[id].done = time.Now()
	w.mu.Unlock()
	w.acknowledged(links...)
}

func (w *web) begin(id int, v visit) (c *contact, takes time.Duration, links []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	p := &page{host: -1 - id}
	if id >= 0 {
		p = &w.pages[id]
	}
	h := &w.hosts[p.host/w.shared*w.shared]
	c = &contact{visit: v, host: p.host, page: id, start: now}
	takes = cmp.Or(time.Duration(v.HoldMS)*time.Millisecond, time.Duration(5+w.r.IntN(75))*time.Millisecond)
	for _, l := range p.links {
		links = append(links, w.urlLocked(l))
	}
	switch {
	case h.open > 0:
		w.overlap++
		w.say("VIOLATION: %s is contacted while another contact is under way: %s", v.URL, c)
	case h.last != nil && now.Before(h.last.end.Add(delay)):
		w.early++
		w.say("VIOLATION: %s is contacted %v after the end of the contact before, want %v: %s; before: %s", v.URL, now.Sub(h.last.end), delay, c, h.last)
	}
	if !p.done.IsZero() && !v.LeasedAt.Before(p.done) {
		w.undone++
		w.say("VIOLATION: %s is fetched again although its end was acknowledged at %s: %s", v.URL, clock(p.done), c)
	}
	if now.After(v.Until) {
		w.over++
		w.say("FETCHER: %s is contacted after its lease: %s", v.URL, c)
	}
	h.open++
	w.lastSeen = now
	return c, takes, links
}

func (w *web) end(c *contact, whole bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c.end = time.Now()
	h := &w.hosts[c.host/w.shared*w.shared]
	h.open--
	h.last = c
	w.contacts = append(w.contacts, c)
	if c.end.After(c.Until) {
		w.over++
		w.say("FETCHER: %s was contacted beyond the end of its lease: %s", c.URL, c)
	}
	if c.page < 0 {
		return
	}
	p := &w.pages[c.page]
	p.visits++
	if whole && p.first.IsZero() {
		p.first = c.end
		w.fetched++
	}
}

// left returns how many pages were never fetched, and how long there was no contact.
func (w *web) left() (pages int, quiet time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.lastSeen.IsZero() {
		quiet = time.Since(w.lastSeen)
	}
	return len(w.pages) - w.fetched, quiet
}

func (c *contact) String() string {
	end := "under way"
	if !c.end.IsZero() {
		end = clock(c.end)
	}
	return fmt.Sprintf("[page %d, %s to %s, fetcher %s, lease %s through %s, read at %s, ends at %s, hold %d ms]",
		c.page, clock(c.start), end, c.Fetcher, c.Lease, c.Via, clock(c.LeasedAt), clock(c.Until), c.HoldMS)
}

// clock writes a moment as the nodes' logs do, without the date.
func clock(t time.Time) string { return t.UTC().Format("15:04:05.000") }
