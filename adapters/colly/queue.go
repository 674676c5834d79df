// This file puts URLs, requests and links of pages into the queue.

package frontiercolly

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/gocolly/colly/v2"
	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/internal/faults"
	"github.com/seed-7440039f/frontier/polite"
)

// Options configure a queue. The zero value follows robots.txt and has 32 threads.
type Options struct {
	// Threads is how many requests run at once, 1 to 100,000. Zero means 32.
	Threads int
	// Transport sends the requests: its Base may have a proxy, its Robots and Lookup settings of
	// their own. The queue sets its Frontier, and Robots for the collector's UserAgent if that is
	// nil. Nil means the zero value. The transport and the proxy of the collector are private to
	// colly, and Run replaces them.
	Transport *polite.Transport
	// IgnoreRobots fetches what robots.txt disallows, and does not ask for it.
	IgnoreRobots bool
	// Follow makes the client follow redirects at once, as colly does. Each hop waits until
	// its host may be contacted, for at most Transport.MaxWait, a minute if that is zero;
	// after that the page has failed and is tried again. The page's host stays leased
	// meanwhile. Each contact may take Transport.Timeout, 10 seconds if that is zero, instead
	// of the collector's timeout. Without Follow the target becomes a request of its own.
	Follow bool
	// OnRefused, if set, is called for each URL that leaves the queue without a page and without a call
	// of OnError: the collector's filters or robots.txt forbid it, a callback aborted it, or its Meta
	// cannot be read. r has the URL, depth and Ctx. It is called by the thread that had the URL.
	OnRefused func(r *colly.Request, err error)
}

// Queue hands requests from a frontier to a collector. It has the methods of colly's queue.Queue and is
// safe for concurrent use.
type Queue struct {
	f    *frontier.Frontier
	o    Options
	wire *wire

	mu         sync.Mutex
	collectors map[string]*colly.Collector // guarded by mu; by the names of Attach
	pages      map[*colly.Context]*page    // guarded by mu; those being fetched
	running    bool                        // guarded by mu; Run is
	stop       context.CancelFunc          // guarded by mu; ends Run; nil: it has not begun to work
}

// New returns a queue over a frontier. The caller opens the frontier before and closes it after.
func New(f *frontier.Frontier, o Options) (*Queue, error) {
	var wrong faults.List
	wrong.If(f == nil, "the frontier is nil")
	o.Threads = cmp.Or(o.Threads, 32)
	wrong.If(o.Threads < 1 || o.Threads > maxThreads, "option Threads is %d; want 1 to %d", o.Threads, maxThreads)
	t := cmp.Or(o.Transport, &polite.Transport{})
	wrong.If(o.IgnoreRobots && t.Robots != nil, "IgnoreRobots is set, and so is Transport.Robots; want one of them")
	wrong.If(t.Frontier != nil && t.Frontier != f, "Transport.Frontier is another frontier")
	if err := wrong.Of("frontiercolly"); err != nil {
		return nil, err
	}
	t.Frontier = f
	if o.Follow {
		t.MaxWait, t.Timeout = cmp.Or(t.MaxWait, time.Minute), cmp.Or(t.Timeout, 10*time.Second)
	}
	w := &wire{f: f, polite: t, expected: map[*url.URL]expected{}}
	return &Queue{f: f, o: o, wire: w, collectors: map[string]*colly.Collector{}, pages: map[*colly.Context]*page{}}, nil
}

const maxThreads = 100_000

// AddURL adds a URL at depth 0, to be fetched by GET. A known one is skipped.
func (q *Queue) AddURL(rawURL string) error {
	u, err := url.Parse(rawURL)
	if err != nil {
		return fmt.Errorf("frontiercolly: %w", err)
	}
	return q.AddRequest(&colly.Request{URL: u, Method: http.MethodGet})
}

// AddRequest adds a request with its method, body, headers, Ctx and depth; a known one is skipped.
// Requests are known by their URL, method and body. A request made by Request.New in a callback is
// admitted when its page ends, in the same commit.
func (q *Queue) AddRequest(r *colly.Request) error {
	name, c := q.collectorOf(r.Ctx)
	k, err := kept(r, c)
	if err != nil {
		return err
	}
	k.Collector = name
	return q.admit(k, r.Ctx)
}

// Visit adds a link of the page that r fetched, as r.Visit would, and returns colly's errors for links
// that the collector's filters forbid. The link is admitted when the page ends, in the same commit.
func (q *Queue) Visit(r *colly.Request, link string) error {
	abs := r.AbsoluteURL(link)
	if abs == "" {
		return colly.ErrMissingURL
	}
	u, err := url.Parse(abs)
	if err != nil {
		return fmt.Errorf("frontiercolly: %w", err)
	}
	name, c := q.collectorOf(r.Ctx)
	k, err := kept(&colly.Request{URL: u, Method: http.MethodGet, Depth: r.Depth + 1, Ctx: r.Ctx}, c)
	if err != nil {
		return err
	}
	k.Collector = name
	if c != nil {
		if err := check(c, &k); err != nil {
			return err
		}
	}
	return q.admit(k, r.Ctx)
}

// collectorOf returns the collector of the page with a Ctx; for other Ctx the collector of Run, or nil
// before Run.
func (q *Queue) collectorOf(ctx *colly.Context) (string, *colly.Collector) {
	q.mu.Lock()
	defer q.mu.Unlock()
	name := ""
	if p := q.pages[ctx]; p != nil {
		name = p.kept.Collector
	}
	return name, q.collectors[name]
}

// admit adds a request at once, or with the end of the page that has the Ctx.
func (q *Queue) admit(k request, ctx *colly.Context) error {
	if err := fetchable(k.URL); err != nil {
		return err
	}
	e, err := k.entry()
	if err != nil {
		return err
	}
	q.mu.Lock()
	p := q.pages[ctx]
	if p != nil {
		e.Crawl = p.lease.Entry.Crawl
		p.links = append(p.links, e)
	}
	q.mu.Unlock()
	if p != nil {
		return nil
	}
	if _, err := q.f.Add(context.Background(), e); err != nil {
		return fmt.Errorf("frontiercolly: %w", err)
	}
	return nil
}

// fetchable reports what keeps a URL from ever being fetched.
func fetchable(rawURL string) error {
	u, err := url.Parse(rawURL)
	if err != nil {
		return fmt.Errorf("frontiercolly: %w", err)
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("frontiercolly: %s: the scheme is %q; want http or https", rawURL, u.Scheme)
	}
	if u.Host == "" {
		return fmt.Errorf("frontiercolly: %s has no host", rawURL)
	}
	return nil
}

// Size returns the number of requests that wait, now or for a later time.
func (q *Queue) Size() (int, error) {
	s := q.f.Stats()
	return int(s.Waiting + s.Scheduled), nil
}

// IsEmpty reports whether no request waits. Some may be running.
func (q *Queue) IsEmpty() bool {
	n, _ := q.Size()
	return n == 0
}
