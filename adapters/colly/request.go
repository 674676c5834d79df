// This file turns colly's requests into entries of a frontier and back.
//
// A plain GET needs nothing but its URL and depth. Whatever else a request has (method,
// body, headers, Ctx) travels in Entry.Meta as JSON.

package frontiercolly

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/gocolly/colly/v2"
	whatwg "github.com/nlnwa/whatwg-url/url"
	"github.com/seed-7440039f/frontier"
)

// MetaKey is where callbacks find the Meta of an entry that Frontier.Add admitted without this
// package: r.Ctx.Get(frontiercolly.MetaKey).
const MetaKey = "frontier.meta"

// ErrBadMeta reports an entry whose Meta begins like this package's and cannot be read.
var ErrBadMeta = errors.New("frontiercolly: the URL's Meta cannot be read")

// metaMark begins each Meta that this package writes.
const metaMark = `{"colly":`

// request is what is kept of a request besides its URL and depth. The names of its fields are those
// of colly's own JSON, which Collector.UnmarshalRequest reads.
type request struct {
	URL     string         `json:",omitempty"`
	Depth   int            `json:",omitempty"`
	Method  string         `json:",omitempty"` // empty: GET
	Body    []byte         `json:",omitempty"`
	Ctx     map[string]any `json:",omitempty"`
	Headers http.Header    `json:",omitempty"`
	Host    string         `json:",omitempty"`
	// Collector is the name of the collector that performs it.
	Collector string `json:",omitempty"`
	// Redirects is the number of redirects that led here.
	Redirects int `json:",omitempty"`
}

type meta struct {
	Colly request `json:"colly"`
}

var urls = whatwg.NewParser(whatwg.WithPercentEncodeSinglePercentSign())

// normalized returns a URL as colly writes it, without its fragment: URLs that differ only there are one
// page.
func normalized(raw string) (string, error) {
	u, err := urls.Parse(raw)
	if err != nil {
		return "", fmt.Errorf("frontiercolly: %q: %w", raw, err)
	}
	return u.Href(true), nil
}

// kept returns what has to be kept of r, which c will perform; c may be nil. It reads r's body.
func kept(r *colly.Request, c *colly.Collector) (request, error) {
	if r.URL == nil {
		return request{}, colly.ErrMissingURL
	}
	b, err := r.Marshal() // the only way to all of its Ctx
	if err != nil {
		return request{}, fmt.Errorf("frontiercolly: %s: Ctx and body must be JSON: %w", r.URL, err)
	}
	var k request
	if err := json.Unmarshal(b, &k); err != nil {
		return request{}, fmt.Errorf("frontiercolly: %s: %w", r.URL, err)
	}
	if k.URL, err = normalized(k.URL); err != nil {
		return request{}, err
	}
	if k.Method = strings.ToUpper(k.Method); k.Method == http.MethodGet {
		k.Method = ""
	}
	k.dropDefaults(r, c)
	return k, nil
}

// dropDefaults leaves out what colly sets again when it performs the request. Headers that are not
// just the collector's stay as they are: to a request with headers colly adds none of its own.
func (k *request) dropDefaults(r *colly.Request, c *colly.Collector) {
	if k.Host == r.URL.Host {
		k.Host = ""
	}
	if c == nil {
		return
	}
	own := http.Header{"Accept": {"*/*"}, "User-Agent": {c.UserAgent}}
	if c.Headers != nil {
		maps.Copy(own, *c.Headers)
	}
	if maps.EqualFunc(k.Headers, own, slices.Equal) {
		k.Headers = nil
	}
}

// same reports whether a and b are one request, performed twice.
func same(a, b request) bool {
	return a.URL == b.URL && a.Method == b.Method && bytes.Equal(a.Body, b.Body)
}

// plain reports whether the request is a GET with nothing but a URL and a depth.
func (k *request) plain() bool {
	return k.Method == "" && len(k.Body) == 0 && len(k.Ctx) == 0 && len(k.Headers) == 0 && k.Host == "" && k.Collector == "" && k.Redirects == 0
}

// entry returns the request as an entry. Requests of one URL are different ones if their methods or
// bodies differ.
func (k request) entry() (frontier.Entry, error) {
	e := frontier.Entry{URL: k.URL, Depth: k.Depth, AsIs: true}
	if k.Method != "" || len(k.Body) > 0 {
		h := sha256.New()
		_, _ = io.WriteString(h, k.Method+"\n")
		_, _ = h.Write(k.Body)
		e.URL += fmt.Sprintf("#%s-%x", k.Method, h.Sum(nil)[:8])
	}
	if len(e.URL) > frontier.MaxURL {
		return e, fmt.Errorf("frontiercolly: %.100s...: the URL has %d bytes; want at most %d", e.URL, len(e.URL), frontier.MaxURL)
	}
	if !k.plain() {
		k.URL, k.Depth = "", 0
		b, err := json.Marshal(meta{k})
		if err != nil {
			return e, fmt.Errorf("frontiercolly: %s: %w", e.URL, err)
		}
		if len(b) > frontier.MaxMeta {
			return e, fmt.Errorf("frontiercolly: %s: body, headers and Ctx take %d bytes; want at most %d", e.URL, len(b), frontier.MaxMeta)
		}
		e.Meta = b
	}
	return e, nil
}

// requestOf returns the request that an entry stands for.
func requestOf(e frontier.Entry) (request, error) {
	var m meta
	var err error
	switch {
	case bytes.HasPrefix(e.Meta, []byte(metaMark)):
		if bad := json.Unmarshal(e.Meta, &m); bad != nil {
			err = fmt.Errorf("%w: %s: %w", ErrBadMeta, e.URL, bad)
		}
	case len(e.Meta) == 0:
	case !utf8.Valid(e.Meta):
		err = fmt.Errorf("%w: %s: it is no text, so Ctx cannot carry it", ErrBadMeta, e.URL)
	default:
		m.Colly.Ctx = map[string]any{MetaKey: string(e.Meta)}
	}
	m.Colly.URL, _, _ = strings.Cut(e.URL, "#")
	m.Colly.Depth = e.Depth
	return m.Colly, err
}

// of returns the request as one of a collector.
func (k request) of(c *colly.Collector) (*colly.Request, error) {
	k.Method = cmp.Or(k.Method, http.MethodGet)
	if k.Host != "" { // colly takes it from the headers only
		if k.Headers = k.Headers.Clone(); k.Headers == nil {
			k.Headers = http.Header{}
		}
		k.Headers.Set("Host", k.Host)
	}
	b, err := json.Marshal(k)
	if err != nil {
		return nil, fmt.Errorf("frontiercolly: %s: %w", k.URL, err)
	}
	r, err := c.UnmarshalRequest(b)
	if err != nil {
		return nil, fmt.Errorf("frontiercolly: %s: %w", k.URL, err)
	}
	return r, nil
}

// redirected returns the request for the target of a redirect, as browsers and net/http make it.
func (k request) redirected(status int, location string) (request, error) {
	base, err := urls.Parse(k.URL)
	if err != nil {
		return k, fmt.Errorf("frontiercolly: %q: %w", k.URL, err)
	}
	to, err := base.Parse(location)
	if err != nil {
		return k, fmt.Errorf("frontiercolly: %s redirects to %q: %w", k.URL, location, err)
	}
	from, host := k.URL, ""
	k.URL = to.Href(true)
	if k.Redirects++; k.Redirects > maxRedirects {
		return k, fmt.Errorf("frontiercolly: %s: stopped after %d redirects", from, maxRedirects)
	}
	kept := status == http.StatusTemporaryRedirect || status == http.StatusPermanentRedirect
	if !kept {
		if k.Method != http.MethodHead {
			k.Method = ""
		}
		k.Body = nil
		k.Headers = k.Headers.Clone()
		k.Headers.Del("Content-Type")
	}
	if u, err := url.Parse(from); err == nil {
		host = u.Host
	}
	if to.Host() != host { // a secret is the first host's only
		k.Headers, k.Host = k.Headers.Clone(), ""
		for _, name := range []string{"Authorization", "Cookie", "Host", "Www-Authenticate"} {
			k.Headers.Del(name)
		}
	}
	return k, nil
}

// maxRedirects is how many redirects in a row lead to a page at most, as in net/http.
const maxRedirects = 10
