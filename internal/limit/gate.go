package limit

import (
	"github.com/seed-7440039f/frontier/internal/hostkey"
	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/internal/quota"
)

// Gate applies the limits of waiting URLs and of depth to new URLs of a host. An admission takes
// its room at once, not when it is durable, so that concurrent calls together stay within the
// limits. A Gate is valid as long as the lock is held.
type Gate struct {
	book    *Book
	host    string
	scopes  []*scope
	own     *quota.Limits // nil: the host has no separate limits
	depth   bool          // there is a limit of depth
	waiting bool          // there is a limit of waiting URLs
}

// Gate returns the gate of a host, which may be unknown.
func (b *Book) Gate(host string) Gate {
	g := Gate{book: b, host: host}
	add := func(l *quota.Limits) {
		g.depth, g.waiting = g.depth || l.Depth > 0, g.waiting || l.Waiting > 0
	}
	own := b.visit(hostkey.Bytes(host), func(s *scope) {
		g.scopes = append(g.scopes, s)
		add(&s.together)
	})
	if own != nil {
		g.own = &own.each.Limits
		add(g.own)
	}
	return g
}

// Refusal is the limit that refuses a URL.
type Refusal struct {
	Of   Subject
	N    int64 // URLs that wait, or the URL's depth
	Most int64
}

// Waiting holds numbers of waiting URLs: all, those of the host, and those of the crawl.
type Waiting struct{ All, Host, Crawl int64 }

// Host returns the key of the gate's host.
func (g *Gate) Host() string { return g.host }

// LimitsDepth reports whether a URL's depth matters.
func (g *Gate) LimitsDepth(crawl uint32) bool {
	x := g.book.crawls[crawl]
	return g.depth || x != nil && x.limits.Depth > 0
}

// LimitsWaiting reports whether it matters how many URLs wait.
func (g *Gate) LimitsWaiting(crawl uint32) bool {
	x := g.book.crawls[crawl]
	return g.waiting || x != nil && x.limits.Waiting > 0
}

// TooDeep returns the limit of depth that refuses a URL of a crawl, if there is one.
func (g *Gate) TooDeep(crawl uint32, depth int) (r Refusal, refused bool) {
	deeper := func(l *quota.Limits) bool {
		r.N, r.Most = int64(depth), int64(l.Depth)
		return l.Depth > 0 && depth > l.Depth
	}
	for _, s := range g.scopes {
		if r.Of = s.use.of; deeper(&s.together) {
			return r, true
		}
	}
	if g.own != nil && deeper(g.own) {
		r.Of = ofHost(g.host)
		return r, true
	}
	if x := g.book.crawls[crawl]; x != nil && deeper(&x.limits) {
		r.Of = x.of
		return r, true
	}
	return Refusal{}, false
}

// Full returns the limit of waiting URLs that refuses a URL of a crawl, if there is one. It reports
// to the caller that a limit is reached, once until there is room again.
func (g *Gate) Full(crawl uint32, w Waiting) (r Refusal, refused bool) {
	r, u, refused := g.fullFor(w)
	if x := g.book.crawls[crawl]; !refused && x != nil && x.limits.Waiting > 0 {
		r, u = Refusal{Of: x.of, N: w.Crawl + x.pending, Most: x.limits.Waiting}, &x.usage
		refused = r.N >= r.Most
	}
	if refused && u != nil && !u.full {
		u.full = true
		g.book.caller.Turned(u.of, quota.Reached, "waiting", instant.Never)
	}
	return r, refused
}

// Closed reports whether all URLs of the host are refused, whatever their crawl, because too many
// are waiting.
func (g *Gate) Closed(w Waiting) bool {
	_, _, refused := g.fullFor(w)
	return refused
}

// fullFor is Full without limits of crawls. The usage is nil if the limit is that of each host.
func (g *Gate) fullFor(w Waiting) (r Refusal, u *usage, refused bool) {
	for _, s := range g.scopes {
		r = Refusal{Of: s.use.of, N: s.waiting(w) + s.use.pending, Most: s.together.Waiting}
		if r.Most > 0 && r.N >= r.Most {
			return r, s.use, true
		}
	}
	if g.own == nil || g.own.Waiting == 0 {
		return r, nil, false
	}
	r = Refusal{Of: ofHost(g.host), N: w.Host, Most: g.own.Waiting}
	if n := g.book.joining[g.host]; n != nil {
		r.N += *n
	}
	return r, nil, r.N >= r.Most
}

// waiting returns the number of waiting URLs of a scope that includes the gate's host. For a domain
// it is unknown before they are counted.
func (s *scope) waiting(w Waiting) int64 {
	switch {
	case !s.of.Named:
		return w.All
	case s.of.Domain:
		return s.use.domain.URLs()
	}
	return w.Host
}

// Reservation is where a URL on its way to the store is counted.
type Reservation []*int64

// Reserve counts a URL of a crawl that is on its way to the store.
func (g *Gate) Reserve(crawl uint32) (at Reservation) {
	take := func(n *int64) { *n++; at = append(at, n) }
	admit := func(u *usage, l *quota.Limits) {
		if l.Waiting > 0 {
			u.full = false
			take(&u.pending)
		}
	}
	for _, s := range g.scopes {
		admit(s.use, &s.together)
	}
	if g.own != nil && g.own.Waiting > 0 {
		if g.book.joining[g.host] == nil {
			g.book.joining[g.host] = new(int64)
		}
		take(g.book.joining[g.host])
	}
	if x := g.book.crawls[crawl]; x != nil {
		admit(&x.usage, &x.limits)
	}
	return at
}

// Unreserve reverts Reserve for a URL of a host.
func (b *Book) Unreserve(at Reservation, host string) {
	for _, n := range at {
		*n--
	}
	if n := b.joining[host]; n != nil && *n == 0 {
		delete(b.joining, host)
	}
}
