// This file tests redirects: each hop is a URL of its own.

package crawler

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"

	"github.com/seed-7440039f/frontier"
)

func TestRedirectsAreFollowedThroughTheFrontier(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb()
		w.always("http://a.example/", answer{status: 301, location: "http://b.example/x/../y#z"})
		w.always("http://b.example/y", page("/deeper"))
		w.always("http://b.example/deeper", page())
		for i := range 30 { // a chain without end
			w.always(fmt.Sprintf("http://c.example/%d", i), answer{status: 307, location: fmt.Sprintf("/%d", i+1)})
		}
		depth := map[string]int{}
		p := crawl(t, w, frontier.Options{}, Options{
			Workers: 1, MaxRedirects: 5, Scope: Scope{MaxDepth: 1},
			OnPage: func(_ context.Context, p *Page) error { depth[p.URL] = p.Lease.Entry.Depth; return nil },
		}, "http://a.example/", "http://c.example/0")
		assert.Equal(t, map[string]int{
			"http://a.example/": 0, "http://b.example/y": 0, "http://b.example/deeper": 1,
			"http://c.example/0": 0, "http://c.example/1": 0, "http://c.example/2": 0,
			"http://c.example/3": 0, "http://c.example/4": 0, "http://c.example/5": 0,
		}, depth)
		assert.EqualValues(t, 7, p.Redirects)
		w.checkPolite(t, fixedOwed)
	})
}

// What browsers show is read: the choices of a 300, and redirects that lead nowhere.
func TestLinksOfRedirectsWithoutATarget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb()
		list := func(status int, location, link string) answer {
			return answer{status: status, location: location, body: "<a href=" + link + ">x</a>"}
		}
		w.always("http://a.example/", page("/300", "/301", "/302", "/304", "/moved"))
		w.always("http://a.example/300", list(300, "/preferred", "/choice"))
		w.always("http://a.example/301", list(301, "", "/from-301"))
		w.always("http://a.example/302", list(302, "mailto:x@a.example", "/from-302"))
		w.always("http://a.example/moved", list(302, "/there", "/no"))
		for _, u := range []string{"/preferred", "/choice", "/from-301", "/from-302", "/there", "/no"} {
			w.always("http://a.example"+u, page())
		}
		p := crawl(t, w, frontier.Options{}, Options{}, "http://a.example/")
		assert.EqualValues(t, 6, p.Pages)
		assert.NotContains(t, w.urls(), "http://a.example/no")
	})
}

// Bytes of Location that are no UTF-8 are asked for as they came.
func TestRedirectInLatin1(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb()
		w.always("http://a.example/", answer{status: 301, location: "/caf\xe9"})
		w.always("http://a.example/caf%E9", page())
		p := crawl(t, w, frontier.Options{}, Options{}, "http://a.example/")
		assert.EqualValues(t, 1, p.Pages)
	})
}

func TestRedirectsThatLeadNowhereAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb()
		to := func(from, target string) { w.always("http://a.example"+from, answer{status: 302, location: target}) }
		to("/self", "/self")
		to("/1", "/2")
		to("/2", "/3")
		to("/3", "/1")
		for i := range 5 {
			to(fmt.Sprintf("/long%d", i), fmt.Sprintf("/long%d", i+1))
		}
		to("/short0", "/short1")
		w.always("http://a.example/short1", page())
		p := crawl(t, w, frontier.Options{}, Options{MaxRedirects: 3}, "http://a.example/self", "http://a.example/1", "http://a.example/long0", "http://a.example/short0")
		assert.EqualValues(t, 3, p.Loops, "self, the one of three, and the one that is too long")
		assert.EqualValues(t, 1+3+4+1, p.Redirects)
		assert.EqualValues(t, 1, p.Pages)
		w.checkPolite(t, fixedOwed)
	})
}
