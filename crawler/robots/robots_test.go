package robots

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// A fraction of a second is a Crawl-delay, but none is shorter than a frontier takes.
func TestTinyCrawlDelay(t *testing.T) {
	for text, want := range map[string]time.Duration{"0.0000001": time.Millisecond, "0.0009": time.Millisecond, "0.5": time.Second / 2, "0": 0} {
		d, ok := Parse([]byte("User-agent: *\nCrawl-delay: " + text)).Group("a").CrawlDelay()
		assert.True(t, ok)
		assert.Equal(t, want, d, text)
	}
}

func TestMatch(t *testing.T) {
	tests := []struct {
		name, pattern, path string
		want                bool
	}{
		{"prefix", "/fish", "/fishheads/yummy.html", true},
		{"case counts", "/fish", "/Fish.asp", false},
		{"trailing star changes nothing", "/fish*", "/fish", true},
		{"trailing slash is part of the prefix", "/fish/", "/fish", false},
		{"star in the middle", "/*.php", "/folder/filename.php?parameters", true},
		{"dollar ends the URL", "/*.php$", "/filename.php?parameters", false},
		{"dollar takes the last place", "/*a$", "/abca", true},
		{"dollar with no star", "/a$", "/ab", false},
		{"dollar inside is a character", "/a$b", "/a$b", true},
		{"dollar after star", "/a*$", "/abc", true},
		{"encoded dollar is a character", "/a%24", "/a$b", true},
		{"encoded star is a character", "/file-with-a-%2A.html", "/file-with-a-*.html", true},
		{"encoded star is no wildcard", "/a%2Ab", "/axb", false},
		{"encoded star in both", "/a%2ab", "/a%2Ab", true},
		{"letters match no part of a star", "/*A", "/x*", false},
		{"letters match no part of an encoded star", "/*2A", "/x%2A", false},
		{"letters match no part of a dollar", "/*4", "/x$", false},
		{"encoded dollar is a character", "/a%24b", "/a$b", true},
		{"dollar within", "/a$b", "/a%24b", true},
		{"star covers a star", "/a*c", "/a*bc", true},
		{"star of a URL is no wildcard", "/a%2ab", "/a*b", true},
		{"non-ASCII pattern", "/foo/bar/ツ", "/foo/bar/%e3%83%84", true},
		{"non-ASCII path", "/foo/bar/%E3%83%84", "/foo/bar/ツ", true},
		{"unreserved is decoded", "/foo/bar/%62%61%7A", "/foo/bar/baz", true},
		{"reserved is not decoded", "/a%2fb", "/a/b", false},
		{"blank", "/a b", "/a%20b", true},
		{"bracket", "/a[", "/a%5Bb", true},
		{"lone percent sign", "/a%zz", "/a%zz", true},
		{"lone percent sign, encoded", "/a%zz", "/a%25zz", true},
		{"lone percent sign before an escape", "/%41", "/%%341", false},
		{"pattern without slash", "fish", "/fish", false},
		{"star alone", "*", "/anything", true},
		{"parts must not overlap", "/aba*aba$", "/aba", false},
		{"query", "/*?id=", "/page?x=1?id=2", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRule(tt.pattern, false, 1)
			path := urlForm.Normalize(tt.path)
			assert.Equal(t, tt.want, plainMatch(&r, path))
			assert.Equal(t, tt.want, matches(r, path))
		})
	}
}

func TestLongestMatchWins(t *testing.T) {
	r := group1(t, `
allow: /p
disallow: /
allow: /folder
disallow: /folder
disallow: /page.
allow: /*.html
allow: /$
`)
	for target, want := range map[string]bool{
		"/page":         true,
		"/folder/page":  true,
		"/page.htm":     false,
		"/page.html":    true, // "/page." has 6 octets, "/*.html" 7
		"/":             true,
		"/x":            false,
		"/robots.txt":   true,
		"/robots.txt?x": false,
	} {
		assert.Equal(t, want, r.Allowed("http://a.example"+target), target)
	}
}

func group1(t require.TestingT, rules string) *Rules {
	r := Parse([]byte("User-agent: bot\n" + strings.TrimLeft(rules, "\n"))).Group("bot")
	require.True(t, r.Named())
	return r
}

func TestGroups(t *testing.T) {
	file := Parse([]byte("disallow: /nobodys\r" +
		"user-agent: *\rdisallow: /star\r" +
		"user-agent: a\ruser-agent : B/2.0 # comment\r\n\ncrawl-delay: 1.5\nsitemap: http://a.example/1\ndisallow: /ab\n" +
		"USER-AGENT: a\nDisallow: /more # not this\nCrawl-Delay: 3\n" +
		"unknown: x\nuser-agent: c\nSitemap: http://a.example/1\nSitemap: /2"))
	assert.Equal(t, []string{"http://a.example/1", "/2"}, file.Sitemaps())

	a, b, c, d := file.Group("A"), file.Group("b/1.0 (+http://b.example)"), file.Group("c"), file.Group("d")
	assert.False(t, a.Allowed("/ab"))
	assert.False(t, a.Allowed("/more"), "groups of one agent are merged")
	assert.True(t, b.Allowed("/more"))
	assert.False(t, b.Allowed("/ab"))
	assert.True(t, a.Allowed("/star"), "* does not count for a named agent")
	assert.True(t, c.Allowed("/star"), "an empty group is a group")
	assert.True(t, c.Named())
	assert.False(t, d.Allowed("/star"))
	assert.False(t, d.Named())
	assert.True(t, d.Allowed("/nobodys"))

	delay, ok := a.CrawlDelay()
	assert.True(t, ok)
	assert.Equal(t, 3*time.Second, delay, "the longest delay of merged groups")
	delay, _ = b.CrawlDelay()
	assert.Equal(t, 1500*time.Millisecond, delay)
	_, ok = d.CrawlDelay()
	assert.False(t, ok)
}

func TestDecide(t *testing.T) {
	r := group1(t, "disallow: /a*/x$\nallow: /ツ")
	assert.Equal(t, Decision{Allowed: false, Pattern: "/a*/x$", Line: 2}, r.Decide("/ab/x"))
	assert.Equal(t, Decision{Allowed: true, Pattern: "/%E3%83%84", Line: 3}, r.Decide("/ツ"))
	assert.Equal(t, Decision{Allowed: true}, r.Decide("/b"))
}

func TestParseDelay(t *testing.T) {
	tests := []struct {
		in   string
		want time.Duration
		ok   bool
	}{
		{"10", 10 * time.Second, true},
		{"0", 0, true},
		{"0.5", 500 * time.Millisecond, true},
		{"0,5", 500 * time.Millisecond, true},
		{".25", 250 * time.Millisecond, true},
		{"10s", 10 * time.Second, true},
		{"1e9", time.Second, true},
		{"99999999999999999999", MaxCrawlDelay, true},
		{strings.Repeat("9", 400), MaxCrawlDelay, true},
		{"-1", 0, false},
		{"", 0, false},
		{"NaN", 0, false},
		{"1.2.3", 1200 * time.Millisecond, true},
		{"10.0", 10 * time.Second, true},
		{"10, 20", 20 * time.Second, true},
		{"+3", 3 * time.Second, true},
		{"2 minutes", 2 * time.Minute, true},
		{"500ms", 500 * time.Millisecond, true},
		{"1 d", 24 * time.Hour, true},
		{"soon", 0, false},
	}
	for _, tt := range tests {
		got, ok := delayOf(tt.in)
		assert.Equal(t, tt.want, got, tt.in)
		assert.Equal(t, tt.ok, ok, tt.in)
	}
}

// A Crawl-delay among User-agent lines is meant for those above it; the rules are for
// all of them (RFC 9309 section 2.2.4: other lines do not end a group).
func TestCrawlDelayOfAGroupWithoutRules(t *testing.T) {
	r := Parse([]byte("User-agent: slow\nUser-agent: slower\nCrawl-delay: 10\nUser-agent: bot\nDisallow: /x\n" +
		"User-agent: other\nCrawl-delay: 2\nUser-agent: another\nCrawl-delay: 4\nDisallow: /y\nCrawl-delay: 3\n"))
	for name, want := range map[string]time.Duration{"slow": 10 * time.Second, "slower": 10 * time.Second, "bot": 0, "other": 3 * time.Second, "another": 4 * time.Second} {
		g := r.Group(name)
		delay, ok := g.CrawlDelay()
		assert.Equal(t, want, delay, name)
		assert.Equal(t, want > 0, ok, name)
		assert.Equal(t, strings.HasSuffix(name, "other"), g.Allowed("/x"), name)
	}
}

func TestProductToken(t *testing.T) {
	for in, want := range map[string]string{
		"Examplebot":                         "examplebot",
		"Examplebot/2.1 (+http://a.example)": "examplebot",
		"example-bot_x y":                    "example-bot_x",
		"360Spider":                          "360spider",
		"MJ12bot":                            "mj12bot",
		"Mozilla/5.0 (compatible; Examplebot/2.1; +http://a.b/)": "examplebot",
		"Mozilla/5.0 (X11; Linux)":                               "mozilla",
		"":                                                       "",
		"ツ":                                                      "",
		"*":                                                      "",
	} {
		assert.Equal(t, want, ProductToken(in), in)
	}
}

func TestFromStatus(t *testing.T) {
	body := []byte("user-agent: *\ndisallow: /x")
	tests := []struct {
		status      int
		access      Access
		root, ruled bool
	}{
		{200, Available, true, false},
		{204, Available, true, false},
		{301, Unavailable, true, true},
		{404, Unavailable, true, true},
		{403, Unavailable, true, true},
		{429, Unreachable, false, false},
		{420, Unreachable, false, false},
		{430, Unreachable, false, false},
		{304, Unreachable, false, false},
		{500, Unreachable, false, false},
		{503, Unreachable, false, false},
		{0, Unreachable, false, false},
	}
	for _, tt := range tests {
		r := FromStatus(tt.status, body)
		rules := r.Group("bot")
		assert.Equal(t, tt.access, r.Access(), tt.status)
		assert.Equal(t, tt.root, rules.Allowed("http://a.example"), tt.status)
		assert.Equal(t, tt.ruled, rules.Allowed("http://a.example/x"), tt.status)
		assert.True(t, rules.Allowed("http://a.example/robots.txt"), tt.status)
	}
}

func TestSizeLimit(t *testing.T) {
	head := "user-agent: *\ndisallow: /first\n"
	pad := strings.Repeat("#", MaxSize-len(head)-len("\ndisallow: /p"))
	r := Parse([]byte(head + pad + "\ndisallow: /private\nallow: /first\n"))
	rules := r.Group("bot")
	assert.False(t, rules.Allowed("/first"))
	assert.True(t, rules.Allowed("/public"), "the line cut in two must not count as /p")
	assert.Equal(t, 1, rules.Len())
	assert.Less(t, rules.Size(), 200, "rules must not pin the file")
}

// TestHostilePattern would not end with a matcher that backtracks.
func TestHostilePattern(t *testing.T) {
	r := group1(t, "disallow: /"+strings.Repeat("a*", 50_000)+"b$")
	assert.True(t, r.Allowed("/"+strings.Repeat("a", 100_000)))
	assert.False(t, r.Allowed("/"+strings.Repeat("a", 100_000)+"b"))
}

// naiveMatch is the plainest matcher that can be right: dynamic programming over
// both strings.
func naiveMatch(pattern, path string, end bool) bool {
	reach := make([]bool, len(path)+1)
	reach[0] = true
	for i := range len(pattern) {
		next := make([]bool, len(path)+1)
		for j := range reach {
			switch {
			case pattern[i] == '*':
				next[j] = reach[j] || j > 0 && next[j-1]
			case j > 0:
				next[j] = reach[j-1] && path[j-1] == pattern[i]
			}
		}
		reach = next
	}
	if end {
		return reach[len(path)]
	}
	for _, ok := range reach {
		if ok {
			return true
		}
	}
	return false
}

func TestMatchAgainstNaive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pattern := rapid.StringMatching(`/[ab*]{0,8}`).Draw(t, "pattern")
		path := rapid.StringMatching(`/[ab]{0,12}`).Draw(t, "path")
		end := rapid.Bool().Draw(t, "end")
		value := pattern
		if end {
			value += "$"
		}
		r := newRule(value, true, 1)
		if got, want := matches(r, path), naiveMatch(pattern, path, end); got != want {
			t.Fatalf("%q on %q: %v, want %v", value, path, got, want)
		}
	})
}

func TestAppendedGroupOfAnotherAgent(t *testing.T) {
	line := rapid.SampledFrom([]string{
		"allow: /a\n", "disallow: /\n", "disallow: /*b\r\n", "user-agent: *\n", "user-agent: other\r",
		"user-agent: bot\n", "crawl-delay: 3\n", "sitemap: x\n", "nonsense\n", "\n", "disallow:\n", "allow: /ab$\n",
	})
	rapid.Check(t, func(t *rapid.T) {
		body := strings.Join(rapid.SliceOfN(line, 0, 20).Draw(t, "lines"), "") + "disallow: /end\n"
		more := "user-agent: stranger\n" + strings.Join(rapid.SliceOfN(line.Filter(func(s string) bool {
			return !strings.HasPrefix(s, "user-agent")
		}), 0, 5).Draw(t, "more"), "")
		path := rapid.StringMatching(`/[abc]{0,4}`).Draw(t, "path")
		before, after := Parse([]byte(body)).Group("bot"), Parse([]byte(body+more)).Group("bot")
		if before.Decide(path) != after.Decide(path) {
			t.Fatalf("%q on\n%s\nwas %v, with\n%s\nit is %v", path, body, before.Decide(path), more, after.Decide(path))
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, name := range []string{"robots_google.json", "robots_spectest_correctness.json"} {
		suite := loadSuite(f, name)
		for _, c := range append(suite.Cases, suite.Bodies...) {
			f.Add(c.body(f), c.Agent, c.URL)
		}
	}
	f.Fuzz(func(t *testing.T, body []byte, agent, target string) {
		file := Parse(body)
		file.Sitemaps()
		rules := file.Group(agent)
		path := requestPath(target)
		if norm := urlForm.Normalize(path); path != "/robots.txt" && norm != "/robots.txt" && rules.Decide(path) != rules.Decide(norm) {
			t.Errorf("%q: %v, its normalized form %q: %v", path, rules.Decide(path), norm, rules.Decide(norm))
		}
		sameAsPlain(t, rules, urlForm.Normalize(path))
		for i := range rules.rules {
			if i > 0 && rules.rules[i-1].compare(rules.rules[i]) > 0 {
				t.Errorf("rule %d is out of order", i)
			}
		}
		if delay, _ := rules.CrawlDelay(); delay < 0 || delay > MaxCrawlDelay {
			t.Errorf("crawl delay %v", delay)
		}
	})
}

func BenchmarkAllowed(b *testing.B) { // what does one URL cost as a file's rules grow?
	for _, n := range []int{10, 200, 1_000, 5_000} {
		b.Run(fmt.Sprintf("rules=%d", n), func(b *testing.B) {
			r := Parse(manyRules(n)).Group("bot")
			b.ReportAllocs()
			for b.Loop() {
				r.Allowed("https://a.example/section/page.html?id=12345")
			}
		})
	}
}

// hostileRules are files of the largest size, with paths of 4,000 bytes for which their
// rules take long.
func hostileRules() map[string]struct{ body, path string } {
	const size = 4_000
	file := func(rule func(i int) string) string {
		var s strings.Builder
		s.WriteString("User-agent: *\n")
		for i := 0; s.Len() < MaxSize-2_000; i++ {
			s.WriteString("Allow:" + rule(i) + "\n")
		}
		return s.String()
	}
	const letters = "abcdefghijklmnopqrstuvwxyz"
	two := func(i int) string { return string([]byte{letters[i/26%26], letters[i%26]}) }
	var pairs strings.Builder // all that two makes, backwards
	for i := 26*26 - 1; pairs.Len() < size-1; i-- {
		pairs.WriteString(two(i%(26*26)+26*26) + ".")
	}
	as := strings.Repeat("a", size-1)
	return map[string]struct{ body, path string }{
		"literal":   {file(func(i int) string { return fmt.Sprintf("/%04x", i) }), "/" + as},
		"wildcards": {file(func(i int) string { return "/*" + two(i) }), "/" + strings.Repeat("a.b.c-d.e-", size/10)},
		"parts":     {file(func(i int) string { return "/*" + two(i) + "*" + two(i*7+3) + "*0" }), "/" + pairs.String()},
		"as":        {file(func(int) string { return "/" + strings.Repeat("*a", 20) + "b" }), "/" + as},
		"as, long":  {file(func(i int) string { return "/*" + strings.Repeat("a*", 500+i) + "b" }), "/" + as},
		"as, even":  {file(func(i int) string { return "/*" + strings.Repeat("a", 1+i%1_000) + "b" }), "/" + as},
	}
}

func BenchmarkHostile(b *testing.B) { // what is the most that a URL can cost?
	for name, c := range hostileRules() {
		b.Run(name, func(b *testing.B) {
			r := Parse([]byte(c.body)).Group("bot")
			b.ReportMetric(float64(r.Len()), "rules")
			b.ReportMetric(float64(r.Size()), "size-B")
			for b.Loop() {
				r.Allowed(c.path)
			}
		})
	}
}

func BenchmarkParse(b *testing.B) { // how many bytes of robots.txt does a core read?
	for _, n := range []int{10, 200, 5_000} {
		b.Run(fmt.Sprintf("rules=%d", n), func(b *testing.B) {
			body := manyRules(n)
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				Parse(body).Group("bot")
			}
		})
	}
}

func manyRules(n int) []byte {
	var s strings.Builder
	s.WriteString("User-agent: *\n")
	for i := range n {
		if i%10 == 0 {
			fmt.Fprintf(&s, "Disallow: /*/private%d/*.html$\n", i)
		} else {
			fmt.Fprintf(&s, "Disallow: /section%d/\n", i)
		}
	}
	return []byte(s.String())
}
