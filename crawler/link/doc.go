// Package link finds the links and the text of an HTML page in one pass over its bytes.
//
//	page, err := link.Extract(body, contentType, pageURL, link.Options{})
//	for _, l := range page.Links { ... l.URL ... }
//
// The page is read as a stream and never held as a tree, so neither its size nor the depth of its
// elements matters. [Options] limit the memory that a page can take.
//
// # What counts as a link
//
// All elements of the HTML Standard that lead to another page (a, area, frame, iframe, form with
// GET, meta refresh, link) or need another resource (img, script, video, object and so on, with
// srcset), and the references of style elements and attributes. Links inside noscript and noframes
// count too: a crawler runs no scripts. Scripts are not searched. [ExtractCSS] reads style sheets,
// and [ExtractHeader] the links in an answer's header: Link (RFC 8288), Refresh, X-Robots-Tag.
//
// Link elements and Link fields that a reader would follow are [Relative], which is one of [Pages]:
// next, prev, alternate, up and similar relations, unless their type shows that the target is not a
// page. wget -r follows these, too; it also fetches style sheets and icons.
//
// # How links are read
//
// Text is decoded first (see [Charset]), since the bytes of an href are meaningless without their
// encoding. Each link is resolved against the first base element with an href, wherever it is,
// otherwise against the page's URL, as in browsers: see package urlnorm. In pages with a legacy
// encoding the query keeps that encoding, because their servers expect it.
package link
