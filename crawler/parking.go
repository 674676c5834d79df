// This file parks waiting URLs that the crawl, as configured now, does not want or cannot fetch.
// They stay in the frontier and are considered again only when the answer may differ.
//
// A parked URL waits in a separate crawl, a lot, which is paused. So it is durable, needs no
// processing, and is counted and listed like any other URL. When a lot is opened, its crawl runs:
// each URL that is handed out moves back to its original crawl, and is judged again; a URL that
// must be parked again goes to the next lot.

package crawler

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler/fetch"
	"github.com/seed-7440039f/frontier/crawler/filter"
	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/scope"
)

// parkedUntil is the event that brings a parked URL back.
type parkedUntil uint32

const (
	untilWider parkedUntil = iota // until the scope is wider: Unpark, or a host that joins the scope
	untilAgain                    // the time for another look, or the next Crawler's Run
	untilRun                      // the next Crawler's Run
	parkings
)

// URLs parked untilAgain are tried again after lookFirst, and, while some are parked again, after twice
// the time, up to lookMost. That contacts no host.
const (
	lookFirst = time.Minute
	lookMost  = time.Hour
)

// mostAwaited is the most hosts remembered as having URLs parked until the scope is wider.
const mostAwaited = 1 << 16

// The number of a lot has the first bit set, then the event that brings its URLs back, then its
// generation, then the number of their original crawl.
const (
	lotBit      = 1 << 31
	untilShift  = 29
	generations = 1 << (untilShift - homeBits)
	homeBits    = 24
	homeMask    = 1<<homeBits - 1
)

func lotNumber(until parkedUntil, generation, crawl uint32) uint32 {
	return lotBit | uint32(until)<<untilShift | generation<<homeBits | crawl
}

func isLot(crawl uint32) bool        { return crawl&lotBit != 0 }
func untilOf(lot uint32) parkedUntil { return parkedUntil(lot >> untilShift & 3) }
func generationOf(lot uint32) uint32 { return lot >> homeBits & (generations - 1) }
func homeOf(lot uint32) uint32       { return lot & homeMask }

// Lot reports whether a crawl is one in which a Crawler parks URLs. If so, it returns their
// original crawl, and why they are parked.
func Lot(crawl uint32) (home uint32, why string, ok bool) {
	if !isLot(crawl) {
		return crawl, "", false
	}
	return homeOf(crawl), untilOf(crawl).String(), true
}

// String describes why URLs are parked, and what brings them back.
func (u parkedUntil) String() string {
	switch u {
	case untilRun:
		return "it cannot be fetched in this run, and comes back in the next"
	case untilAgain:
		return "its address or its robots.txt does not permit it now; that is looked at again in this run, and in the next"
	}
	return "what the crawl wants does not include it, and it comes back when it does"
}

// Lots returns the crawls of a frontier in which a Crawler has parked URLs of the given crawl.
func Lots(f *frontier.Frontier, crawl uint32) (lots []uint32) {
	for _, id := range inspect.New(f).Crawls() {
		if isLot(id) && homeOf(id) == crawl {
			lots = append(lots, id)
		}
	}
	return lots
}

// Parked returns why a URL of a crawl is parked, and what brings it back; empty if it is not. It
// reads the waiting URLs of the URL's host.
func Parked(ctx context.Context, f *frontier.Frontier, crawl uint32, host, url string) (why string, err error) {
	lots := Lots(f, crawl)
	if len(lots) == 0 {
		return "", nil
	}
	for u, err := range inspect.New(f).URLs(ctx, scope.Host(host), "") {
		switch {
		case err != nil:
			return "", err
		case u.Entry.URL != url || !slices.Contains(lots, u.Entry.Crawl):
		default:
			return untilOf(u.Entry.Crawl).String(), nil
		}
	}
	return "", nil
}

// parking manages lots. The frontier's settings of crawls are its only memory.
type parking struct {
	f keeper // nil if the frontier is not a keeper: nothing can be parked

	mu         sync.Mutex
	generation [parkings]uint32 // guarded by mu; of the lots in use
	paused     map[uint32]bool  // guarded by mu; lots that are known to be
	told       [parkings]bool   // guarded by mu; the first URL was logged for the operator
	awaited    map[string]bool  // guarded by mu; hosts with URLs parked untilWider; nil if there may be others
	again      bool             // guarded by mu; URLs are parked untilAgain, and look fires when they are tried again
	look       *time.Timer
	looked     time.Time     // guarded by mu; when they last were
	rest       time.Duration // guarded by mu; before the next look
}

func newParking(x Frontier) *parking {
	p := &parking{paused: map[uint32]bool{}, look: time.NewTimer(lookMost)} // one look too many does no harm
	f, ok := x.(keeper)
	if !ok {
		return p
	}
	p.f = f
	for until := range parkings {
		p.generation[until] = p.unused(until)
		for _, id := range f.Crawls() {
			if x, _ := f.Crawl(id); isLot(id) && untilOf(id) == until && x.Rule.Paused == scope.On {
				p.generation[until] = generationOf(id)
			}
		}
	}
	return p
}

// unused returns a generation without URLs, from the present one on.
func (p *parking) unused(until parkedUntil) uint32 {
	var used [generations]bool
	for _, id := range p.f.Crawls() {
		if x, _ := p.f.Crawl(id); isLot(id) && untilOf(id) == until && x.Waiting+x.Leased > 0 {
			used[generationOf(id)] = true
		}
	}
	for n := range uint32(generations) {
		if g := (p.generation[until] + n) % generations; !used[g] {
			return g
		}
	}
	return 0 // its URLs are parked again
}

// lot returns where an entry is parked; ok is false if it cannot be: its crawl's number is too high,
// or the frontier does not keep lots. The reason must be judged after it: one that is gone by then
// may not open the lot again.
func (p *parking) lot(until parkedUntil, e frontier.Entry) (lot uint32, ok bool, err error) {
	if p.f == nil || e.Crawl > homeMask {
		return 0, false, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case until == untilAgain && !p.again:
		p.rest = min(max(2*p.rest, lookFirst), lookMost)
		if time.Since(p.looked) > lookFirst { // nothing was parked again
			p.rest = lookFirst
		}
		p.again = true
		p.look.Reset(p.rest)
	case until == untilWider && len(p.awaited) == mostAwaited:
		p.awaited = nil
	case until == untilWider && p.awaited != nil:
		p.awaited[hostOf(siteOf(e.URL))] = true
	}
	lot = lotNumber(until, p.generation[until], e.Crawl)
	if !p.paused[lot] {
		if err := p.f.Pause(scope.Crawl(lot)); err != nil {
			return 0, false, err
		}
		p.paused[lot] = true
	}
	return lot, true, nil
}

// open brings the URLs of all lots of a kind back.
func (p *parking) open(until parkedUntil) error {
	if p.f == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.openLocked(until)
}

func (p *parking) openLocked(until parkedUntil) error {
	for _, id := range p.f.Crawls() {
		if x, _ := p.f.Crawl(id); isLot(id) && untilOf(id) == until && x.Rule.Paused == scope.On {
			if err := p.f.Clear(scope.Crawl(id)); err != nil {
				return err
			}
			delete(p.paused, id)
		}
	}
	p.generation[until]++ // a worker may still park in this one
	p.generation[until] = p.unused(until)
	switch until {
	case untilWider:
		p.awaited = map[string]bool{}
	case untilAgain:
		p.again, p.looked = false, time.Now()
	}
	return nil
}

// joined brings back what waits for a host to be in the scope, and with it what else is parked
// untilWider, unless all of that is known to be of other hosts.
func (p *parking) joined(host string) error {
	if p.f == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.awaited != nil && !p.awaited[host] {
		return nil
	}
	return p.openLocked(untilWider)
}

// count returns the numbers of parked URLs.
func (p *parking) count() (n [parkings]int64) {
	if p.f == nil {
		return n
	}
	for _, id := range p.f.Crawls() {
		if x, _ := p.f.Crawl(id); isLot(id) && x.Rule.Paused == scope.On {
			n[untilOf(id)] += x.Waiting
		}
	}
	return n
}

// tell reports whether the operator has not been warned yet, and notes the warning.
func (p *parking) tell(until parkedUntil) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	first := !p.told[until]
	p.told[until] = true
	return first
}

// Unpark brings back the URLs that Scope, Filters, Rules or Protocols refused. Call it before Run
// when these options have changed since the last Run. URLs that are refused again are parked again.
func (c *Crawler) Unpark() error { return c.parking.open(untilWider) }

// park ends a lease whose URL is to come back at another time.
func (r *run) park(l frontier.Lease, until parkedUntil, why filter.Reason) error {
	c := r.c
	lot, ok, err := c.parking.lot(until, l.Entry)
	if err != nil {
		return r.lost(l, err)
	}
	if until == untilWider && why.Rule == "scope" && !c.outOfScope(l.Entry).Refused() { // its host has joined meanwhile
		return r.handBack(l, 0, 0)
	}
	if !ok {
		c.log.Warn("a URL is dropped: its frontier, or the number of its crawl, does not let it be parked", "url", fetch.Redact(l.Entry.URL), "crawl", l.Entry.Crawl)
		return r.drop(l, why)
	}
	r.saw.why = why
	if c.parking.tell(until) {
		what := [...]string{
			untilWider: "waiting URLs are not wanted by this run: they are parked, and come back when it wants them again",
			untilAgain: "URLs cannot be fetched now: they are parked, and looked at again in this run and in the next",
			untilRun:   "URLs cannot be fetched in this run: they are parked until the next",
		}[until]
		c.log.Warn(what, "first", fetch.Redact(l.Entry.URL), "rule", why.Rule, "detail", why.Detail)
	}
	c.counters.parked.Add(1)
	c.noteTrouble(l.Entry, why.Rule, why.Detail)
	if _, ok := c.noteOf(l.Entry); ok && visited(l) { // it is removed from the accounts of Revisits, and comes back as a new page
		o := frontier.Outcome{Result: frontier.Denied, Uncontacted: true}
		c.dropped(l, &o)
		e := l.Entry
		e.Crawl, e.Force, e.Meta, e.AsIs = lot, true, nil, true
		o.Add = []frontier.Entry{e}
		return r.done(l, o)
	}
	return r.done(l, frontier.Outcome{Result: frontier.PutOff, Next: l.LeasedAt, Move: true, Crawl: lot})
}

// isSeed reports whether a URL was not found as a link: it is a seed, or the target of a seed's
// redirect.
func isSeed(e frontier.Entry) bool { return e.Depth == 0 }

// noteTrouble stores why a seed could not be fetched, if it is the first.
func (c *Crawler) noteTrouble(e frontier.Entry, why ...string) {
	if !isSeed(e) || c.trouble.Load() != nil {
		return
	}
	text := fetch.Redact(e.URL)
	for _, w := range why {
		if w != "" {
			text += ": " + w
		}
	}
	c.trouble.CompareAndSwap(nil, &text)
}

// noteFailure is noteTrouble for a response, or the lack of one.
func (c *Crawler) noteFailure(e frontier.Entry, status int, err error) {
	switch {
	case !isSeed(e):
	case err != nil:
		c.noteTrouble(e, err.Error())
	default:
		c.noteTrouble(e, "it answers "+strconv.Itoa(status)+" "+http.StatusText(status))
	}
}

// parkTarget returns the entry for a refused target of a seed's redirect. It is parked, because no other
// link may lead to it.
func (c *Crawler) parkTarget(seed, e frontier.Entry, why filter.Reason) []frontier.Entry {
	c.noteTrouble(seed, "leads to "+fetch.Redact(e.URL), "which is refused by "+why.Rule, why.Detail)
	c.log.Warn("a seed redirects to a URL that is not wanted", "url", fetch.Redact(seed.URL), "target", fetch.Redact(e.URL), "rule", why.Rule, "detail", why.Detail)
	lot, ok, err := c.parking.lot(untilWider, e)
	if err != nil || !ok { // the frontier is closed, as Done will say
		return nil
	}
	if !c.refuse(e).Refused() { // its host has joined meanwhile
		return []frontier.Entry{e}
	}
	e.Crawl, e.Force = lot, true
	return []frontier.Entry{e}
}

// GivenUp records that a URL was given up, and parks a seed whose tries are used up until
// the next Crawler's Run. Set it as the frontier's Options.OnGiveUp.
func (c *Crawler) GivenUp(e frontier.Entry, o frontier.Outcome) {
	c.recordGivenUp(e, o)
	if !isSeed(e) || isLot(e.Crawl) {
		return
	}
	c.noteTrouble(e, "given up", o.Failure.String())
	lot, ok, err := c.parking.lot(untilRun, e)
	if err == nil && !ok {
		return
	}
	if err == nil {
		e.Crawl, e.Force, e.NotBefore = lot, true, time.Time{}
		_, err = c.frontier.Add(context.Background(), e)
	}
	if err != nil {
		c.log.Warn("a seed that was given up is not kept for the next run", "url", fetch.Redact(e.URL), "error", err)
		return
	}
	c.counters.parked.Add(1)
}

// lookAgain brings back, while a run lasts, what may have become possible.
func (c *Crawler) lookAgain(finished <-chan struct{}) {
	for {
		select {
		case <-finished:
			return
		case <-c.parking.look.C:
		}
		if err := c.parking.open(untilAgain); err != nil {
			c.log.Warn("parked URLs cannot be brought back", "error", err)
			c.parking.look.Reset(lookFirst)
		}
	}
}
