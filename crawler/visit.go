// This file processes one lease from hand-out to Done.

package crawler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler/fetch"
	"github.com/seed-7440039f/frontier/crawler/filter"
	"github.com/seed-7440039f/frontier/crawler/link"
	"github.com/seed-7440039f/frontier/internal/failure"
	"github.com/seed-7440039f/frontier/internal/reply"
)

// Page is an answer to a request for a page, on its way to OnPage.
type Page struct {
	Lease frontier.Lease // of the requested URL
	// Result is the answer: status, header, body, times. Its Body may be cut (Truncated), or
	// incomplete (Broken) if it was incomplete at every try. It is closed after OnPage.
	*fetch.Result
	// Conditional reports that the request asked for the page only if it had changed.
	Conditional bool
	// Doc is what the Extractor returned; nil if it found nothing to read.
	Doc *link.Page
	// Outcome is what will be reported to the frontier, without Add.
	Outcome frontier.Outcome
	// Add holds the links in scope, or the target of the redirect. OnPage may change it, and Flush
	// it if it finds many.
	Add []frontier.Entry
	// Duplicate reports that OnPage knows another URL with the same content, or nearly the same.
	Duplicate bool
	// Unread is why a response that should be readable is not: its Content-Encoding is unknown, or OnPage
	// sets the reason. OnEnd gets it, and Progress.Unread counts it.
	Unread string

	crawler   *Crawler
	share     int64 // of the crawler's linkMemory
	unflushed error // why Flush failed
}

// visit processes a lease and ends it. It reports whether a page was fetched.
func (r *run) visit(l frontier.Lease) (page bool, err error) {
	c := r.c
	if r.ctx.Err() != nil {
		return false, r.handBack(l, 0, 0)
	}
	if isLot(l.Entry.Crawl) {
		return false, r.done(l, frontier.Outcome{Result: frontier.PutOff, Next: l.LeasedAt, Move: true, Crawl: homeOf(l.Entry.Crawl)}) // it waits in its original crawl again
	}
	if why, trap := c.refuseAgain(l); why.Refused() {
		c.log.Debug("a URL is not wanted", "url", fetch.Redact(l.Entry.URL), "rule", why.Rule, "detail", why.Detail)
		if trap {
			return false, r.drop(l, why)
		}
		return false, r.park(l, untilWider, why)
	}
	if !visited(l) && c.hostIsFull(l.Host) {
		c.refusals.add("host-full")
		return false, r.park(l, untilRun, filter.Reason{Rule: "host-full"})
	}
	d := c.gate.judge(siteOf(l.Entry.URL), c.opts.robotsURL(l.Entry.URL), c.now())
	switch d.verdict {
	case forbidden:
		return false, r.deny(l, &c.counters.denied, robotsReason)
	case blocked:
		return false, r.block(l)
	case hold:
		return false, r.handBack(l, d.wait, d.delay)
	case later:
		return false, r.done(l, frontier.Outcome{Result: frontier.PutOff, Uncontacted: true, Next: time.Now().Add(d.wait)})
	case ask:
		if wait := r.depart(l); wait > 0 {
			c.gate.release(d.ask.site, c.now())
			return false, r.handBack(l, wait, 0)
		}
		return false, r.askRobots(l, d.ask)
	}
	if wait := r.depart(l); wait > 0 {
		return false, r.handBack(l, wait, d.delay)
	}
	return r.get(l, d.delay)
}

// drop ends a lease whose URL is no longer wanted, and counts it.
func (r *run) drop(l frontier.Lease, why filter.Reason) error {
	r.saw.why = why
	r.c.counters.filtered.Add(1)
	o := frontier.Outcome{Result: frontier.Denied, Uncontacted: true}
	r.c.dropped(l, &o)
	return r.done(l, o)
}

// block ends a lease whose URL is at a forbidden address, and counts it. Its name may lead to another
// one later, and the next run may allow it.
func (r *run) block(l frontier.Lease) error {
	if visited(l) {
		return r.deny(l, &r.c.counters.blocked, blockedReason)
	}
	r.c.counters.blocked.Add(1)
	return r.park(l, untilAgain, blockedReason)
}

var (
	blockedReason = filter.Reason{Rule: "blocked", Detail: "its address is not to be contacted"}
	robotsReason  = filter.Reason{Rule: "robots.txt", Detail: "it forbids the URL"}
)

// deny ends a lease whose URL may not be fetched now, and counts it. A seed is requested again, since
// no link may lead to it.
func (r *run) deny(l frontier.Lease, n *counter, why filter.Reason) error {
	n.Add(1)
	r.saw.why = why
	if isSeed(l.Entry) && !visited(l) {
		return r.park(l, untilAgain, filter.Reason{Rule: "seed", Detail: "robots.txt forbids it"})
	}
	o := frontier.Outcome{Result: frontier.Denied, Uncontacted: true}
	r.c.missed(l, &o)
	return r.done(l, o)
}

// handBack ends a lease whose URL is to come again after a while, as the first of its host.
func (r *run) handBack(l frontier.Lease, wait, delay time.Duration) error {
	return r.done(l, frontier.Outcome{Result: frontier.Requeue, Uncontacted: true, RetryAfter: wait, CrawlDelay: delay})
}

// get fetches the page of a lease.
func (r *run) get(l frontier.Lease, delay time.Duration) (bool, error) {
	c := r.c
	q := fetch.Request{URL: l.Entry.URL, Admit: c.admit(l.Entry.URL)}
	if !c.whole(l) {
		q.Header = conditions(l)
	}
	if c.opts.Larger != nil {
		q.Larger = func(h http.Header, head []byte) int64 { return c.opts.Larger(l.Entry, h, head) }
	}
	res, err := r.fetch(&l, q)
	switch {
	case errors.Is(err, frontier.ErrGroupBusy) && attempted(res):
		return false, r.done(l, frontier.Outcome{Result: frontier.Requeue, Ended: res.Ended, Duration: max(res.Duration(), 1), CrawlDelay: delay})
	case errors.Is(err, frontier.ErrGroupBusy):
		return false, r.handBack(l, 0, delay)
	case uncontacted(err):
		return false, r.lost(l, err)
	}
	defer res.Close()
	res.Body.Until(r.fetches) // a page that was not read completely returns
	r.saw.res, r.saw.err = res, err
	p := &Page{crawler: c, Lease: l, Result: res, Conditional: len(q.Header) > 0, Outcome: frontier.Outcome{
		Ended: res.Ended, Duration: max(res.Duration(), 1), RetryAfter: res.RetryAfter, CrawlDelay: delay, Bytes: res.Bytes,
	}}
	defer func() { c.links.release(p.share) }()
	switch {
	case r.stopped(err):
		p.Outcome.Result = frontier.Requeue
		return false, r.done(l, p.Outcome)
	case fetch.ClassOf(err) == fetch.Store: // neither the host nor the page is to blame
		c.log.Warn("a body cannot be stored: its page comes again in a while", "url", fetch.Redact(l.Entry.URL), "error", err)
		p.Outcome.Result, p.Outcome.RetryAfter = frontier.Requeue, max(res.RetryAfter, time.Minute)
		return false, r.done(l, p.Outcome)
	case fetch.ClassOf(err) == fetch.BadURL:
		return false, r.drop(l, filter.Reason{Rule: "url", Detail: err.Error()})
	case err != nil && c.outage.excuses(res, err):
		p.Outcome.Result = frontier.Requeue
		return false, r.done(l, p.Outcome)
	case fetch.ClassOf(err) == fetch.Blocked:
		c.log.Info("an address may not be contacted", "url", fetch.Redact(l.Entry.URL), "error", err)
		if !c.misled(siteOf(l.Entry.URL), res, err) {
			return false, r.block(l)
		}
		p.Outcome.Result = frontier.Failed
	case fetch.ClassOf(err) == fetch.Unwanted: // visited, without a body
		c.counters.unwanted.Add(1)
	case err != nil && c.lastBroken(p, err):
		c.log.Info("a page is incomplete at every try: it is kept as it is", "url", fetch.Redact(l.Entry.URL), "bytes", p.Body.Size(), "error", err)
		c.counters.broken.Add(1)
		r.read(p)
	case err != nil:
		c.log.Debug("fetch failed", "url", fetch.Redact(l.Entry.URL), "attempt", l.Attempt, "error", err)
		p.Outcome.Result = frontier.Failed
	default:
		r.read(p)
	}
	switch p.Outcome.Result {
	case frontier.Requeue:
		return false, r.done(l, p.Outcome)
	case frontier.Failed:
		if p.Outcome.Failure == frontier.FailureOther {
			p.Outcome.Failure = failureOf(res, err)
		}
		if res.Status == http.StatusNotModified && err == nil {
			r.saw.err = errNotAsked
		}
		c.noteFailure(l.Entry, res.Status, err)
		c.counters.failed.Add(1)
		c.missed(l, &p.Outcome)
		return false, r.done(l, p.Outcome)
	}
	page := c.count(p)
	if !page && p.Status >= 400 {
		c.noteFailure(l.Entry, p.Status, nil)
	}
	note := c.judged(p)
	if c.opts.OnPage != nil {
		if err := c.opts.OnPage(r.fetches, p); r.stopped(err) || p.Body.Cut() {
			p.Outcome.Result, p.Add = frontier.Requeue, nil
		} else if err != nil && p.unflushed != nil {
			p.Outcome.Result, p.Outcome.Meta = frontier.Requeue, nil
			return false, cmp.Or(r.done(l, p.Outcome), r.lost(l, p.unflushed))
		} else if err != nil {
			c.log.Warn("the page handler failed", "url", fetch.Redact(l.Entry.URL), "error", err)
			p.Outcome.Result, p.Outcome.Meta, p.Add = frontier.Failed, nil, nil
			r.saw.err = fmt.Errorf("the page handler failed: %w", err)
		}
		c.settleShare(p)
	}
	if r.saw.unread = p.Unread; page && p.Unread != "" {
		c.counters.unread.Add(1)
	}
	p.Body.Until(context.Background())
	c.weigh(p)
	p.Outcome.Add = p.Add
	c.ended(p, note)
	return page, r.done(l, p.Outcome)
}

// errNotAsked is why a page with status 304 is requested again.
var errNotAsked = errors.New("304 for a page that was asked for whether it had changed or not")

// lastBroken reports whether a page is incomplete and will not be requested again: an incomplete
// page is better than none.
func (c *Crawler) lastBroken(p *Page, err error) bool {
	o := p.Outcome
	o.Result, o.Failure = frontier.Failed, failureOf(p.Result, err)
	return p.Broken != "" && p.Status >= 200 && p.Status < 300 && !c.frontier.TriesAgain(p.Lease, o)
}

// conditions makes the request for a known page conditional: by its ETag, and by its date for
// servers without ETags.
func conditions(l frontier.Lease) http.Header {
	if l.History.Visits == 0 {
		return nil
	}
	h := http.Header{}
	m, _ := metaOf(l.Entry)
	if m.was(l.Entry.URL) { // its last answer was a redirect to a cookie
		return nil
	}
	if m.etag != "" {
		h.Set("If-None-Match", m.etag)
	}
	if t := l.History.LastModified; !t.IsZero() {
		h.Set("If-Modified-Since", t.UTC().Format(http.TimeFormat))
	}
	return h
}

// remember returns the Meta of a page that was read, for its next visit; nil if nothing changes.
func remember(p *Page) []byte {
	m, own := metaOf(p.Lease.Entry)
	tag := ""
	if p.Broken == "" { // otherwise the rest would never be requested
		tag = validETag(p.Header.Get("Etag"))
	}
	asked := m.was(p.Lease.Entry.URL)
	if !own || m.etag == tag && !asked {
		return nil
	}
	m.etag = tag
	if asked { // a redirect for the sake of its cookie may be repeated
		m.chain = slices.DeleteFunc(m.chain, func(h uint64) bool { return h&^flags == hop(p.Lease.Entry.URL) })
	}
	return m.replacing()
}

// read decides what an answer means, and extracts its links once there is memory for them. If that
// takes as long as the lease lasts, the page is fetched again.
func (r *run) read(p *Page) {
	c := r.c
	if c.shows(p) {
		began, lasts := p.Lease.LeasedAt, p.Lease.Deadline.Sub(p.Lease.LeasedAt)
		ctx, cancel := context.WithDeadline(r.fetches, began.Add(lasts*9/10))
		defer cancel()
		var err error
		p.share, err = c.links.acquire(ctx, beyond(c.mayNeed(p)), r.waitsForMemory)
		if err == nil && !r.shift.sit(ctx, c.crew) {
			err = ctx.Err()
		}
		if err != nil {
			if !r.stopped(err) {
				c.log.Warn("a page waited for memory for its links until its lease was nearly over: it comes again", "url", fetch.Redact(p.URL))
			}
			p.Outcome.Result = frontier.Requeue
			return
		}
	}
	c.read(p)
	if p.Body.Cut() {
		p.Outcome.Result = frontier.Requeue
	}
	c.settleShare(p)
}

// read decides what an answer means, and extracts its links.
func (c *Crawler) read(p *Page) {
	o := &p.Outcome
	if t, err := reply.Date(p.Header.Get("Last-Modified")); err == nil && p.Broken == "" {
		o.Modified = t
	}
	switch o.Result = failure.Result(p.Status, p.Conditional, p.RetryAfter); {
	case p.Status >= 200 && p.Status < 300:
		c.joinScope(p.Lease)
		c.welcome.gave(p.Lease.Host, p.Lease.Entry.URL, p.Ended)
		o.Meta = remember(p)
		c.extract(p)
	case o.Result == frontier.Unchanged:
		c.welcome.gave(p.Lease.Host, p.Lease.Entry.URL, p.Ended)
	case o.Result != frontier.Visited:
	default:
		if kind, later := c.hadEnough(p); later {
			o.Result, o.Failure = frontier.Failed, kind
		} else if target, ok := c.redirect(p.Result); ok {
			c.redirected(p, target)
		} else if c.shows(p) {
			c.extract(p)
			if preferred, ok := c.target(p.Result); ok { // of the choices of a 300
				add := p.Add
				c.redirected(p, preferred)
				p.Add = append(p.Add, add...)
			}
		}
	}
}

// shows reports whether browsers show the body of an answer that is no error: it is a page, a list of choices (300),
// or a redirect that leads nowhere.
func (c *Crawler) shows(p *Page) bool {
	_, moved := c.redirect(p.Result)
	return p.Status >= 200 && p.Status < 400 && p.Status != http.StatusNotModified && !moved
}

// extract adds the links of a page.
func (c *Crawler) extract(p *Page) {
	var err error
	if coding := fetch.Coded(p.Header, p.Body.Head(512)); coding != "" {
		p.Unread = codedError(coding).Error()
		c.log.Warn("a page is not read", "url", fetch.Redact(p.URL), "error", p.Unread)
	}
	if p.Doc, err = c.opts.Extractor.Extract(p); err != nil {
		c.log.Debug("links not read", "url", fetch.Redact(p.URL), "error", err)
	}
	if p.Doc == nil || p.Doc.Robots.NoFollow || p.Body.Cut() {
		return
	}
	if n := p.Doc.Dropped; n > 0 {
		c.log.Warn("a page has too many links, or their URLs are too long: the rest is dropped", "url", fetch.Redact(p.URL), "taken", len(p.Doc.Links), "dropped", n)
		c.counters.dropped.Add(int64(n))
		c.refusals.addAll("page-links", int64(n))
	}
	p.Add = c.outlinks(p.Lease.Entry, p.Doc.Links)
}

// outlinks returns entries for the distinct links of a page that are in scope.
func (c *Crawler) outlinks(from frontier.Entry, links []link.Link) []frontier.Entry {
	seen := make(map[string]bool, len(links))
	var add []frontier.Entry
	var metas [2][]byte // of links, and of requisites: the same for all
	via := 0            // bytes of metas in add
	m, _ := metaOf(from)
	page := !needed(from) || c.scope.why(frontier.Entry{URL: from.URL, Depth: from.Depth}) == "" // a frame in an object, say
	for _, l := range links {
		if l.URL == from.URL || seen[l.URL] {
			continue
		}
		if l.NoFollow && c.opts.SkipNoFollow {
			c.refusals.add("nofollow")
			c.recordLink(from, frontier.Entry{URL: l.URL, Depth: from.Depth + 1, Crawl: from.Crawl}, "nofollow", "the page does not vouch for it")
			continue
		}
		var of meta
		need := c.opts.Requisites && l.Kind&link.Requisites != 0
		if need && page && l.Kind&link.Pages != 0 { // a frame is a page, if it is in scope
			need = c.scope.why(frontier.Entry{URL: l.URL, Depth: from.Depth + 1}) != ""
		}
		if need && m.need < maxNeed {
			of.need = m.need + 1
		} else if need || !page {
			continue
		}
		seen[l.URL] = true
		if c.opts.Via && via < link.MaxURLs {
			of.via = from.URL
		}
		x := min(of.need, 1)
		if metas[x] == nil || of.via == "" {
			metas[x] = slices.Clip(of.bytes())
		}
		e := frontier.Entry{URL: l.URL, Depth: from.Depth + 1, Crawl: from.Crawl, Meta: metas[x]}
		if why := c.refuse(e); !why.Refused() {
			add = append(add, e)
			via += len(of.via)
		} else {
			c.recordLink(from, e, why.Rule, why.Detail)
		}
	}
	c.counters.links.Add(int64(len(seen)))
	return add
}

// redirected adds the target of a redirect, unless the crawl does not follow it. If redirects lead back
// to a URL after one of them set a cookie, the URL is requested again, with its cookie.
func (c *Crawler) redirected(p *Page, target string) {
	from := p.Lease.Entry
	before, own := metaOf(from)
	h := hop(from.URL)
	if p.Cookies > 0 {
		h |= setCookie
	}
	if !own {
		h |= foreign
	}
	m, back, loop := before.redirected(h, target)
	if target == from.URL && !loop {
		m.note, m.via = before.note, before.via
		p.Outcome.Next, p.Outcome.Meta, p.Outcome.Modified = p.Ended, m.bytes(), time.Time{}
		return
	}
	if loop || len(m.chain) > c.opts.MaxRedirects {
		c.counters.loops.Add(1)
		c.recordLink(from, frontier.Entry{URL: target, Depth: from.Depth, Crawl: from.Crawl}, "redirects", "a loop, or too many")
		c.log.Debug("redirects lead nowhere", "url", fetch.Redact(from.URL), "target", fetch.Redact(target), "loop", loop, "hops", len(m.chain))
		return
	}
	if c.opts.Via {
		m.via = from.URL
	}
	e := frontier.Entry{URL: target, Depth: from.Depth, Weight: from.Weight, Crawl: from.Crawl, Meta: m.bytes(), AsIs: true, Force: back}
	why := c.refuse(e)
	switch {
	case visited(p.Lease) && !why.Refused() && !needed(e) && !c.scope.allowHost(siteOf(target)):
		c.refusals.add("scope") // what a seed redirects to on a later visit was not asked for
		c.recordLink(from, e, "scope", "a seed leads there that did not before")
	case !why.Refused():
		p.Add = []frontier.Entry{e}
	case isSeed(e) && !visited(p.Lease):
		c.recordLink(from, e, why.Rule, why.Detail)
		p.Add = c.parkTarget(from, e, why)
	default:
		c.recordLink(from, e, why.Rule, why.Detail)
	}
}

// joinScope adds the host at the end of a seed's redirects to the scope.
func (c *Crawler) joinScope(l frontier.Lease) {
	if visited(l) {
		return
	}
	host := c.scope.join(l.Entry)
	if host == "" {
		return
	}
	c.log.Info("a host joins the scope: a seed redirects there", "host", host, "url", fetch.Redact(l.Entry.URL))
	if err := c.parking.joined(host); err != nil { // before it is stored, or a kill between them would leave its URLs parked
		c.log.Warn("the URLs of a host that joined the scope stay parked", "host", host, "error", err)
	}
	if c.opts.Scope.OnJoin != nil {
		if err := c.opts.Scope.OnJoin(host); err != nil {
			c.log.Warn("a host that joined the scope could not be stored", "host", host, "error", err)
		}
	}
}

// count adds an answer to the counters, and reports whether it is a page.
func (c *Crawler) count(p *Page) bool {
	switch s := p.Status; {
	case s >= 200 && s < 300 && needed(p.Lease.Entry):
		c.counters.requisites.Add(1)
	case s >= 200 && s < 300:
		c.counters.pages.Add(1)
		if visited(p.Lease) {
			return true // it was counted against the limits when it was new
		}
		c.fetched(p)
		if c.opts.MaxPagesPerHost > 0 {
			c.mu.Lock()
			c.hostPages[p.Lease.Host]++
			c.mu.Unlock()
		}
		return true
	case s == http.StatusNotModified:
		c.counters.unchanged.Add(1)
	case p.Outcome.Result == frontier.Gone:
		c.counters.gone.Add(1)
	case s >= 300 && s < 400:
		c.counters.redirects.Add(1)
	default:
		c.counters.refused.Add(1)
	}
	return false
}

// visited reports whether a URL was visited before, and not only as far as to a cookie.
func visited(l frontier.Lease) bool {
	if l.History.Visits == 0 {
		return false
	}
	m, _ := metaOf(l.Entry)
	return !m.was(l.Entry.URL)
}

func (c *Crawler) hostIsFull(host string) bool {
	if c.opts.MaxPagesPerHost == 0 {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.hostPages[host] >= c.opts.MaxPagesPerHost
}

// done reports the outcome to the frontier, and then to OnDone.
func (r *run) done(l frontier.Lease, o frontier.Outcome) error {
	c := r.c
	after := r.record(l, o)
	defer after()
	if o.Result == frontier.Requeue {
		o.Next = time.Time{} // of a redirect, or of OnPage: it comes at once
	}
	refused, err := c.frontier.DoneContext(context.Background(), l, o)
	if err := c.tookLinks(l, o.Add, refused, err); err != nil {
		return r.lost(l, err)
	}
	if o.Result < frontier.Requeue {
		c.store.worked()
	}
	if c.opts.OnDone != nil {
		c.opts.OnDone(l, o)
	}
	return nil
}

// tookLinks counts and logs what the frontier refused of the links of a page, according to err and
// to what it said else. It returns the errors of other kinds.
func (c *Crawler) tookLinks(l frontier.Lease, add []frontier.Entry, refused []*frontier.EntryError, err error) error {
	full := false
	var lost error // by the program's Prioritizer
	for _, err := range parts(err) {
		entry, isEntry := errors.AsType[*frontier.EntryError](err)
		priority, isPriority := errors.AsType[*frontier.PriorityError](err)
		switch {
		case isEntry:
			refused = append(refused, entry)
			if isPriority {
				lost = cmp.Or(lost, err)
			}
		case isPriority:
			c.log.Warn("a URL keeps its priority", "url", fetch.Redact(l.Entry.URL), "error", priority)
		case errors.Is(err, frontier.ErrFull):
			full = true
		default:
			return err
		}
	}
	if lost != nil {
		c.log.Error("links of a page are lost: the Prioritizer is wrong", "url", fetch.Redact(l.Entry.URL), "error", lost)
	}
	for _, e := range refused {
		c.recordLink(l.Entry, add[e.Index], "limit", e.Err.Error())
	}
	bad := len(refused)
	if full {
		bad = len(add)
		c.log.Warn("the frontier is full: a page's links are dropped", "url", fetch.Redact(l.Entry.URL), "links", bad)
	}
	c.counters.dropped.Add(int64(bad))
	return nil
}

// parts returns the errors joined in err: some may come after a commit and others instead of it.
func parts(err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var out []error
	for _, e := range joined.Unwrap() {
		out = append(out, parts(e)...)
	}
	return out
}
