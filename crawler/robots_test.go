package crawler

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler/fetch"
	"github.com/seed-7440039f/frontier/crawler/filter"
	"github.com/seed-7440039f/frontier/crawler/robots"
)

const (
	seed   = "http://a.example/"
	robotA = "http://a.example/robots.txt"
)

// site serves a start page with links to /1 .. /n and /private.
func (w *fakeWeb) site(base string, n int) {
	links := []string{"/private"}
	for i := 1; i <= n; i++ {
		links = append(links, fmt.Sprintf("/%d", i))
		w.always(fmt.Sprintf("%s/%d", base, i), page("/"))
	}
	w.always(base+"/", page(links...))
	w.always(base+"/private", page("/"))
}

func TestRobots(t *testing.T) {
	const deny = "User-agent: *\nDisallow: /private\n"
	for name, c := range map[string]struct {
		set     func(w *fakeWeb)
		pages   int64           // of the 5 there are
		asked   []time.Duration // offsets from the first request at which the site was asked for robots.txt and what it redirects to
		denied  int64
		givenUp int64 // after the quarantine's one probe
	}{
		"404 allows everything": {func(w *fakeWeb) {}, 5, []time.Duration{0}, 0, 0},
		"403 allows everything": {func(w *fakeWeb) { w.always(robotA, answer{status: 403}) }, 5, []time.Duration{0}, 0, 0},
		"rules":                 {func(w *fakeWeb) { w.always(robotA, text(deny)) }, 4, []time.Duration{0}, 1, 0},
		"rules for us by name": {func(w *fakeWeb) {
			w.always(robotA, text("User-agent: testbot\nDisallow: /1\nDisallow: /2\n\n"+deny))
		}, 3, []time.Duration{0}, 2, 0},
		"nothing is allowed": {func(w *fakeWeb) { w.always(robotA, text("User-agent: *\nDisallow: /")) }, 0, []time.Duration{0}, 1, 0},
		"503 for ever": {func(w *fakeWeb) { w.always(robotA, answer{status: 503}) },
			0, []time.Duration{0, 1010 * time.Millisecond, 3020 * time.Millisecond, 64030 * time.Millisecond}, 0, 1},
		"429 for ever, Retry-After": {func(w *fakeWeb) { w.always(robotA, answer{status: 429, retryAfter: 10 * time.Second}) },
			0, []time.Duration{0, 10010 * time.Millisecond, 21020 * time.Millisecond, 82030 * time.Millisecond}, 0, 1},
		"compressed in a way nobody asked for": {func(w *fakeWeb) {
			w.always(robotA, answer{status: 200, body: "\x1f\x9d\x90", header: http.Header{"Content-Encoding": {"compress"}}})
		}, 0, []time.Duration{0, 1010 * time.Millisecond, 3020 * time.Millisecond, 64030 * time.Millisecond}, 0, 1},
		"no coding": {func(w *fakeWeb) {
			a := text(deny)
			a.header = http.Header{"Content-Encoding": {"aws-chunked"}}
			w.always(robotA, a)
		}, 4, []time.Duration{0}, 1, 0},
		"without its end at every try": {func(w *fakeWeb) {
			a := text(deny)
			a.class, a.broken = fetch.Cut, "disconnect"
			w.always(robotA, a)
		}, 4, []time.Duration{0, 1010 * time.Millisecond, 3020 * time.Millisecond}, 1, 0},
		"no answer": {func(w *fakeWeb) { w.always(robotA, answer{class: fetch.Timeout, takes: 2 * time.Second}) },
			0, []time.Duration{0, 3 * time.Second, 6 * time.Second, 10 * time.Second, 73 * time.Second}, 0, 1},
		"cut once, then rules": {func(w *fakeWeb) {
			w.pages[robotA] = func(n int) answer {
				if n == 1 {
					return answer{class: fetch.Cut}
				}
				return text(deny)
			}
		}, 4, []time.Duration{0, 1010 * time.Millisecond}, 1, 0},
		"redirect on the same host": {func(w *fakeWeb) {
			w.always(robotA, answer{status: 301, location: "/robots-1"})
			w.always("http://a.example/robots-1", answer{status: 302, location: "robots-2"})
			w.always("http://a.example/robots-2", text(deny))
		}, 4, []time.Duration{0, 1010 * time.Millisecond, 2020 * time.Millisecond}, 1, 0},
		"redirect loop": {func(w *fakeWeb) { w.always(robotA, answer{status: 302, location: robotA}) },
			5, []time.Duration{0, 1010 * time.Millisecond, 2020 * time.Millisecond, 3030 * time.Millisecond, 4040 * time.Millisecond, 5050 * time.Millisecond}, 0, 0},
		"redirect to nowhere":        {func(w *fakeWeb) { w.always(robotA, answer{status: 302}) }, 5, []time.Duration{0}, 0, 0},
		"redirect to another scheme": {func(w *fakeWeb) { w.always(robotA, answer{status: 302, location: "ftp://a.example/"}) }, 5, []time.Duration{0}, 0, 0},
		"redirect to what fails": {func(w *fakeWeb) {
			w.always(robotA, answer{status: 302, location: "/robots-1"})
			w.always("http://a.example/robots-1", answer{status: 500})
		}, 0, []time.Duration{0, 1010 * time.Millisecond, 2020 * time.Millisecond, 3030 * time.Millisecond, 5040 * time.Millisecond, 6050 * time.Millisecond, 67060 * time.Millisecond, 127070 * time.Millisecond}, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWeb()
				w.site("http://a.example", 3)
				c.set(w)
				p := crawl(t, w, frontier.Options{
					Backoff: frontier.Backoff{Disabled: true, Jitter: 1e-9}, Quarantine: frontier.Quarantine{After: 3, Probe: time.Minute, Probes: 1},
				}, Options{}, seed)
				assert.Equal(t, c.pages, p.Pages)
				assert.Equal(t, c.denied, p.Denied)
				assert.Equal(t, c.givenUp, p.Frontier.GivenUp)
				var asked []time.Duration
				for _, r := range w.requests("http://a.example/robots") {
					asked = append(asked, r.start.Sub(w.log[0].start))
				}
				assert.Equal(t, c.asked, asked)
				assert.EqualValues(t, len(asked), p.Robots)
				w.checkPolite(t, fixedOwed)
			})
		})
	}
}

func TestRobotsRedirectToAnotherHost(t *testing.T) {
	for _, known := range []bool{false, true} {
		t.Run(fmt.Sprintf("known=%v", known), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWeb()
				w.site("http://www.a.example", 3)
				w.site("http://a.example", 3)
				w.always("http://www.a.example/robots.txt", answer{status: 301, location: robotA})
				w.always(robotA, text("User-agent: *\nDisallow: /private\nCrawl-delay: 5\n"))
				f := openFrontier(t, frontier.Options{})
				c := newCrawler(t, f, w, Options{})
				if known {
					_, err := c.Seed(t.Context(), seed)
					require.NoError(t, err)
					require.NoError(t, c.Run(t.Context()))
				}
				_, err := c.Seed(t.Context(), seed, "http://www.a.example/")
				require.NoError(t, err)
				require.NoError(t, c.Run(t.Context()))
				p := c.Progress()
				assert.EqualValues(t, 8, p.Pages)
				assert.EqualValues(t, 2, p.Denied)
				assert.EqualValues(t, 1, w.asks["http://www.a.example/robots.txt"])
				assert.LessOrEqual(t, w.asks[robotA], 2)
				w.checkPolite(t, func(r request) time.Duration {
					if r.url == "http://www.a.example/robots.txt" && r.status == 301 || r.url == robotA {
						return testDelay
					}
					return 5 * time.Second
				})
				// The delay holds from the very first page on.
				rs := w.requests("http://www.a.example/")
				assert.GreaterOrEqual(t, rs[1].start.Sub(rs[0].end), 5*time.Second)
			})
		})
	}
}

// No rule about hosts is passed by a redirect of robots.txt; rules about paths do not concern it.
func TestRobotsRedirectToADeniedHost(t *testing.T) {
	const victim = "http://victim.example:81/expensive?q=1"
	for name, c := range map[string]struct {
		o    Options
		asks int
	}{
		"none":            {Options{}, 1},
		"another host":    {Options{Rules: []filter.Filter{filter.Deny("deny-hosts", filter.Host("other.example"))}}, 1},
		"a host":          {Options{Rules: []filter.Filter{filter.Deny("deny-hosts", filter.Host("victim.example"))}}, 0},
		"a domain":        {Options{Rules: []filter.Filter{filter.Deny("deny-domains", filter.Domain("victim.example"))}}, 0},
		"behind a path's": {Options{Rules: []filter.Filter{filter.MaxQuery(1), filter.Deny("deny-hosts", filter.Host("victim.example"))}}, 0},
		"a path":          {Options{Rules: []filter.Filter{filter.MaxQuery(1)}}, 1},
		"a filter":        {Options{Filters: []Filter{FilterFunc(func(e frontier.Entry) bool { return !strings.Contains(e.URL, "victim") })}}, 0},
		"an expression":   {Options{Scope: Scope{Exclude: []*regexp.Regexp{regexp.MustCompile("victim")}}}, 0},
		"out of scope":    {Options{Scope: Scope{Hosts: []string{"a.example"}}}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWeb()
				w.site("http://a.example", 3)
				w.always(robotA, answer{status: 302, location: victim})
				var log bytes.Buffer
				c.o.Logger = slog.New(slog.NewTextHandler(&log, nil))
				p := crawl(t, w, frontier.Options{Quarantine: frontier.Quarantine{After: 3, Probe: time.Minute, Probes: 1}}, c.o, seed)
				assert.Equal(t, c.asks, w.asks[victim])
				if c.asks == 0 {
					assert.Zero(t, p.Pages, "what the site forbids is not known")
					assert.Contains(t, log.String(), "redirects to http://victim.example:81/expensive?q=1: not wanted")
				}
			})
		})
	}
}

func TestCrawlDelay(t *testing.T) {
	for max, want := range map[time.Duration]time.Duration{0: 7 * time.Second, 3 * time.Second: 3 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			w := newWeb()
			w.site("http://a.example", 3)
			w.always(robotA, text("User-agent: *\nCrawl-delay: 7"))
			crawl(t, w, frontier.Options{}, Options{MaxCrawlDelay: max}, seed)
			rs := w.requests("")
			require.Len(t, rs, 6)
			for i, r := range rs[1:] {
				assert.Equal(t, want, r.start.Sub(rs[i].end))
			}
		})
	}
}

// A Crawl-delay of hours is kept, up to a bound, and logged once per host.
func TestLongCrawlDelayIsTold(t *testing.T) {
	for _, x := range []struct {
		asks string
		max  time.Duration
		want time.Duration
		told string
	}{
		{"86400", 0, 24 * time.Hour, "host=a.example crawl_delay=24h0m0s honoured=24h0m0s"},
		{"999999999", 0, 24 * time.Hour, "host=a.example crawl_delay=24h0m0s honoured=24h0m0s"},
		{"600", time.Minute, time.Minute, "host=a.example crawl_delay=10m0s honoured=1m0s"},
		{"599", 0, 599 * time.Second, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			var logged bytes.Buffer
			w := newWeb()
			for _, s := range []string{"http://a.example", "http://a.example:81"} { // two robots.txt
				w.site(s, 2)
				w.always(s+"/robots.txt", text("User-agent: *\nCrawl-delay: "+x.asks))
			}
			o := Options{MaxCrawlDelay: x.max, Logger: slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelWarn}))}
			p := crawl(t, w, frontier.Options{}, o, seed, "http://a.example:81/")
			assert.EqualValues(t, 8, p.Pages)
			assert.LessOrEqual(t, p.Robots, p.Pages, "no contact but robots.txt for ever")
			rs := w.requests("")
			require.GreaterOrEqual(t, len(rs), 6)
			for i, r := range rs[1:] {
				assert.Equal(t, x.want, r.start.Sub(rs[i].end))
			}
			if x.told == "" {
				assert.Empty(t, logged.String())
				return
			}
			assert.Contains(t, logged.String(), x.told)
			assert.Equal(t, 1, strings.Count(logged.String(), "\n"), "%s", &logged)
		})
	}
}

func TestRobotsOfEachSite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb()
		for _, s := range []string{"http://a.example", "https://a.example", "http://a.example:81"} {
			w.site(s, 2)
		}
		w.always("https://a.example/robots.txt", text("User-agent: *\nDisallow: /"))
		p := crawl(t, w, frontier.Options{}, Options{}, "http://a.example/", "https://a.example/", "http://a.example:81/")
		assert.EqualValues(t, 8, p.Pages)
		assert.EqualValues(t, 3, p.Robots)
		w.checkPolite(t, fixedOwed)
	})
}

func TestRobotsAreAskedAgainAfterADay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb()
		w.site("http://a.example", 1)
		w.pages[robotA] = func(n int) answer {
			if n > 1 {
				return text("User-agent: *\nDisallow: /late")
			}
			return answer{status: 404}
		}
		w.always("http://a.example/late", page())
		f := openFrontier(t, frontier.Options{})
		c := newCrawler(t, f, w, Options{})
		_, err := f.Add(t.Context(), frontier.Entry{URL: seed}, frontier.Entry{URL: seed + "late", NotBefore: time.Now().Add(25 * time.Hour)})
		require.NoError(t, err)
		require.NoError(t, c.Run(t.Context()))
		assert.EqualValues(t, 1, c.Progress().Denied)
		assert.Equal(t, 2, w.asks[robotA])
		assert.Zero(t, w.asks[seed+"late"])
	})
}

func TestRobotsRedirectToAHostWithoutKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb()
		w.site("http://a.example", 2)
		w.always(robotA, answer{status: 302, location: "http://bad.example/robots.txt"})
		key := func(url string) (string, error) {
			if hostOf(siteOf(url)) == "bad.example" {
				return "", errors.New("no key")
			}
			return frontier.HostName(url)
		}
		p := crawl(t, w, frontier.Options{HostKey: key}, Options{HostKey: key}, seed)
		assert.EqualValues(t, 4, p.Pages, "as if there were no robots.txt")
	})
}

func TestRobotsRedirectToAHostThatIsHeldForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb()
		w.site("http://a.example", 2)
		w.always(robotA, answer{status: 302, location: "http://b.example/rules"})
		w.pages["http://b.example/"] = func(n int) answer {
			if n == 1 {
				return answer{status: 503, retryAfter: time.Hour}
			}
			return page()
		}
		f := openFrontier(t, frontier.Options{})
		c := newCrawler(t, f, w, Options{})
		_, err := f.Add(t.Context(), frontier.Entry{URL: "http://b.example/"}, frontier.Entry{URL: seed, NotBefore: time.Now().Add(10 * time.Second)})
		require.NoError(t, err)
		require.NoError(t, c.Run(t.Context()))
		p := c.Progress()
		assert.EqualValues(t, 1+4, p.Pages, "a's URLs wait until b may be asked")
		assert.Equal(t, 1, w.asks["http://b.example/rules"])
		assert.Less(t, w.asks[robotA], 20)
		w.checkPolite(t, fixedOwed)
	})
}

func TestManyHostsRedirectTheirRobotsToOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb()
		w.always(robotA, answer{status: 200, kind: "text/plain", body: "User-agent: *\nDisallow: /private", takes: 300 * time.Millisecond})
		var seeds []string
		for i := range 40 {
			h := fmt.Sprintf("http://h%d.example", i)
			w.site(h, 2)
			w.always(h+"/robots.txt", answer{status: 302, location: robotA})
			seeds = append(seeds, h+"/")
		}
		p := crawl(t, w, frontier.Options{}, Options{Workers: 8}, seeds...)
		assert.EqualValues(t, 40*3, p.Pages)
		assert.EqualValues(t, 40, p.Denied)
		w.checkPolite(t, fixedOwed)
	})
}

func TestRulesKeptForOthersLeaveTheirHostsCrawlDelayAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb()
		w.site("http://a.example", 2)
		w.site("http://b.example", 5)
		w.always(robotA, answer{status: 302, location: "http://b.example/rules-of-a"})
		w.always("http://b.example/rules-of-a", text("User-agent: *\nDisallow: /private"))
		w.always("http://b.example/robots.txt", text("User-agent: *\nCrawl-delay: 7"))
		f := openFrontier(t, frontier.Options{})
		c := newCrawler(t, f, w, Options{})
		_, err := f.Add(t.Context(), frontier.Entry{URL: "http://b.example/"}, frontier.Entry{URL: seed, NotBefore: time.Now().Add(10 * time.Second)})
		require.NoError(t, err)
		require.NoError(t, c.Run(t.Context()))
		assert.EqualValues(t, 1, c.Progress().Denied)
		w.checkPolite(t, func(r request) time.Duration {
			if r.host == "b.example" {
				return 7 * time.Second
			}
			return testDelay
		})
	})
}

// What OnRobots refuses is asked for again, and nothing is fetched until then.
func TestOnRobots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb()
		w.always(seed, page("/x"))
		w.always("http://a.example/x", page())
		w.always(robotA, answer{status: 302, location: "/moved.txt"})
		w.always("http://a.example/moved.txt", text("User-agent: *\nDisallow: /x\n"))
		var got []string
		full := errors.New("full")
		p := crawl(t, w, frontier.Options{}, Options{OnRobots: func(_ context.Context, res *fetch.Result) error {
			got = append(got, fmt.Sprint(res.Status, " ", res.URL))
			if len(got) == 2 {
				return full
			}
			return nil
		}}, seed)
		moved := []string{"302 " + robotA, "200 http://a.example/moved.txt"}
		assert.Equal(t, append(moved, moved...), got)
		assert.EqualValues(t, 1, p.Pages)
		assert.EqualValues(t, 1, p.Denied)
	})
}

// The line that is cut in two at 500 KiB is ignored, as read through the fetcher.
func TestRobotsCutInALine(t *testing.T) {
	const allow, deny = "Allow: /private-but-this-page-is-public\n", "Disallow: /x-and-so-on\n"
	for name, c := range map[string]struct {
		line   string
		cut    int // bytes of line before the limit
		denied int64
	}{
		"an Allow":          {allow, len("Allow: /private"), 1},
		"a Disallow":        {deny, len("Disallow: /"), 1},
		"whole to its end":  {allow, len(allow), 1},
		"but for its end":   {allow, len(allow) - 1, 1},
		"nothing is cut":    {"", 0, 1},
		"all is forbidden":  {"Disallow: /\n", len("Disallow: /\n"), 3},
		"all but a newline": {"Disallow: /\n", len("Disallow: /"), 1},
	} {
		t.Run(name, func(t *testing.T) {
			head := "User-agent: *\nDisallow: /private\n"
			fill := robots.MaxSize - len(head) - c.cut - 1
			body := head + "#" + strings.Repeat("x", fill-1) + "\n" + c.line + "# the rest\n"
			s := listen(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/robots.txt" {
					fmt.Fprint(w, body)
				}
			})
			f := openFrontier(t, frontier.Options{Delay: frontier.FixedDelay(time.Millisecond)})
			crawler := newCrawler(t, f, s.fetcher(t, fetch.Options{}), Options{})
			_, err := crawler.Seed(t.Context(), seed+"private/secret", seed+"public", seed+"x")
			require.NoError(t, err)
			require.NoError(t, crawler.Run(t.Context()))
			assert.EqualValues(t, c.denied, crawler.Progress().Denied)
		})
	}
}

// Sites whose robots.txt leads to a host that is busy for a day hold no worker, and
// end in time.
func TestRobotsRedirectToABusyHostHoldNoWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb()
		w.site("http://good.example", 60)
		seeds := []string{"http://good.example/"}
		w.always("http://slow.example/robots-of-all", answer{status: 429, retryAfter: 24 * time.Hour})
		for i := range 64 {
			h := fmt.Sprintf("http://evil%d.example", i)
			w.always(h+"/robots.txt", answer{status: 302, location: "http://slow.example/robots-of-all"})
			seeds = append(seeds, h+"/")
		}
		f := openFrontier(t, frontier.Options{Quarantine: frontier.Quarantine{Probes: 3}})
		c := newCrawler(t, f, w, Options{})
		_, err := c.Seed(t.Context(), seeds...)
		require.NoError(t, err)
		require.NoError(t, c.Run(t.Context()))
		p := c.Progress()
		assert.EqualValues(t, 62, p.Pages)
		assert.EqualValues(t, 64, p.Frontier.GivenUp)
		rs := w.requests("http://good.example/")
		for i, r := range rs[1:] {
			assert.LessOrEqual(t, r.start.Sub(rs[i].end), 2*time.Second, r.url)
		}
		assert.Less(t, time.Since(w.log[0].start), 4*24*time.Hour)
		for i := range 64 {
			require.Less(t, w.asks[fmt.Sprintf("http://evil%d.example/robots.txt", i)], 40)
		}
		w.checkPolite(t, fixedOwed)
	})
}

// A redirect that leads to a host which is dead makes its own host fail.
func TestRobotsRedirectToADeadHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb()
		w.site("http://a.example", 5)
		w.site("http://b.example", 5) // others answer
		w.always(robotA, answer{status: 302, location: "http://dead.example/robots.txt"})
		w.always("http://dead.example/robots.txt", answer{class: fetch.Connect})
		f := openFrontier(t, frontier.Options{Quarantine: frontier.Quarantine{Probes: 2}})
		c := newCrawler(t, f, w, Options{})
		_, err := c.Seed(t.Context(), seed, "http://b.example/")
		require.NoError(t, err)
		require.NoError(t, c.Run(t.Context()))
		p := c.Progress()
		assert.EqualValues(t, 1, p.Frontier.GivenUp)
		assert.EqualValues(t, 7, p.Pages)
		w.checkPolite(t, fixedOwed)
	})
}

// A robots.txt of http that redirects to that of https is valid for both.
func TestRobotsOfHTTPSAreNotAskedForTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb()
		w.site("https://a.example", 3)
		w.always(robotA, answer{status: 301, location: "https://a.example/robots.txt"})
		w.always("https://a.example/robots.txt", text("User-agent: *\nDisallow: /private\nCrawl-delay: 3\n"))
		w.always(seed, answer{status: 301, location: "https://a.example/"})
		p := crawl(t, w, frontier.Options{}, Options{}, seed)
		assert.EqualValues(t, 4, p.Pages)
		assert.EqualValues(t, 1, p.Denied)
		assert.EqualValues(t, 2, p.Robots)
		w.checkPolite(t, func(r request) time.Duration {
			if r.status == 301 && r.url == robotA {
				return testDelay
			}
			return 3 * time.Second
		})
	})
}

// A site of a host that does not answer keeps the host's other sites from nothing,
// and they keep it from nothing but its end.
func TestASiteThatIsDeadOnAHostThatIsNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const dead = "https://a.example"
		w := newWeb()
		w.site("http://a.example", 40)
		w.pages[dead+"/robots.txt"] = func(int) answer { return answer{class: fetch.Connect} }
		var seeds []string
		for i := range 30 {
			seeds = append(seeds, fmt.Sprintf("%s/%d", dead, i))
		}
		began := time.Now()
		var last time.Time
		f := openFrontier(t, frontier.Options{Quarantine: frontier.Quarantine{Probes: 2}})
		c := newCrawler(t, f, w, Options{OnPage: func(context.Context, *Page) error { last = time.Now(); return nil }})
		_, err := c.Seed(t.Context(), append(seeds, seed)...)
		require.NoError(t, err)
		require.NoError(t, c.Run(t.Context()))
		p := c.Progress()
		assert.EqualValues(t, 42, p.Pages)
		assert.EqualValues(t, 30, p.Frontier.GivenUp)
		assert.Less(t, last.Sub(began), 30*time.Minute)
		assert.Less(t, w.asks[dead+"/robots.txt"], 40)
		w.checkPolite(t, fixedOwed)
	})
}
