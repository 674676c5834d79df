// Package frontier is a polite, prioritized, durable URL frontier: the part of a
// web crawler that decides which URL is fetched next, and when.
//
// A crawler puts URLs in with [Frontier.Add], takes leases with [Frontier.Next],
// fetches, and reports with [Frontier.Done]. [Frontier.Work] does the last three with
// any number of workers:
//
//	f, err := frontier.Open(ctx, frontier.Options{})
//	...
//	_, err = f.Add(ctx, frontier.Entry{URL: "http://example.org/"})
//	...
//	err = f.Work(ctx, 100, func(ctx context.Context, lease frontier.Lease) (frontier.Outcome, error) {
//		links, err := fetch(ctx, lease.Entry.URL)
//		if err != nil {
//			return frontier.Outcome{Result: frontier.Failed}, nil // it is tried again
//		}
//		out := frontier.Outcome{}
//		for _, u := range links {
//			out.Add = append(out.Add, frontier.Entry{URL: u}) // a link: it inherits the page's crawl, and its depth plus 1
//		}
//		return out, nil
//	})
//
// With the zero [Options] everything is in memory. With a Spill from package
// spill the same frontier is durable, survives kill -9, and grows beyond memory.
//
// # Before you begin
//
//   - URLs are absolute. A relative link is refused, and counted in [Stats].Refused.
//   - Each lease ends with one Done, also when its fetch failed; [Frontier.Work] sees to it.
//   - A fetch ends by the deadline of its lease: after it the URL may be handed out again.
//   - The body of an answer that polite.Transport returns must be closed: the contact lasts
//     until then, and so does the host's turn.
//   - A folder of package spill belongs to one process at a time.
//
// # Model
//
// The model is Mercator's (Heydon and Najork 1999; Manning, Raghavan and
// Schütze, Introduction to Information Retrieval, section 20.2.3), and its terms
// are used throughout:
//
//   - A [Prioritizer] gives each URL a priority from 1 to F.
//   - F front queues implement priority. A [Selector], by default biased to high
//     priority, chooses among them for each hand-out.
//   - Back queues implement politeness: each holds URLs of one host only.
//   - A heap holds the earliest time at which each host may be contacted again.
//     After a contact that is its end plus a delay: by default ten times what the
//     fetch took, within 1 s and 30 s.
//
// It departs from the published design where that fails at scale:
//
//   - Front queues hold host tokens, not URLs. A host without a back queue has one
//     token in front queue f if it has URLs of priority f; the URLs wait in the
//     host's own queues, on disk when memory is short. So one host with half of all
//     URLs is one token like any other, and back queues cannot swallow the rest.
//   - Hosts get a back queue on demand, at hand-out, and give it up after
//     32 hand-outs. With one URL per host the order is Mercator's.
//   - A host that is due waits in the ready list of each priority it has URLs of;
//     within a priority ready hosts come before tokens.
//   - Hosts may share a group ([Frontier.Join], [Frontier.Assign]), to which
//     politeness is owed too. The most urgent of its due hosts gets a slot: a level
//     of priority is worth 16 slots of waiting, so that none starves.
//   - A host or a group may have several lanes (Rule.Concurrency,
//     [Frontier.SetGroup]), each with its own distance.
//   - [Frontier.Take] hands out several URLs of a host on one lane: a bundle. Its holder
//     contacts the host for one after the other. The lane is free after the last.
//   - Each crawl (Entry.Crawl) has front queues and ready lists of its own; a
//     hand-out takes the crawl whose turn it is by weight (Rule.Weight),
//     then asks the selector. Hosts and their clocks are shared.
//
// At each Done a Scheduler chooses the time of the next visit, and may store 12 bytes
// with the URL; a Rechecker is asked once more when that time has come. A scheduled URL
// that is found again may come earlier, and one that waits may rise: [Entry].Hint, Riser.
//
// A URL is scheduled (its time lies in the future), waiting, leased, or gone. With
// Options.Keep a URL that is done is not gone but finished: its record stays. Within a
// host and priority, URLs are served in the order in which they began to wait. For
// scheduled URLs that is the order of their times. After an opening those that were
// scheduled in blocks on disk, and whose time had come, begin to wait anew.
//
// # Control
//
// An operator controls a host, a domain or all hosts through a [Rule]. For each setting
// the most specific rule of a host applies: its own, then that of its closest domain, and
// so on up to that of scope.All. [Frontier.UpdateRule], [Frontier.Pause] and
// [Frontier.BlockUntil] change one rule. The change is durable when they return, and
// applies to the very next hand-out. Leases that are out are not affected. A host that a
// rule withholds is found when its turn comes, and put aside until a rule releases it: no
// call loops over hosts. [Frontier.Forget] forgets what was learned about a host, but not
// its clock.
//
// Limits bound what all hosts of a scope may do together (Rule.Limits; those of all scopes
// around a host apply), what each of them may do alone (Rule.HostLimits; the most specific
// apply), and what a crawl may do (scope.Crawl). They bound waiting URLs and depth, and, per
// period if one is set, hand-outs, bytes and failures. Add refuses entries that are too
// deep or too many, and reports them. A host or crawl that has used up another limit is
// withheld as if paused, until a new period, a higher limit, or Clear. Counts are durable
// with the Done that changes them: a crash may forget hand-outs of leases that were out,
// and may count leases that came back uncontacted. A frontier without limits pays nothing
// for them.
//
// # Failing hosts
//
// Three clocks determine when a host may be contacted again: its delay, its Crawl-delay,
// and its back-off; a Retry-After is a fourth. The latest applies. A 429, a 503, a failed
// connection or a timeout raises the step of the back-off, and with it the least gap after
// each contact; a long quiet period lowers it ([Backoff]). A host whose contacts have all
// failed for a while is quarantined: it is only probed, and its URLs wait ([Quarantine]),
// so that the crawl is not over, even without KeepOpen. After ten failed probes, about four
// days, its URLs are given up and reported. Quarantine.Probes sets another number, and
// Quarantine.Forever keeps them. Whether and when a URL is tried again is a separate
// question: see [RetryPolicy]. All of them see the kind of failure in Outcome.Failure.
//
// # Durability
//
// One committer writes what Add and Done accepted to a log, in groups. A mover gives
// logged records homes in blocks sorted by host, and a checkpoint then ends the log; see
// [Options].Spill. Scheduled URLs go to blocks sorted by time and leave memory, except for
// 16 bytes per block; so do their hosts, if nothing else is known about them. Blocks are
// read when their time comes near. If that happens late, because time jumped, memory is
// short or the disk fails, their URLs remain scheduled until then. Unless the frontier was
// closed cleanly, every host counts as contacted at the moment of reopening.
//
// A host without URLs leaves memory when its time has passed. What was learned about it,
// such as its Crawl-delay, stays with the Spill and is read when Add, Contact, Done or an
// outlink names the host again. Without a Spill such hosts stay in memory.
//
// # Values
//
// [Frontier.SetValue] stores small values of the program's, such as names of crawls, with
// the URLs: they are as durable, and exports and copies of the store contain them.
//
// # Watching
//
// [Options.OnEvent] and the logger get an event (package event) for what happens outside the calls.
// [Frontier.Stats] returns totals, rates and waiting times, for logs (slog.LogValuer) and
// package expvar (json.Marshaler). Package inspect describes hosts, URLs, crawls and groups;
// package transfer exports and imports them.
//
// # Time
//
// Politeness towards hosts and groups, and leases, are timed by a monotonic clock: neither
// a wall clock that jumps nor a suspended machine makes a host due earlier. Whatever has a
// date follows the wall clock: NotBefore, visits, blocks, periods of limits. A caller of
// Next notices a change of the wall clock within a minute. Times that are returned or
// stored are in wall-clock time, in milliseconds, rounded up. After the wall clock was
// set, rows on disk are rewritten, so that neither Close nor a crash loses the change.
// While the wall clock is behind, a host that is only on disk may wait for that much
// longer. A store opened on such a clock leaves no host alone for more than 30 days. Times
// after the year 9999 are clamped to its end, and dates more than 290 years ahead are
// returned as that end. A [Clock] that leaps 280 years ahead stands
// still from there on, until the next opening. Package simclock has a Clock that moves only
// on request, for tests and simulations.
//
// # How many back queues?
//
// The book's third exercise asks why Mercator has about three times as many back
// queues as crawler threads. The answer is that no fixed multiple is right: to
// keep T threads busy, T hosts must be due while all others pace, so B must be at
// least T x (delay + fetch) / fetch. This package has no B; it binds hosts as
// workers ask. Workers busy, in per cent, and hosts bound at most, with two
// million URLs over Zipf-distributed hosts, fetches of 0.3 s in the mean, a delay
// D, in virtual time (go test -run WorkersAre -v . -frontier.long):
//
//	                       on demand  (bound)  B = 3T  B = 10T  B = 50T  published, 3T
//	T = 100,  D = 1 s          100      479     72.8    100      100       100
//	  one host has half        100      478     76.4    100      100       100
//	T = 1000, D = 1 s          100     4565     84.8     96.7     96.8     100
//	T = 100,  D = 10 s         100     3412      9.1     30.9    100        34.8
//
// Published Mercator reaches its 100 because its back queues swallow the front
// queues, up to all two million URLs, and with them the priorities.
//
// # Invariants
//
// [Frontier.Check] verifies them; every test of this module ends with it.
//
//   - F1: at each hand-out, a host or group is within its limit of leases. The leases of
//     a bundle count as one.
//   - F2: a bound host is in exactly one of heap, ready lists, leased; an unbound
//     host with URLs has exactly one token for each crawl and priority of them, is
//     parked, or is withheld by a rule.
//   - F3: heaps are ordered, and positions, links and masks agree.
//   - F4: no lease before its host and group are due.
//   - F5: every URL is in exactly one state, and in memory at most once. Each position
//     of a timed block is finished, in memory, or not read yet.
//   - F6: Stats equal a full walk.
//   - F7: an admitted URL leaves only by Done, by giving up, or by Delete, which are
//     reported; what was deleted is not handed out any more.
//   - F8: FIFO within host, crawl and priority.
//   - F9: a host leaves memory only when its row on disk has what was learned about it,
//     and no call under way names it; a later call finds it as it was.
package frontier

// File map, in the order of reading. "->" names the packages of internal/ that decide
// with a file, and what.
//
// The calls:
//
//	options.go      settings and their defaults
//	entry.go        what goes in and comes out: Entry, Lease, Outcome, History, Verdict, HostName -> hostkey
//	errors.go       every error that a caller may meet
//	frontier.go     Frontier; its lock and all that the lock guards; Open and Close -> recovery: reading a store; count: numbers of URLs
//	add.go          Add and Done's outlinks: room in memory or ErrFull, admitted -> room
//	values.go       SetValue, Value, Values: small values of the program's
//	forget.go       which URLs are known, and how they become unknown -> known, seen, patience, tombstone; found: Force and CrawlNow
//	next.go         Next, TryNext, Contact, Take
//	done.go         Done and DoneAll: leases end
//	plan.go         what an outcome means for its URL and host; the policies are asked
//	work.go         loops over leases, of a Frontier or another Leaser: Work, Leases
//	lease.go        leases that are out: Extend, Join, HandBack, expiry; IDs for other processes -> leaseid
//
// Mercator's figure. The hosts with all that they own lie in package mercator, below the lock:
// front queues, back queues, heaps, groups, lanes, leases. Here is what is around them:
//
//	prioritizer.go  Prioritizer, Riser, Scheduler, Rechecker, Hinter -> found: known URLs that are found again; hint, rise
//	frontqueue.go   the choice of the next hand-out; Selector       -> mercator: front queues, crawls' turns; selector
//	backqueue.go    reading a host's next URLs, and making a Lease  -> mercator: back queues, bundles; record, block, fifo; readahead and timed: scheduled URLs
//	heap.go         the calls that wait, the timer, who is woken    -> mercator: heaps, groups, lanes; timeheap, waitqueue
//	politeness.go   Delay, Retry, Backoff, Quarantine: the policies -> mercator: clocks of hosts
//	trouble.go      hosts that fail: events, giving up their URLs   -> trouble: the counting and the steps
//	dormant.go      hosts that leave memory, and come back          -> mercator, dormant, row
//
// What operators say:
//
//	controls.go     Pause, BlockUntil, UpdateRule, Forget    -> control: changes under way
//	rules.go        Rule; settings of groups of hosts               -> control: what is in force; rule; mercator: hosts that are withheld
//	limits.go       limits                                          -> limit, quota
//	delete.go       Delete, DeleteWith, and the goroutine that sweeps       -> tombstone; mercator: what is dead
//
// The disk:
//
//	commit.go       what a call wants committed; what packages below ask of the frontier -> ledger: the log, groups of operations, rounds, checkpoints; commit, move
//	clock.go        moments and dates                               -> clock, instant
//
// Reading it:
//
//	look.go         what packages inspect and transfer need: the lock, reads from disk -> view, hostorder
//	watch.go        Stats, and the call of OnEvent                  -> attrs: figures as logs and JSON; measure; notify: the queue of events
//	import.go       what a line of an import changes, and whose key it is -> dump: the lines; gather: what an export or a scan copies
//	hooks.go        Check: the invariants F1 to F9; what tests reach through -> mercator: the checker; hook
//
// Packages below those: arena, slab, hostindex, offheap, bitset, bloom, pctenc, idna, durablefs (memory, bytes and
// files), watchlock (the mutex), drift, lab, layers, ratchet, typecheck, modules, doccheck (for
// tests), reply and failure (what an answer of a server means), media (its type and encoding), lenient
// (odd ones made well formed), jsonl (lines of JSON), addrgroup (hosts of one address), urllist (lists of URLs), unit
// (durations without one), faults (all that is wrong with settings), tempfile (files that a kill leaves nowhere), lasting (when a
// process has ended), rendezvous (which of several nodes has a name).
// "go run ./internal/layers" draws all packages and who imports whom.
