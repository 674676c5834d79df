// Package fetch gets one page over HTTP/1.1 or HTTP/2, with one request, and reports exactly when
// the contact ended.
//
//	f, err := fetch.New(fetch.Options{UserAgent: "mybot/1.0 (+https://me.example/bot)"})
//	res, err := f.Fetch(ctx, fetch.Request{URL: "http://a.example/"})
//	defer res.Close()
//	doc, err := link.Extract(res.Body.Reader(), ...) // as often as you like
//
// It is made for crawlers whose frontier paces the contacts with each host, so it differs from an
// http.Client:
//   - A call sends at most one request. Nothing is repeated after a cut connection, and redirects
//     are not followed: the target is another URL, to be contacted when its host is due.
//   - When Fetch returns, the contact is over: the connection is closed, even after a timeout, or
//     idle after an answer that was read to its end. So an abandoned request cannot stay open while
//     the host is contacted again, and [Result.Ended] is the moment from which to measure the
//     host's delay.
//   - One idle connection per host is kept for a short time and used for the next request. If the
//     server closes it instead of answering, the error says so ([Error.Stale]), and no further
//     connections to that host are kept.
//   - Every phase has a time limit, and a body a minimum rate; the header, and the body as sent and
//     as decoded, have size limits.
//   - Answers that are not to the letter are read if browsers, or curl and wget, read them: heads with
//     bad lines, framing given twice, chunks without CR. Their connections are not used again. Where HTTP/2
//     fails the next request uses HTTP/1.1.
//   - Addresses of the crawler's own network are not contacted, whatever names, redirects or
//     changing DNS answers lead to them ([Networks]).
//   - The URL is sent as given, without decoding and encoding it again. User and password in a URL
//     are not sent, nor is a Referer.
//   - The body is read once and may be read again, from memory or a temporary file (package spool).
//     gzip, brotli, zstd and deflate are decoded within the limits.
package fetch
