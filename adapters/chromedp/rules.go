// This file remembers what robots.txt allows, for what the scripts of pages request.

package frontierchromedp

import (
	"cmp"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/seed-7440039f/frontier/crawler/fetch"
	"github.com/seed-7440039f/frontier/crawler/robots"
	"github.com/seed-7440039f/frontier/internal/reply"
)

const (
	rulesTTL = 24 * time.Hour
	// redirectsMost is how many redirects of a robots.txt are followed (RFC 9309 section 2.3.1.2).
	redirectsMost = 5
	rulesMost     = 4096 // sites remembered at most; any is forgotten, which costs a request
)

// rules caches the rules of sites. A crawler's requests for robots.txt pass through the Renderer, so it
// seldom requests one itself.
type rules struct {
	agent string

	mu    sync.Mutex
	sites map[string]siteRules // guarded by mu
}

type siteRules struct {
	rules   *robots.Rules // nil: nothing is allowed
	expires time.Time
}

func newRules(agent string) *rules {
	agent = cmp.Or(agent, fetch.DefaultUserAgent)
	return &rules{agent: agent, sites: map[string]siteRules{}}
}

// note stores the rules in a response to a request for robots.txt. It returns false if the response
// contains no rules.
func (r *rules) note(rawURL string, res *fetch.Result, err error) bool {
	site, ok := strings.CutSuffix(rawURL, "/robots.txt")
	if !ok || strings.Count(site, "/") != 2 || err != nil || redirects(res.Status) || reply.AsksForLess(res.Status, res.RetryAfter) {
		return false
	}
	body, err := res.Body.Bytes()
	if err != nil {
		return false
	}
	file := robots.FromStatus(res.Status, body)
	if file.Access() == robots.Unreachable {
		return false
	}
	r.put(site, file.Group(r.agent))
	return true
}

func redirects(status int) bool {
	return status >= 300 && status < 400 && status != http.StatusNotModified
}

func (r *rules) put(site string, x *robots.Rules) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for old := range r.sites {
		if len(r.sites) < rulesMost {
			break
		}
		delete(r.sites, old)
	}
	r.sites[site] = siteRules{x, time.Now().Add(rulesTTL)}
}

// known returns the rules of a site, if they are known; nil ones allow nothing.
func (r *rules) known(site string) (*robots.Rules, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	x, ok := r.sites[site]
	return x.rules, ok && time.Now().Before(x.expires)
}

// siteOf returns the scheme, host and port of a URL as a browser writes it.
func siteOf(u *url.URL) string { return u.Scheme + "://" + u.Host }

// allowed reports whether robots.txt allows what a page requests from its own host. If that is not
// known, robots.txt is requested first, as one of the requests of the page; its redirects are
// followed on the same host. A robots.txt that cannot be read allows nothing.
func (p *page) allowed(u *url.URL) bool {
	site := siteOf(u)
	if x, ok := p.r.rules.known(site); ok {
		return x != nil && x.Allowed(u.String())
	}
	target := site + "/robots.txt"
	for range redirectsMost + 1 {
		res, err := p.send(fetch.Request{URL: target, MaxBody: robots.MaxSize + 1, Header: http.Header{"Accept": {"text/plain,*/*;q=0.8"}}})
		if err != nil {
			break
		}
		if p.r.rules.note(target, res, nil) {
			x, _ := p.r.rules.known(strings.TrimSuffix(target, "/robots.txt"))
			p.r.rules.put(site, x)
			_ = res.Close()
			return x != nil && x.Allowed(u.String())
		}
		next := res.Header.Get("Location")
		_ = res.Close()
		base, bad := url.Parse(target)
		if !redirects(res.Status) || bad != nil {
			break
		}
		to, bad := base.Parse(next)
		if bad != nil {
			break
		}
		if x, ok := p.r.rules.known(siteOf(to)); ok && to.Path == "/robots.txt" {
			p.r.rules.put(site, x)
			return x != nil && x.Allowed(u.String())
		}
		if host, err := p.r.opts.HostKey(to.String()); err != nil || host != p.host {
			break
		}
		target = to.String()
	}
	p.r.rules.put(site, nil)
	return false
}
