// This file asks for robots.txt, following redirects, each request under a lease
// of its own.

package crawler

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler/fetch"
	"github.com/seed-7440039f/frontier/crawler/robots"
)

// Robots reads the answers to requests for robots.txt.
type Robots interface {
	// Read returns the rules in an answer with a status other than a redirect's.
	// False means that the site could not say: it is asked again later, and
	// nothing is fetched until then. A redirect that leads nowhere is read as
	// its status with an empty body.
	Read(status int, body []byte) (Rules, bool)
}

// rfc9309 is the default Robots.
type rfc9309 struct{ agent string }

// Read implements Robots.
func (r rfc9309) Read(status int, body []byte) (Rules, bool) {
	file := robots.FromStatus(status, body)
	if file.Access() == robots.Unreachable {
		return nil, false
	}
	return file.Group(r.agent), true
}

const (
	// maxHops is how many redirects of a robots.txt are followed (RFC 9309
	// section 2.3.1.2 asks for at least five).
	maxHops = 5
	// contactWait is how long a worker waits for the slot of another host that a
	// robots.txt redirects to. Longer counts as a failed try.
	contactWait = 2 * time.Minute
)

// askRobots hands the page of l back and uses its slot to answer q.
func (r *run) askRobots(l frontier.Lease, q question) error {
	c := r.c
	host := l.Host
	slot, err := c.frontier.HandBack(l)
	if err != nil {
		c.gate.release(q.site, c.now())
		return r.lost(l, err)
	}
	target, hops := q.target, q.hops
	var last time.Time // end of the last contact with q.site's own host
	for {
		res, err := r.fetch(slot, fetch.Request{
			URL: target, MaxBody: robots.MaxSize, Header: http.Header{"Accept": {"text/plain,*/*;q=0.8"}},
		})
		c.counters.robots.Add(1)
		own := slot.Host == host
		if own {
			last = res.Ended
		}
		if r.stopped(err) {
			c.gate.release(q.site, c.now())
			return r.doneContact(slot, res, 0)
		}
		next, moved := "", false
		if err == nil {
			next, moved = c.redirect(res)
		}
		if moved && hops < maxHops {
			hops++
			nextHost, hostErr := c.opts.HostKey(next)
			if rules, ok := c.gate.known(siteOf(next), c.now()); ok && isRobots(next) {
				err := r.doneContact(slot, res, crawlDelay(c.gate.delay(rules)))
				c.gate.settle(q.site, rules, own, last, c.now())
				return err
			}
			if hostErr == nil && nextHost == host {
				err := r.doneContact(slot, res, 0)
				c.gate.follow(q.site, next, hops, c.now())
				return err
			}
			if err := r.doneContact(slot, res, 0); err != nil || hostErr != nil {
				c.gate.release(q.site, c.now())
				return errors.Join(err, hostErr)
			}
			if slot, err = r.contact(nextHost); err != nil {
				return r.noContact(q.site, err)
			}
			target = next
			continue
		}
		var rules Rules
		ok := false
		if err == nil {
			body := res.Body
			if moved {
				body = nil
			}
			rules, ok = c.opts.Robots.Read(res.Status, body)
		}
		if !ok {
			return r.robotsFailed(slot, q.site, own, res, err)
		}
		err = r.doneContact(slot, res, crawlDelay(c.gate.delay(rules)))
		now := c.now()
		c.gate.settle(q.site, rules, own, last, now)
		if !own && isRobots(target) {
			c.gate.found(siteOf(target), rules, res.Ended, now)
		}
		return err
	}
}

// robotsFailed ends a try that brought no rules.
func (r *run) robotsFailed(slot frontier.Lease, site string, own bool, res *fetch.Result, cause error) error {
	wait, last := r.c.gate.failed(site, res.RetryAfter, r.c.now())
	if own {
		res.RetryAfter = max(res.RetryAfter, wait)
	}
	r.logRobots(site, res.Status, cause, last)
	return r.doneContact(slot, res, 0)
}

// noContact ends a try for which another host's slot could not be had.
func (r *run) noContact(site string, err error) error {
	if r.ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
		r.c.gate.release(site, r.c.now())
		if r.ctx.Err() != nil {
			return nil
		}
		return err
	}
	_, last := r.c.gate.failed(site, 0, r.c.now())
	r.logRobots(site, 0, err, last)
	return nil
}

func (r *run) logRobots(site string, status int, err error, last bool) {
	if last {
		r.c.log.Warn("robots.txt cannot be had: the site's URLs are given up", "site", site, "status", status, "error", err)
	} else {
		r.c.log.Info("robots.txt cannot be had: to be tried again", "site", site, "status", status, "error", err)
	}
}

// contact waits for the slot of another host.
func (r *run) contact(host string) (frontier.Lease, error) {
	ctx, cancel := context.WithTimeout(r.ctx, contactWait)
	defer cancel()
	return r.c.frontier.Contact(ctx, host)
}

// doneContact ends the contact that res describes.
func (r *run) doneContact(slot frontier.Lease, res *fetch.Result, delay time.Duration) error {
	err := r.c.frontier.Done(slot, frontier.Outcome{
		Ended: res.Ended, Duration: max(res.Duration(), 1),
		RetryAfter: res.RetryAfter, CrawlDelay: delay, Bytes: res.Bytes,
	})
	return r.lost(slot, err)
}

// crawlDelay is what Outcome.CrawlDelay says for rules that were just read.
func crawlDelay(d time.Duration) time.Duration {
	if d == 0 {
		return frontier.NoCrawlDelay
	}
	return d
}

// redirect returns where an answer redirects to. The target is empty if it is
// one that cannot be crawled.
func (c *Crawler) redirect(res *fetch.Result) (target string, ok bool) {
	switch res.Status {
	case 301, 302, 303, 307, 308:
	default:
		return "", false
	}
	loc := res.Header.Get("Location")
	if loc == "" {
		return "", false
	}
	target, err := c.opts.Normalizer.Resolve(res.URL, loc)
	if err != nil || siteOf(target) == "" {
		return "", false
	}
	return target, true
}
