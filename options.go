// This file holds everything that can be set about a frontier, its defaults and
// what is wrong with a bad setting.

package frontier

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"log/slog"
	"math"
	"math/rand/v2"
	"time"

	"github.com/seed-7440039f/frontier/event"
	"github.com/seed-7440039f/frontier/internal/faults"
	"github.com/seed-7440039f/frontier/internal/hook"
	"github.com/seed-7440039f/frontier/internal/ledger"
	"github.com/seed-7440039f/frontier/internal/row"
	"github.com/seed-7440039f/frontier/internal/unit"
	"github.com/seed-7440039f/frontier/selector"
	"github.com/seed-7440039f/frontier/storage"
)

// Options configure a frontier. The zero value is a frontier in memory with Mercator's politeness.
type Options struct {
	// Spill keeps the frontier on disk. Nil: in memory, gone when closed. The
	// caller opens it before and closes it after the frontier.
	Spill storage.Spill

	// MemoryBudget is the number of bytes that the frontier and its Spill may use in RAM,
	// not counting calls under way: an Add takes about 1 KB per entry until it returns.
	// Beyond the budget URLs wait on disk; without a Spill, Add returns ErrFull. Zero
	// means 256 MiB without a Spill, 512 MiB with one.
	MemoryBudget int64

	// Priorities is F, the number of front queues, 1 to 64. Zero means 8.
	Priorities int
	// Prioritizer gives URLs their priority. Nil means ByDepth(Priorities).
	Prioritizer Prioritizer
	// Selector chooses among the front queues. Nil means BiasedRandom. Two frontiers that
	// are open at once need a value each: each calls it under its own lock only. Open
	// refuses a shipped one that another frontier has.
	Selector Selector

	// Delay determines how long a host is left alone after a contact. Nil means
	// FactorDelay(10, time.Second, 30*time.Second).
	Delay DelayPolicy
	// HostConcurrency is the number of leases that one host may have at once, 1 to 1024.
	// Each lane keeps its own distance: the end of its last contact plus Delay.
	// Crawl-delay and Retry-After apply to all lanes of a host. Zero means 1.
	HostConcurrency int
	// GroupDelay is the same for the groups of Join. Nil means Delay.
	GroupDelay DelayPolicy
	// HostKey returns the key of the host to which politeness is owed for a URL. Nil means HostName,
	// which maps all spellings of a machine's name or address to one key; your own function must do so
	// too, or the machine is contacted as if it were several. It is called outside the lock, from any
	// goroutine; a key has 1 to 255 bytes. It must not change during the life of a store: under another
	// function a machine would be two hosts, the one of the old URLs and the one of the new ones. Open
	// compares what it returns for some URLs of example hosts, which finds a different rule, but not a
	// different table of names.
	HostKey func(url string) (string, error)

	// Normalize returns the one form under which the frontier knows a URL: two spellings are one URL if
	// their forms are equal. It is called for each URL that the program names: the entries of Add and
	// CrawlNow, outlinks, and in Inspector.Status, but not for those of transfer.Import. Its error refuses the entry, as
	// an *EntryError. It is called outside the lock, from any goroutine, and must return its own
	// results unchanged. Nil takes URLs as given. The method Normalize of a urlnorm.Normalizer fits.
	Normalize func(url string) (string, error)

	// LeaseTime is how long a lease lasts. Zero means 10 minutes. A lease that expires counts as a
	// failed try: when Retry allows no more, the URL is given up without a Done. The host may then be
	// contacted although the fetch still runs: end fetches at Lease.Deadline, or Extend the lease.
	LeaseTime time.Duration
	// Retry decides whether and when a failed URL is tried again. Nil means DefaultRetries().
	Retry RetryPolicy
	// Backoff slows down hosts that refuse contacts.
	Backoff Backoff
	// Quarantine determines when a host that only fails is only probed.
	Quarantine Quarantine
	// Scheduler chooses when a URL is visited again. Nil means never. Package recrawl/adapter has one.
	Scheduler Scheduler
	// OnGiveUp, if set, is called for each URL that leaves because its tries are used up, or because
	// its host is given up (Quarantine.Probes). It is called outside the lock, after that is durable.
	// The Outcome is that of the last try, or has the Failure of the last probe of the host. OnGiveUp
	// must not call Next, TryNext, Drain or Close, which wait for leases or their end. If it panics, or
	// calls runtime.Goexit, in no call of Done, the next call of Next returns an error.
	OnGiveUp func(Entry, Outcome)
	// OnEvent, if set, receives the events of the frontier in order, one at a time, outside the lock.
	// The frontier never waits for it, except in Close, which it must not call. While 4096 events are
	// queued, further ones are lost: see event.Event.Dropped. Logger gets the same events. If OnEvent panics,
	// or calls runtime.Goexit, the next call of Next returns an error.
	OnEvent func(event.Event)

	// ContactedAt is when another process may last have contacted the hosts, such as one whose
	// place this frontier takes. Each host then waits for its delay from that time on, which may be
	// in the future, 30 days at most, and no longer for an earlier contact, whose date may be from a clock that
	// was wrong. Zero: no other process has.
	ContactedAt time.Time

	// KeepOpen makes Next wait for another Add instead of returning ErrExhausted.
	KeepOpen bool
	// Keep keeps URLs that are done: each that is visited, gone, denied or given up, and that
	// nothing makes come again, stays as a record with its Meta and History. It is finished
	// (URLFinished): it is not handed out, Next does not wait for it, and hints do not change
	// it. An Entry with Force brings it back, and Delete removes it. With a Spill finished
	// URLs move to disk, about 35 bytes each beyond URL and Meta, and then take no memory.
	// Records that were kept stay when a store is opened without Keep. Keep excludes NoDedup.
	Keep bool
	// Count keeps exact numbers of URLs for each host within a crawl: see package inspect. With a
	// Spill each number is a row of about 30 bytes and the host's key, which is read and written with
	// the URLs: that costs an Add and a Done some microseconds each, and no memory. Without one each
	// host with URLs takes about 120 bytes more. An opening with Count counts all URLs anew if the last
	// one was without, or the store was repaired: it then reads those that are scheduled and finished.
	Count bool
	// DeferHints stores hints (Entry.Hint) without applying them; the next frontier that
	// opens the Spill without DeferHints applies them. It is for tools that open a crawl
	// without the Scheduler that judges hints.
	DeferHints bool
	// NoDedup admits known URLs like new ones, and remembers no URLs.
	NoDedup bool

	// Clock is the source of time. Nil means the system's.
	Clock Clock
	// Logger gets what an operator should see. Nil means none.
	Logger *slog.Logger

	tuning hook.Tuning // by tests only
}

const (
	maxPriorities = row.MaxPriorities
	maxBudget     = 24 << 30 // the arena's references reach 32 GiB

	// quantum is K: after this many hand-outs a host gives its back queue to another.
	// A host counts them in 16 bits.
	quantum = 32
	// parkAfter is how far away a host's next contact must be for the host to give
	// its back queue up until then.
	parkAfter = time.Minute
)

func (o Options) withDefaults() Options {
	budget := int64(256 << 20)
	if o.Spill != nil {
		budget = 512 << 20
	}
	o.MemoryBudget = cmp.Or(o.MemoryBudget, budget)
	o.Priorities = cmp.Or(o.Priorities, 8)
	o.Prioritizer = cmp.Or(o.Prioritizer, ByDepth(o.Priorities))
	if o.Selector == nil {
		o.Selector = selector.BiasedRandom(rand.Uint64())
	}
	o.Delay = cmp.Or(o.Delay, FactorDelay(10, time.Second, 30*time.Second))
	if o.GroupDelay == nil {
		o.GroupDelay = o.Delay
	}
	if o.HostKey == nil {
		o.HostKey = HostName
	}
	o.HostConcurrency = cmp.Or(o.HostConcurrency, 1)
	o.tuning.Quantum = cmp.Or(o.tuning.Quantum, quantum)
	o.tuning.ParkAfter = cmp.Or(o.tuning.ParkAfter, parkAfter)
	o.tuning.LookAgain = cmp.Or(o.tuning.LookAgain, lookAgain)
	o.LeaseTime = cmp.Or(o.LeaseTime, 10*time.Minute)
	o.Retry = cmp.Or(o.Retry, DefaultRetries())
	o.Backoff, o.Quarantine = o.Backoff.withDefaults(), o.Quarantine.withDefaults(o.Scheduler != nil)
	o.Clock = cmp.Or[Clock](o.Clock, systemClock{})
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// longestLease is the most that LeaseTime may be.
const longestLease = 30 * 24 * time.Hour

// minResident is the least memory for hosts, marks and resident URLs.
const minResident = 4 * ledger.LeastLimit

func (o Options) validate() error { // runs after withDefaults; reports every fault at once
	wrong := faults.List(unit.CheckAll("", o))
	wrong.If(o.Priorities < 1 || o.Priorities > maxPriorities, "Priorities is %d; want 1 to %d", o.Priorities, maxPriorities)
	wrong.If(o.HostConcurrency < 1 || o.HostConcurrency > maxConcurrency, "HostConcurrency is %d; want 1 to %d", o.HostConcurrency, maxConcurrency)
	wrong.If(o.LeaseTime > longestLease, "LeaseTime is %v; want at most 720h", o.LeaseTime)
	if p, ok := o.Prioritizer.(withLevels); ok {
		wrong.If(p.levels < 1 || p.levels > o.Priorities, "Prioritizer is %s with %d; want 1 to Priorities, which is %d", p.name, p.levels, o.Priorities)
	}
	wrong.Add(checkDelay("Delay", o.Delay)...)
	wrong.Add(checkDelay("GroupDelay", o.GroupDelay)...)
	err := selector.Check(o.Selector, o.Priorities)
	wrong.If(err != nil, "Selector: %w", err)
	wrong.Add(checkRetry("Retry", o.Retry)...)
	wrong.Add(o.Backoff.check()...)
	wrong.Add(o.Quarantine.check()...)
	fixed, least := int64(0), int64(minResident)
	if o.Spill != nil { // what it knows of URLs may take the rest: it opens again
		fixed, least = o.Spill.Footprint(), minResident/2
	}
	wrong.If(o.Keep && o.NoDedup, "Keep is set with NoDedup; want one of them")
	wrong.If(o.MemoryBudget > maxBudget, "MemoryBudget is %d; want at most %d", o.MemoryBudget, int64(maxBudget))
	wrong.If(o.MemoryBudget < fixed+least, "MemoryBudget is %d; want at least %d, including %d for the Spill", o.MemoryBudget, fixed+least, fixed)
	return wrong.Of("frontier: options")
}

const maxDelay = row.MaxDelay

func checkDelay(name string, d DelayPolicy) []error {
	var wrong faults.List
	switch p := storedDelay(d); p.Kind {
	case row.Factor:
		bad := !(p.Factor >= 0) || math.IsInf(p.Factor, 0) || p.Min < 0 || p.Max < p.Min
		wrong.If(bad, "%s is FactorDelay(%v, %v, %v); want a finite k >= 0 and 0 <= min <= max", name, p.Factor, p.Min, p.Max)
		wrong.If(!bad && (unit.Missing(p.Min, unit.Least) || unit.Missing(p.Max, unit.Least)), "%s is FactorDelay(%v, %v, %v); want bounds of 0 or at least 1ms: is the unit missing?", name, p.Factor, p.Min, p.Max)
	case row.Fixed:
		wrong.Add(unit.Check(name+": FixedDelay", p.Max, unit.Least))
	}
	wrong.If(d.Max() > maxDelay, "%s may last %v; want at most %v", name, d.Max(), maxDelay)
	return wrong
}

// hostNames is a fingerprint of a HostKey: of what it returns for some URLs.
func hostNames(key func(string) (string, error)) uint64 {
	h := fnv.New64a()
	for _, u := range [...]string{
		"http://a.example/", "https://www.A.b.example:8443/x?q=1", "http://www.shop.example.co.uk/", "http://192.0.2.7/", "http://[2001:db8::7]/",
	} {
		name, err := key(u)
		if err != nil {
			name = "" // an error may change its words
		}
		fmt.Fprintf(h, "%q", name)
	}
	return max(1, h.Sum64())
}
