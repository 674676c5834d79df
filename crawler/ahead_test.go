// These tests look names up before they are needed.

package crawler

import (
	"context"
	"flag"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/dns/dnsmessage"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler/dns"
	"github.com/seed-7440039f/frontier/crawler/fetch"
)

var long = flag.Bool("frontier.long", false, "run the measurements")

func TestNamesAreToldAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb()
		var seeds, want []string
		for i := range 5 {
			host := fmt.Sprintf("h%d.example", i)
			w.always("http://"+host+":81/", page())
			seeds, want = append(seeds, "http://"+host+":81/"), append(want, host)
		}
		var mu sync.Mutex
		told := map[string]int{}
		crawl(t, w, frontier.Options{}, Options{Workers: 2, Prefetch: func(host string) {
			mu.Lock()
			defer mu.Unlock()
			told[host]++
		}}, seeds...)
		var got []string
		for host := range told {
			got = append(got, host)
		}
		slices.Sort(got)
		assert.Equal(t, want, got)
	})
}

// nameServer answers that every name is on loopback, after a while.
func nameServer(t *testing.T, takes time.Duration) string {
	t.Helper()
	c, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	var wg sync.WaitGroup
	wg.Go(func() {
		buf := make([]byte, 1500)
		for {
			n, from, err := c.ReadFrom(buf)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(buf[:n]) != nil {
				continue
			}
			q := m.Questions[0]
			m.Response, m.Additionals = true, nil
			m.Answers = []dnsmessage.Resource{{Header: dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, TTL: 300}, Body: &dnsmessage.AResource{A: [4]byte{127, 0, 0, 1}}}}
			out, err := m.Pack()
			if err != nil {
				continue
			}
			wg.Go(func() {
				time.Sleep(takes)
				_, _ = c.WriteTo(out, from)
			})
		}
	})
	t.Cleanup(func() { c.Close(); wg.Wait() })
	return c.LocalAddr().String()
}

// TestShareOfNames measures the share of their time that workers wait for names, as Mercator's authors
// did: go test -run ShareOfNames -v ./crawler -frontier.long
func TestShareOfNames(t *testing.T) {
	hosts, pages := 20, 2
	if *long {
		hosts, pages = 400, 4
	}
	s := listen(t, func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(20 * time.Millisecond)
		w.Header().Set("Content-Type", "text/html")
		if r.URL.Path == "/" {
			for i := range pages - 1 {
				fmt.Fprintf(w, "<a href=/%d>x</a>", i)
			}
		}
	})
	_, port, err := net.SplitHostPort(s.addr)
	require.NoError(t, err)
	server := nameServer(t, 60*time.Millisecond)
	for _, c := range []struct {
		name         string
		cache, ahead bool
	}{{"asked for each request", false, false}, {"cache", true, false}, {"cache, looked up ahead", true, true}} {
		names, err := dns.New(dns.Options{Servers: []string{server}, NoIPv6: true})
		require.NoError(t, err)
		lookup := names.Lookup
		if !c.cache {
			lookup = func(ctx context.Context, host string) ([]netip.Addr, error) {
				fresh, err := dns.New(dns.Options{Servers: []string{server}, NoIPv6: true})
				require.NoError(t, err)
				defer fresh.Close()
				return fresh.Lookup(ctx, host)
			}
		}
		fetcher, err := fetch.New(fetch.Options{Lookup: lookup, NoKeepAlive: true, Networks: fetch.Networks{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}})
		require.NoError(t, err)
		o := Options{Workers: 16, Groups: Groups{Off: true}}
		if c.ahead {
			o.Prefetch = names.Prefetch
		}
		f := openFrontier(t, frontier.Options{Delay: frontier.FixedDelay(200 * time.Millisecond)})
		crawler := newCrawler(t, f, fetcher, o)
		for i := range hosts {
			_, err := crawler.Seed(t.Context(), fmt.Sprintf("http://h%d.example:%s/", i, port))
			require.NoError(t, err)
		}
		require.NoError(t, crawler.Run(t.Context()))
		if c.cache {
			assert.EqualValues(t, hosts, names.Stats().Queries, "each name is asked for once")
		}
		names.Close()
		p := crawler.Progress()
		require.EqualValues(t, hosts*pages, p.Pages)
		t.Logf("%-24s names take %4.1f %% of the workers' time; %v in all", c.name, 100*share(p.Lookup, p.Fetching), p.Elapsed.Round(time.Millisecond))
	}
}
