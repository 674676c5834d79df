// This file reads URLs as people type them.

package urlnorm

import (
	"errors"
	"regexp"
	"strings"
	"unicode/utf8"
)

// ErrTyped is returned by Typed for text that is neither a URL nor begins with a host.
var ErrTyped = errors.New("want a URL like https://example.org/, or a host name with a dot in it")

// ErrLogin is returned by Typed for a URL with a user name.
var ErrLogin = errors.New("a crawler sends no user name or password that stands in a URL: want the URL without it")

var (
	login  = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9+.-]*://[^/\\?#]*|[^:/\\?#]*)@`)
	scheme = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*:`)
	port   = regexp.MustCompile(`^[^:/?#]+:[0-9]+([/?#]|$)`) // after a host
	noPort = regexp.MustCompile(`^[^/?#]*:([/?#]|$)`)        // as in ht!tp:/x, which is not meant as a host
)

// Typed normalizes a URL as people type it: http:// may be omitted before a host, which may be followed
// by a port and a path. Such a host has a dot in it, or is localhost.
func (n *Normalizer) Typed(s string) (string, error) {
	s = strings.TrimSpace(s)
	first, _ := utf8.DecodeRuneInString(s)
	switch {
	case login.MatchString(s):
		return "", ErrLogin
	case strings.HasPrefix(s, "http://"), strings.HasPrefix(s, "https://"): // like the next, and quick
	case scheme.MatchString(s) && !port.MatchString(s):
	case s == "" || strings.Contains(s, "://") || noPort.MatchString(s) || first < utf8.RuneSelf && !strings.ContainsRune("[0123456789", first) && !letter(first):
		return "", ErrTyped
	default:
		u, err := n.Normalize("http://" + s)
		authority, _, _ := strings.Cut(strings.TrimPrefix(u, "http://"), "/")
		if name, _, _ := strings.Cut(authority, ":"); err == nil && !strings.ContainsAny(authority, ".[") && name != "localhost" {
			return "", ErrTyped
		}
		return u, err
	}
	return n.Normalize(s)
}

func letter(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' }
