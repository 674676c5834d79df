// This file tests what an operator does to a host's standing, and sees of it.

package console_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/console"
	"github.com/seed-7440039f/frontier/scope"
)

func TestStanding(t *testing.T) {
	w := newWorld(t, console.Options{})
	w.add(t, "http://a.example/1", "http://a.example/2")
	c := console.Direct(w.c)
	do := func(scope string, n int) string {
		t.Helper()
		r, err := c.Do(t.Context(), console.Action{Do: "standing", Scope: scope, N: n})
		require.NoError(t, err)
		return r.Said
	}
	standing := func() (listed, described, priority int) {
		t.Helper()
		l, err := c.Hosts(t.Context(), console.HostsQuery{})
		require.NoError(t, err)
		h, err := c.Host(t.Context(), "a.example")
		require.NoError(t, err)
		return l.Hosts[0].Standing, h.Standing, h.Queues[0].Priority
	}
	assert.Equal(t, "a.example is 3 levels down: 1 host, 2 URLs now", do("A.example", -3))
	listed, described, priority := standing()
	assert.Equal(t, []int{-3, -3, 5}, []int{listed, described, priority})
	assert.Equal(t, "b.example is 1 level up; no host of the crawl had this name: 1 host, 0 URLs now", do("b.example", 1))
	assert.Equal(t, "a.example is neither up nor down: 1 host, 2 URLs now", do("a.example", 0))
	listed, described, priority = standing()
	assert.Equal(t, []int{0, 0, 8}, []int{listed, described, priority})

	require.NoError(t, w.f.UpdateRule(scope.Domain("example"), func(r *frontier.Rule) { r.Priority = 6 }))
	assert.Contains(t, do("a.example", -3), "but a rule about its priorities wins")
	_, _, priority = standing()
	assert.Equal(t, 6, priority)
}

// The page of a host shows its standing, and its form moves the host.
func TestStandingOnThePage(t *testing.T) {
	w := newWorld(t, console.Options{})
	w.add(t, "http://a.example/1")
	post, page := browsing(t, w)
	const at = "host?name=a.example"
	assert.NotContains(t, page(at), "<dt>standing</dt>")
	said := post("do", url.Values{"do": {"standing"}, "scope": {"a.example"}, "n": {"-2"}, "back": {at}, "token": {w.c.Token()}})
	assert.Contains(t, said, "a.example is 2 levels down")
	assert.Contains(t, said, "<dt>standing</dt><dd>2 levels down</dd>")
	assert.Contains(t, said, `name="n" value="-2"`)
}

// browsing returns functions that send a form, and ask for a page.
func browsing(t *testing.T, w *world) (post func(at string, form url.Values) string, page func(at string) string) {
	server := httptest.NewServer(w.c.Page())
	t.Cleanup(server.Close)
	body := func(r *http.Response, err error) string {
		t.Helper()
		require.NoError(t, err)
		defer r.Body.Close()
		b, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		return string(b)
	}
	post = func(at string, form url.Values) string { return body(http.PostForm(server.URL+"/"+at, form)) }
	return post, func(at string) string { return body(http.Get(server.URL + "/" + at)) }
}

// known is what an order knows in tests: the links to a.example's URLs, and that b.example has no use.
func known(e frontier.Entry) console.Worth {
	switch {
	case strings.Contains(e.URL, "a.example"):
		return console.Worth{Links: 12, Level: 6, Pages: 312, Useful: 0.41}
	case e.Host == "b.example":
		return console.Worth{Links: 1, Level: 4, Pages: 1, Useful: 0}
	}
	return console.Worth{Cash: 0.004, Links: 3, Level: 2}
}

// Hosts have their standing and the useful part of their pages in lists, which may be of those alone that
// have sunk.
func TestSunkHosts(t *testing.T) {
	w := newWorld(t, console.Options{Importance: known})
	w.add(t, "http://a.example/1", "http://b.example/1", "http://c.example/1", "http://d.other/1")
	for host, levels := range map[string]int{"b.example": -3, "c.example": 2, "d.other": -1} {
		require.NoError(t, w.f.SetStanding(host, levels))
	}
	c := console.Direct(w.c)
	list := func(q console.HostsQuery) (rows []string) {
		t.Helper()
		l, err := c.Hosts(t.Context(), q)
		require.NoError(t, err)
		assert.True(t, l.Ranked())
		for _, h := range l.Hosts {
			useful := ""
			if h.Useful != nil {
				useful = console.UsefulOf(h.Pages, *h.Useful)
			}
			rows = append(rows, fmt.Sprint(h.Host, " ", h.Standing, " ", useful))
		}
		return rows
	}
	sunk := []string{"b.example -3 0 % of 1 page", "d.other -1 "}
	assert.Equal(t, []string{"a.example 0 ", sunk[0], "c.example 2 ", sunk[1]}, list(console.HostsQuery{}))
	assert.Equal(t, sunk, list(console.HostsQuery{Sunk: true}))
	assert.ElementsMatch(t, sunk, list(console.HostsQuery{Sunk: true, Sort: "waiting"}))
	assert.Equal(t, sunk[:1], list(console.HostsQuery{Sunk: true, Match: "ex"}))
	h, err := c.Host(t.Context(), "b.example")
	require.NoError(t, err)
	require.NotNil(t, h.Useful)
	assert.Zero(t, *h.Useful)

	_, page := browsing(t, w)
	all, few := page("hosts"), page("hosts?sunk=true")
	assert.Contains(t, all, ">c.example</a>")
	assert.Contains(t, all, `data-label="Standing">3 levels down</td><td data-label="Useful">0 % of 1 page</td>`)
	assert.NotContains(t, few, ">c.example</a>")
	assert.Contains(t, few, ">b.example</a>")
	assert.Contains(t, few, `value="true" checked`)
	assert.Contains(t, page("host?name=b.example"), "<dt>useful</dt><dd>0 % of 1 page</dd>")

	plain := newWorld(t, console.Options{})
	plain.add(t, "http://a.example/1")
	_, page = browsing(t, plain)
	assert.NotContains(t, page("hosts"), "Useful", "no column without need")
}

// A URL that waits has its priority, why it has that, and how many have a higher one.
func TestWhyAURLHasItsPriority(t *testing.T) {
	const lot = 1 << 31
	w := newWorld(t, console.Options{Importance: known, Lot: func(crawl uint32) (uint32, string, bool) { return crawl &^ lot, "parked", crawl&lot != 0 }})
	for _, e := range []frontier.Entry{
		{URL: "http://a.example/deep", Depth: 4}, {URL: "http://a.example/deeper", Depth: 5}, {URL: "http://a.example/1"}, {URL: "http://a.example/2"},
		{URL: "http://b.example/1"}, {URL: "http://b.example/deep", Depth: 4}, {URL: "http://b.example/aside", Crawl: 1 | lot}, {URL: "http://a.example/aside", Crawl: 1 | lot},
	} {
		_, err := w.f.Add(t.Context(), e)
		require.NoError(t, err)
	}
	_, err := w.f.CrawlNow(t.Context(), frontier.Entry{URL: "http://c.example/now"})
	require.NoError(t, err)
	_, err = w.f.Add(t.Context(), frontier.Entry{URL: "http://later.example/1", NotBefore: w.f.Now().Add(time.Hour)})
	require.NoError(t, err)
	c := console.Direct(w.c)
	explained := func(u string) (said []string) {
		t.Helper()
		x, err := c.URL(t.Context(), 0, u)
		require.NoError(t, err)
		said = []string{x.PriorityWords(), "", x.HostWords(), ""}
		if x.Importance != nil {
			said[1] = x.Importance.String()
		}
		if x.Ahead != nil {
			said[3] = x.Ahead.String()
		}
		return said
	}
	links := "about 12 links found, worth priority 6"
	assert.Equal(t, []string{"4 of 8", links, "41 % of 312 pages useful", "2 URLs of its host and 2 of others have a higher priority"}, explained("http://a.example/deep"))
	assert.Equal(t, []string{"3 of 8", links, "41 % of 312 pages useful", "3 URLs of its host and 3 of others have a higher priority"}, explained("http://a.example/deeper"))
	cash := "0.4 % of a seed's cash, and about 3 links found, worth priority 2"
	assert.Equal(t, []string{"before all others", cash, "", "no URL has a higher priority"}, explained("http://c.example/now"))
	assert.Equal(t, []string{"8 of 8", cash, "", ""}, explained("http://later.example/1"))
	assert.Equal(t, "100 % of a seed's cash, and about 1 link found, worth priority 8", console.Worth{Cash: 1, Links: 1, Level: 8}.String())
	require.NoError(t, w.f.SetStanding("a.example", -2))
	assert.Equal(t, []string{"2 of 8", links, "41 % of 312 pages useful, 2 levels down", "2 URLs of its host and 3 of others have a higher priority"}, explained("http://a.example/deep"))
	require.NoError(t, w.f.SetStanding("b.example", -1))
	assert.Equal(t, []string{"7 of 8", "about 1 link found, worth priority 4", "0 % of 1 page useful, 1 level down", "0 URLs of its host and 1 of others have a higher priority"}, explained("http://b.example/1"))
	assert.Equal(t, []string{"0", "", "", ""}, explained("http://z.example/unknown"))

	_, page := browsing(t, w)
	got := page("url?url=" + url.QueryEscape("http://a.example/deep"))
	for _, pair := range []string{
		"<dt>priority</dt><dd>2 of 8</dd>", "<dt>importance</dt><dd>" + links + "</dd>", "<dt>its host</dt><dd>41 % of 312 pages useful, 2 levels down</dd>",
		"<dt>ahead</dt><dd>2 URLs of its host and 3 of others have a higher priority</dd>",
	} {
		assert.Contains(t, got, pair)
	}
}
