package partition

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
)

func entries(urls ...string) (all []frontier.Entry) {
	for _, u := range urls {
		all = append(all, frontier.Entry{URL: u})
	}
	return all
}

// Each node has its share, and when one leaves only its hosts move.
func TestNodes(t *testing.T) {
	const hosts = 30_000
	three, two := NewNodes("c", "a", "b", "a"), NewNodes("b", "a")
	assert.Equal(t, []string{"a", "b", "c"}, three.Names())
	counts := map[string]int{}
	for i := range hosts {
		host := fmt.Sprintf("host%d.example", i)
		owner := three.Owner(host)
		counts[owner]++
		if owner != "c" {
			assert.Equal(t, owner, two.Owner(host))
		}
	}
	for _, name := range three.Names() {
		assert.InDelta(t, hosts/3, counts[name], 400)
	}
	assert.Empty(t, NewNodes().Owner("a.example"))
}

func TestByDomain(t *testing.T) {
	s := ByDomain(NewNodes("a", "b", "c", "d"))
	for i := range 50 {
		domain := fmt.Sprintf("site%d.co.uk", i)
		assert.Equal(t, s.Owner(domain), s.Owner("www."+domain))
		assert.Equal(t, s.Owner(domain), s.Owner("a.b."+domain))
	}
	assert.NotEmpty(t, s.Owner("192.0.2.1"))
}

func TestOneNodeKeepsAll(t *testing.T) {
	r, err := New(Options{})
	require.NoError(t, err)
	all := entries("http://a.example/", "nonsense")
	kept, err := r.Keep(t.Context(), all)
	require.NoError(t, err)
	assert.Equal(t, all, kept)
}

// owners is a Splitter by table.
type owners map[string]string

func (o owners) Owner(host string) string { return o[host] }

func TestKeep(t *testing.T) {
	var mu sync.Mutex
	got := map[string][]string{}
	var fails error
	r, err := New(Options{
		Self: "me", Splitter: owners{"a.example": "me", "b.example": "you", "c.example": "she"}, Remember: 4,
		Send: func(_ context.Context, node string, es []frontier.Entry) error {
			mu.Lock()
			defer mu.Unlock()
			if node == "she" && fails != nil {
				return fails
			}
			for _, e := range es {
				got[node] = append(got[node], e.URL)
			}
			return nil
		},
	})
	require.NoError(t, err)
	fails = errors.New("down")
	links := entries("http://a.example/1", "http://b.example/1", "nonsense", "http://c.example/1", "http://a.example/2")
	_, err = r.Keep(t.Context(), links)
	require.ErrorIs(t, err, fails)
	assert.ErrorContains(t, err, "send to she")
	fails = nil
	kept, err := r.Keep(t.Context(), links)
	require.NoError(t, err)
	assert.Equal(t, entries("http://a.example/1", "nonsense", "http://a.example/2"), kept, "what is no URL the frontier will refuse")
	want := map[string][]string{"you": {"http://b.example/1"}, "she": {"http://c.example/1"}}
	assert.Equal(t, want, got, "what came through is not sent again")

	links[1].Force, links[3].Crawl = true, 7
	_, err = r.Keep(t.Context(), links)
	require.NoError(t, err)
	assert.Len(t, got["you"], 2, "what is forced is")
	assert.Len(t, got["she"], 2, "and what is of another crawl")

	for i := range 9 {
		_, err = r.Keep(t.Context(), entries(fmt.Sprint("http://b.example/x", i)))
		require.NoError(t, err)
		assert.LessOrEqual(t, len(r.new)+len(r.old), 4)
	}
	_, err = r.Keep(t.Context(), entries("http://c.example/1"))
	require.NoError(t, err)
	assert.Len(t, got["she"], 3, "and what is forgotten")
}

func TestOptions(t *testing.T) {
	_, err := New(Options{Splitter: NewNodes("a"), Remember: -1})
	assert.ErrorContains(t, err, "a Splitter without Send\nRemember is -1; want >= 0")
}

func TestQuiet(t *testing.T) {
	var q Quiet
	idle := frontier.Stats{Added: 3, HandedOut: 5}
	assert.False(t, q.Look(idle, idle), "the first look proves nothing")
	assert.False(t, q.Look(frontier.Stats{Added: 3, HandedOut: 6}, idle), "something was done in between")
	assert.False(t, q.Look(frontier.Stats{Added: 3, HandedOut: 6, Leased: 1}, idle))
	assert.False(t, q.Look(frontier.Stats{Added: 3, HandedOut: 6}, idle), "it was busy before")
	assert.True(t, q.Look(frontier.Stats{Added: 3, HandedOut: 6}, idle))
}
