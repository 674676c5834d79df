// This file keeps cookies, as few as hostile hosts make advisable.

package fetch

import (
	"cmp"
	"container/list"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"slices"
	"strings"
	"sync"

	"golang.org/x/net/publicsuffix"
)

// Limits of a Jar; cookies beyond them are dropped.
const (
	maxJarDomains    = 10_000 // registrable domains; the least recently used is forgotten
	maxDomainCookies = 50     // of a domain; the one that was set first is dropped
	maxCookieBytes   = 4 << 10
)

// Jar is an http.CookieJar with limits: cookies reach only the hosts of their registrable domain,
// by the Public Suffix List, and no host can fill the memory: a domain has 50 cookies, of at most 4 KiB. It is
// safe for concurrent use.
type Jar struct {
	mu      sync.Mutex
	domains map[string]*list.Element // guarded by mu; of *domainJar
	order   list.List                // guarded by mu; last used first
}

// domainJar holds the cookies of one registrable domain.
type domainJar struct {
	name string
	jar  *cookiejar.Jar
	kept []keptCookie // those in jar, and maybe expired ones; the last set last
}

// keptCookie names a cookie: one of the same name, domain and path replaces it (RFC 6265 section 5.3).
type keptCookie struct {
	name, domain, path string
	by                 *url.URL // the URL that set it
}

// NewJar returns an empty Jar.
func NewJar() *Jar { return &Jar{domains: map[string]*list.Element{}} }

// SetCookies implements http.CookieJar.
func (j *Jar) SetCookies(u *url.URL, cookies []*http.Cookie) {
	if len(cookies) == 0 {
		return
	}
	name := registrable(u)
	j.mu.Lock()
	defer j.mu.Unlock()
	e := j.domains[name]
	if e == nil {
		for len(j.domains) >= maxJarDomains {
			old := j.order.Remove(j.order.Back()).(*domainJar)
			delete(j.domains, old.name)
		}
		e = j.order.PushFront(&domainJar{name: name, jar: emptyJar()})
		j.domains[name] = e
	}
	j.order.MoveToFront(e)
	d := e.Value.(*domainJar)
	for _, c := range cookies {
		if len(c.Name)+len(c.Value) <= maxCookieBytes {
			d.set(u, c)
		}
	}
}

// set keeps a cookie, in the place of the one that it replaces, or of the first if there are too many.
func (d *domainJar) set(u *url.URL, c *http.Cookie) {
	k := keptCookie{by: u, name: c.Name, domain: strings.ToLower(strings.TrimPrefix(c.Domain, ".")), path: c.Path}
	if k.domain == "" {
		k.domain = strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	}
	if !strings.HasPrefix(k.path, "/") { // the folder of the URL (section 5.1.4)
		k.path = cmp.Or(u.Path[:max(0, strings.LastIndexByte(u.Path, '/'))], "/")
	}
	d.kept = slices.DeleteFunc(d.kept, func(o keptCookie) bool { return o.name == k.name && o.domain == k.domain && o.path == k.path })
	if len(d.kept) == maxDomainCookies {
		first := d.kept[0]
		d.jar.SetCookies(first.by, []*http.Cookie{{Name: first.name, Path: first.path, Domain: first.domain, MaxAge: -1}})
		d.kept = slices.Delete(d.kept, 0, 1)
	}
	d.kept = append(d.kept, k)
	d.jar.SetCookies(u, []*http.Cookie{c})
}

// Cookies implements http.CookieJar.
func (j *Jar) Cookies(u *url.URL) []*http.Cookie {
	j.mu.Lock()
	defer j.mu.Unlock()
	e := j.domains[registrable(u)]
	if e == nil {
		return nil
	}
	j.order.MoveToFront(e)
	return e.Value.(*domainJar).jar.Cookies(u)
}

func emptyJar() *cookiejar.Jar {
	j, _ := cookiejar.New(&cookiejar.Options{PublicSuffixList: publicsuffix.List}) // it never fails
	return j
}

// registrable returns the domain whose hosts may share cookies.
func registrable(u *url.URL) string {
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if d, err := publicsuffix.EffectiveTLDPlusOne(host); err == nil {
		return d
	}
	return host
}

// cookieURL returns a request's URL as a cookie jar needs it: with a path.
func cookieURL(req *http.Request) *url.URL {
	target := req.URL.Opaque
	if rest, ok := strings.CutPrefix(target, "//"+req.URL.Host); ok {
		target = rest
	}
	path, _, _ := strings.Cut(target, "?")
	return &url.URL{Scheme: req.URL.Scheme, Host: req.URL.Host, Path: path}
}
