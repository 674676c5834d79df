// This file counts what a crawl does, and reports it every few seconds.

package crawler

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/seed-7440039f/frontier"
)

type counter = atomic.Int64

// counters are the running counts behind Progress.
type counters struct {
	lookup, fetching counter // nanoseconds

	pages, redirects, gone, refused, unchanged, failed            counter
	denied, filtered, blocked, parked, broken, requisites, unread counter
	unwanted, loops, robots, bytes, links, dropped, busy          counter
}

// Progress is what a Crawler has done since New.
type Progress struct {
	Elapsed time.Duration // since Run began

	// Answers to requests for pages, by kind:
	Pages      int64 // status 2xx
	Broken     int64 // part of Pages: incomplete at the last try, too
	Unread     int64 // part of Pages: of an unknown coding, or a sitemap that is none; see Page.Unread
	Requisites int64 // status 2xx, of what pages need to be displayed; not part of Pages
	Redirects  int64 // 3xx
	Unwanted   int64 // part of all of these: the body was not read; see Options.Responses
	Loops      int64 // part of Redirects: loops, and redirects beyond MaxRedirects
	Gone       int64 // 404 and 410
	Refused    int64 // 4xx of other kinds
	Unchanged  int64 // 304
	Failed     int64 // no answer, 5xx, 429: retried unless the frontier gave up

	// URLs that were leased and not requested. Filtered ones are given up; the others are, too,
	// unless they are parked:
	Denied     int64            // robots.txt forbids them
	Filtered   int64            // the guards against traps forbid them
	FilteredBy map[string]int64 // the same, links not taken and answers not read, by rule: see package filter
	Blocked    int64            // their host is at an address that may not be contacted

	// Unreachable is the number of sites whose robots.txt is unreachable now: their URLs wait until
	// the frontier gives their host up.
	Unreachable int64
	// Away is since when no host has answered, so that the network seems to be down; zero if hosts
	// answer.
	Away time.Time

	// Parked URLs, by this Run and those before: see Crawler.Unpark.
	Parked  int64 // until the scope is wider
	NextRun int64 // until the next Crawler's Run at the latest: blocked, of a full host, seeds that failed

	// Trouble is why one of the first seeds could not be fetched, if none of them could; empty
	// otherwise.
	Trouble string

	Robots  int64 // requests for robots.txt, redirects included
	Bytes   int64 // of bodies, as sent
	Links   int64 // distinct links found, summed over the pages
	Dropped int64 // links beyond MaxLinks or its bytes, and those that the frontier refused
	Busy    int64 // workers that hold a lease now

	// Lookup is the time that workers waited for name resolution. It is part of Fetching, the time
	// of lookups, connecting, sending and reading. Both are sums over the workers.
	Lookup, Fetching time.Duration

	Frontier frontier.Stats
}

// Progress returns the present figures.
func (c *Crawler) Progress() Progress {
	n := &c.counters
	p := Progress{
		Pages: n.pages.Load(), Broken: n.broken.Load(), Unread: n.unread.Load(), Requisites: n.requisites.Load(), Redirects: n.redirects.Load(), Loops: n.loops.Load(), Unwanted: n.unwanted.Load(), FilteredBy: c.refusals.counts(), Gone: n.gone.Load(), Refused: n.refused.Load(),
		Unchanged: n.unchanged.Load(), Failed: n.failed.Load(), Denied: n.denied.Load(), Unreachable: c.gate.unreachable(), Away: c.outage.began(),
		Filtered: n.filtered.Load(), Blocked: n.blocked.Load(), Robots: n.robots.Load(), Bytes: n.bytes.Load(), Links: n.links.Load(),
		Dropped: n.dropped.Load(), Busy: n.busy.Load(),
		Lookup: time.Duration(n.lookup.Load()), Fetching: time.Duration(n.fetching.Load()), Frontier: c.frontier.Stats(),
	}
	parked := c.parking.count()
	p.Parked, p.NextRun = parked[untilWider], parked[untilAgain]+parked[untilRun]
	if x := c.trouble.Load(); x != nil {
		p.Trouble = *x
	}
	if t := c.started.Load(); t != nil {
		p.Elapsed = c.now().Sub(*t)
	}
	return p
}

// reportProgress reports progress regularly until finished is closed, and then once more.
func (c *Crawler) reportProgress(finished <-chan struct{}) {
	everyUntil(c.opts.ProgressEvery, finished, func(last bool) {
		p := c.Progress()
		what := "crawling"
		if last {
			what = "crawl ended"
		}
		c.log.Info(what, "elapsed", p.Elapsed.Round(time.Millisecond), "pages", p.Pages, "redirects", p.Redirects,
			"gone", p.Gone, "refused", p.Refused, "failed", p.Failed, "denied", p.Denied, "unreachable", p.Unreachable,
			"filtered", p.Filtered, "blocked", p.Blocked, "robots", p.Robots, "bytes", p.Bytes, "busy", p.Busy,
			"lookup_share", share(p.Lookup, p.Fetching),
			"waiting", p.Frontier.Waiting-p.Parked-p.NextRun, "parked", p.Parked+p.NextRun, "scheduled", p.Frontier.Scheduled, "hosts", p.Frontier.Hosts, "given_up", p.Frontier.GivenUp)
		if c.opts.OnProgress != nil {
			c.opts.OnProgress(p)
		}
	})
}

// everyUntil calls fn now and then until finished is closed, and a last time then.
func everyUntil(d time.Duration, finished <-chan struct{}, fn func(last bool)) {
	t := time.NewTicker(d)
	defer t.Stop()
	for last := false; !last; {
		select {
		case <-t.C:
		case <-finished:
			last = true
		}
		fn(last)
	}
}

// share returns a part of a whole, to three digits.
func share(part, whole time.Duration) float64 {
	if whole <= 0 {
		return 0
	}
	return math.Round(1000*float64(part)/float64(whole)) / 1000
}
