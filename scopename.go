// This file finds names that no host can have: a control given one would be
// accepted and never do anything.

package frontier

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// checkKey says what is wrong with the name of a host. Which keys there may be is
// known only where HostName makes them; nobody misspells a name as bytes that are
// no text.
func (f *Frontier) checkKey(name string) error {
	if err := checkHost(name); err != nil || f.ownKeys || !utf8.ValidString(name) {
		return err
	}
	if strings.ContainsAny(name, "/?#@") {
		return fmt.Errorf("%q is not a host key; want a host without scheme, user and path", name)
	}
	host := name
	if strings.Count(name, ":") > 1 && name[0] != '[' { // an IPv6 address
		host = "[" + name + "]"
	}
	key, err := HostName("http://" + host + "/")
	if err == nil && key+"." == name { // of a host with two dots at its end only one is cut off
		key, err = HostName("http://" + host + "./")
	}
	switch {
	case err != nil:
		return fmt.Errorf("%q is not a host key: %w", name, err)
	case key != name:
		return fmt.Errorf("%q is not a host key; want %q", name, key)
	}
	return nil
}

// CheckScope says what is wrong with a scope that no host can be in: controls refuse it.
// Views of hosts find nothing.
func (f *Frontier) CheckScope(s Scope) error {
	if err := f.checkScope(s); err != nil {
		return fmt.Errorf("frontier: scope: %w", err)
	}
	return nil
}

// checkScope says what is wrong with a scope that a control is given.
func (f *Frontier) checkScope(s Scope) error {
	if err := s.check(); err != nil || !s.named {
		return err
	}
	if s.domain && !f.ownKeys {
		if bare := strings.TrimPrefix(strings.TrimPrefix(s.name, "*"), "."); bare != s.name {
			return fmt.Errorf("domain %q; want %q", s.name, bare)
		}
	}
	return f.checkKey(s.name)
}
