// This file remembers the robots.txt of sites, and decides by it.

package polite

import (
	"cmp"
	"container/list"
	"context"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/seed-7440039f/frontier/crawler/robots"
	"github.com/seed-7440039f/frontier/internal/faults"
	"github.com/seed-7440039f/frontier/internal/unit"
)

// Robots requests the robots.txt of each site once, remembers it, and decides by it (RFC 9309). A
// site is a scheme, a host and a port. Set the fields before its first use. It is safe for
// concurrent use; do not copy it.
//
//	2xx                         its rules apply
//	3xx                         is followed, five times at most
//	4xx                         everything is allowed
//	429, 5xx, no answer, or     nothing is allowed: *UnreachableError. It is requested again after a
//	one that cannot be read     second, and after twice as long each time it fails, up to a day.
//	                            After three failures, rules that have expired are used again
type Robots struct {
	// Agent is the User-Agent of the requests. The rules for its product token apply: those for
	// examplebot if it is "examplebot/1.0 (+https://bot.example)".
	Agent string
	// TTL is how long a robots.txt is believed. Zero means 24 hours.
	TTL time.Duration
	// MaxCrawlDelay limits the Crawl-delay that is honoured: a Transport makes it the least delay of
	// its host. Zero means 24 hours.
	MaxCrawlDelay time.Duration
	// Memory is the number of bytes for cached rules; beyond it, the least recently used are
	// forgotten. Zero means 64 MiB.
	Memory int64

	mu     sync.Mutex
	sites  map[string]*site // guarded by mu
	recent list.List        // guarded by mu; of sites that are not being read, least recently used last
	bytes  int64            // guarded by mu; of sites in recent
}

const (
	robotsTTL    = 24 * time.Hour
	robotsMemory = 64 << 20
	firstWait    = time.Second // after the first failure; twice as long after each further one
	longestWait  = 24 * time.Hour
	staleAfter   = 3 // failures until expired rules are used again
	pausesMore   = 10
)

// site is what is known of a site's robots.txt. It is guarded by Robots.mu.
type site struct {
	name    string
	rules   *robots.Rules // nil: never read
	expires time.Time
	delay   time.Duration // the Crawl-delay; 0: none
	// Whether the frontier knows delay; otherwise the next contact comes after delay from last.
	applied bool
	used    bool // a URL was let through since the rules were read
	last    time.Time
	tries   int       // failed ones in a row
	aside   int       // number of URLs that may be put off until due, so that others of the host get their turn
	due     time.Time // no request before
	failure *UnreachableError
	reading chan struct{} // closed when the request under way has ended; nil: there is none
	elem    *list.Element
}

func (r *Robots) check() faults.List {
	wrong := faults.List(unit.CheckAll("Robots.", r))
	wrong.If(robots.ProductToken(r.Agent) == "", "Robots.Agent is %q; want a name as in examplebot/1.0 (+https://bot.example)", r.Agent)
	return wrong
}

// Allowed reports whether robots.txt allows a URL. If it is not known it is requested through rt:
// through a Transport in its host's turn, and at once through other RoundTrippers; nil means
// http.DefaultTransport. Calls for the same site share one request. If robots.txt cannot be read, the
// error is an *UnreachableError. With a Transport that has these Robots there is no need to call it.
func (r *Robots) Allowed(ctx context.Context, rt http.RoundTripper, rawURL string) (bool, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return false, err
	}
	if err := r.check().Of("polite"); err != nil {
		return false, err
	}
	rt = cmp.Or(rt, http.DefaultTransport)
	v, err := r.rules(ctx, rt, u)
	if err != nil {
		return false, err
	}
	return v.rules.Allowed(rawURL), nil
}

// CrawlDelay returns the delay that the site of a URL asks for, if its robots.txt is known and asks
// for one.
func (r *Robots) CrawlDelay(rawURL string) (time.Duration, bool) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return 0, false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.sites[siteOf(u)]
	if s == nil || s.rules == nil {
		return 0, false
	}
	return s.delay, s.delay > 0
}

// verdict is what robots.txt allows for a site's URLs, at one moment.
type verdict struct {
	rules *robots.Rules
	delay time.Duration
	rest  time.Time // the frontier does not know the delay: no contact before
}

// check returns a *DeniedError if a URL is forbidden.
func (v *verdict) check(u *url.URL) error {
	if d := v.rules.Decide(u.String()); !d.Allowed {
		return &DeniedError{URL: u.String(), Pattern: d.Pattern, Line: d.Line}
	}
	return nil
}

// rules waits until the rules of a URL's site are known.
func (r *Robots) rules(ctx context.Context, rt http.RoundTripper, u *url.URL) (verdict, error) {
	var late <-chan time.Time
	t, _ := rt.(*Transport)
	for {
		v, other, err := r.claim(siteOf(u))
		if other != nil && late == nil && t != nil && t.MaxWait > 0 {
			late = time.After(t.MaxWait)
		}
		switch {
		case err != nil || v.rules != nil:
			return v, err
		case other != nil:
			select {
			case <-other:
				continue
			case <-late:
				return v, &BusyError{Host: u.Hostname()}
			case <-ctx.Done():
				return v, ctx.Err()
			}
		}
		if err := r.read(ctx, rt, siteOf(u)); err != nil {
			return v, err
		}
	}
}

// claim returns the rules of a site; or a channel, closed when the request of another caller has
// ended; or the error of the last request, while it is too early for another; or nothing, which
// claims the next request: read must follow, or release.
func (r *Robots) claim(name string) (verdict, <-chan struct{}, error) {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.sites[name]
	if s == nil {
		if r.sites == nil {
			r.sites = map[string]*site{}
		}
		s = &site{name: name}
		r.sites[name] = s
	}
	switch {
	case s.reading != nil:
		return verdict{}, s.reading, nil
	case s.fresh(now):
		r.recent.MoveToFront(s.elem)
		v := verdict{rules: s.rules, delay: s.delay}
		if !s.applied {
			v.rest, s.applied = s.last.Add(s.delay), true
		}
		s.used = s.used || !now.Before(v.rest)
		return v, nil, nil
	case now.Before(s.due):
		e := *s.failure
		if e.aside = r.siblingLocked(s) || s.aside > 0; e.aside {
			s.aside--
		}
		return verdict{}, nil, &e
	}
	r.unlistLocked(s)
	s.reading = make(chan struct{})
	return verdict{}, nil, nil
}

// fresh reports whether a site's rules apply, by the monotonic clock, which stops while the machine is
// suspended, and by the wall clock, which may be set back. If the Crawl-delay is so long that the rules
// expired unused, they serve for one more URL; otherwise every contact would be spent on robots.txt.
func (s *site) fresh(now time.Time) bool {
	until := s.expires
	if !s.used {
		until = until.Add(pausesMore * s.delay)
	}
	return s.rules != nil && now.Before(until) && now.Round(0).Before(until.Round(0))
}

// siblingLocked reports whether the same host answers by the other scheme.
func (r *Robots) siblingLocked(s *site) bool {
	other, secure := strings.CutPrefix(s.name, "https://")
	if other = "http://" + other; !secure {
		other = "https://" + strings.TrimPrefix(s.name, "http://")
	}
	return r.sites[other] != nil && r.sites[other].rules != nil
}

// sibling is siblingLocked for a site's name.
func (r *Robots) sibling(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.siblingLocked(r.sites[name])
}

// finish ends a claim; change records what was learned.
func (r *Robots) finish(name string, change func(*site)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.sites[name]
	change(s)
	close(s.reading)
	s.reading = nil
	r.listLocked(s)
}

// release ends a claim as if there had been no request.
func (r *Robots) release(name string) { r.finish(name, func(*site) {}) }

// pause returns the Crawl-delay to honour; 0: none.
func (r *Robots) pause(rules *robots.Rules) time.Duration {
	d, _ := rules.CrawlDelay()
	return max(0, min(d, cmp.Or(max(0, r.MaxCrawlDelay), robots.MaxCrawlDelay)))
}

// settle records rules.
func (s *site) settle(rules *robots.Rules, r *Robots, applied bool, last time.Time) {
	s.rules, s.expires, s.delay = rules, time.Now().Add(cmp.Or(max(0, r.TTL), robotsTTL)), r.pause(rules)
	s.applied, s.last, s.used = applied || s.delay == 0, last, false
	s.tries, s.aside, s.due, s.failure = 0, 0, time.Time{}, nil
}

// failed records a failed request.
func (s *site) failed(e *UnreachableError, r *Robots, retryAfter time.Duration) {
	now := time.Now()
	if s.tries++; s.rules != nil && s.tries >= staleAfter {
		s.expires, s.tries, s.used = now.Add(cmp.Or(max(0, r.TTL), robotsTTL)), 0, false
		return
	}
	wait := firstWait
	for range min(s.tries-1, 40) {
		wait = min(2*wait, longestWait)
	}
	s.due = now.Add(max(wait, retryAfter))
	e.Until = s.due
	s.failure, s.aside = e, 1<<min(s.tries-1, 16)
}

// found records the rules of a site that another site's robots.txt redirects to.
func (r *Robots) found(name string, rules *robots.Rules) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sites[name] != nil {
		return
	}
	s := &site{name: name}
	s.settle(rules, r, true, time.Time{})
	r.sites[name] = s
	r.listLocked(s)
}

// known returns the rules of a site, if it need not be asked for them.
func (r *Robots) known(name string) *robots.Rules {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.sites[name]; s != nil && s.reading == nil && s.fresh(time.Now()) {
		return s.rules
	}
	return nil
}

func (r *Robots) listLocked(s *site) {
	s.elem = r.recent.PushFront(s)
	r.bytes += s.size()
	for most := cmp.Or(max(0, r.Memory), robotsMemory); r.bytes > most && r.recent.Len() > 1; {
		old := r.recent.Back().Value.(*site)
		r.unlistLocked(old)
		delete(r.sites, old.name)
	}
}

func (r *Robots) unlistLocked(s *site) {
	if s.elem != nil {
		r.recent.Remove(s.elem)
		r.bytes -= s.size()
		s.elem = nil
	}
}

func (s *site) size() int64 {
	n := int64(400 + 2*len(s.name))
	if s.rules != nil {
		n += int64(s.rules.Size())
	}
	return n
}

var defaultPorts = map[string]string{"http": ":80", "https": ":443"}

// siteOf returns the scheme, host and port of a URL, in lower case and without the scheme's default
// port.
func siteOf(u *url.URL) string {
	scheme := strings.ToLower(u.Scheme)
	return scheme + "://" + strings.TrimSuffix(strings.ToLower(u.Host), defaultPorts[scheme])
}
