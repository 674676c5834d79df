// This file holds the parsed file and selects a group. parse.go reads lines, and match.go matches
// patterns.

package robots

import (
	"net/http"
	"slices"
	"time"

	"github.com/seed-7440039f/frontier/internal/reply"
)

// Access is how a site answered the request for its robots.txt (RFC 9309 section 2.3.1). It
// determines how long a crawler should cache the result.
type Access int

const (
	// Available means the file was read and its rules apply.
	Available Access = iota
	// Unavailable means that there is no such file: everything is allowed.
	Unavailable
	// Unreachable means that the site could not answer: nothing is allowed for now, and the file
	// should be requested again.
	Unreachable
)

// String returns the RFC's word for a.
func (a Access) String() string {
	switch a {
	case Available:
		return "available"
	case Unavailable:
		return "unavailable"
	case Unreachable:
		return "unreachable"
	}
	return "unknown"
}

// Robots is a parsed robots.txt file.
//
// It is immutable and safe for concurrent use. The zero value is an empty file,
// which allows everything.
type Robots struct {
	groups   []group
	sitemaps []string
	access   Access
}

// group is one or more User-agent lines with their rules.
type group struct {
	agents []agent
	rules  []rule // in file order
}

// agent is one User-agent line.
type agent struct {
	name  string // a lower-case product token, or "*"
	delay time.Duration
	// hasDelay is apart from delay because Crawl-delay: 0 is an answer too.
	hasDelay bool
}

// FromStatus converts an HTTP answer to a Robots as RFC 9309 section 2.3.1 specifies:
//   - 2xx: the body is parsed
//   - 4xx, and 3xx with no more redirects to follow: everything is allowed
//   - 5xx, 429, 304, and anything else, such as 0 for no answer: nothing is allowed
//
// For 429, and for 420 and 430, which some services answer in its place, this departs from the RFC, which
// would allow everything: a site that asks for fewer requests should get none. A 304 says nothing about
// a file that was asked for without a condition. The RFC requires that a crawler follow at least five redirects, also to
// other hosts: pass the status of the last answer. FromStatus does not keep body.
func FromStatus(status int, body []byte) *Robots {
	switch {
	case status >= 200 && status < 300:
		return Parse(body)
	case status >= 300 && status < 500 && status != http.StatusNotModified && !reply.AsksForLess(status, 0):
		return &Robots{access: Unavailable}
	}
	return &Robots{access: Unreachable}
}

// Access returns whether the rules come from a file or from the lack of one.
func (r *Robots) Access() Access { return r.access }

// Sitemaps returns the values of all Sitemap lines, in file order without duplicates. They are as
// written: sites should give absolute URLs, but some are relative. The caller owns the slice.
func (r *Robots) Sitemaps() []string { return slices.Clone(r.sitemaps) }

// Group returns the rules for a crawler, given as its product token ("examplebot") or as a whole
// User-Agent header, from which [ProductToken] takes the token. Tokens must match completely,
// ignoring case. The result is never nil. Building it takes time and memory proportional to its
// rules, so keep it.
func (r *Robots) Group(agent string) *Rules {
	if r.access == Unreachable {
		out := &Rules{rules: []rule{newRule("/", false, 0)}}
		out.arrange()
		return out
	}
	token := ProductToken(agent)
	out := &Rules{}
	if token != "" && r.merge(out, token) {
		out.named = true
	} else {
		r.merge(out, "*")
	}
	out.rules = slices.Clip(out.rules)
	out.arrange()
	return out
}

// merge adds all groups of one token to out and reports whether there was one.
func (r *Robots) merge(out *Rules, token string) bool {
	found := false
	for i := range r.groups {
		g := &r.groups[i]
		named := false
		for _, a := range g.agents {
			if a.name != token {
				continue
			}
			named = true
			if a.hasDelay {
				out.delay = max(out.delay, a.delay) // the kinder of two contradicting lines
				out.hasDelay = true
			}
		}
		if named {
			found = true
			out.rules = append(out.rules, g.rules...)
		}
	}
	return found
}

// Rules holds the rules for one crawler on one site.
//
// They are immutable and safe for concurrent use. The zero value allows everything.
//
// Invariants:
//   - rules are in the order of [rule.compare], so the first that matches decides
//   - nodes are in the order of their texts
//   - wild has the rules with a wildcard or a $, a node's adjacent, in the order of rules
type Rules struct {
	rules    []rule
	nodes    []node
	wild     []int32
	delay    time.Duration
	hasDelay bool
	named    bool
}

// Decision is the decision about one URL, with its reason.
type Decision struct {
	Allowed bool
	// Pattern is the deciding pattern in percent-encoded form; empty if no rule matched.
	Pattern string
	// Line is the deciding rule's line in the file, counted from 1; 0 if no line decided.
	Line int
}

// Allowed reports whether target may be fetched. A target that begins with a slash is a path with its
// query ("/a?b=c"); anything else is a URL, with or without its scheme. A fragment is ignored. Allowed
// allocates only for targets that are not in percent-encoded form already.
func (r *Rules) Allowed(target string) bool { return r.Decide(target).Allowed }

// Decide returns Allowed's decision with its reason, for logs and for answers to site owners.
func (r *Rules) Decide(target string) Decision {
	path := requestPath(target)
	if path == "/robots.txt" {
		return Decision{Allowed: true}
	}
	path = urlForm.Normalize(path)
	i := r.decide(path, patience)
	if i == noRule {
		return Decision{Allowed: true}
	}
	rule := &r.rules[i]
	return Decision{Allowed: rule.allow, Pattern: rule.String(), Line: int(rule.line)}
}

// CrawlDelay returns the delay that the site asks for between requests, and whether it asks for
// one. It is at most [MaxCrawlDelay]. If there are several Crawl-delay lines, the longest applies.
// RFC 9309 does not define this line, but sites use it.
func (r *Rules) CrawlDelay() (time.Duration, bool) { return r.delay, r.hasDelay }

// Named reports whether the file names the crawler, so that the groups for * do not apply. A
// crawler with several names can try each in turn.
func (r *Rules) Named() bool { return r.named }

// Len returns the number of rules.
func (r *Rules) Len() int { return len(r.rules) }

// Size returns about how many bytes the rules hold in memory, for bounded caches.
func (r *Rules) Size() int {
	n := rulesSize + cap(r.rules)*ruleSize + cap(r.nodes)*nodeSize + cap(r.wild)*4
	for i := range r.rules {
		n += len(r.rules[i].pattern)
	}
	return n
}
