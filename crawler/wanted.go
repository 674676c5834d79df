// This file applies all filters to a URL or an answer, and counts refusals.

package crawler

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler/fetch"
	"github.com/seed-7440039f/frontier/crawler/filter"
)

// refusals counts by rule. The zero value is ready for use.
type refusals struct {
	mu sync.Mutex
	by map[string]int64 // guarded by mu
}

func (r *refusals) add(rule string) { r.addAll(rule, 1) }

func (r *refusals) addAll(rule string, n int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.by == nil {
		r.by = map[string]int64{}
	}
	r.by[rule] += n
}

func (r *refusals) counts() map[string]int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.by)
}

// refuse returns why a URL must not be crawled, or the zero Reason, and counts the refusal.
func (c *Crawler) refuse(e frontier.Entry) filter.Reason {
	r := c.reason(e)
	if r.Refused() {
		c.refusals.add(r.Rule)
	}
	return r
}

// refuseAgain is refuse for a leased URL; trap is true if the guards against traps refuse it. A page that
// was visited is not judged by them again: they have counted it, and it leads into no trap.
func (c *Crawler) refuseAgain(l frontier.Lease) (r filter.Reason, trap bool) {
	if r = c.outOfScope(l.Entry); !r.Refused() {
		u := filter.Split(l.Entry.URL, l.Entry.Depth)
		if r = c.lasting.Refuse(u); !r.Refused() && !visited(l) {
			r, trap = c.traps.Refuse(u), true
		}
	}
	if r.Refused() {
		c.refusals.add(r.Rule)
	}
	return r, trap
}

func (c *Crawler) reason(e frontier.Entry) filter.Reason {
	if r := c.outOfScope(e); r.Refused() {
		return r
	}
	return c.rules.Refuse(filter.Split(e.URL, e.Depth))
}

func (c *Crawler) outOfScope(e frontier.Entry) filter.Reason {
	if c.opts.fetcher(e.URL) == nil {
		return filter.Reason{Rule: "scheme", Detail: "no protocol for it"}
	}
	if f, ok := c.opts.fetcher(e.URL).(interface{ CheckPort(url string) error }); ok {
		if err := f.CheckPort(e.URL); err != nil {
			return filter.Reason{Rule: "port", Detail: err.Error()}
		}
	}
	for i, f := range c.filters {
		if f.Allow(e) {
			continue
		}
		if s, ok := f.(*scopeFilter); ok && i == 0 {
			return filter.Reason{Rule: "scope", Detail: s.why(e)}
		}
		return filter.Reason{Rule: "filter"}
	}
	return filter.Reason{}
}

// refusesHost returns why the robots.txt of a site may not be read at a URL of another site, or the
// zero Reason: a rule or filter refuses what it does not refuse on the site itself. Robots.txt need
// not be in scope (RFC 9309 section 2.3.1.2), and rules about paths are about pages.
func (c *Crawler) refusesHost(site, url string) filter.Reason {
	here := site + strings.TrimPrefix(url, siteOf(url))
	for _, f := range c.opts.Rules {
		if r := f.Refuse(filter.Split(url, 0)); r.Refused() && !f.Refuse(filter.Split(here, 0)).Refused() {
			return r
		}
	}
	for _, f := range c.opts.Filters {
		if !f.Allow(frontier.Entry{URL: url}) && f.Allow(frontier.Entry{URL: here}) {
			return filter.Reason{Rule: "filter"}
		}
	}
	for _, re := range c.opts.Scope.Exclude {
		if re.MatchString(url) && !re.MatchString(here) {
			return filter.Reason{Rule: "scope", Detail: fmt.Sprintf("excluded by %.100q", re)}
		}
	}
	return filter.Reason{}
}

// Wanted returns why the crawler would refuse a link to a URL, which must be normalized, or nil. It
// counts a refusal as a link's.
func (c *Crawler) Wanted(e frontier.Entry) error {
	r := c.refuse(e)
	switch {
	case !r.Refused():
		return nil
	case r.Rule == "scope":
		return errors.New("not in scope: " + r.Detail)
	case r.Rule == "filter":
		return errors.New("not in scope")
	}
	return errors.New("not wanted: " + r.String())
}

// admit judges an answer before its body is read.
func (c *Crawler) admit(url string) func(status int, h http.Header) error {
	if len(c.opts.Responses) == 0 {
		return nil
	}
	return func(status int, h http.Header) error {
		for _, f := range c.opts.Responses {
			if r := f.RefuseResponse(status, h); r.Refused() {
				c.refusals.add(r.Rule)
				c.log.Debug("an answer is not wanted", "url", fetch.Redact(url), "rule", r.Rule, "detail", r.Detail)
				return errors.New(r.String())
			}
		}
		return nil
	}
}

// fetched reports a page to the filters that count pages.
func (c *Crawler) fetched(p *Page) {
	if w, ok := c.rules.(filter.Watcher); ok {
		t := filter.Split(p.Lease.Entry.URL, p.Lease.Entry.Depth)
		if p.Doc != nil {
			t.Text = textOf(p.Body.Head(mostText), t)
			t.Links = func(yield func(string) bool) {
				for i := range p.Doc.Links {
					if !yield(p.Doc.Links[i].URL) {
						return
					}
				}
			}
		}
		w.Fetched(t)
	}
}

const (
	mostText  = 256 << 10 // bytes of a page whose text is compared
	leastText = 200       // bytes of text; pages of pictures and of programs have less, and are not alike for that
)

// textOf stands for the text of a page in HTML, without tags, programs and blanks, and without the
// page's own URL; zero if there is little text.
func textOf(body []byte, t *filter.Target) uint64 {
	_, own, _ := strings.Cut(t.URL, "://")
	if i := strings.IndexAny(own, "/?"); i >= 0 && len(own) > i+1 {
		own := []byte(own[i:])
		body = without(body, own)
		if bytes.IndexByte(own, '&') >= 0 {
			body = without(body, bytes.ReplaceAll(own, []byte("&"), []byte("&amp;")))
		}
	}
	h, n := uint64(14695981039346656037), 0 // FNV-1a
	for len(body) > 0 {
		text, rest, found := bytes.Cut(body, []byte("<"))
		for _, c := range text {
			if c > ' ' {
				h = (h ^ uint64(c)) * 1099511628211
				n++
			}
		}
		if !found {
			break
		}
		end := ">"
		if len(rest) > 6 && rest[0]|0x20 == 's' {
			switch {
			case bytes.EqualFold(rest[:6], []byte("script")):
				end = "</script>"
			case bytes.EqualFold(rest[:5], []byte("style")):
				end = "</style>"
			}
		}
		_, body, _ = bytes.Cut(rest, []byte(end))
	}
	if n < leastText {
		return 0
	}
	return max(h, 1)
}

func without(body, part []byte) []byte {
	if !bytes.Contains(body, part) { // as most
		return body
	}
	return bytes.ReplaceAll(body, part, nil)
}
