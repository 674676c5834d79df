// This file turns bytes into groups, line by line. Nothing in it can fail: a
// line that makes no sense is a line without effect.

package robots

import (
	"bytes"
	"slices"
	"strings"
	"time"

	"github.com/seed-7440039f/frontier/internal/reply"
)

// MaxSize is how many bytes of a file are read: 500 KiB, the minimum that RFC 9309 section 2.5
// requires. The rest is ignored, and so is a line that is cut in two.
const MaxSize = 500 << 10

// MaxRedirects is how many redirects of a robots.txt are followed: five, the minimum that RFC 9309
// section 2.3.1.2 demands.
const MaxRedirects = 5

// MaxCrawlDelay limits what [Rules.CrawlDelay] reports. A longer delay between two requests is most
// likely a mistake.
const MaxCrawlDelay = 24 * time.Hour

// Parse reads a robots.txt file, of at most [MaxSize] bytes. Lines may end in CR, LF or both, a leading UTF-8 byte order mark
// is skipped, and lines that are not understood are ignored. Parse does not keep body.
func Parse(body []byte) *Robots {
	p := parser{robots: &Robots{}}
	if len(body) > MaxSize {
		body = body[:MaxSize]
		body = body[:bytes.LastIndexAny(body, "\r\n")+1]
	}
	body = trimBOM(body)
	for len(body) > 0 {
		p.line++
		line := body
		if i := bytes.IndexAny(body, "\r\n"); i < 0 {
			body = nil
		} else {
			line = body[:i]
			if body[i] == '\r' && i+1 < len(body) && body[i+1] == '\n' {
				i++
			}
			body = body[i+1:]
		}
		p.parseLine(line)
	}
	p.robots.groups = slices.Clip(p.robots.groups)
	return p.robots
}

// trimBOM drops a byte order mark, even an incomplete one.
func trimBOM(body []byte) []byte {
	for i := range len("\uFEFF") {
		if i >= len(body) || body[i] != "\uFEFF"[i] {
			return body[i:]
		}
	}
	return body[len("\uFEFF"):]
}

// parser is the state between lines.
type parser struct {
	robots *Robots
	line   int
	// inAgents means that a User-agent line would join the last group: no rule has followed it yet.
	inAgents bool
	// section is the first agent of the group after a Crawl-delay among the agents; delayed means
	// that the next agent begins another section.
	section int
	delayed bool
	seen    map[string]bool // sitemaps reported already
}

// current returns the group that rules now belong to, nil before the first.
func (p *parser) current() *group {
	if n := len(p.robots.groups); n > 0 {
		return &p.robots.groups[n-1]
	}
	return nil
}

func (p *parser) parseLine(line []byte) {
	key, value := splitLine(line)
	switch key {
	case "user-agent", "useragent", "user agent":
		p.agent(string(value))
	case "allow":
		p.rule(string(value), true)
	case "disallow", "dissallow", "dissalow", "disalow", "diasllow", "disallaw":
		p.rule(string(value), false)
	case "crawl-delay", "crawldelay":
		if d, ok := delayOf(string(value)); ok {
			p.delay(d)
		}
	case "sitemap", "site-map", "sitemaps":
		if s := string(value); s != "" && !p.seen[s] {
			if p.seen == nil {
				p.seen = make(map[string]bool)
			}
			p.seen[s] = true
			p.robots.sitemaps = append(p.robots.sitemaps, s)
		}
	}
	// Any other line is ignored and, as RFC 9309 section 2.2.4 wants, leaves the groups as they are.
}

func (p *parser) agent(value string) {
	if !p.inAgents {
		p.robots.groups = append(p.robots.groups, group{})
		p.inAgents, p.section, p.delayed = true, 0, false
	}
	token := ProductToken(value)
	if value == "*" || strings.HasPrefix(value, "* ") || strings.HasPrefix(value, "*\t") {
		token = "*"
	}
	g := p.current()
	if p.delayed {
		p.section, p.delayed = len(g.agents), false
	}
	if token != "" {
		g.agents = append(g.agents, agent{name: token})
	}
}

func (p *parser) rule(value string, allow bool) {
	g := p.current()
	if g == nil {
		return // rules before the first User-agent apply to no crawler
	}
	p.inAgents = false
	if value != "" { // an empty Disallow forbids nothing
		g.rules = append(g.rules, newRule(value, allow, p.line))
	}
}

// delay handles a Crawl-delay. RFC 9309 does not define this line, so it does not end the list of a
// group's agents: agents after it share the group's rules. But the delay applies only to the agents
// before it. After rules it applies to the whole group.
func (p *parser) delay(d time.Duration) {
	g := p.current()
	if g == nil {
		return
	}
	first := 0
	if p.inAgents {
		first, p.delayed = p.section, true
	}
	for i := first; i < len(g.agents); i++ {
		a := &g.agents[i]
		a.delay, a.hasDelay = max(a.delay, d), true
	}
}

// splitLine returns a line's lower-case key and its value, both trimmed and without the comment.
// The key is empty if there is none.
func splitLine(line []byte) (key string, value []byte) {
	if i := bytes.IndexByte(line, '#'); i >= 0 {
		line = line[:i]
	}
	line = bytes.Trim(line, " \t\v\f\x00")
	k, v, ok := bytes.Cut(line, []byte{':'})
	if !ok { // "Disallow /x": the colon is missing, but only one blank is there
		i := bytes.IndexAny(line, " \t")
		if i < 0 {
			return "", nil
		}
		k, v = line[:i], bytes.TrimLeft(line[i:], " \t")
		if bytes.ContainsAny(v, " \t") {
			return "", nil
		}
	}
	k = bytes.TrimRight(k, " \t\v\f")
	if len(k) > len("user-agent")+1 {
		return "", nil // longer than any key we know
	}
	return strings.ToLower(string(k)), bytes.TrimLeft(v, " \t\v\f")
}

// delayOf reads seconds, maybe with a comma before their fraction. Of several, with blanks behind their commas,
// the longest counts.
func delayOf(value string) (longest time.Duration, ok bool) {
	for s := range strings.SplitSeq(value, ", ") {
		if d, good := reply.Wait(strings.Replace(strings.TrimSpace(s), ",", ".", 1), MaxCrawlDelay); good {
			longest, ok = max(longest, d), true
		}
	}
	return longest, ok
}

// ProductToken returns the lower-case product token of a User-Agent header, by which robots.txt
// files name a crawler (RFC 9309 section 2.2.1): its leading letters, hyphens and underscores. In
// addition, names may contain digits ("MJ12bot", which is not "MJ13bot"), and for a header like
//
//	Mozilla/5.0 (compatible; examplebot/1.0; +http://a.example/bot)
//
// the token is what follows "compatible;". The token is empty if there is none.
func ProductToken(agent string) string {
	token := leadingToken(agent)
	if token == "mozilla" {
		if _, rest, ok := strings.Cut(agent, "(compatible;"); ok {
			if t := leadingToken(strings.TrimLeft(rest, " ")); t != "" {
				return t
			}
		}
	}
	return token
}

func leadingToken(s string) string {
	i := 0
	for i < len(s) && isTokenByte(s[i]) {
		i++
	}
	return strings.ToLower(s[:i])
}

func isTokenByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_'
}
