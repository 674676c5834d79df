// This file tests revisits in whole crawls.

package incremental

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler"
)

// Pages that change are fetched more often than pages that do not; those that change
// in numbers only, or at every fetch, are not.
func TestFetchesGoWhereTheyMatter(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		w := newWeb()
		kinds := map[string]func(at time.Duration, n int, _ http.Header) answer{
			"daily":  func(at time.Duration, _ int, _ http.Header) answer { return text("edition %s", word(int(at/day))) },
			"static": steady(),
			"clock": func(at time.Duration, n int, _ http.Header) answer {
				return text("it is %v, you are visitor %d", at, n)
			},
			"spam": func(_ time.Duration, n int, _ http.Header) answer { return text("buy %s now", word(n)) },
			"ads": func(_ time.Duration, n int, _ http.Header) answer {
				return answer{status: 200, body: fmt.Sprintf("<p>news<div class=ads>buy %s</div><script>%s</script>", word(n), word(n))}
			},
		}
		var links []string
		for kind, page := range kinds {
			for i := range 100 {
				link := fmt.Sprintf("http://a.example/%s/%d", kind, i)
				links = append(links, link)
				w.pages[link] = page
			}
		}
		w.pages["http://a.example/"] = steady(sorted(links)...)
		x := begin(t, w, Options{Schedule: schedule(300)})
		handed := 0
		x.co.OnDone = func(_ frontier.Lease, o frontier.Outcome) {
			if o.Result == frontier.PutOff || !o.Next.IsZero() {
				handed++
			}
		}
		p := x.run(50*day, "http://a.example/")
		n := func(kind string) (n int) {
			for u, log := range w.log {
				if strings.HasPrefix(u, "http://a.example/"+kind) {
					n += len(log)
				}
			}
			return n
		}
		report := x.r.Report()
		t.Log(report, n("daily"), n("static"), n("clock"), n("spam"), n("ads"))
		assert.Greater(t, n("daily"), 4000, "they change each day")
		for _, other := range []string{"static", "clock", "spam", "ads"} {
			assert.Less(t, n(other), n("daily")*3/4, other)
		}
		assert.EqualValues(t, 501, report.Schedule.Pages)
		assert.EqualValues(t, 501, report.First)
		assert.Equal(t, report.Visits, p.Pages)
		assert.Equal(t, report.Visits, report.First+report.Changed+report.Unchanged)
		assert.InEpsilon(t, 501, report.NewShare()*float64(report.Visits), 1e-9)
		assert.Positive(t, report.Schedule.Freshness)
		assert.Positive(t, report.PutOff, "the price rose")
		assert.Equal(t, x.f.Stats().Done[frontier.PutOff], report.PutOff)
		assert.Zero(t, handed, "and no worker saw it")
	})
}

// word is a word without digits, another for each n.
func word(n int) string {
	s := "w"
	for ; n > 0; n /= 26 {
		s += string(rune('a' + n%26))
	}
	return s
}

// A page that is gone is requested once more, dropped, and requested again at growing intervals;
// when it is back it is an ordinary page. So is a page that is forbidden.
func TestGoneAndForbidden(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		w := newWeb()
		w.pages["http://a.example/"] = steady("/leaves", "/broken", "/login", "/private")
		w.pages["http://a.example/robots.txt"] = func(at time.Duration, _ int, _ http.Header) answer {
			if at > 100*day {
				return answer{status: 404}
			}
			return answer{status: 200, body: "User-agent: *\nDisallow: /private\n", header: map[string]string{"Content-Type": "text/plain"}}
		}
		w.pages["http://a.example/leaves"] = func(at time.Duration, _ int, _ http.Header) answer {
			if at > 12*time.Hour && at < 225*day {
				return answer{status: 410}
			}
			return text("here")
		}
		w.pages["http://a.example/login"] = func(time.Duration, int, http.Header) answer { return answer{status: 401} }
		w.pages["http://a.example/private"] = steady()
		x := begin(t, w, Options{Schedule: schedule(8)})
		x.run(500*day, "http://a.example/")
		var gone []time.Duration
		for _, a := range w.log["http://a.example/leaves"] {
			if a.status == 410 {
				gone = append(gone, a.at)
			}
		}
		require.Greater(t, len(gone), 4)
		var seldom []time.Duration
		for i := 1; i < len(gone); i++ {
			if wait := gone[i] - gone[i-1]; wait >= 30*day {
				seldom = append(seldom, wait)
			} else {
				assert.Empty(t, seldom, "confirmed by looks in a row: %v", gone)
			}
		}
		assert.GreaterOrEqual(t, gone[len(gone)-len(seldom)-1]-gone[0], 2*day, "over days: %v", gone)
		require.GreaterOrEqual(t, len(seldom), 2)
		for i := 1; i < len(seldom); i++ {
			assert.Greater(t, seldom[i], seldom[i-1])
		}
		assert.Contains(t, x.gone, "http://a.example/leaves")
		after := 0
		for _, a := range w.log["http://a.example/leaves"] {
			if a.at > 225*day {
				after++
				assert.Equal(t, 200, a.status)
			}
		}
		assert.NotZero(t, after, "it came back")
		assert.Len(t, w.log["http://a.example/broken"], 5, "at 0, 30, 90, 210 and 450 days")
		assert.Len(t, w.log["http://a.example/login"], 5)
		assert.NotEmpty(t, w.log["http://a.example/private"], "when robots.txt allows it")
		assert.Greater(t, w.times("http://a.example/private")[0], 100*day)
	})
}

// A known page is tried for as long as it fails, at its own pace; an unknown one is
// given up.
func TestFailuresOfKnownPages(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		w := newWeb()
		w.pages["http://a.example/"] = steady("/breaks", "/never")
		w.pages["http://a.example/breaks"] = func(at time.Duration, n int, _ http.Header) answer {
			if n > 0 && at < 300*day {
				return answer{fails: true}
			}
			return text("here")
		}
		w.pages["http://a.example/never"] = func(time.Duration, int, http.Header) answer { return answer{fails: true} }
		x := begin(t, w, Options{Schedule: schedule(12)})
		p := x.run(600*day, "http://a.example/")
		assert.EqualValues(t, 1, p.Frontier.GivenUp)
		assert.EqualValues(t, 2, p.Frontier.Retried, "the other one is the scheduler's at once")
		assert.Len(t, w.log["http://a.example/never"], 3)
		log := w.log["http://a.example/breaks"]
		failed := 0
		for _, a := range log {
			if a.status == 0 {
				failed++
			}
		}
		assert.Greater(t, failed, 8)
		assert.Equal(t, 200, log[len(log)-1].status, "it is read again")
		assert.EqualValues(t, failed, x.r.Report().Failed)
		assert.EqualValues(t, 2, x.r.Report().Schedule.Pages)
	})
}

// URLs of a site whose robots.txt is unreachable are not lost, and are fetched soon after it is
// reachable; one that fails then, and was never read, is given up like any other.
func TestRobotsThatCannotBeHad(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		w := newWeb()
		w.pages["http://a.example/"] = steady()
		w.pages["http://a.example/robots.txt"] = func(at time.Duration, _ int, _ http.Header) answer {
			if at < 5*day || at > 40*day && at < 60*day {
				return answer{status: 503}
			}
			return answer{status: 404}
		}
		w.pages["http://b.example/robots.txt"] = w.pages["http://a.example/robots.txt"]
		w.pages["http://b.example/"] = func(time.Duration, int, http.Header) answer { return answer{fails: true} }
		x := begin(t, w, Options{Schedule: schedule(24)})
		p := x.run(100*day, "http://a.example/", "http://b.example/")
		log := w.times("http://a.example/")
		require.NotEmpty(t, log)
		assert.Greater(t, log[0], 5*day)
		assert.Less(t, log[0], 5*day+30*time.Hour, "probes are a day apart at most, and a tenth more at random; then the page waits its turn")
		assert.Len(t, w.log["http://b.example/"], 3)
		assert.EqualValues(t, 1, p.Frontier.GivenUp)
		assert.Zero(t, x.r.Report().Schedule.NewPages)
		assert.EqualValues(t, 1, x.r.Report().Schedule.Pages)
		assert.Greater(t, log[len(log)-1], 60*day)
	})
}

// What OnPage cannot take is not seen: it is fetched whole, and has changed still.
func TestAPageThatWasNotTaken(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		w := newWeb()
		w.pages["http://a.example/"] = func(at time.Duration, _ int, h http.Header) answer {
			edition := word(int(at / (10 * day)))
			tag := `"` + edition + `"`
			if h.Get("If-None-Match") == tag {
				return answer{status: 304}
			}
			a := text("edition %s", edition)
			a.header = map[string]string{"Etag": tag}
			return a
		}
		x := begin(t, w, Options{Schedule: schedule(24)})
		var results []frontier.Result
		refuse := false
		x.co.OnPage = func(_ context.Context, p *crawler.Page) error {
			if p.Status == 304 {
				return nil
			}
			refuse = !refuse && len(results) > 0
			if refuse {
				return errors.New("the disk is full")
			}
			results = append(results, p.Outcome.Result)
			return nil
		}
		x.run(45*day, "http://a.example/")
		require.GreaterOrEqual(t, len(results), 4)
		assert.Equal(t, frontier.Visited, results[0])
		for _, r := range results[1:] {
			assert.Equal(t, frontier.Changed, r)
		}
	})
}

// A URL with a Meta of its user's is left to the user.
func TestMetaOfTheUser(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		w := newWeb()
		w.pages["http://a.example/"] = steady()
		x := begin(t, w, Options{Schedule: schedule(24)})
		_, err := x.f.Add(t.Context(), frontier.Entry{URL: "http://a.example/", Meta: []byte("mine")})
		require.NoError(t, err)
		x.run(100 * day)
		assert.Len(t, w.log["http://a.example/"], 1)
	})
}

// What is out of scope now leaves the books, and is parked. It comes back as a new page.
func TestOutOfScope(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		w := newWeb()
		w.pages["http://a.example/"] = steady("http://b.example/")
		w.pages["http://b.example/"] = steady()
		x := begin(t, w, Options{Schedule: schedule(24)})
		x.run(10*day, "http://a.example/")
		assert.EqualValues(t, 2, x.r.Report().Schedule.Pages)
		x.co.Scope.Hosts = []string{"a.example"}
		x.run(500 * day)
		assert.EqualValues(t, 1, x.r.Report().Schedule.Pages)
		assert.EqualValues(t, 2, x.f.Stats().Scheduled+x.f.Stats().Waiting)
		x.co.Scope.Hosts = nil
		x.wider = true
		x.run(20 * day)
		assert.EqualValues(t, 2, x.r.Report().Schedule.Pages)
	})
}

// A budget is not exceeded, and a page of the operator's choice comes at once.
func TestBudget(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		w := newWeb()
		var links []string
		for i := range 200 {
			u := fmt.Sprintf("http://h%d.example/", i)
			links = append(links, u)
			w.pages[u] = func(_ time.Duration, n int, _ http.Header) answer { return text("%s", word(n)) }
		}
		w.pages["http://a.example/"] = steady(links...)
		x := begin(t, w, Options{Schedule: schedule(96)})
		x.run(10*day, "http://a.example/")
		sent := 0
		for _, log := range w.log {
			sent += len(log)
		}
		assert.InDelta(t, 960, sent, 10, "robots.txt included")
	})
}

// Limits that count pages count each once: what was visited does not lead into a trap.
func TestLimitsCountPagesOnce(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		w := newWeb()
		var links []string
		for i := range 9 {
			u := fmt.Sprintf("http://a.example/page/%d", i)
			links = append(links, u)
			w.pages[u] = func(at time.Duration, _ int, _ http.Header) answer { return text("edition %s", word(int(at/day))) }
		}
		w.pages["http://a.example/"] = steady(links...)
		x := begin(t, w, Options{Schedule: schedule(20)})
		x.co.Traps.MaxPerPattern, x.co.MaxPagesPerHost = 8, 9
		p := x.run(60*day, "http://a.example/")
		assert.EqualValues(t, 9, x.r.Report().Schedule.Pages)
		assert.Greater(t, p.Pages, int64(300))
		again := 0
		for _, u := range links {
			if len(w.log[u]) > 10 {
				again++
			}
		}
		assert.Equal(t, 8, again)
		assert.EqualValues(t, 1, p.Filtered)
	})
}
