// Package console lets an operator watch and control a running crawl: as JSON over HTTP, for programs, and as a page for a browser.
//
//	watch := console.NewWatch()
//	f, err := frontier.Open(ctx, frontier.Options{Spill: db, OnEvent: watch.Event})
//	...
//	c, err := console.New(f, console.Options{Watch: watch, Token: token})
//	defer c.Close()
//	go http.Serve(loopback, c.Page())  // for a browser; changes want the token
//	go http.Serve(socket, c.Local())   // for those who may open the socket
//
// Client speaks to either, and to a Console in the same process (see Direct).
//
// # Requests
//
// All answers are JSON objects, or an object {"error": ...} with a status of 4xx or 5xx.
// Names end in what they are counted in: _s for seconds, _bytes; times are RFC 3339 in
// UTC and missing if there is none.
//
//	GET  /api/status               Status
//	GET  /api/hosts                HostList: scope, after, n, reason, match, sort
//	GET  /api/host?name=H          Host, explained
//	GET  /api/urls                 URLList: scope, after, n
//	GET  /api/url?url=U&crawl=C    URL, explained
//	GET  /api/due?n=N              HostList of those that come next
//	GET  /api/rules                RuleList
//	GET  /api/leases               LeaseList: client, scope, n
//	POST /api/do                   an Action; answers a Result
//	GET  /metrics                  the figures, as Options.Metrics writes them
//	GET  /api/export               the frontier, in the format of Frontier.Export
//	POST /api/import               the same, taken in
//	POST /api/changed?at=T         a list of URLs that have changed, of package changefeed,
//	                               now or at a time; answers a changefeed.Result
//
// A scope is a host key, "*." and a domain, or "*" for all.
//
// # Security
//
// What a crawl meets is hostile, names and URLs included: everything is escaped for
// where it is shown. Page answers only to the names in Options.Names, so that a page of
// a site that had its name point to this machine cannot read it; changes need the token,
// and so do reads but of connections to loopback (http.LocalAddrContextKey tells, which
// http.Server sets); requests that pages of other sites make are refused; nothing is loaded
// from elsewhere. Local asks for nothing: it is for a socket that only its owner may open.
//
// All methods are safe for concurrent use. Nothing here holds the frontier's lock for
// longer than the frontier's own calls do.
package console

import (
	"context"
	"crypto/rand"
	"errors"
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
)

// Options configure a Console. The zero value is good for looking.
type Options struct {
	// Title is what the page is called. Empty means "frontier".
	Title string
	// Token is what changes through Page need, and reads except over loopback. Empty means a
	// random one: see Console.Token.
	Token string
	// Operator, if set, says whose token an operator has shown to Page, in place of Token, and that it may change
	// things: those of a server's operators, for instance.
	Operator func(token string) (name string, ok bool)
	// Import takes in exports and lists. Nil: the frontier's Import does. An error that wraps
	// ErrConflict is answered with 409.
	Import func(ctx context.Context, r io.Reader, o frontier.ImportOptions) (frontier.Imported, error)
	// Adding finds the number of the crawl to which an Action adds URLs, and lets it add them until
	// done is called: serve.Service.AddingTo does where crawls have names. Nil: there are numbers only.
	Adding func(CrawlID) (number uint32, done func(), err error)
	// Leases lists what clients of a server have, and EndLeases ends it: serve.Service's methods of these
	// names do. Nil: there are no such clients.
	Leases    func(LeaseQuery) LeaseList
	EndLeases func(LeaseQuery) (int, error)
	// Crawls are the first n crawls of a server in the order of their names, and how many there are; Clients
	// are those that have leases, the oldest leases first: serve.Service's methods of these names do. Nil: not shown.
	Crawls  func(n int) (list []ServedCrawl, total int)
	Clients func() []ServedClient
	// Private makes reads over loopback need the token, too.
	Private bool
	// Names are the host names under which Page answers, beside localhost and
	// addresses of loopback. "*" is any: for a proxy that checks them itself.
	Names []string
	// MemoryBudget is what memory is compared with. Zero: it is not shown.
	MemoryBudget int64
	// Watch gets the frontier's events and the crawler's outcomes.
	// Nil: there are no figures of failures and of politeness.
	Watch *Watch
	// Figures, if set, tells more figures to show, of a crawler for instance. It is
	// called every second.
	Figures func() []Figure
	// Crawl, if set, tells what a crawler counts; without it pages are visits that the
	// frontier was told of. It is called every second and with each look at the crawl.
	Crawl func() Crawl
	// AtRest says that no process crawls: the frontier was opened to look at it.
	AtRest bool
	// Settings are shown as they are.
	Settings []Setting
	// Recrawl, if set, tells how a crawl does that fetches pages again, or nil. It is called
	// with each look at the crawl.
	Recrawl func() *Recrawl
	// Disk, if set, tells how many bytes the crawl has on disk. It is called once a
	// minute.
	Disk func() int64
	// Checkpoint, if set, makes a copy of the crawl, and says where it is.
	Checkpoint func(context.Context) (string, error)
	// Changed, if set, takes a list of URLs that have changed at a time (package changefeed);
	// zero means now. Nil: the crawl fetches nothing again.
	Changed func(ctx context.Context, list io.Reader, at time.Time) (changefeed.Result, error)
	// Stop, if set, ends the crawl in good order. It does not wait for that.
	Stop func()
	// Normalize spells the URLs that an operator adds or asks about, as the crawler spells
	// those that it finds. Nil means urlnorm.New().Typed, which also takes user names
	// and passwords out. A frontier of anything but http and https URLs needs its own.
	Normalize func(url string) (string, error)
	// Wanted says why the crawl would not take a URL that an operator adds, or nil. If Wanted
	// is nil all are taken.
	Wanted func(frontier.Entry) error
	// Parked says why a URL of a host is set aside that is known and does not wait, and
	// what brings it back; empty if it is not. Nil: none is.
	Parked func(ctx context.Context, crawl uint32, host, url string) (why string, err error)
	// Ends tells what became of a URL, the newest first. Nil: what Watch saw lately is shown.
	Ends func(ctx context.Context, url string) ([]End, error)
	// Newest tells what became of URLs lately, the newest first, each URL once. Nil: the page has no list of that.
	Newest func(ctx context.Context, q EndsQuery) ([]End, error)
	// Lot tells whether a crawl's number is of one in which a crawler puts URLs aside, of which
	// crawl they are, and why: crawler.Lot does. Nil: none is.
	Lot func(crawl uint32) (home uint32, why string, ok bool)
	// Metrics, if set, answers GET /metrics for those who may read the page.
	Metrics http.Handler
	// Logger gets changes that were asked for, and faults. Nil means silence.
	Logger *slog.Logger
}

// Figure is a number that is shown beside those of the frontier.
type Figure struct {
	Name  string  `json:"name"` // stable, in lower case, with _ between words
	Value float64 `json:"value"`
}

// Crawl is what a crawler counts.
type Crawl struct {
	Pages    int64     // fetched, since it began
	MaxPages int64     // after which it stops; 0: it does not
	Workers  int       // that fetch
	Away     time.Time // since when no host answers; zero: hosts do
}

// Setting is one of a crawl's.
type Setting struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Console is the server's side. It takes a sample of the frontier's figures about each
// second until it is closed.
type Console struct {
	f       *frontier.Frontier
	o       Options
	log     *slog.Logger
	began   time.Time
	earlier bool // the frontier had URLs before the process opened it
	history history
	told    told
	life    life
	scans   chan struct{} // slots for what looks at many hosts or URLs
	answers chan struct{} // slots for answers until they are read

	templates *template.Template // with the frontier's clock

	lookFor        time.Duration
	ordering       sync.Once
	sized, ordered chan struct{} // closed when hosts can be listed by size, and in order

	stop context.CancelFunc
	done sync.WaitGroup
}

// maxScans is how many requests may walk over hosts or URLs at once.
const maxScans = 4

// maxAnswers is how many requests may be answered at once.
const maxAnswers = 32

// ErrNoFrontier is returned by New without one.
var ErrNoFrontier = errors.New("console: no frontier")

// ErrConflict is wrapped by errors of an Options.Import for what does not go with what there is.
var ErrConflict = errors.New("conflict")

// New returns a Console of f. Close it before f.
func New(f *frontier.Frontier, o Options) (*Console, error) {
	if f == nil {
		return nil, ErrNoFrontier
	}
	if o.Title == "" {
		o.Title = "frontier"
	}
	if o.Token == "" {
		o.Token = rand.Text()
	}
	if o.Adding == nil {
		o.Adding = onlyNumbers
	}
	if o.Normalize == nil {
		o.Normalize = urlnorm.New().Typed
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	ctx, stop := context.WithCancel(context.Background())
	c := &Console{f: f, o: o, log: o.Logger, began: f.Now(), scans: make(chan struct{}, maxScans), answers: make(chan struct{}, maxAnswers), lookFor: lookFor, sized: make(chan struct{}), ordered: make(chan struct{}), stop: stop}
	c.templates = template.Must(templates.Clone()).Funcs(template.FuncMap{"in": c.in, "since": c.since, "age": c.age})
	if o.Watch != nil {
		o.Watch.follow(f.Now)
	}
	s := f.Stats()
	c.earlier = s.Known > s.Added
	c.take(c.began)
	c.done.Go(func() { c.sample(ctx) })
	return c, nil
}

// Token is what changes through Page need.
func (c *Console) Token() string { return c.o.Token }

// Close ends the sampling. Requests under way end as they would.
func (c *Console) Close() error {
	c.stop()
	c.done.Wait()
	return nil
}

// sample takes one each second on average. The moments are random, as hosts with a pause of a second
// would else do the same at each of them.
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
			c.judged(ctx) // so that it is known since when it is as it is
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

// Local is the handler for a socket that only its owner may open: it asks for no token.
func (c *Console) Local() http.Handler {
	mux := http.NewServeMux()
	c.routes(mux, func(h http.HandlerFunc) http.Handler { return h })
	return c.limited(mux)
}

// Page is the handler for browsers. Its links and redirects are relative: behind a proxy that takes a
// path off, it works under that path, which ends in a slash.
func (c *Console) Page() http.Handler {
	mux := http.NewServeMux()
	c.routes(mux, c.withToken)
	c.pages(mux)
	return c.guarded(c.readers(c.limited(tidied(mux))))
}

// Metrics is the handler for a port that has only GET /metrics, under the conditions of Page.
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

// metricsPath is where monitoring systems look.
const metricsPath = "/metrics"
