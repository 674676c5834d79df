// This file reads crawl's flags about requests to some hosts: headers, cookies, logins, proxies. Secrets
// are in files or in the environment; the flags only name them. So no list of processes, log, printed
// configuration or status page shows them.

package main

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/seed-7440039f/frontier/crawler/fetch"
)

// siteFlags are these flags before they are checked.
type siteFlags struct {
	headers, cookies, logins, proxies repeated
}

func (w *siteFlags) define(fs *flagSet) {
	fs.Var(&w.headers, "header", "`header` field for a host, *.domain, * or origin, as in '*.example.org Accept-Language: de'; the value may be env:NAME or file:PATH; without a value, a wider one is not sent; repeatable")
	fs.Var(&w.cookies, "cookie", "`cookie` for a host, *.domain, * or origin, as in 'shop.example consent=yes'; the value may be env:NAME or file:PATH; repeatable")
	fs.Var(&w.logins, "auth", "`login` for a host, *.domain or origin, as in 'shop.example basic env:NAME' (user:password) or 'api.example bearer file:PATH'; sent over https, and to an origin such as http://intra.example:8080; repeatable")
	fs.Var(&w.proxies, "proxy-for", "`proxy` for a host, *.domain, * or origin, instead of -proxy, as in '*.example.org socks5://127.0.0.1:1080', env:NAME, file:PATH, or direct for none; repeatable")
}

// siteFlag describes how to parse a flag's text into a Site.
type siteFlag struct {
	option string
	ends   string // what ends the name in it; empty: it has no name
	wanted string
	site   func(name, value string, secret bool) (fetch.Site, error)
}

var siteFlagsBy = map[string]siteFlag{
	"header":    {"header", ":", "want a host, *.domain, * or origin, and a header field, as in '*.example.org Accept-Language: de'", headerSite},
	"cookie":    {"cookie", "=", "want a host, *.domain, * or origin, and a cookie, as in 'shop.example consent=yes'", cookieSite},
	"auth":      {"auth", " ", "want a host, *.domain or origin, basic or bearer, and env:NAME or file:PATH, as in 'shop.example basic env:NAME'", loginSite},
	"proxy-for": {"proxy-for", "", "want a host, *.domain, * or origin, and a proxy's URL or direct, as in '*.example.org socks5://127.0.0.1:1080'", proxySite},
}

// apply checks each flag alone; fetch.New finds contradictions.
func (w *siteFlags) apply(s *settings) {
	for _, x := range []struct {
		name  string
		texts repeated
	}{{"header", w.headers}, {"cookie", w.cookies}, {"auth", w.logins}, {"proxy-for", w.proxies}} {
		for _, text := range x.texts {
			site, err := siteFlagsBy[x.name].read(text)
			if err != nil {
				scope, _, _ := strings.Cut(text, " ") // the rest may be a secret
				s.item(x.name, text, fmt.Errorf("%s for %q: %w", s.shown(x.name), scope, err))
				continue
			}
			s.fetch.Sites = append(s.fetch.Sites, site)
		}
	}
}

// cut splits a text: value is what begins at index at. ok is false if a part is missing.
func (f siteFlag) cut(text string) (scope, name string, at int, ok bool) {
	if at = strings.IndexByte(text, ' ') + 1; at == 0 {
		return text, "", len(text), false
	}
	scope = text[:at-1]
	at += len(text[at:]) - len(strings.TrimLeft(text[at:], " "))
	if f.ends != "" {
		n := strings.Index(text[at:], f.ends)
		if n <= 0 {
			return scope, "", len(text), false
		}
		name = text[at : at+n]
		at += n + len(f.ends)
	}
	return scope, name, at + len(text[at:]) - len(strings.TrimLeft(text[at:], " ")), true
}

func (f siteFlag) read(text string) (fetch.Site, error) {
	text = strings.TrimSpace(text)
	scope, name, at, ok := f.cut(text)
	if !ok || text[at:] == "" && f.option != "header" {
		return fetch.Site{}, errors.New(f.wanted)
	}
	value, secret, err := named(text[at:])
	if err != nil {
		return fetch.Site{}, err
	}
	site, err := f.site(name, value, secret)
	if err != nil {
		return site, err
	}
	site.Scope = scope
	return site, site.Check()
}

func headerSite(name, value string, secret bool) (fetch.Site, error) {
	if strings.EqualFold(name, "Authorization") {
		return fetch.Site{}, errors.New("the header field Authorization is set by -auth")
	}
	site := fetch.Site{Header: http.Header{name: nil}, Secret: secret}
	if value != "" {
		site.Header[name] = []string{value}
	}
	return site, nil
}

func cookieSite(name, value string, secret bool) (fetch.Site, error) {
	return fetch.Site{Cookies: []*http.Cookie{{Name: name, Value: value}}, Secret: secret}, nil
}

func loginSite(kind, value string, secret bool) (fetch.Site, error) {
	switch {
	case kind != "basic" && kind != "bearer":
		return fetch.Site{}, fmt.Errorf("%q: want basic or bearer", kind)
	case !secret:
		return fetch.Site{}, errors.New("a login is a secret, which stands in no command line and no configuration: give user:password or the token as env:NAME or file:PATH")
	case kind == "bearer":
		return fetch.Site{Header: http.Header{"Authorization": {"Bearer " + value}}, Secret: true}, nil
	case !strings.Contains(value, ":"):
		return fetch.Site{}, errors.New("what env:NAME or file:PATH has is not user:password")
	}
	return fetch.Site{Header: http.Header{"Authorization": {"Basic " + base64.StdEncoding.EncodeToString([]byte(value))}}, Secret: true}, nil
}

func proxySite(_, value string, secret bool) (fetch.Site, error) {
	if value == "direct" {
		return fetch.Site{Direct: true}, nil
	}
	u, err := proxyURL(value)
	if err == nil && u.User != nil && !secret {
		err = errors.New("a password stands in no command line and no configuration: give the proxy's URL as env:NAME or file:PATH")
	}
	return fetch.Site{Proxy: u}, err
}

// proxyURL parses a proxy's URL. The error does not quote it: it may contain a password.
func proxyURL(value string) (*url.URL, error) {
	u, err := url.Parse(value)
	if err != nil {
		return nil, errors.New("it is no URL")
	}
	if port := u.Port(); port != "" && !isPort(port) {
		return nil, fmt.Errorf("it is %q; want a port from 1 to 65535", u.Redacted())
	}
	return u, nil
}

// named returns a flag's value: the text itself, or the secret that it names. env:NAME names an
// environment variable, file:PATH the first line of a file.
func named(text string) (value string, secret bool, err error) {
	if name, ok := strings.CutPrefix(text, "env:"); ok {
		if value = os.Getenv(name); value == "" {
			return "", true, fmt.Errorf("the environment has no %s, or it is empty", name)
		}
		return value, true, nil
	}
	if path, ok := strings.CutPrefix(text, "file:"); ok {
		value, err = firstLine(path)
		return value, true, err
	}
	return text, false, nil
}

// firstLine reads a secret from a file's first line.
func firstLine(path string) (string, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	line, _, _ := strings.Cut(string(b), "\n")
	if line = strings.TrimSpace(line); line == "" {
		return "", fmt.Errorf("the first line of %s is empty", path)
	}
	return line, nil
}

// wholePath makes the path of a secret absolute.
func wholePath(option, text string) (string, error) {
	text = strings.TrimSpace(text)
	at := 0
	if f, ok := siteFlagsBy[option]; ok {
		_, _, at, _ = f.cut(text)
	}
	path, ok := strings.CutPrefix(text[at:], "file:")
	if !ok {
		return text, nil
	}
	path, err := filepath.Abs(path)
	return text[:at] + "file:" + path, err
}
