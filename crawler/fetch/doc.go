// Package fetch gets one page over HTTP/1.1, with one request, and says exactly
// when the contact ended.
//
//	f, err := fetch.New(fetch.Options{UserAgent: "mybot/1.0 (+https://me.example/bot)"})
//	res, err := f.Fetch(ctx, fetch.Request{URL: "http://a.example/"})
//
// It is made for crawlers whose frontier paces the contacts with each host, so
// it differs from an http.Client:
//
//   - A call sends at most one request over one connection of its own. Nothing
//     is repeated after a cut connection, and redirects are not followed: the
//     target is another URL, to be contacted when its own host is due.
//   - When Fetch returns, the connection is closed, also after a timeout. So a
//     host is never contacted twice at once because an abandoned request is
//     still open, and [Result.Ended] is the moment to count the host's pause from.
//   - Every phase has its own time limit, and the header and the body, as sent
//     and as decoded, have their size limits.
//   - The URL is sent as given: what it holds is not decoded and encoded again.
//
// The price is a new connection, with TLS a new handshake, for each page. With
// pauses of seconds between the pages of a host few servers would have kept the
// old one open.
package fetch
