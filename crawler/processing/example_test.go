package processing_test

import (
	"context"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler"
	"github.com/seed-7440039f/frontier/crawler/fetch"
	"github.com/seed-7440039f/frontier/crawler/processing"
)

// titles is a processing module: it collects the titles of pages.
type titles struct {
	mu  sync.Mutex
	all map[string]string // guarded by mu
}

func (t *titles) Handle(_ context.Context, p *crawler.Page) error {
	if p.Doc != nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.all[p.URL] = p.Doc.Title
	}
	return nil
}

// A custom module, for HTML only, in addition to the one that counts.
func Example() {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/":
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, "<title>Home</title><a href=/notes.txt>notes</a>")
		case "/notes.txt":
			w.Header().Set("Content-Type", "text/plain")
			fmt.Fprint(w, "notes")
		default:
			http.NotFound(w, r)
		}
	}))
	defer site.Close()
	fetcher, err := fetch.New(fetch.Options{
		Networks: fetch.Networks{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
		Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, site.Listener.Addr().String())
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	f, err := frontier.Open(ctx, frontier.Options{Delay: frontier.FixedDelay(0)})
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	stats, err := processing.OpenStatistics("", processing.StatisticsOptions{}) // in memory
	if err != nil {
		log.Fatal(err)
	}
	defer stats.Close()
	mine := &titles{all: map[string]string{}}
	c, err := crawler.New(f, crawler.Options{
		Fetcher: fetcher,
		OnPage:  processing.Chain(processing.ForTypes(mine.Handle, "text/html"), stats.Handle),
	})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := c.Seed(ctx, "http://a.example/"); err != nil {
		log.Fatal(err)
	}
	if err := c.Run(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println(mine.all)
	fmt.Println(stats.Report().Types["text/plain"].Answers)
	// Output:
	// map[http://a.example/:Home]
	// 1
}
