package crawler

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler/fetch"
)

func TestStopWaitsForFetches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb()
		a := page("/2")
		a.takes = 8 * time.Second
		w.always("http://a.example/1", a)
		w.always("http://a.example/2", page())
		f := openFrontier(t, frontier.Options{})
		c := newCrawler(t, f, w, Options{Grace: 10 * time.Second})
		_, err := c.Seed(t.Context(), "http://a.example/1")
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		start := time.Now()
		require.ErrorIs(t, c.Run(ctx), context.DeadlineExceeded)
		assert.Equal(t, 9010*time.Millisecond, time.Since(start), "the end of the page's fetch")
		assert.EqualValues(t, 1, c.Progress().Pages)
		require.NoError(t, c.Run(t.Context()), "goes on")
		assert.EqualValues(t, 2, c.Progress().Pages)
		assert.Equal(t, 1, w.asks["http://a.example/1"])
		w.checkPolite(t, fixedOwed)
	})
}

func TestStopCutsFetchesAfterGrace(t *testing.T) {
	for _, what := range []string{"http://a.example/1", robotA} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWeb()
				w.always("http://a.example/1", page())
				old := w.pages[what]
				w.pages[what] = func(n int) answer {
					if n == 1 {
						return answer{status: 200, takes: time.Hour}
					}
					if old == nil {
						return answer{status: 404}
					}
					return old(n)
				}
				f := openFrontier(t, frontier.Options{})
				var mu sync.Mutex
				var fetched []string
				c := newCrawler(t, f, w, Options{Grace: 3 * time.Second, OnFetch: func(url string, res *fetch.Result, _ error) {
					mu.Lock()
					defer mu.Unlock()
					assert.False(t, res.Ended.IsZero())
					fetched = append(fetched, url)
				}})
				_, err := c.Seed(t.Context(), "http://a.example/1")
				require.NoError(t, err)
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(2*time.Second, cancel)
				start := time.Now()
				require.ErrorIs(t, c.Run(ctx), context.Canceled)
				assert.Equal(t, 5*time.Second, time.Since(start))
				assert.NotContains(t, fetched, what, "OnFetch does not get what the end of the run cut")
				assert.EqualValues(t, 1, f.Stats().Waiting, "the cut URL was handed back")
				require.NoError(t, c.Run(t.Context()))
				assert.EqualValues(t, 1, c.Progress().Pages)
				assert.ElementsMatch(t, []string{robotA, "http://a.example/1"}, fetched, "robots.txt included")
				w.checkPolite(t, fixedOwed)
			})
		})
	}
}

func TestStopAtAnyMomentLosesNothing(t *testing.T) {
	for seed := range uint64(30) {
		synctest.Test(t, func(t *testing.T) {
			w, seeds, all := randomWeb(6, 8)
			w.always("http://h0.example/robots.txt", answer{status: 302, location: "http://h1.example/robots.txt"})
			w.always("http://h2.example/robots.txt", answer{status: 302, location: "/robots-x"})
			f := openFrontier(t, frontier.Options{})
			c := newCrawler(t, f, w, Options{Workers: 4, Grace: 50 * time.Millisecond})
			_, err := c.Seed(t.Context(), seeds...)
			require.NoError(t, err)
			r := rand.New(rand.NewPCG(seed, 1))
			for {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(r.IntN(5000))*time.Millisecond)
				err := c.Run(ctx)
				cancel()
				if err == nil {
					break
				}
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.Zero(t, f.Stats().Leased)
				require.NoError(t, f.Check())
				require.NoError(t, c.gate.check())
			}
			assert.Equal(t, all, slices.DeleteFunc(w.urls(), func(u string) bool { return u == "http://h2.example/robots-x" }))
			w.checkPolite(t, fixedOwed)
		})
	}
}

func TestStopHandsBackWhatItsHandlerDidNotFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb()
		w.always(seed, page())
		f := openFrontier(t, frontier.Options{Retry: frontier.Retries(1, time.Second)})
		calls := 0
		c := newCrawler(t, f, w, Options{Grace: 3 * time.Second, OnPage: func(ctx context.Context, _ *Page) error {
			if calls++; calls > 1 {
				return nil
			}
			<-ctx.Done()
			return ctx.Err()
		}})
		_, err := c.Seed(t.Context(), seed)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		require.ErrorIs(t, c.Run(ctx), context.DeadlineExceeded)
		assert.EqualValues(t, 1, f.Stats().Waiting)
		assert.Zero(t, f.Stats().GivenUp, "it was its only try")
		require.NoError(t, c.Run(t.Context()))
		assert.Equal(t, 2, calls)
		w.checkPolite(t, fixedOwed)
	})
}
