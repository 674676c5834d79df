// This file reads what an operator calls hosts.

package console

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/seed-7440039f/frontier"
)

// ParseScope reads what Scope.String writes: "*" for all hosts, "*." and a name for a
// domain, "crawl:" and a number, or a host key. Whether there can be such a host is for the frontier to say. The
// URL of a host's first page stands for the host.
func ParseScope(s string) (frontier.Scope, error) {
	switch name, isDomain := strings.CutPrefix(s, "*."); {
	case s == "":
		return frontier.Scope{}, errors.New("no host: want a host, *.domain, * for all, or crawl:NUMBER")
	case s == "*":
		return frontier.All(), nil
	case isDomain:
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
