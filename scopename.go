// This file finds the key of a host however its name is spelled, and refuses names
// that no host can have: a control given one would be accepted and never do anything.

package frontier

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// hostKey returns the key of the host that a name spells. Which keys there may be is
// known only where HostName makes them; nobody misspells a name as bytes that are
// no text.
func (f *Frontier) hostKey(name string) (string, error) {
	if err := checkHost(name); err != nil || f.ownKeys || isPlain(name) || !utf8.ValidString(name) {
		return name, err
	}
	if strings.ContainsAny(name, "/?#@") {
		return "", fmt.Errorf("%q is not a host key; want a host without scheme, user and path", name)
	}
	host := name
	if strings.Count(name, ":") > 1 && name[0] != '[' { // an IPv6 address
		host = "[" + name + "]"
	}
	key, err := HostName("http://" + host + "/")
	if err != nil {
		return "", fmt.Errorf("%q is not a host key: %w", name, err)
	}
	if strings.LastIndexByte(host, ':') > strings.LastIndexByte(host, ']') {
		return "", fmt.Errorf("%q is not a host key; want %q: all ports are one host", name, key)
	}
	return key, nil
}

// isPlain reports whether a name is a key as it stands, at once.
func isPlain(name string) bool {
	for i := range len(name) {
		if b := name[i]; !(b >= 'a' && b <= 'z' || b >= '0' && b <= '9' || b == '-' || b == '.') {
			return false
		}
	}
	return name != "" && name[len(name)-1] != '.' && !oddNumber(name)
}

// CheckScope says what is wrong with a scope that no host can be in: controls refuse it.
// Views of hosts find nothing.
func (f *Frontier) CheckScope(s Scope) error {
	if _, err := f.spelled(s); err != nil {
		return fmt.Errorf("frontier: scope: %w", err)
	}
	return nil
}

// spelled returns a scope that a control is given as rules name it, or says what is
// wrong with it.
func (f *Frontier) spelled(s Scope) (Scope, error) {
	if err := s.check(); err != nil || !s.named {
		return s, err
	}
	if s.domain && !f.ownKeys {
		if bare := strings.TrimPrefix(strings.TrimPrefix(s.name, "*"), "."); bare != s.name {
			return s, fmt.Errorf("domain %q; want %q", s.name, bare)
		}
	}
	key, err := f.hostKey(s.name)
	if err == nil {
		s.name = key
	}
	return s, err
}

// scopeSeen is spelled for views: with a name that no host can have they find nothing.
func (f *Frontier) scopeSeen(s Scope) Scope {
	s, _ = f.spelled(s)
	return s
}

// hostSeen is hostKey for views.
func (f *Frontier) hostSeen(name string) string {
	if key, err := f.hostKey(name); err == nil {
		return key
	}
	return name
}
