// This file decides what robots.txt lets a worker do with a URL just leased:
// fetch it, give it up, come back later, or ask for robots.txt first.
//
// Only what the site or the user has decided gives a URL up. A robots.txt that
// cannot be had is a failure, and ends no URL: the host is held as one whose pages
// cannot be reached, by the frontier's back-off and quarantine, and asking for
// robots.txt is the probe.
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
	pass      verdict = iota // fetch it now
	forbidden                // robots.txt forbids it
	blocked                  // the site's address may not be contacted
	hold                     // hand it back, leave its host alone for a while
	later                    // put it off: others of its host may be fetched meanwhile
	ask                      // hand it back, and ask for robots.txt; the worker has claimed this
)

// siteState says where a site stands on its way to rules.
//
//	none -> asking -> settled -> (expired) asking ...
//	          |  ^
//	          v  |
//	         pending     a try failed, or a redirect is to be followed
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
//   - it is in the gate's list exactly if its state is settled or pending
//   - a settled record has rules, or is blocked
//   - answering counts the settled records of a host that have rules, failing the
//     pending ones whose last try failed
type siteRecord struct {
	site    string // "http://a.example:81"
	state   siteState
	target  string        // what to ask for next
	hops    int           // redirects followed to target
	tries   int           // failed ones in a row
	owed    bool          // the last of them failed on another host, and the frontier does not know it
	aside   int           // URLs that may be put off until due, for others of the host to come up
	stood   bool          // some were, since the last try
	stuck   time.Time     // since when another host cannot be contacted that target is on
	due     time.Time     // no try before
	rules   Rules         // of the last answer, also while asking anew; nil if there was none
	blocked bool          // robots.txt was to be had only where nothing may be contacted
	expires time.Time     // of a settled record
	pause   time.Duration // that a settled record's rules ask for
	used    bool          // a URL was let through since it was settled
	elem    *list.Element
	// applied says that the frontier knows the crawl delay. It does not yet if
	// the rules came from another host.
	applied bool
	last    time.Time // end of the last contact with the site for its robots.txt
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
	slow      map[string]bool        // guarded by mu; hosts whose long Crawl-delay was told; at most slowMost
}

func newGate(o *Options) *gate {
	return &gate{
		wait: o.RobotsWait, ttl: o.RobotsTTL, limit: o.RobotsMemory,
		maxDelay: o.MaxCrawlDelay, sites: map[string]*siteRecord{}, answering: map[string]int{},
		slow: map[string]bool{},
	}
}

const (
	// inProgress is how long a host is held if another worker asks for its
	// robots.txt. Nobody is contacted meanwhile, so it costs nothing but time.
	inProgress = 500 * time.Millisecond
	// holdMost bounds a hold. The frontier holds a host that fails for longer; this
	// is for a host that fails in no way which the frontier would see.
	holdMost = 10 * time.Minute
	// stuckMost is how long another host that a robots.txt redirects to is waited
	// for. Longer counts as a failed try.
	stuckMost = 2 * time.Minute
	// waitMost bounds the wait between tries.
	waitMost = 24 * time.Hour
	// longCrawlDelay is what an operator should know of: at most 144 pages a day.
	longCrawlDelay = 10 * time.Minute
	// slowMost is how many hosts are remembered that have one.
	slowMost = 1 << 16
	// pausesMore is for how many of a host's pauses unused rules outlive their time: the
	// other sites of the host take contacts, too.
	pausesMore = 10
	// staleAfter is after how many failed tries an expired copy is used on.
	staleAfter = 3
)

// decision is what to do about a URL, and what to tell the frontier with it.
type decision struct {
	verdict verdict
	wait    time.Duration // for hold and later
	delay   time.Duration // the crawl delay, for pass and hold; 0 if none
	ask     question      // for ask
}

// question is a request for a robots.txt that a worker has claimed.
type question struct {
	site   string
	target string
	hops   int
	again  bool // the last try failed
	owed   bool // it failed on another host: this one was not told yet
}

// judge decides about a URL of a site. The rules are asked without the lock.
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

// stateOf decides about a site's URLs as far as its rules need not be asked, or
// returns these.
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
		// Its host was held for longer: else no URL would ever step aside.
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

// fresh reports whether a time that something holds until has not come by either clock:
// the steady one stands still while the machine is suspended, that of the wall may be
// set back.
func fresh(now, until time.Time) bool {
	return now.Before(until) && now.Round(0).Before(until.Round(0))
}

// lastLocked is until when a settled record is believed. Rules that nothing could be
// fetched by, as the host asks for pauses as long as that, serve for one URL more: else
// each of its contacts would be spent on robots.txt.
func (*gate) lastLocked(r *siteRecord) time.Time {
	if r.used {
		return r.expires
	}
	return r.expires.Add(pausesMore * r.pause)
}

// pendingLocked says what becomes of a URL whose site's robots.txt is to be asked
// for after a wait. If another site of the host answers, the URL steps aside. If
// that is not known some do, with each failed try twice as many as with the one
// before, so that those behind them come up; the others stay where they are.
func (g *gate) pendingLocked(r *siteRecord, wait time.Duration) decision {
	r.stood = true
	if r.aside > 0 || g.answering[hostOf(r.site)] > 0 {
		r.aside = max(0, r.aside-1)
		return decision{verdict: later, wait: wait}
	}
	return decision{verdict: hold, wait: min(wait, holdMost)}
}

// apply returns how long a host must be left alone that the frontier does not know
// to have a crawl delay.
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

// delay is the crawl delay that is honoured; 0 if the site asks for none.
func (g *gate) delay(rules Rules) time.Duration {
	d, ok := rules.CrawlDelay()
	if !ok || d <= 0 {
		return 0
	}
	return min(d, g.maxDelay)
}

// longDelay reports whether the Crawl-delay of a host's robots.txt is to be told: it is
// long, and was not told yet.
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

// settle records rules. applied says that the frontier was told of their crawl
// delay; last is the end of the last contact with the site.
func (g *gate) settle(site string, rules Rules, applied bool, last time.Time, now time.Time) {
	pause := g.delay(rules)
	g.mu.Lock()
	defer g.mu.Unlock()
	r := g.sites[site]
	r.rules, r.pause, r.applied, r.last, r.blocked = rules, pause, applied, last, false
	g.settleLocked(r, now)
}

// block records that a site is at an address that may not be contacted.
func (g *gate) block(site string, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	r := g.sites[site]
	r.rules, r.pause, r.applied, r.blocked = nil, 0, true, true
	g.settleLocked(r, now)
}

// found records rules that were met on the way of another site's redirect,
// unless the site is known or being asked. The frontier was told of their crawl
// delay.
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

// elsewhere reports whether another site of a site's host has rules, whose own are
// not known.
func (g *gate) elsewhere(site string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.answering[hostOf(site)] > 0
}

// answered reports whether a site's robots.txt was had, ever so long ago.
func (g *gate) answered(site string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	r := g.sites[site]
	return r != nil && r.rules != nil
}

// follow records that the claimed question is answered by a redirect to target,
// which whoever leases the next URL of the site will follow.
func (g *gate) follow(site, target string, hops int, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	r := g.sites[site]
	r.target, r.hops = target, hops
	g.pendLocked(r, now)
}

// stand records that the host of a target cannot be contacted for a while, after
// which it is to be tried again; false if that would last for longer than stuckMost.
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

// failed records a failed try, and whether the frontier must still be told that the
// site's host has failed. retryAfter is what the server asked for. It returns how
// long the site is not asked again, and whether an expired copy is used meanwhile:
// one that was good until now beats none (RFC 9309 section 2.4).
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

// told records that the frontier knows of the last failure on another host.
func (g *gate) told(site string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.sites[site].owed = false
}

// release gives up the claim to a question, as if it had not been asked.
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

// unreachable is how many sites' robots.txt cannot be had now.
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
