// This file lists URLs and queues, and deletes the URLs of a host.

package serve

import (
	"cmp"
	"context"
	"crypto/rand"
	"iter"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/internal/jsonl"
	"github.com/seed-7440039f/frontier/scope"
)

// listBytes is the approximate size of one write of a listing.
const listBytes = 32 << 10

// listing is a response that is written line by line.
type listing struct {
	c    *call
	b    jsonl.Writer
	left int // lines still allowed; negative: any number

	release func() // returns the scan slot
}

// list begins a listing of at most n lines, the parameter n; 0 or no n means all. The caller must call
// release.
func (c *call) list() (*listing, error) {
	n := 0
	if v := c.query.Get("n"); v != "" {
		var err error
		if n, err = strconv.Atoi(v); err != nil || n < 0 {
			return nil, badRequest("n is %.40q; want a number, 0 or more", v)
		}
	}
	n = cmp.Or(n, -1)
	release, err := c.scan()
	if err != nil {
		return nil, err
	}
	c.undeadline()
	c.send(http.StatusOK, "application/x-ndjson", nil)
	return &listing{c: c, left: n, release: release}, nil
}

// full reports whether the listing has as many lines as the client asked for.
func (l *listing) full() bool { return l.left == 0 }

// end ends and writes the line that was appended to b.
func (l *listing) end() error {
	l.left--
	l.b = append(l.b, '}', '\n')
	if len(l.b) < listBytes {
		return nil
	}
	return l.write()
}

func (l *listing) write() error {
	err := l.c.write(l.b)
	l.b = l.b[:0]
	return err
}

// mostFound is the most URLs of a host that a search for those that wait collects.
const mostFound = 10_000

// QueueURLs returns a host's URLs in a crawl, of all states, as Inspector.Scan yields them. It reads the
// store from end to end, unless they are few and all of them are waiting. host is a key from
// Frontier.HostKey.
func (s *Service) QueueURLs(ctx context.Context, crawl uint32, host string) iter.Seq2[inspect.StoredURL, error] {
	return func(yield func(inspect.StoredURL, error) bool) {
		for u, err := range s.listed(ctx, scope.Host(host), crawl, host, true) {
			if err == nil && u.Entry.Crawl != crawl {
				continue
			}
			if !yield(u, err) {
				return
			}
		}
	}
}

// waitingURLs returns a host's URLs in a crawl if they are few, and all of them are waiting.
func (s *Service) waitingURLs(ctx context.Context, crawl uint32, host string) (urls []inspect.StoredURL, ok bool) {
	n, _, err := s.views.Counts(host, crawl)
	r := s.f.RuleOf(host)
	if err != nil || n.Scheduled+n.Leased+n.Finished > 0 || n.Waiting > mostFound || r.Priority != 0 || r.Priorities != (frontier.PriorityMap{}) {
		return nil, false // Scan will report the error, unless it only says that nothing is counted
	}
	urls = make([]inspect.StoredURL, 0, n.Waiting)
	for u, err := range s.views.URLs(ctx, scope.Host(host), "") {
		if err != nil || u.Priority == frontier.Immediate {
			return nil, false // Scan will report the error, or the metadata as admitted
		}
		if u.Entry.Crawl == crawl {
			urls = append(urls, inspect.StoredURL{Entry: u.Entry, Host: u.Host, Priority: u.Priority, Attempt: u.Attempt, History: u.History})
		}
		if int64(len(urls)) > n.Waiting {
			break
		}
	}
	return urls, int64(len(urls)) == n.Waiting // otherwise some came or went meanwhile
}

const (
	pageLooks = 20_000      // URLs that one page of a list examines, so that an empty page costs no more
	mostPaged = 4           // lists kept between pages
	pageWait  = time.Minute // how long a list is kept for its next page
)

// paged is a list that the client reads in pages. All pages show one snapshot.
type paged struct {
	token string // names its next page
	of    [3]string
	next  func() (inspect.StoredURL, error, bool)
	stop  func()
	over  bool
	age   *time.Timer
}

// pages are the lists kept between pages, the oldest first.
type pages struct {
	mu     sync.Mutex
	all    []*paged // guarded by mu
	closed bool     // guarded by mu
}

// take removes and returns the list with a token, or nil.
func (x *pages) take(token string) *paged {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.takeLocked(slices.IndexFunc(x.all, func(p *paged) bool { return p.token == token }))
}

func (x *pages) takeLocked(i int) (p *paged) {
	if i >= 0 && i < len(x.all) {
		p = x.all[i]
		p.age.Stop()
		x.all = slices.Delete(x.all, i, i+1)
	}
	return p
}

// put keeps a list for its next page. Beyond mostPaged it drops the oldest.
func (x *pages) put(p *paged) {
	token := p.token
	p.age = time.AfterFunc(pageWait, func() { x.take(token).end() })
	x.mu.Lock()
	x.all = append(x.all, p)
	x.mu.Unlock()
	x.trim(mostPaged)
}

// trim drops the oldest lists until n remain.
func (x *pages) trim(n int) {
	for {
		x.mu.Lock()
		if x.closed {
			n = 0
		}
		p := x.takeLocked(min(0, len(x.all)-n-1))
		x.mu.Unlock()
		if p == nil {
			return
		}
		p.end()
	}
}

// close drops all lists, and refuses later ones.
func (x *pages) close() {
	x.mu.Lock()
	x.closed = true
	x.mu.Unlock()
	x.trim(0)
}

func (p *paged) end() {
	if p != nil {
		p.stop()
	}
}

// some yields the URLs of one page.
func (p *paged) some(full func() bool) iter.Seq2[inspect.StoredURL, error] {
	return func(yield func(inspect.StoredURL, error) bool) {
		for range pageLooks {
			if full() {
				return
			}
			u, err, ok := p.next()
			if p.over = !ok; !ok || !yield(u, err) {
				return
			}
		}
	}
}

// listed returns the URLs to list, of all states, in one snapshot: those of the queue if a cheap search finds
// them, otherwise all of the scope.
func (s *Service) listed(ctx context.Context, of scope.Scope, crawl uint32, host string, queue bool) iter.Seq2[inspect.StoredURL, error] {
	if queue {
		if urls, ok := s.waitingURLs(ctx, crawl, host); ok {
			return stored(urls)
		}
	}
	return s.views.Scan(ctx, of)
}

// stored yields URLs as Inspector.Scan does.
func stored(urls []inspect.StoredURL) iter.Seq2[inspect.StoredURL, error] {
	return func(yield func(inspect.StoredURL, error) bool) {
		for _, u := range urls {
			if !yield(u, nil) {
				return
			}
		}
	}
}

// page returns the list that the parameter after names: a new one if it is empty, nil if it is missing.
func (c *call) page(crawl uint32, host string, queue bool) (*paged, error) {
	q, x := c.query, &c.s.pages
	of := [3]string{q.Get("crawl"), q.Get("host"), q.Get("finished")}
	switch after := q.Get("after"); {
	case !q.Has("after"):
		return nil, nil
	case after == "":
		p := &paged{of: of} // pages count the URLs that they look at
		p.next, p.stop = iter.Pull2(c.s.listed(c.s.cut, scope.All(), crawl, host, queue))
		return p, nil
	default:
		p := x.take(after)
		if p == nil {
			return nil, &problem{kind: "not-found", status: http.StatusNotFound, detail: "after: this page was read, or its list has waited for too long; an empty after begins the list again"}
		}
		if p.of != of {
			x.put(p)
			return nil, badRequest("after: it is of a list with another crawl, host or finished")
		}
		return p, nil
	}
}

// getList lists URLs of all states, in one snapshot.
func (s *Service) getList(c *call) error {
	q := c.query
	var crawl uint32
	if q.Has("crawl") {
		var err error
		if crawl, err = c.crawlNamed(q.Get("crawl")); err != nil {
			return err
		}
	}
	finished, err := c.flag("finished")
	if err != nil {
		return err
	}
	host := ""
	if q.Has("host") {
		if host, err = s.host(q.Get("host")); err != nil {
			return err
		}
	}
	queue := q.Has("crawl") && q.Has("host")
	p, err := c.page(crawl, host, queue)
	if err != nil {
		return err
	}
	defer func() { p.end() }()
	l, err := c.list()
	if err != nil {
		if p != nil && p.token != "" {
			s.pages.put(p) // for a retry
			p = nil
		}
		return err
	}
	defer l.release()
	var all iter.Seq2[inspect.StoredURL, error]
	switch {
	case p != nil:
		all = p.some(l.full)
	case q.Has("host"):
		all = s.listed(c.ctx, scope.Host(host), crawl, host, queue)
	case q.Has("crawl"):
		all = s.listed(c.ctx, scope.Crawl(crawl), crawl, host, queue)
	default:
		all = s.listed(c.ctx, scope.All(), crawl, host, queue)
	}
	for u, err := range all {
		if err != nil {
			return err
		}
		if q.Has("crawl") && u.Entry.Crawl != crawl || q.Has("host") && u.Host != host || q.Has("finished") && u.Entry.Finished != finished {
			continue
		}
		if l.full() {
			break
		}
		l.b.Open()
		l.b.Text("url", u.Entry.URL)
		l.b.Text("crawl", s.CrawlName(u.Entry.Crawl))
		l.b.Text("host", u.Host)
		l.b.Int("priority", int64(u.Priority))
		l.b.Int("attempt", int64(u.Attempt))
		l.b.Int("depth", int64(u.Entry.Depth))
		l.b.Time("not_before", instant.Millis(u.Entry.NotBefore))
		l.b.Bool("finished", u.Entry.Finished)
		s.appendKept(&l.b, u.Entry.Meta, &u.History)
		if l.end() != nil {
			return nil // the client disconnected
		}
	}
	if p != nil && !p.over {
		p.token = rand.Text()
		l.b.Open()
		l.b.Text("after", p.token)
		l.b = append(l.b, '}', '\n')
		s.pages.put(p)
		p = nil
	}
	_ = l.write()
	return nil
}

// getQueues lists the hosts with URLs of a crawl, and their counts.
func (s *Service) getQueues(c *call) error {
	_, id, err := c.crawl()
	if err != nil {
		return err
	}
	l, err := c.list()
	if err != nil {
		return err
	}
	defer l.release()
	for host, n := range s.views.Queues(id, c.query.Get("after")) {
		if l.full() {
			break
		}
		l.b.Open()
		l.b.Text("host", host)
		l.b.Int("waiting", n.Waiting)
		l.b.Int("scheduled", n.Scheduled)
		l.b.Int("leased", n.Leased)
		l.b.Int("finished", n.Finished)
		if l.end() != nil {
			return nil // the client disconnected
		}
	}
	_ = l.write()
	return nil
}

// deleteHost deletes a host's URLs, in one crawl or in all. With forget the frontier no longer knows
// them.
func (s *Service) deleteHost(c *call) error {
	host, err := s.host(c.r.PathValue("host"))
	if err != nil {
		return err
	}
	if strings.HasPrefix(host, "*") {
		return badRequest("%.80q is not one host; POST /v1/do deletes the URLs of several", host)
	}
	o := frontier.DeleteOptions{Scope: scope.Host(host)}
	if q := c.query; q.Has("crawl") {
		id, err := c.crawlNamed(q.Get("crawl"))
		if err != nil {
			return err
		}
		o.Crawls = []uint32{id}
	}
	if o.Forget, err = c.flag("forget"); err != nil {
		return err
	}
	n, err := s.f.DeleteWith(c.ctx, o)
	if err != nil {
		return err
	}
	s.log.Info("a client deleted the URLs of a host", "host", host, "urls", n, "who", c.who)
	return c.reply(map[string]int64{"deleted": n})
}
