// This file holds what can be set about a crawl, and the interfaces through
// which its parts can be replaced.

package crawler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"strings"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler/crawllog"
	"github.com/seed-7440039f/frontier/crawler/dns"
	"github.com/seed-7440039f/frontier/crawler/fetch"
	"github.com/seed-7440039f/frontier/crawler/filter"
	"github.com/seed-7440039f/frontier/crawler/urlnorm"
)

// Fetcher gets one page. *fetch.Fetcher is one.
type Fetcher interface {
	// Fetch sends at most one request, follows no redirect, and has closed its
	// connection when it returns, after an error too. ctx ends with the lease.
	// The Result holds at least Started and Ended. If a Fetcher has a method
	// CheckPort(string) error, URLs that it refuses for their port are not taken.
	Fetch(ctx context.Context, r fetch.Request) (*fetch.Result, error)
}

// Options configure a Crawler. The zero value crawls politely with no limits.
type Options struct {
	// Workers is how many pages are fetched at once at most. Zero means 16.
	Workers int
	// UserAgent is sent with every request; robots.txt files are asked about its
	// product token. It should say how to reach you. Empty means
	// fetch.DefaultUserAgent.
	UserAgent string

	// Fetcher gets pages and robots.txt files. Nil means a fetch.Fetcher with
	// UserAgent and a dns.Resolver. One of your own should send UserAgent too.
	Fetcher Fetcher
	// Protocols are Fetchers for the URLs of other schemes than http and https, or
	// in place of Fetcher for these, by scheme in lower case: packages fetch/ftp and
	// fetch/gopher have some. URLs of schemes without one are not crawled. A site of any
	// scheme is asked for its /robots.txt first; a protocol without files of that name
	// answers with status 404. If a Fetcher has a method RobotsURL(string) string, rules
	// are asked about what that returns for a URL.
	Protocols map[string]Fetcher
	// Robots reads robots.txt files. Nil means RFC 9309.
	Robots Robots
	// Extractor finds links. Nil means HTML{}.
	Extractor Extractor
	// Normalizer spells seeds, links and redirects' targets. Nil means
	// urlnorm.New(), which accepts the schemes of Protocols.
	Normalizer *urlnorm.Normalizer
	// HostKey must be that of the frontier's Options. Nil means
	// frontier.HostName.
	HostKey func(url string) (string, error)

	// Prefetch, if set, is told every second the names of the hosts that will be
	// served soon, so that their addresses are known by then; it must not wait.
	// dns.Resolver.Prefetch is one.
	Prefetch func(host string)

	// Groups say which hosts are polite together. The zero value groups those with
	// the same address, or IPv6 network of 64 bits; how long a group is left alone is the frontier's
	// Options.GroupDelay.
	Groups Groups

	// Scope and Filters say which URLs are crawled: those that all of them allow. A URL
	// that waits and is refused is parked: see Crawler.Unpark.
	Scope   Scope
	Filters []Filter
	// Rules are more of them, that say why they refuse, and Traps guards against
	// sites without an end: see package filter. Both are asked when a link is found
	// and before it is fetched. What refuses is counted in Progress.FilteredBy.
	Rules []filter.Filter
	Traps filter.TrapOptions
	// TrapsFile is where Run keeps what Traps has counted, each minute and at its end, and
	// New reads it: a trap that was left is not begun anew by a crawl that goes on. A kill
	// loses the last minute; a damaged file is told and replaced; one of another version is
	// frontier.ErrVersion. Empty: counts are forgotten with the process.
	TrapsFile string
	// Responses judge the headers of answers: if one refuses, the body is not read
	// and the page counts as visited, without links.
	Responses []filter.Response
	// Larger, if set, is asked about an answer whose body reaches the Fetcher's limit of
	// size, given its header and beginning: it returns how many bytes to read in all.
	// processing.Sitemaps has one. The Fetcher must heed fetch.Request.Larger.
	Larger func(url string, h http.Header, head []byte) int64
	// MaxPages ends Run after so many pages (answers with a status of 2xx) of
	// this Run. What waits stays in the frontier. Zero: no limit.
	MaxPages int64
	// MaxPagesPerHost parks a host's URLs after so many of its pages in this Crawler's
	// life, those that were visited before not counted; the next Crawler counts anew, and
	// goes on with them. Zero: no limit.
	MaxPagesPerHost int64
	// MaxRate is how many requests per second are sent at most, to all hosts together,
	// those for robots.txt included; after a pause, one of each worker at once. Zero: no
	// limit but the hosts'.
	MaxRate float64
	// MaxRedirects is how many redirects in a row are followed. Zero means 10.
	MaxRedirects int
	// MaxLinks is how many links of a page are taken, repetitions included. Zero
	// means 100,000.
	MaxLinks int

	// Requisites follows what pages need to be shown, too: style sheets, images, scripts,
	// fonts, films, to three steps from the page and on any host. Neither the hosts of
	// Scope nor its Include and MaxDepth hold for them; all else does: robots.txt, Exclude,
	// Filters, Rules. They are counted in Progress.Requisites, and against no limit of
	// pages. The Extractor must find them; HTML does.
	Requisites bool
	// SkipNoFollow leaves links out whose rel says nofollow, ugc or sponsored: the
	// page does not vouch for them. That forbids nothing, so by default they are
	// followed. A page whose meta element or X-Robots-Tag says nofollow, to all robots
	// or to this one, has none of its links followed in any case.
	SkipNoFollow bool

	// RobotsTTL is how long a robots.txt is believed. Zero means 24 hours.
	RobotsTTL time.Duration
	// RobotsWait is the least wait after a try to have a robots.txt that failed; it is
	// twice as long after each further one, up to a day, whatever holds the host
	// besides. The site's URLs wait meanwhile. Zero means 1 s.
	RobotsWait time.Duration
	// RobotsMemory is how many bytes of rules are remembered; beyond it, the
	// least recently used are asked for anew. Zero means 64 MiB.
	RobotsMemory int64
	// MaxCrawlDelay bounds the Crawl-delay that is honoured. Zero means 24 hours, which
	// is also the longest that the default Robots reads. A host that asks for 10 minutes
	// or more is told to Logger, once.
	MaxCrawlDelay time.Duration
	// MaxRetryAfter bounds the Retry-After that is honoured: a host that asks for
	// years would keep Run from ending. Zero means 24 hours.
	MaxRetryAfter time.Duration

	// Grace is how long fetches may go on after Run's context has ended; then
	// they are cut and their URLs handed back. Zero means 10 s.
	Grace time.Duration
	// Cut ends Grace when it is closed. Nil never does.
	Cut <-chan struct{}

	// Revisits, if set, judges visits for the frontier's Scheduler: package incremental, which
	// has one. Nil tells that Scheduler what an answer's status says.
	Revisits Revisits
	// Whole, if set, says of which pages a whole copy is wanted, though they may not have
	// changed: they are asked for without conditions. processing.Uncaptured is one.
	Whole func(l frontier.Lease) bool
	// Via has each URL remember the page that led to it, for Page.Via: so many more bytes
	// for each that waits.
	Via bool
	// OnPage, if set, gets each answer but those that will be tried again. After
	// an error the URL counts as failed and is retried. Its context ends when
	// Grace is over; after an error from then on the URL is handed back. It is
	// called by all workers at once.
	OnPage func(ctx context.Context, p *Page) error
	// OnRobots, if set, gets each answer to a request for a robots.txt, redirects
	// included, before it is read. After an error the request counts as failed and is
	// sent again. It is called by all workers at once.
	OnRobots func(ctx context.Context, res *fetch.Result) error
	// OnEnd, if set, gets a record of what becomes of each URL, before the frontier knows of
	// it: crawllog.Log.Add takes it. So each end is recorded at least once, kill -9 or not;
	// only URLs that are given up with their host are recorded after that, and only if the
	// frontier's OnGiveUp calls GivenUp. It also gets each request for a robots.txt, and each
	// link that is not taken, whose Attempt is 0, as often as it is found. It is called by
	// all workers at once.
	OnEnd func(r crawllog.Record)
	// OnDone, if set, is called after the frontier has recorded an outcome.
	OnDone func(l frontier.Lease, o frontier.Outcome)
	// OnProgress, if set, is called every ProgressEvery and at the end of Run.
	OnProgress func(Progress)
	// ProgressEvery is how often progress is logged. Zero means 5 s.
	ProgressEvery time.Duration

	// Now tells the time for what is remembered of robots.txt. Nil means time.Now.
	Now func() time.Time
	// Logger gets progress and what an operator should see. Nil means silence.
	Logger *slog.Logger
}

func (o Options) withDefaults() (Options, error) {
	setInt := func(p *int, x int) {
		if *p == 0 {
			*p = x
		}
	}
	set := func(p *time.Duration, x time.Duration) {
		if *p == 0 {
			*p = x
		}
	}
	setInt(&o.Workers, 16)
	setInt(&o.MaxRedirects, 10)
	setInt(&o.MaxLinks, 100_000)
	setInt(&o.Groups.IPv6Bits, 64)
	set(&o.RobotsTTL, 24*time.Hour)
	set(&o.RobotsWait, time.Second)
	set(&o.MaxCrawlDelay, 24*time.Hour)
	set(&o.MaxRetryAfter, 24*time.Hour)
	set(&o.Grace, 10*time.Second)
	set(&o.ProgressEvery, 5*time.Second)
	if o.RobotsMemory == 0 {
		o.RobotsMemory = 64 << 20
	}
	if o.UserAgent == "" {
		o.UserAgent = fetch.DefaultUserAgent
	}
	if o.Fetcher == nil {
		names, err := dns.New(dns.Options{}) // it holds nothing that must be closed
		if err != nil {
			return o, fmt.Errorf("crawler: %w", err)
		}
		if o.Prefetch == nil {
			o.Prefetch = names.Prefetch
		}
		f, err := fetch.New(fetch.Options{UserAgent: o.UserAgent, Lookup: names.Lookup})
		if err != nil {
			return o, fmt.Errorf("crawler: %w", err)
		}
		o.Fetcher = f
	}
	if o.Robots == nil {
		o.Robots = rfc9309{o.UserAgent}
	}
	if o.Normalizer == nil {
		o.Normalizer = urlnorm.New()
		for scheme := range o.Protocols {
			o.Normalizer = o.Normalizer.Accept(scheme, strings.TrimPrefix(defaultPorts[scheme], ":"))
		}
	}
	switch x := o.Extractor.(type) {
	case nil:
		o.Extractor = HTML{}.withDefaults(&o)
	case HTML:
		o.Extractor = x.withDefaults(&o)
	}
	if o.HostKey == nil {
		o.HostKey = frontier.HostName
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o, nil
}

func (o Options) validate() error { // runs after withDefaults; reports every fault at once
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if o.Workers < 1 {
		bad("Workers is %d; want >= 1", o.Workers)
	}
	for _, x := range []struct {
		name string
		n    int64
	}{
		{"MaxPages", o.MaxPages}, {"MaxPagesPerHost", o.MaxPagesPerHost}, {"MaxRedirects", int64(o.MaxRedirects)},
		{"MaxLinks", int64(o.MaxLinks)}, {"RobotsMemory", o.RobotsMemory},
		{"Groups.Concurrency", int64(o.Groups.Concurrency)}, {"Scope.MaxDepth", int64(o.Scope.MaxDepth)}, {"Scope.MaxURL", int64(o.Scope.MaxURL)},
	} {
		if x.n < 0 {
			bad("%s is %d; want >= 0", x.name, x.n)
		}
	}
	if n := o.Groups.IPv6Bits; n < 1 || n > 128 {
		bad("Groups.IPv6Bits is %d; want 1 to 128", n)
	}
	for _, x := range []struct {
		name string
		d    time.Duration
	}{
		{"RobotsTTL", o.RobotsTTL}, {"RobotsWait", o.RobotsWait}, {"MaxCrawlDelay", o.MaxCrawlDelay},
		{"MaxRetryAfter", o.MaxRetryAfter}, {"Grace", o.Grace}, {"ProgressEvery", o.ProgressEvery},
	} {
		if x.d < 0 {
			bad("%s is %v; want >= 0", x.name, x.d)
		}
	}
	if !(o.MaxRate >= 0) || math.IsInf(o.MaxRate, 1) {
		bad("MaxRate is %v; want a finite number >= 0", o.MaxRate)
	}
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("crawler: options: %w", errors.Join(errs...))
}

// robotsURL is the URL that a robots.txt is asked about for a URL.
func (o *Options) robotsURL(url string) string {
	if f, ok := o.fetcher(url).(interface{ RobotsURL(url string) string }); ok {
		return f.RobotsURL(url)
	}
	return url
}

// fetcher returns who gets a URL; nil if nobody does.
func (o *Options) fetcher(url string) Fetcher {
	scheme, _, ok := strings.Cut(url, "://")
	scheme = strings.ToLower(scheme)
	if f := o.Protocols[scheme]; f != nil && ok {
		return f
	}
	if ok && (scheme == "http" || scheme == "https") {
		return o.Fetcher
	}
	return nil
}
