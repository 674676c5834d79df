package crawler

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler/fetch"
	"github.com/seed-7440039f/frontier/crawler/spool"
)

// This file measures what the crawler itself costs.

// endless is a Fetcher of hosts without robots.txt whose pages always link to new pages, at no
// cost.
type endless struct{ next atomic.Int64 }

func (e *endless) Fetch(_ context.Context, r fetch.Request) (*fetch.Result, error) {
	now := time.Now()
	res := &fetch.Result{URL: r.URL, Status: 404, Started: now, Ended: now, Header: http.Header{"Content-Type": {"text/html"}}}
	if !isRobots(r.URL) {
		var b strings.Builder
		for range 20 { // of 20 links one is new
			n := e.next.Add(1) / 20
			fmt.Fprintf(&b, "<p>some text around <a href=\"http://h%d.example/%d\">a link</a></p>\n", n%1000, n)
		}
		res.Status, res.Body = 200, spool.Of([]byte(b.String()))
	}
	return res, nil
}

func BenchmarkCrawl(b *testing.B) { // what does a page cost in addition to its fetch?
	f, err := frontier.Open(b.Context(), frontier.Options{Delay: frontier.FixedDelay(0)})
	require.NoError(b, err)
	defer f.Close()
	c, err := New(f, Options{Fetcher: &endless{}, MaxPages: int64(b.N), ProgressEvery: time.Hour})
	require.NoError(b, err)
	seeds := make([]string, 1000)
	for i := range seeds {
		seeds[i] = fmt.Sprintf("http://h%d.example/seed", i)
	}
	_, err = c.Seed(b.Context(), seeds...)
	require.NoError(b, err)
	b.ReportAllocs()
	b.ResetTimer()
	require.NoError(b, c.Run(b.Context()))
	b.ReportMetric(float64(c.Progress().Pages)/b.Elapsed().Seconds(), "pages/s")
}
