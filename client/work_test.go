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
