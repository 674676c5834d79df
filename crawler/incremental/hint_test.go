// This file tests what hints do to a crawl.

package incremental

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler/changefeed"
	"github.com/seed-7440039f/frontier/crawler/processing"
	"github.com/seed-7440039f/frontier/inspect"
)

// sited is a web of four pages that never change, and a sitemap that changes every day. From day 60 on
// the sitemap gives the date claim for page 0, and true dates for the others.
func sited(claim func(at time.Duration) time.Duration) *web {
	w := newWeb()
	links := []string{"/sitemap.xml"}
	for i := range 4 {
		u := fmt.Sprintf("http://a.example/%d", i)
		links = append(links, u)
		w.pages[u] = steady()
	}
	w.pages["http://a.example/"] = steady(links...)
	w.pages["http://a.example/sitemap.xml"] = func(at time.Duration, _ int, _ http.Header) answer {
		var b strings.Builder
		fmt.Fprintf(&b, `<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><!-- %s -->`, word(int(at/day)))
		for i, u := range links[1:] {
			changed := -day
			if at >= 60*day && i == 0 {
				changed = claim(at)
			}
			fmt.Fprintf(&b, "<url><loc>%s</loc><lastmod>%s</lastmod></url>", u, w.began.Add(changed).Format(time.RFC3339))
		}
		return answer{status: 200, body: b.String() + "</urlset>", header: map[string]string{"Content-Type": "application/xml"}}
	}
	return w
}

// beginSited opens a crawl of such a web that takes up what sitemaps say, with four
// fetches a day, most of them for the sitemap, and each page within 60 days.
func beginSited(t *testing.T, w *web, burst time.Duration) *crawl {
	s := schedule(4)
	s.Burst, s.MaxInterval = burst, 60*day
	x := begin(t, w, Options{Schedule: s, Weight: func(e frontier.Entry, _ frontier.History) float64 {
		if strings.HasSuffix(e.URL, ".xml") {
			return 100
		}
		return 1
	}})
	x.co.OnPage = processing.NewSitemaps(x.f, processing.SitemapOptions{Hint: processing.Claims}).Handle
	x.co.MaxRate = 1
	return x
}

// A page that its sitemap says has changed is fetched at once.
func TestClaimsOfSitemaps(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		w := sited(func(time.Duration) time.Duration { return 60 * day })
		x := beginSited(t, w, 1000*day)
		x.run(120*day, "http://a.example/")
		after := func(u string, than time.Duration) time.Duration {
			for _, at := range w.times(u) {
				if at >= than {
					return at
				}
			}
			return 1 << 62
		}
		said := after("http://a.example/sitemap.xml", 60*day)
		assert.Less(t, after("http://a.example/0", said)-said, time.Minute)
	})
}

// Whatever a sitemap claims, the crawl fetches no more than its budget allows, and each page
// eventually.
func TestFalseClaimsOfSitemaps(t *testing.T) {
	for name, claim := range map[string]func(at time.Duration) time.Duration{
		"now":         func(at time.Duration) time.Duration { return at },
		"tomorrow":    func(at time.Duration) time.Duration { return at + 20*time.Hour },
		"the future":  func(at time.Duration) time.Duration { return at + 300*day },
		"long ago":    func(time.Duration) time.Duration { return -9000 * day },
		"before time": func(time.Duration) time.Duration { return -60 * 365 * day },
	} {
		t.Run(name, func(t *testing.T) {
			inVirtualTime(t, func(t *testing.T) {
				w := sited(claim)
				x := beginSited(t, w, time.Hour)
				x.run(200*day, "http://a.example/")
				report := x.r.Report()
				assert.Less(t, report.Visits, int64(1.25*4*200+6+10), "%v", report)
				for i := range 4 {
					at := w.times(fmt.Sprintf("http://a.example/%d", i))
					assert.Greater(t, at[len(at)-1], 60*day, "page %d", i)
				}
			})
		})
	}
}

// A list of changed URLs brings forward what is known, admits what is not, and names
// bad lines.
func TestChanges(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		w := sited(func(time.Duration) time.Duration { return -day })
		x := beginSited(t, w, time.Hour)
		x.run(50*day, "http://a.example/")
		due := func(u string) time.Duration {
			s, err := inspect.New(x.f).Status(t.Context(), frontier.Entry{URL: u})
			require.NoError(t, err)
			require.Equal(t, inspect.URLScheduled, s.State, u)
			return s.Until.Sub(w.began)
		}
		time.Sleep(time.Hour) // none is out
		now := time.Since(w.began)
		others := []time.Duration{due("http://a.example/1"), due("http://a.example/2")}
		list := "http://a.example/0\n\n HTTP://b.example:80/new \nno url\n" + strings.Repeat("x", 10) + "\n"
		r, err := changefeed.Add(t.Context(), x.f, strings.NewReader(list), changefeed.Options{})
		require.NoError(t, err)
		assert.Equal(t, []int64{1, 1, 2}, []int64{r.Known, r.New, r.Wrong})
		assert.Equal(t, []int{4, 5}, []int{r.Faults[0].Line, r.Faults[1].Line})
		synctest.Wait()
		s, err := inspect.New(x.f).Status(t.Context(), frontier.Entry{URL: "http://a.example/0"})
		require.NoError(t, err)
		if s.State == inspect.URLScheduled {
			assert.LessOrEqual(t, s.Until.Sub(w.began), now+time.Second)
		}
		s, err = inspect.New(x.f).Status(t.Context(), frontier.Entry{URL: "http://b.example/new"})
		require.NoError(t, err)
		assert.Equal(t, inspect.URLWaiting, s.State)
		assert.Equal(t, others, []time.Duration{due("http://a.example/1"), due("http://a.example/2")})
	})
}
