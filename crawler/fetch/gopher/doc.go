// Package gopher gets one item over Gopher (RFC 1436, RFC 4266), within one contact, for a crawler
// whose frontier paces the contacts.
//
//	f, err := gopher.New(fetch.Options{})
//	c, err := crawler.New(frontier, crawler.Options{Protocols: map[string]crawler.Fetcher{"gopher": f}})
//
// # URLs
//
// A URL gives the type of an item by one character, followed by a selector:
// gopher://a.example/1/docs is a menu, /0/docs/readme a text. Without a path it is the server's
// menu. Package urlnorm accepts such URLs with Normalizer.Accept, which crawler.New calls for the
// schemes of Options.Protocols.
//
// # Conversion of items
//
// Menus (types 1 and 7) become HTML pages with a link for each item that Gopher can fetch, and for
// the targets of URL: items (type h). Searches (7), phone books (2), terminal sessions (8, T) and
// messages (i, 3) get no link, since a crawler has no words to search for. A URL that contains the
// words of a search, such as a seed, is fetched. A second server for an item (+) is linked like the
// item.
//
// From texts (type 0), Gopher's framing is removed: the final line with a single dot, and the
// second dot of lines that begin with one. Many servers do not add it, which is detected. Other
// types are stored unchanged. A text or menu without an end mark counts as complete, since nothing
// shows the contrary.
//
// Gopher has no statuses. An item that consists of a single error message (type 3), which servers
// send for an unknown selector, is 404; everything else is 200.
//
// # Limits
//
// DialTimeout limits the connection, HeaderTimeout the first byte, IdleTimeout and MinRate the
// rest, Timeout the whole contact. MaxBody limits the item and the page made from a menu. Forbidden
// addresses are not contacted.
//
// # robots.txt
//
// No RFC defines its location. By custom, the selector /robots.txt is requested, by
// gopher://a.example/robots.txt. Its rules apply to selectors, without the type: see
// Fetcher.RobotsURL. A server without it answers with an error or a menu, which allows everything.
package gopher
