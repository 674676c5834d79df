package conformance_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/scope"
)

// linked opens a frontier with a page of crawl 7, which is leased.
func linked(t *testing.T) (*frontier.Frontier, frontier.Lease) {
	f, err := frontier.Open(t.Context(), frontier.Options{Delay: frontier.FixedDelay(0)})
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, f.Check())
		assert.NoError(t, f.Close())
	})
	_, err = f.Add(t.Context(), frontier.Entry{URL: "http://a.example/", Crawl: 7, Depth: 2})
	require.NoError(t, err)
	l, err := f.Next(t.Context())
	require.NoError(t, err)
	return f, l
}

// A link belongs to the crawl of its page, one link deeper, unless it says otherwise.
func TestLinksInherit(t *testing.T) {
	links := []frontier.Entry{
		{URL: "http://b.example/1"},
		{URL: "http://b.example/2", Depth: 9},
		{URL: "http://b.example/3", Crawl: 8},
		{URL: "http://b.example/4", AsIs: true},
		{URL: "http://b.example/5", Depth: 1, Crawl: 7, AsIs: true},
	}
	for name, end := range map[string]func(*frontier.Frontier, frontier.Lease, frontier.Outcome) error{
		"Done": func(f *frontier.Frontier, l frontier.Lease, o frontier.Outcome) error { return f.Done(l, o) },
		"DoneAll": func(f *frontier.Frontier, l frontier.Lease, o frontier.Outcome) error {
			return f.DoneAll(t.Context(), []frontier.End{{Lease: l, Outcome: o}})[0].Err
		},
	} {
		t.Run(name, func(t *testing.T) {
			f, l := linked(t)
			require.NoError(t, end(f, l, frontier.Outcome{Add: links}))
			type at struct {
				crawl uint32
				depth int
			}
			got := map[string]at{}
			for range links {
				l, err := f.Next(t.Context())
				require.NoError(t, err)
				got[l.Entry.URL] = at{l.Entry.Crawl, l.Entry.Depth}
				require.NoError(t, f.Done(l, frontier.Outcome{}))
			}
			assert.Equal(t, map[string]at{
				links[0].URL: {7, 3}, links[1].URL: {7, 9}, links[2].URL: {8, 3}, links[3].URL: {0, 0}, links[4].URL: {7, 1},
			}, got)
			assert.Equal(t, frontier.Entry{URL: "http://b.example/1"}, links[0], "what the program passes is not changed")
		})
	}
}

// A slot without a URL has nothing that a link could inherit.
func TestLinksOfAContact(t *testing.T) {
	f, l := linked(t)
	l, err := f.HandBack(l)
	require.NoError(t, err)
	require.NoError(t, f.Done(l, frontier.Outcome{Add: []frontier.Entry{{URL: "http://b.example/1"}}}))
	all, err := f.Take(t.Context(), frontier.TakeOptions{Host: "b.example"})
	require.NoError(t, err)
	assert.Equal(t, frontier.Entry{URL: "http://b.example/1"}, all[0].Entry)
	require.NoError(t, f.Done(all[0], frontier.Outcome{}))
}

// The limits of a crawl reach the links of its pages, as the worker of the README adds them.
func TestACrawlsLimitsReachItsLinks(t *testing.T) {
	f, l := linked(t)
	require.NoError(t, f.UpdateRule(scope.Crawl(7), func(r *frontier.Rule) { r.Limits.Depth = 4 }))
	require.NoError(t, f.Done(l, frontier.Outcome{Result: frontier.Requeue}))
	pages := map[uint32]int{}
	require.NoError(t, f.Work(t.Context(), 2, func(_ context.Context, l frontier.Lease) (frontier.Outcome, error) {
		pages[l.Entry.Crawl]++
		return frontier.Outcome{Add: []frontier.Entry{{URL: l.Entry.URL + "0/"}, {URL: l.Entry.URL + "1/"}}}, nil
	}))
	assert.Equal(t, map[uint32]int{7: 1 + 2 + 4}, pages)
}

// A page that was under way when its crawl was forgotten does not make the crawl anew.
func TestLinksOfAForgottenCrawlAreRefused(t *testing.T) {
	for name, again := range map[string]bool{"forgotten": false, "begun anew": true} {
		t.Run(name, func(t *testing.T) {
			f, l := linked(t)
			_, err := f.DeleteWith(t.Context(), frontier.DeleteOptions{Crawls: []uint32{7}, Forget: true})
			require.NoError(t, err)
			if again {
				_, err = f.Add(t.Context(), frontier.Entry{URL: "http://c.example/", Crawl: 7})
				require.NoError(t, err)
			}
			links := []frontier.Entry{{URL: "http://b.example/1"}, {URL: "http://b.example/2", Crawl: 8}, {URL: "http://b.example/3", Crawl: 7, AsIs: true}}
			refused, err := f.DoneContext(t.Context(), l, frontier.Outcome{Add: links})
			require.NoError(t, err)
			require.Len(t, refused, 2)
			assert.Equal(t, []int{0, 2}, []int{refused[0].Index, refused[1].Index})
			assert.Equal(t, links[0].URL, refused[0].URL)
			x, _ := inspect.New(f).Crawl(7)
			assert.EqualValues(t, map[bool]int{true: 1}[again], x.Waiting)
			x, _ = inspect.New(f).Crawl(8)
			assert.EqualValues(t, 1, x.Waiting)
			if again { // what came afterwards is a page like any other
				l, err := f.Take(t.Context(), frontier.TakeOptions{Crawls: []uint32{7}})
				require.NoError(t, err)
				refused, err := f.DoneContext(t.Context(), l[0], frontier.Outcome{Add: links})
				require.NoError(t, err)
				assert.Empty(t, refused)
			}
		})
	}
}
