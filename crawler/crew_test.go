package crawler

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler/fetch"
)

// counted counts how many fetches there are at once.
type counted struct {
	web        *fakeWeb
	open, most atomic.Int64
}

func (w *counted) Fetch(ctx context.Context, r fetch.Request) (*fetch.Result, error) {
	n := w.open.Add(1)
	defer w.open.Add(-1)
	for old := w.most.Load(); n > old && !w.most.CompareAndSwap(old, n); old = w.most.Load() {
	}
	return w.web.Fetch(ctx, r)
}

// addHosts adds n hosts with many pages that take some time each, and returns their seeds.
func (w *fakeWeb) addHosts(kind string, n, pages int, robots, each answer) (seeds []string) {
	for h := range n {
		base := fmt.Sprintf("http://%s%d.example", kind, h)
		w.always(base+"/robots.txt", robots)
		for i := range pages {
			a := each
			if a.class == fetch.Other {
				p := page(fmt.Sprintf("/%d", i*2+1), fmt.Sprintf("/%d", i*2+2))
				a.status, a.body = p.status, p.body
			}
			w.always(fmt.Sprintf("%s/%d", base, i), a)
		}
		seeds = append(seeds, base+"/0")
	}
	return seeds
}

var (
	silent = answer{class: fetch.Timeout, takes: 30 * time.Second}
	dead   = answer{class: fetch.Connect, takes: 10 * time.Second}
	quick  = answer{status: 404}
)

// Hosts that do not answer, or slowly, however many, take no pace from those that have answered; and what
// there is at once has a bound.
func TestNoHostStandsInTheWay(t *testing.T) {
	const workers = 4
	for name, add := range map[string]func(w *fakeWeb) []string{
		"none":         func(*fakeWeb) []string { return nil },
		"silent":       func(w *fakeWeb) []string { return w.addHosts("silent", 50, 1, silent, silent) },
		"dead":         func(w *fakeWeb) []string { return w.addHosts("dead", 50, 1, dead, dead) },
		"slow":         func(w *fakeWeb) []string { return w.addHosts("slow", 50, 51, quick, answer{takes: time.Minute}) },
		"silent later": func(w *fakeWeb) []string { return w.addHosts("later", 50, 1, quick, silent) },
		"slow later": func(w *fakeWeb) []string {
			seeds := w.addHosts("later", 30, 1, quick, answer{takes: 10 * time.Millisecond})
			for h := range seeds {
				w.always(fmt.Sprintf("http://later%d.example/1", h), answer{status: 200, takes: time.Minute})
			}
			return seeds
		},
		"beyond places": func(w *fakeWeb) []string { return w.addHosts("silent", 500, 1, silent, silent) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				web := newWeb()
				honest := web.addHosts("honest", 5, 1000, quick, answer{takes: 100 * time.Millisecond})
				w := &counted{web: web}
				var log bytes.Buffer
				var pages, most atomic.Int64
				f := openFrontier(t, frontier.Options{Delay: frontier.FixedDelay(100 * time.Millisecond)})
				c := newCrawler(t, f, web, Options{
					Workers: workers, Fetcher: w, Logger: slog.New(slog.NewTextHandler(&log, nil)),
					OnPage: func(context.Context, *Page) error {
						n := pages.Add(1)
						defer pages.Add(-1)
						most.Store(max(most.Load(), n))
						time.Sleep(time.Millisecond)
						return nil
					},
				})
				others := add(web)
				_, err := c.Seed(t.Context(), append(others[:len(others)/10], honest...)...)
				require.NoError(t, err)
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
				defer cancel()
				time.AfterFunc(time.Second, func() {
					_, err := c.Seed(ctx, others[len(others)/10:]...)
					assert.NoError(t, err)
				})
				require.ErrorIs(t, c.Run(ctx), context.DeadlineExceeded)
				assert.GreaterOrEqual(t, len(web.requests("http://honest")), 2700, "3,000 are due; log:\n%s", &log)
				assert.NotContains(t, log.String(), "network seems to be away")
				assert.LessOrEqual(t, w.most.Load(), int64(workers+workers*placesEach))
				assert.LessOrEqual(t, most.Load(), int64(workers), "pages that are processed")
				warned := strings.Count(log.String(), "many hosts do not answer")
				if name == "beyond places" {
					assert.Greater(t, w.most.Load(), int64(workers*placesEach/2))
					assert.Contains(t, []int{1, 2}, warned, "in two minutes")
				} else {
					assert.Zero(t, warned)
				}
				assert.Zero(t, len(c.crew.places)+len(c.crew.large)+len(c.crew.desks), "places left")
				assert.Zero(t, c.Progress().Busy)
			})
		})
	}
}

// One worker makes one contact after the other, whatever the hosts do.
func TestOneWorkerContactsOneHostAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := newWeb()
		seeds := append(web.addHosts("honest", 3, 20, quick, answer{takes: 2 * time.Second}), web.addHosts("silent", 3, 1, silent, silent)...)
		w := &counted{web: web}
		f := openFrontier(t, frontier.Options{Delay: frontier.FixedDelay(100 * time.Millisecond)})
		c := newCrawler(t, f, web, Options{Workers: 1, Fetcher: w})
		_, err := c.Seed(t.Context(), seeds...)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute)
		defer cancel()
		require.ErrorIs(t, c.Run(ctx), context.DeadlineExceeded)
		assert.Greater(t, len(web.requests("http://honest")), 10)
		assert.EqualValues(t, 1, w.most.Load())
	})
}

// Hosts have places in the order of their arrival: none waits longer than those before it hold them.
func TestNewHostsHaveTheirTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := newWeb()
		seeds := web.addHosts("honest", 1, 1000, quick, quick) // else the network would seem to be away
		for i := range 10 {
			seeds = append(seeds, web.addHosts(fmt.Sprintf("silent%d-", i), 30, 1, silent, silent)...)
			seeds = append(seeds, web.addHosts(fmt.Sprintf("new%d-", i), 2, 1, quick, quick)...)
		}
		f := openFrontier(t, frontier.Options{})
		c := newCrawler(t, f, web, Options{Workers: 2})
		_, err := c.Seed(t.Context(), seeds...)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 300*30*time.Second/(2*placesEach*3/4)*12/10)
		defer cancel()
		require.ErrorIs(t, c.Run(ctx), context.DeadlineExceeded)
		hosts := map[string]bool{}
		for _, r := range web.requests("http://") {
			hosts[r.host] = true
		}
		assert.Equal(t, len(seeds), len(hosts))
	})
}

// A place is for the first in line, unless it does not come for it.
func TestLine(t *testing.T) {
	c := newCrew(&Options{Workers: 2, Logger: slog.New(slog.DiscardHandler)})
	now := time.Now()
	assert.Zero(t, c.turn("before", 1, now))
	first, second := c.turn("a", 0, now), c.turn("b", 0, now)
	assert.Greater(t, second, first)
	now = now.Add(second)
	assert.NotZero(t, c.turn("b", 1, now), "it is a's")
	assert.NotZero(t, c.turn("new", 2, now), "one is a's, the other b's")
	assert.Zero(t, c.turn("b", 2, now))
	now = now.Add(lateMost + turnMost)
	assert.Zero(t, c.turn("c", 1, now), "neither a nor new came")
	assert.Zero(t, c.line.Len()+len(c.in))

	for i := range lineMost {
		c.turn(fmt.Sprint(i), 0, now)
	}
	assert.Equal(t, turnMost, c.turn("beyond", 0, now))
	assert.Equal(t, lineMost, c.line.Len())
}

// A failure that takes no time takes no place from a host that answers.
func TestPromptFailureNeedsNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := newWeb()
		seeds := web.addHosts("honest", 2, 1000, quick, quick)
		web.pages[seeds[0]] = func(n int) answer {
			if n == 1 {
				return answer{class: fetch.Connect}
			}
			return quick
		}
		silent := web.addHosts("silent", 300, 1, silent, silent)
		f := openFrontier(t, frontier.Options{Backoff: frontier.Backoff{Base: time.Second}, Retry: frontier.Retries(2, time.Second)})
		c := newCrawler(t, f, web, Options{Workers: 2})
		_, err := c.Seed(t.Context(), seeds...)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		time.AfterFunc(time.Second/2, func() {
			_, err := c.Seed(ctx, silent...)
			assert.NoError(t, err)
		})
		require.ErrorIs(t, c.Run(ctx), context.DeadlineExceeded)
		assert.Equal(t, 2, web.asks[seeds[0]])
	})
}

// Bodies that are not small are held by as many fetches as without the waiting ones.
func TestLargeBodiesOfSlowHosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := newWeb()
		seeds := web.addHosts("large", 40, 1, quick, answer{takes: 30 * time.Second})
		var open, most atomic.Int64
		f := openFrontier(t, frontier.Options{})
		c := newCrawler(t, f, web, Options{Workers: 2, Fetcher: fetcherFunc(func(ctx context.Context, r fetch.Request) (*fetch.Result, error) {
			if isRobots(r.URL) {
				return web.Fetch(ctx, r)
			}
			time.Sleep(2 * time.Second)
			r.Large()
			n := open.Add(1)
			defer open.Add(-1)
			most.Store(max(most.Load(), n))
			return web.Fetch(ctx, r)
		})})
		_, err := c.Seed(t.Context(), seeds...)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		_ = c.Run(ctx)
		assert.LessOrEqual(t, most.Load(), int64(4), "two of workers, two without")
		for _, url := range seeds {
			assert.Equal(t, 1, web.asks[url])
		}
	})
}
