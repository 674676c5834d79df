package crawler

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/seed-7440039f/frontier"
)

func TestScopeSaysWhy(t *testing.T) {
	f := newScopeFilter(Scope{
		Hosts: []string{"a.example"}, MaxDepth: 2, MaxURL: 40,
		Include: []*regexp.Regexp{regexp.MustCompile("/x")}, Exclude: []*regexp.Regexp{regexp.MustCompile("z$")},
	})
	for url, want := range map[string]string{
		"http://a.example/x":  "",
		"http://b.example/x":  `host "b.example"`,
		"http://a.example/xz": `excluded by "z$"`,
		"http://a.example/y":  "no pattern to include matches",
		"http:///x":           "no host",
		"http://a.example/" + strings.Repeat("x", 50): "67 bytes of URL; at most 40",
	} {
		assert.Equal(t, want, f.why(frontier.Entry{URL: url}), url)
		assert.Equal(t, want == "", f.Allow(frontier.Entry{URL: url}), url)
	}
	assert.Equal(t, "3 links from a seed; at most 2", f.why(frontier.Entry{URL: "http://a.example/x", Depth: 3}))
}

func TestScopeReadsNamesAsPeopleWriteThem(t *testing.T) {
	f := newScopeFilter(Scope{Hosts: []string{"Bücher.example", "c.example:81"}, Domains: []string{".bücher.test"}})
	for url, want := range map[string]bool{
		"http://xn--bcher-kva.example/": true, "http://a.xn--bcher-kva.example/": false, "http://a.xn--bcher-kva.test/": true,
		"http://c.example:81/": true, "http://c.example/": false,
	} {
		assert.Equal(t, want, f.Allow(frontier.Entry{URL: url}), url)
	}
}
