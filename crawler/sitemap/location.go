// This file resolves the URLs in a file, and decides whether the file may list them.

package sitemap

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/seed-7440039f/frontier/crawler/urlnorm"
	"github.com/seed-7440039f/frontier/internal/urllist"
)

// resolver resolves the URLs of one file.
type resolver struct {
	norm      *urlnorm.Normalizer
	own       string // the file's URL; empty if unknown
	scheme    string
	host      string
	folder    string // own up to the last slash of its path
	hosts     []string
	locations Locations
}

func newResolver(o Options) resolver {
	r := resolver{norm: o.Normalizer, locations: o.Locations}
	own, err := o.Normalizer.Normalize(o.URL)
	if err != nil { // empty, or a file's name: nothing is known of its place
		r.locations = AnyURL
		return r
	}
	r.own = own
	r.scheme, r.host = schemeAndHost(own)
	path, _, _ := strings.Cut(own, "?")
	r.folder = path[:strings.LastIndexByte(path, '/')+1]
	for _, h := range o.Hosts {
		r.hosts = append(r.hosts, strings.ToLower(strings.TrimSuffix(h, ".")))
	}
	return r
}

// resolve returns the URL that raw means, if a file of the format may list it. base is the base of
// relative URLs according to the file.
func (r *resolver) resolve(raw, base string, f Format) (string, error) {
	u, err := r.spell(raw, base, f)
	if err == nil && !r.allowed(u, f) {
		return "", ErrLocation
	}
	return u, err
}

func (r *resolver) spell(raw, base string, f Format) (string, error) {
	if raw == "" {
		return "", ErrURL
	}
	if !utf8.ValidString(raw) || strings.ContainsRune(raw, utf8.RuneError) {
		return "", fmt.Errorf("%w: not in the file's encoding", ErrURL)
	}
	u, err := r.absolute(raw, base, f)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrURL, err)
	}
	return u, nil
}

func (r *resolver) absolute(raw, base string, f Format) (string, error) {
	switch {
	case hasScheme(raw):
		return r.norm.Normalize(raw)
	case r.beginsWithHost(raw):
		return r.norm.Normalize(cmp.Or(r.scheme, "http") + "://" + raw)
	case strings.HasPrefix(raw, "//"):
		return r.norm.Normalize(cmp.Or(r.scheme, "http") + ":" + raw)
	case f == Text && raw[0] != '/' || r.own == "" && base == "":
		return "", urlnorm.ErrSyntax
	case base == "":
		return r.norm.Resolve(r.own, raw)
	case r.own == "":
		return r.norm.Resolve(base, raw)
	}
	b, err := r.norm.Resolve(r.own, base)
	if err != nil {
		return "", err
	}
	return r.norm.Resolve(b, raw)
}

// Resolve returns the URL that a line of a file on a site means, as of a robots.txt. It may be relative,
// lack its scheme, and be in quotes or angle brackets.
func Resolve(norm *urlnorm.Normalizer, file, line string) (string, error) {
	raw, err := urllist.URL([]byte(line))
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrURL, err)
	}
	r := newResolver(Options{URL: file, Normalizer: norm}.withDefaults())
	return r.spell(string(raw), "", URLSet)
}

// hasScheme distinguishes http://a.example/ and mailto:x from a.example:8080/.
func hasScheme(raw string) bool {
	colon := strings.IndexByte(raw, ':')
	return colon > 0 && !strings.ContainsAny(raw[:colon], "./?#")
}

// beginsWithHost recognizes URLs without a scheme.
func (r *resolver) beginsWithHost(raw string) bool {
	end := strings.IndexAny(raw, ":/?#")
	if end < 0 {
		end = len(raw)
	}
	name := strings.ToLower(raw[:end])
	switch {
	case name == "" || strings.HasPrefix(name, "."):
		return false
	case strings.HasPrefix(name, "www."), name == r.host, slices.Contains(r.hosts, name):
		return true
	}
	return strings.HasSuffix(name, "."+r.host) || strings.Contains(name, ".") && strings.HasSuffix(r.host, "."+name)
}

func (r *resolver) allowed(u string, f Format) bool {
	if r.locations == AnyURL {
		return true
	}
	_, host := schemeAndHost(u)
	if slices.Contains(r.hosts, host) {
		return true
	}
	if r.locations == OwnHost || f == Index || f == RSS || f == Atom {
		return host == r.host
	}
	return strings.HasPrefix(u, r.folder)
}

// schemeAndHost cuts a normalized URL.
func schemeAndHost(u string) (scheme, host string) {
	scheme, rest, _ := strings.Cut(u, "://")
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		rest = rest[:i]
	}
	if i := strings.LastIndexByte(rest, '@'); i >= 0 {
		rest = rest[i+1:]
	}
	if i := strings.LastIndexByte(rest, ':'); i >= 0 && !strings.HasSuffix(rest, "]") {
		rest = rest[:i]
	}
	return scheme, rest
}

// Places returns the usual locations of sitemaps, for a site whose robots.txt lists none: URLs with
// the scheme, host and port of site, the most usual first. It returns nil if site is not a URL that
// can be crawled.
func Places(site string) []string {
	root, err := urlnorm.New().Resolve(site, "/")
	if err != nil {
		return nil
	}
	var urls []string
	for _, name := range []string{
		"sitemap.xml", "sitemap_index.xml", "sitemap-index.xml", "sitemap.xml.gz", "sitemap.txt", "sitemap/sitemap.xml", "sitemapindex.xml",
	} {
		urls = append(urls, root+name)
	}
	return urls
}
