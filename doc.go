// Package frontier is a polite, prioritized, durable URL frontier: the part of a
// web crawler that decides which URL is fetched next, and when.
//
// A crawler puts URLs in with [Frontier.Add], takes leases with [Frontier.Next],
// fetches, and reports with [Frontier.Done]:
//
//	f, err := frontier.Open(ctx, frontier.Options{})
//	...
//	_, err = f.Add(ctx, frontier.Entry{URL: "http://example.org/"})
//	for lease, err := range f.Leases(ctx) {
//		links, took, err := fetch(lease.Entry.URL)
//		err = f.Done(lease, frontier.Outcome{Duration: took, Add: links})
//	}
//
// With the zero [Options] everything is in memory. With a Spill from package
// spill the same frontier is durable, survives kill -9, and grows beyond memory.
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
//     politeness is owed too. Of its due hosts the most urgent gets a slot: a level
//     of priority is worth 16 slots of waiting, so that none starves.
//   - A host or a group may have several lanes (Rule.Concurrency,
//     [Frontier.SetGroup]), each of which keeps a distance of its own.
//   - Each crawl (Entry.Crawl) has front queues and ready lists of its own; a
//     hand-out takes the crawl whose turn it is by weight (Rule.Weight),
//     then asks the selector. Hosts and their clocks are shared.
//
// A Scheduler says at each Done when the URL is visited again, and keeps 12 bytes
// of it; a Rechecker is asked once more when that time has come. A scheduled URL that
// is found again may come earlier, or be more important: [Entry].Hint, Hinter.
//
// A URL is scheduled (it has a future time), waiting, leased, or gone. FIFO order
// within a host and priority is the order of becoming waiting: for scheduled URLs
// the order of their times.
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
//   - F1: a host and a group have at most the leases that they were allowed when the
//     last was given.
//   - F2: a bound host is in exactly one of heap, ready lists, leased; an unbound
//     host with URLs has exactly one token for each crawl and priority of them, is
//     parked, or is held by a rule.
//   - F3: heaps are ordered, and positions, links and masks agree.
//   - F4: no lease before its host and group are due.
//   - F5: every URL is in exactly one state, and in memory at most once. Of a
//     timed block each position is finished, in memory, or not read yet.
//   - F6: Stats equal a full walk.
//   - F7: an admitted URL leaves only by Done, by giving up, or by Delete, which are
//     reported; what was deleted is not handed out any more.
//   - F8: FIFO within host, crawl and priority.
//   - F9: a host leaves memory only when its row on disk says what was learned of
//     it and no call under way names it; what names it later finds it as it was.
//
// # Control
//
// What an operator says of a host, a domain or all hosts is a [Rule]. Of each
// setting a host has the most specific: its own, then that of its closest domain,
// and so on, then that of [All]. [Frontier.UpdateRule], [Frontier.Pause] and
// [Frontier.BlockUntil] change one rule. They are durable when they return, and
// hold for the very next hand-out. Leases that are
// out go on. A host that a rule holds is found when its turn comes, and put aside
// until a rule lets it go: no call loops over hosts. [Frontier.Forget] forgets what
// was learned of a host, not its clock.
//
// Limits bound how much all hosts of a scope may do together (Rule.Limits, where all
// scopes around a host count), each of them alone (Rule.HostLimits, where the most
// specific counts), and a crawl ([Crawl]): URLs that wait, depth, and, for each period if wanted,
// hand-outs, bytes and failures. Add refuses what is too deep or too much, and says
// so; who has used up the others is put aside as if paused, until a new period, a
// higher limit, or Clear. What is counted is durable with the Done that counts it: a
// crash may forget hand-outs of leases that were out, and count what came back
// uncontacted. A frontier without limits pays nothing for them.
//
// # Failing hosts
//
// Three clocks say when a host may be contacted again: its delay, its Crawl-delay,
// and its back-off, beside what Retry-After asked for; the latest counts. A 429, a
// 503, a failed connection or a timeout raises the step of the back-off, and so the
// least gap after each contact; a long quiet time lowers it ([Backoff]). A host of
// which nothing but failures came for a while is in quarantine, and merely probed;
// its URLs wait meanwhile ([Quarantine]), so that a crawl with KeepOpen unset is not
// over. After ten failed probes, about four days, they are given up, and reported:
// Quarantine.Probes sets another number, Quarantine.Forever none. Whether and when a
// URL is tried again is another question: [RetryPolicy]. Outcome.Failure tells the
// kind of failure for all of them.
//
// # Durability
//
// What Add and Done accepted is written by one committer in groups, as a log.
// A mover gives logged records homes in blocks sorted by host, and a checkpoint
// ends the log there; see [Spill]. Scheduled URLs go to blocks sorted by time,
// and leave memory but for 16 bytes a block, with their hosts if nothing else is
// known of these. They are read when their time comes near; if that is late,
// because time jumped, memory is short or the disk fails, they wait meanwhile as
// scheduled ones. After anything but a clean Close every host
// counts as contacted at the moment of reopening.
//
// A host that has no URLs leaves memory when its time has passed. What was learned
// of it, its Crawl-delay, waits with the Spill and is read when the host is named
// again, by Add, Contact, Done or an outlink. Without a Spill such hosts stay.
//
// # Watching
//
// [Options.OnEvent] and the logger get an [Event] for what happens behind the calls.
// [Frontier.Stats] has totals, rates and waiting times, for logs (slog.LogValuer) and
// package expvar (json.Marshaler).
//
// # Time
//
// What is owed to hosts and groups, and leases, are timed by a clock that cannot be
// set: neither a wall clock that jumps nor a suspended machine makes a host due
// earlier. What has a date comes by the wall clock as it is then: NotBefore, visits,
// blocks, periods of limits; a caller of Next wakes up for it within a minute. All
// that is told and stored is told and stored by the wall clock as it is then, in
// milliseconds, rounded up; after a step rows on disk are written again, so that
// neither Close nor a crash loses it. While the clock is behind, a host that is on
// disk only may wait for as much longer. A host that a
// store opened on such a clock would leave alone for more than 30 days is left alone
// for 30. What is due after the year 9999 counts as due at its end. A [Clock] that
// leaps 280 years ahead stands still from there on, until the next opening.
package frontier

// File map, in the order of reading. "->" names the packages of internal/ that a file
// stands on.
//
// The calls:
//
//	options.go      settings and their defaults
//	entry.go        what goes in and comes out: Entry, Lease, Outcome, History
//	errors.go       every error that a caller may meet
//	frontier.go     Frontier; its lock and all that the lock guards; Open and Close
//	add.go          Add: known or new, admitted, or read back       -> known, seen, patience
//	next.go         Next, TryNext, Contact; the calls that wait     -> waitqueue
//	done.go         Done: what an outcome means for URL and host
//	lease.go        leases that are out: Extend, Join, HandBack, expiry
//
// The scheduler, which is Mercator's:
//
//	host.go         one record for each host, and its row           -> hostkey, row
//	schedule.go     the scheduler: its tables, the states of a host, the next hand-out -> slab, hostindex
//	backqueue.go    a host's queues, and URLs that wait for their time -> record, block, fifo, timed
//	frontqueue.go   tokens, ready lists, and whose crawl's turn it is
//	heap.go         hosts and groups by earliest time               -> timeheap
//	group.go        hosts to which politeness is owed together
//	slots.go        how many leases a host or group may have at once
//	prioritizer.go  Prioritizer, Selector, Scheduler                -> selector
//	politeness.go   Delay, Retry, Backoff, Quarantine: the policies
//	trouble.go      hosts that fail: back-off, quarantine, giving up -> trouble
//	dormant.go      hosts that leave memory                         -> dormant
//
// What operators say:
//
//	controls.go     Scope; Pause, BlockUntil, UpdateRule, Forget
//	rules.go        rules in force, and the hosts that they withhold -> rule
//	limits.go       limits                                          -> limit, quota
//	crawls.go       crawls: weight, pause, limits, Delete
//	delete.go       Delete, and taking away what it leaves dead     -> tombstone
//	force.go        Force and CrawlNow of a URL that is known
//	hints.go        Entry.Hint                                      -> hint
//
// The disk:
//
//	commit.go       operations on their way to disk and into memory -> commit, room
//	move.go         rounds that move URLs to blocks, and checkpoints -> move
//	recover.go      Open on a store that has something
//	clock.go        moments and dates                               -> clock, instant
//
// Reading it:
//
//	view.go         Hosts, HostNames, Largest, Upcoming             -> hostorder
//	hostinfo.go     Host: what is known of one, and why it waits
//	urls.go         URLs of a host, Scan                            -> view
//	urlstatus.go    Status of one URL
//	watch.go        Stats and Event                                 -> measure, notify
//	export.go       Export                                          -> dump
//	import.go       Import                                          -> dump
//	check.go        Check: the invariants F1 to F9
//	hooks.go        what the tests of the module reach through      -> hook
//
// Packages below those: arena, offheap, bitset, bloom, pctenc, idna, durablefs (memory,
// bytes and files), watchlock (the mutex), simclock, lab, layers, doccheck (for tests).
// "go run ./internal/layers" draws all packages and who imports whom.
