// These tests crawl pages whose end is missing.

package crawler

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler/fetch"
)

// A body that this machine cannot store is no failure of its host.
func TestABodyThatCannotBeStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb()
		for url, a := range map[string]answer{seed + "robots.txt": {status: 404}, seed: page()} {
			w.pages[url] = func(n int) answer {
				if n <= 9 {
					return answer{status: 200, class: fetch.Store}
				}
				return a
			}
		}
		p := crawl(t, w, frontier.Options{Retry: frontier.Retries(1, time.Second), Quarantine: frontier.Quarantine{After: 1, Probes: 1}}, Options{}, seed)
		assert.EqualValues(t, []int64{1, 0, 0}, []int64{p.Pages, p.Failed, p.Frontier.GivenUp})
	})
}

func TestPageWithoutItsEndIsKeptAfterTheLastTry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb()
		cut := page("/next")
		cut.class, cut.broken = fetch.Cut, "disconnect"
		cut.header = http.Header{"Etag": {`"v1"`}, "Last-Modified": {"Sat, 01 Jan 2000 00:00:00 GMT"}}
		w.always("http://a.example/", cut)
		w.pages["http://a.example/next"] = func(n int) answer { // whole at the second try
			if n == 1 {
				return cut
			}
			return page()
		}
		w.always("http://a.example/error", answer{status: 500, body: "cut", class: fetch.Cut, broken: "disconnect"})
		var kept []string
		fo := frontier.Options{Retry: frontier.Retries(3, time.Second)}
		p := crawl(t, w, fo, Options{
			OnPage: func(_ context.Context, p *Page) error {
				kept = append(kept, p.URL+" "+p.Broken)
				if p.Broken != "" {
					assert.True(t, p.Outcome.Modified.IsZero())
					assert.Nil(t, p.Outcome.Meta, "with its ETag the rest would never be asked for")
				}
				return nil
			},
		}, "http://a.example/", "http://a.example/error")
		assert.Equal(t, []string{"http://a.example/ disconnect", "http://a.example/next "}, kept, "its links are followed")
		assert.Len(t, w.requests("http://a.example/error"), 3)
		assert.EqualValues(t, 2, p.Pages)
		assert.EqualValues(t, 1, p.Broken)
		assert.EqualValues(t, 1, p.Frontier.GivenUp, "the answer that tells of an error")
		assert.EqualValues(t, 2+1+3, p.Failed)
	})
}
