// Package crawler crawls with a frontier: its workers take leases, check robots.txt, fetch pages,
// extract links, and report the outcome and the links in one commit.
//
//	c, err := crawler.New(f, crawler.Options{UserAgent: "mybot/1.0 (+https://me.example/bot)"})
//	_, err = c.Seed(ctx, "http://a.example/")
//	err = c.Run(ctx) // until nothing is left, or ctx ends
//
// The default Fetcher contacts public addresses only. For a server on this machine, such as one of
// httptest, allow its network with fetch.Options.Networks. Progress.Blocked counts URLs at addresses
// that are not allowed.
//
// # One lease, one request
//
// A lease is the right to contact a host once, so no lease ever sends a second request. The target
// of a redirect is another URL, added like a link. robots.txt uses the slot of a page: the worker
// hands the page back uncontacted and fetches robots.txt instead, and the page is handed out again
// when the host is next due. If robots.txt redirects to another host, the crawler waits for a slot
// of that host. So robots.txt costs a host one polite contact, never two at once.
//
// # Addresses
//
// Hosts with the same IP address form a group. A group gets one request at a time, and then rests
// for the frontier's Options.GroupDelay, in addition to the delay of each host. The crawler looks
// up the address before the contact, the lease joins its group, and the request goes to that
// address. While the group may not be contacted, the page is handed back. Requests for robots.txt
// count as contacts, too. Options.Groups exempts networks, such as those of content delivery
// networks. A host that an operator has assigned to another group stays there.
//
// Behind a proxy, the proxy looks addresses up, so hosts are polite one by one, unless
// fetch.Options.ProxyLookup has them looked up here as well. The proxy may see, and connect to,
// other addresses. The proxy itself is owed no pause: its operator can set one for a group, with
// Frontier.SetGroup and Assign.
//
// # robots.txt
//
// The crawler requests robots.txt once for each scheme, host and port, and caches it for 24 hours
// (RFC 9309). Status 4xx and more than five redirects allow everything. While robots.txt is
// unreachable (5xx, a limit of the pace, no answer) nothing is fetched, and the site's URLs wait. The frontier
// treats its host as if pages had failed, with back-off and quarantine; URLs are dropped only by
// Quarantine.Probes. URLs of the host's other sites get their turn meanwhile. An expired copy is
// used after three failed tries. Crawl-delay becomes the host's minimum delay.
//
// # When no host answers
//
// The crawler assumes that its network is down when three hosts in a row that answered before do
// not, and no other does. As long as no host has answered, it assumes so when the first three have
// no connection or no address, or the first five refuse the connection. It logs this once, contacts
// few hosts until one answers, at most one in 10 s, and then returns to full speed. Failures during
// an outage count against no host and no URL. After a day, or after an hour if no host has answered
// in this run, the crawler blames the hosts instead, and failures count again.
//
// # How answers are treated
//
//	2xx                       visited; the links are added
//	301, 302, 303, 307, 308   visited; the target is added at the same depth
//	300, and those without    visited; the links are added, and the target that a 300 prefers
//	a usable target
//	304                       unchanged; failed if the request had no condition
//	404, 410                  gone
//	408, 421, 425, 5xx, none  failed: retried according to the frontier's Retry
//	420, 429, 430, 999        the same: a limit of the pace, as is any 4xx with Retry-After
//	400, 409, 411-417, 422,
//	424, 426, 428, 431, 451   visited, without links
//	401, 403 and other 4xx    the same; but failed if the host gave pages of the same
//	                          folder, with parameters of the same names, within an hour
//
// A host that refuses what it gave before may be limiting the crawler. The page is retried, and
// from the third refusal in a row on the host is slowed down as by 429, with one warning in the
// log. If a page is refused again after the host gave another one, the page itself is forbidden: it
// counts as visited.
//
// A redirect to a URL that led to it is a loop: loops, and redirects beyond Options.MaxRedirects in
// a row, are counted and not followed. There is one exception: a URL that redirects lead back to after one
// of them set a cookie is requested again, twice at most, if the Fetcher keeps cookies. The URL's redirects,
// and its ETag for the next visit (sent with If-Modified-Since), are stored in its Entry.Meta. A
// Meta set by the user is left unchanged; such a URL has no ETag.
//
// Retry-After is honoured with any status, up to Options.MaxRetryAfter: seconds, with a fraction or a unit, or a
// date in any usual form; of several the longest. The frontier learns the
// kind of each failure, including those of robots.txt: no address, no connection, timeout, 503,
// 429, other 5xx.
//
// # What is not crawled
//
// Options.Scope, Filters and Rules limit what is crawled, Responses which answers are read. Guards
// against sites without an end (traps) are on unless Options.Traps disables them; package filter
// has their limits. Progress.FilteredBy counts refusals by rule.
//
// A refused link is not added. A refused URL that is already waiting is parked instead, since the
// filters of a resumed crawl may be wrong: it waits in the frontier, in a separate paused crawl,
// and Unpark brings it back, or its host when that joins the scope. The targets of redirects from
// seeds are parked, too. URLs that this run cannot fetch are parked until the next Crawler's Run:
// those of a host that has reached MaxPagesPerHost, and seeds that were given up (GivenUp). URLs at
// forbidden addresses, and seeds that robots.txt forbids, are looked at again in the same Run, while
// it lasts: after a minute, later after up to an hour. Progress counts both kinds. Parking requires that crawls (Entry.Crawl) have numbers
// below 1<<24.
//
// # Stopping and resuming
//
// The frontier's folder is all that is needed to continue later, even after a crash. robots.txt
// files are requested again. Counts start again from zero for Options.MaxPages and MaxPagesPerHost,
// and for the guards against traps, so a trap gets the same number of pages in each run. A page
// that was fetched but not recorded is fetched again.
//
// # Continuous crawling
//
// With Options.Revisits and the matching Scheduler of the frontier (package incremental has both),
// pages are fetched again when that is worth a fetch, within Options.MaxRate.
//
// # Packages
//
// Each part is a separate package that can be used without this one: dns, fetch (with fetch/ftp and
// fetch/gopher, which Options.Protocols enables), filter, robots, urlnorm, link, spool, sitemap,
// neardup, warc. To replace a part, implement Fetcher, Robots, Extractor or Filter.
// Package processing adds an archive, the content-seen test and sitemaps to a Crawler's Options.
package crawler
