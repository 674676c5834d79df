// This file runs the published suites and lists every deviation with its reason.

package urlnorm

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func load(t testing.TB, name string, into any) {
	t.Helper()
	raw, err := os.ReadFile("testdata/" + name)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, into))
}

type wptCase struct {
	Input   string
	Base    *string
	Href    string
	Failure bool
}

func loadWPT(t testing.TB) []wptCase {
	t.Helper()
	var raw []json.RawMessage
	load(t, "urltestdata_wpt.json", &raw)
	var cases []wptCase
	for _, r := range raw {
		if r[0] == '{' { // the strings between are comments
			var c wptCase
			require.NoError(t, json.Unmarshal(r, &c))
			cases = append(cases, c)
		}
	}
	return cases
}

// TestWebPlatformTests resolves each case whose result is an http, https or ftp
// URL, or a failure. Other schemes are refused by design.
func TestWebPlatformTests(t *testing.T) {
	var n Normalizer
	var total, failed, other int
	for _, c := range loadWPT(t) {
		base := ""
		if c.Base != nil {
			base = *c.Base
		}
		var got string
		var err error
		if base == "" {
			got, err = n.Normalize(c.Input)
		} else if _, baseErr := n.Base(base); baseErr != nil && n.isRelative(c.Input) {
			other++ // a base such as about:blank
			continue
		} else {
			got, err = n.Resolve(base, c.Input)
		}
		scheme, _, _ := strings.Cut(c.Href, ":")
		switch {
		case !c.Failure && !crawlable(scheme):
			other++
			assert.Error(t, err, "%q", c.Input)
			continue
		case c.Failure && err != nil, !c.Failure && err == nil && got == c.Href:
		default:
			failed++
			t.Logf("%q on %q: got %q, %v; want %q", c.Input, base, got, err, c.Href)
		}
		total++
	}
	t.Logf("%d of %d fail, %d of other schemes", failed, total, other)
	assert.Zero(t, failed)
}

func (n *Normalizer) isRelative(s string) bool {
	_, err := n.Normalize(s)
	return err != nil
}

func TestRFC3986Resolution(t *testing.T) {
	var suite struct {
		Base  string
		Cases []struct{ Ref, Out string }
	}
	load(t, "resolve_rfc3986.json", &suite)
	var n Normalizer
	base, err := n.Base(suite.Base)
	require.NoError(t, err)
	for _, c := range suite.Cases {
		want := c.Out
		switch c.Ref {
		case "g:h": // no scheme to crawl
			_, err := base.Resolve(c.Ref)
			assert.ErrorIs(t, err, ErrScheme)
			continue
		case "//g": // the URL Standard gives an empty path its slash
			want = "http://g/"
		}
		got, err := base.Resolve(c.Ref)
		assert.NoError(t, err, c.Ref)
		assert.Equal(t, want, got, c.Ref)
	}
}

// deviations are the crawler-commons cases that this package answers otherwise on
// purpose, by input.
var deviations = map[string]struct{ got, reason string }{
	"file:///foo/bar.txt":                      {"error", notCrawlable},
	"file:/path/index.html":                    {"error", notCrawlable},
	"file:/var/www/html/////./bar/index.html":  {"error", notCrawlable},
	"file:/var/www/html/foo/../bar/index.html": {"error", notCrawlable},
	"ftp:/":                           {"error", noHost},
	"http:////":                       {"error", noHost},
	"http:///////":                    {"error", noHost},
	"foo.com/index.html":              {"error", "guessing a scheme is for address bars"},
	"http://foo.com/index?a=1&b=":     {"http://foo.com/index?a=1&b=", emptyValue},
	"http://foo.com/index?b=&a=1":     {"http://foo.com/index?a=1&b=", emptyValue},
	"http://foo.com/index?&=1&a=1":    {"http://foo.com/index?=1&a=1", noName},
	"http://foo.com/index?=1&b=1&a=1": {"http://foo.com/index?=1&a=1&b=1", noName},
	"http://[::ffff:127.0.0.1]/":      {"http://[::ffff:7f00:1]/", "the URL Standard's one spelling of IPv6"},
}

const (
	notCrawlable = "scheme cannot be crawled"
	noHost       = "the URL Standard calls it a failure"
	emptyValue   = "servers tell b= from b"
	noName       = "servers tell =1 from nothing"
)

func TestCrawlerCommons(t *testing.T) {
	var suite struct {
		Normalize []struct{ In, Out string }
		Invalid   []string
		Options   []struct {
			Options struct {
				Remove []string `json:"remove_params"`
				IDN    string
			}
			In, Out string
		} `json:"normalize_with_options"`
		Resolve []struct{ Base, Ref, Out string }
	}
	load(t, "urlnorm_crawlercommons.json", &suite)
	n := New(append(Default(), CollapseSlashes(), SortQuery())...)
	same := 0
	for _, c := range suite.Normalize {
		got, err := n.Normalize(c.In)
		if err != nil {
			got = "error"
		}
		want := c.Out
		if d, ok := deviations[c.In]; ok {
			want = d.got
		} else {
			same++
		}
		assert.Equal(t, want, got, "%q (%v)", c.In, err)
	}
	t.Logf("%d of %d as crawler-commons", same, len(suite.Normalize))
	for _, in := range suite.Invalid {
		_, err := n.Normalize(in)
		assert.ErrorIs(t, err, ErrSyntax, in)
	}
	for _, c := range suite.Options {
		if c.Options.IDN != "" {
			continue // host names in Unicode are for display, not for keys
		}
		got, err := New(append(Default(), DropParams(c.Options.Remove...))...).Normalize(c.In)
		assert.NoError(t, err)
		assert.Equal(t, c.Out, got)
	}
	var parse Normalizer
	for _, c := range suite.Resolve {
		got, err := parse.Resolve(c.Base, c.Ref)
		if strings.HasPrefix(c.Base, "file:") {
			assert.ErrorIs(t, err, ErrScheme)
			continue
		}
		assert.NoError(t, err, c.Ref)
		assert.Equal(t, c.Out, got, c.Ref)
	}
}
