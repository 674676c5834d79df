// Package frontierchromedp renders pages in Chromium, for crawls of pages that need JavaScript:
//
//	r, err := frontierchromedp.New(frontierchromedp.Options{Fetch: fetch.Options{UserAgent: agent}})
//	defer r.Close()
//	c, err := crawler.New(f, crawler.Options{UserAgent: agent, Fetcher: r})
//
// A Renderer is a Fetcher of package crawler, so redirects, robots.txt, addresses, back-off and
// limits are as in every crawl, and links are read from the rendered page.
//
// # What a host sees
//
// The browser has no network. A Renderer's [fetch.Fetcher] sends every request, so the rules for
// addresses, sizes and secrets of [fetch.Options] hold for what scripts request, too. A page is
// fetched as always. Only if it is HTML with status 2xx does a tab load it, and run its scripts:
//   - What scripts need from the page's own host is part of the contact of the page's lease. It is
//     requested one at a time, if robots.txt allows it, at most Options.MaxRequests of it. The
//     contact ends, and the host's delay begins, with the last answer. After a status 429 or 503
//     nothing more is requested. A script is requested once in Options.ScriptTTL, not for each page.
//   - Other hosts are not contacted, unless Options.Others sends the request: a polite.Transport
//     waits for the host's turn, and asks its robots.txt.
//   - Only scripts and what scripts request are loaded: no images, fonts, style sheets, frames,
//     media, web sockets; and only with GET.
//   - A page that goes elsewhere, by script or a refresh, stays where it is. The target is a link of
//     the page, so a URL of its own that waits for its turn.
//
// A page is done when it is loaded and has requested nothing for Options.Quiet, or after
// Options.Timeout. If its tab crashes or does not respond, Fetch returns an error and the page as it
// was sent: the crawler tries it again, and keeps it as sent when the tries are used up.
package frontierchromedp
