// These tests filter URLs and answers, and crawl traps.

package crawler

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler/fetch"
	"github.com/seed-7440039f/frontier/crawler/filter"
)

func TestRulesSayWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb()
		w.always(seed, page("/b.png", "/c?x=1", "http://b.example/", "/moved", "/d"))
		w.always("http://a.example/moved", answer{status: 302, location: "/e.png"})
		w.always("http://a.example/d", page("/d/2"))
		w.always("http://a.example/d/2", page("/d/3"))
		p := crawl(t, w, frontier.Options{}, Options{
			Scope: Scope{Hosts: []string{"a.example"}},
			Rules: []filter.Filter{filter.Deny("pictures", filter.Extension("png")), filter.MaxQuery(2), filter.MaxDepth(2)},
		}, seed)
		assert.Equal(t, []string{seed, "http://a.example/d", "http://a.example/d/2", "http://a.example/moved"}, w.urls())
		assert.Equal(t, map[string]int64{"pictures": 2, "query-length": 1, "scope": 1, "depth": 1}, p.FilteredBy)
		f := openFrontier(t, frontier.Options{})
		c := newCrawler(t, f, w, Options{Rules: []filter.Filter{filter.MaxQuery(2)}})
		_, err := c.Seed(t.Context(), "http://a.example/?long")
		assert.ErrorContains(t, err, "not wanted: query-length: 4 bytes of query; at most 2")
	})
}

func TestTrapsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb()
		f := openFrontier(t, frontier.Options{})
		traps := func(ctx context.Context, r fetch.Request) (*fetch.Result, error) {
			if !isRobots(r.URL) { // each page leads on for ever
				base := r.URL[:strings.LastIndexByte(r.URL, '/')+1]
				w.always(r.URL, page(base+"x/", base+fmt.Sprintf("n%d/", len(w.asks)), fmt.Sprintf("/item/%d", len(w.asks)), fmt.Sprintf("/p?sid=%032x", len(w.asks))))
			}
			return w.Fetch(ctx, r)
		}
		c := newCrawler(t, f, fetcherFunc(traps), Options{
			Workers: 1, Traps: filter.TrapOptions{MaxPerPattern: 20, MaxSegments: 4}, MaxPages: 5000,
		})
		_, err := c.Seed(t.Context(), seed)
		require.NoError(t, err)
		require.NoError(t, c.Run(t.Context()))
		p := c.Progress()
		assert.Zero(t, p.Frontier.Waiting, "it has come to an end: %v", p.FilteredBy)
		for _, rule := range []string{"pattern", "repeating-segments"} {
			assert.Positive(t, p.FilteredBy[rule], rule)
		}
	})
}

type fetcherFunc func(context.Context, fetch.Request) (*fetch.Result, error)

func (f fetcherFunc) Fetch(ctx context.Context, r fetch.Request) (*fetch.Result, error) {
	return f(ctx, r)
}

func TestResponsesThatAreNotWanted(t *testing.T) {
	s := listen(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/":
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, "<a href=/film>x</a><a href=/gone>x</a>")
		case "/film":
			w.Header().Set("Content-Type", "video/mp4")
			_, _ = w.Write(make([]byte, 1<<20))
		default:
			http.NotFound(w, r)
		}
	})
	f := openFrontier(t, frontier.Options{Delay: frontier.FixedDelay(time.Millisecond)})
	var film *Page
	c := newCrawler(t, f, s.fetcher(t, fetch.Options{}), Options{
		Responses: []filter.Response{filter.ContentTypes("text/html"), filter.MaxLength(1000)},
		OnPage: func(_ context.Context, p *Page) error {
			if strings.HasSuffix(p.URL, "/film") {
				film = p
			}
			return nil
		},
	})
	_, err := c.Seed(t.Context(), "http://a.example/")
	require.NoError(t, err)
	require.NoError(t, c.Run(t.Context()))
	p := c.Progress()
	assert.EqualValues(t, 2, p.Pages)
	assert.EqualValues(t, 1, p.Unwanted)
	assert.EqualValues(t, 1, p.Gone)
	assert.Zero(t, p.Failed)
	assert.Equal(t, map[string]int64{"content-type": 1}, p.FilteredBy)
	require.NotNil(t, film)
	assert.Nil(t, film.Body)
	assert.Equal(t, 1, s.asks["http://a.example/film"], "it is not tried again")
}

// A page that quotes its own URL in its links has the same text each time, and is left after some
// hundred; pages that differ are not.
func TestPageThatQuotesItsOwnURLEnds(t *testing.T) {
	for name, own := range map[string]bool{"the same text": false, "a text for each": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWeb()
				text := strings.Repeat("please log in ", 30)
				for i := range 600 {
					u := fmt.Sprintf("%slogin?back=%d", seed, i)
					a := page(fmt.Sprintf("/login?back=%d", i+1))
					a.body += "<script>here = 'x" + u + "'</script><p>you are at " + u[len(seed)-1:] + text
					if own {
						a.body += fmt.Sprint(i)
					}
					w.always(u, a)
				}
				p := crawl(t, w, frontier.Options{}, Options{}, seed+"login?back=0")
				if own {
					assert.EqualValues(t, 600, p.Pages)
				} else {
					assert.LessOrEqual(t, p.Pages, int64(200))
					assert.Positive(t, p.FilteredBy["same-text"])
				}
			})
		})
	}
}

// Pages of a calendar that lead to other dates only are left after some hundred, though each has a text of its own.
func TestCalendarEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb()
		day := time.Now()
		url := func(i int) string { return day.AddDate(0, 0, i).Format(seed + "cal?date=2006-01-02") }
		for i := range 300 {
			a := page(url(i+1), "/")
			a.body += strings.Repeat(fmt.Sprint("nothing but ", i), 30)
			w.always(url(i), a)
		}
		p := crawl(t, w, frontier.Options{}, Options{}, url(0))
		assert.LessOrEqual(t, p.Pages, int64(200))
		assert.Positive(t, p.FilteredBy["calendar"])
	})
}
