// This file tests the deletion of what hosts have in certain crawls.

package control

import (
	"testing"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/test/harness"
	"github.com/stretchr/testify/require"
)

func TestDeleteWithinACrawl(t *testing.T) {
	harness.InBothWorlds(t, frontier.Options{}, func(t *testing.T, w *harness.World) {
		ctx := t.Context()
		var es []frontier.Entry
		for crawl := range uint32(3) {
			for _, host := range []string{"a.example", "b.example", "b.test"} {
				es = append(es,
					frontier.Entry{URL: "http://" + host + "/1", Crawl: crawl},
					frontier.Entry{URL: "http://" + host + "/2", Crawl: crawl, NotBefore: w.Clock.Now().Add(time.Hour)})
			}
		}
		_, err := w.F.Add(ctx, es...)
		require.NoError(t, err)
		left := func() (urls []string) {
			for u, err := range inspect.New(w.F).Scan(ctx, scope.All()) {
				require.NoError(t, err)
				urls = append(urls, u.Entry.URL+" "+string(rune('0'+u.Entry.Crawl)))
			}
			return urls
		}
		require.Len(t, left(), 18)
		n, err := w.F.DeleteWith(ctx, frontier.DeleteOptions{Scope: scope.Host("a.example"), Crawls: []uint32{1}})
		require.NoError(t, err)
		require.EqualValues(t, 2, n)
		require.Len(t, left(), 16)
		require.NotContains(t, left(), "http://a.example/1 1")
		require.Contains(t, left(), "http://a.example/1 0")
		if w.Machine != nil {
			w = w.Killed()
			require.Len(t, left(), 16)
		}
		n, err = w.F.DeleteWith(ctx, frontier.DeleteOptions{Scope: scope.Domain("example"), Crawls: []uint32{0, 2}})
		require.NoError(t, err)
		require.EqualValues(t, 8, n)
		require.ElementsMatch(t, []string{
			"http://b.example/1 1", "http://b.example/2 1",
			"http://b.test/1 0", "http://b.test/2 0", "http://b.test/1 1", "http://b.test/2 1", "http://b.test/1 2", "http://b.test/2 2",
		}, left())
		_, err = w.F.DeleteWith(ctx, frontier.DeleteOptions{Scope: scope.Host("b.test"), Crawls: []uint32{}})
		require.ErrorContains(t, err, "Crawls is empty")
		_, err = w.F.DeleteWith(ctx, frontier.DeleteOptions{Scope: scope.Crawl(1), Crawls: []uint32{1}})
		require.EqualError(t, err, "frontier: delete: the scope is crawl:1, and there are Crawls; want one of them")
		n, err = w.F.DeleteWith(ctx, frontier.DeleteOptions{})
		require.NoError(t, err)
		require.LessOrEqual(t, n, int64(8))
		require.Empty(t, left())
	})
}
