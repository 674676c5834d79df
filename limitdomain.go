// This file knows how many URLs wait of a domain whose limits ask for it. Of all
// hosts together, of one, and of a crawl that is known anyway.
//
// The hosts of the domain are counted in their order, some at a time. Meanwhile a
// change of a host that was counted counts, one of others does not.

package frontier

import "fmt"

// domainCount is how many URLs of a domain wait. The zero value has not begun.
type domainCount struct {
	urls   int64
	begun  bool
	all    bool          // else only hosts up to cursor are counted
	cursor string        // order key of a host
	round  int           // how often it has begun or ended
	done   chan struct{} // closed when the counting that is under way ends; nil: none is
}

// countDomains notes that n URLs more (or, negative, less) of a host wait.
func (c *core) countDomains(id uint32, n int64) {
	t := c.controls.table.Load()
	if t == nil {
		return
	}
	key := ""
	t.visit(c.name(c.hosts.at(id)), func(r *scopeRule) bool {
		if u := r.use; u != nil && u.domain.begun && r.scope.domain {
			if !u.domain.all && key == "" {
				key = string(c.orderKey(nil, id))
			}
			if u.domain.all || key <= u.domain.cursor {
				u.domain.urls += n
			}
		}
		return true
	})
}

func (c *core) beginDomain(u *usage) {
	c.uncountDomain(u)
	u.domain.begun = true
	u.domain.round++
	c.limits.domains++
}

// uncountDomain ends the counting of a domain's URLs.
func (c *core) uncountDomain(u *usage) {
	if u.domain.begun {
		c.limits.domains--
		u.domain = domainCount{round: u.domain.round + 1, done: u.domain.done}
	}
}

// countDomain counts the URLs of a domain if its limits ask for it and nobody has. It
// returns when that is so.
func (f *Frontier) countDomain(s Scope) error {
	c := f.core
	for {
		f.lock()
		r, ok := f.controls.rule(s.ruleKey())
		if f.closed || !ok || r.use == nil || r.Limits.Waiting == 0 || r.use.domain.all {
			closed := f.closed
			f.mu.Unlock()
			if closed {
				return ErrClosed
			}
			return nil
		}
		u := r.use
		if done := u.domain.done; done != nil { // somebody else does
			f.mu.Unlock()
			<-done
			continue
		}
		c.beginDomain(u)
		round, done := u.domain.round, make(chan struct{})
		u.domain.done = done
		f.mu.Unlock()
		err := f.sweepHosts(s, func(id uint32, _ int64) bool {
			if d := &u.domain; d.round == round {
				d.urls += int64(c.hosts.at(id).waiting)
				d.cursor = string(c.orderKey(nil, id))
			}
			return true
		})
		f.mu.Lock()
		u.domain.done = nil
		close(done)
		u.domain.all = err == nil && u.domain.round == round
		f.mu.Unlock()
		if err != nil {
			return fmt.Errorf("frontier: count %v: %w", s, err)
		}
	}
}

// countAllDomains is countDomain for all rules after an opening.
func (c *core) countAllDomains() {
	t := c.controls.table.Load()
	if t == nil || t.n[fieldLimits] == 0 {
		return
	}
	t.tree.Ascend(func(r *scopeRule) bool {
		if r.use != nil && r.scope.domain && r.Limits.Waiting > 0 {
			c.beginDomain(r.use)
			r.use.domain.all = true
		}
		return true
	})
	if c.limits.domains == 0 {
		return
	}
	for id := uint32(1); id <= c.hosts.top; id++ {
		if h := c.hosts.at(id); h.nameLen > 0 && h.waiting > 0 {
			c.countDomains(id, int64(h.waiting))
		}
	}
}
