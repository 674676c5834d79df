package client_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/client"
	"github.com/seed-7440039f/frontier/serve"
)

// Close is a clean end of Work. Leases that are out end by their deadlines.
func TestWorkEndsWithTheClient(t *testing.T) {
	bubble(t, func(t *testing.T, w *wire, c *client.Client) {
		added(t, c, "http://a.example/", "http://b.example/")
		time.AfterFunc(time.Second, func() { assert.NoError(t, c.Close()) })
		assert.NoError(t, c.Work(t.Context(), 5, func(ctx context.Context, _ frontier.Lease) (frontier.Outcome, error) {
			time.Sleep(10 * time.Second)
			return frontier.Outcome{}, ctx.Err()
		}))
		assert.EqualValues(t, 2, w.f.Stats().Leased)
		time.Sleep(time.Minute)
		assert.EqualValues(t, 2, w.f.Stats().Expired)
	})
}

// A server waits for more URLs. What it answers when it has waited ends Work.
func TestWorkSeesTheEndOfAServedCrawl(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := wireTo(t, serve.Frontier(frontier.Options{}))
		c := w.client(t, client.Options{Crawl: "news", Wait: 5 * time.Second})
		added(t, c, "http://a.example/")
		began := time.Now()
		require.NoError(t, c.Work(t.Context(), 3, func(context.Context, frontier.Lease) (frontier.Outcome, error) {
			time.Sleep(time.Second)
			return frontier.Outcome{}, nil
		}))
		assert.WithinRange(t, time.Now(), began.Add(time.Second), began.Add(2*5*time.Second))
		assert.EqualValues(t, 1, w.f.Stats().Done[frontier.Visited])
	})
}

// While the server is away Work waits. A lease whose end comes too late is a failed try.
func TestWorkWhileTheServerIsAway(t *testing.T) {
	bubble(t, func(t *testing.T, w *wire, c *client.Client) {
		added(t, c, "http://a.example/")
		var tries []int
		require.NoError(t, c.Work(t.Context(), 1, func(_ context.Context, l frontier.Lease) (frontier.Outcome, error) {
			if tries = append(tries, l.Attempt); len(tries) == 1 {
				w.down.Store(true)
				time.AfterFunc(3*time.Minute, func() { w.down.Store(false) })
			}
			return frontier.Outcome{}, nil
		}))
		assert.Equal(t, []int{1, 2}, tries)
	})
}

// Relative links are a mistake of the program's, which Work reports; other bad links are the web's.
func TestWorkReportsRelativeLinks(t *testing.T) {
	bubble(t, func(t *testing.T, w *wire, c *client.Client) {
		added(t, c, "http://a.example/")
		links := []frontier.Entry{{URL: "mailto:me@a.example"}, {URL: "/a"}, {URL: "b.html"}, {URL: "http://a.example/2"}, {URL: "//c.example/x"}, {}}
		err := c.Work(t.Context(), 1, func(_ context.Context, l frontier.Lease) (frontier.Outcome, error) {
			return frontier.Outcome{Add: links}, nil
		})
		var relative []int
		for _, e := range frontier.EntryErrors(err) {
			relative = append(relative, e.Index)
		}
		assert.Equal(t, []int{1, 2, 4, 5}, relative, "%v", err)
		assert.EqualValues(t, 1, w.f.Stats().Done[frontier.Visited])
		assert.EqualValues(t, 1, w.f.Stats().Waiting)
	})
}

// A worker may start before the program that adds: Work waits for the crawl to come.
func TestWorkStartsBeforeItsProducer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := wireTo(t, serve.Frontier(frontier.Options{}))
		c := w.client(t, client.Options{Crawl: "news"})
		time.AfterFunc(10*time.Second, func() { added(t, w.client(t, client.Options{Crawl: "news"}), "http://a.example/") })
		pages := 0
		require.NoError(t, c.Work(t.Context(), 1, func(context.Context, frontier.Lease) (frontier.Outcome, error) {
			pages++
			return frontier.Outcome{}, nil
		}))
		assert.Equal(t, 1, pages)
	})
}

// What a Client counts is of its crawl, and its links belong to their page's.
func TestAClientsCrawl(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := wireTo(t, serve.Frontier(frontier.Options{}))
		added(t, w.client(t, client.Options{Crawl: "other"}), "http://other.example/")
		c := w.client(t, client.Options{Crawl: "news"})
		assert.Zero(t, c.Stats().Waiting, "there is no such crawl")
		added(t, c, "http://a.example/")
		assert.EqualValues(t, []int64{1, 1}, []int64{c.Stats().Waiting, c.Stats().Added})
		anyone := w.client(t, client.Options{})
		assert.EqualValues(t, 2, anyone.Stats().Waiting)
		for _, add := range [][]frontier.Entry{
			{{URL: "http://a.example/1"}},
			{{URL: "http://a.example/2"}, {URL: "http://a.example/\xff"}}, // added before the end
			{{URL: "http://a.example/3", AsIs: true}, {URL: "http://a.example/4"}},
		} {
			for {
				l, err := anyone.Next(t.Context())
				require.NoError(t, err)
				if l.Host == "other.example" {
					require.NoError(t, anyone.Done(l, frontier.Outcome{}))
					continue
				}
				require.NoError(t, anyone.Done(l, frontier.Outcome{Add: add}))
				break
			}
		}
		depths := map[string]int{}
		require.NoError(t, c.Work(t.Context(), 1, func(_ context.Context, l frontier.Lease) (frontier.Outcome, error) {
			depths[l.Entry.URL] = l.Entry.Depth
			return frontier.Outcome{}, nil
		}))
		assert.Equal(t, map[string]int{"http://a.example/3": 0, "http://a.example/4": 3}, depths, "1 and 2 were pages whose links these are")
		assert.EqualValues(t, 5, c.Stats().Done[frontier.Visited])
	})
}

// As in a frontier of one's own: what the host asked for must not be lost with the unit.
func TestDoneWithoutTheUnit(t *testing.T) {
	bubble(t, func(t *testing.T, w *wire, c *client.Client) {
		added(t, c, "http://a.example/")
		l, err := c.Next(t.Context())
		require.NoError(t, err)
		for _, o := range []frontier.Outcome{{RetryAfter: 3}, {CrawlDelay: 10}} {
			err := c.Done(l, o)
			require.ErrorIs(t, err, frontier.ErrOutcome)
			require.ErrorContains(t, err, "is the unit missing?")
		}
		require.NoError(t, c.Done(l, frontier.Outcome{Result: frontier.PutOff, Next: time.Now().Add(time.Second), RetryAfter: 3}), "nobody was asked")
		l, err = c.Next(t.Context())
		require.NoError(t, err)
		require.NoError(t, c.Done(l, frontier.Outcome{RetryAfter: time.Second, CrawlDelay: frontier.NoCrawlDelay}))
	})
}
