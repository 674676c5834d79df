// Package frontiercolly gives programs that use colly (github.com/gocolly/colly/v2) a frontier: a queue
// that is polite, prioritized and durable. The queue has the methods of colly's queue.Queue. These lines
// of the program in colly's README change; errors are left out here:
//
//	 c := colly.NewCollector()
//	+db, err := spill.Open("state", spill.Options{})
//	+f, err := frontier.Open(ctx, frontier.Options{Spill: db})
//	+q, err := frontiercolly.New(f, frontiercolly.Options{Threads: 200})
//	 c.OnHTML("a[href]", func(e *colly.HTMLElement) {
//	-	e.Request.Visit(e.Attr("href"))
//	+	q.Visit(e.Request, e.Attr("href"))
//	 })
//	 c.OnRequest(func(r *colly.Request) { fmt.Println("Visiting", r.URL) })
//	-c.Visit("http://go-colly.org/")
//	+q.AddURL("http://go-colly.org/")
//	+q.Run(c)
//
// Callbacks, filters, Ctx, cookies, cache, charset detection and limits on body size stay colly's. A
// program that uses queue.New and queue.Queue changes only the line with New.
//
// # What changes
//
//   - Each host is contacted by one request at a time, and left alone between requests as
//     frontier.Options says; so is each address, with the default transport. LimitRules stay in
//     force on top, and are not needed.
//   - robots.txt is obeyed and read in its host's turn (Options.IgnoreRobots). colly ignores it by default.
//   - Each request is made once in the life of the store: requests are known by their URL without its
//     fragment, their method and their body. frontier.Options.NoDedup takes the place of AllowURLRevisit.
//   - After a crash, or kill -9, another Run continues. What was being fetched comes again, nothing is
//     lost, and every host is left alone for its delay first.
//   - The links that a page's callbacks add, by q.Visit, q.AddRequest(r.New(...)), r.Visit or r.Post,
//     are admitted together with the page's end: a page is either fetched, with all its links known,
//     or comes again. Ctx is copied to them as JSON, and no longer shared.
//   - A redirect is not followed in place: OnError sees its status, as it does in a collector that
//     follows none, and the target becomes a request with the same depth and Ctx, in its host's turn.
//     Options.Follow follows in place.
//   - Failures (429, 5xx, no answer) are tried again later by frontier.Options.Retry, and slow the
//     host down by frontier.Options.Backoff. OnError sees each. r.Retry means: treat it as failed.
//   - What never becomes a page is not silent: Options.OnRefused gets what filters, robots.txt or an
//     Abort refused; frontier.Options.OnGiveUp what was tried too often. Run ends when all URLs are
//     fetched or gone. A host that never answers is probed for days first (frontier.Options.Quarantine);
//     Stop, or the end of c.Context, leaves it for the next Run.
//
// # What to know
//
// r.Visit and c.Visit add to the queue as well, so that existing code stays polite. But colly then calls
// OnRequest twice, when the link is found and when it is fetched; q.Visit does not. Visits before Run
// contact the web at once, unless Attach was called.
//
// A program with several collectors, such as a clone for another kind of page, gives them to Attach. A
// clone that it does not attach shares the client and is polite, but nothing of it is kept, and its
// Visit of the page's own host waits for that page, in vain: it fails when the client's timeout ends.
//
// Run replaces the transport of the collector's client; a proxy belongs in the Base of
// Options.Transport.
//
// A request may take as long as frontier.Options.LeaseTime, callbacks included. After that it counts as
// failed and comes again.
//
// docs/comparison.md has the figures of a crawl of 100,000 domains beside plain colly:
//
//	go run ./adapters/colly/bench
package frontiercolly
