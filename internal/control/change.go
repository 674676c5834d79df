// This file has the changes of rules and crawls. One begins with its rows, and is in force when they are
// durable. Until then the next change of the same scope or crawl starts from it.

package control

import (
	"strings"

	"github.com/seed-7440039f/frontier/internal/hostkey"
	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/internal/limit"
	"github.com/seed-7440039f/frontier/internal/quota"
	"github.com/seed-7440039f/frontier/internal/row"
	"github.com/seed-7440039f/frontier/storage"
)

// pending is, by key, what the changes say that are on their way to the store. If one fails, so do those
// that were submitted after it.
type pending[K comparable, V any] map[K]*pendingChanges[V]

type pendingChanges[V any] struct {
	latest V
	n      int
}

func (p pending[K, V]) begin(key K, latest V) {
	if p[key] == nil {
		p[key] = &pendingChanges[V]{}
	}
	p[key].latest = latest
	p[key].n++
}

func (p pending[K, V]) end(key K) {
	if p[key].n--; p[key].n == 0 {
		delete(p, key)
	}
}

// Latest is the rule of a scope at a date as of the last change that was begun: the next one starts from
// there.
func (c *Controls) Latest(s row.Scope, now int64) Rule {
	r := c.rules.Get(s.Key())
	if p := c.changes[s.Key()]; p != nil {
		r = p.latest
	}
	return r.at(now)
}

// WiderStops reports whether scopes around s, as of Latest, keep its hosts from being served at a date.
func (c *Controls) WiderStops(s row.Scope, now int64) bool {
	for s.Named {
		s = wider(s)
		r := c.Latest(s, now)
		if r.stops() || r.Paused == off {
			return r.stops()
		}
	}
	return false
}

// wider is the next scope around a host or domain.
func wider(s row.Scope) row.Scope {
	if !s.Domain {
		return row.Scope{Name: s.Name, Domain: true, Named: true}
	}
	key := hostkey.Reversed(s.Name)
	if dot := strings.LastIndexByte(key, '.'); dot > 0 {
		return row.Scope{Name: hostkey.Reversed(key[:dot]), Domain: true, Named: true}
	}
	return row.Scope{}
}

// Begin begins a change to a rule, which it completes, and returns its rows. Enforce or Drop ends it.
// youngest is the number of the last lease.
func (c *Controls) Begin(r *Rule, youngest uint64, now int64) []storage.Row {
	date := c.core.Date(now)
	old := c.Latest(r.Scope, date)
	c.complete(r, date)
	c.keepEnded(r, date)
	c.changes.begin(r.Scope.Key(), r)
	return c.limited([]storage.Row{r.Row(r.Scope.Key())}, limit.OfScope(r.Scope), old.Limits, r.Limits, youngest, date)
}

// keepEnded makes a rule, which is the next of its scope, say which periods ended under earlier limits.
func (c *Controls) keepEnded(r *Rule, date int64) {
	var was limit.Each
	b := c.core.Limits
	if p := c.changes[r.Scope.Key()]; p != nil {
		was = p.latest.each
	} else if b != nil {
		was = b.Exactly(r.Scope)
	}
	if b != nil && was.Limits == (quota.Limits{}) {
		was = b.Around(r.Scope)
	}
	r.each, _ = was.Then(r.HostLimits, date)
	if r.Ended = 0; r.each.Ended != limit.NoneEnded {
		r.Ended = instant.Millis(c.core.Clock.Day(r.each.Ended))
	}
}

// limited ends the period of what is about to get other limits, if it is over, and adds to rows that of its
// use if it loses them.
func (c *Controls) limited(rows []storage.Row, of limit.Subject, old, l quota.Limits, youngest uint64, date int64) []storage.Row {
	if b := c.core.Limits; b != nil {
		b.EndPeriod(of, youngest, date)
	}
	if l == (quota.Limits{}) && old != (quota.Limits{}) {
		rows = append(rows, storage.Row{Key: of.RowKey()})
	}
	return rows
}

// Enforce puts a rule in force whose change is durable, and returns what it replaces.
func (c *Controls) Enforce(r *Rule, youngest uint64, now int64) (old Rule) {
	c.Drop(r)
	return c.put(r, youngest, now)
}

// Drop ends a change that is not durable.
func (c *Controls) Drop(r *Rule) { c.changes.end(r.Scope.Key()) }

// Restore puts the rule of a row in force. It returns false if the rule sets nothing any more.
func (c *Controls) Restore(s row.Scope, stored row.Rule, youngest uint64, now int64) bool {
	r := Rule{Scope: s, Rule: stored, Block: instant.FromMillis(stored.BlockedUntil)}
	c.complete(&r, c.core.Date(now))
	if r.fields() == 0 {
		return false
	}
	c.put(&r, youngest, now)
	if b := c.core.Limits; b != nil {
		b.RestoreEnded(s, stored.Ended)
	}
	return true
}

func (c *Controls) put(r *Rule, youngest uint64, now int64) (old Rule) {
	*r = r.at(c.core.Date(now)) // its block may have passed on the way
	c.core.Cfg.Rules = c        // asked from the first rule on
	c.core.SetLimits(r.Scope, r.Limits, r.HostLimits, youngest, now)
	old = c.rules.Put(r.Scope.Key(), r, r.fields()).at(instant.None)
	c.core.Ruled(r.Scope, old.until, r.until, r.stops(), now)
	return old
}

// EndBlock ends the block of a scope, whose time has come.
func (c *Controls) EndBlock(s row.Scope, now int64) {
	ended := c.rules.Get(s.Key()).at(now)
	c.rules.Put(s.Key(), &ended, ended.fields())
}

// LatestCrawl is Latest for the settings of a crawl.
func (c *Controls) LatestCrawl(id uint32) row.CrawlSettings {
	if p := c.crawls[id]; p != nil {
		return p.latest
	}
	return c.Crawl(id)
}

// Crawl returns the settings of a crawl that are in force.
func (c *Controls) Crawl(id uint32) row.CrawlSettings {
	if x := c.core.FindCrawl(id); x != nil {
		return x.Settings
	}
	return row.DefaultCrawl
}

// BeginCrawl is Begin for the settings of a crawl. EnforceCrawl or DropCrawl ends the change.
func (c *Controls) BeginCrawl(x *row.Crawl, youngest uint64, now int64) []storage.Row {
	old := c.LatestCrawl(x.ID)
	c.crawls.begin(x.ID, x.CrawlSettings)
	return c.limited([]storage.Row{x.Row()}, limit.OfCrawl(x.ID), old.Limits, x.Limits, youngest, c.core.Date(now))
}

// EnforceCrawl is Enforce for a crawl.
func (c *Controls) EnforceCrawl(x *row.Crawl, youngest uint64, now int64) {
	c.DropCrawl(x)
	c.core.SetCrawl(x.ID, x.CrawlSettings, youngest, now)
}

// DropCrawl is Drop for a crawl.
func (c *Controls) DropCrawl(x *row.Crawl) { c.crawls.end(x.ID) }
