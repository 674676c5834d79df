// This file holds the options of a crawl, and the interfaces of its replaceable parts.

package crawler

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler/crawllog"
	"github.com/seed-7440039f/frontier/crawler/dns"
	"github.com/seed-7440039f/frontier/crawler/fetch"
	"github.com/seed-7440039f/frontier/crawler/filter"
	"github.com/seed-7440039f/frontier/crawler/urlnorm"
	"github.com/seed-7440039f/frontier/internal/faults"
	"github.com/seed-7440039f/frontier/internal/unit"
)

// Fetcher gets one page. *fetch.Fetcher is one.
type Fetcher interface {
	// Fetch sends at most one request, follows no redirect, and has closed its connection when it
	// returns, even after an error. ctx ends with the lease. The Result has at least Started and Ended.
	// If a Fetcher has a method CheckPort(string) error, URLs whose port it refuses are not crawled.
	Fetch(ctx context.Context, r fetch.Request) (*fetch.Result, error)
}

// maxWorkers is the most workers: each takes memory from the first moment.
const maxWorkers = 1 << 16

// Options configure a Crawler. The zero value crawls politely with no limits.
type Options struct {
	// Workers is how many pages are processed at once at most, and how many contacts with hosts that
	// answer promptly there are. Zero means 16. Contacts with other hosts need no worker: there are
	// up to 24 of them for each worker, 1024 in all (or as many as there are workers), and half as
	// many as the process may have descriptors. A warning says if that is too few. With one worker
	// there is one contact at a time. There may be 65536 workers.
	Workers int
	// UserAgent is sent with every request; its product token selects the rules in robots.txt. It
	// should say how to reach you. Empty means fetch.DefaultUserAgent.
	UserAgent string

	// Fetcher gets pages and robots.txt files. Nil means a fetch.Fetcher with UserAgent and a
	// dns.Resolver. Another Fetcher should send UserAgent, too.
	Fetcher Fetcher
	// Protocols holds Fetchers by URL scheme, in lower case: for schemes other than http and https,
	// or instead of Fetcher for these. Packages fetch/ftp and fetch/gopher provide some. URLs of
	// other schemes are not crawled. Sites of every scheme are first asked for /robots.txt; a
	// protocol that has no such file returns status 404. If a Fetcher has a method
	// RobotsURL(string) string, its result is matched against the rules instead of the URL.
	Protocols map[string]Fetcher
	// Robots reads robots.txt files. Nil means RFC 9309.
	Robots Robots
	// Extractor finds links. Nil means HTML{}.
	Extractor Extractor
	// Normalizer normalizes seeds, links and targets of redirects. Nil means urlnorm.New(), which
	// accepts the schemes of Protocols.
	Normalizer *urlnorm.Normalizer
	// HostKey must be the same as in the frontier's Options. Nil means frontier.HostName.
	HostKey func(url string) (string, error)

	// Prefetch, if set, is called every second with the names of the hosts that will be served
	// soon, so that they are resolved by then. It must not block. dns.Resolver.Prefetch fits.
	Prefetch func(host string)

	// Groups defines which hosts share politeness. The zero value groups hosts by IPv4 address and by
	// IPv6 network of 64 bits. The frontier's Options.GroupDelay is the delay of a group.
	Groups Groups

	// Scope and Filters define which URLs are crawled: those that all of them allow. A waiting URL
	// that is refused is parked: see Crawler.Unpark.
	Scope   Scope
	Filters []Filter
	// Rules are further filters, which also say why they refuse, and Traps the guards against sites
	// without an end: see package filter. Both are applied when a link is found and before it is
	// fetched. Progress.FilteredBy counts their refusals.
	Rules []filter.Filter
	Traps filter.TrapOptions
	// TrapsFile is the file in which Run stores the counts of Traps, every minute and at its end;
	// New reads it. With it, a resumed crawl does not enter a known trap again. A crash loses the
	// last minute. New fails if the file cannot be written. A damaged file is logged and replaced; the file of another version is reported
	// as frontier.ErrVersion. Empty means that the counts end with the process.
	TrapsFile string
	// Responses judge the headers of answers: if one refuses, the body is not read and the page
	// counts as visited, without links.
	Responses []filter.Response
	// Larger, if set, is called for an answer whose body reaches the Fetcher's size limit, with its
	// header and beginning. It returns how many bytes to read in all. processing.Sitemaps provides
	// one. The Fetcher must support fetch.Request.Larger.
	Larger func(e frontier.Entry, h http.Header, head []byte) int64
	// MaxPages ends Run after that number of pages (answers with a 2xx status) in this Run. Waiting
	// URLs stay in the frontier. Zero means no limit.
	MaxPages int64
	// MaxPagesPerHost parks a host's URLs after that number of its pages, counted since New;
	// revisited pages do not count. The next Crawler counts from zero and continues with the parked
	// URLs. Zero means no limit.
	MaxPagesPerHost int64
	// Held, if set, is called by a worker when only URLs are left that a pause or a limit
	// holds. It may wait until ctx ends. If it returns true, the worker asks the frontier
	// again. Otherwise, as without Held, the worker ends, and Run ends after all workers.
	Held func(ctx context.Context) bool
	// MaxRate is the maximum number of requests per second to all hosts together, including those
	// for robots.txt. After a pause, each worker may send one at once. Zero means no common limit.
	MaxRate float64
	// MaxRedirects is how many redirects in a row are followed. Zero means 10.
	MaxRedirects int
	// MaxLinks is the maximum number of links taken from a page, including duplicates. Zero means
	// 100,000. Their URLs have 4 MiB together at most. Further links are dropped, with a warning;
	// Progress.Dropped counts them, and FilteredBy as page-links.
	MaxLinks int

	// Requisites also fetches what browsers load to display pages: style sheets, images, icons,
	// scripts, fonts, videos, objects and frames, up to three steps from the page and on any host.
	// Hosts, Domains, Include and MaxDepth of Scope do not apply to them; everything else does:
	// robots.txt, Exclude, Filters, Rules. Progress.Requisites counts them, and no limit of pages
	// does. A frame in scope is a page. The Extractor must find them; HTML does.
	Requisites bool
	// SkipNoFollow ignores links whose rel is nofollow, ugc or sponsored. These values say that the
	// page does not endorse the target, not that crawling is forbidden, so by default such links
	// are followed. If the meta element or X-Robots-Tag of a page says nofollow, to all robots or
	// to this one, its links are never followed.
	SkipNoFollow bool

	// RobotsTTL is how long a robots.txt is believed. Zero means 24 hours.
	RobotsTTL time.Duration
	// RobotsWait is the minimum wait after the first failed request for a robots.txt. It doubles
	// with each further failure, up to a day, independently of other delays of the host. The site's
	// URLs wait meanwhile. Zero means 1 s.
	RobotsWait time.Duration
	// RobotsMemory is the memory, in bytes, for cached rules; beyond it, the least recently used
	// are discarded and requested again when needed. Zero means 64 MiB.
	RobotsMemory int64
	// MaxCrawlDelay limits the Crawl-delay that is honoured. The Logger reports once each host that
	// asks for 10 minutes or more. Zero means 24 hours, which is also the longest delay that the
	// default Robots reads.
	MaxCrawlDelay time.Duration
	// MaxRetryAfter limits the Retry-After that is honoured; a host that asks for years would keep
	// Run from ending. Zero means 24 hours.
	MaxRetryAfter time.Duration

	// Grace is how long fetches may continue after Run's context has ended; then they are cut and
	// their URLs handed back. Zero means 10 s.
	Grace time.Duration
	// Cut ends Grace early when it is closed. Nil has no effect.
	Cut <-chan struct{}

	// Revisits, if set, evaluates visits for the frontier's Scheduler; package incremental has
	// both. With nil, the Scheduler gets the result that follows from the status.
	Revisits Revisits
	// Whole, if set, reports whether a complete copy of a page is wanted even if it has not
	// changed; such pages are requested without conditions. processing.Uncaptured is one.
	Whole func(l frontier.Lease) bool
	// Importance, if set, weighs the links of pages; package importance has one, which is the frontier's
	// Prioritizer too.
	Importance Importance
	// Via stores with each URL the page that led to it, for Page.Via; this takes the bytes of its
	// URL for each waiting URL. Of a page whose links would take more than 4 MiB so, only the first
	// have it.
	Via bool
	// OnPage, if set, gets each answer that will not be retried. After an error the URL counts as
	// failed and is retried. Its context ends with Grace; after an error from then on the URL is
	// handed back. It is called by all workers concurrently.
	OnPage func(ctx context.Context, p *Page) error
	// OnRobots, if set, gets each answer to a request for robots.txt, including redirects, before
	// it is read. After an error the request counts as failed and is repeated. It is called by all
	// workers concurrently.
	OnRobots func(ctx context.Context, res *fetch.Result) error
	// OnFetch, if set, gets each request once it has ended, those for robots.txt included, and those
	// whose host has no address; not those that the end of the run cut. It is called by all workers
	// concurrently.
	OnFetch func(url string, res *fetch.Result, err error)
	// OnEnd, if set, gets a record of what becomes of each URL, before the frontier knows of it:
	// crawllog.Log.Add takes it. So each end is recorded at least once, kill -9 or not; only URLs that
	// are given up with their host are recorded after that, and only if the frontier's OnGiveUp calls
	// GivenUp. It also gets each request for a robots.txt, and each link that is not taken, whose
	// Attempt is 0, as often as it is found. It is called by all workers at once.
	OnEnd func(r crawllog.Record)
	// OnDone, if set, is called after the frontier has recorded an outcome.
	OnDone func(l frontier.Lease, o frontier.Outcome)
	// OnProgress, if set, is called every ProgressEvery and at the end of Run.
	OnProgress func(Progress)
	// ProgressEvery is how often progress is logged. Zero means 5 s.
	ProgressEvery time.Duration

	// Now returns the time for the cache of robots.txt. Nil means time.Now.
	Now func() time.Time
	// Logger receives progress and what an operator should see. Nil discards it.
	Logger *slog.Logger
}

func (o Options) withDefaults() (Options, error) {
	o.Workers = cmp.Or(o.Workers, 16)
	o.MaxRedirects = cmp.Or(o.MaxRedirects, 10)
	o.MaxLinks = cmp.Or(o.MaxLinks, 100_000)
	o.Groups.IPv6Bits = cmp.Or(o.Groups.IPv6Bits, 64)
	o.RobotsTTL = cmp.Or(o.RobotsTTL, 24*time.Hour)
	o.RobotsWait = cmp.Or(o.RobotsWait, time.Second)
	o.MaxCrawlDelay = cmp.Or(o.MaxCrawlDelay, 24*time.Hour)
	o.MaxRetryAfter = cmp.Or(o.MaxRetryAfter, 24*time.Hour)
	o.Grace = cmp.Or(o.Grace, 10*time.Second)
	o.ProgressEvery = cmp.Or(o.ProgressEvery, 5*time.Second)
	o.RobotsMemory = cmp.Or(o.RobotsMemory, 64<<20)
	o.UserAgent = cmp.Or(o.UserAgent, fetch.DefaultUserAgent)
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
	o.Robots = cmp.Or[Robots](o.Robots, rfc9309{o.UserAgent})
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
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	return o, nil
}

func (o Options) validate() error { // runs after withDefaults; reports every fault at once
	var wrong faults.List
	wrong.If(o.Workers < 1 || o.Workers > maxWorkers, "Workers is %d; want 1 to %d", o.Workers, maxWorkers)
	wrong.If(o.MaxPages < 0, "MaxPages is %d; want >= 0", o.MaxPages)
	wrong.If(o.MaxPagesPerHost < 0, "MaxPagesPerHost is %d; want >= 0", o.MaxPagesPerHost)
	wrong.If(o.MaxRedirects < 0, "MaxRedirects is %d; want >= 0", o.MaxRedirects)
	wrong.If(o.MaxLinks < 0, "MaxLinks is %d; want >= 0", o.MaxLinks)
	wrong.If(o.RobotsMemory < 0, "RobotsMemory is %d; want >= 0", o.RobotsMemory)
	wrong.If(o.Groups.Concurrency < 0, "Groups.Concurrency is %d; want >= 0", o.Groups.Concurrency)
	wrong.If(o.Scope.MaxDepth < 0, "Scope.MaxDepth is %d; want >= 0", o.Scope.MaxDepth)
	wrong.If(o.Scope.MaxURL < 0, "Scope.MaxURL is %d; want >= 0", o.Scope.MaxURL)
	bits := o.Groups.IPv6Bits
	wrong.If(bits < 1 || bits > 128, "Groups.IPv6Bits is %d; want 1 to 128", bits)
	wrong.Add(unit.CheckAll("", o)...)
	for f, v := range reflect.ValueOf(o).Fields() {
		switch v.Kind() {
		case reflect.Interface:
			wrong.If(!v.IsNil() && absent(v), "%s is a nil pointer", f.Name)
		case reflect.Slice, reflect.Map:
			for i, x := range v.Seq2() {
				wrong.If(absent(x), "%s[%v] is nil", f.Name, i)
			}
		}
	}
	wrong.If(!(o.MaxRate >= 0) || math.IsInf(o.MaxRate, 1), "MaxRate is %v; want a finite number >= 0", o.MaxRate)
	return wrong.Of("crawler: options")
}

// absent reports whether a value is nil, or an interface that holds nil.
func absent(v reflect.Value) bool {
	if v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	return !v.IsValid() || slices.Contains([]reflect.Kind{reflect.Pointer, reflect.Func, reflect.Map, reflect.Slice}, v.Kind()) && v.IsNil()
}

// robotsURL returns the URL to match against robots.txt for a URL.
func (o *Options) robotsURL(url string) string {
	if f, ok := o.fetcher(url).(interface{ RobotsURL(url string) string }); ok {
		return f.RobotsURL(url)
	}
	return url
}

// fetcher returns the Fetcher for a URL; nil if there is none.
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
