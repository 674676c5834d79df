// Package client has the verbs of the library for a frontier in another process, served by package serve
// (the command "frontier serve"):
//
//	f, err := client.New("http://127.0.0.1:8348", client.Options{Crawl: "news"})
//	defer f.Close()
//	n, err := f.Add(ctx, frontier.Entry{URL: "http://a.example/"})
//	err = f.Work(ctx, 100, func(ctx context.Context, lease frontier.Lease) (frontier.Outcome, error) {
//		// fetch lease.Entry.URL
//		return frontier.Outcome{}, nil
//	})
//
// A [Client] implements crawler.Frontier and polite.Frontier: a crawl that runs on a frontier of its own
// runs on a served one, beside crawlers in other processes and languages. The server keeps politeness for
// all of them together.
//
// # Batches
//
// Many goroutines share a few connections. One request answers waiting calls of Next together, with up to
// 64 leases; no lease is taken in advance. Calls of Done that come while others are under way are sent
// together.
//
// # When the server is away
//
// Calls are repeated, at growing intervals up to 5 seconds, until their context ends; those without a
// context until Options.Timeout. Adding is idempotent, and so is ending a lease. Done is repeated until
// the lease's deadline. After the deadline the server ends the lease, as if the fetch had lasted until
// then, and Done returns frontier.ErrNotLeased. A lease that was lost on its way to the client also ends
// there. So no host is contacted too early.
//
// # Several addresses
//
//	f, err := client.New("http://a:8348,http://b:8348,unix:/run/frontier", client.Options{})
//
// They are several addresses of one frontier, such as a server and its stand-by or nodes behind one
// store. Requests go to one of them, at first to the first. If it cannot be reached, gives no whole
// answer, or answers with status 429, 502, 503 or 504, they go to the next, and after the last to the
// first again; each is asked at the intervals of one. An error says why each failed. A request that is
// repeated at another address does what it does at the same one. Only a Delete whose answer was lost
// counts at another server what was left.
//
// # Differences from a Frontier
//
// A Client has one crawl, named by Options.Crawl, with the number 0 in each Entry and scope.Scope. In
// Outcome.Add that is the page's crawl, also for a Client without a Crawl, which takes URLs of all. Add
// sends entries in parts of up to 1,000: if a call fails, its first parts are admitted. A repeated Add
// may count an entry as known that its first try admitted. An Entry is refused, with an EntryError, if
// its URL is not UTF-8, or if it takes more than 1 MiB in JSON. If a Done would take more, or has such an
// outlink, its outlinks are added before the lease ends, not in the same commit. Outcome.Move is refused,
// so package crawler parks no URLs: it drops them, with a warning.
//
// # Two clocks
//
// The clocks of both machines may differ, and may be set at any time. The times of a lease and of an
// inspect.Host, and what TryNext returns, are by this machine's clock. A time read from that clock, such as
// Outcome.Ended, or time.Now().Add(d) in NotBefore and Next, is sent as a duration. A time without a
// monotonic reading, such as a parsed one, is sent as a date; as Outcome.Ended it counts only if the
// clock was not set during the lease. History is by the server's clock.
//
// When nothing is left, a server waits for more URLs. Next, Work and Leases see the end of a crawl when a
// request that waited at the server returns empty: up to Options.Wait later, 20 s by default. So they may
// start up to that long before the program that adds URLs.
//
// A Client has no Drain, because other programs use the frontier: end the context of Work, and let fn
// finish its fetches if they must not be cut short. It has no Take, DoneAll, AddVerdicts or CrawlNow: its
// calls share requests by themselves, and Entry.Force crawls a URL again. Its only controls are Pause,
// Resume, Delete and SetStanding, which a server with tokens allows to operators. For rules, groups, values, listings, the state of a URL, exports and imports see
// docs/http.md and the server's page.
package client
