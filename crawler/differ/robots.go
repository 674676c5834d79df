// This file asks about robots.txt: may an agent fetch a URL?

package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-7440039f/frontier/crawler/robots"
)

type robotsQuestion struct {
	Robots string `json:"robots"`
	Agent  string `json:"agent"`
	URL    string `json:"url"`
	// The same in one form of escapes (RFC 9309 section 2.2.2), for a parser that compares them as written.
	Form    string `json:"form"`
	FormURL string `json:"form_url"`
}

var (
	robotsKeys = []string{
		"User-agent", "user-agent", "USER-AGENT", "Useragent", "User agent", "User_agent", "Allow", "allow", "Disallow", "disallow", "Dissallow", "Disalow", "Diasllow", "disallaw",
		"Sitemap", "Crawl-delay", "Host", "Noindex", "", "Allow ", "Disallow\t", "\ufeffDisallow",
	}
	agents = []string{"examplebot", "ExampleBot", "examplebot/1.0", "examplebot 1", "example", "examplebot-images", "other", "*", "* ", "*bot", "otherbot,examplebot", "examplebot*", "", "\u00e4"}
	pieces = []string{
		"/", "/", "/", "a", "b", "c", "ab", "index.htm", "index.html", "*", "**", "$", "?", "&", "=", "#", " ", "%61", "%2f", "%2F", "%2a", "%24", "%3f", "%e4", "%C3%A4", "%c3%a4", "\u00e4", "%", "%zz", ".", "..", "~", "%7E",
		"//", "\\", "'", "\"", "(", ")", "+", ",", ";", ":", "@", "!", "[", "]", "{", "}", "|", "^", "<", ">", "_", "-",
	}
	urlPieces = []string{
		"/", "/", "/", "a", "b", "c", "ab", "index.htm", "index.html", "$", "?", "&", "=", "%61", "%2f", "%2F", "%2a", "%24", "%3f", "%e4", "%C3%A4", "%c3%a4", "%", ".", "~", "%7E", "*", "!", "(", ",", ";", ":", "@", "'", "[", "_", "-",
	}
)

func makeRobots(r *rand.Rand) question {
	path := func(from []string, most int) string {
		var b strings.Builder
		for range r.IntN(most + 1) {
			b.WriteString(pick(r, from))
		}
		return b.String()
	}
	url := "/" + path(urlPieces, 4)
	var b, form strings.Builder
	write := func(s string) {
		b.WriteString(s)
		form.WriteString(s)
	}
	if r.IntN(12) == 0 {
		write("\ufeff")
	}
	for n := range 1 + r.IntN(9) {
		key := pick(r, robotsKeys)
		if n == 0 && r.IntN(4) > 0 {
			key = "User-agent"
		}
		value := ""
		switch lower := strings.ToLower(key); {
		case strings.HasPrefix(lower, "user"):
			value = pick(r, agents)
		case r.IntN(3) == 0: // near the URL
			value = url[:r.IntN(len(url)+1)] + path(pieces, 1)
		case r.IntN(8) == 0:
			value = path(pieces, 3)
		default:
			value = "/" + path(pieces, 4)
		}
		write(pick(r, []string{"", "", "", "", " ", "\t", "#"}) + key + pick(r, []string{":", ": ", ": ", ": ", " : ", " ", "  ", ":\t", ""}))
		b.WriteString(value)
		form.WriteString(oneForm(value, "#* ", true))
		write(pick(r, []string{"", "", "", "", " ", "\t", " # comment", "#", "\x00"}) + pick(r, []string{"\n", "\n", "\n", "\r\n", "\r", "\n\n", "\n\r"}))
	}
	const site = "http://a.example"
	return &robotsQuestion{b.String(), "examplebot", site + url, form.String(), site + oneForm(url, "", false)}
}

// oneForm writes each character of a path in one way: unreserved ones and own as they are, others
// encoded. A literal star or dollar becomes text that occurs nowhere else.
func oneForm(s, own string, pattern bool) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		c, escaped := s[i], false
		if c == '%' && i+2 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+3], 16, 8); err == nil {
				c, escaped, i = byte(n), true, i+2
			}
		}
		switch {
		case c == '$' && pattern && !escaped && i+1 == len(s):
			b.WriteByte(c)
		case c == '*' && (escaped || !pattern):
			b.WriteString("XYZ")
		case c == '$':
			b.WriteString("Z")
		case !escaped && strings.IndexByte(own+"!&'()+,;=:@/?", c) >= 0, c|0x20 >= 'a' && c|0x20 <= 'z', c >= '0' && c <= '9', strings.IndexByte("-._~", c) >= 0:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

func (q *robotsQuestion) judge(answer []byte) string {
	var theirs struct{ Written, Form bool }
	if err := json.Unmarshal(answer, &theirs); err != nil {
		return unjudged + err.Error()
	}
	ours := robots.Parse([]byte(q.Robots)).Group(q.Agent).Allowed(q.URL)
	switch {
	case ours == theirs.Written:
		return ""
	case ours == theirs.Form:
		return "we: characters are equal however they are escaped (RFC 9309 section 2.2.2)"
	case !ours && strings.Contains(q.Robots, "index.htm"):
		return "both: Google takes Allow: /index.htm for the folder, too"
	}
	for line := range strings.Lines(strings.ReplaceAll(q.Robots, "\r", "\n")) {
		if longKey(line) {
			return "both: Google takes what begins with a key for the key"
		}
	}
	return fmt.Sprintf("%sallowed: %v", unjudged, ours)
}

// longKey reports whether a line has more before its colon, or its first blank, than the key that it begins with.
func longKey(line string) bool {
	line = strings.ToLower(strings.TrimLeft(line, " \t\ufeff"))
	key, _, colon := strings.Cut(line, ":")
	if !colon {
		key, _, _ = strings.Cut(strings.ReplaceAll(line, "\t", " "), " ")
	}
	key = strings.TrimSpace(key)
	return slices.ContainsFunc(robotsKeys, func(k string) bool {
		k = strings.ToLower(strings.TrimSpace(k))
		return k != "" && strings.HasPrefix(key, k) && key != k
	})
}
