// This file tests what 403 and 401 mean.

package crawler

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
)

// firewall is a site of n pages that refuses all for a while, once it was asked often.
func firewall(n, patience int, status int, lasts time.Duration) *fakeWeb {
	w := newWeb()
	asked := 0
	var began time.Time
	guarded := func(a answer) func(int) answer {
		return func(int) answer {
			w.mu.Lock()
			defer w.mu.Unlock()
			if asked++; asked == patience {
				began = time.Now()
			}
			if asked >= patience && time.Since(began) < lasts {
				return answer{status: status}
			}
			return a
		}
	}
	var links []string
	for i := range n {
		link := fmt.Sprintf("/p/%d", i)
		links = append(links, link)
		w.pages["http://a.example"+link] = guarded(page())
	}
	w.pages[seed] = guarded(page(links...))
	return w
}

// A site that has had enough for a while costs no page: it is asked more slowly, and for
// each again.
func TestAHostThatHasHadEnoughLosesNoPage(t *testing.T) {
	for _, status := range []int{http.StatusForbidden, http.StatusUnauthorized, 402, 405, 418, 444, 430} {
		for _, lasts := range []time.Duration{5 * time.Second, 10 * time.Minute, 10 * time.Hour} {
			t.Run(fmt.Sprint(status, " for ", lasts), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := firewall(40, 20, status, lasts)
					p := crawl(t, w, frontier.Options{}, Options{}, seed)
					assert.EqualValues(t, 41, p.Pages)
					assert.Zero(t, p.Refused)
					assert.Zero(t, p.Frontier.GivenUp)
					w.checkPolite(t, fixedOwed)
					refused := 0
					for _, r := range w.requests("") {
						if r.status == status {
							refused++
						}
					}
					assert.Less(t, refused, 40, "it is not hammered")
				})
			})
		}
	}
}

// A page that a site never gave is forbidden: it is requested once, and costs no time.
func TestForbiddenFoldersAreAskedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb()
		var links []string
		for i := range 30 {
			links = append(links, fmt.Sprintf("/members/%d", i), fmt.Sprintf("/p/%d", i), fmt.Sprintf("/p/%d?action=edit", i))
			w.always(fmt.Sprintf("http://a.example/members/%d", i), answer{status: 403})
			w.always(fmt.Sprintf("http://a.example/p/%d", i), page())
			w.always(fmt.Sprintf("http://a.example/p/%d?action=edit", i), answer{status: 401})
		}
		w.always(seed, page(links...))
		p := crawl(t, w, frontier.Options{}, Options{}, seed)
		assert.EqualValues(t, 31, p.Pages)
		assert.EqualValues(t, 60, p.Refused)
		assert.Zero(t, p.Failed)
		for u, n := range w.asks {
			assert.Equal(t, 1, n, u)
		}
	})
}

// A page that is refused again while others of its folder are given is given up.
func TestAForbiddenPageAmongOthersIsAskedTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb()
		var links []string
		for i := range 200 {
			links = append(links, fmt.Sprintf("/p/%d", i))
			a := page()
			if i%10 == 5 {
				a = answer{status: 403}
			}
			w.always("http://a.example"+links[i], a)
		}
		w.always(seed, page(links...))
		p := crawl(t, w, frontier.Options{}, Options{}, seed)
		assert.EqualValues(t, 181, p.Pages)
		assert.EqualValues(t, 20, p.Refused)
		assert.Zero(t, p.Frontier.GivenUp)
		for u, n := range w.asks {
			assert.LessOrEqual(t, n, 3, u)
		}
	})
}

// A crawl that is stopped while a site limits it, and continues in another process, loses nothing
// either.
func TestHavingHadEnoughOutlivesTheProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := firewall(40, 20, 403, 3*time.Hour)
		f := openFrontier(t, frontier.Options{})
		c := newCrawler(t, f, w, Options{})
		_, err := c.Seed(t.Context(), seed)
		require.NoError(t, err)
		ctx, stop := context.WithTimeout(t.Context(), time.Hour)
		defer stop()
		require.ErrorIs(t, c.Run(ctx), context.DeadlineExceeded)
		again := newCrawler(t, f, w, Options{})
		require.NoError(t, again.Run(t.Context()))
		assert.EqualValues(t, 41, c.Progress().Pages+again.Progress().Pages)
		assert.Zero(t, c.Progress().Refused+again.Progress().Refused)
	})
}
