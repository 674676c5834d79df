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
)

// ParseScope parses what Scope.String writes: "*" for all hosts, "*." and a domain, "crawl:" and a
// number, or a host key. The URL of a host's first page means the host. ParseScope does not check that
// the host can exist; the frontier does.
func ParseScope(s string) (frontier.Scope, error) {
	switch name, isDomain := strings.CutPrefix(s, "*."); {
	case s == "", s == "*.":
		return frontier.Scope{}, errors.New("no host: want a host, *.domain, * for all, or crawl:NUMBER")
	case s == "*":
		return frontier.All(), nil
	case isDomain && !strings.Contains(name, "*"):
		return frontier.Domain(name), nil
	}
	if number, isCrawl := strings.CutPrefix(s, "crawl:"); isCrawl {
		id, err := strconv.ParseUint(number, 10, 32)
		if err != nil {
			return frontier.Scope{}, fmt.Errorf("%.80q: want crawl: and a crawl's number, as in crawl:3", s)
		}
		return frontier.Crawl(uint32(id)), nil
	}
	if !strings.Contains(s, "://") {
		if strings.Contains(s, "*") {
			return frontier.Scope{}, fmt.Errorf("%.80q: a * stands for all hosts, or before a domain, as in *.example.org; in a name it means nothing", s)
		}
		return frontier.Host(s), nil
	}
	host, err := frontier.HostName(s)
	u, bad := url.Parse(s)
	switch {
	case err != nil || bad != nil:
		return frontier.Scope{}, fmt.Errorf("%.80q: want a host, *.domain, or * for all", s)
	case strings.Trim(u.Path, "/") != "" || u.RawQuery != "":
		return frontier.Scope{}, fmt.Errorf("one URL is no scope; want its host, %s, or *.%s for those below it too", host, host)
	}
	return frontier.Host(host), nil
}

// ScopeOf is ParseScope with host keys as KeyOf finds them.
func ScopeOf(f *frontier.Frontier, text string) (frontier.Scope, error) {
	s, err := ParseScope(text)
	if err != nil || s == frontier.All() || strings.HasPrefix(s.String(), "crawl:") {
		return s, err
	}
	name, isDomain := strings.CutPrefix(s.String(), "*.")
	key, err := KeyOf(f, name)
	switch {
	case err != nil:
		return frontier.Scope{}, err
	case isDomain:
		return frontier.Domain(key), nil
	}
	return frontier.Host(key), nil
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
