package limit

import (
	"unsafe"

	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/internal/quota"
)

// Gate is the limits that new URLs of a host meet: of URLs that wait, and of depth. What
// is admitted takes its room at once, not when it is durable, so that calls which meet
// each other stay within the limits together. It is good for as long as the lock is held.
type Gate struct {
	book    *Book
	host    string
	scopes  []*scope
	own     *quota.Limits // nil: the host has none alone
	depth   bool          // one of them is of depth
	waiting bool          // one of them is of URLs that wait
}

// Gate returns the gate of a host, which need not be known.
func (b *Book) Gate(host string) Gate {
	g := Gate{book: b, host: host}
	add := func(l *quota.Limits) {
		g.depth, g.waiting = g.depth || l.Depth > 0, g.waiting || l.Waiting > 0
	}
	own := b.visit(bytesOf(host), func(s *scope) {
		g.scopes = append(g.scopes, s)
		add(&s.together)
	})
	if own != nil {
		g.own = &own.each.Limits
		add(g.own)
	}
	return g
}

func bytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

// Refusal is the limit that refuses a URL.
type Refusal struct {
	Of   Subject
	N    int64 // URLs that wait, or the URL's depth
	Most int64
}

// Waiting is how many URLs wait: all, those of the host, and those of the crawl.
type Waiting struct{ All, Host, Crawl int64 }

// Host is the key of the host whose gate this is.
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

// TooDeep says which limit of depth refuses a URL of a crawl, if one does.
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

// Full says which limit of URLs that wait refuses one of a crawl, if one does. It
// reports to the caller that a limit is reached, once until there is room again.
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

// Closed reports whether URLs of the host are refused, whatever their crawl, because too
// many wait.
func (g *Gate) Closed(w Waiting) bool {
	_, _, refused := g.fullFor(w)
	return refused
}

// fullFor is Full but for crawls. The usage is nil if the limit is that of the host alone.
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

// waiting is how many URLs wait of a scope that has the host whose gate it is. Those of a
// domain are not known before they are counted.
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

// Unreserve ends what Reserve began for a URL of a host.
func (b *Book) Unreserve(at Reservation, host string) {
	for _, n := range at {
		*n--
	}
	if n := b.joining[host]; n != nil && *n == 0 {
		delete(b.joining, host)
	}
}
