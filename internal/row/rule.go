package row

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"time"

	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/internal/quota"
	"github.com/seed-7440039f/frontier/storage"
)

// Rule holds an operator's settings for a scope. Zero fields are not set.
type Rule struct {
	Delay        Delay
	Concurrency  int
	Paused       uint8 // 1: on; 2: off
	Held         bool
	BlockedUntil int64 // Unix milliseconds
	Priority     int
	Priorities   [MaxPriorities + 1]uint8 // by a URL's own priority
	Limits       quota.Limits
	HostLimits   quota.Limits
	// Ended is the latest start of a period that ended under earlier HostLimits, in Unix
	// milliseconds. It is not a setting.
	Ended int64
}

// Delay is a delay policy. The zero Delay is none.
type Delay struct {
	Kind     DelayKind
	Factor   float64       // of Factor
	Min, Max time.Duration // Min belongs to Factor
}

// DelayKind is the policy of a Delay.
type DelayKind uint8

// The policies that can be stored.
const (
	NoDelay DelayKind = iota
	Fixed             // Max
	Factor            // Factor times the last fetch, from Min to Max
)

// fields has tags from base+1 to base+4.
func (d *Delay) fields(f *fields, base int) {
	number(f, base+1, &d.Kind, uint64(Factor))
	bits := math.Float64bits(d.Factor)
	number(f, base+2, &bits, math.MaxUint64)
	d.Factor = math.Float64frombits(bits)
	number(f, base+3, &d.Min, uint64(MaxDelay))
	number(f, base+4, &d.Max, uint64(MaxDelay))
	switch d.Kind {
	case NoDelay:
		f.require(*d == (Delay{}))
	case Fixed:
		f.require(*d == (Delay{Kind: Fixed, Max: d.Max}))
	case Factor:
		f.require(d.Factor >= 0 && !math.IsInf(d.Factor, 0) && d.Max >= d.Min)
	}
}

// limits has tags from base+1 to base+6.
func limits(f *fields, base int, l *quota.Limits) {
	number(f, base+1, &l.Waiting, math.MaxInt64)
	number(f, base+2, &l.Served, math.MaxInt64)
	number(f, base+3, &l.Bytes, math.MaxInt64)
	number(f, base+4, &l.Errors, math.MaxInt64)
	number(f, base+5, &l.Depth, math.MaxInt)
	number(f, base+6, &l.Period, uint64(MaxPeriod))
	f.require(l.Period == 0 || l.Period >= time.Millisecond)
}

func (r *Rule) fields(f *fields) {
	r.Delay.fields(f, 0)
	number(f, 5, &r.Concurrency, MaxConcurrency)
	number(f, 6, &r.Paused, 2)
	signed(f, 7, &r.BlockedUntil)
	number(f, 8, &r.Priority, MaxPriorities)
	priorities := string(bytes.TrimRight(r.Priorities[1:], "\x00")) // up to the last that is set
	text(f, 9, &priorities, MaxPriorities)
	copy(r.Priorities[1:], priorities)
	f.require(slices.Max(r.Priorities[:]) <= MaxPriorities)
	flag(f, 10, &r.Held)
	limits(f, 16, &r.Limits)
	limits(f, 32, &r.HostLimits)
	signed(f, 48, &r.Ended)
	f.require(r.Ended == 0 || r.HostLimits != quota.Limits{})
}

// Row returns the row of the rule with a key.
func (r *Rule) Row(key string) storage.Row {
	var f fields
	r.fields(&f)
	return storage.Row{Key: RuleKey + key, Value: f.row}
}

// ParseRule is the inverse of Row.
func ParseRule(key string, value []byte) (s Scope, r Rule, err error) {
	if s, err = ScopeOf(key); err != nil {
		return s, r, named(RuleKey+key, err)
	}
	f := readFields(value)
	r.fields(&f)
	if err = f.end(); err == nil && len(value) == 0 {
		err = ErrMalformed
	}
	return s, r, named(RuleKey+key, err)
}

// Group holds the settings and the state of a group.
type Group struct {
	Due         int64 // when it may be contacted, in Unix milliseconds; 0: at once
	Delay       Delay
	Concurrency int
}

func (g *Group) fields(f *fields) {
	g.Delay.fields(f, 0)
	number(f, 5, &g.Concurrency, MaxConcurrency)
	number(f, 6, &g.Due, instant.MaxMillis)
}

// Row returns the row of the group with a name.
func (g *Group) Row(name string) storage.Row {
	var f fields
	g.fields(&f)
	return storage.Row{Key: GroupKey + name, Value: f.row}
}

// ParseGroup is the inverse of Row.
func ParseGroup(name string, value []byte) (g Group, err error) {
	if CheckGroup(name) != nil {
		return g, Malformed(GroupKey + name)
	}
	f := readFields(value)
	g.fields(&f)
	return g, named(GroupKey+name, f.end())
}

// Crawl is a crawl and its settings.
type Crawl struct {
	ID uint32
	CrawlSettings
}

// CrawlSettings are the settings in the rule of a crawl.
type CrawlSettings struct {
	Weight int // 1 is the default
	Paused bool
	Limits quota.Limits
}

// DefaultCrawl is the settings of a crawl for which none were set.
var DefaultCrawl = CrawlSettings{Weight: 1}

func (c *Crawl) fields(f *fields) {
	more := max(0, c.Weight-1)
	number(f, 1, &more, MaxWeight-1)
	c.Weight = more + 1
	flag(f, 2, &c.Paused)
	limits(f, 16, &c.Limits)
}

// Row returns the crawl's row.
func (c *Crawl) Row() storage.Row {
	var f fields
	c.fields(&f)
	return storage.Row{Key: string(binary.BigEndian.AppendUint32([]byte(CrawlKey), c.ID)), Value: f.row}
}

// ParseCrawl is the inverse of Row. id is the key behind CrawlKey.
func ParseCrawl(id string, v []byte) (c Crawl, err error) {
	if len(id) != 4 {
		return c, Malformed(CrawlKey + id)
	}
	c.ID = binary.BigEndian.Uint32([]byte(id))
	f := readFields(v)
	c.fields(&f)
	return c, named(CrawlKey+id, f.end())
}
