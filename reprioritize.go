// This file lets an operator say with which priority the URLs of hosts and domains
// are served, whatever the Prioritizer said.
//
// That is a rule like any other. Nothing is rewritten on disk: URLs keep the
// priority of their own, and so return to it when the rule is taken back; what
// changes is the level of their queues, which says in which front queue they wait.

package frontier

import (
	"errors"
	"fmt"
)

// Priorities says, by a URL's own priority, with which one it is served instead:
// Priorities[p-1] for priority p. Zero leaves it as it is.
type Priorities [maxPriorities]uint8

// SetPriority makes p the priority with which the URLs of a scope are served, those
// that wait and later ones: 1 to Options.Priorities. It takes back what Reprioritize
// said of the scope before. 0 takes that back and itself: then wider scopes say, or
// the URLs' own priorities count. URLs of Immediate stay that. It is durable and in
// force when it returns; on the way, the hosts of a large scope follow one after the
// other.
func (f *Frontier) SetPriority(s Scope, p int) error {
	return f.changeRule("set priority", s, func(r *Rule) { r.Priority, r.Priorities = p, Priorities{} })
}

// Reprioritize is SetPriority for the URLs of a scope whose own priority is from. It
// counts before an earlier SetPriority of the same scope. With to 0 it is taken back.
func (f *Frontier) Reprioritize(s Scope, from, to int) error {
	if from < 1 || from > f.opts.Priorities || to < 0 || to > f.opts.Priorities {
		return fmt.Errorf("frontier: reprioritize %v from %d to %d; want priorities of 1 to %d", s, from, to, f.opts.Priorities)
	}
	return f.changeRule("reprioritize", s, func(r *Rule) { r.Priorities[from-1] = uint8(to) })
}

// complete takes those from another that are not set.
func (x *Priorities) complete(other *Priorities) {
	for i, p := range other {
		if x[i] == 0 {
			x[i] = p
		}
	}
}

// checkPriorities says what is wrong with the priorities of a rule.
func (r *Rule) checkPriorities(levels int) error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if r.Priority < 0 || r.Priority > levels {
		bad("Priority is %d; want 1 to %d, or 0 to leave it to wider scopes", r.Priority, levels)
	}
	for i, p := range r.Priorities {
		if int(p) > levels || p > 0 && i >= levels {
			bad("Priorities[%d] is %d; want at most %d", i, p, levels)
		}
	}
	return errors.Join(errs...)
}

// priority returns the priority with which URLs of a host are served whose own is p.
func (c *controls) priority(host []byte, p uint8) uint8 {
	t := c.table.Load()
	if t == nil || t.n[fieldPriority]+t.n[fieldPriorities] == 0 {
		return p
	}
	as := p
	t.visit(host, func(r *scopeRule) bool {
		switch {
		case r.Priorities[p-1] != 0:
			as = r.Priorities[p-1]
		case r.Priority != 0:
			as = uint8(r.Priority)
		default:
			return true
		}
		return false
	})
	return as
}

// levelOf is the level of which a host's URLs of a priority are.
func (c *core) levelOf(h *host, priority uint8) uint8 {
	if priority == Immediate {
		return c.immediate()
	}
	return min(c.controls.priority(c.name(h), priority), uint8(c.cfg.levels))
}

// relevel gives the queues of a host the levels that the rules say.
func (c *core) relevel(id uint32, now int64) {
	h := c.hosts.at(id)
	changed := false
	for qid := h.queues; qid != 0; qid = c.queues.at(qid).sibling {
		q := c.queues.at(qid)
		if level := c.levelOf(h, q.priority); level != q.level {
			c.setLevel(h, qid, level)
			changed = true
		}
	}
	if changed && h.place == queued { // its place among those of its group depends on it
		c.detach(id)
		c.settle(id, now)
	}
}

func (c *core) setLevel(h *host, qid uint32, level uint8) {
	q := c.queues.at(qid)
	kind := tokens
	if h.place == ready {
		kind = readies
	}
	listed := q.waiting > 0 && (h.place == ready || h.place == unbound)
	if listed {
		c.delist(kind, qid)
	}
	x, n := c.crawlOf(q), int64(q.waiting)
	for _, by := range [...][]int64{c.stats.WaitingBy, x.stats.WaitingBy} {
		by[q.level-1] -= n
		by[level-1] += n
	}
	q.level = level
	if listed {
		c.enlist(kind, qid)
	}
}
