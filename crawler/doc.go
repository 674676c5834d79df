// Package crawler crawls with a frontier: its workers take leases, ask
// robots.txt, fetch, read links, and report the outcome with the links in one
// commit.
//
//	c, err := crawler.New(f, crawler.Options{UserAgent: "mybot/1.0 (+https://me.example/bot)"})
//	_, err = c.Seed(ctx, "http://a.example/")
//	err = c.Run(ctx) // until nothing is left, or ctx ends
//
// # One lease, one request
//
// The frontier's lease is the right to contact a host once, so no lease ever
// sends a second request. A redirect's target is another URL, added like a link.
// A robots.txt is asked for under a lease of its own: the page is handed back
// uncontacted and its slot used for robots.txt; the page comes again when the
// host is next due. A robots.txt that redirects to another host waits for that
// host's slot. So robots.txt costs a host one polite contact, never two at once.
//
// # Addresses
//
// Hosts with the same IP address form a group: it is contacted once at a time, and
// then left alone as the frontier's Options.GroupDelay says, beside what each host
// is owed. The address is looked up before the contact, the lease joins its group,
// and the request goes to that address; while the group may not be contacted the
// page is handed back. A robots.txt is such a contact, too. Options.Groups exempts
// networks, as of a content delivery network. A host that an operator put into a
// group with a name of its own stays there. Through a proxy nothing is looked up.
//
// # robots.txt
//
// It is asked for once for each scheme, host and port, and believed for 24 hours
// (RFC 9309). Status 4xx and more than five redirects allow everything. While it
// cannot be had (5xx, 429, no answer) nothing is fetched, and the site's URLs wait:
// to the frontier its host has failed, as if pages could not be reached, with
// back-off, quarantine and, as the one thing that drops URLs, Quarantine.Probes.
// URLs of the host's other sites come up meanwhile. A copy that has expired is better
// than none, and is used on after three tries. Crawl-delay becomes the host's least
// delay.
//
// # When no host answers
//
// The network seems to be away when three hosts in a row that answered before do not,
// and no other does; or, as long as no host has answered, when the first three have no
// connection or no address, or the first five refuse the connection. The crawler says
// so once, contacts few hosts until one answers, one in 10 s at most, and is back at
// speed then. What fails meanwhile counts against no host and no URL. After a day it
// does, or after an hour if no host has answered in this run: then it is the hosts.
//
// # What answers mean
//
//	2xx                       visited; the links are added
//	301, 302, 303, 307, 308   visited; the target is added at the same depth
//	304                       unchanged
//	404, 410                  gone
//	408, 425, 429, 5xx, none  failed: tried again as the frontier's Retry says
//	other 4xx                 visited, without links
//	401, 403                  the same; but failed if the host gave pages of the same
//	                          folder, with parameters of the same names, within an hour
//
// A host that refuses what it gave may have had enough of us: the page is tried again,
// and from the third refusal in a row on the host is slowed down as by 429, told once by a
// warning. A page that is refused again after the host gave another is not for us: it
// counts as visited.
//
// A redirect to a URL on the way to itself is a loop: it is counted, as are those
// of more than Options.MaxRedirects in a row, and not followed. Only a page that sets
// a cookie and redirects to itself is asked for once more, if the Fetcher keeps
// cookies. What led to a URL,
// and its ETag for the next visit (sent with If-Modified-Since), is kept in its
// Entry.Meta; a Meta of the user's own is left alone, and then there is no ETag.
//
// Retry-After is honoured with any of them, up to Options.MaxRetryAfter. The
// frontier is told what kind of failure it was, also of a robots.txt: no address,
// no connection, no answer in time, 503, 429, other 5xx.
//
// # What is not crawled
//
// Options.Scope, Filters and Rules say what a crawl is about, Responses which answers
// are read. Guards against sites without an end are on unless Options.Traps says
// otherwise; their limits are those of package filter. Progress.FilteredBy counts
// what was refused, by rule.
//
// A link that is refused is not taken. A URL that waits already is parked instead, as a
// crawl that goes on with other filters may be a mistake: it waits in the frontier, in
// another crawl that is paused, and Unpark brings it back. The targets of redirects from
// seeds are parked, too. What a run cannot have is parked until the next Crawler's Run:
// URLs at addresses that are not to be contacted, those of a host with MaxPagesPerHost
// pages, and seeds that robots.txt forbids or that were given up (GivenUp). Progress counts
// both. For this, crawls (Entry.Crawl) must have numbers below 1<<24.
//
// # Stopping and resuming
//
// Nothing but the frontier's folder is needed to go on later, also after a
// crash: robots.txt files are asked for again, and the counts of Options.MaxPages,
// MaxPagesPerHost and of the guards against traps begin anew: a trap gets as many pages
// again, in each run. A page that was fetched but not yet recorded is fetched again.
//
// # For ever
//
// With Options.Revisits and the Scheduler of the frontier that goes with it (package
// incremental has both) pages are fetched again, when that is worth it, within
// Options.MaxRate.
//
// # Its parts
//
// Each part is a package of its own, useful without this one: dns, fetch (with fetch/ftp
// and fetch/gopher, to be named in Options.Protocols), filter,
// robots, urlnorm, link, rewind, sitemap, near, warc, split. Fetcher, Robots,
// Extractor and Filter replace them. Package processing hangs an archive, the
// content-seen test and sitemaps on a Crawler's Options.
package crawler
