// Package limit counts how much of their limits scopes, hosts and crawls have used, reports which
// limits are reached and until when, and refuses URLs for which there is no room. It owns the
// limits by scope and crawl, their use, the ends of periods for which hosts and crawls wait, and
// the number of URLs on their way to the store. It identifies hosts by number and key, and crawls
// by number. Its caller provides the number of waiting URLs, and stores the rows.
//
// Times are dates: nanoseconds since the epoch of the book. It has no lock: callers hold the
// frontier's.
package limit

import (
	"math"
	"time"

	"github.com/seed-7440039f/frontier/internal/hostkey"
	"github.com/seed-7440039f/frontier/internal/quota"
	"github.com/seed-7440039f/frontier/internal/row"
	"github.com/seed-7440039f/frontier/internal/rule"
)

// Kind is the kind of a Subject.
type Kind uint8

// The kinds of subjects.
const (
	Scope Kind = iota // the hosts of a scope together
	Host              // one host alone
	Crawl
)

// Subject is a scope or crawl with limits.
type Subject struct {
	Kind  Kind
	Scope row.Scope // of a host alone: that host
	Crawl uint32
}

// OfScope is the subject of the hosts of a scope together.
func OfScope(s row.Scope) Subject { return Subject{Scope: s} }

// OfCrawl is the subject of a crawl.
func OfCrawl(id uint32) Subject { return Subject{Kind: Crawl, Crawl: id} }

func ofHost(name string) Subject {
	return Subject{Kind: Host, Scope: row.Scope{Name: name, Named: true}}
}

// Caller receives the reports of a book. It is called rarely.
type Caller struct {
	// Turned reports that the limit named by what was reached, or that none is reached any more.
	// until is when the period ends, or instant.Never if there is none.
	Turned func(of Subject, turn quota.Turn, what string, until int64)
	// Recheck reports that withheld hosts of a scope may be free, or wait for another end.
	Recheck func(s row.Scope)
}

// Book holds the limits and counts. The caller creates it when limits are set for the first time.
type Book struct {
	caller Caller
	epoch  time.Time
	stored bool // there are rows

	scopes  rule.Table[scope]
	hosts   map[uint32]*hostUsage // by number: hosts with separate limits
	crawls  map[uint32]*crawl     // by number
	joining map[string]*int64     // by host key: URLs on their way to the store

	HostEnds  *Ends // set by the caller
	CrawlEnds *Ends // set by the caller only while the crawl has limits

	domains  int      // usages that count the URLs of a domain
	changes  int      // of limits for each host so far
	youngest uint64   // number of the youngest lease
	dirty    []*usage // usages whose rows are outdated
	saving   []*usage // usages whose rows are being written
}

// usage is how much of its limits a scope or crawl has used, and how URLs are admitted under them.
type usage struct {
	quota.Usage
	of       Subject
	key      string // of its row; empty: its limits were taken back
	dirty    bool   // the row is out of date: it is in Book.dirty
	full     bool   // URLs were refused since there was room last
	pending  int64  // URLs on their way to the store
	domain   quota.Census
	counting chan struct{} // closed when the census in progress ends; nil: there is none
}

// scope holds the limits of a scope, and how much of them is used.
type scope struct {
	of       row.Scope
	together quota.Limits
	use      *usage // of together; nil: there are none
	each     Each
}

// The settings of a scope.
const (
	togetherField rule.Fields = 1 << iota
	eachField
)

func (s *scope) fields() (f rule.Fields) {
	if s.together != (quota.Limits{}) {
		f |= togetherField
	}
	if s.each.Limits != (quota.Limits{}) {
		f |= eachField
	}
	return f
}

// Each holds the limits that apply to each host of a scope separately.
type Each struct {
	quota.Limits
	// Ended is the history of earlier limits: the periods of hosts that began up to this time ended
	// under them. It matters for hosts that were not examined since the change.
	Ended   int64
	changed int // Book.changes when Ended was changed
}

// NoneEnded is Each.Ended if there were no earlier limits.
const NoneEnded = math.MinInt64

// Then returns the limits that replace e. It reports whether periods may have ended under e that
// would continue under the new ones.
func (e Each) Then(l quota.Limits, now int64) (next Each, change bool) {
	if l == (quota.Limits{}) || e.Limits == (quota.Limits{}) {
		return Each{Limits: l, Ended: NoneEnded}, false
	}
	next = Each{Limits: l, Ended: e.Ended, changed: e.changed}
	if e.Limits == l || e.Period == 0 {
		return next, false
	}
	next.Ended = max(e.Ended, now-int64(e.Period))
	return next, true
}

// counts reports whether what was used since a time still counts at another.
func (e *Each) counts(since, now int64) bool {
	return since > e.Ended && (e.Period == 0 || now-since < int64(e.Period))
}

// hostUsage is how much of its separate limits a host has used.
type hostUsage struct {
	quota.Usage
	seen  int   // Book.changes when the usage was looked at last
	rests int64 // see Rest
}

// crawl holds the limits of a crawl, and how much of them is used.
type crawl struct {
	usage
	limits quota.Limits
}

// What is in memory of one, about.
const (
	scopeBytes = 512
	hostBytes  = 96
	crawlBytes = 384
)

// New returns an empty book. stored means that there is a store, which needs Rows. Leases up to
// youngest do not count.
func New(caller Caller, epoch time.Time, stored bool, youngest uint64) *Book {
	return &Book{
		caller: caller, epoch: epoch, stored: stored, youngest: youngest, HostEnds: newEnds(), CrawlEnds: newEnds(),
		hosts: map[uint32]*hostUsage{}, crawls: map[uint32]*crawl{}, joining: map[string]*int64{},
	}
}

// Size returns the approximate memory of the book in bytes.
func (b *Book) Size() int64 {
	if b == nil {
		return 0
	}
	return int64(b.scopes.Load().Len())*scopeBytes + int64(len(b.hosts))*hostBytes + int64(len(b.crawls))*crawlBytes +
		b.HostEnds.Size() + b.CrawlEnds.Size()
}

// Limiting reports whether any scope has limits.
func (b *Book) Limiting() bool { return b.scopes.Load().Set(togetherField | eachField) }

// SetScope sets the limits of a scope. Leases up to youngest do not count for new ones.
func (b *Book) SetScope(of row.Scope, together, each quota.Limits, youngest uint64, now int64) {
	key := of.Key()
	old := b.scopes.Get(key)
	if old == nil {
		old = &scope{}
	}
	s := &scope{of: of, together: together, use: old.use}
	b.endPeriod(s.use, &old.together, youngest, now)
	if s.use != nil && (together.Waiting == 0 || !of.Domain) {
		b.endCensus(s.use)
	}
	was := old.each
	if was.Limits == (quota.Limits{}) {
		was = b.Around(of)
	}
	var change bool
	if s.each, change = was.Then(each, now); change {
		b.changes++
		s.each.changed = b.changes
	}
	switch {
	case together == (quota.Limits{}):
		if s.use != nil {
			s.use.key, s.use = "", nil // its row is deleted
		}
	case s.use == nil:
		u := OfScope(of)
		s.use = &usage{of: u, key: u.RowKey(), Usage: quota.New(youngest)}
	default:
		b.turn(s.use, &s.together, now)
	}
	b.scopes.Put(key, s, s.fields())
}

// Exactly returns the limits for each host set for exactly this scope; the zero value if there are
// none.
func (b *Book) Exactly(of row.Scope) Each {
	if s := b.scopes.Get(of.Key()); s != nil {
		return s.each
	}
	return Each{}
}

// Around returns the limits for each host set by the closest scope around this one.
func (b *Book) Around(of row.Scope) (e Each) {
	b.scopes.Load().Visit(hostkey.Bytes(of.Name), func(s *scope) bool {
		within := s.of == of || of.Domain && s.of.Named && !s.of.Domain
		if !within && s.each.Limits != (quota.Limits{}) {
			e = s.each
		}
		return e.Limits == (quota.Limits{})
	})
	return e
}

// RestoreEnded restores the history of the limits for each host of a scope from its row; 0: there
// is none.
func (b *Book) RestoreEnded(of row.Scope, ms int64) {
	s := b.scopes.Get(of.Key())
	if s == nil {
		return
	}
	s.each.Ended, s.each.changed = NoneEnded, 0
	if ms != 0 {
		b.changes = 1
		s.each.Ended, s.each.changed = b.date(ms), 1 // no host was looked at since
	}
}

// SetCrawl sets the limits of a crawl. Leases up to youngest do not count for new ones.
func (b *Book) SetCrawl(id uint32, l quota.Limits, youngest uint64, now int64) {
	x := b.crawls[id]
	switch {
	case l == (quota.Limits{}):
		if x != nil {
			b.CrawlEnds.Remove(id)
			x.key = "" // its row is deleted
			delete(b.crawls, id)
		}
	case x == nil:
		of := OfCrawl(id)
		b.crawls[id] = &crawl{usage: usage{of: of, key: of.RowKey(), Usage: quota.New(youngest)}, limits: l}
	default:
		b.endPeriod(&x.usage, &x.limits, youngest, now)
		x.limits = l
	}
}

// find returns the usage of a scope or crawl, and its limits; nil if it has none.
func (b *Book) find(of Subject) (*usage, *quota.Limits) {
	if b == nil {
		return nil, nil
	}
	if of.Kind == Crawl {
		if x := b.crawls[of.Crawl]; x != nil {
			return &x.usage, &x.limits
		}
	} else if s := b.scopes.Get(of.Scope.Key()); s != nil && s.use != nil {
		return s.use, &s.together
	}
	return nil, nil
}

// visit calls fn with the scopes of a host that have common limits for all their hosts, and returns
// the scope that sets the separate limits of the host, or nil.
func (b *Book) visit(host []byte, fn func(*scope)) (own *scope) {
	t := b.scopes.Load()
	if !t.Set(togetherField | eachField) {
		return nil
	}
	t.Visit(host, func(s *scope) bool {
		if s.use != nil {
			fn(s)
		}
		if own == nil && s.each.Limits != (quota.Limits{}) {
			own = s
		}
		return true
	})
	return own
}

// each returns the separate limits of a host; nil if there are none.
func (b *Book) each(host []byte) *Each {
	if s := b.scopes.Load().First(host, eachField); s != nil {
		return &s.each
	}
	return nil
}

// usageUnder returns how much of the given limits a host has used; nil if nothing was counted.
func (b *Book) usageUnder(id uint32, e *Each) *hostUsage {
	u := b.hosts[id]
	if u == nil {
		return nil
	}
	if u.Begun() && u.seen < e.changed && u.Since() <= e.Ended {
		u.Restart(b.youngest)
	}
	u.seen = b.changes
	return u
}

// own returns the separate limits of a host, and how much of them it has used; nil if there are none.
func (b *Book) own(id uint32, host []byte) (*Each, *hostUsage) {
	e := b.each(host)
	if e == nil {
		return nil, nil
	}
	return e, b.usageUnder(id, e)
}
