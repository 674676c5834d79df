// This file keeps what an operator says about hosts, domains and all hosts: one
// rule for each scope, with any number of settings.
//
// For each setting the most specific rule of a host applies: its own, then that of its
// closest domain, and so on up to that of All. No loop over hosts puts a rule in force: a
// rule is looked up when its answer is needed.

package frontier

import (
	"errors"
	"fmt"
	"time"

	"github.com/google/btree"
	"github.com/seed-7440039f/frontier/internal/hostkey"
	"github.com/seed-7440039f/frontier/internal/hostorder"
	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/internal/limit"
	"github.com/seed-7440039f/frontier/internal/row"
	"github.com/seed-7440039f/frontier/internal/rule"
	"github.com/seed-7440039f/frontier/internal/timeheap"
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
	// Delay determines how long hosts are left alone, in place of Options.Delay: a
	// FixedDelay or FactorDelay. Nil: not set.
	Delay DelayPolicy
	// Concurrency is the number of leases that a host may have at once, 1 to 1024. Zero:
	// not set.
	Concurrency int
	// Paused hosts get no leases while it is On. Off lets the scope run although
	// a wider scope is paused, held or blocked.
	Paused Switch
	// Held hosts get no leases either. It is for programs, beside the operator's Paused: Pause and
	// Resume leave it as it is. False: not set.
	Held bool
	// BlockedUntil keeps hosts from getting leases before that time. A time that has
	// passed counts as not set. Zero: not set.
	BlockedUntil time.Time
	// Priority is the priority with which the scope's URLs, waiting and later ones, are
	// served, in place of their own: 1 to Options.Priorities. Zero: not set.
	Priority int
	// Priorities does the same depending on a URL's own priority, and precedes Priority.
	Priorities PriorityMap
	// Limits bound what the hosts of the scope do together: the limits of all scopes
	// around a host apply, not only those that RuleOf returns. HostLimits bound what each
	// host does alone.
	Limits     Limits
	HostLimits Limits
	// Weight is the share of a crawl, and may be set for the scope of a Crawl only: while
	// several crawls have URLs that may be fetched now, each gets hand-outs in proportion
	// to its Weight, whatever the priorities. 1 to 1000. Zero means 1.
	Weight int
}

// ruleField is one setting of a Rule. A new setting needs a line in ruleFields and in
// row.Rule, and is checked in Rule.check.
type ruleField struct {
	set  func(r *Rule) bool
	copy func(dst, src *Rule) // gives dst the setting of src
}

// Indexes of ruleFields.
const (
	fieldDelay = iota
	fieldConcurrency
	fieldPaused
	fieldHeld
	fieldBlocked
	fieldPriority
	fieldPriorities
	fieldLimits
	fieldHostLimits
	fieldCount
)

var ruleFields = [fieldCount]ruleField{
	fieldDelay: {
		set:  func(r *Rule) bool { return r.Delay != nil },
		copy: func(dst, src *Rule) { dst.Delay = src.Delay },
	},
	fieldConcurrency: {
		set:  func(r *Rule) bool { return r.Concurrency != 0 },
		copy: func(dst, src *Rule) { dst.Concurrency = src.Concurrency },
	},
	fieldPaused: {
		set:  func(r *Rule) bool { return r.Paused != Unset },
		copy: func(dst, src *Rule) { dst.Paused = src.Paused },
	},
	fieldHeld: {
		set:  func(r *Rule) bool { return r.Held },
		copy: func(dst, src *Rule) { dst.Held = src.Held },
	},
	fieldBlocked: {
		set:  func(r *Rule) bool { return !r.BlockedUntil.IsZero() },
		copy: func(dst, src *Rule) { dst.BlockedUntil = src.BlockedUntil },
	},
	fieldPriority: {
		set:  func(r *Rule) bool { return r.Priority != 0 },
		copy: func(dst, src *Rule) { dst.Priority = src.Priority },
	},
	fieldPriorities: {
		set:  func(r *Rule) bool { return r.Priorities != PriorityMap{} },
		copy: func(dst, src *Rule) { dst.Priorities = src.Priorities },
	},
	fieldLimits: {
		set:  func(r *Rule) bool { return r.Limits != Limits{} },
		copy: func(dst, src *Rule) { dst.Limits = src.Limits },
	},
	fieldHostLimits: {
		set:  func(r *Rule) bool { return r.HostLimits != Limits{} },
		copy: func(dst, src *Rule) { dst.HostLimits = src.HostLimits },
	},
}

// check returns an error for a rule that must not take effect.
func (r *Rule) check(now time.Time) error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if r.Delay != nil {
		if wrong := checkDelay("Delay", r.Delay); len(wrong) > 0 {
			errs = append(errs, wrong...)
		} else if storedDelay(r.Delay).Kind == row.NoDelay {
			bad("Delay is a %T, which cannot be stored; want FixedDelay or FactorDelay", r.Delay)
		}
	}
	if r.Concurrency < 0 || r.Concurrency > maxConcurrency {
		bad("Concurrency is %d; want 1 to %d, or 0 to leave it to wider scopes", r.Concurrency, maxConcurrency)
	}
	if r.Paused > Off {
		bad("Paused is %d; want Unset, On or Off", r.Paused)
	}
	if t := r.BlockedUntil; !t.IsZero() && (!t.After(now) || t.Sub(now) > maxBlock) {
		bad("BlockedUntil is %s; want a time within 100 years from %s", t.Format(time.RFC3339), now.Format(time.RFC3339))
	}
	if r.Weight != 0 {
		bad("Weight is %d; only a crawl has one", r.Weight)
	}
	errs = append(errs, r.Limits.check("Limits"), r.HostLimits.check("HostLimits"))
	return errors.Join(errs...)
}

// fields are the settings of a rule, one bit each by its place in ruleFields.
func (r *Rule) fields() (f rule.Fields) {
	for i := range ruleFields {
		if ruleFields[i].set(r) {
			f |= 1 << i
		}
	}
	return f
}

// empty reports whether nothing is set.
func (r *Rule) empty() bool { return r.fields() == 0 }

// scopeRule is a rule where it lies in the tree.
type scopeRule struct {
	key   string // Scope.ruleKey
	scope Scope
	Rule
	until int64      // date of BlockedUntil, which has not passed; instant.None: not set
	each  limit.Each // HostLimits as of when the row was made; in force, package limit has it
}

// controls are the rules in force. Readers take no lock; writers hold shard.mu.
type controls struct{ rule.Table[scopeRule] }

// ruleBytes is what a rule takes in memory, about.
const ruleBytes = 256

// size is how many bytes the rules take, about.
func (c *controls) size() int64 { return int64(c.Load().Len()) * ruleBytes }

// put puts a rule in force in place of the one with its key, which it returns. An
// empty rule only ends that one.
func (c *controls) put(r *scopeRule) (old *scopeRule) { return c.Put(r.key, r, r.fields()) }

// The settings that are asked for together.
const (
	withholdFields = 1<<fieldPaused | 1<<fieldHeld | 1<<fieldBlocked
	levelFields    = 1<<fieldPriority | 1<<fieldPriorities
)

// delay returns the most specific rule's policy for a host, or nil.
func (c *controls) delay(host string) DelayPolicy {
	if r := c.Load().First(hostkey.Bytes(host), 1<<fieldDelay); r != nil {
		return r.Delay
	}
	return nil
}

// concurrency returns how many leases the rules allow a host, or 0 if none says.
func (c *controls) concurrency(host []byte) int {
	if r := c.Load().First(host, 1<<fieldConcurrency); r != nil {
		return r.Concurrency
	}
	return 0
}

// effective returns the settings that apply to a host.
func (c *controls) effective(host string, now int64) (out Rule) {
	c.Load().Visit(hostkey.Bytes(host), func(s *scopeRule) bool {
		r := s.at(now)
		if out.Priority == 0 { // else that of the narrower scope counts for all
			out.Priorities.complete(&r.Priorities)
		}
		r.Priorities = PriorityMap{}
		runs := out.Paused == Off // whatever wider scopes say
		for i := range ruleFields {
			f := &ruleFields[i]
			if runs && (i == fieldBlocked || i == fieldHeld) {
				continue
			}
			if !f.set(&out) && f.set(&r) {
				f.copy(&out, &r)
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

// EndBlock ends the block of a scope, whose time has come.
func (c *controls) EndBlock(s row.Scope, now int64) {
	ended := *c.Get(s.Key())
	ended.Rule, ended.until = ended.at(now), instant.None
	c.put(&ended)
}

// stops reports whether the rule keeps hosts from being served.
func (r *scopeRule) stops() bool { return r.Paused == On || r.Held || r.until != instant.None }

// block returns the end of the rule's block; r may be nil.
func (r *scopeRule) block() int64 {
	if r == nil {
		return instant.None
	}
	return r.until
}

// ruleKey is the scope's place in the tree of rules, and in the store.
func (s Scope) ruleKey() string { return s.stored().Key() }

// Hosts that may not be served because of a rule or a limit are withheld.
//
// A rule is looked up where a host would be handed out: a host that is withheld leaves
// front queues, ready lists and heaps for its place. No loop over hosts puts a rule in
// force. When a rule lets hosts go, those of them that are withheld are found in domain
// order, a few under one lock.

const (
	recheckAtOnce  = 64 // withheld hosts that are looked at again under one lock
	withholdAtOnce = 64 // hosts that are withheld before their time under one lock
	expireAtOnce   = 16 // blocks that end under one lock
)

// withheldReason says why a host is in place withheld; it is the host's pos.
type withheldReason = int32

const (
	withheldPaused  withheldReason = iota // until an operator resumes it
	withheldBlocked                       // until a time that withheldHosts.blocks has
	withheldLimited                       // until a time that limit.Book.HostEnds has
	withheldSpent                         // until a limit without a period is raised, or Rule.Held ends
	withheldReasons
)

// withheldHosts are the hosts in place withheld.
//
// The zero value has none.
type withheldHosts struct {
	set      hostorder.Set           // in domain order
	hosts    [withheldReasons]int    // how many
	urls     [withheldReasons]int64  // that wait of them, of crawls that run
	blocks   *btree.BTreeG[blockEnd] // of rules, that have not passed; nil as long as there was none
	rechecks []recheck               // scopes whose hosts may be free to go
	scratch  []uint32
}

// recheck is a scope whose withheld hosts behind key are looked at again.
type recheck struct {
	scope row.Scope
	key   []byte
}

// blockEnd is the end of a block that a rule sets.
type blockEnd struct {
	until int64 // a date
	scope row.Scope
}

func (b blockEnd) before(other blockEnd) bool {
	return b.until < other.until || b.until == other.until && b.scope.Key() < other.scope.Key()
}

// hostRules are the operator's rules, as the scheduler asks for them. A host's rule is looked up
// when the answer is needed.
type hostRules interface {
	// Withholding reports whether any rule may keep a host from being served.
	Withholding() bool
	// Withholds returns the date until which the rules keep a host from being served, and
	// why: never if it is paused or held, instant.None if they do not.
	Withholds(host []byte, now int64) (until int64, why withheldReason)
	// Priority returns the priority with which URLs of a host are served whose own is p.
	Priority(host []byte, p uint8) uint8
	// EndBlock ends the block of a scope, whose time has come.
	EndBlock(scope row.Scope, now int64)
}

// withheldURLs is how many waiting URLs are known to be withheld now.
func (s *scheduler) withheldURLs() int64 {
	n := s.pausedURLs
	for _, urls := range s.withheld.urls {
		n += urls
	}
	return n
}

// withheldForGood is how many of them only an operator can set free.
func (s *scheduler) withheldForGood() int64 {
	return s.withheld.urls[withheldPaused] + s.withheld.urls[withheldSpent] + s.pausedURLs - s.limitedURLs
}

// countWithheld notes that n URLs more (or, negative, less) of a crawl wait at hosts
// that are withheld.
func (s *scheduler) countWithheld(x *crawl, why withheldReason, n int64) {
	if x.withheld[why] += n; x.runs() {
		s.withheld.urls[why] += n
	}
}

func (s *scheduler) countWithheldOf(h *host, why withheldReason, sign int64) {
	for q := h.queues; q != 0; q = s.queues.At(q).sibling {
		x := s.queues.At(q)
		s.countWithheld(s.crawlOf(x), why, sign*int64(x.waiting))
	}
}

// Withholding reports whether any rule may keep a host from being served.
func (c *controls) Withholding() bool { return c.Load().Set(withholdFields) }

// Withholds returns the date until which the rules keep a host from being served, and
// why: never if it is paused or held, instant.None if they do not. A pause comes first, and a block last.
func (c *controls) Withholds(host []byte, now int64) (until int64, why withheldReason) {
	until = instant.None
	c.Load().Visit(host, func(r *scopeRule) bool {
		if r.until > max(now, until) {
			until, why = r.until, withheldBlocked
		}
		if r.Paused == On {
			until, why = instant.Never, withheldPaused
		} else if r.Held && until != instant.Never {
			until, why = instant.Never, withheldSpent
		}
		return r.Paused == Unset
	})
	return until, why
}

// mayServe reports whether no rule keeps a host from being served now.
func (s *scheduler) mayServe(id uint32, now int64) bool {
	if !s.withholding() {
		return true
	}
	until, _ := s.withheldUntil(id, now)
	return until == 0
}

// withheldUntil returns until when rules and limits keep a host from being served, and
// why: 0 if they do not, never if time does not end it. A pause comes first.
func (s *scheduler) withheldUntil(id uint32, now int64) (until int64, why withheldReason) {
	date := s.date(now)
	until = instant.None
	if s.cfg.rules != nil {
		until, why = s.cfg.rules.Withholds(s.name(s.hosts.At(id)), date)
	}
	if s.limits != nil && until != instant.Never {
		switch at := s.limits.HostSpent(id, s.name(s.hosts.At(id)), date); {
		case at == instant.Never:
			until, why = at, withheldSpent
		case at > until:
			until, why = at, withheldLimited
		}
	}
	if until == instant.None {
		return 0, why
	}
	return s.moment(until), why
}

// withholding reports whether a rule or a limit may keep any host from being served.
func (s *scheduler) withholding() bool {
	return s.cfg.rules != nil && s.cfg.rules.Withholding() || s.limits != nil && s.limits.Limiting()
}

// withhold puts a host, which is in no structure, aside if a rule or limit requires it,
// and reports whether it did.
func (s *scheduler) withhold(id uint32, now int64) bool {
	if !s.withholding() {
		return false
	}
	until, why := s.withheldUntil(id, now)
	if until == 0 {
		return false
	}
	h := s.hosts.At(id)
	s.dropSlot(h, now)
	s.put(h, withheld)
	h.served = 0
	s.file(id, h, why, until)
	for q := h.queues; q != 0; q = s.queues.At(q).sibling {
		s.evict(q, false)
	}
	return true
}

// file files a host that is in place withheld.
func (s *scheduler) file(id uint32, h *host, why withheldReason, until int64) {
	if h.pos = why; why == withheldLimited {
		s.limits.HostEnds.Set(id, s.date(until))
	}
	s.withheld.set.Add(id)
	s.withheld.hosts[why]++
	s.countWithheldOf(h, why, 1)
}

// unfile is the inverse of file.
func (s *scheduler) unfile(id uint32, h *host) {
	if h.pos == withheldLimited {
		s.limits.HostEnds.Remove(id)
	}
	s.withheld.set.Remove(id)
	s.withheld.hosts[h.pos]--
	s.countWithheldOf(h, h.pos, -1)
}

// withholdNext withholds the hosts that would become due next, so that no call waits for
// them. If they are many, several calls are needed.
func (s *scheduler) withholdNext(now int64) {
	if !s.withholding() {
		return
	}
	for range withholdAtOnce {
		if !s.withholdFirst(&s.pace, now) && !s.withholdFirst(&s.parks, now) {
			return
		}
	}
	s.more = true
}

func (s *scheduler) withholdFirst(t *timeheap.Heap, now int64) bool {
	if t.Len() == 0 {
		return false
	}
	id := t.Items[0].ID
	if id&groupBit != 0 {
		g := s.groups.At(id &^ groupBit)
		if id = g.due; id == 0 {
			id = g.hosts
		}
		id = s.grouped.At(id).ID
	}
	if s.mayServe(id, now) {
		return false
	}
	s.detach(id)
	return s.withhold(id, now)
}

// ruled notes that a scope's rule was replaced: its block, which ended at was, ends at until, and
// instant.None is no block. stops says that it keeps hosts from being served.
func (s *scheduler) ruled(scope row.Scope, was, until int64, stops bool, now int64) {
	if s.withheld.blocks == nil {
		s.withheld.blocks = btree.NewG(32, blockEnd.before)
	}
	if was != instant.None {
		s.withheld.blocks.Delete(blockEnd{was, scope})
	}
	if until != instant.None {
		s.withheld.blocks.ReplaceOrInsert(blockEnd{until, scope})
	}
	s.recheck(scope)
	if stops && scope.Named && !scope.Domain {
		s.withholdReady(scope.Name, now)
	}
}

// withholdReady withholds a ready host at once because of its own rule: it has a slot of
// its group, for which others wait. Hosts that a wider rule withholds give up their slots
// when their turn comes.
func (s *scheduler) withholdReady(name string, now int64) {
	id := s.lookup(s.hash(hostkey.Bytes(name)), name)
	if id == 0 || s.hosts.At(id).place != ready || s.mayServe(id, now) {
		return
	}
	s.detach(id)
	s.withhold(id, now)
}

// expireAt is the next end of a block or of a limit's period for which a host or crawl
// waits.
func (s *scheduler) expireAt() int64 {
	at := instant.Never
	if s.limits != nil {
		at = min(s.limits.HostEnds.Min(), s.limits.CrawlEnds.Min())
	}
	if s.withheld.hosts[withheldBlocked] > 0 {
		if r, ok := s.withheld.blocks.Min(); ok {
			at = min(at, r.until)
		}
	}
	return s.moment(at)
}

// expireWithheld ends the blocks and periods whose time has come, and lets withheld hosts go
// that may.
func (s *scheduler) expireWithheld(now int64) {
	if !s.endBlocks(now) || s.limits != nil && !s.endLimits(now) {
		s.more = true
		return
	}
	for n := recheckAtOnce; n > 0 && len(s.withheld.rechecks) > 0; {
		n -= s.recheckSome(n, now)
	}
}

// endBlocks ends the blocks whose time has come, and reports whether it came to the
// end.
func (s *scheduler) endBlocks(now int64) bool {
	if s.withheld.blocks == nil {
		return true
	}
	for n := 0; ; n++ {
		r, ok := s.withheld.blocks.Min()
		if !ok || r.until > s.date(now) {
			return true
		}
		if n == expireAtOnce {
			return false
		}
		s.cfg.rules.EndBlock(r.scope, s.date(now))
		s.ruled(r.scope, r.until, instant.None, false, now)
	}
}

// recheck looks again at the withheld hosts of a scope.
func (s *scheduler) recheck(other row.Scope) {
	if s.places[withheld] > 0 {
		s.withheld.rechecks = append(s.withheld.rechecks, recheck{scope: other})
	}
}

// recheckHost looks again at a host that is withheld.
func (s *scheduler) recheckHost(id uint32, now int64) {
	h := s.hosts.At(id)
	switch until, why := s.withheldUntil(id, now); {
	case until == 0:
		s.detach(id)
		s.settle(id, now)
	case why != h.pos || why == withheldLimited:
		s.unfile(id, h)
		s.file(id, h, why, until)
	}
}

// recheckSome looks at some hosts of the first recheck, and returns how many.
func (s *scheduler) recheckSome(n int, now int64) int {
	x := &s.withheld
	r := &x.rechecks[0]
	ids := s.withheldIn(x.scratch[:0], r.scope, string(r.key), n)
	x.scratch = ids[:0]
	for i, id := range ids {
		if i == len(ids)-1 {
			r.key = s.orderKey(r.key[:0], id)
		}
		s.recheckHost(id, now)
	}
	if len(ids) < n {
		if x.rechecks = x.rechecks[1:]; len(x.rechecks) == 0 {
			x.rechecks = nil
		}
	}
	return len(ids) + 1
}

// withheldIn appends up to n withheld hosts of a scope whose keys come after key.
func (s *scheduler) withheldIn(dst []uint32, scope row.Scope, key string, n int) []uint32 {
	return s.inScope(&s.withheld.set, dst, scope, key, n, func(id uint32) bool { return s.hosts.At(id).place == withheld })
}

// unfinished reports whether there is more to do right now than one lock allows.
func (s *scheduler) unfinished() bool { return s.more || len(s.withheld.rechecks) > 0 }

// withheldHosts checks that the tree and the counts of withheld hosts are those of the
// hosts in place withheld (F2, F3, F6), and that hosts with nothing to do are not.
func (k *checker) withheldHosts() {
	x := &k.c.withheld
	if x.hosts != k.withheld.hosts || x.urls != k.withheld.urls {
		k.bad("F6: %v hosts with %v URLs are withheld; counted %v, %v", k.withheld.hosts, k.withheld.urls, x.hosts, x.urls)
	}
	x.set.Check(k.bad, func(id uint32) bool { return k.c.hosts.At(id).place == withheld })
	if n := x.set.Len(); n != k.places[withheld] {
		k.bad("F2: %d hosts are withheld, %d in order", k.places[withheld], n)
	}
}

// checkRulesLocked checks that the table of rules counts right, that blocks are in order
// of their ends (F3), and that package limit knows the limits (F6).
func (f *Frontier) checkRulesLocked(bad func(format string, args ...any)) {
	c := f.sched
	t := f.controls.Load()
	t.Check(bad, func(r *scopeRule) rule.Fields { return r.fields() })
	blocks := 0
	for key, r := range t.All() {
		if r.scope.ruleKey() != r.key || r.key != key {
			bad("F3: the rule of %v lies under %q: %v", r.scope, r.key, r.Rule)
		}
		if r.BlockedUntil.IsZero() != (r.until == instant.None) {
			bad("F3: the rule of %v blocks until %v and %d", r.scope, r.BlockedUntil, r.until)
		}
		if r.until != instant.None {
			blocks++
			if c.withheld.blocks == nil || !c.withheld.blocks.Has(blockEnd{r.until, r.scope.stored()}) {
				bad("F3: the block of %v has no end", r.scope)
			}
		}
	}
	if c.withheld.blocks != nil && c.withheld.blocks.Len() != blocks {
		bad("F3: %d blocks, %d have an end", blocks, c.withheld.blocks.Len())
	}
	if b := c.limits; b != nil {
		for _, r := range t.All() {
			if _, ok := b.Row(r.scope.subject()); ok != (r.Limits != Limits{}) || b.Exactly(r.scope.stored()).Limits != r.HostLimits.quota() {
				bad("F6: the rule of %v has limits %+v and %+v, and usage: %v", r.scope, r.Limits, r.HostLimits, ok)
			}
		}
	}
}
