// This file keeps what an operator says about hosts, domains and all hosts: one
// rule for each scope, with any number of settings.
//
// Rules lie in a B-tree under their names with the labels reversed, so that a
// domain is one range. Of each setting a host has the most specific: that of its
// own rule, then that of its closest domain, and so on, then that of All. Nobody
// loops over hosts: a rule is looked up when its answer is needed.

package frontier

import (
	"bytes"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/google/btree"
)

// Switch is a setting that is on, off, or left to wider scopes.
type Switch uint8

// The values of a Switch.
const (
	Unset Switch = iota
	On
	Off
)

// Rule is what is set for one scope. Zero fields are not set: the next wider
// scope that sets them counts.
type Rule struct {
	// Delay is how long hosts are left alone, instead of Options.Delay: one of
	// the policies FixedDelay and FactorDelay. Nil: not set.
	Delay DelayPolicy
	// Concurrency is how many leases a host may have at once, 1 to 1024. Zero:
	// not set.
	Concurrency int
	// Paused hosts get no leases while it is On. Off lets the scope run although
	// a wider scope is paused or blocked.
	Paused Switch
	// BlockedUntil keeps hosts from getting leases before. A time that has passed
	// is as if it were not set. Zero: not set.
	BlockedUntil time.Time
	// Priority is what the scope's URLs are served with, whatever their own is, 1
	// to Options.Priorities; Priorities is the same by their own priority, and
	// counts before Priority. Zero: not set.
	Priority   int
	Priorities Priorities
	// Limits is what the hosts of the scope may do together: all scopes around a
	// host count, not only that which RuleOf tells. HostLimits is what each of them may do alone.
	Limits     Limits
	HostLimits Limits
}

// ruleField is one setting of a Rule: how it is told and stored. A new setting
// needs a line in ruleFields, and is checked in Rule.validate.
type ruleField struct {
	tag byte // in the store; never used for another setting
	set func(r *Rule) bool
	// copy gives dst the setting of src.
	copy func(dst, src *Rule)
	put  func(b []byte, r *Rule) []byte
	get  func(b []byte, r *Rule) error // of exactly what put appended
}

// Indexes of ruleFields.
const (
	fieldDelay = iota
	fieldConcurrency
	fieldPaused
	fieldBlocked
	fieldPriority
	fieldPriorities
	fieldLimits
	fieldHostLimits
	fieldCount
)

// empty reports whether nothing is set.
func (r *Rule) empty() bool {
	for i := range ruleFields {
		if ruleFields[i].set(r) {
			return false
		}
	}
	return true
}

// scopeRule is a rule where it lies in the tree.
type scopeRule struct {
	key   string // Scope.ruleKey
	scope Scope
	Rule
	until int64  // date of BlockedUntil; 0: not set
	use   *usage // guarded by Frontier.mu; nil: there are no Limits
	// Under earlier HostLimits the periods of hosts had ended that began up to ended,
	// ns since Open. That matters for who did not look since limitBook.changes was
	// changed.
	ended   int64
	changed int
}

// ruleTable is the rules at one moment. It is never changed.
type ruleTable struct {
	tree *btree.BTreeG[*scopeRule]
	n    [fieldCount]int // how many rules set each field
}

// controls are the rules in force. Readers take no lock: writers, who hold
// Frontier.mu, replace the table.
type controls struct {
	table atomic.Pointer[ruleTable]
}

// ruleBytes is what a rule takes in memory, about.
const ruleBytes = 256

// size is how many bytes the rules take, about.
func (c *controls) size() int64 {
	if t := c.table.Load(); t != nil {
		return int64(t.tree.Len()) * ruleBytes
	}
	return 0
}

func newRuleTree() *btree.BTreeG[*scopeRule] {
	return btree.NewG(32, func(a, b *scopeRule) bool { return a.key < b.key })
}

// setting returns the table, or nil if no rule sets the field: then there is
// nothing to look up.
func (c *controls) setting(field int) *ruleTable {
	if t := c.table.Load(); t != nil && t.n[field] > 0 {
		return t
	}
	return nil
}

// rule returns the rule of exactly this scope.
func (c *controls) rule(key string) (*scopeRule, bool) {
	t := c.table.Load()
	if t == nil {
		return nil, false
	}
	return t.tree.Get(&scopeRule{key: key})
}

// put puts a rule in force in place of the one with its key, which it returns. An
// empty rule only ends that one.
func (c *controls) put(r *scopeRule) (old *scopeRule) {
	t := &ruleTable{}
	if was := c.table.Load(); was != nil {
		t.tree, t.n = was.tree.Clone(), was.n
	} else {
		t.tree = newRuleTree()
	}
	if r.empty() {
		old, _ = t.tree.Delete(r)
	} else {
		old, _ = t.tree.ReplaceOrInsert(r)
	}
	for i := range ruleFields {
		if ruleFields[i].set(&r.Rule) {
			t.n[i]++
		}
		if old != nil && ruleFields[i].set(&old.Rule) {
			t.n[i]--
		}
	}
	c.table.Store(t)
	return old
}

// ruleProbe is what a look-up needs and must not allocate.
type ruleProbe struct {
	pivot scopeRule
	buf   [260]byte
}

var ruleProbes = sync.Pool{New: func() any { return &ruleProbe{} }}

// visit calls fn with the rules of a host, the most specific first, until fn
// returns false.
func (t *ruleTable) visit(host []byte, fn func(*scopeRule) bool) {
	p := ruleProbes.Get().(*ruleProbe)
	defer ruleProbes.Put(p)
	name := appendReversed(p.buf[:0], host)
	found := func(n int, end byte) bool { // looks for the rule of name[:n] and end
		p.buf[n] = end
		p.pivot.key = unsafe.String(&p.buf[0], n+1)
		r, ok := t.tree.Get(&p.pivot)
		return !ok || fn(r)
	}
	if !found(len(name), hostEnd) {
		return
	}
	for n := len(name); n > 0; n = bytes.LastIndexByte(name[:n], '.') {
		if !found(n, '.') {
			return
		}
	}
	p.pivot.key = ""
	if r, ok := t.tree.Get(&p.pivot); ok {
		fn(r)
	}
}

// of returns the most specific rule of a host that sets a field, or nil.
func (t *ruleTable) of(host []byte, field int) (found *scopeRule) {
	t.visit(host, func(r *scopeRule) bool {
		if ruleFields[field].set(&r.Rule) {
			found = r
		}
		return found == nil
	})
	return found
}

// delay returns the most specific rule's policy for a host, or nil.
func (c *controls) delay(host string) DelayPolicy {
	if t := c.setting(fieldDelay); t != nil {
		if r := t.of(bytesOf(host), fieldDelay); r != nil {
			return r.Delay
		}
	}
	return nil
}

// concurrency returns how many leases the rules allow a host, or 0 if they do
// not say.
func (c *controls) concurrency(host []byte) int {
	if t := c.setting(fieldConcurrency); t != nil {
		if r := t.of(host, fieldConcurrency); r != nil {
			return r.Concurrency
		}
	}
	return 0
}

// effective returns what the rules say of a host.
func (c *controls) effective(host string, now int64) (out Rule) {
	t := c.table.Load()
	if t == nil {
		return out
	}
	t.visit(bytesOf(host), func(r *scopeRule) bool {
		rule := r.at(now)
		if out.Priority == 0 { // else that of the narrower scope counts for all
			out.Priorities.complete(&rule.Priorities)
		}
		rule.Priorities = Priorities{}
		runs := out.Paused == Off // whatever wider scopes say
		for i := range ruleFields {
			f := &ruleFields[i]
			if i == fieldBlocked && runs {
				continue
			}
			if !f.set(&out) && f.set(&rule) {
				f.copy(&out, &rule)
			}
		}
		return true
	})
	return out
}

// at is the rule as it is at a date: without a block that has passed.
func (r *scopeRule) at(now int64) Rule {
	out := r.Rule
	if r.until <= now {
		out.BlockedUntil = time.Time{}
	}
	return out
}
