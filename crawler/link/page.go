// This file defines the result of reading a page, and the kinds of links.

package link

import (
	"cmp"
	"math/bits"
	"strings"

	"github.com/seed-7440039f/frontier/crawler/urlnorm"
)

// Page is what Extract found in one document.
type Page struct {
	Base    string // base URL of links; empty if no usable one was known
	Charset string // canonical name of the encoding that was used, such as "utf-8"
	Title   string // of the first title element, blanks collapsed
	Links   []Link // in document order, repetitions included
	Robots  Directives
	// Text is the text of the page if Options.MaxPageText is set: a line for each block, with white
	// space collapsed, without the title, scripts and styles.
	Text string

	// Skipped counts links of wanted kinds that a crawler cannot follow: with other schemes,
	// invalid or too long.
	Skipped int
	// Dropped counts links beyond Options.MaxLinks, those after the URLs took MaxURLs together, and
	// those of documents in attributes after 64 of these had a base of their own.
	Dropped int
	// TextTruncated means that Text reached Options.MaxPageText.
	TextTruncated bool
}

// Link is one reference of a page.
type Link struct {
	URL  string // absolute, as the Normalizer spells it
	Raw  string // the attribute's value: decoded to UTF-8, character references resolved
	Kind Kind
	Rel  string // lower-case rel attribute of a, area, form and link elements
	Text string // for a: its text and the alt texts of its images; for area and img: alt; white space collapsed
	// NoFollow means that Rel contains nofollow, ugc or sponsored: the page does not endorse the
	// target.
	NoFollow bool
}

// Kind is the kind of element that a link comes from. Kinds are bits, so that [Options] can combine
// several.
type Kind uint32

// The kinds of link.
const (
	Anchor     Kind = 1 << iota // a
	Area                        // area
	Frame                       // frame
	IFrame                      // iframe; object and embed, if a page may be in them
	Refresh                     // meta http-equiv=refresh, Refresh header
	Form                        // form with method GET
	Canonical                   // link rel=canonical, as an element or a header
	Related                     // another rel, such as search: see Link.Rel
	Stylesheet                  // link rel=stylesheet, @import
	Image                       // img, input type=image, picture, video poster, SVG, link rel=icon, background attributes
	Script                      // script, link rel=modulepreload
	Media                       // audio, video, track, bgsound, and source outside of pictures
	Embed                       // embed, object, if no page is in them; link rel=manifest
	Style                       // url() in style elements, style attributes and style sheets: images and fonts
	Feed                        // link rel=alternate with the type of RSS or Atom
	Relative                    // link rel=next, prev, alternate and the like, to a page

	// Pages are the kinds that normally lead to a page.
	Pages = Anchor | Area | Frame | IFrame | Refresh | Canonical | Relative
	// Requisites are the kinds of what browsers load to display a page. What link rel=preload names is of the kind
	// that it is used as.
	Requisites = Stylesheet | Image | Script | Media | Style | Embed | Frame | IFrame
	// All are all kinds.
	All = Relative<<1 - 1
)

var kindNames = [...]string{
	"anchor", "area", "frame", "iframe", "refresh", "form", "canonical", "related", "stylesheet", "image", "script", "media", "embed", "style", "feed", "relative",
}

// String returns the names of the kinds in k, joined by a vertical bar.
func (k Kind) String() string {
	var names []string
	for rest := k & All; rest != 0; rest &= rest - 1 {
		names = append(names, kindNames[bits.TrailingZeros32(uint32(rest))])
	}
	return strings.Join(names, "|")
}

// Options configure Extract. The zero value is suitable for crawling the open web.
type Options struct {
	// Normalizer resolves and spells URLs. Nil means urlnorm.New().
	Normalizer *urlnorm.Normalizer
	// Kinds are the kinds to report. Zero means All.
	Kinds Kind
	// Agent is the crawler's product token, for meta elements addressed to it by name. Empty means
	// that only those for all robots count.
	Agent string
	// MaxLinks is the number of links to keep; further links are counted in Page.Dropped. Zero
	// means 10,000.
	MaxLinks int
	// MaxToken is how many bytes of one tag, text or script are held at a time. Longer ones are
	// read in pieces; the rest of a longer tag is lost. Zero means 1 MiB; the minimum is 4 KiB.
	MaxToken int
	// MaxText is how many bytes of the title, and of each link's text, are kept. Zero means 1,024;
	// a negative value means none.
	MaxText int
	// MaxPageText is how many bytes of Page.Text are kept. Zero means none.
	MaxPageText int
}

func (o Options) withDefaults() Options {
	if o.Normalizer == nil {
		o.Normalizer = urlnorm.New()
	}
	o.Kinds = cmp.Or(o.Kinds, All)
	o.MaxLinks = cmp.Or(max(0, o.MaxLinks), 10_000)
	o.MaxToken = cmp.Or(max(0, o.MaxToken), 1<<20)
	o.MaxToken = max(o.MaxToken, 4<<10)
	o.MaxText = cmp.Or(o.MaxText, 1024)
	return o
}
