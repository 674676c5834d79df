// This file decides which URLs belong to a crawl.

package crawler

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/internal/hostkey"
)

// Filter decides whether a URL is crawled. It is called when a link is found, and again before the
// URL is fetched, so that filters changed on resuming apply to waiting URLs: those that are now
// refused are parked. It is called from any goroutine.
type Filter interface {
	Allow(e frontier.Entry) bool
}

// FilterFunc makes a function a Filter.
type FilterFunc func(e frontier.Entry) bool

// Allow calls the function.
func (f FilterFunc) Allow(e frontier.Entry) bool { return f(e) }

// Scope is the usual Filter. A zero field sets no limit.
type Scope struct {
	// Hosts and Domains limit the crawl. A host matches exactly, with any port unless one is given;
	// a domain matches all hosts below it, too. If both are empty there is no limit.
	Hosts, Domains []string
	// Include, if not empty, must match the URL with at least one expression. Exclude must not
	// match it.
	Include, Exclude []*regexp.Regexp
	// MaxDepth is the greatest number of links from a seed. Zero: no limit.
	MaxDepth int
	// MaxURL is the greatest length of a URL in bytes. Zero means 4096.
	MaxURL int
	// Seeds are the URLs from which Hosts and Domains were derived. New redirects from them are
	// followed to any host, and the host of the final page joins Hosts: example.org often redirects
	// to www.example.org.
	Seeds []string
	// OnJoin, if set, is called with such a host before the links of its page are added. Use it to
	// store the host: New with the same Scope does not know it. An error is logged.
	OnJoin func(host string) error
}

// scopeFilter is a Scope made quick to ask.
type scopeFilter struct {
	Scope
	domains map[string]bool
	seeds   map[uint64]bool // sums of Seeds

	mu    sync.RWMutex
	hosts map[string]bool // guarded by mu
}

func newScopeFilter(s Scope) *scopeFilter {
	f := &scopeFilter{Scope: s, hosts: map[string]bool{}, domains: map[string]bool{}, seeds: map[uint64]bool{}}
	for _, u := range s.Seeds {
		f.seeds[hop(u)] = true
	}
	for _, h := range s.Hosts {
		f.hosts[hostkey.InURL(strings.ToLower(h))] = true
	}
	for _, d := range s.Domains {
		f.domains[hostkey.InURL(strings.ToLower(strings.TrimPrefix(d, ".")))] = true
	}
	f.MaxURL = cmp.Or(f.MaxURL, 4096)
	return f
}

// Allow implements Filter.
func (f *scopeFilter) Allow(e frontier.Entry) bool { return f.why(e) == "" }

// why returns why a URL is not in scope; empty if it is.
func (f *scopeFilter) why(e frontier.Entry) string {
	site := siteOf(e.URL)
	switch {
	case site == "":
		return "no host"
	case len(e.URL) > f.MaxURL:
		return fmt.Sprintf("%d bytes of URL; at most %d", len(e.URL), f.MaxURL)
	case needed(e):
	case f.MaxDepth > 0 && e.Depth > f.MaxDepth:
		return fmt.Sprintf("%d links from a seed; at most %d", e.Depth, f.MaxDepth)
	case !f.allowHost(site) && !f.ofSeed(e):
		return fmt.Sprintf("host %.100q", hostOf(site))
	}
	for _, re := range f.Exclude {
		if re.MatchString(e.URL) {
			return fmt.Sprintf("excluded by %.100q", re)
		}
	}
	if needed(e) {
		return ""
	}
	for _, re := range f.Include {
		if re.MatchString(e.URL) {
			return ""
		}
	}
	if len(f.Include) > 0 {
		return "no pattern to include matches"
	}
	return ""
}

// ofSeed reports whether redirects from a seed led to a URL.
func (f *scopeFilter) ofSeed(e frontier.Entry) bool {
	if len(f.seeds) == 0 || e.Depth > 0 {
		return false
	}
	m, _ := metaOf(e)
	return len(m.chain) > 0 && f.seeds[m.chain[0]&^flags]
}

// join adds the host of a page at the end of a seed's redirects to the scope, and returns it; empty
// if it is already there.
func (f *scopeFilter) join(e frontier.Entry) string {
	site := siteOf(e.URL)
	if !f.ofSeed(e) || f.allowHost(site) {
		return ""
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hosts[hostOf(site)] = true
	return hostOf(site)
}

func (f *scopeFilter) allowHost(site string) bool {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if len(f.hosts) == 0 && len(f.domains) == 0 {
		return true
	}
	host := hostOf(site)
	scheme, name, _ := strings.Cut(site, "://")
	if name == host { // the default port of the scheme, which may have been given explicitly
		name += defaultPorts[scheme]
	}
	if f.hosts[host] || f.hosts[name] {
		return true
	}
	for rest := host; rest != ""; {
		if f.domains[rest] {
			return true
		}
		_, rest, _ = strings.Cut(rest, ".")
	}
	return false
}
