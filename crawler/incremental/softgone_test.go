// This file tests pages that are gone with status 200.

package incremental

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// vanishing is a host of n pages that say "not found", with status 200, from one day to
// another.
func vanishing(n int, from, to time.Duration) *web {
	w := newWeb()
	var links []string
	for i := range n {
		link := fmt.Sprintf("http://a.example/%d", i)
		links = append(links, link)
		w.pages[link] = func(at time.Duration, _ int, h http.Header) answer {
			if at < from || at > to {
				return text("the story of %s and its end", word(i+1))
			}
			if h.Get("If-None-Match") == `"sorry"` {
				return answer{status: 304}
			}
			a := text("sorry there is no such page here, number %d", i)
			a.header = map[string]string{"ETag": `"sorry"`}
			return a
		}
	}
	w.pages["http://a.example/"] = steady(links...)
	return w
}

// Pages that became the same text are gone, once there are enough of them, and are put
// away as others are; when they are back they are pages like others.
func TestPagesThatBecomeOneTextAreGone(t *testing.T) {
	for _, x := range []struct {
		pages int
		gone  bool
	}{{12, true}, {4, false}} {
		t.Run(fmt.Sprint(x.pages), func(t *testing.T) {
			inVirtualTime(t, func(t *testing.T) {
				w := vanishing(x.pages, 20*day, 150*day)
				c := begin(t, w, Options{Schedule: schedule(30)})
				c.run(300*day, "http://a.example/")
				told := map[string]bool{}
				for _, u := range c.gone {
					told[u] = true
				}
				if !x.gone {
					require.Empty(t, told, "so few may be alike by chance")
					return
				}
				assert.Len(t, told, x.pages)
				for i := range x.pages {
					u := fmt.Sprintf("http://a.example/%d", i)
					away, back := 0, 0
					for _, at := range w.times(u) {
						switch {
						case at > 40*day && at < 150*day:
							away++
						case at > 150*day:
							back++
						}
					}
					assert.Less(t, away, 6, u)
					assert.NotZero(t, back, u)
				}
				assert.EqualValues(t, x.pages+1, c.r.Report().Schedule.Pages, "all are back")
			})
		})
	}
}

// A host that is being repaired for hours loses no page.
func TestARepairCostsNoPage(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		w := vanishing(12, 20*day, 20*day+10*time.Hour)
		c := begin(t, w, Options{Schedule: schedule(30)})
		c.run(40*day, "http://a.example/")
		assert.Empty(t, c.gone)
		assert.EqualValues(t, 13, c.r.Report().Schedule.Pages)
	})
}
