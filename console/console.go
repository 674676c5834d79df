// Package console lets an operator watch and control a running crawl: as JSON over HTTP, for programs, and as a page for a browser.
//
//	watch := console.NewWatch()
//	f, err := frontier.Open(ctx, frontier.Options{Spill: db, OnEvent: watch.Event})
//	...
//	c, err := console.New(f, console.Options{Watch: watch, Token: token})
//	defer c.Close()
//	go http.Serve(loopback, c.Page())  // for a browser; changes need the token
//	go http.Serve(socket, c.Local())   // for programs that may open the socket
//
// Client sends requests to either, and to a Console in the same process (see Direct).
//
// # Requests
//
// All responses are JSON objects, or an object {"error": ...} with a status of 4xx or 5xx. A name ends in
// its unit: _s for seconds, _bytes. Times are RFC 3339 in UTC, and missing if there is none.
//
//	GET  /api/status               Status
//	GET  /api/hosts                HostList: scope, after, n, reason, match, sort, sunk
//	GET  /api/host?name=H          Host, explained
//	GET  /api/urls                 URLList: scope, after, n
//	GET  /api/url?url=U&crawl=C    URL, explained
//	GET  /api/due?n=N              HostList of the hosts that come next
//	GET  /api/rules                RuleList
//	GET  /api/leases               LeaseList: client, scope, n
//	POST /api/do                   an Action; responds with a Result
//	GET  /metrics                  metrics, as Options.Metrics writes them
//	GET  /api/export               the frontier, in the format of transfer.Export
//	POST /api/import               imports an export or a list of URLs
//	POST /api/changed?at=T         a list of changed URLs (package changefeed), now or
//	                               at a time; responds with a changefeed.Result
//	GET  /api/end                  a line, and the end of the response when the process
//	                               has ended; only Local has it
//
// A scope is a host key, "*." and a domain, or "*" for all.
//
// # Security
//
// What a crawl meets is hostile, names and URLs included: everything is escaped for its context. Page
// answers only under the names in Options.Names, so that a site whose name resolves to this machine
// cannot read it (DNS rebinding). Changes need the token. So do reads, except over connections to
// loopback (as http.LocalAddrContextKey says, which http.Server sets). Requests from pages of other sites
// are refused. The page loads nothing from elsewhere. Local needs no token: it is for a socket that only
// its owner may open.
//
// All methods are safe for concurrent use. Nothing here holds the frontier's lock for
// longer than the frontier's own calls do.
package console

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"html/template"
	"io"
	"log/slog"
	mathrand "math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler/changefeed"
	"github.com/seed-7440039f/frontier/crawler/urlnorm"
	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/internal/lasting"
	"github.com/seed-7440039f/frontier/transfer"
)

// Options configure a Console. The zero value allows reading.
type Options struct {
	// Title is the page's title. Empty means "frontier".
	Title string
	// Token allows changes through Page, and reads except over loopback. Empty means a random token: see
	// Console.Token.
	Token string
	// Operator, if set, checks tokens in place of Token: it returns the token's owner and whether the
	// owner may change things, such as a server's operators.
	Operator func(token string) (name string, ok bool)
	// Import imports exports and lists. Nil means transfer.Import. An error that wraps ErrConflict
	// gets status 409.
	Import func(ctx context.Context, r io.Reader, o transfer.ImportOptions) (transfer.Imported, error)
	// Adding returns the number of the crawl to which an Action adds URLs, and keeps it valid until done
	// is called. Set it to serve.Service.AddingTo where crawls have names. Nil: crawls have numbers only.
	Adding func(CrawlID) (number uint32, done func(), err error)
	// Leases lists, and EndLeases ends, the leases of a server's clients. Set them to serve.Service's
	// methods. Nil: there are no such clients.
	Leases    func(LeaseQuery) LeaseList
	EndLeases func(LeaseQuery) (int, error)
	// Crawls returns the first n crawls of a server by name, and their total number. Clients returns the
	// clients that hold leases, the oldest leases first. Set them to serve.Service's methods. Nil: not
	// shown.
	Crawls  func(n int) (list []ServedCrawl, total int)
	Clients func() []ServedClient
	// Private makes reads over loopback need the token, too.
	Private bool
	// Names are the host names under which Page answers, besides localhost and loopback addresses. "*"
	// allows any: for a proxy that checks names itself.
	Names []string
	// MemoryBudget is the bound to show memory against. Zero: not shown.
	MemoryBudget int64
	// Watch records the frontier's events and the crawler's outcomes. Nil: no figures of failures and
	// politeness.
	Watch *Watch
	// Figures, if set, returns further figures to show, such as a crawler's. It is called every second.
	Figures func() []Figure
	// Crawl, if set, returns a crawler's counts; otherwise pages are the visits that the frontier
	// recorded. It is called every second and for each view of the crawl.
	Crawl func() Crawl
	// AtRest states that no process crawls: the frontier was opened for inspection.
	AtRest bool
	// Settings are shown unchanged.
	Settings []Setting
	// Recrawl, if set, returns the state of a recrawl, or nil. It is called for each view of the crawl.
	Recrawl func() *Recrawl
	// Importance returns what the crawl's order knows of a URL, whose Host is set, and of that host: see
	// package importance. Nil: nothing.
	Importance func(frontier.Entry) Worth
	// Disk, if set, returns the crawl's bytes on disk. It is called once a minute.
	Disk func() int64
	// Checkpoint, if set, makes a copy of the crawl, and returns its path.
	Checkpoint func(context.Context) (string, error)
	// Changed, if set, takes a list of URLs that changed at a time (package changefeed); zero means now.
	// Nil: the crawl fetches no page again.
	Changed func(ctx context.Context, list io.Reader, at time.Time) (changefeed.Result, error)
	// Stop, if set, ends the crawl in good order, without waiting for the end.
	Stop func()
	// Normalize spells the URLs that an operator adds or looks up as the crawler spells those it finds.
	// Nil means urlnorm.New().Typed, which refuses user names and passwords. A frontier of other
	// URLs than http and https needs its own.
	Normalize func(url string) (string, error)
	// Wanted returns why the crawl would not take a URL that an operator adds, or nil. A nil Wanted takes
	// all.
	Wanted func(frontier.Entry) error
	// Parked returns why a known URL that does not wait is parked, and what brings it back; empty if it
	// is not parked. Nil: no URL is parked.
	Parked func(ctx context.Context, crawl uint32, host, url string) (why string, err error)
	// Ends returns the ends of a URL, the newest first. Nil: the page shows what Watch saw recently.
	Ends func(ctx context.Context, url string) ([]End, error)
	// Newest lists recent ends, the newest first, each URL once. With a Host and N = 1 it also reports whether the crawl
	// has ever met a host. Nil: the page has no such list.
	Newest func(ctx context.Context, q EndsQuery) ([]End, error)
	// Lot reports whether a crawl number is one under which a crawler parks URLs, of which crawl and why.
	// Set it to crawler.Lot. Nil: none is.
	Lot func(crawl uint32) (home uint32, why string, ok bool)
	// Metrics, if set, answers GET /metrics for clients that may read the page.
	Metrics http.Handler
	// Logger logs changes and faults. Nil: none.
	Logger *slog.Logger
}

// Figure is a number shown beside the frontier's own.
type Figure struct {
	Name  string  `json:"name"` // stable, lower case, words joined by _
	Value float64 `json:"value"`
}

// Crawl is a crawler's counts.
type Crawl struct {
	Pages    int64     // pages fetched since it began
	MaxPages int64     // the crawl stops after so many; 0: no bound
	Workers  int       // number of fetching workers
	Away     time.Time // since when no host has answered; zero: hosts answer
}

// Setting is a setting of a crawl.
type Setting struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Console is the server's side. It samples the frontier's figures about every second until it is closed.
type Console struct {
	f         *frontier.Frontier
	views     *inspect.Inspector // at f
	o         Options
	log       *slog.Logger
	began     time.Time
	earlier   bool // the frontier had URLs before this process opened it
	unwatched bool // Options.Watch was nil, and an empty one is in its place
	history   history
	told      told
	life      life
	scans     chan struct{} // slots for requests that scan hosts or URLs
	answers   chan struct{} // slots for responses until they are read

	templates *template.Template // they use the frontier's clock

	lookFor        time.Duration
	ordering       sync.Once
	sized, ordered chan struct{} // closed when hosts can be listed by size, and in domain order

	stop context.CancelFunc
	done sync.WaitGroup
}

// maxScans is how many requests may scan hosts or URLs at once.
const maxScans = 4

// maxAnswers is how many responses may be under way at once.
const maxAnswers = 32

// ErrNoFrontier is returned by New without one.
var ErrNoFrontier = errors.New("console: no frontier")

// ErrConflict is wrapped by errors of Options.Import for data that contradict what is there.
var ErrConflict = errors.New("conflict")

// New returns a Console of f. Close it before f.
func New(f *frontier.Frontier, o Options) (*Console, error) {
	if f == nil {
		return nil, ErrNoFrontier
	}
	if err := CheckNames(o.Names); err != nil {
		return nil, fmt.Errorf("console: %w", err)
	}
	o.Title = cmp.Or(o.Title, "frontier")
	o.Token = cmp.Or(o.Token, rand.Text())
	if o.Adding == nil {
		o.Adding = onlyNumbers
	}
	if o.Normalize == nil {
		o.Normalize = urlnorm.New().Typed
	}
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	unwatched := o.Watch == nil
	o.Watch = cmp.Or(o.Watch, NewWatch())
	ctx, stop := context.WithCancel(context.Background())
	c := &Console{f: f, views: inspect.New(f), o: o, log: o.Logger, began: f.Now(), unwatched: unwatched, scans: make(chan struct{}, maxScans), answers: make(chan struct{}, maxAnswers), lookFor: lookFor, sized: make(chan struct{}), ordered: make(chan struct{}), stop: stop}
	c.templates = template.Must(templates.Clone()).Funcs(template.FuncMap{"in": c.in, "since": c.since, "age": c.age})
	o.Watch.follow(f.Now)
	s := f.Stats()
	c.earlier = s.Known > s.Added
	c.take(c.began)
	c.done.Go(func() { c.sample(ctx) })
	return c, nil
}

// Token returns the token that changes through Page need.
func (c *Console) Token() string { return c.o.Token }

// Close ends the sampling. Requests under way continue.
func (c *Console) Close() error {
	c.stop()
	c.done.Wait()
	return nil
}

// sample takes a sample each second on average, at random moments. Otherwise hosts with a pause of one
// second would be in the same phase in every sample.
func (c *Console) sample(ctx context.Context) {
	next := func() time.Duration { return time.Second/2 + mathrand.N(time.Second) }
	t := time.NewTimer(next())
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			t.Reset(next())
			c.take(c.f.Now())
			c.judged(ctx) // notes since when the state is what it is
		}
	}
}

// take takes a sample.
func (c *Console) take(now time.Time) {
	s := c.f.Stats()
	x := sample{at: now, added: s.Added, handedOut: s.HandedOut, failed: s.Done[frontier.Failed], memory: s.MemoryBytes}
	for _, n := range s.Done {
		x.done += n
	}
	parked, _ := c.parkedURLs()
	x.waiting = max(0, s.Waiting-parked)
	x.requests, x.wrong, x.bytes = c.o.Watch.counted()
	if x.pages = pagesOf(s); c.o.Crawl != nil {
		x.pages = c.o.Crawl().Pages
	}
	x.states = c.survey(now)
	x.done += s.Expired
	if c.o.Figures != nil {
		x.figures = c.o.Figures()
	}
	disk := c.o.Disk != nil && c.history.diskIsOld(now)
	if disk {
		x.disk, x.hasDisk = c.o.Disk(), true
	}
	c.history.add(x)
}

// Local returns the handler for a socket that only its owner may open. It needs no token.
func (c *Console) Local() http.Handler {
	mux := http.NewServeMux()
	c.routes(mux, func(h http.HandlerFunc) http.Handler { return h })
	mux.HandleFunc("GET "+lasting.Path, lasting.UntilEnd)
	return c.limited(mux)
}

// Page returns the handler for browsers. Its links and redirects are relative, so it works under any path
// that a proxy strips, if that path ends in a slash.
func (c *Console) Page() http.Handler {
	mux := http.NewServeMux()
	c.routes(mux, c.withToken)
	c.pages(mux)
	return c.guarded(c.readers(c.limited(tidied(mux))))
}

// Metrics returns a handler for GET /metrics alone, under Page's conditions.
func (c *Console) Metrics() http.Handler {
	mux := http.NewServeMux()
	c.metrics(mux, c.readers)
	return c.guarded(c.limited(mux))
}

func (c *Console) metrics(mux *http.ServeMux, guard func(http.Handler) http.Handler) {
	if c.o.Metrics != nil {
		mux.Handle("GET "+metricsPath, guard(c.o.Metrics))
	}
}

// metricsPath is the path that monitoring systems expect.
const metricsPath = "/metrics"
