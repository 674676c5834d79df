// Package site is a few pages on loopback for the recipes of the cookbook.
package site

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"

	"github.com/seed-7440039f/frontier/crawler/fetch"
)

// Pages are HTML pages by their URLs, http://HOST/PATH. What they have not is
// answered with 404, robots.txt too.
type Pages map[string]string

// Links is a page with nothing but links.
func Links(urls ...string) (page string) {
	for _, u := range urls {
		page += fmt.Sprintf("<a href=%q>link</a>\n", u)
	}
	return page
}

// Web serves pages until it is closed.
type Web struct{ server *httptest.Server }

// Start serves pages on a free port of the loopback interface. asked, if it is
// not nil, may answer instead: it gets the URL of each request.
func Start(pages Pages, asked func(url string) (page string, ok bool)) *Web {
	return &Web{httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		url := "http://" + r.Host + r.URL.Path
		page, ok := pages[url]
		if asked != nil {
			if other, instead := asked(url); instead {
				page, ok = other, true
			}
		}
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(w, page)
	}))}
}

// Close ends the server.
func (w *Web) Close() { w.server.Close() }

// Transport contacts the web whatever the host, for an HTTP client.
func (w *Web) Transport() *http.Transport {
	return &http.Transport{DisableKeepAlives: true, DialContext: w.dial}
}

func (w *Web) dial(ctx context.Context, network, _ string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, network, w.server.Listener.Addr().String())
}

// Fetcher contacts the web whatever the host: yours is the crawler's own.
func (w *Web) Fetcher() *fetch.Fetcher {
	f, err := fetch.New(fetch.Options{
		Networks: fetch.Networks{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}},
		Dial:     w.dial,
	})
	if err != nil {
		panic(err) // the options are right
	}
	return f
}
