// Package limit counts what scopes, hosts and crawls use of their limits, says which are
// used up and until when, and refuses URLs for which there is no room. It owns the limits
// by scope and crawl, what is used of them, the ends of periods that hosts and crawls
// wait for, and the number of URLs on their way to the store. It knows hosts by number
// and key, and crawls by number; its caller says how many URLs wait, and stores the rows.
//
// Times are dates: nanoseconds since the epoch of the book. No lock: callers hold the
// frontier's.
package limit

import (
	"math"
	"time"

	"github.com/seed-7440039f/frontier/internal/quota"
	"github.com/seed-7440039f/frontier/internal/row"
	"github.com/seed-7440039f/frontier/internal/rule"
)

// Kind says what a Subject is.
type Kind uint8

// The kinds of subjects.
const (
	Scope Kind = iota // the hosts of a scope together
	Host              // one host alone
	Crawl
)

// Subject is what has limits.
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

// Caller is what a book reports, and to whom. It is called rarely.
type Caller struct {
	// Turned reports that a limit is reached, which what names, or that none is any more.
	// Until is when the period ends, instant.Never if that ends nothing.
	Turned func(of Subject, turn quota.Turn, what string, until int64)
	// Recheck reports that hosts of a scope which are withheld may be free, or wait for
	// another end.
	Recheck func(s row.Scope)
}

// Book is what is counted. The caller makes one when limits are set for the first time.
type Book struct {
	caller Caller
	epoch  time.Time
	stored bool // there are rows

	scopes  rule.Table[scope]
	hosts   map[uint32]*hostUsage // by number: of hosts with limits of their own
	crawls  map[uint32]*crawl     // by number
	joining map[string]*int64     // by host key: URLs on their way to the store

	HostEnds  *Ends // set by the caller
	CrawlEnds *Ends // set by the caller, only while the crawl has limits

	domains  int      // usages that count the URLs of a domain
	changes  int      // of limits for each host so far
	youngest uint64   // number of the youngest lease
	dirty    []*usage // whose rows are out of date
	saving   []*usage // whose rows are being written
}

// usage is what is used of limits by a scope or crawl, and how URLs are admitted under
// them.
type usage struct {
	quota.Usage
	of       Subject
	key      string // of its row; empty: its limits were taken back
	dirty    bool   // the row is out of date: it is in Book.dirty
	full     bool   // URLs were refused since there was room last
	pending  int64  // URLs on their way to the store
	domain   quota.Census
	counting chan struct{} // closed when the census that is under way ends; nil: none is
}

// scope is the limits of a scope, and what is used of them.
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

// Each is the limits that each host of a scope has alone.
type Each struct {
	quota.Limits
	// Ended is the past of earlier limits: under them the periods of hosts had ended that
	// began up to then. It matters for hosts that were not looked at since the change.
	Ended   int64
	changed int // Book.changes when Ended was changed
}

// NoneEnded is Each.Ended if there were no earlier limits.
const NoneEnded = math.MinInt64

// Then is the limits that take the place of these. It reports whether periods may have
// ended with these that would go on with those.
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

// counts reports whether what was used since a time counts at another one.
func (e *Each) counts(since, now int64) bool {
	return since > e.Ended && (e.Period == 0 || now-since < int64(e.Period))
}

// hostUsage is what one host has used of what it may do alone.
type hostUsage struct {
	quota.Usage
	seen  int   // Book.changes when the usage was looked at last
	rests int64 // see Rest
}

// crawl is the limits of a crawl, and what is used of them.
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

// New returns an empty book. Stored says that there is a store, for which Rows are
// needed. Leases up to youngest do not count.
func New(caller Caller, epoch time.Time, stored bool, youngest uint64) *Book {
	return &Book{
		caller: caller, epoch: epoch, stored: stored, youngest: youngest, HostEnds: newEnds(), CrawlEnds: newEnds(),
		hosts: map[uint32]*hostUsage{}, crawls: map[uint32]*crawl{}, joining: map[string]*int64{},
	}
}

// Size is how many bytes the book takes, about.
func (b *Book) Size() int64 {
	if b == nil {
		return 0
	}
	return int64(b.scopes.Load().Len())*scopeBytes + int64(len(b.hosts))*hostBytes + int64(len(b.crawls))*crawlBytes +
		b.HostEnds.Size() + b.CrawlEnds.Size()
}

// Limiting reports whether any scope has limits.
func (b *Book) Limiting() bool { return b.scopes.Load().Set(togetherField | eachField) }

// SetScope gives a scope its limits. Leases up to youngest do not count for new ones.
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

// Exactly is what each host of exactly this scope may do; the zero value if nothing is
// said.
func (b *Book) Exactly(of row.Scope) Each {
	if s := b.scopes.Get(of.Key()); s != nil {
		return s.each
	}
	return Each{}
}

// Around is what the scopes around one say of each host: the closest that says anything.
func (b *Book) Around(of row.Scope) (e Each) {
	b.scopes.Load().Visit(bytesOf(of.Name), func(s *scope) bool {
		within := s.of == of || of.Domain && s.of.Named && !s.of.Domain
		if !within && s.each.Limits != (quota.Limits{}) {
			e = s.each
		}
		return e.Limits == (quota.Limits{})
	})
	return e
}

// RestoreEnded gives the limits for each host of a scope the past that is in its row; 0:
// there is none.
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

// SetCrawl gives a crawl its limits. Leases up to youngest do not count for new ones.
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

// find returns what a scope or crawl uses, and its limits; nil if it has none.
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

// visit calls fn with the scopes of a host whose hosts have limits together, and returns
// the one that says what the host may do alone, or nil.
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

// each is what a host may do alone; nil if nothing is said.
func (b *Book) each(host []byte) *Each {
	if s := b.scopes.Load().First(host, eachField); s != nil {
		return &s.each
	}
	return nil
}

// usageUnder is what a host has used under limits; nil if nothing was counted.
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

// own is what a host may do alone, and what it has used of that; nil if nothing is said.
func (b *Book) own(id uint32, host []byte) (*Each, *hostUsage) {
	e := b.each(host)
	if e == nil {
		return nil, nil
	}
	return e, b.usageUnder(id, e)
}
