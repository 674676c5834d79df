// This file says which URLs a crawl is about.

package crawler

import (
	"fmt"
	"net/netip"
	"regexp"
	"strings"

	"github.com/seed-7440039f/frontier"
)

// Filter decides whether a URL is crawled. It is asked when a link is found, and
// again before its URL is fetched, so that a crawl resumed with other filters
// follows them. It is called from any goroutine.
type Filter interface {
	Allow(e frontier.Entry) bool
}

// FilterFunc makes a function a Filter.
type FilterFunc func(e frontier.Entry) bool

// Allow calls the function.
func (f FilterFunc) Allow(e frontier.Entry) bool { return f(e) }

// Scope is the usual Filter: what it does not name is not limited.
type Scope struct {
	// Hosts and Domains say where the crawl may go. A host is meant exactly, with
	// any port unless one is given; a domain with all hosts below it. If both
	// are empty it may go anywhere.
	Hosts, Domains []string
	// Include, if there is any, must match the URL; one match is enough.
	// No Exclude may match it.
	Include, Exclude []*regexp.Regexp
	// MaxDepth is the greatest number of links from a seed. Zero: no limit.
	MaxDepth int
	// MaxURL is the greatest length of a URL in bytes. Zero means 4096.
	MaxURL int
}

// scopeFilter is a Scope made quick to ask.
type scopeFilter struct {
	Scope
	hosts, domains map[string]bool
}

func newScopeFilter(s Scope) *scopeFilter {
	f := &scopeFilter{Scope: s, hosts: map[string]bool{}, domains: map[string]bool{}}
	for _, h := range s.Hosts {
		h = strings.ToLower(h)
		if addr, err := netip.ParseAddr(h); err == nil && addr.Is6() {
			h = "[" + addr.String() + "]" // as URLs have it
		}
		f.hosts[h] = true
	}
	for _, d := range s.Domains {
		f.domains[strings.ToLower(strings.TrimPrefix(d, "."))] = true
	}
	if f.MaxURL == 0 {
		f.MaxURL = 4096
	}
	return f
}

// Allow implements Filter.
func (f *scopeFilter) Allow(e frontier.Entry) bool { return f.why(e) == "" }

// why says why a URL is not in scope; it is empty if it is.
func (f *scopeFilter) why(e frontier.Entry) string {
	site := siteOf(e.URL)
	switch {
	case site == "":
		return "no host"
	case len(e.URL) > f.MaxURL:
		return fmt.Sprintf("%d bytes of URL; at most %d", len(e.URL), f.MaxURL)
	case f.MaxDepth > 0 && e.Depth > f.MaxDepth:
		return fmt.Sprintf("%d links from a seed; at most %d", e.Depth, f.MaxDepth)
	case !f.allowHost(site):
		return fmt.Sprintf("host %.100q", hostOf(site))
	}
	for _, re := range f.Exclude {
		if re.MatchString(e.URL) {
			return fmt.Sprintf("excluded by %.100q", re)
		}
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

func (f *scopeFilter) allowHost(site string) bool {
	if len(f.hosts) == 0 && len(f.domains) == 0 {
		return true
	}
	host := hostOf(site)
	scheme, name, _ := strings.Cut(site, "://")
	if name == host { // the scheme's own port, which may have been named all the same
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
