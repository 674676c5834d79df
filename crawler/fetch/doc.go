// Package fetch gets one page over HTTP/1.1 or HTTP/2, with one request, and says
// exactly when the contact ended.
//
//	f, err := fetch.New(fetch.Options{UserAgent: "mybot/1.0 (+https://me.example/bot)"})
//	res, err := f.Fetch(ctx, fetch.Request{URL: "http://a.example/"})
//	defer res.Close()
//	doc, err := link.Extract(res.Body.Reader(), ...) // as often as you like
//
// It is made for crawlers whose frontier paces the contacts with each host, so
// it differs from an http.Client:
//
//   - A call sends at most one request. Nothing is repeated after a cut connection,
//     and redirects are not followed: the target is another URL, to be contacted
//     when its own host is due.
//   - When Fetch returns, the contact is over: the connection is closed, also after
//     a timeout, or idle after an answer that was read to its end. So a host is never
//     contacted twice at once because an abandoned request is still open, and
//     [Result.Ended] is the moment to count the host's pause from.
//   - One idle connection is kept for each host, for a short time, and used for
//     the next request. If the server closes it instead of answering, the error says
//     so ([Error.Stale]), and none is kept for that host any more.
//   - Every phase has its own time limit, and a body its least rate; the header, and
//     the body as sent and as decoded, have their size limits.
//   - Addresses of the network that the crawler runs in are not contacted, whatever
//     names, redirects or changing answers of name servers lead to them
//     ([Networks]).
//   - The URL is sent as given: what it holds is not decoded and encoded again. User
//     and password in a URL are not sent, and no Referer is.
//   - The body is read once and may be read again, from memory or a temporary file
//     (package spool). gzip, brotli, zstd and deflate are undone within the limits.
package fetch
