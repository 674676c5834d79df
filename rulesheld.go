// This file keeps hosts aside that may not be served because of a rule.
//
// A rule is looked up where a host would be handed out: who is held then leaves
// front queues, ready lists and heaps for place held. Nobody loops over hosts to
// put a rule in force. When a rule lets hosts go, those of them that are held are
// found in domain order, a few under one lock.

package frontier

import (
	"github.com/google/btree"
)

const (
	reviewAtOnce  = 64 // held hosts that are looked at again under one lock
	shelveAtOnce  = 64 // hosts that are held before their time under one lock
	unblockAtOnce = 16 // blocks that end under one lock
)

// holdReason says why a host is in place held; it is the host's pos.
type holdReason = int32

const (
	heldPaused  holdReason = iota // until somebody resumes it
	heldBlocked                   // until a time that heldHosts.blocks tells
	heldLimited                   // until a time that limitBook.ends tells
	heldSpent                     // until a limit without a period is raised
	holdReasons
)

// heldHosts are the hosts in place held.
//
// The zero value has none.
type heldHosts struct {
	tree    *btree.BTreeG[uint32]     // in domain order; nil as long as there was none
	hosts   [holdReasons]int          // how many
	urls    [holdReasons]int64        // that wait of them, of crawls that run
	blocks  *btree.BTreeG[*scopeRule] // rules with a block that has not passed, by its end; nil as long as there was none
	reviews []review                  // scopes whose hosts may be free to go
	scratch []uint32
}

// review is a scope whose held hosts are looked at again, those behind key.
type review struct {
	scope Scope
	key   []byte
}

// heldURLs is how many URLs wait that may not be handed out now, as far as is
// known.
func (c *core) heldURLs() int64 {
	n := c.pausedURLs
	for _, urls := range c.held.urls {
		n += urls
	}
	return n
}

// heldForGood is how many of them only an operator can set free.
func (c *core) heldForGood() int64 {
	return c.held.urls[heldPaused] + c.held.urls[heldSpent] + c.pausedURLs - c.limitedURLs
}

// countHeld notes that n URLs more (or, negative, less) of a crawl wait at hosts
// that are held.
func (c *core) countHeld(x *crawl, why holdReason, n int64) {
	if x.held[why] += n; x.runs() {
		c.held.urls[why] += n
	}
}

func (c *core) countHeldOf(h *host, why holdReason, sign int64) {
	for q := h.queues; q != 0; q = c.queues.at(q).sibling {
		x := c.queues.at(q)
		c.countHeld(c.crawlOf(x), why, sign*int64(x.waiting))
	}
}

func (x *heldHosts) size() int64 {
	if x.tree == nil {
		return 0
	}
	return int64(x.tree.Len()) * 6 // as hostOrder
}

// holding reports whether any rule may keep a host from being served.
func (c *controls) holding() bool {
	t := c.table.Load()
	return t != nil && t.n[fieldPaused]+t.n[fieldBlocked] > 0
}

// hold says until which date the rules keep a host from being served, and why: never if
// it is paused, 0 if they do not. Of a pause and a block the
// pause counts: the end of the block would change nothing.
func (c *controls) hold(host []byte, now int64) (until int64, why holdReason) {
	t := c.table.Load()
	if t == nil {
		return 0, heldPaused
	}
	t.visit(host, func(r *scopeRule) bool {
		if r.until > max(now, until) {
			until, why = r.until, heldBlocked
		}
		if r.Paused == On {
			until, why = never, heldPaused
		}
		return r.Paused == Unset
	})
	return until, why
}

// mayServe reports whether no rule keeps a host from being served now.
func (c *core) mayServe(id uint32, now int64) bool {
	if !c.holding() {
		return true
	}
	until, _ := c.ruledOut(id, now)
	return until == 0
}

// setAside puts a host, which is in no structure, aside if a rule says so.
func (c *core) setAside(id uint32, now int64) bool {
	if !c.holding() {
		return false
	}
	until, why := c.ruledOut(id, now)
	if until == 0 {
		return false
	}
	h := c.hosts.at(id)
	c.dropSlot(h, now)
	c.put(h, held)
	h.served = 0
	c.keep(id, h, why, until)
	for q := h.queues; q != 0; q = c.queues.at(q).sibling {
		c.evict(q)
	}
	return true
}

// keep files a host that is in place held.
func (c *core) keep(id uint32, h *host, why holdReason, until int64) {
	if c.held.tree == nil {
		c.held.tree = btree.NewG(64, c.hostBefore)
	}
	if h.pos = why; why == heldLimited {
		c.limits.ends.push(timeItem{at: c.date(until), id: id})
	}
	c.held.tree.ReplaceOrInsert(id)
	c.held.hosts[why]++
	c.countHeldOf(h, why, 1)
}

// letGo is the inverse of keep.
func (c *core) letGo(id uint32, h *host) {
	if h.pos == heldLimited {
		c.limits.ends.remove(c.limits.endAt[id])
		delete(c.limits.endAt, id)
	}
	c.held.tree.Delete(id)
	c.held.hosts[h.pos]--
	c.countHeldOf(h, h.pos, -1)
}

// shelve holds back hosts that would be the next to become due, so that nobody
// waits for them. With many of them it needs several calls.
func (c *core) shelve(now int64) {
	if !c.holding() {
		return
	}
	for range shelveAtOnce {
		if !c.shelveFirst(&c.pace, now) && !c.shelveFirst(&c.parks, now) {
			return
		}
	}
	c.more = true
}

func (c *core) shelveFirst(t *timeHeap, now int64) bool {
	if t.len() == 0 {
		return false
	}
	id := t.Items[0].id
	if id&groupBit != 0 {
		g := c.groups.at(id &^ groupBit)
		if id = g.due; id == 0 {
			id = g.hosts
		}
		id = c.grouped.at(id).id
	}
	if c.mayServe(id, now) {
		return false
	}
	c.detach(id)
	return c.setAside(id, now)
}

// ruled notes that a rule took the place of another, which may be nil.
func (c *core) ruled(old, r *scopeRule, now int64) {
	if c.held.blocks == nil {
		c.held.blocks = btree.NewG(32, func(a, b *scopeRule) bool {
			return a.until < b.until || a.until == b.until && a.key < b.key
		})
	}
	if old != nil && old.until != 0 {
		c.held.blocks.Delete(old)
	}
	if r.until > c.date(now) {
		c.held.blocks.ReplaceOrInsert(r)
	}
	c.review(r.scope)
	if r.scope.named && !r.scope.domain && (r.Paused == On || r.until > c.date(now)) {
		c.withdraw(r.scope.name, now)
	}
}

// withdraw sets a host aside at once that a rule of its own holds if it is ready:
// it has a slot of its group, and others wait for that. Hosts that a wider rule
// holds give it up when it would be their turn.
func (c *core) withdraw(name string, now int64) {
	id := c.lookup(c.hash(bytesOf(name)), name)
	if id == 0 || c.hosts.at(id).place != ready || c.mayServe(id, now) {
		return
	}
	c.detach(id)
	c.setAside(id, now)
}

// unblockAt is when the next block or period of a limit ends that a host or crawl
// waits for.
func (c *core) unblockAt() int64 {
	at := never
	if c.limits != nil {
		at = min(c.limits.ends.min(), c.limits.crawlEnds.min())
	}
	if c.held.hosts[heldBlocked] > 0 {
		if r, ok := c.held.blocks.Min(); ok {
			at = min(at, r.until)
		}
	}
	return c.moment(at)
}

// unblock ends the blocks and periods whose time has come, and lets held hosts go
// that may.
func (c *core) unblock(now int64) {
	if !c.endBlocks(now) || c.limits != nil && !c.lift(now) {
		c.more = true
		return
	}
	for n := reviewAtOnce; n > 0 && len(c.held.reviews) > 0; {
		n -= c.reviewSome(n, now)
	}
}

// endBlocks ends the blocks whose time has come, and reports whether it came to the
// end.
func (c *core) endBlocks(now int64) bool {
	if c.held.blocks == nil {
		return true
	}
	for n := 0; ; n++ {
		r, ok := c.held.blocks.Min()
		if !ok || r.until > c.date(now) {
			return true
		}
		if n == unblockAtOnce {
			return false
		}
		ended := *r
		ended.Rule, ended.until = r.at(c.date(now)), 0
		c.ruled(c.controls.put(&ended), &ended, now)
	}
}

// reviewHost looks again at a host that is held.
func (c *core) reviewHost(id uint32, now int64) {
	h := c.hosts.at(id)
	switch until, why := c.ruledOut(id, now); {
	case until == 0:
		c.detach(id)
		c.settle(id, now)
	case why != h.pos || why == heldLimited:
		c.letGo(id, h)
		c.keep(id, h, why, until)
	}
}

// reviewSome looks at some hosts of the first review, and at how many.
func (c *core) reviewSome(n int, now int64) int {
	x := &c.held
	r := &x.reviews[0]
	ids := c.heldIn(x.scratch[:0], r.scope, string(r.key), n)
	x.scratch = ids[:0]
	for i, id := range ids {
		if i == len(ids)-1 {
			r.key = c.orderKey(r.key[:0], id)
		}
		c.reviewHost(id, now)
	}
	if len(ids) < n {
		if x.reviews = x.reviews[1:]; len(x.reviews) == 0 {
			x.reviews = nil
		}
	}
	return len(ids) + 1
}

// heldIn appends up to n held hosts of a scope whose keys come after key.
func (c *core) heldIn(dst []uint32, s Scope, key string, n int) []uint32 {
	if !s.named {
		return c.inOrder(c.held.tree, dst, key, "", n)
	}
	if own := reversed(s.name); key < own {
		if id := c.lookup(c.hash(bytesOf(s.name)), s.name); id != 0 && c.hosts.at(id).place == held {
			dst = append(dst, id)
			n--
		}
	}
	if s.domain && n > 0 {
		dst = c.inOrder(c.held.tree, dst, key, s.key(), n)
	}
	return dst
}

// unfinished reports whether there is more to do right now than one lock allows.
func (c *core) unfinished() bool { return c.more || len(c.held.reviews) > 0 }
