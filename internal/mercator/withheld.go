// This file keeps hosts aside that a rule or a limit withholds, until it releases them.
//
// A rule is looked up where a host would be handed out: a host that is withheld leaves front queues,
// ready lists and heaps for its place. No loop over hosts puts a rule in force. When a rule lets hosts
// go, those of them that are withheld are found in domain order, a few under one lock.
//
// Package limit counts what hosts and crawls use; here it gets them.

package mercator

import (
	"github.com/google/btree"
	"github.com/seed-7440039f/frontier/internal/hostkey"
	"github.com/seed-7440039f/frontier/internal/hostorder"
	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/internal/limit"
	"github.com/seed-7440039f/frontier/internal/quota"
	"github.com/seed-7440039f/frontier/internal/row"
	"github.com/seed-7440039f/frontier/internal/timeheap"
)

const (
	recheckAtOnce  = 64 // withheld hosts that are looked at again under one lock
	withholdAtOnce = 64 // hosts that are withheld before their time under one lock
	expireAtOnce   = 16 // blocks that end under one lock
)

// WithheldReason says why a host is in place withheld; it is the host's pos.
type WithheldReason = int32

const (
	WithheldPaused  WithheldReason = iota // until an operator resumes it
	WithheldBlocked                       // until a time that withheldHosts.blocks has
	WithheldLimited                       // until a time that limit.Book.HostEnds has
	WithheldSpent                         // until a limit without a period is raised, or Rule.Held ends
	withheldReasons
)

// withheldHosts are the hosts in place withheld.
//
// The zero value is empty.
type withheldHosts struct {
	set      hostorder.Set           // in domain order
	hosts    [withheldReasons]int    // how many
	urls     [withheldReasons]int64  // that wait of them, of crawls that run
	Blocks   *btree.BTreeG[BlockEnd] // of rules, that have not passed; nil as long as there was none
	rechecks []recheck               // scopes whose hosts may be free to go
	scratch  []uint32
}

// recheck is a scope whose withheld hosts behind key are looked at again.
type recheck struct {
	scope row.Scope
	key   []byte
}

// BlockEnd is the end of a block that a rule sets.
type BlockEnd struct {
	Until int64 // a date
	Scope row.Scope
}

func (b BlockEnd) before(other BlockEnd) bool {
	return b.Until < other.Until || b.Until == other.Until && b.Scope.Key() < other.Scope.Key()
}

// WithheldURLs is how many waiting URLs are known to be withheld now.
func (s *Core) WithheldURLs() int64 {
	n := s.pausedURLs
	for _, urls := range s.Withheld.urls {
		n += urls
	}
	return n
}

// WithheldForGood is how many of them only an operator can set free.
func (s *Core) WithheldForGood() int64 {
	return s.Withheld.urls[WithheldPaused] + s.Withheld.urls[WithheldSpent] + s.pausedURLs - s.limitedURLs
}

// countWithheld notes that n URLs more (or, negative, less) of a crawl wait at hosts that are withheld.
func (s *Core) countWithheld(x *Crawl, why WithheldReason, n int64) {
	if x.withheld[why] += n; x.Runs() {
		s.Withheld.urls[why] += n
	}
}

func (s *Core) countWithheldOf(h *Host, why WithheldReason, sign int64) {
	for q := h.Queues; q != 0; q = s.Queues.At(q).Sibling {
		x := s.Queues.At(q)
		s.countWithheld(s.CrawlOf(x), why, sign*int64(x.Waiting))
	}
}

// mayServe reports whether no rule keeps a host from being served now.
func (s *Core) mayServe(id uint32, now int64) bool {
	if !s.withholding() {
		return true
	}
	until, _ := s.WithheldUntil(id, now)
	return until == 0
}

// WithheldUntil returns until when rules and limits keep a host from being served, and
// why: 0 if they do not, never if time does not end it. A pause comes first.
func (s *Core) WithheldUntil(id uint32, now int64) (until int64, why WithheldReason) {
	date := s.Date(now)
	until = instant.None
	if s.Cfg.Rules != nil {
		until, why = s.Cfg.Rules.Withholds(s.Name(s.Hosts.At(id)), date)
	}
	if s.Limits != nil && until != instant.Never {
		switch at := s.Limits.HostSpent(id, s.Name(s.Hosts.At(id)), date); {
		case at == instant.Never:
			until, why = at, WithheldSpent
		case at > until:
			until, why = at, WithheldLimited
		}
	}
	if until == instant.None {
		return 0, why
	}
	return s.Moment(until), why
}

// withholding reports whether a rule or a limit may keep any host from being served.
func (s *Core) withholding() bool {
	return s.Cfg.Rules != nil && s.Cfg.Rules.Withholding() || s.Limits != nil && s.Limits.Limiting()
}

// withhold puts a host, which is in no structure, aside if a rule or limit requires it,
// and reports whether it did.
func (s *Core) withhold(id uint32, now int64) bool {
	if !s.withholding() {
		return false
	}
	until, why := s.WithheldUntil(id, now)
	if until == 0 {
		return false
	}
	h := s.Hosts.At(id)
	s.DropSlot(h, now)
	s.Put(h, Withheld)
	h.Served = 0
	s.file(id, h, why, until)
	for q := h.Queues; q != 0; q = s.Queues.At(q).Sibling {
		s.evict(q, false)
	}
	return true
}

// file files a host that is in place withheld.
func (s *Core) file(id uint32, h *Host, why WithheldReason, until int64) {
	if h.Pos = why; why == WithheldLimited {
		s.Limits.HostEnds.Set(id, s.Date(until))
	}
	s.Withheld.set.Add(id)
	s.Withheld.hosts[why]++
	s.countWithheldOf(h, why, 1)
}

// unfile is the inverse of file.
func (s *Core) unfile(id uint32, h *Host) {
	if h.Pos == WithheldLimited {
		s.Limits.HostEnds.Remove(id)
	}
	s.Withheld.set.Remove(id)
	s.Withheld.hosts[h.Pos]--
	s.countWithheldOf(h, h.Pos, -1)
}

// withholdNext withholds the hosts that would become due next, so that no call waits for
// them. If they are many, several calls are needed.
func (s *Core) withholdNext(now int64) {
	if !s.withholding() {
		return
	}
	for range withholdAtOnce {
		if !s.withholdFirst(&s.Pace, now) && !s.withholdFirst(&s.Parks, now) {
			return
		}
	}
	s.more = true
}

func (s *Core) withholdFirst(t *timeheap.Heap, now int64) bool {
	if t.Len() == 0 {
		return false
	}
	id := t.Items[0].ID
	if id&groupBit != 0 {
		g := s.Groups.At(id &^ groupBit)
		if id = g.due; id == 0 {
			id = g.hosts
		}
		id = s.grouped.At(id).ID
	}
	if s.mayServe(id, now) {
		return false
	}
	s.Detach(id)
	return s.withhold(id, now)
}

// Ruled notes that a scope's rule was replaced: its block, which ended at was, ends at until, and
// instant.None is no block. stops says that it keeps hosts from being served.
func (s *Core) Ruled(scope row.Scope, was, until int64, stops bool, now int64) {
	if s.Withheld.Blocks == nil {
		s.Withheld.Blocks = btree.NewG(32, BlockEnd.before)
	}
	if was != instant.None {
		s.Withheld.Blocks.Delete(BlockEnd{was, scope})
	}
	if until != instant.None {
		s.Withheld.Blocks.ReplaceOrInsert(BlockEnd{until, scope})
	}
	s.recheck(scope)
	if stops && scope.Named && !scope.Domain {
		s.withholdReady(scope.Name, now)
	}
}

// withholdReady withholds a ready host at once because of its own rule: it has a slot of its group, for
// which others wait. Hosts that a wider rule withholds give up their slots when their turn comes.
func (s *Core) withholdReady(name string, now int64) {
	id := s.Lookup(s.Hash(hostkey.Bytes(name)), name)
	if id == 0 || s.Hosts.At(id).Place != Ready || s.mayServe(id, now) {
		return
	}
	s.Detach(id)
	s.withhold(id, now)
}

// expireAt is the next end of a block or of a limit's period for which a host or crawl waits.
func (s *Core) expireAt() int64 {
	at := instant.Never
	if s.Limits != nil {
		at = min(s.Limits.HostEnds.Min(), s.Limits.CrawlEnds.Min())
	}
	if s.Withheld.hosts[WithheldBlocked] > 0 {
		if r, ok := s.Withheld.Blocks.Min(); ok {
			at = min(at, r.Until)
		}
	}
	return s.Moment(at)
}

// expireWithheld ends the blocks and periods whose time has come, and lets withheld hosts go that may.
func (s *Core) expireWithheld(now int64) {
	if !s.endBlocks(now) || s.Limits != nil && !s.endLimits(now) || !s.freeStopped(now) {
		s.more = true
		return
	}
	for n := recheckAtOnce; n > 0 && len(s.Withheld.rechecks) > 0; {
		n -= s.recheckSome(n, now)
	}
}

// endBlocks ends the blocks whose time has come, and reports whether it came to the end.
func (s *Core) endBlocks(now int64) bool {
	if s.Withheld.Blocks == nil {
		return true
	}
	for n := 0; ; n++ {
		r, ok := s.Withheld.Blocks.Min()
		if !ok || r.Until > s.Date(now) {
			return true
		}
		if n == expireAtOnce {
			return false
		}
		s.Cfg.Rules.EndBlock(r.Scope, s.Date(now))
		s.Ruled(r.Scope, r.Until, instant.None, true, now) // the rule may withhold its host still
	}
}

// recheck looks again at the withheld hosts of a scope.
func (s *Core) recheck(scope row.Scope) {
	if s.Places[Withheld] > 0 {
		s.Withheld.rechecks = append(s.Withheld.rechecks, recheck{scope: scope})
	}
}

// recheckHost looks again at a host that is withheld.
func (s *Core) recheckHost(id uint32, now int64) {
	h := s.Hosts.At(id)
	switch until, why := s.WithheldUntil(id, now); {
	case until == 0:
		s.Detach(id)
		s.Settle(id, now)
	case why != h.Pos || why == WithheldLimited:
		s.unfile(id, h)
		s.file(id, h, why, until)
	}
}

// recheckSome looks at some hosts of the first recheck, and returns how many.
func (s *Core) recheckSome(n int, now int64) int {
	x := &s.Withheld
	r := &x.rechecks[0]
	ids := s.withheldIn(x.scratch[:0], r.scope, string(r.key), n)
	x.scratch = ids[:0]
	for i, id := range ids {
		if i == len(ids)-1 {
			r.key = s.OrderKey(r.key[:0], id)
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
func (s *Core) withheldIn(dst []uint32, scope row.Scope, key string, n int) []uint32 {
	return s.inScope(&s.Withheld.set, dst, scope, key, n, func(id uint32) bool { return s.Hosts.At(id).Place == Withheld })
}

// unfinished reports whether there is more to do right now than one lock allows.
func (s *Core) unfinished() bool { return s.more || len(s.Withheld.rechecks) > 0 }

// Book returns what is counted, a new book if there was no limit so far. youngest is the
// number of the last lease.
func (s *Core) Book(youngest uint64) *limit.Book {
	if s.Limits == nil {
		s.Limits = limit.New(limit.Caller{
			Turned:  s.Cfg.Turned,
			Recheck: s.recheck,
		}, s.Clock.Day(0), s.Cfg.Spill, youngest)
	}
	return s.Limits
}

// SetLimits puts the limits of a scope's rule in force: those of all its hosts together, and of each.
func (s *Core) SetLimits(of row.Scope, all, each quota.Limits, youngest uint64, now int64) {
	if s.Limits != nil || all != (quota.Limits{}) || each != (quota.Limits{}) {
		s.Book(youngest).SetScope(of, all, each, youngest, s.Date(now))
	}
}

// Use counts what the hand-out or the end of a lease uses of the limits of a host and a
// crawl, which may be nil.
func (s *Core) Use(id uint32, x *Crawl, n quota.Amount, lease uint64, now int64) {
	h := s.Hosts.At(id)
	if s.Limits.Use(id, s.Name(h), n, lease, s.Date(now)) {
		h.Set(Counted | Behind)
	}
	if x != nil && s.Limits.UseCrawl(x.ID, n, lease, s.Date(now)) {
		s.JudgeCrawl(x, now)
	}
}

// Refusing reports whether limits refuse new URLs of a host because too many wait.
func (s *Core) Refusing(id uint32) (full bool) {
	if s.Limits == nil {
		return false
	}
	h := s.Hosts.At(id)
	g := s.Limits.Gate(string(s.Name(h)))
	return g.Closed(limit.Waiting{All: s.Stats.Waiting, Host: int64(h.Waiting)})
}

// CountAllDomains counts the URLs of domains under limits, after an opening.
func (s *Core) CountAllDomains() {
	if !s.Limits.CountDomains() {
		return
	}
	for id := uint32(1); id <= s.Hosts.Top; id++ {
		if h := s.Hosts.At(id); h.NameLen > 0 && h.Waiting > 0 {
			s.Limits.Waits(s.Name(h), int64(h.Waiting))
		}
	}
}

// unused forgets what a host without URLs has used if it no longer counts.
func (s *Core) unused(id uint32, now int64) {
	h := s.Hosts.At(id)
	if !h.Has(Counted) {
		return
	}
	switch until, ok := s.Limits.HostCounts(id, s.Name(h), s.Date(now)); {
	case !ok:
		s.dropUsage(id)
		h.Set(Behind)
	case until != instant.Never:
		s.Limits.Rest(id, s.Moment(until))
	}
}

func (s *Core) dropUsage(id uint32) {
	s.Hosts.At(id).Clear(Counted)
	s.Limits.Forget(id)
}
