// This file parses an operator's names for hosts.

package console

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/internal/hostkey"
	"github.com/seed-7440039f/frontier/scope"
)

// ParseScope parses what scope.Scope.String writes: "*" for all hosts, "*." and a domain, "crawl:" and a
// number, or a host key. The URL of a host's first page means the host. ParseScope does not check that
// the host can exist; the frontier does.
func ParseScope(s string) (scope.Scope, error) {
	switch name, isDomain := strings.CutPrefix(s, "*."); {
	case s == "", s == "*.":
		return scope.Scope{}, errors.New("no host: want a host, *.domain, * for all, or crawl:NUMBER")
	case s == "*":
		return scope.All(), nil
	case isDomain && !strings.Contains(name, "*"):
		return scope.Domain(name), nil
	}
	if number, isCrawl := strings.CutPrefix(s, "crawl:"); isCrawl {
		id, err := strconv.ParseUint(number, 10, 32)
		if err != nil {
			return scope.Scope{}, fmt.Errorf("%.80q: want crawl: and a crawl's number, as in crawl:3", s)
		}
		return scope.Crawl(uint32(id)), nil
	}
	if !strings.Contains(s, "://") {
		if strings.Contains(s, "*") {
			return scope.Scope{}, fmt.Errorf("%.80q: a * stands for all hosts, or before a domain, as in *.example.org; in a name it means nothing", s)
		}
		return scope.Host(s), nil
	}
	host, err := frontier.HostName(s)
	u, bad := url.Parse(s)
	switch {
	case err != nil || bad != nil:
		return scope.Scope{}, fmt.Errorf("%.80q: want a host, *.domain, or * for all", s)
	case strings.Trim(u.Path, "/") != "" || u.RawQuery != "":
		return scope.Scope{}, fmt.Errorf("one URL is no scope; want its host, %s, or *.%s for those below it too", host, host)
	}
	return scope.Host(host), nil
}

// ScopeOf is ParseScope with host keys as KeyOf finds them.
func ScopeOf(f *frontier.Frontier, text string) (scope.Scope, error) {
	s, err := ParseScope(text)
	of := s.Hosts()
	if err != nil || of.Name == "" { // all hosts, or a crawl
		return s, err
	}
	if of.Name, err = KeyOf(f, of.Name); err != nil {
		return scope.Scope{}, err
	}
	return scope.Of(of), nil
}

// KeyOf returns the key of the host that a name refers to, in any spelling, if keys come from
// frontier.HostName. A key that the frontier knows is returned unchanged.
func KeyOf(f *frontier.Frontier, name string) (string, error) {
	key, err := hostkey.Spelled(name)
	if key == name && err == nil {
		return name, nil
	}
	if h, unknown := inspect.New(f).Host(context.Background(), name); unknown == nil {
		return h.Host, nil
	}
	if k, other := f.HostKey("http://A.example./"); other != nil || k != "a.example" {
		return name, nil // the program uses other keys
	}
	return key, err
}
