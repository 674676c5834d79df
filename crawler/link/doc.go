// Package link finds the links and the text of an HTML page in one pass over its
// bytes.
//
//	page, err := link.Extract(body, contentType, pageURL, link.Options{})
//	for _, l := range page.Links { ... l.URL ... }
//
// The page is read as a stream and never held as a tree, so neither its size nor
// the depth of its elements matters. What a page can make Extract remember is
// bounded by [Options].
//
// # What counts as a link
//
// All elements of the HTML Standard that lead to another page (a, area, frame,
// iframe, form with GET, meta refresh, link) or need another resource (img,
// script, video, object and so on, with srcset), and what style elements and
// attributes refer to. Links inside noscript and noframes count too: a crawler
// runs no scripts. Scripts are not searched. [ExtractCSS] reads style sheets, and
// [ExtractHeader] what an answer's header says: Link (RFC 8288), Refresh, X-Robots-Tag.
//
// Of link elements and Link fields those that a reader would follow are [Relative], and
// among [Pages]: next, prev, alternate, up and the like, unless their type says that they
// are no page. wget -r follows these, too; it also fetches style sheets and icons.
//
// # How links are read
//
// Text is decoded first (see [Charset]), since the bytes of an href mean nothing
// without their encoding. Each link is resolved against the first base element
// with an href, wherever it stands, else against the page's URL, as browsers do:
// see package urlnorm. In pages of a legacy encoding the query keeps that
// encoding, because that is what their servers expect.
package link
