// This file decides what robots.txt lets a worker do with a URL just leased:
// fetch it, give it up, come back later, or ask for robots.txt first.
//
// It remembers sites and takes the time as an argument; asking is robots.go's
// business. Politeness is owed to a host, but robots.txt to a site: a scheme, a
// host and a port.

package crawler

import (
	"container/list"
	"sync"
	"time"
)

// Rules is what one site's robots.txt lets this crawler do. *robots.Rules is one.
type Rules interface {
	// Allowed reports whether a URL may be fetched.
	Allowed(url string) bool
	// CrawlDelay is the pause that the site asks for, if it asks for one.
	CrawlDelay() (time.Duration, bool)
	// Size is about how many bytes the rules take in memory.
	Size() int
}

// verdict is what the gate says about a URL.
type verdict uint8

const (
	pass        verdict = iota // fetch it now
	forbidden                  // robots.txt forbids it
	unreachable                // robots.txt could not be had: the site is given up
	blocked                    // the site's address may not be contacted
	hold                       // hand it back, come again after a while
	ask                        // hand it back, and ask for robots.txt; the worker has claimed this
)

// siteState says where a site stands on its way to rules.
//
//	none -> asking -> settled -> (expired) asking ...
//	          |  ^
//	          v  |
//	         pending     a try failed, or a redirect on the same host is to be followed
type siteState uint8

const (
	none siteState = iota
	asking
	pending
	settled
)

// siteRecord is what is known of one site's robots.txt.
//
// Invariants, verified by check:
//   - it is in the gate's list of settled sites exactly if its state is settled
//   - a settled record has rules, or is unreachable, or blocked
type siteRecord struct {
	site    string // "http://a.example:81"
	state   siteState
	target  string    // what to ask for next
	hops    int       // redirects followed to target
	tries   int       // failed ones
	due     time.Time // no try before
	rules   Rules     // of the last answer, also while asking anew; nil if there was none
	blocked bool      // robots.txt was to be had only where nothing may be contacted
	expires time.Time // of a settled record
	elem    *list.Element
	// applied says that the frontier knows the crawl delay. It does not yet if
	// the rules came from another host.
	applied bool
	last    time.Time // end of the last contact with the site for its robots.txt
}

// gate remembers sites. The zero value is not usable; see newGate.
type gate struct {
	tries    int
	wait     time.Duration // after the first failed try; four times as long after each further one
	ttl      time.Duration
	limit    int64 // bytes of settled records
	maxDelay time.Duration

	mu      sync.Mutex
	sites   map[string]*siteRecord // guarded by mu
	settled list.List              // guarded by mu; least recently used last
	bytes   int64                  // guarded by mu; of settled records
}

func newGate(o *Options) *gate {
	return &gate{
		tries: o.RobotsTries, wait: o.RobotsWait, ttl: o.RobotsTTL, limit: o.RobotsMemory,
		maxDelay: o.MaxCrawlDelay, sites: map[string]*siteRecord{},
	}
}

// inProgress is how long a host is held if another worker asks for its
// robots.txt. Nobody is contacted meanwhile, so it costs nothing but time.
const inProgress = 500 * time.Millisecond

// decision is what to do about a URL, and what to tell the frontier with it.
type decision struct {
	verdict verdict
	wait    time.Duration // for hold
	delay   time.Duration // the crawl delay, for pass and hold; 0 if none
	ask     question      // for ask
}

// question is a request for a robots.txt that a worker has claimed.
type question struct {
	site   string
	target string
	hops   int
}

// judge decides about a URL of a site.
func (g *gate) judge(site, url string, now time.Time) decision {
	g.mu.Lock()
	defer g.mu.Unlock()
	r := g.sites[site]
	if r == nil {
		r = &siteRecord{site: site, target: site + "/robots.txt"}
		g.sites[site] = r
	}
	switch {
	case r.state == asking:
		return decision{verdict: hold, wait: inProgress}
	case r.state == pending && now.Before(r.due):
		return decision{verdict: hold, wait: r.due.Sub(now)}
	case r.state == settled && now.Before(r.expires):
		return g.applyLocked(r, url, now)
	}
	if r.state != pending {
		g.unsettleLocked(r)
		r.target, r.hops, r.tries = site+"/robots.txt", 0, 0
	}
	r.state = asking
	return decision{verdict: ask, ask: question{site, r.target, r.hops}}
}

// applyLocked asks a settled record.
func (g *gate) applyLocked(r *siteRecord, url string, now time.Time) decision {
	g.settled.MoveToFront(r.elem)
	if r.blocked {
		return decision{verdict: blocked}
	}
	if r.rules == nil {
		return decision{verdict: unreachable}
	}
	if !r.rules.Allowed(url) {
		return decision{verdict: forbidden}
	}
	d := decision{verdict: pass, delay: g.delay(r.rules)}
	if !r.applied {
		r.applied = true
		if wait := r.last.Add(d.delay).Sub(now); wait > 0 {
			d.verdict, d.wait = hold, wait
		}
	}
	return d
}

// delay is the crawl delay that is honoured; 0 if the site asks for none.
func (g *gate) delay(rules Rules) time.Duration {
	d, ok := rules.CrawlDelay()
	if !ok || d <= 0 {
		return 0
	}
	if g.maxDelay > 0 {
		d = min(d, g.maxDelay)
	}
	return d
}

// settle records rules. applied says that the frontier was told of their crawl
// delay; last is the end of the last contact with the site.
func (g *gate) settle(site string, rules Rules, applied bool, last time.Time, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	r := g.sites[site]
	r.rules, r.applied, r.last, r.blocked = rules, applied, last, false
	g.settleLocked(r, now)
}

// block records that a site is at an address that may not be contacted.
func (g *gate) block(site string, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	r := g.sites[site]
	r.rules, r.applied, r.blocked = nil, true, true
	g.settleLocked(r, now)
}

// found records rules that were met on the way of another site's redirect,
// unless the site is known or being asked.
func (g *gate) found(site string, rules Rules, last, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if r := g.sites[site]; r != nil && r.state != none {
		return
	}
	r := &siteRecord{site: site, rules: rules, applied: true, last: last}
	g.sites[site] = r
	g.settleLocked(r, now)
}

// known returns the rules of a settled site.
func (g *gate) known(site string, now time.Time) (Rules, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	r := g.sites[site]
	if r == nil || r.state != settled || r.rules == nil || !now.Before(r.expires) {
		return nil, false
	}
	return r.rules, true
}

// follow records that the claimed question is answered by a redirect to target
// on the same host, which whoever leases the next URL of the site will follow.
func (g *gate) follow(site, target string, hops int, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	r := g.sites[site]
	r.state, r.target, r.hops, r.due = pending, target, hops, now
}

// failed records a failed try and returns the wait before the next; last is
// true if there is none. retryAfter is what the server asked for.
func (g *gate) failed(site string, retryAfter time.Duration, now time.Time) (wait time.Duration, last bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	r := g.sites[site]
	r.tries++
	if r.tries >= g.tries {
		// A copy that was good until now beats none (RFC 9309 section 2.4).
		r.applied, r.blocked = true, false
		g.settleLocked(r, now)
		return 0, true
	}
	wait = g.wait
	for range min(r.tries-1, 20) {
		wait = min(4*wait, 24*time.Hour)
	}
	wait = max(wait, retryAfter)
	r.state, r.target, r.hops, r.due = pending, site+"/robots.txt", 0, now.Add(wait)
	return wait, false
}

// release gives up the claim to a question, as if it had not been asked.
func (g *gate) release(site string, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if r := g.sites[site]; r.state == asking {
		r.state, r.due = pending, now
	}
}

func (g *gate) settleLocked(r *siteRecord, now time.Time) {
	r.state, r.expires, r.target, r.hops, r.tries = settled, now.Add(g.ttl), "", 0, 0
	r.elem = g.settled.PushFront(r)
	g.bytes += r.size()
	for g.bytes > g.limit && g.settled.Len() > 1 {
		old := g.settled.Back().Value.(*siteRecord)
		g.unsettleLocked(old)
		delete(g.sites, old.site)
	}
}

func (g *gate) unsettleLocked(r *siteRecord) {
	if r.elem != nil {
		g.bytes -= r.size()
		g.settled.Remove(r.elem)
		r.elem, r.state = nil, none
	}
}

func (r *siteRecord) size() int64 {
	n := int64(300 + 2*len(r.site))
	if r.rules != nil {
		n += int64(r.rules.Size())
	}
	return n
}
