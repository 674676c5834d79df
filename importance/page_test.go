package importance

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler"
	"github.com/seed-7440039f/frontier/crawler/fetch"
	"github.com/seed-7440039f/frontier/crawler/link"
)

// pageWith returns a seed's answer with links, and with an entry that comes from no link.
func pageWith(status int, links ...link.Link) *crawler.Page {
	p := &crawler.Page{
		Lease:  frontier.Lease{Entry: frontier.Entry{URL: "http://a.example/"}, Host: "a.example"},
		Result: &fetch.Result{URL: "http://a.example/", Status: status},
		Doc:    &link.Page{Links: links},
	}
	for _, l := range links {
		p.Add = append(p.Add, frontier.Entry{URL: l.URL, Depth: 1})
	}
	p.Add = append(p.Add, frontier.Entry{URL: "http://a.example/of-a-sitemap", Depth: 1})
	return p
}

func weightsOf(p *crawler.Page) (w []float64) {
	for _, e := range p.Add {
		w = append(w, e.Weight)
	}
	return w
}

// Links that the page does not endorse get nothing, and entries from no link stay as they are.
func TestVisitedWeighsLinks(t *testing.T) {
	links := []link.Link{{URL: "http://a.example/1"}, {URL: "http://b.example/", NoFollow: true}, {URL: "http://c.example/"}}
	p := pageWith(200, links...)
	estimator(t, Options{Score: Trust}).Visited(p)
	assert.Equal(t, []float64{short(0.425), nothing, short(0.425), 0}, weightsOf(p))

	p = pageWith(200, links...)
	x := estimator(t, Options{})
	x.Visited(p)
	assert.Equal(t, []float64{0, nothing, 0, 0}, weightsOf(p))
	for range 100 {
		assert.Zero(t, x.Found(p.Add[1]), "it counts as no link")
	}

	p = pageWith(200, links...)
	x = estimator(t, Options{Relevance: func(_ *crawler.Page, l *link.Link) float64 { return float64(len(l.URL)-16) * 16 }})
	x.Visited(p)
	assert.Equal(t, []float64{32, 16, 16, 0}, weightsOf(p))
	assert.Equal(t, 8, x.Priority(p.Add[0], frontier.History{}))
}

// The target of a redirect gets what its only link would get; a redirect says nothing of its host.
func TestVisitedRedirects(t *testing.T) {
	x := estimator(t, Options{Score: Trust})
	p := pageWith(301)
	p.Doc = nil
	x.Visited(p)
	assert.Equal(t, []float64{short(0.85)}, weightsOf(p))
	assert.Zero(t, x.Explain(p.Lease.Entry).Pages)
}

// Pages that are gone, errors and copies are not useful.
func TestUseful(t *testing.T) {
	assert.True(t, Useful(pageWith(200)))
	assert.False(t, Useful(pageWith(403)))
	p := pageWith(200)
	p.Duplicate = true
	assert.False(t, Useful(p))
	p = pageWith(200)
	p.Outcome.Result = frontier.Gone
	assert.False(t, Useful(p))

	x := estimator(t, Options{Useful: func(*crawler.Page) bool { return false }})
	standing, moved := 0, false
	for range 30 {
		if s, m := x.Visited(pageWith(200)); m {
			standing, moved = s, true
		}
	}
	assert.True(t, moved)
	assert.Equal(t, -4, standing)
}

// Links to pages that a host never had make it sink by two levels, however many there are: anyone can set such links.
func TestBrokenLinksCountHalf(t *testing.T) {
	sunk := func(visits, status int, result frontier.Result) (levels int) {
		x := estimator(t, Options{})
		for range 1000 {
			p := pageWith(status)
			p.Outcome.Result, p.Lease.History.Visits = result, visits
			if standing, moved := x.Visited(p); moved {
				levels = -standing
			}
		}
		assert.Equal(t, levels, x.Explain(pageWith(200).Lease.Entry).Sunk)
		return levels
	}
	assert.Equal(t, 2, sunk(0, 404, frontier.Gone))
	assert.Equal(t, 2, sunk(0, 410, frontier.Gone))
	assert.Equal(t, 7, sunk(1, 404, frontier.Gone), "they were there")
	assert.Equal(t, 7, sunk(0, 200, frontier.Gone), "a host that pretends to have every page")
	assert.Equal(t, 7, sunk(0, 403, frontier.Visited))
}
