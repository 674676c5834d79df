// Package incremental makes a crawl continuous: pages are fetched again when that is worth a fetch,
// so that their copies stay as fresh as a budget allows. The frontier's Scheduler, from package
// recrawl/adapter, decides when. This package determines the results of a crawler's visits for it,
// and stores what it has learned.
//
//	r, err := incremental.Open(incremental.Options{Dir: "state/recrawl", Schedule: recrawl.Options{Budget: 20}})
//	r.Configure(&frontierOptions)                  // scheduler, priorities, retries
//	f, err := frontier.Open(ctx, frontierOptions)
//	err = r.Attach(ctx, f)
//	c, err := crawler.New(f, crawler.Options{Revisits: r, MaxRate: 20})
//	err = c.Run(ctx)                               // until ctx ends
//	err = r.Close()
//
// # What counts as a change
//
// The words of a page are compared (package neardup): without markup, scripts, and what its site
// puts around every page, ignoring letter case and the values of numbers. So dates, counters, and
// advertisements that are marked as such are not changes. With Options.MinChange a change must also
// reach a minimum size. For other files the bytes are compared, for a redirect its target. Status
// 304 means that nothing changed. Handlers of OnPage find the result in Page.Outcome.Result:
// Changed, Unchanged, or Visited for the first copy.
//
// # How answers are treated
//
//	2xx, redirects   changed or unchanged
//	                 (gone, as with 404, if the text is one that five pages of
//	                 the host with different texts have turned into)
//	304              unchanged
//	404, 410         gone: if the page was read before, it is checked again after
//	                 Schedule.Probe or its interval, then after half a day or twice
//	                 that, then after two days or four times that; if it is still
//	                 gone it is put away, and checked after 30 to 240 days. A page
//	                 that was never read is put away at once
//	other 4xx        may not be read: the same
//	robots.txt       forbids it: the same, without a request
//	failed           retried after MinInterval, 8, 64, 512 times that, at most
//	                 a quarter of its interval; a known page is never given up.
//	                 A page that was never read is given up by the frontier's Retry
//
// The texts that hosts show for pages that are gone are kept in memory; after a restart they are
// learned again. A text that contains the page's URL is not recognized. If a site shows the same
// words everywhere, for example because it has begun to require JavaScript, its pages count as
// gone: there is nothing to read. Numbers, and what is around the page, are ignored as for changes.
//
// # What is stored
//
// With each URL, and as durable as the URL: the 12 bytes of package recrawl/adapter in
// History.State, and 17 bytes in its Entry.Meta, including a fingerprint of its words in 8; with
// MinChange another 84 bytes, a sketch of the words.
//
// For the crawl, in Options.Dir: a key, and the scheduler's state (price, trust in hosts) and
// counts. The state file is replaced every SaveEvery and, early in a crawl, whenever the price has
// moved. After a crash the accounts are rebuilt from the URLs; the price and the records of hosts
// are as last saved. Without the file those start from nothing, but the rates of the URLs are not
// lost.
//
// # Unusual input
//
//   - Pages that change at every fetch: changes in numbers or markup do not count. If words change,
//     two probes detect it, and the page is left alone until MaxInterval.
//   - Last-Modified is compared with the clock of the server that sent it (its Date), so a wrong
//     clock does no harm. A value later than Date, or one that the content contradicts, is ignored,
//     and so are further values of its host for a while.
//   - An ETag that changes without the content is not a change.
//   - A server that answers 304 though the page has changed: every 17th visit in a row asks without
//     conditions. If that finds a change, every fourth visit does; if that finds one, too, all do.
//     A 304 to a request without conditions is ignored.
//   - If OnPage fails, the page counts as failed; it is later fetched completely and found changed
//     again.
package incremental
