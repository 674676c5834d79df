package console

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/spill"
)

// The first page of a server has its crawls and clients, and pages are counted since a time if there were
// URLs before.
func TestAServersPageHasCrawlsAndClients(t *testing.T) {
	store, err := spill.Open(t.TempDir(), spill.Options{})
	require.NoError(t, err)
	defer store.Close()
	page := func(add bool) string {
		f, err := frontier.Open(t.Context(), frontier.Options{Spill: store, KeepOpen: true})
		require.NoError(t, err)
		defer func() { assert.NoError(t, f.Check()); assert.NoError(t, f.Close()) }()
		crawls := []ServedCrawl{
			{"<shop>", inspect.Crawl{Waiting: 1234, Leased: 7, Finished: 56, Done: [8]int64{frontier.Visited: 40, frontier.Gone: 2, frontier.Failed: 100}}},
			{"held", inspect.Crawl{Rule: frontier.Rule{Paused: scope.On}, Waiting: 3}},
			{"spent", inspect.Crawl{Rule: frontier.Rule{Limits: scope.Limits{Served: 9}}, Used: inspect.Used{Served: 9}, Waiting: 3}},
		}
		c, err := New(f, Options{
			Crawls: func(n int) ([]ServedCrawl, int) { return crawls, 60 },
			Clients: func() []ServedClient {
				return []ServedClient{{"<bot>", 3, time.Now().Add(-time.Minute), time.Now().Add(time.Hour)}}
			},
		})
		require.NoError(t, err)
		defer c.Close()
		if add {
			_, err = f.Add(t.Context(), frontier.Entry{URL: "http://a.example/"})
			require.NoError(t, err)
		}
		rec := httptest.NewRecorder()
		r := httptest.NewRequest("GET", "http://localhost/", nil)
		r.AddCookie(c.cookie())
		c.Page().ServeHTTP(rec, r)
		require.Equal(t, http.StatusOK, rec.Code)
		return rec.Body.String()
	}
	first := page(true)
	for _, want := range []string{"&lt;shop&gt;", "1\u202f234", ">56<", ">42<", ">fetching<", "<b>paused</b>", "<b>at a limit</b>", "9 pages at most", "57 crawls more", "&lt;bot&gt;", "1 min ago", "0 fetched, 1 waits"} {
		assert.Contains(t, first, want)
	}
	assert.NotContains(t, first, "started again")
	again := page(false)
	assert.Contains(t, again, "when it was started again")
	assert.Regexp(t, `0 fetched since \d\d:\d\d UTC`, again)
	assert.False(t, strings.Contains(again, "0 fetched, "))
}
