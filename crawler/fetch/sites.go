// This file finds what is different for the host of a URL: headers, cookies, secrets, a proxy.
//
// A Fetcher follows no redirects, so what it sends to a host depends on that request's URL alone: a
// secret cannot follow a redirect or a link to another host.

package fetch

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"
	"golang.org/x/net/publicsuffix"

	"github.com/seed-7440039f/frontier/internal/faults"
	"github.com/seed-7440039f/frontier/internal/hostkey"
)

// Site holds settings for some hosts. Of several Sites that set the same header field or
// cookie, or choose a proxy, the one with the most specific Scope counts: a host before its domain,
// a longer domain before a shorter one, an origin before its host.
type Site struct {
	// Scope is a host (a.example), a domain with all hosts below it (*.example.org), or * for all
	// hosts. It covers both schemes and all ports, unless it begins with a scheme: then it covers
	// that origin only, with the port that it names or the scheme's own
	// (http://intra.example:8080, https://*.example.org).
	Scope string
	// Header is sent with each request, robots.txt included. A field without values removes what a
	// wider Scope sets. Fields that the Fetcher sets itself, or that say how the message is sent,
	// are refused.
	Header http.Header
	// Cookies are sent with each request: Name and Value count. A cookie of the same name in
	// Options.Jar, which the host set later, takes precedence.
	Cookies []*http.Cookie
	// Secret makes Header and Cookies secret. A secret is not sent to all hosts (*), to the domains of a
	// public suffix (*.co.uk), over plain http, or to another port than 443, unless Scope is an origin
	// with that scheme and port. Result.Request, and so a WARC file, has the word "redacted" in its
	// place. The field Authorization must be a secret.
	Secret bool
	// Proxy, if set, is used instead of Options.Proxy: an http, https or socks5 URL. Direct means
	// that no proxy is used.
	Proxy  *url.URL
	Direct bool
}

// redacted stands for a secret where a request is shown.
const redacted = "redacted"

// ownFields are the header fields that are not a Site's to set, and what sets them.
var ownFields = map[string]string{
	"User-Agent": "Options.UserAgent sets it", "Accept-Encoding": "the Fetcher decodes what it asks for", "Cookie": "use Cookies",
	"If-None-Match": "the crawler sets it", "If-Modified-Since": "the crawler sets it",
	"Host": "the URL sets it", "Range": "pages are fetched whole", "Expect": "no body is sent", "Connection": "the connection is the Fetcher's",
	"Content-Length": "no body is sent", "Transfer-Encoding": "no body is sent", "Te": "the connection is the Fetcher's",
	"Trailer": "no body is sent", "Upgrade": "the connection is the Fetcher's", "Keep-Alive": "the connection is the Fetcher's",
	"Proxy-Authorization": "the proxy's URL has user and password", "Proxy-Connection": "the connection is the Fetcher's",
}

// Check returns everything that is wrong with a Site alone. New also refuses Sites of one Scope that
// set the same thing.
func (s *Site) Check() error {
	_, err := s.where()
	return err
}

// where checks a Site, and returns its parsed Scope.
func (s *Site) where() (where, error) {
	w, err := parseScope(s.Scope)
	if err != nil {
		return w, err
	}
	var wrong faults.List
	for name, values := range s.Header {
		why, own := ownFields[http.CanonicalHeaderKey(name)]
		switch {
		case !httpguts.ValidHeaderFieldName(name):
			wrong.Add(fmt.Errorf("%q is not the name of a header field", name))
		case own:
			wrong.Add(fmt.Errorf("the header field %s cannot be set: %s", name, why))
		case !s.Secret && strings.EqualFold(name, "Authorization"):
			wrong.Add(fmt.Errorf("the header field Authorization must be a secret"))
		case slices.ContainsFunc(values, func(v string) bool { return !httpguts.ValidHeaderFieldValue(v) }):
			wrong.Add(fmt.Errorf("the value of the header field %s has control characters", name))
		}
	}
	for _, c := range s.Cookies {
		wrong.If(!canSend(c), "the cookie %q has a name or value that cannot be sent", c.Name)
	}
	if s.Proxy != nil {
		wrong.Add(checkProxy("its proxy", s.Proxy))
	}
	wrong.If(s.Proxy != nil && s.Direct, "it has a proxy and is Direct; want one of them")
	if s.Secret {
		wrong.Add(w.keeps())
	}
	return w, errors.Join(wrong...)
}

// checkProxy returns an error for a URL that is not a proxy's.
func checkProxy(name string, p *url.URL) error {
	switch {
	case p.Scheme != "http" && p.Scheme != "https" && p.Scheme != "socks5":
		return fmt.Errorf("%s is %q; want http://, https:// or socks5://", name, p.Redacted())
	case p.Hostname() == "":
		return fmt.Errorf("%s is %q; want a host", name, p.Redacted())
	}
	return nil
}

// where is a parsed Scope. It is comparable.
type where struct {
	name         string // a host's key, or a domain's after "*.", or "*"
	scheme, port string // of an origin; empty: all
}

func parseScope(s string) (w where, err error) {
	name := s
	scheme, rest, isOrigin := strings.Cut(s, "://")
	if isOrigin {
		name, w.scheme = strings.TrimSuffix(rest, "/"), strings.ToLower(scheme)
		if w.scheme != "http" && w.scheme != "https" {
			return w, fmt.Errorf("%q: want http:// or https://", s)
		}
		u := &url.URL{Scheme: w.scheme, Host: name}
		if w.port = portOf(u); u.Port() != "" {
			name = strings.TrimSuffix(name, ":"+w.port)
		}
		if n, err := strconv.ParseUint(w.port, 10, 16); err != nil || n == 0 {
			return w, fmt.Errorf("%q: want a port from 1 to 65535", s)
		}
	}
	if w.name = name; name == "*" {
		return w, nil
	}
	base, isDomain := strings.CutPrefix(name, "*.")
	if strings.Contains(base, "*") {
		return w, fmt.Errorf("%q: want a host, *.domain, or * for all", s)
	}
	if w.name, err = hostkey.Spelled(base); err != nil {
		return w, err
	}
	if isDomain {
		w.name = "*." + w.name
	}
	return w, nil
}

// keeps returns an error if a secret would reach hosts of strangers.
func (w where) keeps() error {
	if w.name == "*" {
		return errors.New("a secret for all hosts is none; want a host or *.domain")
	}
	base, isDomain := strings.CutPrefix(w.name, "*.")
	suffix, icann := publicsuffix.PublicSuffix(base)
	if listed := icann || strings.Contains(suffix, "."); isDomain && listed && suffix == base {
		return fmt.Errorf("a secret for *.%s would go to strangers: anyone can have a host below %s; want a host or a domain of yours", base, base)
	}
	return nil
}

// siteIndex finds Sites by name. It is read-only after indexSites.
type siteIndex struct {
	byName map[string][]indexedSite // origins last
	err    error                    // everything that is wrong with the Sites
}

type indexedSite struct {
	*Site
	where
}

func indexSites(sites []Site) *siteIndex {
	x := &siteIndex{byName: map[string][]indexedSite{}}
	var errs []error
	type setting struct {
		where
		what string
	}
	first := map[setting]bool{}
	for i := range sites {
		s := &sites[i]
		w, err := s.where()
		for _, what := range s.settings() {
			if first[setting{w, what}] && err == nil {
				err = fmt.Errorf("%s is set twice", what)
			}
			first[setting{w, what}] = true
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("in Sites[%d], for %q: %w", i, s.Scope, err))
			continue
		}
		x.byName[w.name] = append(x.byName[w.name], indexedSite{s, w})
	}
	for _, all := range x.byName {
		slices.SortStableFunc(all, func(a, b indexedSite) int { return len(a.scheme) - len(b.scheme) })
	}
	x.err = errors.Join(errs...)
	return x
}

// settings names what a Site sets.
func (s *Site) settings() (names []string) {
	for name := range s.Header {
		names = append(names, "the header field "+http.CanonicalHeaderKey(name))
	}
	for _, c := range s.Cookies {
		names = append(names, "the cookie "+c.Name)
	}
	if s.Proxy != nil || s.Direct {
		names = append(names, "the proxy")
	}
	return names
}

// each calls fn for the Sites of a host, the most specific last. A nil index is empty.
func (x *siteIndex) each(host string, fn func(indexedSite)) {
	if x == nil || len(x.byName) == 0 {
		return
	}
	key, err := hostkey.Spelled(host)
	if err != nil {
		key = strings.ToLower(host)
	}
	names := []string{key}
	if _, err := netip.ParseAddr(key); err != nil { // addresses have no domains
		for rest, more := key, true; more; _, rest, more = strings.Cut(rest, ".") {
			names = append(names, "*."+rest)
		}
	}
	names = append(names, "*")
	for _, name := range slices.Backward(names) {
		for _, s := range x.byName[name] {
			fn(s)
		}
	}
}

// covers reports whether a Site holds for a scheme and port. Its secrets may not: see keepsFrom.
func (w where) covers(u *url.URL) bool {
	return w.scheme == "" || w.scheme == u.Scheme && w.port == portOf(u)
}

// keepsFrom reports whether a secret is not sent to a URL that the Site covers.
func (s indexedSite) keepsFrom(u *url.URL) bool {
	return s.Secret && s.scheme == "" && (u.Scheme != "https" || portOf(u) != "443")
}

// extras are what the Sites of a URL add to a request.
type extras struct {
	header  http.Header
	cookies []*http.Cookie
	secret  map[string]bool // header fields; and cookies, by name and "="
	proxy   *url.URL        // nil: none
}

// extras returns what holds for a URL.
func (o *Options) extras(u *url.URL) extras {
	x := extras{proxy: o.Proxy}
	o.sites.each(u.Hostname(), func(s indexedSite) {
		if !s.covers(u) {
			return
		}
		if s.Proxy != nil || s.Direct {
			x.proxy = s.Proxy
		}
		if s.keepsFrom(u) {
			return
		}
		if x.secret == nil {
			x.header, x.secret = http.Header{}, map[string]bool{}
		}
		for name, values := range s.Header {
			name = http.CanonicalHeaderKey(name)
			x.header[name], x.secret[name] = values, s.Secret
		}
		for _, c := range s.Cookies {
			x.cookies = slices.DeleteFunc(x.cookies, func(old *http.Cookie) bool { return old.Name == c.Name })
			x.cookies, x.secret[c.Name+"="] = append(x.cookies, c), s.Secret
		}
	})
	return x
}

// Proxied reports whether some request to a host goes through a proxy, so that the host's name is
// the proxy's to look up.
func (f *Fetcher) Proxied(host string) bool {
	proxied := f.opts.Proxy != nil
	f.opts.sites.each(host, func(s indexedSite) {
		switch {
		case s.Proxy != nil:
			proxied = true
		case s.Direct && s.scheme == "":
			proxied = false
		}
	})
	return proxied
}

// addCookies adds the Sites' cookies to the jar's. It returns the Cookie field to show in logs and
// archives; nil if it contains no secret.
func (x *extras) addCookies(req *http.Request, jar []*http.Cookie) []string {
	all := slices.Clone(jar)
	for _, c := range x.cookies {
		if !slices.ContainsFunc(jar, func(own *http.Cookie) bool { return own.Name == c.Name }) {
			all = append(all, &http.Cookie{Name: c.Name, Value: c.Value, Quoted: c.Quoted})
		}
	}
	if len(all) == 0 {
		return nil
	}
	req.Header.Set("Cookie", cookieField(all))
	hides := false
	for i, c := range all {
		if i >= len(jar) && x.secret[c.Name+"="] {
			all[i], hides = &http.Cookie{Name: c.Name, Value: redacted}, true
		}
	}
	if !hides {
		return nil
	}
	return []string{cookieField(all)}
}
