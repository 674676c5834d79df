// This file reads URLs of schemes that are not special in the URL Standard, for crawls with a
// protocol for them.

package urlnorm

import (
	"fmt"
	"maps"
	"strings"

	whatwg "github.com/nlnwa/whatwg-url/url"
)

// Accept returns a Normalizer that also accepts URLs of another scheme whose URLs have hosts, such
// as gopher (RFC 4266). scheme is in lower case; port is the default port, which is left out of
// URLs, or empty if there is none. Hosts are normalized as for http; paths keep backslashes.
// Accepting http, https or ftp changes nothing.
//
// For gopher, a path that requests the server's menu is written as "/".
func (n *Normalizer) Accept(scheme, port string) *Normalizer {
	if crawlable(scheme) {
		return n
	}
	others := maps.Clone(n.others)
	if others == nil {
		others = map[string]string{}
	}
	others[scheme] = port
	return &Normalizer{rules: n.rules, others: others}
}

// other reports whether raw has an accepted scheme.
func (n *Normalizer) other(raw string) bool {
	if len(n.others) == 0 {
		return false
	}
	_, known := n.others[schemeOf(raw)]
	return known
}

// bounded applies the checks that are independent of the scheme.
func bounded(raw string) error {
	switch {
	case len(raw) > MaxLength:
		return ErrTooLong
	case strings.Count(raw, "@") > maxAt:
		return fmt.Errorf("%w: more than %d at signs", ErrSyntax, maxAt)
	}
	return nil
}

// parseOther parses a URL that may be of an accepted scheme, relative to base unless
// that is nil.
func (n *Normalizer) parseOther(raw string, base *whatwg.Url) (URL, error) {
	if err := bounded(raw); err != nil {
		return URL{}, err
	}
	w, err := parser.BasicParser(raw, base, nil, whatwg.NoState)
	if err != nil {
		return URL{}, syntaxError{err}
	}
	href := w.Href(false)
	if crawlable(w.Scheme()) {
		return split(href), nil
	}
	port, ok := n.others[w.Scheme()]
	if !ok {
		return URL{}, ErrScheme
	}
	if !strings.HasPrefix(href, w.Scheme()+"://") {
		return URL{}, fmt.Errorf("%w: no host", ErrSyntax)
	}
	u := split(href)
	// The standard leaves these hosts unchanged; here they are treated as names.
	host, err := parse("http://"+u.Host+"/", nil)
	if err != nil {
		return URL{}, err
	}
	u.Host = host.Host
	if u.Port == port {
		u.Port = ""
	}
	if u.Path == "" || u.Scheme == "gopher" && u.Path == "/1" {
		u.Path = "/"
	}
	return u, nil
}
