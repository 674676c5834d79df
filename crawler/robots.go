// This file requests robots.txt and follows its redirects, one lease per request.

package crawler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler/fetch"
	"github.com/seed-7440039f/frontier/crawler/link"
	"github.com/seed-7440039f/frontier/crawler/robots"
	"github.com/seed-7440039f/frontier/internal/reply"
)

// Robots reads the answers to requests for robots.txt.
type Robots interface {
	// Read returns the rules in an answer that is not a redirect. site is the scheme, host and port
	// of the request, as in "http://a.example:8080"; after a redirect, the answer may come from
	// another site. False means that the rules are unknown: robots.txt is requested again later,
	// and nothing is fetched until then. A redirect that cannot be followed is passed with its
	// status and an empty body.
	Read(site string, status int, body []byte) (Rules, bool)
}

// rfc9309 is the default Robots.
type rfc9309 struct{ agent string }

// Read implements Robots.
func (r rfc9309) Read(_ string, status int, body []byte) (Rules, bool) {
	file := robots.FromStatus(status, body)
	if file.Access() == robots.Unreachable {
		return nil, false
	}
	return file.Group(r.agent), true
}

const (
	// contactWait is how long a worker waits for the slot of another host that a
	// robots.txt redirects to. Then the gate waits for it, and no worker does.
	contactWait = time.Second
	// rejoin keeps a host without URLs in the group that it must wait for, until its slot is
	// requested again.
	rejoin = 100 * time.Millisecond
)

// errStuck is reported when robots.txt could not be requested from another host.
var errStuck = errors.New("the host that it redirects to may not be contacted now")

// inquiry is the way from a page's lease to the rules of its site.
//
// It updates the gate before it ends the slot, so that the worker that gets the site's next URL
// finds the new state.
type inquiry struct {
	*run
	site   string
	host   string    // of the page
	again  bool      // the last inquiry failed
	target string    // URL to request now
	hops   int       // redirects so far
	last   time.Time // end of the last contact with host
}

// askRobots hands the page of l back and uses its slot to answer q.
func (r *run) askRobots(l frontier.Lease, q question) error {
	slot, err := r.c.frontier.HandBack(l)
	if err != nil {
		r.c.gate.release(q.site, r.c.now())
		return r.lost(l, err)
	}
	if q.owed { // another host failed, which makes this one useless
		r.c.gate.told(q.site)
		r.c.gate.release(q.site, r.c.now())
		return r.lost(slot, r.c.frontier.Done(slot, frontier.Outcome{Result: frontier.Failed}))
	}
	a := &inquiry{run: r, site: q.site, host: l.Host, again: q.again, target: q.target, hops: q.hops}
	next := l.Host
	if host, err := r.c.opts.HostKey(q.target); err == nil && host != l.Host { // it could not be contacted before
		if err := r.lost(slot, r.c.frontier.Done(slot, frontier.Outcome{Result: frontier.Requeue, Uncontacted: true})); err != nil {
			r.c.gate.release(q.site, r.c.now())
			return err
		}
		next = host
	}
	until := time.Now().Add(contactWait)
	for {
		if next != l.Host {
			if slot, err = r.contact(next, until); err != nil {
				return a.noContact(next, err)
			}
		}
		if next, err = a.ask(slot); next == "" || err != nil {
			return err
		}
	}
}

// ask sends one request and ends its slot. If another host is next, it returns that host's key and
// sets target.
func (a *inquiry) ask(slot frontier.Lease) (nextHost string, err error) {
	c := a.c
	res, err := a.fetch(&slot, fetch.Request{
		URL: a.target, MaxBody: robots.MaxSize + 1, Header: http.Header{"Accept": {"text/plain,*/*;q=0.8"}},
	})
	if uncontacted(err) {
		return a.busy(slot, res, err)
	}
	defer res.Close()
	c.counters.robots.Add(1)
	if slot.Host == a.host {
		a.last = res.Ended
	}
	a.recordRobots(slot, res, err)
	switch {
	case a.stopped(err):
		c.gate.release(a.site, c.now())
		return "", a.neutral(slot, res)
	case fetch.ClassOf(err) == fetch.Blocked && !c.misled(siteOf(a.target), res, err):
		return "", a.blocked(slot, err)
	case fetch.ClassOf(err) == fetch.Store:
		c.log.Warn("a robots.txt cannot be stored: it is requested again in a while", "url", fetch.Redact(a.target), "error", err)
		c.gate.failed(a.site, false, 0, c.now())
		return "", a.neutral(slot, res)
	case err != nil && a.lastBroken(res):
		c.log.Warn("robots.txt is incomplete at every try: it counts as it is", "site", a.site, "bytes", res.Body.Size(), "error", err)
	case err != nil:
		return "", a.failed(slot, res, err)
	}
	if c.opts.OnRobots != nil {
		if err := c.opts.OnRobots(a.fetches, res); a.stopped(err) {
			c.gate.release(a.site, c.now())
			return "", a.neutral(slot, res)
		} else if err != nil {
			c.log.Warn("the handler of robots.txt failed", "url", fetch.Redact(a.target), "error", err)
			c.gate.failed(a.site, false, 0, c.now())
			return "", a.neutral(slot, res) // the host did its part
		}
	}
	body, err := res.Body.Bytes()
	if err != nil {
		return "", a.failed(slot, res, err)
	}
	if to, moved := c.redirect(res); moved {
		if host, err := c.opts.HostKey(to); err == nil && a.hops < robots.MaxRedirects {
			return a.moved(slot, res, to, host)
		}
		body = nil
	}
	if reply.AsksForLess(res.Status, res.RetryAfter) {
		return "", a.failed(slot, res, nil)
	}
	rules, ok := c.opts.Robots.Read(a.site, res.Status, body)
	if !ok {
		return "", a.failed(slot, res, nil)
	}
	if coding := fetch.Coded(res.Header, res.Body.Head(512)); coding != "" && res.Status/100 == 2 { // an unreadable file forbids everything
		return "", a.failed(slot, res, codedError(coding))
	}
	if site := siteOf(a.target); site != a.site && isRobots(a.target) {
		c.gate.found(site, rules, res.Ended, c.now())
	}
	return "", a.settle(slot, res, rules)
}

// lastBroken reports whether a robots.txt is incomplete after as many tries as an expired copy needs
// to be used on. As with pages, an incomplete one is then better than none.
func (a *inquiry) lastBroken(res *fetch.Result) bool {
	return res.Broken != "" && res.Status/100 == 2 && a.c.gate.tries(a.site) >= staleAfter-1
}

// codedError is the reason why a body cannot be read: its Content-Encoding.
type codedError string

func (e codedError) Error() string {
	return fmt.Sprintf("its Content-Encoding cannot be undone: %q", shortened(string(e)))
}

// busy returns a slot whose group may not be contacted now, or that was lost. If the slot is of
// another host, which has now joined that group, busy waits for the slot again.
func (a *inquiry) busy(slot frontier.Lease, res *fetch.Result, err error) (nextHost string, _ error) {
	if errors.Is(err, frontier.ErrGroupBusy) {
		o := frontier.Outcome{Result: frontier.Requeue, Uncontacted: true, RetryAfter: rejoin}
		if attempted(res) {
			o = contactOutcome(res)
			o.Result, o.RetryAfter = frontier.Requeue, rejoin
		}
		err = a.c.frontier.Done(slot, o)
		if slot.Host != a.host && err == nil {
			return slot.Host, nil
		}
	}
	a.c.gate.release(a.site, a.c.now())
	return "", a.lost(slot, err)
}

// moved follows a redirect: from the cache, later on the same host, or now on another host, whose
// key it returns.
func (a *inquiry) moved(slot frontier.Lease, res *fetch.Result, to, host string) (nextHost string, err error) {
	a.hops++
	if why := a.c.refusesHost(a.site, to); why.Refused() {
		a.c.refusals.add(why.Rule)
		return "", a.failed(slot, res, fmt.Errorf("it redirects to %s: not wanted: %s", fetch.Redact(to), why))
	}
	if rules, ok := a.c.gate.known(siteOf(to), a.c.now()); ok && isRobots(to) {
		return "", a.settle(slot, res, rules)
	}
	if host == a.host {
		a.c.gate.follow(a.site, to, a.hops, a.c.now())
		return "", a.passed(slot, res)
	}
	a.target = to
	if err := a.passed(slot, res); err != nil {
		a.c.gate.release(a.site, a.c.now())
		return "", err
	}
	return host, nil
}

// settle ends the inquiry with rules.
func (a *inquiry) settle(slot frontier.Lease, res *fetch.Result, rules Rules) error {
	a.c.gate.settle(a.site, rules, slot.Host == a.host, a.last, a.c.now())
	if asked, tell := a.c.gate.longDelay(a.host, rules); tell {
		a.c.log.Warn("a host asks for a long delay between contacts", "host", a.host, "crawl_delay", asked, "honoured", a.c.gate.delay(rules))
	}
	if slot.Host != a.host && !isRobots(a.target) {
		return a.doneContact(slot, res, 0) // a host that keeps rules for others has different rules for itself
	}
	delay := a.c.gate.delay(rules)
	delay = cmp.Or(delay, frontier.NoCrawlDelay)
	return a.doneContact(slot, res, delay)
}

// passed ends a contact that returned a redirect. If the last inquiry failed at the redirect's
// target, this contact is no sign that the host works.
func (a *inquiry) passed(slot frontier.Lease, res *fetch.Result) error {
	if a.again && slot.Host == a.host {
		return a.neutral(slot, res)
	}
	return a.doneContact(slot, res, 0)
}

// neutral ends a contact that shows nothing about the host.
func (r *run) neutral(slot frontier.Lease, res *fetch.Result) error {
	o := contactOutcome(res)
	o.Result = frontier.Requeue
	return r.lost(slot, r.c.frontier.Done(slot, o))
}

// failed ends a try that returned no rules. For its host this is a failed contact like any other.
func (a *inquiry) failed(slot frontier.Lease, res *fetch.Result, cause error) error {
	if cause != nil && (a.c.outage.excuses(res, cause) || a.c.outage.excusesFirst(slot.Host, res, cause)) {
		a.c.gate.release(a.site, a.c.now())
		return a.neutral(slot, res)
	}
	asked := res.RetryAfter // if it is of another host, the frontier knows it, and it is no wait of this host
	if slot.Host != a.host {
		asked = 0
	}
	wait, stale := a.c.gate.failed(a.site, slot.Host != a.host, asked, a.c.now())
	a.logFailed(res.Status, cause, wait, stale)
	o := contactOutcome(res)
	o.Result, o.Failure = frontier.Failed, failureOf(res, cause)
	if slot.Host == a.host && a.c.gate.elsewhere(a.site) {
		o.Failure = frontier.FailureOther // no reason to slow the others down
	}
	return a.lost(slot, a.c.frontier.Done(slot, o))
}

// blocked ends an inquiry at a forbidden address: nothing was sent, and repeating it would not help.
func (a *inquiry) blocked(slot frontier.Lease, cause error) error {
	a.c.log.Info("an address may not be contacted: the site is skipped", "site", a.site, "error", cause)
	a.c.gate.block(a.site, a.c.now())
	return a.lost(slot, a.c.frontier.Done(slot, frontier.Outcome{Result: frontier.Denied, Uncontacted: true}))
}

// noContact puts off a target on another host whose slot was not available in time. If that has
// lasted too long, the try has failed.
func (a *inquiry) noContact(host string, err error) error {
	now := a.c.now()
	if a.ctx.Err() != nil || errors.Is(err, frontier.ErrClosed) {
		a.c.gate.release(a.site, now)
		return nil // work will see why
	}
	var wait time.Duration
	if info, err := a.c.frontier.Host(a.ctx, host); err == nil && !info.Due.IsZero() {
		wait = time.Until(info.Due)
	}
	if a.c.gate.stand(a.site, a.target, a.hops, wait, now) {
		return nil
	}
	wait, stale := a.c.gate.failed(a.site, true, 0, now)
	a.logFailed(0, errStuck, wait, stale)
	return nil
}

func (a *inquiry) logFailed(status int, err error, wait time.Duration, stale bool) {
	if stale {
		a.c.log.Warn("robots.txt is unreachable: the expired copy is used", "site", a.site, "status", status, "error", err)
		return
	}
	a.c.log.Info("robots.txt is unreachable: the site's URLs wait", "site", a.site, "status", status, "error", err, "wait", wait)
}

// contact waits a little for the slot of another host. Few workers do that at once.
func (r *run) contact(host string, until time.Time) (frontier.Lease, error) {
	select {
	case r.c.contacting <- struct{}{}:
	default:
		return frontier.Lease{}, errStuck
	}
	defer func() { <-r.c.contacting }()
	ctx, cancel := context.WithDeadline(r.ctx, until)
	defer cancel()
	return r.c.frontier.Contact(ctx, host)
}

// doneContact ends the contact that res describes.
func (r *run) doneContact(slot frontier.Lease, res *fetch.Result, delay time.Duration) error {
	o := contactOutcome(res)
	o.CrawlDelay = delay
	return r.lost(slot, r.c.frontier.Done(slot, o))
}

func contactOutcome(res *fetch.Result) frontier.Outcome {
	return frontier.Outcome{Ended: res.Ended, Duration: max(res.Duration(), 1), RetryAfter: res.RetryAfter, Bytes: res.Bytes}
}

// redirect returns the target of a redirect; empty if the target cannot be crawled.
func (c *Crawler) redirect(res *fetch.Result) (target string, ok bool) {
	switch res.Status {
	case 301, 302, 303, 307, 308:
	default:
		return "", false
	}
	return c.target(res)
}

// target returns the target of an answer's Location; empty if it cannot be crawled.
func (c *Crawler) target(res *fetch.Result) (target string, ok bool) {
	loc := link.HeaderURL(res.Header.Get("Location"))
	if loc == "" {
		return "", false
	}
	target, err := c.opts.Normalizer.Resolve(res.URL, loc)
	if err != nil || siteOf(target) == "" || c.opts.fetcher(target) == nil {
		return "", false
	}
	return target, true
}
