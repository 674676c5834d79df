// These tests let a site die in the middle of a crawl.

package crawler

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler/fetch"
)

// A finite crawl with a bound on probes ends, and the URLs of the site that died
// are given up.
func TestCrawlEndsThoughASiteDied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb()
		links := []string{}
		for i := range 50 {
			links = append(links, fmt.Sprintf("/%d", i))
			w.always(seed+fmt.Sprint(i), answer{class: fetch.Connect})
		}
		w.always(seed, page(links...))
		w.site("http://b.example", 20)
		start := time.Now()
		p := crawl(t, w, frontier.Options{Quarantine: frontier.Quarantine{Probes: 3}}, Options{}, seed, "http://b.example/")
		assert.EqualValues(t, 50, p.Frontier.GivenUp)
		assert.Zero(t, p.Frontier.Waiting+p.Frontier.Scheduled)
		assert.Less(t, time.Since(start), 3*time.Hour)
	})
}
