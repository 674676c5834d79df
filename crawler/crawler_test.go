package crawler

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler/fetch"
	"github.com/seed-7440039f/frontier/crawler/filter"
	"github.com/seed-7440039f/frontier/selector"
)

func TestSeedReportsBadURLsByIndex(t *testing.T) {
	f := openFrontier(t, frontier.Options{})
	c := newCrawler(t, f, newWeb(), Options{Scope: Scope{Hosts: []string{"a.example"}}})
	n, err := c.Seed(t.Context(), "HTTP://A.example:80/x/../", "mailto:x@a.example", "http://a.example/", "http://b.example/", "")
	assert.Equal(t, 1, n)
	var bad []int
	for _, e := range frontier.EntryErrors(err) {
		bad = append(bad, e.Index)
	}
	assert.Equal(t, []int{1, 3, 4}, bad)
	assert.EqualValues(t, 1, f.Stats().Waiting)
}

func TestOptionsReportEveryFault(t *testing.T) {
	f := openFrontier(t, frontier.Options{})
	_, err := New(f, Options{Workers: -1, MaxPages: -2, Grace: -3, Scope: Scope{MaxDepth: -4}})
	for _, want := range []string{"Workers is -1; want 1 to 65536", "MaxPages is -2", "Grace is -3ns", "Scope.MaxDepth is -4"} {
		assert.ErrorContains(t, err, want)
	}
	_, err = New(f, Options{UserAgent: "a\nb"})
	assert.ErrorContains(t, err, "UserAgent")
	_, err = New(nil, Options{})
	assert.ErrorContains(t, err, "no frontier")
}

func TestRunTwiceAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := openFrontier(t, frontier.Options{KeepOpen: true})
		c := newCrawler(t, f, newWeb(), Options{})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- c.Run(ctx) }()
		synctest.Wait()
		assert.ErrorIs(t, c.Run(ctx), ErrRunning)
		cancel()
		assert.ErrorIs(t, <-done, context.Canceled)
	})
}

func TestRunEndsWhenTheFrontierIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := openFrontier(t, frontier.Options{KeepOpen: true})
		c := newCrawler(t, f, newWeb(), Options{})
		done := make(chan error)
		go func() { done <- c.Run(t.Context()) }()
		synctest.Wait()
		require.NoError(t, f.Drain(t.Context()))
		assert.NoError(t, <-done)
	})
}

func TestRunReturnsTheFrontiersError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := openFrontier(t, frontier.Options{Selector: selector.Func(func([]int) int { return 99 })})
		c := newCrawler(t, f, newWeb(), Options{})
		_, err := c.Seed(t.Context(), seed)
		require.NoError(t, err)
		var bad *frontier.SelectorError
		assert.ErrorAs(t, c.Run(t.Context()), &bad)
	})
}

func TestProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb()
		w.site("http://a.example", 9)
		var logged bytes.Buffer
		var reports []Progress
		var mu sync.Mutex
		done := map[string]frontier.Result{}
		crawl(t, w, frontier.Options{}, Options{
			OnProgress: func(p Progress) { reports = append(reports, p) },
			OnDone: func(l frontier.Lease, o frontier.Outcome) {
				mu.Lock()
				defer mu.Unlock()
				if o.Result != frontier.Requeue {
					done[l.Entry.URL] = o.Result
				}
			},
			Logger: slog.New(slog.NewTextHandler(&logged, nil)),
		}, seed)
		require.Len(t, reports, 3, "after 5 s, 10 s and at the end")
		assert.Equal(t, 5*time.Second, reports[0].Elapsed)
		assert.EqualValues(t, 4, reports[0].Pages)
		assert.EqualValues(t, 11, reports[2].Pages)
		assert.Zero(t, reports[2].Busy)
		assert.Contains(t, logged.String(), `msg="crawl ended"`)
		assert.Len(t, done, 11)
	})
}

func TestBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(2)
		ctx, cancel := context.WithCancel(t.Context())
		require.True(t, b.acquire(ctx))
		require.True(t, b.acquire(ctx))
		got := make(chan bool, 2)
		go func() { got <- b.acquire(ctx) }()
		synctest.Wait()
		assert.Empty(t, got)
		b.release()
		assert.True(t, <-got)
		go func() { got <- b.acquire(ctx) }()
		b.spend()
		synctest.Wait()
		assert.Empty(t, got, "one ticket is still out")
		b.spend()
		assert.False(t, <-got)
		cancel()
		assert.False(t, newBudget(0).acquire(ctx))
		assert.False(t, b.acquire(ctx))
	})
}

func TestSiteOf(t *testing.T) {
	for in, want := range map[string]string{
		"http://A.example/x":             "http://a.example",
		"https://a.example:443?x":        "https://a.example",
		"http://a.example:443#x":         "http://a.example:443",
		"http://user:pw@a.example:81/@y": "http://a.example:81",
		"http://[::1]:80/":               "http://[::1]",
		"HTTP://[::1]:8080/":             "http://[::1]:8080",
		"ftp://a.example:21/":            "ftp://a.example", "mailto:x": "", "": "", "http://": "",
	} {
		assert.Equal(t, want, siteOf(in), in)
	}
	assert.Equal(t, "[::1]", hostOf("http://[::1]:81"))
	assert.Equal(t, "a.example", hostOf("http://a.example:81"))
	assert.True(t, isRobots("http://a.example/robots.txt"))
	assert.False(t, isRobots("http://a.example/x/robots.txt"))
}

func TestNilParts(t *testing.T) {
	f := openFrontier(t, frontier.Options{})
	for want, o := range map[string]Options{
		"Filters[1] is nil": {Filters: []Filter{FilterFunc(func(frontier.Entry) bool { return true }), nil}}, "Rules[0] is nil": {Rules: []filter.Filter{nil}},
		"Responses[0] is nil": {Responses: []filter.Response{nil}}, "Protocols[ftp] is nil": {Protocols: map[string]Fetcher{"ftp": (*fetch.Fetcher)(nil)}},
		"Fetcher is a nil pointer": {Fetcher: (*fetch.Fetcher)(nil)},
	} {
		_, err := New(f, o)
		assert.ErrorContains(t, err, want)
	}
	_, err := New((*frontier.Frontier)(nil), Options{})
	assert.ErrorContains(t, err, "crawler: no frontier")
}

func TestMeta(t *testing.T) {
	for _, m := range []meta{{}, {etag: `W/"x"`}, {chain: []uint64{1, 1 << 63}}, {chain: make([]uint64, 300), etag: `"x"`}, {note: []byte("n")}, {via: "http://a.example/"}, {need: 1}, {need: 3, via: "y", etag: `"x"`}, {need: 2, chain: []uint64{1}}, {via: "x", chain: []uint64{1}, etag: `"x"`, note: []byte("n")}, {chain: []uint64{7}, etag: `"x"`, note: []byte{0xc1, 0}}} {
		got, own := metaOf(frontier.Entry{Meta: m.bytes()})
		assert.Equal(t, m, got)
		assert.True(t, own)
	}
	for raw, own := range map[string]bool{
		"": true, "user's own": false, "\xc1": true, "\xc1\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff": true, "\xc1\x02abcdefgh": true, "\xc2": true, "\xc2\x05abcd": true, "\xc3": true, "\xc3\x01": true, "\xc3\x00\xc1\x00": true, "\xc3\x01\xc3\x01": true, "\xc4": true, "\xc5": false,
		"\xc1\x00\x81\x02" + strings.Repeat("x", maxETag+1): true, "\xc1\x00\x7fx": true,
	} {
		got, is := metaOf(frontier.Entry{Meta: []byte(raw)})
		assert.Equal(t, meta{}, got, "%q", raw)
		assert.Equal(t, own, is, "%q", raw)
	}
}

func TestValidETag(t *testing.T) {
	for in, ok := range map[string]bool{
		`"x"`: true, `W/"x"`: true, `""`: true, `"\x80"`: true, "x": false, `"`: false, `W/`: false, `w/"x"`: false, `"a b"`: false, `"a"b"`: false,
		"\"a\nb\"": false, `"` + strings.Repeat("x", 400) + `"`: false, "": false,
	} {
		assert.Equal(t, ok, validETag(in) == in && in != "", "%q", in)
	}
}
