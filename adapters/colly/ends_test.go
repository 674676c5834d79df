package frontiercolly_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"
	"github.com/seed-7440039f/frontier"
	frontiercolly "github.com/seed-7440039f/frontier/adapters/colly"
	"github.com/seed-7440039f/frontier/adapters/colly/internal/web"
	"github.com/seed-7440039f/frontier/polite"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/stretchr/testify/require"
)

func mustParse(s string) *url.URL {
	u, err := url.Parse(s)
	if err != nil {
		panic(err)
	}
	return u
}

// A redirect's target is a request of its own, with the Ctx of the first, and comes when its host is due.
func TestRedirectsAreContactsOfTheirOwn(t *testing.T) {
	w := &web.Web{Hosts: 2, Pages: 3, Seeds: 2, Special: redirects(map[string]string{"/here": "/1", "/there": "http://h1.example/2"})}
	crawling(t, w, frontier.Options{}, frontiercolly.Options{}, func(c *crawl) {
		ctx := colly.NewContext()
		ctx.Put("kept", "yes")
		kept := make(chan string, 2) // two threads answer
		c.c.OnResponse(func(r *colly.Response) { kept <- r.Ctx.Get("kept") })
		for _, path := range []string{"/here", "/there"} {
			require.NoError(c, c.q.AddRequest(&colly.Request{URL: mustParse("http://h0.example" + path), Ctx: ctx, Depth: 1}))
		}
		c.run()
		require.ElementsMatch(c, []string{"http://h0.example/1", "http://h1.example/2"}, c.visited)
		require.Equal(c, []string{"yes", "yes"}, []string{<-kept, <-kept})
		require.EqualError(c, c.errors["http://h0.example/here"], "Found", "OnError sees the redirect, as it does in a collector that follows none")
	})
}

func redirects(to map[string]string) func(http.ResponseWriter, *http.Request) bool {
	return func(rw http.ResponseWriter, r *http.Request) bool {
		if to[r.URL.Path] == "" {
			return false
		}
		http.Redirect(rw, r, to[r.URL.Path], http.StatusFound)
		return true
	}
}

func TestARedirectToItselfComesAgain(t *testing.T) {
	w := &web.Web{Hosts: 1, Pages: 1, Seeds: 1, Special: func(rw http.ResponseWriter, r *http.Request) bool {
		if _, err := r.Cookie("seen"); err == nil || r.URL.Path != "/0" {
			return false
		}
		http.SetCookie(rw, &http.Cookie{Name: "seen", Value: "1"})
		http.Redirect(rw, r, "/0", http.StatusFound)
		return true
	}}
	crawling(t, w, frontier.Options{}, frontiercolly.Options{}, func(c *crawl) {
		c.run("http://h0.example/0")
		require.Equal(c, 2, w.Served("h0.example", "/0"))
		require.Len(c, c.visited, 1)
	})
}

func TestRedirectsEnd(t *testing.T) {
	w := &web.Web{Hosts: 1, Pages: 1, Seeds: 1, Special: func(rw http.ResponseWriter, r *http.Request) bool {
		n, err := strconv.Atoi(r.URL.Query().Get("n"))
		if err != nil {
			return false
		}
		http.Redirect(rw, r, "/0?n="+strconv.Itoa(n+1), http.StatusFound)
		return true
	}}
	crawling(t, w, frontier.Options{}, frontiercolly.Options{}, func(c *crawl) {
		c.run("http://h0.example/0?n=0")
		require.Equal(c, 11, w.Served("h0.example", "/0"))
		require.ErrorContains(c, c.refused["http://h0.example/0?n=10"], "stopped after 10 redirects")
	})
}

// What browsers do: after 302 a POST becomes a GET, after 307 it stays one. Credentials stay with their host.
func TestRedirectsOfPosts(t *testing.T) {
	var got []string
	w := &web.Web{Hosts: 2, Pages: 2, Seeds: 2, Special: func(rw http.ResponseWriter, r *http.Request) bool {
		switch r.URL.Path {
		case "/302":
			http.Redirect(rw, r, "/a", http.StatusFound)
		case "/307":
			http.Redirect(rw, r, "http://h1.example/b", http.StatusTemporaryRedirect)
		case "/a", "/b":
			body, _ := io.ReadAll(r.Body)
			got = append(got, r.Method+" "+r.URL.Path+" "+string(body)+" "+r.Header.Get("Authorization"))
		default:
			return false
		}
		return true
	}}
	crawling(t, w, frontier.Options{}, frontiercolly.Options{}, func(c *crawl) {
		for _, path := range []string{"/302", "/307"} {
			h := http.Header{"Authorization": {"secret"}, "Content-Type": {"text/plain"}}
			require.NoError(c, c.q.AddRequest(&colly.Request{URL: mustParse("http://h0.example" + path), Method: "POST", Body: strings.NewReader("x"), Headers: &h}))
		}
		c.run()
		require.ElementsMatch(c, []string{"GET /a  secret", "POST /b x "}, got)
	})
}

// Each hop waits: another host's for its turn, one of the page's own host for the same gap.
func TestFollowInPlace(t *testing.T) {
	w := &web.Web{Hosts: 3, Pages: 3, Seeds: 3, Special: redirects(map[string]string{
		"/there": "http://h1.example/2", "/here": "/1", "/gone": "http://h2.example/nothing", "/denied": "http://h2.example/private",
	})}
	crawling(t, w, frontier.Options{}, frontiercolly.Options{Follow: true}, func(c *crawl) {
		c.run("http://h0.example/there", "http://h1.example/0", "http://h0.example/here", "http://h0.example/gone", "http://h0.example/denied")
		require.ElementsMatch(c, []string{"http://h1.example/0", "http://h1.example/2", "http://h0.example/1"}, c.visited)
		require.EqualError(c, c.errors["http://h2.example/nothing"], "Not Found")
		done := c.f.Stats().Done
		require.EqualValues(c, 1, done[frontier.Gone])
		require.EqualValues(c, 1, done[frontier.Denied], "%v", c.errors)
	})
}

// A hop to a host that is busy for long does not hold up the page's host.
func TestFollowDoesNotWaitForEver(t *testing.T) {
	w := &web.Web{Hosts: 2, Pages: 2, Seeds: 2, Special: redirects(map[string]string{"/there": "http://h1.example/0"})}
	fo := frontier.Options{Retry: frontier.Retries(2, time.Second)}
	crawling(t, w, fo, frontiercolly.Options{Follow: true}, func(c *crawl) {
		require.NoError(c, c.f.BlockUntil(scope.Host("h1.example"), time.Now().Add(time.Hour)))
		c.run("http://h0.example/there")
		require.Equal(c, 2, w.Served("h0.example", "/there"))
		var busy *polite.BusyError
		require.ErrorAs(c, c.errors["http://h0.example/there"], &busy)
	})
}

// Nothing is contacted for a request that the collector's settings forbid, robots.txt neither.
func TestRefusedRequestsContactNobody(t *testing.T) {
	w := &web.Web{Hosts: 9, Pages: 3, Seeds: 9}
	crawling(t, w, frontier.Options{}, frontiercolly.Options{}, func(c *crawl) {
		c.c.AllowedDomains = []string{"h0.example", "h1.example", "h2.example"}
		c.c.DisallowedURLFilters = []*regexp.Regexp{regexp.MustCompile("h1")}
		c.c.MaxDepth = 1
		c.c.OnRequest(func(r *colly.Request) {
			if r.URL.Path == "/2" {
				r.Abort()
			}
		})
		require.NoError(c, c.q.AddRequest(&colly.Request{URL: mustParse("http://h2.example/0"), Depth: 2}))
		c.run("http://h0.example/0", "http://h0.example/private", "http://h0.example/2", "http://h1.example/0", "http://h3.example/0")
		require.Equal(c, []string{"http://h0.example/0"}, c.visited)
		require.Equal(c, 1, w.Log().Hosts)
		var denied *polite.DeniedError
		require.ErrorAs(c, c.refused["http://h0.example/private"], &denied)
		delete(c.refused, "http://h0.example/private")
		require.Equal(c, map[string]error{
			"http://h0.example/2": frontiercolly.ErrAborted, "http://h1.example/0": colly.ErrForbiddenURL,
			"http://h2.example/0": colly.ErrMaxDepth, "http://h3.example/0": colly.ErrForbiddenDomain,
		}, c.refused)
		require.EqualValues(c, 5, c.f.Stats().Done[frontier.Denied])
	})
}

func TestIgnoreRobots(t *testing.T) {
	w := &web.Web{Hosts: 1, Pages: 1, Seeds: 1}
	crawling(t, w, frontier.Options{}, frontiercolly.Options{IgnoreRobots: true}, func(c *crawl) {
		c.run("http://h0.example/private")
		require.Equal(c, 1, w.Served("h0.example", "/private"))
		require.Zero(c, w.Log().Robots)
	})
}

// The queue asks the same questions as colly, in the same order.
func TestFiltersAreColly(t *testing.T) {
	for _, set := range []func(*colly.Collector){
		func(*colly.Collector) {},
		func(c *colly.Collector) { c.MaxDepth = 1 },
		func(c *colly.Collector) { c.AllowedDomains = []string{"a.example"} },
		func(c *colly.Collector) { c.DisallowedDomains = []string{"a.example"} },
		func(c *colly.Collector) { c.URLFilters = []*regexp.Regexp{regexp.MustCompile(`/x$`)} },
		func(c *colly.Collector) {
			c.DisallowedURLFilters = []*regexp.Regexp{regexp.MustCompile(`^http://a`)}
			c.AllowedDomains = []string{"b.example"}
		},
	} {
		for _, u := range []string{"http://a.example/", "http://a.example:8080/x", "http://b.example/x", "http://b.example/y?x"} {
			for depth := range 3 {
				c := colly.NewCollector()
				set(c)
				c.OnRequest(func(r *colly.Request) { r.Abort() })
				r, err := c.UnmarshalRequest([]byte(`{"URL":"` + u + `","Method":"GET","Depth":` + strconv.Itoa(depth) + `}`))
				require.NoError(t, err)
				require.Equal(t, r.Do(), frontiercolly.Check(c, u, depth), "%s %d", u, depth)
			}
		}
	}
}

// Hosts that share an address take turns.
func TestPolitenessByAddress(t *testing.T) {
	w := &web.Web{Hosts: 6, Pages: 2, Seeds: 6}
	var mu sync.Mutex
	var last time.Time
	w.Special = func(http.ResponseWriter, *http.Request) bool {
		mu.Lock()
		defer mu.Unlock()
		if !last.IsZero() {
			require.GreaterOrEqual(t, time.Since(last), delay)
		}
		last = time.Now()
		return false
	}
	lookup := func(context.Context, string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr("192.0.2.1")}, nil
	}
	for _, ignore := range []bool{false, true} {
		last = time.Time{}
		qo := frontiercolly.Options{IgnoreRobots: ignore, Transport: &polite.Transport{Base: handled{w}, Lookup: lookup}}
		crawling(t, w, frontier.Options{}, qo, func(c *crawl) {
			c.follow()
			c.run(w.SeedURLs()...)
			require.Len(c, c.visited, 12)
			require.Empty(c, c.errors, "a wait for the address is no error")
		})
	}
}

// Failures are tried again by the frontier, after the pause that the host asks for.
func TestRetries(t *testing.T) {
	tries := map[string]int{}
	w := &web.Web{Hosts: 1, Pages: 2, Seeds: 1, Special: func(rw http.ResponseWriter, r *http.Request) bool {
		tries[r.URL.Path]++
		switch {
		case r.URL.Path == "/busy" && tries["/busy"] == 1:
			rw.Header().Set("Retry-After", "100")
			http.Error(rw, "", http.StatusTooManyRequests)
		case r.URL.Path == "/broken":
			http.Error(rw, "", http.StatusInternalServerError)
		case r.URL.Path == "/busy", r.URL.Path == "/captcha":
		default:
			return false
		}
		return true
	}}
	var gone []string
	fo := frontier.Options{OnGiveUp: func(e frontier.Entry, o frontier.Outcome) { gone = append(gone, e.URL) }}
	crawling(t, w, fo, frontiercolly.Options{}, func(c *crawl) {
		c.c.OnResponse(func(r *colly.Response) {
			if r.Request.URL.Path != "/captcha" {
				return
			}
			require.Equal(c, tries["/captcha"] == 2, r.Ctx.Get("solved") == "yes")
			if tries["/captcha"] == 1 {
				r.Ctx.Put("solved", "yes")
				require.NoError(c, r.Request.Retry())
			}
		})
		began := time.Now()
		c.run("http://h0.example/busy", "http://h0.example/broken", "http://h0.example/captcha")
		require.Equal(c, map[string]int{"/robots.txt": 1, "/busy": 2, "/broken": 3, "/captcha": 2}, tries)
		require.GreaterOrEqual(c, c.at["http://h0.example/busy"].Sub(began), 100*time.Second)
		require.Equal(c, []string{"http://h0.example/broken"}, gone)
		require.EqualError(c, c.errors["http://h0.example/broken"], "Internal Server Error")
	})
}

// A page that is cut off because the program ends is not failed: it comes again.
func TestCancelledPagesComeAgain(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	w := &web.Web{Hosts: 1, Pages: 2, Seeds: 1}
	crawling(t, w, frontier.Options{}, frontiercolly.Options{}, func(c *crawl) {
		c.c.Context = ctx
		c.c.OnRequest(func(r *colly.Request) { cancel() })
		require.NoError(c, c.q.AddURL("http://h0.example/0"))
		require.ErrorIs(c, c.q.Run(c.c), context.Canceled)
		require.Empty(c, c.visited)
		c.c.Context = context.Background()
		c.run()
		require.Equal(c, []string{"http://h0.example/0"}, c.visited)
	})
}

func TestNoAnswerIsAnError(t *testing.T) {
	refuses := errors.New("no route")
	fo := frontier.Options{Retry: frontier.Retries(2, time.Second)}
	crawling(t, &web.Web{}, fo, frontiercolly.Options{IgnoreRobots: true, Transport: &polite.Transport{Base: failing{refuses}}}, func(c *crawl) {
		c.run("http://h0.example/0")
		require.ErrorIs(c, c.errors["http://h0.example/0"], refuses)
		require.EqualValues(c, 2, c.f.Stats().Done[frontier.Failed])
	})
}

// A host that never answers, not even for robots.txt, is given up by the frontier's quarantine.
func TestADeadHostIsGivenUp(t *testing.T) {
	var gone []string
	fo := frontier.Options{OnGiveUp: func(e frontier.Entry, o frontier.Outcome) { gone = append(gone, e.URL) }}
	crawling(t, &web.Web{}, fo, frontiercolly.Options{Transport: &polite.Transport{Base: failing{errors.New("no route")}}}, func(c *crawl) {
		began := time.Now()
		c.run("http://h0.example/0", "http://h0.example/1")
		require.Len(c, gone, 2)
		require.Greater(c, time.Since(began), 24*time.Hour, "its network may come back")
	})
}

type failing struct{ err error }

func (f failing) RoundTrip(*http.Request) (*http.Response, error) { return nil, f.err }

// Without its transport the queue would not see what came of a request.
func TestAReplacedTransportIsAnError(t *testing.T) {
	w := &web.Web{Hosts: 1, Pages: 1, Seeds: 1}
	for _, other := range []http.RoundTripper{handled{w}, failing{errors.New("no route")}} {
		crawling(t, w, frontier.Options{}, frontiercolly.Options{IgnoreRobots: true}, func(c *crawl) {
			c.c.OnRequest(func(*colly.Request) { c.c.WithTransport(other) })
			require.NoError(c, c.q.AddURL("http://h0.example/0"))
			require.ErrorIs(c, c.q.Run(c.c), frontiercolly.ErrTransport)
			require.False(c, c.q.IsEmpty(), "the URL stays")
		})
	}
}

func TestPagesFromTheCache(t *testing.T) {
	w := &web.Web{Hosts: 1, Pages: 2, Seeds: 1}
	dir := t.TempDir()
	for range 2 {
		crawling(t, w, frontier.Options{}, frontiercolly.Options{IgnoreRobots: true}, func(c *crawl) {
			c.c.CacheDir = dir
			c.follow()
			c.run("http://h0.example/0")
			require.Len(c, c.visited, 2)
			require.Empty(c, c.refused)
		})
	}
	require.Zero(t, w.Log().Requests, "the second crawl contacts nobody")
}

func TestWhatRunRefuses(t *testing.T) {
	_, err := frontiercolly.New(nil, frontiercolly.Options{Threads: -1, IgnoreRobots: true, Transport: &polite.Transport{Robots: &polite.Robots{}}})
	require.EqualError(t, err, "frontiercolly: the frontier is nil\noption Threads is -1; want 1 to 100000\nIgnoreRobots is set, and so is Transport.Robots; want one of them")
	crawling(t, &web.Web{Hosts: 1, Pages: 1, Seeds: 1}, frontier.Options{}, frontiercolly.Options{}, func(c *crawl) {
		require.EqualError(c, c.q.Run(nil), "frontiercolly: the collector is nil")
		bad := colly.NewCollector(colly.MaxRequests(5), colly.CheckHead())
		require.ErrorContains(c, c.q.Run(bad), "MaxRequests is 5; want 0")
		require.ErrorContains(c, c.q.Run(bad), "CheckHead is set")
		var once sync.Once
		c.c.OnResponse(func(*colly.Response) {
			once.Do(func() { require.ErrorIs(c, c.q.Run(c.c), frontiercolly.ErrRunning) })
		})
		c.run("http://h0.example/0")
		require.ErrorContains(c, c.q.Run(colly.NewCollector()), `another collector named ""`)
	})
}

// Programs with a collector for each kind of page keep them.
func TestTwoCollectors(t *testing.T) {
	w := &web.Web{Hosts: 20, Pages: 5, Seeds: 20}
	crawling(t, w, frontier.Options{}, frontiercolly.Options{}, func(c *crawl) {
		detail := c.c.Clone()
		c.c.OnHTML("a[href]", func(e *colly.HTMLElement) { require.NoError(c, detail.Visit(e.Request.AbsoluteURL(e.Attr("href")))) })
		var details []string
		detail.OnScraped(func(r *colly.Response) {
			c.mu.Lock()
			defer c.mu.Unlock()
			details = append(details, r.Request.URL.String())
		})
		require.NoError(c, c.q.AddURL("http://h0.example/0"))
		require.NoError(c, c.q.Attach("detail", detail))
		c.run()
		require.Equal(c, []string{"http://h0.example/0"}, c.visited)
		require.Len(c, details, 4)

		other, err := frontiercolly.New(c.f, frontiercolly.Options{Transport: &polite.Transport{Base: handled{w}}})
		require.NoError(c, err)
		require.NoError(c, detail.Visit("http://h1.example/0"))
		require.ErrorContains(c, other.Run(colly.NewCollector()), `http://h1.example/0 belongs to the collector named "detail"; Attach it before Run`)
		require.False(c, c.q.IsEmpty(), "the URL stays")
	})
}

// A page at which a callback panics comes again, and Run panics as colly does.
func TestPanics(t *testing.T) {
	w := &web.Web{Hosts: 1, Pages: 1, Seeds: 1}
	crawling(t, w, frontier.Options{}, frontiercolly.Options{}, func(c *crawl) {
		var once sync.Once
		c.c.OnHTML("title", func(*colly.HTMLElement) { once.Do(func() { panic("oops") }) })
		require.NoError(c, c.q.AddURL("http://h0.example/0"))
		require.Panics(c, func() { _ = c.q.Run(c.c) })
		c.run()
		require.Equal(c, 2, w.Served("h0.example", "/0"))
	})
}

// URLs that only an operator can release do not count as crawled.
func TestHeldURLsAreToldOf(t *testing.T) {
	crawling(t, &web.Web{Hosts: 1, Pages: 1, Seeds: 1}, frontier.Options{}, frontiercolly.Options{}, func(c *crawl) {
		require.NoError(c, c.f.Pause(scope.Host("h0.example")))
		require.NoError(c, c.q.AddURL("http://h0.example/0"))
		var held *frontier.HeldError
		require.ErrorAs(c, c.q.Run(c.c), &held)
	})
}
