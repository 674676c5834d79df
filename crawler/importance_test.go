package crawler

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler/link"
	"github.com/seed-7440039f/frontier/inspect"
)

// notebook is an Importance that notes what it is asked, and gives links the weight of the length of
// their text.
type notebook struct {
	mu    sync.Mutex
	pages []string
	links map[string]string // texts by URL, of the seed's
}

func (n *notebook) Visited(p *Page) (int, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.pages = append(n.pages, p.URL)
	for i, l := range p.Links() {
		p.Add[i].Weight = float64(len(l.Text))
		if p.URL == seed {
			n.links[p.Add[i].URL] = l.Text
		}
	}
	return -2, p.URL == seed
}

// Importance gets each answer once, after OnPage, with the links that belong to its entries; the frontier
// gets the weights, and the standing of the host.
func TestImportance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb()
		w.always(seed, answer{status: 200, body: `<a href="/1" rel="ugc">one</a><a href="/no">no</a><a href="/22">twenty-two</a><a href="/1">again</a>
			<a href="/gone">g</a><a href="/fails">f</a><a href="/moved">m</a><a href="http://b.example/">out of scope</a>`})
		for _, u := range []string{"1", "22", "own"} {
			w.always(seed+u, page())
		}
		w.always(seed+"gone", answer{status: 404})
		w.always(seed+"moved", answer{status: 301, location: "/1"})
		w.pages[seed+"fails"] = func(n int) answer {
			if n == 1 {
				return answer{status: 503}
			}
			return page()
		}
		n := &notebook{links: map[string]string{}}
		weights := map[string]float64{}
		failed := false
		f := openFrontier(t, frontier.Options{})
		c := newCrawler(t, f, w, Options{Importance: n, Scope: Scope{Hosts: []string{"a.example"}}, OnPage: func(_ context.Context, p *Page) error {
			weights[p.URL] = p.Lease.Entry.Weight
			if p.URL == seed {
				p.Add = append(p.Add[:1], append([]frontier.Entry{{URL: seed + "own", Depth: 1}}, p.Add[2:]...)...)
				if !failed {
					failed = true
					return errors.New("try again")
				}
			}
			return nil
		}})
		_, err := c.Seed(t.Context(), seed)
		require.NoError(t, err)
		require.NoError(t, c.Run(t.Context()))
		assert.Equal(t, map[string]string{seed + "1": "again", seed + "22": "twenty-two", seed + "gone": "g", seed + "fails": "f", seed + "moved": "m"}, n.links)
		assert.ElementsMatch(t, []string{seed, seed + "1", seed + "22", seed + "gone", seed + "fails", seed + "moved", seed + "own"}, n.pages)
		assert.Equal(t, map[string]float64{seed: 0, seed + "1": 5, seed + "22": 10, seed + "gone": 1, seed + "fails": 1, seed + "moved": 1, seed + "own": 0}, weights)
		info, err := inspect.New(f).Host(t.Context(), "a.example")
		require.NoError(t, err)
		assert.Equal(t, -2, info.Standing)
	})
}

func TestLinksOfAPageWithoutAny(t *testing.T) {
	p := &Page{Add: []frontier.Entry{{URL: seed}}}
	for range p.Links() {
		t.Error("a link")
	}
	p.Doc = &link.Page{Links: []link.Link{{URL: seed}}}
	for i, l := range p.Links() {
		assert.Zero(t, i)
		assert.Same(t, &p.Doc.Links[0], l)
		break
	}
}
