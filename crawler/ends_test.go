// These tests hold what OnEnd gets against what a web of all kinds of pages did.

package crawler

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler/crawllog"
	"github.com/seed-7440039f/frontier/crawler/fetch"
	"github.com/seed-7440039f/frontier/crawler/filter"
	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/scope"
)

// ends collects records.
type ends struct {
	mu  sync.Mutex
	all []crawllog.Record
}

func (e *ends) add(r crawllog.Record) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, r)
}

// outcomes are what became of each URL, in order, as words.
func (e *ends) outcomes() map[string]string {
	out := map[string]string{}
	for _, r := range e.all {
		word := string(r.Outcome)
		if r.Rule != "" {
			word += " by " + r.Rule
		}
		if r.Status > 0 {
			word += fmt.Sprint(" ", r.Status)
		}
		if out[r.URL] != "" {
			word = out[r.URL] + ", " + word
		}
		out[r.URL] = word
	}
	return out
}

func TestEachEndIsRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb()
		w.always(seed+"robots.txt", text("User-agent: *\nDisallow: /private"))
		w.always(seed, page("/fine", "/gone", "/moved", "/forbidden", "/broken", "/never", "/private", "/film", "/skipped", "/coded", "http://elsewhere.example/", "/handled"))
		w.always(seed+"fine", page())
		w.always(seed+"moved", answer{status: 301, location: "/fine"})
		w.always(seed+"forbidden", answer{status: 400})
		w.pages[seed+"broken"] = func(n int) answer {
			if n < 3 {
				return answer{status: 500}
			}
			return page()
		}
		w.always(seed+"never", answer{class: fetch.Timeout})
		w.always(seed+"coded", answer{status: 200, body: "\x1f\x9d\x90", header: http.Header{"Content-Encoding": {"compress"}}})
		w.always(seed+"film", answer{class: fetch.Unwanted})
		w.always(seed+"handled", page())
		e := &ends{}
		f := openFrontier(t, frontier.Options{Retry: frontier.Retries(3, time.Millisecond)})
		c := newCrawler(t, f, w, Options{
			Scope: Scope{Hosts: []string{"a.example"}, Exclude: []*regexp.Regexp{regexp.MustCompile("skipped")}}, Workers: 4,
			OnPage: func(_ context.Context, p *Page) error {
				if p.URL == seed+"handled" {
					return errors.New("no")
				}
				return nil
			},
			OnEnd: func(r crawllog.Record) {
				if r.Attempt > 0 {
					x, err := inspect.New(f).Status(context.Background(), frontier.Entry{URL: r.URL})
					assert.NoError(t, err)
					assert.Equal(t, inspect.URLLeased, x.State, "the frontier does not know yet: %s", r.URL)
				}
				e.add(r)
			},
		})
		_, err := c.Seed(t.Context(), seed)
		require.NoError(t, err)
		require.NoError(t, c.Run(t.Context()))
		assert.Equal(t, map[string]string{
			seed + "robots.txt":         "robots 200",
			seed:                        "fetched 200",
			seed + "fine":               "fetched 200",
			seed + "gone":               "gone 404",
			seed + "moved":              "redirected 301",
			seed + "forbidden":          "rejected 400",
			seed + "broken":             "failed 500, failed 500, fetched 200",
			seed + "never":              "failed, failed, given-up",
			seed + "private":            "refused by robots.txt",
			seed + "coded":              "fetched 200",
			seed + "film":               "refused by response",
			seed + "skipped":            "refused by scope",
			seed + "handled":            "failed 200, failed 200, given-up 200",
			"http://elsewhere.example/": "refused by scope",
		}, e.outcomes())
		for _, r := range e.all {
			switch r.URL {
			case seed + "moved":
				assert.Equal(t, seed+"fine", r.Target)
			case seed + "never":
				assert.Equal(t, "timeout: fake", r.Reason)
				assert.Positive(t, r.Seconds)
			case seed + "coded":
				assert.Equal(t, `its Content-Encoding cannot be undone: "compress"`, r.Reason)
			case seed + "skipped":
				assert.Equal(t, seed, r.Via)
				assert.Contains(t, r.Reason, "excluded")
			case seed:
				assert.True(t, strings.HasPrefix(r.Digest, "sha1:"))
				assert.Equal(t, "text/html", r.Type)
				assert.Equal(t, "a.example", r.Host)
				assert.Equal(t, 1, r.Visit)
			}
		}
	})
}

// The URLs of a host that is given up are recorded, each once. A URL whose tries are used up is not
// recorded as given up while the host is only probed.
func TestURLsOfALostHostAreRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb()
		links := []string{}
		for i := range 50 {
			links = append(links, fmt.Sprintf("/%d", i))
			w.always(seed+fmt.Sprint(i), answer{class: fetch.Connect})
		}
		w.always(seed, page(links...))
		e := &ends{}
		var c *Crawler
		f := openFrontier(t, frontier.Options{
			Quarantine: frontier.Quarantine{Probes: 3}, Retry: frontier.Retries(1, time.Millisecond), OnGiveUp: func(e frontier.Entry, o frontier.Outcome) { c.GivenUp(e, o) },
		})
		c = newCrawler(t, f, w, Options{OnEnd: e.add})
		_, err := c.Seed(t.Context(), seed)
		require.NoError(t, err)
		require.NoError(t, c.Run(t.Context()))
		given := map[string]int{}
		for _, r := range e.all {
			if r.Outcome == crawllog.GivenUp {
				given[r.URL]++
			}
		}
		assert.Len(t, given, 50)
		for u, n := range given {
			assert.Equal(t, 1, n, u)
		}
		assert.EqualValues(t, 50, f.Stats().GivenUp)
	})
}

// Links that a limit of the frontier refuses are recorded with it.
func TestLinksAtALimitAreRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb()
		w.always(seed, page("/1"))
		w.always(seed+"1", page("/2"))
		e := &ends{}
		f := openFrontier(t, frontier.Options{})
		require.NoError(t, f.UpdateRule(scope.All(), func(r *frontier.Rule) { r.HostLimits.Depth = 1 }))
		c := newCrawler(t, f, w, Options{OnEnd: e.add, Traps: filter.TrapOptions{}})
		_, err := c.Seed(t.Context(), seed)
		require.NoError(t, err)
		require.NoError(t, c.Run(t.Context()))
		assert.Equal(t, "refused by limit", e.outcomes()[seed+"2"])
	})
}
