// This file decides, by robots.txt, what a worker does with a URL just leased: fetch it, give it
// up, hand it back for later, or request robots.txt first.
//
// Only a decision of the site or the user gives a URL up. An unreachable robots.txt is a failure,
// which ends no URL: the frontier's back-off and quarantine treat the host as if its pages could
// not be reached, and requests for robots.txt are the probes.
//
// The gate stores the state of sites and takes the time as an argument; robots.go sends the
// requests. Politeness applies to a host, robots.txt to a site: a scheme, a host and a port.

package crawler

import (
	"container/list"
	"sync"
	"time"

	"github.com/seed-7440039f/frontier/internal/unit"
)

// Rules is what a site's robots.txt allows this crawler. *robots.Rules implements it.
type Rules interface {
	// Allowed reports whether a URL may be fetched.
	Allowed(url string) bool
	// CrawlDelay returns the delay that the site asks for, if any.
	CrawlDelay() (time.Duration, bool)
	// Size returns the approximate memory of the rules in bytes.
	Size() int
}

// verdict is the gate's decision about a URL.
type verdict uint8

const (
	pass      verdict = iota // fetch it now
	forbidden                // robots.txt forbids it
	blocked                  // the site's address may not be contacted
	hold                     // hand it back, leave its host alone for a while
	later                    // put it off: other URLs of its host may be fetched meanwhile
	ask                      // hand it back and request robots.txt; this worker has the claim
)

// siteState is the progress of a site towards its rules.
//
//	none -> asking -> settled -> (expired) asking ...
//	          |  ^
//	          v  |
//	         pending     a try failed, or there is a redirect to follow
type siteState uint8

const (
	none siteState = iota
	asking
	pending
	settled
)

// siteRecord is the state of one site's robots.txt.
//
// Invariants, verified by check:
//   - it is in the gate's list if and only if its state is settled or pending
//   - a settled record has rules, or is blocked
//   - answering counts the settled records of a host that have rules, failing the pending ones
//     whose last try failed
type siteRecord struct {
	site    string // "http://a.example:81"
	state   siteState
	target  string        // URL to request next
	hops    int           // redirects followed to target
	tries   int           // failed ones in a row
	owed    bool          // the last try failed on another host, and the frontier does not know
	aside   int           // number of URLs that may be put off until due, so that others of the host get their turn
	stood   bool          // some were, since the last try
	stuck   time.Time     // since when another host cannot be contacted that target is on
	due     time.Time     // no try before
	rules   Rules         // of the last answer, also during a new request; nil if there was none
	blocked bool          // robots.txt was only at addresses that may not be contacted
	expires time.Time     // of a settled record
	pause   time.Duration // that a settled record's rules ask for
	used    bool          // a URL was let through since it was settled
	pace    sitePace      // of the last page
	elem    *list.Element
	// applied reports that the frontier knows the crawl delay. It does not know it yet if the rules
	// came from another host.
	applied bool
	last    time.Time // end of the last contact with the site for robots.txt
}

// gate remembers sites. The zero value is not usable; see newGate.
type gate struct {
	wait     time.Duration // after the first failed try; twice as long after each further one
	ttl      time.Duration
	limit    int64 // bytes of listed records
	maxDelay time.Duration

	mu        sync.Mutex
	sites     map[string]*siteRecord // guarded by mu
	answering map[string]int         // guarded by mu; by host
	failing   int64                  // guarded by mu
	listed    list.List              // guarded by mu; least recently used last
	bytes     int64                  // guarded by mu; of listed records
	slow      map[string]bool        // guarded by mu; hosts whose long Crawl-delay was logged; at most slowMost
}

func newGate(o *Options) *gate {
	return &gate{
		wait: o.RobotsWait, ttl: o.RobotsTTL, limit: o.RobotsMemory,
		maxDelay: o.MaxCrawlDelay, sites: map[string]*siteRecord{}, answering: map[string]int{},
		slow: map[string]bool{},
	}
}

const (
	// inProgress is how long a host is put off while another worker requests its robots.txt. No
	// request is sent meanwhile, so the only cost is time.
	inProgress = 500 * time.Millisecond
	// holdMost limits how long a host is put off. The frontier puts failing hosts off for longer;
	// this limit is for failures that the frontier does not see.
	holdMost = 10 * time.Minute
	// stuckMost is how long another host that a robots.txt redirects to is waited
	// for. Longer counts as a failed try.
	stuckMost = 2 * time.Minute
	// waitMost bounds the wait between tries.
	waitMost = 24 * time.Hour
	// longCrawlDelay is the shortest delay that is logged for the operator: at most 144 pages a day.
	longCrawlDelay = 10 * time.Minute
	// slowMost is the maximum number of remembered hosts with such a delay.
	slowMost = 1 << 16
	// pausesMore is the number of the host's delays by which unused rules outlive their time, since
	// the other sites of the host take contacts, too.
	pausesMore = 10
	// staleAfter is after how many failed tries an expired copy is used on.
	staleAfter = 3
)

// decision is what to do with a URL, and what to report to the frontier.
type decision struct {
	verdict verdict
	wait    time.Duration // for hold and later
	delay   time.Duration // the crawl delay, for pass and hold; 0 if none
	ask     question      // for ask
}

// question is a request for robots.txt that a worker has claimed.
type question struct {
	site   string
	target string
	hops   int
	again  bool // the last try failed
	owed   bool // it failed on another host; the frontier does not know yet
}

// judge decides about a URL of a site. It checks the rules without holding the lock.
func (g *gate) judge(site, url string, now time.Time) decision {
	d, rules := g.stateOf(site, now)
	if rules == nil {
		return d
	}
	if !rules.Allowed(url) {
		return decision{verdict: forbidden}
	}
	d = decision{verdict: pass, delay: g.delay(rules)}
	if wait := g.apply(site, rules, d.delay, now); wait > 0 {
		d.verdict, d.wait = hold, wait
	}
	return d
}

// stateOf decides about a site's URLs as far as possible without its rules; otherwise it returns
// the rules.
func (g *gate) stateOf(site string, now time.Time) (decision, Rules) {
	g.mu.Lock()
	defer g.mu.Unlock()
	r := g.sites[site]
	if r == nil {
		r = &siteRecord{site: site, target: site + "/robots.txt"}
		g.sites[site] = r
	}
	if r.elem != nil {
		g.listed.MoveToFront(r.elem)
	}
	switch {
	case r.state == asking:
		return decision{verdict: hold, wait: inProgress}, nil
	case r.state == pending && r.tries > 1 && !r.stood && !now.Before(r.due):
		// The host was put off for longer: without this, no URL would ever step aside.
		r.due = now.Add(g.wait)
		return g.pendingLocked(r, g.wait), nil
	case r.state == pending && now.Before(r.due):
		return g.pendingLocked(r, r.due.Sub(now)), nil
	case r.state == settled && fresh(now, g.lastLocked(r)):
		if r.blocked {
			return decision{verdict: blocked}, nil
		}
		return decision{}, r.rules
	case r.state == settled:
		r.target, r.hops = site+"/robots.txt", 0
	}
	g.unlistLocked(r)
	r.state = asking
	return decision{verdict: ask, ask: question{site, r.target, r.hops, r.tries > 0, r.owed}}, nil
}

// fresh reports whether now is before until on both clocks: the monotonic clock stops while the
// machine is suspended, the wall clock may be set back.
func fresh(now, until time.Time) bool {
	return now.Before(until) && now.Round(0).Before(until.Round(0))
}

// lastLocked returns until when a settled record is valid. If the host's delay is so long that the
// rules expired unused, they serve for one more URL; otherwise every contact would be spent on
// robots.txt.
func (*gate) lastLocked(r *siteRecord) time.Time {
	if r.used {
		return r.expires
	}
	return r.expires.Add(pausesMore * r.pause)
}

// pendingLocked decides about a URL whose site's robots.txt will be requested after a wait. If
// another site of the host answers, the URL steps aside. If that is unknown, some URLs step aside,
// twice as many with each failed try, so that those behind them get their turn; the others stay.
func (g *gate) pendingLocked(r *siteRecord, wait time.Duration) decision {
	r.stood = true
	if r.aside > 0 || g.answering[hostOf(r.site)] > 0 {
		r.aside = max(0, r.aside-1)
		return decision{verdict: later, wait: wait}
	}
	return decision{verdict: hold, wait: min(wait, holdMost)}
}

// apply returns the delay to set for a host whose crawl delay the frontier does not know.
func (g *gate) apply(site string, rules Rules, delay time.Duration, now time.Time) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	r := g.sites[site]
	if r == nil || r.state != settled {
		return 0
	}
	if wait := r.last.Add(delay).Sub(now); !r.applied && wait > 0 {
		r.applied = true
		return wait
	}
	r.applied, r.used = true, true
	return 0
}

// delay returns the crawl delay to honour; 0 if the site asks for none.
func (g *gate) delay(rules Rules) time.Duration {
	d, ok := rules.CrawlDelay()
	if !ok || d <= 0 {
		return 0
	}
	return min(max(d, unit.Least), g.maxDelay) // Rules may have any fraction of a second
}

// longDelay reports whether the Crawl-delay of a host is long and has not been logged.
func (g *gate) longDelay(host string, rules Rules) (asked time.Duration, tell bool) {
	if asked, _ = rules.CrawlDelay(); asked < longCrawlDelay {
		return asked, false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.slow[host] {
		return asked, false
	}
	if len(g.slow) >= slowMost {
		clear(g.slow)
	}
	g.slow[host] = true
	return asked, true
}

// settle records rules. applied means that the frontier knows their crawl delay; last is the end of
// the last contact with the site.
func (g *gate) settle(site string, rules Rules, applied bool, last time.Time, now time.Time) {
	pause := g.delay(rules)
	g.mu.Lock()
	defer g.mu.Unlock()
	r := g.sites[site]
	r.rules, r.pause, r.applied, r.last, r.blocked = rules, pause, applied, last, false
	g.settleLocked(r, now)
}

// block records that a site is at a forbidden address.
func (g *gate) block(site string, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	r := g.sites[site]
	r.rules, r.pause, r.applied, r.blocked = nil, 0, true, true
	g.settleLocked(r, now)
	r.expires = now.Add(min(g.ttl, lookFirst)) // its name is looked up again then
}

// found records rules that were found by following another site's redirect, unless the site is
// known or being requested. The frontier knows their crawl delay.
func (g *gate) found(site string, rules Rules, last, now time.Time) {
	pause := g.delay(rules)
	g.mu.Lock()
	defer g.mu.Unlock()
	if r := g.sites[site]; r != nil && r.state != none {
		return
	}
	r := &siteRecord{site: site, rules: rules, pause: pause, applied: true, last: last}
	g.sites[site] = r
	g.settleLocked(r, now)
}

// known returns the rules of a settled site.
func (g *gate) known(site string, now time.Time) (Rules, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	r := g.sites[site]
	if r == nil || r.state != settled || r.rules == nil || !fresh(now, r.expires) {
		return nil, false
	}
	return r.rules, true
}

// elsewhere reports whether another site on the same host has rules while those of this site are
// unknown.
func (g *gate) elsewhere(site string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.answering[hostOf(site)] > 0
}

// answered reports whether robots.txt of a site was ever read.
func (g *gate) answered(site string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	r := g.sites[site]
	return r != nil && r.rules != nil
}

// sitePace is what the gate knows of how soon a site answers.
type sitePace uint8

const (
	mute   sitePace = iota // it has not answered
	young                  // it has answered, but with no page yet
	prompt                 // the last page came without much delay
	slow                   // the last page did not; a failure that took no time changes nothing
)

// gave records how the last page of a site came.
func (g *gate) gave(site string, p sitePace) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if r := g.sites[site]; r != nil {
		r.pace = p
	}
}

// paceOf returns how soon a site answers.
func (g *gate) paceOf(site string) sitePace {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch r := g.sites[site]; {
	case r == nil:
		return mute
	case r.pace == mute && r.rules != nil:
		return young
	default:
		return r.pace
	}
}

// follow records that the answer to the claimed question is a redirect to target. The worker that
// leases the next URL of the site follows it.
func (g *gate) follow(site, target string, hops int, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	r := g.sites[site]
	r.target, r.hops = target, hops
	g.pendLocked(r, now)
}

// stand records that the host of a redirect's target cannot be contacted for a while, after which
// it is tried again. It returns false if this would last longer than stuckMost.
func (g *gate) stand(site, target string, hops int, wait time.Duration, now time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	r := g.sites[site]
	if r.stuck.IsZero() {
		r.stuck = now
	}
	wait = max(wait, inProgress, now.Sub(r.stuck)/4)
	if now.Add(wait).Sub(r.stuck) > stuckMost {
		return false
	}
	r.target, r.hops = target, hops
	g.pendLocked(r, now.Add(wait))
	return true
}

// tries returns how many requests for a site's robots.txt have failed in a row.
func (g *gate) tries(site string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.sites[site].tries
}

// failed records a failed try, and whether the frontier does not know yet that the site's host has
// failed. retryAfter is what the server asked for. It returns how long the site is not requested
// again, and whether an expired copy is used meanwhile (RFC 9309 section 2.4).
func (g *gate) failed(site string, owed bool, retryAfter time.Duration, now time.Time) (wait time.Duration, stale bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	r := g.sites[site]
	r.tries++
	r.owed = owed
	if r.rules != nil && r.tries >= staleAfter {
		r.applied, r.blocked = true, false
		g.settleLocked(r, now)
		return g.ttl, true
	}
	wait = g.wait
	for range min(r.tries-1, 40) {
		wait = min(2*wait, waitMost)
	}
	wait = max(wait, retryAfter)
	r.target, r.hops, r.stuck = site+"/robots.txt", 0, time.Time{}
	r.aside, r.stood = 1<<min(r.tries-1, 16), false
	g.pendLocked(r, now.Add(wait))
	return wait, false
}

// told records that the frontier knows the last failure on another host.
func (g *gate) told(site string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.sites[site].owed = false
}

// release gives up the claim to a question, as if there had been no request.
func (g *gate) release(site string, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if r := g.sites[site]; r.state == asking {
		g.pendLocked(r, now)
	}
}

func (g *gate) pendLocked(r *siteRecord, due time.Time) {
	r.state, r.due = pending, due
	g.listLocked(r)
}

// unreachable returns the number of sites whose robots.txt is unreachable now.
func (g *gate) unreachable() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.failing
}

func (g *gate) settleLocked(r *siteRecord, now time.Time) {
	r.state, r.expires, r.used, r.target, r.hops = settled, now.Add(g.ttl), false, "", 0
	r.tries, r.owed, r.aside, r.stuck = 0, false, 0, time.Time{}
	g.listLocked(r)
}

func (g *gate) listLocked(r *siteRecord) {
	r.elem = g.listed.PushFront(r)
	g.countLocked(r, 1)
	for g.bytes > g.limit && g.listed.Len() > 1 {
		old := g.listed.Back().Value.(*siteRecord)
		g.unlistLocked(old)
		delete(g.sites, old.site)
	}
}

func (g *gate) unlistLocked(r *siteRecord) {
	if r.elem != nil {
		g.countLocked(r, -1)
		g.listed.Remove(r.elem)
		r.elem = nil
	}
}

func (g *gate) countLocked(r *siteRecord, n int) {
	g.bytes += int64(n) * r.size()
	if r.state == pending && r.tries > 0 {
		g.failing += int64(n)
	}
	if host := hostOf(r.site); r.state == settled && r.rules != nil {
		if g.answering[host] += n; g.answering[host] == 0 {
			delete(g.answering, host)
		}
	}
}

func (r *siteRecord) size() int64 {
	n := int64(300 + 2*len(r.site))
	if r.rules != nil {
		n += int64(r.rules.Size())
	}
	return n
}
