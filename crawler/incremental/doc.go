// Package incremental makes a crawl an ever-running one: pages are fetched again when
// that is worth it, so that a copy of them stays as fresh as a budget allows. The
// frontier's Scheduler is that of package recrawl/adapter, which decides; this package
// finds out for it what a crawler's visits found, and keeps what it has learned.
//
//	r, err := incremental.Open(incremental.Options{Dir: "state/recrawl", Schedule: recrawl.Options{Budget: 20}})
//	r.Configure(&frontierOptions)                  // scheduler, priorities, retries
//	f, err := frontier.Open(ctx, frontierOptions)
//	err = r.Attach(ctx, f)
//	c, err := crawler.New(f, crawler.Options{Revisits: r, MaxRate: 20})
//	err = c.Run(ctx)                               // until ctx ends
//	err = r.Close()
//
// # What is a change
//
// A page's words are compared (package neardup): without markup, scripts, and what its
// site puts around every page, in any letter case, and with all numbers alike. So
// dates, counters, and advertisements that are marked as such are no change. With
// Options.MinChange a change must be of some size, too. Of other files the bytes
// count, of a redirect its target. Status 304 says that nothing changed. Handlers
// of OnPage see what was found out in Page.Outcome.Result: Changed, Unchanged, or
// Visited for the first copy.
//
// # What answers mean
//
//	2xx, redirects   changed or unchanged
//	                 (a 200 that says what five pages of the host, which differed,
//	                 became: gone, as with 404)
//	304              unchanged
//	404, 410         gone: of a page that was read, seen again after Schedule.Probe
//	                 or its interval, then after half a day or twice that, then after
//	                 two days or four times that; if it is gone still it is put away,
//	                 and looked at after 30 to 240 days. One never read is put away
//	                 at once
//	other 4xx        may not be read: the same
//	robots.txt       forbids it: the same, without a request
//	failed           tried again after MinInterval, 8, 64, 512 times that, at most
//	                 a quarter of its interval; a known page is never given up. One
//	                 never read is given up as the frontier's Retry says
//
// Which texts a host has for pages that are gone is kept in memory: a restart learns it
// anew. A page whose text names its own URL is not noticed, and a site that shows the same
// words everywhere, as one that needs JavaScript since yesterday, counts as gone: there is
// nothing to read. Numbers and what is around the page do not count, as with changes.
//
// # What is kept
//
// Of a URL, so as durable as it is: the 12 bytes of package recrawl/adapter in
// History.State; and in its Entry.Meta 17, of which 8 are a fingerprint of its words; with
// MinChange 84 more, a sketch of them. Of the whole, in Options.Dir: the scheduler's state (price, honesty
// of hosts) and counts, written every SaveEvery in place of the last file, and at the
// beginning whenever the price has moved; and a key.
// After a crash the books are made anew from the URLs, by an export; price and hosts'
// records are as last saved. Without the file they begin from nothing, and the URLs'
// rates are not lost.
//
// # What may go wrong
//
//   - Pages that change at every fetch: if it is in numbers or markup it is no change.
//     If it is in words, two probes find it out, and the page is left until
//     MaxInterval.
//   - Last-Modified is judged by the clock of the server that sent it (its Date), so
//     a clock that is wrong does no harm. One later than Date, or that the content
//     contradicts, is not believed, and its host is not for a while.
//   - An ETag that changes without the content is no change.
//   - A server that answers 304 though the page has changed: every 17th visit in a row
//     asks without conditions. If that finds a change the fourth from then on does, and
//     if that does too, all do. A 304 to a request without conditions says nothing.
//   - A page that OnPage could not take counts as failed, and is fetched whole and
//     found changed again.
package incremental
