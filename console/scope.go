// This file reads what an operator calls hosts.

package console

import (
	"errors"
	"strings"

	"github.com/seed-7440039f/frontier"
)

// ParseScope reads what Scope.String writes: "*" for all hosts, "*." and a name for a
// domain, or a host key. Whether there can be such a host is for the frontier to say.
func ParseScope(s string) (frontier.Scope, error) {
	switch name, isDomain := strings.CutPrefix(s, "*."); {
	case s == "":
		return frontier.Scope{}, errors.New("no host: want a host, *.domain, or * for all")
	case s == "*":
		return frontier.All(), nil
	case isDomain:
		return frontier.Domain(name), nil
	}
	return frontier.Host(s), nil
}
