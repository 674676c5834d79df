// Package gopher gets one item over Gopher (RFC 1436, RFC 4266), within one contact,
// for a crawler whose frontier paces the contacts.
//
//	f, err := gopher.New(fetch.Options{})
//	c, err := crawler.New(frontier, crawler.Options{Protocols: map[string]crawler.Fetcher{"gopher": f}})
//
// # URLs
//
// A URL names a type of item by one character, and after it a selector:
// gopher://a.example/1/docs is a menu, /0/docs/readme a text. Without a path it is the
// server's menu. Package urlnorm takes such URLs with Normalizer.Accept, which
// crawler.New does for the schemes of Options.Protocols.
//
// # What becomes of an item
//
// Menus (types 1 and 7) become HTML pages with a link for each item that can be had
// by Gopher, and for URL: items (type h) what they name. Searches (7), phone books
// (2), terminal sessions (8, T) and messages (i, 3) have no link: nobody knows what to ask
// a search. A search in a URL that has its words, as a seed may, is asked. A second
// server for an item (+) is linked like the item.
//
// Texts (type 0) lose what Gopher adds to them: the line of a single dot that ends
// them, the second dot of lines that begin with one. Many servers add neither, which is
// noticed. Other types are sent as they are. A text or menu whose end is not marked counts as
// whole, as nothing tells.
//
// Gopher has no statuses. An item that is a single message of an error (type 3), as
// servers answer for a selector that they do not have, is 404; all else is 200.
//
// # Limits
//
// DialTimeout for the connection, HeaderTimeout for the first byte, IdleTimeout and
// MinRate from there, Timeout for all; MaxBody for the item and for the page made of a
// menu. Addresses that may not be contacted are not.
//
// # robots.txt
//
// No RFC says where it is. The selector /robots.txt is asked for, as is the custom, by
// gopher://a.example/robots.txt, and its rules are for selectors: without the type,
// see Fetcher.RobotsURL. A server that does not have it answers with an error or a menu,
// which allows everything.
package gopher
