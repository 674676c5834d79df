// This file reads the command line of crawl. It turns it into options and says
// everything that is wrong with it; it opens nothing.

package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/netip"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler"
	"github.com/seed-7440039f/frontier/crawler/checkpoint"
	"github.com/seed-7440039f/frontier/crawler/dns"
	"github.com/seed-7440039f/frontier/crawler/fetch"
	"github.com/seed-7440039f/frontier/crawler/urlnorm"
)

// settings are what a command line asks for.
type settings struct {
	dir     string
	doneLog string
	sync    bool
	verbose bool
	seeds   []string

	frontier frontier.Options
	fetch    fetch.Options // of crawler.Fetcher
	names    *dns.Resolver // nil if a proxy looks names up
	crawler  crawler.Options
	limits   *frontier.Limits // of each host; nil: as they are
	modules  moduleFlags
	recrawl  recrawlFlags
	console  consoleFlags
	copies   checkpointFlags
	parts    []checkpoint.Part // of which checkpoints are made
}

// errHelp is returned for -help, after the help has been printed.
var errHelp = flag.ErrHelp

// parseCrawl reads the arguments. Errors name every flag that is wrong.
func parseCrawl(args []string, stderr io.Writer) (*settings, error) {
	s := &settings{}
	var (
		delay                       time.Duration
		factor                      float64
		minDelay, maxDelay          time.Duration
		tries                       int
		retryWait                   time.Duration
		userAgent, contact, proxy   string
		maxBody, memory, limitBytes byteSize
		limits                      frontier.Limits
		groupDelay                  time.Duration
		hosts, domains, exempt      list
		include, exclude, resolving repeated
		web                         fetchFlags
		wanted                      filterFlags
		protocols                   protocolFlags
	)
	fs := flag.NewFlagSet("frontier crawl", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.StringVar(&s.dir, "dir", "", "`folder` that keeps the crawl; if it exists the crawl goes on (default: in memory)")
	fs.IntVar(&s.crawler.Workers, "workers", 16, "pages fetched at once at most")
	fs.DurationVar(&delay, "delay", 0, "fixed `pause` between two contacts with a host, instead of -delay-factor")
	fs.Float64Var(&factor, "delay-factor", 10, "pause as a multiple of the last fetch's duration")
	fs.DurationVar(&minDelay, "min-delay", time.Second, "least pause under -delay-factor")
	fs.DurationVar(&maxDelay, "max-delay", 30*time.Second, "greatest pause under -delay-factor")
	fs.DurationVar(&groupDelay, "group-delay", 0, "fixed `pause` between two contacts with an address (default: as for a host)")
	fs.DurationVar(&s.frontier.Backoff.Base, "backoff-base", 2*time.Second, "pause after the first failure that slows a host down, twice as long after each further one")
	fs.DurationVar(&s.frontier.Backoff.Max, "backoff-max", 10*time.Minute, "greatest such pause")
	fs.IntVar(&s.frontier.Quarantine.Probes, "probes", 3, "a host that only fails is tried again after 10, 20, 40 minutes, and so on, up to a day; after so many failed `probes` its URLs are given up (0: the crawl waits until it returns)")
	fs.IntVar(&s.frontier.Quarantine.After, "quarantine-after", 8, "failures in a row, of nothing but failures, after which a host is merely probed")
	fs.DurationVar(&s.frontier.Quarantine.Probe, "quarantine-probe", 10*time.Minute, "pause before the first probe, twice as long before each further one")
	fs.BoolVar(&s.crawler.Groups.Off, "no-groups", false, "hosts with the same address owe it nothing together")
	fs.IntVar(&s.frontier.HostConcurrency, "host-concurrency", 1, "contacts with one host at once")
	fs.IntVar(&s.crawler.Groups.Concurrency, "group-concurrency", 1, "contacts with one address at once")
	fs.Var(&exempt, "group-exempt", "`networks` (CIDR) whose addresses are shared without being one server, as of a CDN; comma-separated")
	fs.DurationVar(&s.crawler.MaxCrawlDelay, "max-crawl-delay", 0, "greatest Crawl-delay of a robots.txt that is honoured (default: any)")
	fs.DurationVar(&s.crawler.MaxRetryAfter, "max-retry-after", 24*time.Hour, "greatest Retry-After that is honoured")
	fs.IntVar(&tries, "retry-tries", 3, "tries of a URL in all; without it and -retry-wait they depend on the kind of failure")
	fs.DurationVar(&retryWait, "retry-wait", 30*time.Second, "wait after the first failed try, four times as long after each further one")
	fs.Var(&hosts, "scope-hosts", "`hosts` to crawl, comma-separated; * for any (default: those of the seeds)")
	fs.Var(&domains, "scope-domains", "`domains` to crawl with all hosts below them, comma-separated")
	fs.Var(&include, "include", "`pattern` (Go regular expression) that a URL must match; repeatable: one of them")
	fs.Var(&exclude, "exclude", "`pattern` that no URL may match; repeatable")
	fs.IntVar(&s.crawler.Scope.MaxDepth, "max-depth", 0, "greatest number of links from a seed (default: any)")
	fs.IntVar(&s.crawler.Scope.MaxURL, "max-url", 4096, "greatest length of a URL in bytes")
	fs.Int64Var(&s.crawler.MaxPages, "max-pages", 0, "stop after so many pages in this run (default: never)")
	fs.Int64Var(&s.crawler.MaxPagesPerHost, "max-pages-per-host", 0, "pages of one host in this run; its other URLs are given up (default: all)")
	fs.Int64Var(&limits.Served, "limit-pages", 0, "pages that each host is asked for in a -limit-period (default: any); the -limit flags are kept with -dir until others are given")
	fs.Var(limitBytes.set(0), "limit-bytes", "`bytes` that each host may send in a -limit-period; k, M, G may follow (default: any)")
	fs.Int64Var(&limits.Errors, "limit-errors", 0, "failed fetches of each host in a -limit-period (default: any)")
	fs.DurationVar(&limits.Period, "limit-period", 0, "`time` after which these three are counted anew (default: never)")
	fs.Int64Var(&limits.Waiting, "limit-waiting", 0, "URLs of each host that wait at most; more are dropped, as of a trap (default: any)")
	fs.IntVar(&limits.Depth, "limit-depth", 0, "greatest number of links from a seed, of each host (default: any)")
	fs.StringVar(&userAgent, "user-agent", "", "User-Agent `header`; name yourself (default \""+fetch.DefaultUserAgent+"\")")
	fs.StringVar(&contact, "contact", "", "`URL or e-mail` address by which a host's owner reaches you; added to the User-Agent")
	fs.StringVar(&proxy, "proxy", "", "proxy `URL` (http, https, socks5) for all requests")
	fs.Var(&resolving, "resolve", "`host=address` to connect to, with or without a port; *.domain and * too; repeatable")
	fs.DurationVar(&s.fetch.Timeout, "timeout", time.Minute, "time limit of a fetch")
	fs.Var(maxBody.set(10<<20), "max-body", "`bytes` of a page that are read; k, M, G may follow")
	fs.Var(memory.set(0), "memory", "`bytes` of memory for the frontier; k, M, G may follow (default: 512M with -dir, else 256M)")
	web.define(fs, &s.fetch)
	s.modules.define(fs)
	s.recrawl.define(fs)
	s.console.define(fs)
	s.copies.define(fs)
	wanted.define(fs, &s.crawler)
	protocols.define(fs)
	fs.DurationVar(&s.crawler.Grace, "grace", 10*time.Second, "how long fetches may go on after Ctrl-C")
	fs.BoolVar(&s.sync, "sync", false, "survive power loss too, not only kill -9 (slower)")
	fs.StringVar(&s.doneLog, "done-log", "", "append each URL to this `file` once its visit is recorded")
	fs.BoolVar(&s.verbose, "v", false, "log every failed fetch")
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(stderr, "usage: frontier crawl [flags] SEED...")
			fs.SetOutput(stderr)
			fs.PrintDefaults()
		}
		return nil, err
	}

	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	given := map[string]bool{}
	fs.Visit(func(f *flag.Flag) { given[f.Name] = true })

	s.frontier.Delay = frontier.FactorDelay(factor, minDelay, maxDelay)
	if given["delay"] {
		s.frontier.Delay = frontier.FixedDelay(delay)
		if given["delay-factor"] || given["min-delay"] || given["max-delay"] {
			bad("-delay cannot be combined with -delay-factor, -min-delay or -max-delay")
		}
		if delay < 0 {
			bad("-delay is %v; want >= 0", delay)
		}
	} else if !(factor >= 0) || minDelay < 0 || maxDelay < minDelay {
		bad("-delay-factor %v, -min-delay %v, -max-delay %v: want 0 <= factor and 0 <= min <= max", factor, minDelay, maxDelay)
	}
	if given["group-delay"] {
		s.frontier.GroupDelay = frontier.FixedDelay(groupDelay)
		if groupDelay < 0 {
			bad("-group-delay is %v; want >= 0", groupDelay)
		}
	}
	if b := s.frontier.Backoff; b.Base <= 0 || b.Max < b.Base {
		bad("-backoff-base %v, -backoff-max %v: want 0 < base <= max", b.Base, b.Max)
	}
	if n := s.frontier.Quarantine.Probes; n < 0 || n > 250 {
		bad("-probes is %d; want 0 to 250", n)
	}
	if n := s.frontier.HostConcurrency; n < 1 || n > 1024 {
		bad("-host-concurrency is %d; want 1 to 1024", n)
	}
	if s.crawler.Groups.Concurrency < 1 {
		bad("-group-concurrency is %d; want >= 1", s.crawler.Groups.Concurrency)
	}
	limits.Bytes = int64(limitBytes)
	for name := range given {
		if strings.HasPrefix(name, "limit-") {
			s.limits = &limits
		}
	}
	for name, n := range map[string]int64{
		"pages": limits.Served, "bytes": limits.Bytes, "errors": limits.Errors, "waiting": limits.Waiting, "depth": int64(limits.Depth),
	} {
		if n < 0 {
			bad("-limit-%s is %d; want >= 0", name, n)
		}
	}
	if p := limits.Period; p != 0 && (p < time.Millisecond || p > 100*366*24*time.Hour) {
		bad("-limit-period is %v; want 1ms to 100 years", p)
	}
	for _, n := range exempt {
		p, err := netip.ParsePrefix(n)
		if err != nil {
			bad("-group-exempt is %q; want networks like 192.0.2.0/24", n)
			continue
		}
		s.crawler.Groups.Exempt = append(s.crawler.Groups.Exempt, p)
	}
	if tries < 1 || retryWait < 0 {
		bad("-retry-tries %d, -retry-wait %v: want tries >= 1 and a wait >= 0", tries, retryWait)
	}
	if given["retry-tries"] || given["retry-wait"] {
		s.frontier.Retry = frontier.Retries(tries, retryWait)
	}
	s.frontier.MemoryBudget = int64(memory)
	if s.sync && s.dir == "" {
		bad("-sync needs -dir: there is nothing to write to")
	}

	s.modules.validate(bad)
	s.recrawl.validate(given, bad)
	s.copies.validate(s.dir, bad)
	if s.crawler.Workers < 1 {
		bad("-workers is %d; want >= 1", s.crawler.Workers)
	}
	if s.fetch.Timeout <= 0 {
		bad("-timeout is %v; want > 0", s.fetch.Timeout)
	}
	if s.crawler.Grace == 0 {
		s.crawler.Grace = 1 // to Options, 0 means the default
	}
	if s.crawler.MaxRetryAfter == 0 {
		bad("-max-retry-after is 0s; want > 0")
	}
	if maxBody == 0 {
		bad("-max-body is 0; want > 0")
	}
	for name, n := range map[string]int64{
		"max-depth": int64(s.crawler.Scope.MaxDepth), "max-url": int64(s.crawler.Scope.MaxURL), "max-pages": s.crawler.MaxPages,
		"max-pages-per-host": s.crawler.MaxPagesPerHost, "max-crawl-delay": int64(s.crawler.MaxCrawlDelay), "grace": int64(s.crawler.Grace),
		"max-retry-after": int64(s.crawler.MaxRetryAfter),
	} {
		if n < 0 {
			bad("-%s is negative", name)
		}
	}
	errs = append(errs, wanted.apply(&s.crawler)...)
	names, faults := web.apply(&s.fetch)
	errs = append(errs, faults...)
	if names != nil && proxy == "" {
		s.names, s.crawler.Prefetch = names, names.Prefetch
	}
	s.fetch.MaxBody = int64(maxBody)
	s.fetch.UserAgent = agent(userAgent, contact)
	s.crawler.UserAgent = s.fetch.UserAgent
	if proxy != "" {
		u, err := url.Parse(proxy)
		if err != nil {
			bad("-proxy: %w", err)
		} else if port := u.Port(); port != "" && !isPort(port) {
			bad("-proxy is %q; want a port from 1 to 65535", u.Redacted())
		}
		s.fetch.Proxy = u
	}
	s.fetch.Resolve = map[string]string{}
	for _, r := range resolving {
		host, addr, ok := strings.Cut(r, "=")
		if _, port, err := net.SplitHostPort(addr); err == nil && !isPort(port) {
			bad("-resolve is %q; want a port from 1 to 65535", r)
		}
		if !ok || host == "" || addr == "" {
			bad("-resolve is %q; want host=address", r)
		}
		s.fetch.Resolve[strings.ToLower(host)] = addr
	}
	compile := func(name string, patterns []string) (out []*regexp.Regexp) {
		for _, p := range patterns {
			re, err := regexp.Compile(p)
			if err != nil {
				bad("-%s: %w", name, err)
				continue
			}
			out = append(out, re)
		}
		return out
	}
	s.crawler.Scope.Include = compile("include", include)
	s.crawler.Scope.Exclude = compile("exclude", exclude)
	if len(errs) == 0 {
		var err error
		if s.crawler.Fetcher, err = fetch.New(s.fetch); err != nil {
			errs = append(errs, err)
		}
	}
	errs = append(errs, protocols.apply(s)...)
	errs = append(errs, s.addSeeds(fs.Args())...)
	errs = append(errs, s.addScope(hosts, domains)...)
	return s, errors.Join(errs...)
}

// addSeeds normalizes the seeds.
func (s *settings) addSeeds(args []string) (errs []error) {
	norm := s.crawler.Normalizer
	if norm == nil {
		norm = urlnorm.New()
	}
	for _, a := range args {
		if strings.HasPrefix(a, "-") {
			errs = append(errs, fmt.Errorf("%s comes after a seed; flags go first", a))
			continue
		}
		u := a
		if _, port, ok := strings.Cut(a, ":"); !ok || port != "" && port[0] >= '0' && port[0] <= '9' {
			u = "http://" + a // a host name alone, maybe with a port
		}
		u, err := norm.Normalize(u)
		scheme, _, _ := strings.Cut(u, "://")
		if err == nil && !strings.HasPrefix(u, "http") && s.crawler.Protocols[scheme] == nil {
			err = errors.New("want http or https, or a scheme of -protocols")
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("seed %q: %w", fetch.Redact(a), err))
			continue
		}
		s.seeds = append(s.seeds, u)
	}
	if len(args) == 0 && (s.dir == "" || !exists(s.dir)) {
		errs = append(errs, errors.New("no seed given, and no crawl in -dir to go on with"))
	}
	return errs
}

// addScope decides where the crawl may go.
func (s *settings) addScope(hosts, domains list) (errs []error) {
	sc := &s.crawler.Scope
	sc.Domains = domains
	for _, h := range hosts {
		if h == "*" {
			sc.Domains = nil
			return nil
		}
		sc.Hosts = append(sc.Hosts, h)
	}
	if len(sc.Hosts) > 0 || len(sc.Domains) > 0 {
		return nil
	}
	for _, u := range s.seeds {
		if h, err := frontier.HostName(u); err == nil {
			sc.Hosts = append(sc.Hosts, h)
		}
	}
	if len(sc.Hosts) == 0 {
		errs = append(errs, errors.New("without seeds the scope must be named: -scope-hosts or -scope-domains"))
	}
	return errs
}

func isPort(s string) bool {
	n, err := strconv.ParseUint(s, 10, 16)
	return err == nil && n > 0
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// agent puts the User-Agent together.
func agent(name, contact string) string {
	if name == "" {
		if contact == "" {
			return fetch.DefaultUserAgent
		}
		name = "frontier/0.1"
	}
	if contact == "" {
		return name
	}
	return name + " (+" + contact + ")"
}

// list is a flag of comma-separated values; repeating it adds to it.
type list []string

func (l *list) String() string { return strings.Join(*l, ",") }

func (l *list) Set(s string) error {
	for _, x := range strings.Split(s, ",") {
		if x = strings.TrimSpace(x); x != "" {
			*l = append(*l, x)
		}
	}
	return nil
}

// repeated is a flag that may be given several times.
type repeated []string

func (r *repeated) String() string { return strings.Join(*r, " ") }

func (r *repeated) Set(s string) error {
	*r = append(*r, s)
	return nil
}

// byteSize is a flag that counts bytes.
type byteSize int64

func (b *byteSize) set(n int64) *byteSize { *b = byteSize(n); return b }

func (b *byteSize) String() string {
	for _, u := range []struct {
		shift int
		name  string
	}{{30, "G"}, {20, "M"}, {10, "k"}} {
		if *b != 0 && *b&(1<<u.shift-1) == 0 {
			return strconv.FormatInt(int64(*b)>>u.shift, 10) + u.name
		}
	}
	return strconv.FormatInt(int64(*b), 10)
}

func (b *byteSize) Set(s string) error {
	shift := 0
	if i := len(s) - 1; i > 0 {
		switch s[i] {
		case 'k', 'K':
			shift = 10
		case 'm', 'M':
			shift = 20
		case 'g', 'G':
			shift = 30
		}
		if shift > 0 {
			s = s[:i]
		}
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 || n > 1<<62>>shift {
		return errors.New("want a number of bytes, k, M or G may follow")
	}
	*b = byteSize(n << shift)
	return nil
}
