// This file keeps cookies, as few as hostile hosts make advisable.

package fetch

import (
	"container/list"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"sync"

	"golang.org/x/net/publicsuffix"
)

// Limits of a Jar; cookies beyond them are dropped.
const (
	maxJarDomains    = 10_000 // registrable domains; the least recently used is forgotten
	maxDomainCookies = 50     // cookies taken of a domain, replacements included
	maxCookieBytes   = 4 << 10
	maxAnswerCookies = 20
)

// Jar is an http.CookieJar with limits: cookies reach only the hosts of their registrable domain,
// by the Public Suffix List, and no host can fill the memory. When a domain has set 50 cookies,
// including changes, its cookies are deleted. It is safe for concurrent use.
type Jar struct {
	mu      sync.Mutex
	domains map[string]*list.Element // guarded by mu; of *domainJar
	order   list.List                // guarded by mu; last used first
}

// domainJar holds the cookies of one registrable domain.
type domainJar struct {
	name  string
	jar   *cookiejar.Jar
	taken int // since it was made
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
	for i, c := range cookies {
		if i >= maxAnswerCookies || len(c.Raw) > maxCookieBytes || len(c.Name)+len(c.Value) > maxCookieBytes {
			continue
		}
		if d.taken >= maxDomainCookies {
			d.jar, d.taken = emptyJar(), 0
		}
		d.taken++
		d.jar.SetCookies(u, []*http.Cookie{c})
	}
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

// cookieURL is a request's URL as a jar reads it: with its path.
func cookieURL(req *http.Request) *url.URL {
	target := req.URL.Opaque
	if rest, ok := strings.CutPrefix(target, "//"+req.URL.Host); ok {
		target = rest
	}
	path, _, _ := strings.Cut(target, "?")
	return &url.URL{Scheme: req.URL.Scheme, Host: req.URL.Host, Path: path}
}
