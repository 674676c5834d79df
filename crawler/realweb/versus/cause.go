// This file finds out why one crawler requested a URL and the other did not. It reads the pages
// that link there and does not guess: without evidence, a difference has no cause.

package main

import (
	"bytes"
	"context"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/html"

	"github.com/seed-7440039f/frontier/crawler/fetch"
	"github.com/seed-7440039f/frontier/crawler/filter"
	"github.com/seed-7440039f/frontier/crawler/link"
	"github.com/seed-7440039f/frontier/crawler/urlnorm"
)

// What `frontier crawl` does without other flags: -max-url, -max-body.
const (
	longest = 4096
	maxBody = 10 << 20
)

// explainer finds the causes from both sets.
type explainer struct {
	ctx               context.Context
	fetcher           *fetch.Fetcher
	mine, cut, theirs answers
	traps             *filter.Traps
	spelled           map[string]string      // wget's URLs by their normal spelling
	pages             map[string]*page       // read so far
	leading           map[string][]reference // by target: links to what only the crawler found
	searched          map[string]bool        // hosts whose pages were searched for these
	done              map[string]*difference // explained
}

// page is a page that was read again.
type page struct {
	body, contentType string
	*link.Page
}

// reference is a link from a page.
type reference struct {
	from string
	link.Link
}

func newExplainer(ctx context.Context, proxy string, mine, cut, theirs answers) (*explainer, error) {
	f, err := fetch.New(fetch.Options{
		Proxy: &url.URL{Scheme: "http", Host: proxy}, MaxBody: 64 << 20,
		Networks: fetch.Networks{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
	})
	x := &explainer{
		ctx: ctx, fetcher: f, mine: mine, cut: cut, theirs: theirs, traps: filter.NewTraps(filter.TrapOptions{}),
		spelled: map[string]string{}, pages: map[string]*page{}, leading: map[string][]reference{}, searched: map[string]bool{}, done: map[string]*difference{},
	}
	for u := range theirs {
		if n := normal(u); n != u {
			x.spelled[n] = u
		}
	}
	return x, err
}

func normal(u string) string {
	n, err := urlnorm.New().Normalize(u)
	if err != nil {
		return u
	}
	return n
}

// differences returns the differences of the sets, in order.
func (x *explainer) differences() (all []*difference) {
	for u, r := range x.mine {
		if _, both := x.theirs[u]; !both {
			all = append(all, &difference{request: r, alone: true})
		}
	}
	for u, r := range x.theirs {
		if _, both := x.mine[u]; !both {
			all = append(all, &difference{request: r})
		}
	}
	slices.SortFunc(all, func(a, b *difference) int { return strings.Compare(a.url(), b.url()) })
	for _, d := range all {
		x.done[d.url()] = nil
	}
	return all
}

// explain finds the cause of a difference. If only another difference links to it, it has the same
// cause.
func (x *explainer) explain(d *difference) {
	if x.done[d.url()] != nil {
		d.cause = x.done[d.url()].cause
		return
	}
	x.done[d.url()] = d
	if d.alone {
		d.cause = x.whyMine(d)
	} else {
		d.cause = x.whyTheirs(d)
	}
}

// causeOf returns the cause of a page that is itself a difference on the same side; ok reports
// whether it is one.
func (x *explainer) causeOf(u string, alone bool) (cause string, ok bool) {
	d, ok := x.done[u]
	if !ok {
		return "", false
	}
	if d == nil {
		d = &difference{request: x.theirs[u]}
		if r, found := x.mine[u]; found {
			d = &difference{request: r, alone: true}
		}
		x.explain(d)
	}
	return d.cause, d.alone == alone
}

// whyTheirs returns why only wget has an answer.
func (x *explainer) whyTheirs(d *difference) string {
	u := d.url()
	norm := normal(u)
	if _, cut := x.cut[u]; cut && x.longer(u) {
		return "longer than -max-body: the crawler read the beginning"
	}
	if _, ok := x.mine[norm]; ok && norm != u {
		return "spelling: wget asked for the same again, spelled otherwise"
	}
	if why := x.traps.Refuse(filter.Split(norm, 1)); why.Refused() {
		return "trap guard: " + why.Rule
	}
	if len(norm) > longest {
		return "longer than -max-url"
	}
	if cause, ok := x.causeOf(d.Referer, false); ok {
		return cause
	}
	p := x.read(d.Referer)
	switch {
	case p == nil:
		return ""
	case strings.HasPrefix(p.contentType, "text/css"):
		return "style: url() of a style sheet, which leads to no page"
	case p.Page == nil:
		return "content type: wget read links in what is not said to be HTML"
	case p.Robots.NoFollow:
		return "robots: the page says nofollow"
	}
	for _, l := range p.Links {
		switch {
		case l.URL != norm:
		case l.Kind&link.Pages != 0:
			return "" // it should have been crawled
		case l.Kind == link.Style:
			return "style: url() of a style sheet, which leads to no page"
		default:
			return "kind: " + l.Kind.String() + ", which leads to no page"
		}
	}
	asked, _ := url.PathUnescape(d.Path)
	for _, l := range p.Links {
		if strings.Contains(l.Raw, "\\") && strings.HasSuffix(asked, l.Raw) {
			return "spelling: wget does not know backslashes as slashes"
		}
	}
	if where := quoted(p.body, u); where != "" {
		return "markup: in the text of " + where + ", where wget takes it for a link"
	}
	return ""
}

// whyMine returns why only the crawler has an answer.
func (x *explainer) whyMine(d *difference) string {
	u := d.url()
	if _, ok := x.spelled[u]; ok {
		return "spelling: wget asked for the same, spelled otherwise"
	}
	x.search(d.Host)
	var kinds link.Kind
	var odd string
	for _, r := range x.leading[u] {
		if _, fetched := x.theirs[r.from]; !fetched {
			continue
		}
		kinds |= r.Kind
		odd = oddity(r)
		if odd == "" && r.Kind != link.Canonical {
			break // a link as any other
		}
	}
	switch {
	case kinds == link.Canonical:
		return "canonical: wget was told not to follow link elements"
	case kinds != 0 && odd != "":
		return odd
	case kinds != 0:
		return ""
	}
	for _, r := range x.leading[u] {
		if cause, ok := x.causeOf(r.from, true); ok && cause != "" {
			return cause
		}
	}
	for from, r := range x.mine { // a redirect's target
		if r.Status/100 == 3 && r.Host == d.Host {
			if cause, ok := x.causeOf(from, true); ok && cause != "" && x.redirects(from, u) {
				return cause
			}
		}
	}
	return ""
}

// oddity returns what wget does not understand in the spelling of a link.
func oddity(r reference) string {
	raw := strings.TrimSpace(r.Raw)
	lower := strings.ToLower(raw)
	switch {
	case strings.HasPrefix(lower, "http:") && !strings.HasPrefix(lower, "http://"):
		return "spelling: wget does not know http:/path, a path to browsers"
	case strings.Contains(raw, "\\"):
		return "spelling: wget does not know backslashes as slashes"
	case strings.ContainsAny(raw, "\t\n\r"):
		return "spelling: wget keeps tabs and line ends in links"
	case strings.ContainsFunc(raw, func(c rune) bool { return c > 0x7e }):
		return "encoding: wget spells other characters than ASCII as the page's bytes"
	}
	return ""
}

// read reads a page again; nil if that fails. Its Page is nil if it is not HTML.
func (x *explainer) read(u string) *page {
	if p, ok := x.pages[u]; ok {
		return p
	}
	res, err := x.fetcher.Fetch(x.ctx, fetch.Request{URL: u})
	if err != nil {
		return nil
	}
	defer res.Close()
	var p *page
	if res.Status == 200 {
		body, _ := res.Body.Bytes()
		p = &page{body: string(body), contentType: res.Header.Get("Content-Type")}
		if t := p.contentType; strings.HasPrefix(t, "text/html") || strings.HasPrefix(t, "application/xhtml") {
			p.Page, _ = link.Extract(bytes.NewReader(body), t, u, link.Options{MaxLinks: 1 << 20})
		}
	}
	clear(x.pages) // one is enough: differences are in order, and pages are large
	x.pages[u] = p
	return p
}

// longer reports whether a body has more bytes than the crawler reads.
func (x *explainer) longer(u string) bool {
	p := x.read(u)
	return p != nil && len(p.body) > maxBody
}

// redirects reports whether a URL redirects to another.
func (x *explainer) redirects(from, to string) bool {
	res, err := x.fetcher.Fetch(x.ctx, fetch.Request{URL: from})
	if err != nil {
		return false
	}
	defer res.Close()
	target, err := urlnorm.New().Resolve(from, res.Header.Get("Location"))
	return err == nil && target == to
}

// search finds the pages of a host that link to what only the crawler found.
func (x *explainer) search(host string) {
	if x.searched[host] {
		return
	}
	x.searched[host] = true
	for u, r := range x.mine {
		if r.Host != host || r.Status != 200 {
			continue
		}
		p := x.read(u)
		if p == nil || p.Page == nil {
			continue
		}
		for _, l := range p.Links {
			if _, differs := x.done[l.URL]; differs && l.Kind&link.Pages != 0 {
				x.leading[l.URL] = append(x.leading[l.URL], reference{u, l})
			}
		}
	}
}

// quoted returns the element with raw text that contains the last segment of a URL after something
// like an attribute; empty if there is none.
func quoted(body, u string) string {
	last := u[strings.LastIndexByte(strings.TrimSuffix(u, "/"), '/')+1:]
	plain, err := url.PathUnescape(last)
	if err != nil {
		plain = last
	}
	z := html.NewTokenizer(strings.NewReader(body))
	within := ""
	for {
		switch z.Next() {
		case html.ErrorToken:
			return ""
		case html.StartTagToken, html.SelfClosingTagToken:
			name, _ := z.TagName()
			within = string(name)
		case html.EndTagToken:
			within = ""
		case html.CommentToken:
			if says(string(z.Raw()), plain, last) {
				return "a comment"
			}
		case html.TextToken:
			switch within {
			case "script", "iframe", "style", "textarea", "noembed", "xmp", "title":
				if says(string(z.Raw()), plain, last) {
					return within
				}
			}
		}
	}
}

func says(text string, words ...string) bool {
	text = html.UnescapeString(text)
	if !strings.Contains(text, "href") && !strings.Contains(text, "src") {
		return false
	}
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
}
