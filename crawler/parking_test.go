// These tests park URLs and bring them back.

package crawler

import (
	"fmt"
	"regexp"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler/fetch"
	"github.com/seed-7440039f/frontier/crawler/filter"
	"github.com/seed-7440039f/frontier/inspect"
)

// ran is the progress of a new Crawler that ran to its end.
func ran(t *testing.T, f Frontier, w *fakeWeb, o Options, wider bool, seeds ...string) Progress {
	t.Helper()
	c := newCrawler(t, f, w, o)
	if wider {
		require.NoError(t, c.Unpark())
	}
	_, err := c.Seed(t.Context(), seeds...)
	require.NoError(t, err)
	require.NoError(t, c.Run(t.Context()))
	return c.Progress()
}

func twentyPages() *fakeWeb {
	w := newWeb()
	var links []string
	for i := range 20 {
		w.always(fmt.Sprintf("%sp%d", seed, i), page())
		links = append(links, fmt.Sprintf("/p%d", i))
	}
	w.always(seed, page(links...))
	w.always("http://b.example/", page())
	return w
}

// What another scope refuses waits for the scope to be wide again, however often a run
// with the narrow one begins, and is not looked at meanwhile.
func TestNarrowerScopeParks(t *testing.T) {
	for name, narrow := range map[string]Options{
		"hosts":   {Scope: Scope{Hosts: []string{"b.example"}}},
		"exclude": {Scope: Scope{Exclude: []*regexp.Regexp{regexp.MustCompile("/p")}}},
		"filters": {Filters: []Filter{FilterFunc(func(e frontier.Entry) bool { return e.Depth == 0 })}},
		"rules":   {Rules: []filter.Filter{filter.MaxDepth(0)}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := twentyPages()
				f := openFrontier(t, frontier.Options{})
				p := ran(t, f, w, Options{MaxPages: 5}, false, seed)
				left := p.Frontier.Waiting
				require.Positive(t, left)
				p = ran(t, f, w, narrow, true, "http://b.example/")
				assert.Equal(t, []int64{left, 1}, []int64{p.Parked, p.Pages})
				leases := f.Stats().HandedOut
				for range 3 {
					p = ran(t, f, w, narrow, false, "http://b.example/")
					assert.Equal(t, left, p.Parked)
				}
				assert.Equal(t, leases, f.Stats().HandedOut, "nobody looks at what is parked")
				p = ran(t, f, w, narrow, true)
				assert.Equal(t, left, p.Parked, "it is judged anew, and parked again")
				p = ran(t, f, w, Options{}, true)
				assert.Equal(t, []int64{0, left, 0}, []int64{p.Parked, p.Pages, p.Frontier.Waiting})
				for u, n := range w.asks {
					assert.True(t, n == 1 || isRobots(u), "%s: %d", u, n)
				}
				w.checkPolite(t, fixedOwed)
			})
		})
	}
}

// A URL of another crawl comes back to that.
func TestParkedURLKnowsItsCrawl(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := twentyPages()
		f := openFrontier(t, frontier.Options{})
		_, err := f.Add(t.Context(), frontier.Entry{URL: seed + "p1", Crawl: 7, Meta: []byte("own")}, frontier.Entry{URL: seed + "p2", Crawl: 1 << 24})
		require.NoError(t, err)
		p := ran(t, f, w, Options{Scope: Scope{Hosts: []string{"b.example"}}}, false)
		assert.Equal(t, []int64{1, 1}, []int64{p.Parked, p.Filtered}, "of a crawl with such a number nothing is parked")
		assert.Equal(t, []uint32{1<<31 + 7}, Lots(f, 7))
		assert.Empty(t, Lots(f, 0))
		var got []frontier.Entry
		c := newCrawler(t, f, w, Options{OnDone: func(l frontier.Lease, o frontier.Outcome) {
			if o.Result == frontier.Visited {
				got = append(got, l.Entry)
			}
		}})
		require.NoError(t, c.Unpark())
		require.NoError(t, c.Run(t.Context()))
		require.Len(t, got, 1)
		assert.Equal(t, []any{uint32(7), "own"}, []any{got[0].Crawl, string(got[0].Meta)})
	})
}

// A URL that a run cannot have is asked for by the next run, if it is a seed or if it may
// be had by then.
func TestRefusedSeedsComeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb()
		w.pages["http://blocked.example/robots.txt"] = func(n int) answer {
			if n == 1 {
				return answer{class: fetch.Blocked}
			}
			return answer{status: 404}
		}
		w.always("http://blocked.example/", page())
		w.pages["http://forbidden.example/robots.txt"] = func(n int) answer {
			if n == 1 {
				return text("User-agent: *\nDisallow: /")
			}
			return answer{status: 404}
		}
		w.always("http://forbidden.example/", page())
		w.pages["http://down.example/"] = func(n int) answer {
			if n <= 2 {
				return answer{class: fetch.Connect}
			}
			return page()
		}
		w.always("http://gone.example/", answer{status: 404})
		var c *Crawler
		f := openFrontier(t, frontier.Options{Retry: frontier.Retries(2, time.Millisecond), OnGiveUp: func(e frontier.Entry, o frontier.Outcome) { c.GivenUp(e, o) }})
		seeds := []string{"http://blocked.example/", "http://forbidden.example/", "http://down.example/", "http://gone.example/"}
		for run := range 3 {
			c = newCrawler(t, f, w, Options{})
			_, err := c.Seed(t.Context(), seeds...)
			require.NoError(t, err)
			require.NoError(t, c.Run(t.Context()))
			p := c.Progress()
			want := [][]int64{{0, 3}, {3, 0}, {0, 0}}[run]
			assert.Equal(t, want, []int64{p.Pages, p.NextRun}, "run %d", run)
		}
		assert.Equal(t, 1, w.asks["http://gone.example/"], "that was an answer")
	})
}

// A seed that fails in each run comes again in each.
func TestGivenUpSeedComesAgainAndAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb()
		w.always(seed, answer{class: fetch.Connect})
		var c *Crawler
		f := openFrontier(t, frontier.Options{Retry: frontier.Retries(1, time.Millisecond), OnGiveUp: func(e frontier.Entry, o frontier.Outcome) { c.GivenUp(e, o) }})
		for n := range 2*generations + 3 {
			c = newCrawler(t, f, w, Options{})
			_, err := c.Seed(t.Context(), seed)
			require.NoError(t, err)
			require.NoError(t, c.Run(t.Context()))
			require.Equal(t, n+1, w.asks[seed])
		}
	})
}

// The other pages of a host that is full are asked for by the next run.
func TestPagesOfAFullHostWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := twentyPages()
		f := openFrontier(t, frontier.Options{})
		for run := range 4 {
			p := ran(t, f, w, Options{MaxPagesPerHost: 6}, false, seed)
			want := [][]int64{{6, 15}, {6, 9}, {6, 3}, {3, 0}}[run]
			assert.Equal(t, want, []int64{p.Pages, p.NextRun}, "run %d", run)
		}
	})
}

func TestHostOfASeedsRedirectJoinsTheScope(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb()
		w.always(seed, answer{status: 301, location: "http://hop.example/"})
		w.always("http://hop.example/", answer{status: 302, location: "http://www.example/"})
		w.always("http://www.example/", page("/2", "http://hop.example/no", "http://other.example/"))
		w.always("http://www.example/2", page("/3", "/leads-out"))
		w.always("http://www.example/3", page())
		w.always("http://www.example/leads-out", answer{status: 301, location: "http://other.example/"})
		f := openFrontier(t, frontier.Options{})
		var joined []string
		o := Options{Scope: Scope{Hosts: []string{"a.example"}, Seeds: []string{seed}, OnJoin: func(host string) error {
			joined = append(joined, host)
			return nil
		}}}
		p := ran(t, f, w, o, false, seed)
		assert.Equal(t, []string{"www.example"}, joined, "not those on the way")
		assert.EqualValues(t, 3, p.Pages)
		assert.False(t, slices.Contains(w.urls(), "http://other.example/"))
		assert.False(t, slices.Contains(w.urls(), "http://hop.example/no"))
	})
}

// Without Seeds the target of a seed's redirect is parked, as no link leads to it.
func TestTargetOfASeedsRedirectIsParked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb()
		w.always(seed, answer{status: 301, location: "http://www.example/"})
		w.always("http://www.example/", page())
		f := openFrontier(t, frontier.Options{})
		p := ran(t, f, w, Options{Scope: Scope{Hosts: []string{"a.example"}}}, false, seed)
		assert.Equal(t, []int64{0, 1}, []int64{p.Pages, p.Parked})
		p = ran(t, f, w, Options{Scope: Scope{Hosts: []string{"a.example", "www.example"}}}, true, seed)
		assert.Equal(t, []int64{1, 0}, []int64{p.Pages, p.Parked})
	})
}

// A page that was visited leads no host into the scope.
func TestLaterRedirectOfASeedStaysInScope(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb()
		w.pages[seed] = func(n int) answer {
			if n == 1 {
				return page()
			}
			return answer{status: 301, location: "http://casino.example/"}
		}
		w.always("http://casino.example/", page())
		f := openFrontier(t, frontier.Options{Scheduler: frontier.SchedulerFunc(func(v frontier.Visit) (due time.Time) {
			if v.History.Visits == 1 {
				due = v.Outcome.Ended
			}
			return due
		})})
		ran(t, f, w, Options{Scope: Scope{Hosts: []string{"a.example"}, Seeds: []string{seed}}}, false, seed)
		assert.Equal(t, []string{seed}, w.urls())
		assert.Equal(t, 2, w.asks[seed])
	})
}

// What was parked before its host joined the scope comes back when it does, in the same run, by
// whichever way it had come, and what is of other hosts stays.
func TestParkedURLComesBackWhenItsHostJoins(t *testing.T) {
	const sitemap, elsewhere = "http://www.example/map.xml", "http://other.example/"
	for name, before := range map[string]int{"in this run": 0, "by an earlier run": 1} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWeb()
				w.pages[seed] = func(n int) answer {
					if n <= before {
						return answer{status: 503}
					}
					return answer{status: 301, location: "http://www.example/", takes: 5 * time.Second}
				}
				w.always("http://www.example/", page())
				w.always(sitemap, page())
				f := openFrontier(t, frontier.Options{})
				_, err := f.Add(t.Context(), frontier.Entry{URL: sitemap, Depth: 1, Crawl: 3}, frontier.Entry{URL: elsewhere, Depth: 1})
				require.NoError(t, err)
				o := Options{Workers: 4, Scope: Scope{Hosts: []string{"a.example"}, Seeds: []string{seed}}}
				if before > 0 {
					ran(t, f, w, Options{Scope: Scope{Hosts: []string{"a.example"}}}, false)
					assert.Equal(t, []uint32{lotNumber(untilWider, 0, 3)}, Lots(f, 3))
				}
				p := ran(t, f, w, o, false, seed)
				assert.Equal(t, []int64{2, 1}, []int64{p.Pages, p.Parked})
				assert.Equal(t, []string{seed, "http://www.example/", sitemap}, w.urls())
			})
		})
	}
}

// A host that joins opens the lots if something of it is parked, or may be.
func TestJoinOpensForItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := openFrontier(t, frontier.Options{})
		p := newParking(inspect.Frontier{Frontier: f, Inspector: inspect.New(f)})
		require.NoError(t, p.joined("any.example"))
		_, ok, err := p.lot(untilWider, frontier.Entry{URL: "http://b.example/"})
		require.True(t, ok)
		require.NoError(t, err)
		was := p.generation
		require.NoError(t, p.joined("any.example"))
		assert.Equal(t, was, p.generation, "nothing of it is parked")
		require.NoError(t, p.joined("b.example"))
		assert.NotEqual(t, was, p.generation, "what is parked from now on does not meet what comes back")
	})
}

// What is parked again after each look is looked at ever less often, and often again once nothing was.
func TestLooksBecomeRare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := openFrontier(t, frontier.Options{})
		p := newParking(inspect.Frontier{Frontier: f, Inspector: inspect.New(f)})
		look := func(rest time.Duration) {
			began := time.Now()
			_, ok, err := p.lot(untilAgain, frontier.Entry{URL: seed})
			require.True(t, ok)
			require.NoError(t, err)
			<-p.look.C
			assert.Equal(t, rest, time.Since(began))
			require.NoError(t, p.open(untilAgain))
		}
		for _, minutes := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60} {
			look(minutes * time.Minute)
		}
		time.Sleep(lookFirst + 1)
		look(lookFirst)
	})
}

// An address that may be contacted again, and a robots.txt that permits again, bring what they held
// back while the run lasts.
func TestParkedURLComesBackWhenItsReasonIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb()
		blocked := func(n int) answer {
			if n <= 3 {
				return answer{class: fetch.Blocked}
			}
			return answer{status: 404}
		}
		w.pages["http://new.example/robots.txt"] = blocked
		w.always("http://new.example/", page())
		w.pages["http://forbidden.example/robots.txt"] = func(n int) answer {
			if n == 1 {
				return text("User-agent: *\nDisallow: /$\n")
			}
			return answer{status: 404}
		}
		w.always("http://forbidden.example/", page())
		for i := range 400 {
			w.always(fmt.Sprintf("%s%d", seed, i), page(fmt.Sprintf("/%d", i+1)))
		}
		f := openFrontier(t, frontier.Options{Delay: frontier.FixedDelay(time.Minute)})
		p := ran(t, f, w, Options{RobotsTTL: 2 * time.Hour}, false, seed+"0", "http://new.example/", "http://forbidden.example/")
		assert.Equal(t, []int64{402, 0}, []int64{p.Pages, p.NextRun})
		assert.Less(t, w.asks["http://new.example/robots.txt"], 10)
	})
}

// A name server that lies for a moment parks nothing: hosts that have answered are tried again, and
// are taken to be there if there are several.
func TestNameServerThatLies(t *testing.T) {
	for name, hosts := range map[string]int{"of one host": 1, "of all hosts": 4} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWeb()
				began, seeds := time.Now(), []string{}
				for i := range hosts {
					s := fmt.Sprintf("http://h%d.example/", i)
					seeds = append(seeds, s)
					for j := range 20 {
						w.pages[fmt.Sprintf("%s%d", s, j)] = func(int) answer {
							if at := time.Since(began); at > 8*time.Second && at < time.Minute {
								return answer{class: fetch.Blocked}
							}
							return page(fmt.Sprintf("/%d", j+1))
						}
					}
					w.always(s, page("/0", "/1", "/2"))
				}
				var lost int
				f := openFrontier(t, frontier.Options{OnGiveUp: func(frontier.Entry, frontier.Outcome) { lost++ }})
				p := ran(t, f, w, Options{Workers: 4}, false, seeds...)
				assert.Equal(t, []int64{int64(21 * hosts), 0, 0, 0}, []int64{p.Pages, p.NextRun, p.Blocked, int64(lost)})
				if hosts > 1 {
					assert.LessOrEqual(t, p.Failed, int64(outageHosts), "only those from which it was seen")
				}
			})
		})
	}
}
