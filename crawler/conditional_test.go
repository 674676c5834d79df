// This file tests that pages which did not change are not sent again.

package crawler

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler/crawllog"
)

func TestSecondVisitIsConditional(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb()
		const modified = "Fri, 02 Jan 2026 03:05:05 GMT"
		w.pages[seed] = func(n int) answer {
			if n == 1 {
				return answer{status: 200, header: http.Header{"Last-Modified": {modified}, "Etag": {`"first"`}}}
			}
			return answer{status: 304}
		}
		next := frontier.SchedulerFunc(func(v frontier.Visit) time.Time {
			if v.History.Visits > 1 {
				return time.Time{}
			}
			return v.Outcome.Ended.Add(time.Hour)
		})
		p := crawl(t, w, frontier.Options{Scheduler: next}, Options{}, seed)
		assert.EqualValues(t, 1, p.Unchanged)
		rs := w.requests(seed)
		assert.Empty(t, rs[0].header.Get("If-Modified-Since"))
		assert.Empty(t, rs[0].header.Get("If-None-Match"))
		assert.Equal(t, modified, rs[len(rs)-1].header.Get("If-Modified-Since"))
		assert.Equal(t, `"first"`, rs[len(rs)-1].header.Get("If-None-Match"))
	})
}

// A 304 to a request without a condition answers what was not asked: the page is requested again, and what
// answers so for good is given up, in words. A robots.txt is no other.
func TestNotModifiedWithoutACondition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb()
		once := func(then answer) func(int) answer {
			return func(n int) answer {
				if n == 1 {
					return answer{status: 304, header: http.Header{"Etag": {`"x"`}}}
				}
				return then
			}
		}
		w.pages["http://a.example/robots.txt"] = once(text("User-agent: *\nDisallow: /no"))
		w.pages[seed] = once(page("/p", "/always", "/no"))
		w.pages["http://a.example/p"] = once(page())
		w.always("http://a.example/always", answer{status: 304})
		var ends []crawllog.Record
		p := crawl(t, w, frontier.Options{}, Options{OnEnd: func(r crawllog.Record) { ends = append(ends, r) }}, seed)
		assert.EqualValues(t, 2, p.Pages)
		assert.Zero(t, p.Unchanged)
		assert.EqualValues(t, 1, p.Denied)
		assert.EqualValues(t, 1, p.Frontier.GivenUp)
		last := ends[len(ends)-1]
		assert.Equal(t, crawllog.GivenUp, last.Outcome)
		assert.Equal(t, "http://a.example/always", last.URL)
		assert.Equal(t, errNotAsked.Error(), last.Reason)
	})
}

func TestETagsAreKeptWithTheURL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb()
		tags := []string{`"one"`, `W/"two"`, "", "no tag", `"five"`}
		w.pages[seed] = func(n int) answer {
			if n > len(tags) {
				return answer{status: 304}
			}
			return answer{status: 200, header: http.Header{"Etag": {tags[n-1]}}}
		}
		w.always("http://a.example/own", answer{status: 200, header: http.Header{"Etag": {`"x"`}}})
		next := frontier.SchedulerFunc(func(v frontier.Visit) time.Time {
			if v.History.Visits >= 7 {
				return time.Time{}
			}
			return v.Outcome.Ended.Add(time.Hour)
		})
		f := openFrontier(t, frontier.Options{Scheduler: next})
		c := newCrawler(t, f, w, Options{})
		_, err := f.Add(t.Context(), frontier.Entry{URL: seed}, frontier.Entry{URL: "http://a.example/own", Meta: []byte("mine")})
		require.NoError(t, err)
		require.NoError(t, c.Run(t.Context()))
		var sent []string
		for _, r := range w.requests(seed) {
			if r.url == seed {
				sent = append(sent, r.header.Get("If-None-Match"))
			}
		}
		assert.Equal(t, []string{"", `"one"`, `W/"two"`, "", "", `"five"`, `"five"`}, sent)
		for _, r := range w.requests("http://a.example/own") {
			assert.Empty(t, r.header.Get("If-None-Match"), "the user's Meta stays the user's")
		}
	})
}
