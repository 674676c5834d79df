// This file reports the ends of URLs to Options.OnEnd.

package crawler

import (
	"cmp"
	"context"
	"crypto/sha1"
	"encoding/base32"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler/crawllog"
	"github.com/seed-7440039f/frontier/crawler/fetch"
	"github.com/seed-7440039f/frontier/crawler/filter"
	"github.com/seed-7440039f/frontier/crawler/robots"
	"github.com/seed-7440039f/frontier/internal/media"
)

// evidence is what a worker learned under its lease.
type evidence struct {
	res *fetch.Result // nil: nothing was fetched
	err error         // of the fetch, or of OnPage
	why filter.Reason // the rule that refused it; zero: none did

	unread string // why OnPage could not read it; empty: it could
}

// givingUp holds the URLs whose last try is ending: their record is written already.
type givingUp struct{ urls sync.Map }

// record reports a lease's end to OnEnd before the frontier knows of it. The caller calls after once the
// frontier does.
func (r *run) record(l frontier.Lease, o frontier.Outcome) (after func()) {
	after = func() {}
	if r.c.opts.OnEnd == nil {
		return after
	}
	x, ok := r.endOf(l, o)
	if !ok {
		return after
	}
	if x.Outcome == crawllog.GivenUp {
		r.c.givingUp.urls.Store(l.Entry.URL, nil)
		after = func() { r.c.givingUp.urls.Delete(l.Entry.URL) }
	}
	r.c.opts.OnEnd(x)
	return after
}

// endOf returns the record of a lease's end; ok is false if its URL returns as if nothing had happened.
func (r *run) endOf(l frontier.Lease, o frontier.Outcome) (x crawllog.Record, ok bool) {
	if (o.Result == frontier.Requeue || o.Result == frontier.PutOff) && !r.saw.why.Refused() {
		return x, false
	}
	m, _ := metaOf(l.Entry)
	x = crawllog.Record{
		URL: fetch.Redact(l.Entry.URL), Host: l.Host, Via: fetch.Redact(m.via), Priority: l.Priority, Depth: l.Entry.Depth, Visit: l.History.Visits + 1,
		Attempt: l.Attempt, Crawl: l.Entry.Crawl, Due: l.Due,
	}
	r.saw.describe(&x)
	switch {
	case r.saw.why.Refused():
		x.Outcome, x.Rule, x.Reason = crawllog.Refused, r.saw.why.Rule, shortened(r.saw.why.Detail)
	case o.Result == frontier.Failed:
		x.Outcome = crawllog.Failed
		x.Reason = cmp.Or(x.Reason, o.Failure.String())
		if !r.c.frontier.TriesAgain(l, o) && !r.probing(l.Host) {
			x.Outcome = crawllog.GivenUp
		}
	case fetch.ClassOf(r.saw.err) == fetch.Unwanted:
		x.Outcome, x.Rule = crawllog.Refused, "response"
	case x.Status == http.StatusNotModified:
		x.Outcome = crawllog.Unchanged
	case o.Result == frontier.Gone:
		x.Outcome = crawllog.Gone
	case x.Status >= 300 && x.Status < 400:
		x.Outcome = crawllog.Redirected
		x.Target, _ = r.c.redirect(r.saw.res)
		x.Target = fetch.Redact(x.Target)
	case x.Status >= 200 && x.Status < 300:
		x.Outcome = crawllog.Fetched
		x.Digest = digestOf(r.saw.res)
		if r.saw.unread != "" && x.Reason == "" {
			x.Reason = shortened(r.saw.unread)
		}
	default:
		x.Outcome = crawllog.Rejected
	}
	return x, true
}

// describe adds the result of a contact to a record.
func (e *evidence) describe(x *crawllog.Record) {
	if res := e.res; res != nil {
		x.Status, x.Bytes, x.Began, x.Seconds = res.Status, res.Bytes, res.Started.UTC(), res.Duration().Seconds()
		x.Type = media.Of(res.Header).Essence
		x.Type = x.Type[:min(len(x.Type), 100)]
		switch {
		case res.Broken != "":
			x.Reason = "its end is missing: " + res.Broken
		case res.Bomb:
			x.Reason = "cut at the limit of its ratio"
		case res.Truncated:
			x.Reason = "cut at the limit of size"
		}
		if coding := fetch.Coded(res.Header, res.Body.Head(512)); coding != "" && res.Status/100 == 2 {
			x.Reason = codedError(coding).Error()
		}
	}
	if e.err == nil {
		return
	}
	switch fetch.ClassOf(e.err) {
	case fetch.BadURL, fetch.DNS, fetch.Blocked: // no host was contacted
		x.Began, x.Seconds = time.Time{}, 0
	}
	x.Reason = e.err.Error()
	if f, ok := errors.AsType[*fetch.Error](e.err); ok { // it names the URL
		x.Reason = f.Class.String() + ": " + f.Err.Error()
	}
	x.Reason = shortened(x.Reason)
}

// probing reports whether a host is in quarantine: failures there use up no tries.
func (r *run) probing(host string) bool {
	info, err := r.c.frontier.Host(context.WithoutCancel(r.ctx), host)
	return err == nil && info.Backoff.Probes > 0
}

// recordRobots reports a request for a robots.txt to OnEnd.
func (a *inquiry) recordRobots(slot frontier.Lease, res *fetch.Result, err error) {
	if a.c.opts.OnEnd == nil {
		return
	}
	x := crawllog.Record{Outcome: crawllog.Robots, URL: fetch.Redact(a.target), Host: slot.Host, Due: slot.Due}
	(&evidence{res: res, err: err}).describe(&x)
	if x.Reason == "" && robots.FromStatus(x.Status, nil).Access() == robots.Unreachable {
		x.Reason = "the site's URLs wait"
	}
	a.c.opts.OnEnd(x)
}

// recordLink reports a link that was not taken to OnEnd.
func (c *Crawler) recordLink(from, e frontier.Entry, rule, detail string) {
	if c.opts.OnEnd == nil {
		return
	}
	host, _ := c.opts.HostKey(e.URL) // empty if the URL has no host
	c.opts.OnEnd(crawllog.Record{
		Outcome: crawllog.Refused, URL: fetch.Redact(e.URL), Host: host, Via: fetch.Redact(from.URL), Depth: e.Depth, Crawl: e.Crawl, Rule: rule, Reason: shortened(detail),
	})
}

// recordGivenUp reports a URL to OnEnd that the frontier gave up without a try: its host was given up, or
// its lease expired.
func (c *Crawler) recordGivenUp(e frontier.Entry, o frontier.Outcome) {
	if c.opts.OnEnd == nil {
		return
	}
	if _, known := c.givingUp.urls.Load(e.URL); known {
		return
	}
	reason := "its host was given up: " + o.Failure.String()
	if !o.Ended.IsZero() {
		reason = "its lease expired"
	}
	host, _ := c.opts.HostKey(e.URL)
	m, _ := metaOf(e)
	c.opts.OnEnd(crawllog.Record{
		Outcome: crawllog.GivenUp, URL: fetch.Redact(e.URL), Host: host, Via: fetch.Redact(m.via), Depth: e.Depth, Crawl: e.Crawl, Visit: 1, Attempt: 1, Reason: reason,
	})
}

// digestOf returns the digest of a complete, non-empty body, in the form of WARC files.
func digestOf(res *fetch.Result) string {
	if res.Truncated || res.Body.Size() == 0 {
		return ""
	}
	h := sha1.New()
	if _, err := io.Copy(h, res.Body.Reader()); err != nil {
		return ""
	}
	return "sha1:" + base32.StdEncoding.EncodeToString(h.Sum(nil))
}

// shortened bounds a text that a server may have chosen.
func shortened(s string) string {
	const most = 300
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "..."
}
