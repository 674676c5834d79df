// This file refuses entries because of limits: of URLs that wait, and of depth. What
// is admitted takes its room at once, not when it is durable, so that calls which
// meet each other stay within the limits together.

package frontier

import (
	"errors"
	"fmt"
)

// hostRules are the limits that concern a host.
type hostRules struct {
	host   string
	scopes []*scopeRule
	own    *Limits
	depth  bool // one of them is of depth
}

// limitLocked takes the entries out of o that limits refuse, and returns what is
// wrong with each. A URL's own next record is never refused, nor one that is forced.
func (f *Frontier) limitLocked(o *op) error {
	c := f.core
	if c.limits == nil || o.unlimited {
		return nil
	}
	var errs []error
	var of hostRules
	kept := 0
	o.reserved = o.reserved[:0]
	for i := range o.entries {
		e := &o.entries[i]
		if e.host != of.host {
			of = c.limitsFor(e.host)
		}
		x := c.findCrawl(e.crawl)
		if err := f.refusesLocked(&of, x, e); err != nil {
			if e.marked {
				f.known.remove(e.mark)
			}
			c.stats.Refused++
			b, _ := decodeBody(e.body) // we encoded it
			errs = append(errs, &EntryError{Index: e.index, URL: shortened(string(b.url)), Err: err})
			continue
		}
		o.reserved = append(o.reserved, c.reserve(&of, x, e))
		if kept < i {
			o.entries[kept] = *e
		}
		kept++
	}
	o.entries = o.entries[:kept]
	return errors.Join(errs...)
}

// limitsFor finds the limits that concern a host, which need not be known.
func (c *core) limitsFor(host string) (of hostRules) {
	of.host = host
	t := c.controls.table.Load()
	if t == nil || t.n[fieldLimits]+t.n[fieldHostLimits] == 0 {
		return of
	}
	t.visit(bytesOf(host), func(r *scopeRule) bool {
		if r.use != nil {
			of.scopes = append(of.scopes, r)
			of.depth = of.depth || r.Limits.Depth > 0
		}
		if of.own == nil && r.HostLimits != (Limits{}) {
			of.own = &r.HostLimits
			of.depth = of.depth || of.own.Depth > 0
		}
		return true
	})
	return of
}

// refusesLocked tells which limit refuses an entry, if one does.
func (f *Frontier) refusesLocked(of *hostRules, x *crawl, e *newEntry) error {
	c := f.core
	if e.index < 0 || e.force {
		return nil
	}
	if of.depth || x != nil && x.use != nil && x.settings.Limits.Depth > 0 {
		if err := tooDeep(of, x, e); err != nil {
			return err
		}
	}
	if e.due != 0 && e.due > c.date(f.last) {
		return nil
	}
	for _, r := range of.scopes {
		if n := c.waitingIn(r) + r.use.pending; r.Limits.Waiting > 0 && n >= r.Limits.Waiting {
			f.tellFullLocked(r.use, r.event())
			return fmt.Errorf("%w: %d URLs of %v wait, %d may", ErrLimit, n, r.scope, r.Limits.Waiting)
		}
	}
	if own := of.own; own != nil && own.Waiting > 0 {
		n := int64(0)
		if p := c.limits.joining[e.host]; p != nil {
			n = *p
		}
		if id := c.lookup(e.hash, e.host); id != 0 {
			n += int64(c.hosts.at(id).waiting)
		}
		if n >= own.Waiting {
			return fmt.Errorf("%w: %d URLs of host %s wait, %d may", ErrLimit, n, e.host, own.Waiting)
		}
	}
	if x != nil && x.use != nil {
		if n, most := x.stats.Waiting+x.use.pending, x.settings.Limits.Waiting; most > 0 && n >= most {
			f.tellFullLocked(x.use, Event{Crawl: x.id, Reason: "crawl "})
			return fmt.Errorf("%w: %d URLs of crawl %d wait, %d may", ErrLimit, n, x.id, most)
		}
	}
	return nil
}

// tooDeep tells which limit of depth refuses an entry, if one does.
func tooDeep(of *hostRules, x *crawl, e *newEntry) error {
	b, _ := decodeBody(e.body) // we encoded it
	deeper := func(l *Limits) bool { return l.Depth > 0 && b.depth > l.Depth }
	for _, r := range of.scopes {
		if deeper(&r.Limits) {
			return fmt.Errorf("%w: depth %d; %v has at most %d", ErrLimit, b.depth, r.scope, r.Limits.Depth)
		}
	}
	if of.own != nil && deeper(of.own) {
		return fmt.Errorf("%w: depth %d; host %s has at most %d", ErrLimit, b.depth, e.host, of.own.Depth)
	}
	if x != nil && deeper(&x.settings.Limits) {
		return fmt.Errorf("%w: depth %d; crawl %d has at most %d", ErrLimit, b.depth, x.id, x.settings.Limits.Depth)
	}
	return nil
}

// tellFullLocked tells that URLs are refused, once until there was room again.
func (f *Frontier) tellFullLocked(u *usage, e Event) {
	if !u.full {
		u.full = true
		e.Kind, e.Reason = EventLimitReached, e.Reason+"waiting"
		f.emitLocked(e)
	}
}

// waitingIn is how many URLs of a rule's scope wait. Those of a domain are not known
// before they are counted.
func (c *core) waitingIn(r *scopeRule) int64 {
	switch {
	case !r.scope.named:
		return c.stats.Waiting
	case r.scope.domain:
		return r.use.domain.urls
	}
	if id := c.lookup(c.hash(bytesOf(r.scope.name)), r.scope.name); id != 0 {
		return int64(c.hosts.at(id).waiting)
	}
	return 0
}

// reserve counts an entry that is on its way to the store for the limits of URLs
// that wait, and returns where.
func (c *core) reserve(of *hostRules, x *crawl, e *newEntry) (at []*int64) {
	take := func(n *int64) { *n++; at = append(at, n) }
	for _, r := range of.scopes {
		if r.Limits.Waiting > 0 {
			r.use.full = false
			take(&r.use.pending)
		}
	}
	if of.own != nil && of.own.Waiting > 0 {
		if c.limits.joining[e.host] == nil {
			c.limits.joining[e.host] = new(int64)
		}
		take(c.limits.joining[e.host])
	}
	if x != nil && x.use != nil && x.settings.Limits.Waiting > 0 {
		x.use.full = false
		take(&x.use.pending)
	}
	return at
}

// unreserve ends what reserve began for entry i of o.
func (c *core) unreserve(o *op, i int) {
	if i >= len(o.reserved) {
		return
	}
	for _, n := range o.reserved[i] {
		*n--
	}
	o.reserved[i] = nil
	host := o.entries[i].host
	if n := c.limits.joining[host]; n != nil && *n == 0 {
		delete(c.limits.joining, host)
	}
}

// refusing reports whether limits refuse new URLs of a host because too many wait.
func (c *core) refusing(id uint32) (full bool) {
	if c.limits == nil {
		return false
	}
	h := c.hosts.at(id)
	of := c.limitsFor(string(c.name(h)))
	for _, r := range of.scopes {
		full = full || r.Limits.Waiting > 0 && c.waitingIn(r)+r.use.pending >= r.Limits.Waiting
	}
	return full || of.own != nil && of.own.Waiting > 0 && int64(h.waiting) >= of.own.Waiting
}
