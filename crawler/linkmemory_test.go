package crawler

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler/fetch"
	"github.com/seed-7440039f/frontier/crawler/link"
	"github.com/seed-7440039f/frontier/crawler/spool"
)

// longLinks is a page whose short links have long URLs, because of its base.
func longLinks(host string, links int) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<base href="http://%s/%s/">`, host, strings.Repeat("a", 3900))
	for i := range links {
		fmt.Fprintf(&b, `<a href="%d">`, i)
	}
	return b.String()
}

// Sixteen workers hold such pages at once, as a handler does that takes its time; an honest host
// beside them has all of its pages fetched meanwhile.
func TestLinksOfAllPagesShareMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb()
		w.always("http://honest.example/", answer{status: 200, body: `<a href=/1><a href=/2><a href=/3>`})
		for i := range 3 {
			w.always(fmt.Sprintf("http://honest.example/%d", i+1), answer{status: 200, body: `<a href=/>`})
		}
		seeds := []string{"http://honest.example/"}
		for i := range 32 {
			host := fmt.Sprintf("a%d.example", i)
			w.always("http://"+host+"/", answer{status: 200, body: longLinks(host, 2000)})
			seeds = append(seeds, "http://"+host+"/")
		}
		var mu sync.Mutex
		now, most, pages := 0, 0, 0
		honest := time.Duration(0)
		began := time.Now()
		p := crawl(t, w, frontier.Options{Delay: frontier.FixedDelay(time.Second)}, Options{
			Workers: 32, Scope: Scope{MaxDepth: 1, MaxURL: 3000},
			OnPage: func(_ context.Context, p *Page) error {
				n := 0
				if p.Doc != nil {
					for _, l := range p.Doc.Links {
						n += len(l.URL)
					}
				}
				mu.Lock()
				now += n
				most, pages = max(most, now), pages+1
				mu.Unlock()
				if n > 1000 {
					time.Sleep(10 * time.Second)
				} else if strings.HasPrefix(p.URL, "http://honest.example/") {
					honest = time.Since(began)
				}
				mu.Lock()
				now -= n
				mu.Unlock()
				return nil
			},
		}, seeds...)
		assert.LessOrEqual(t, most, sharedLinks+32*ownLinks, "bytes of URLs")
		assert.Greater(t, most, 32<<20, "they are at work together")
		assert.Equal(t, 32+4, pages, "all are fetched")
		assert.Less(t, honest, 30*time.Second, "the honest host is served at its pace")
		assert.EqualValues(t, p.FilteredBy["page-links"], p.Dropped)
		assert.EqualValues(t, 32*2000+3, p.Dropped+p.FilteredBy["scope"])
	})
}

// No lease ends while its page waits: the page comes again.
func TestAPageThatWaitsForMemoryComesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb()
		w.always(seed, answer{status: 200, body: "<a href=/1>" + strings.Repeat("= ", 10_000)}) // which may be as many links
		f := openFrontier(t, frontier.Options{LeaseTime: 20 * time.Second})
		c := newCrawler(t, f, w, Options{})
		_, err := c.Seed(t.Context(), seed)
		require.NoError(t, err)
		n, err := c.links.acquire(t.Context(), 1<<40, nil)
		require.NoError(t, err)
		require.Equal(t, c.links.size, n, "who needs more than there is gets everything")
		time.AfterFunc(30*time.Second, func() { c.links.release(n) })
		require.NoError(t, c.Run(t.Context()))
		assert.Len(t, w.requests(seed+"1"), 1)
		assert.Greater(t, len(w.requests(seed)), 3, "robots.txt, and the page more than once")
		assert.Zero(t, c.Progress().Frontier.Expired)
		assert.EqualValues(t, 0, c.Progress().Failed)
		assert.Equal(t, c.links.size, c.links.free)
	})
}

// While pages wait for memory, other hosts have their pages fetched by as many workers as always;
// and a page that needs no more than it has does not wait.
func TestPagesThatWaitForMemoryHoldNoWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb()
		f := openFrontier(t, frontier.Options{Delay: frontier.FixedDelay(time.Second)})
		c := newCrawler(t, f, w, Options{Workers: 2})
		for i := range 20 {
			w.always(fmt.Sprintf("http://honest.example/%d", i), answer{status: 200, body: fmt.Sprintf("<a href=/%d>", i+1)})
		}
		seeds := []string{"http://honest.example/0"}
		for i := range 2 {
			seeds = append(seeds, fmt.Sprintf("http://a%d.example/", i))
			w.always(seeds[i+1], answer{status: 200, body: longLinks(fmt.Sprintf("a%d.example", i), 2000)})
		}
		_, err := c.Seed(t.Context(), seeds...)
		require.NoError(t, err)
		n, err := c.links.acquire(t.Context(), 1<<40, nil)
		require.NoError(t, err)
		served := 0
		time.AfterFunc(30*time.Second, func() {
			served = len(w.requests("http://honest.example/"))
			c.links.release(n)
		})
		ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
		defer cancel()
		_ = c.Run(ctx) // cut: the other hosts have pages without end
		assert.Equal(t, 22, served, "robots.txt, 20 pages, and one that is missing")
		assert.Greater(t, len(w.requests("http://a0.example/")), 2, "it goes on when there is memory")
		assert.Equal(t, c.links.size, c.links.free)
	})
}

func TestLinkMemoryIsGivenInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &linkMemory{size: 100, free: 100}
		var order []string
		var mu sync.Mutex
		ask := func(name string, n int64, ctx context.Context) {
			go func() {
				got, err := m.acquire(ctx, n, func() {})
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					name += " gives up"
				}
				order = append(order, fmt.Sprintf("%s %d", name, got))
			}()
			synctest.Wait()
		}
		ctx, cancel := context.WithCancel(t.Context())
		ask("first", 80, ctx)
		ask("large", 1000, ctx)
		ask("small", 10, t.Context())
		assert.Equal(t, []string{"first 80"}, order, "a small one does not overtake")
		cancel()
		synctest.Wait()
		assert.Equal(t, []string{"first 80", "large gives up 0", "small 10"}, order)
		m.release(-30) // what was read is larger than thought
		ask("next", 1, t.Context())
		m.release(80)
		synctest.Wait()
		assert.Equal(t, []string{"first 80", "large gives up 0", "small 10", "next 1"}, order)
		m.release(30 + 10 + 1)
		assert.EqualValues(t, 100, m.free)
		assert.Empty(t, m.waiting)
	})
}

// htmlResult is an answer with a page.
func htmlResult(url, text string) *fetch.Result {
	return &fetch.Result{URL: url, Status: 200, Header: http.Header{"Content-Type": {"text/html"}}, Body: spool.Of([]byte(text))}
}

// What a page may need is not less than what it takes.
func TestNoPageHasMoreLinksThanThought(t *testing.T) {
	c := newCrawler(t, openFrontier(t, frontier.Options{}), newWeb(), Options{Requisites: true})
	for _, text := range []string{
		"", "<a href=x>", "<a href=''>", longLinks("a.example", 5000), strings.Repeat("<a href=x>", 30_000),
		`<img src=a srcset="b 1x,c 2x, d 3x">` + strings.Repeat(`<img srcset="x,y,z">`, 1000), `<style>@import "a";@import 'b'; p { background: url(a), url(b) }</style>`,
		`<meta http-equiv=refresh content="1;url=x"><meta http-equiv="refresh" content="0; y">`, "<body background=x><iframe src=y><object data=z><area href=1><frame src=2>",
		strings.Repeat("<p style='background:url(x)'>", 2000), strings.Repeat("<a\x00 \x00h\x00r\x00e\x00f\x00=\x00x\x00>\x00", 100),
	} {
		p := &Page{Result: htmlResult("http://a.example/"+strings.Repeat("p", 500), text)}
		links, _ := countLinks(p.Body, mayBeLinks)
		var err error
		p.Doc, err = c.opts.Extractor.Extract(p)
		require.NoError(t, err)
		assert.LessOrEqual(t, int64(len(p.Doc.Links)), links+1, "%.60q: with the icon", text)
		p.Add = c.outlinks(frontier.Entry{URL: p.URL}, p.Doc.Links)
		assert.LessOrEqual(t, takes(p), c.mayNeed(p), "%.60q", text)
	}
	file := spool.New(spool.Options{Memory: 1, Dir: t.TempDir()})
	defer file.Close()
	_, err := file.Write([]byte(strings.Repeat("<a href=x>", 20_000)))
	require.NoError(t, err)
	links, base := countLinks(file, mayBeLinks)
	assert.EqualValues(t, 20_000, links)
	assert.True(t, base, "in doubt")
	for text, want := range map[string]bool{"": false, "<bas": false, "base": false, "<<bAsE href=x>": true, "<b\x00a": true} {
		assert.Equal(t, want, mayHaveBase([]byte(text)), text)
	}
	ordinary := &Page{Result: htmlResult("http://a.example/", strings.Repeat("<p class=x>text, and more</p><a href=x>", 900))}
	assert.Less(t, newCrawler(t, openFrontier(t, frontier.Options{}), newWeb(), Options{}).mayNeed(ordinary), int64(ownLinks), "an ordinary page")
	assert.LessOrEqual(t, link.MaxURLs, 4<<20)
}
