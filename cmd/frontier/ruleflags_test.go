// This file tests what is said of some hosts when a crawl begins.

package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/scope"
)

func TestRuleFlags(t *testing.T) {
	x, err := parseRule("*.example.org delay=30s priority=3 concurrency=2 limit-pages=1000 limit-bytes=2M limit-period=24h")
	require.NoError(t, err)
	assert.Equal(t, rule{scope: scope.Domain("example.org"), delay: frontier.FixedDelay(30 * time.Second), priority: 3, concurrency: 2, limits: &scope.Limits{Served: 1000, Bytes: 2 << 20, Period: 24 * time.Hour}}, x)
	x, err = parseRule("a.example delay-factor=5 max-delay=1m")
	require.NoError(t, err)
	assert.Equal(t, rule{scope: scope.Host("a.example"), delay: frontier.FactorDelay(5, time.Second, time.Minute)}, x)
	x, err = parseRule("crawl:3 weight=5 limit-pages=1000")
	require.NoError(t, err)
	assert.Equal(t, rule{scope: scope.Crawl(3), weight: 5, limits: &scope.Limits{Served: 1000}}, x)
	for text, says := range map[string]string{
		"crawl:x weight=5": "want crawl: and a crawl's number", "crawl:3 weight=0": "weight is 0; want >= 1",
		"www.* delay=1s": `"www.*": a * stands for all hosts, or before a domain`, "*. delay=1s": "no host: want",
		"": "want a host", "a.example": "want a host", "a.example delay": "with = and a value", "a.example hue=3": `"hue=3": want delay`,
		"a.example delay=soon": "want a time", "a.example limit-bytes=x": "want a number of bytes", "a.example delay=1s delay=2s": "each once",
		"a.example delay=1s min-delay=2s": "cannot be combined", "a.example priority=0": "priority is 0; want >= 1",
	} {
		_, err := parseRule(text)
		assert.ErrorContains(t, err, says, text)
	}
}

// The rules of a crawl hold from its first contact on, and are there when it is at rest.
func TestCrawlWithRules(t *testing.T) {
	web, addr := serve(t, 20)
	dir := t.TempDir()
	status, out, stderr := command(t, t.Context(), "-dir", dir, "-proxy", "http://"+addr, "-rule", "a.example limit-pages=3", "-rule", "*.example delay=2ms priority=2", "http://a.example/1", "http://b.example/1")
	require.Equal(t, exitLimit, status, stderr)
	assert.Contains(t, out, "23 pages", "3 of a, 20 of b")
	assert.Contains(t, web.asks, "http://a.example/3")
	assert.NotContains(t, web.asks, "http://a.example/4")
	_, out, _ = operate(t, "rules", "-dir", dir)
	assert.Regexp(t, `\*\.example +delay +2ms`, out)
	assert.Regexp(t, `\*\.example +priority +2`, out)
	status, _, stderr = command(t, t.Context(), "-rule", "a.example priority=99", "http://a.example/")
	assert.Equal(t, exitUsage, status)
	assert.Contains(t, stderr, `-rule "a.example priority=99": `)
	for says, flags := range map[string][]string{
		"another rule has the same hosts": {"-rule", "a.example delay=30s", "-rule", "a.example delay=1s"},
		"want each host once":             {"-resolve", "a.example=127.0.0.1:1", "-resolve", "A.example=127.0.0.1:2"},
		"-page is missing":                {"-page", ""},
	} {
		status, _, stderr = command(t, t.Context(), append(flags, "http://a.example/")...)
		assert.Equal(t, exitUsage, status)
		assert.Contains(t, stderr, says)
	}
}
