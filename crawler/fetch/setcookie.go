// This file reads and writes cookies as they came: RFC 6265 section 5, where net/http keeps to the stricter
// grammar for servers of section 4.

package fetch

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/seed-7440039f/frontier/internal/idna"
	"github.com/seed-7440039f/frontier/internal/reply"
)

const (
	longestCookie = 400 * 24 * time.Hour // how long a cookie lives at most
	maxAttribute  = 1024                 // bytes of an attribute's value; longer ones are ignored
)

// cookiesOf reads the cookies of an answer.
func cookiesOf(h http.Header) (all []*http.Cookie) {
	for _, line := range h["Set-Cookie"] {
		if c := readCookie(line); c != nil {
			all = append(all, c)
		}
	}
	return all
}

// readCookie reads a Set-Cookie field; nil if it sets none. Like browsers, it takes a text without "=" for a
// value without a name, and nothing with control characters.
func readCookie(line string) *http.Cookie {
	if hasControl(line) {
		return nil
	}
	pair, attributes, _ := strings.Cut(line, ";")
	name, value, ok := strings.Cut(pair, "=")
	if !ok {
		name, value = "", pair
	}
	c := &http.Cookie{Name: trimWSP(name), Value: trimWSP(value), Raw: line}
	if c.Name == "" && c.Value == "" {
		return nil
	}
	for a := range strings.SplitSeq(attributes, ";") {
		name, value, _ := strings.Cut(a, "=")
		value = trimWSP(value)
		if len(value) > maxAttribute {
			continue
		}
		switch strings.ToLower(trimWSP(name)) {
		case "expires":
			if t, err := reply.CookieDate(value); err == nil {
				c.Expires = t
			}
		case "max-age":
			if digits := strings.TrimPrefix(value, "-"); digits == "" || strings.Trim(digits, "0123456789") != "" {
				continue
			}
			n, _ := strconv.ParseInt(value, 10, 64) // the nearest, if it is out of range
			c.MaxAge = int(min(n, int64(longestCookie/time.Second)))
			if n <= 0 {
				c.MaxAge = -1
			}
		case "domain":
			domain := strings.TrimPrefix(value, ".")
			if ascii, err := idna.ToASCII(domain); err == nil {
				domain = ascii
			}
			if domain != "" {
				c.Domain = domain
			}
		case "path":
			c.Path = value
		case "secure":
			c.Secure = true
		case "httponly":
			c.HttpOnly = true
		}
	}
	return c
}

// cookieField writes cookies as they came.
func cookieField(cookies []*http.Cookie) string {
	var b strings.Builder
	for i, c := range cookies {
		if i > 0 {
			b.WriteString("; ")
		}
		if c.Name != "" {
			b.WriteString(c.Name + "=")
		}
		if c.Quoted {
			b.WriteString(`"` + c.Value + `"`)
		} else {
			b.WriteString(c.Value)
		}
	}
	return b.String()
}

// canSend reports whether a cookie has a name and a value, and is read as it is written.
func canSend(c *http.Cookie) bool {
	written := cookieField([]*http.Cookie{c})
	read := readCookie(written)
	return c.Name != "" && c.Value != "" && read != nil && read.Name == c.Name && cookieField([]*http.Cookie{read}) == written
}

func trimWSP(s string) string { return strings.Trim(s, " \t") }

// hasControl reports whether s has control characters but tabs.
func hasControl(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f })
}
