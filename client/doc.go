// Package client is a frontier in another process, served by package serve (the command "frontier
// serve"), with the verbs of the library:
//
//	f, err := client.New("http://127.0.0.1:8348", client.Options{Crawl: "news"})
//	defer f.Close()
//	n, err := f.Add(ctx, frontier.Entry{URL: "http://a.example/"})
//	err = f.Work(ctx, 100, func(ctx context.Context, lease frontier.Lease) (frontier.Outcome, error) {
//		// fetch lease.Entry.URL
//		return frontier.Outcome{}, nil
//	})
//
// A [Client] is a crawler.Frontier and a polite.Frontier: a crawl that runs on a frontier of its own
// runs on a served one, beside crawlers in other processes and languages. The server keeps politeness
// for all of them together.
//
// # Batches
//
// Many goroutines share a few connections. Calls of Next that wait are answered together, with up to
// 64 leases from one request, and no lease is taken in advance. Calls of Done that come while others
// are under way are sent together.
//
// # When the server is away
//
// Calls are repeated, at growing intervals up to 5 seconds, until their context ends; those without
// a context until Options.Timeout. Adding is idempotent, and so is ending a lease. Done is repeated
// until the lease's deadline. After the deadline the server ends the lease, as if the fetch had lasted
// until then, and Done returns frontier.ErrNotLeased. A lease whose
// handing-out was lost on its way also ends there. So a host is never contacted too early.
//
// # Differences from a Frontier
//
// A Client has one crawl, named by Options.Crawl, with the number 0 in each Entry and Scope. In Outcome.Add
// that is the page's crawl, also for a Client without a Crawl, which takes URLs of all. Add
// admits entries in parts of 1,000 or less: of a call that fails, the first parts are in. A repeated
// Add may count an entry as known that its first try admitted. An Entry is refused, with an EntryError,
// if its URL is not UTF-8, or if it takes more than 1 MiB in JSON. If a Done would take more, or has an
// outlink that is refused so, its outlinks are added before the lease ends, not in the same commit.
// Outcome.Move is refused, so package crawler parks no URLs: it drops them, with a warning.
//
// # Two clocks
//
// The clocks of both machines need not agree, and may be set at any time. The times of a lease and of a
// HostInfo, and what TryNext returns, are by this machine's clock. What was read from that clock, such as
// Outcome.Ended and time.Now().Add(d) in NotBefore and Next, crosses the wire as a span. A time without a
// monotonic reading, such as one that was parsed, is a date of the calendar there; as Outcome.Ended it
// counts only if the clock was not set while the lease was out. History is by the server's clock.
//
// A server waits for more URLs when nothing is left. Next, Work and Leases see the end of a crawl when
// a request that waited at the server comes back empty: up to Options.Wait later, which is 20 s. So they
// may start before the program that adds, by as much.
//
// A Client has no Drain, as other programs work on the frontier: end the context of Work, and let fn
// finish its fetches if they are not to be cut short. It has no Take, DoneAll, AddVerdicts or CrawlNow:
// its calls share requests by themselves, and Entry.Force crawls a URL again. Of the controls it has
// Pause, Resume and Delete. Rules, groups, values, listings, the state of a URL, exports and imports
// are not in it: see docs/http.md and the server's page.
package client
