// These tests crawl hosts that share addresses, in virtual time.

package crawler

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler/fetch"
	"github.com/seed-7440039f/frontier/inspect"
)

// addressedWeb is a fakeWeb whose hosts have addresses; none means that the
// lookup fails.
type addressedWeb struct {
	*fakeWeb
	at map[string][]netip.Addr // by host

	mu      sync.Mutex
	lookups int
	asked   map[string][]netip.Addr // by URL: where
}

func newAddressedWeb(at map[string]string) *addressedWeb {
	w := &addressedWeb{fakeWeb: newWeb(), at: map[string][]netip.Addr{}, asked: map[string][]netip.Addr{}}
	for host, addr := range at {
		w.at[host] = []netip.Addr{netip.MustParseAddr(addr)}
	}
	return w
}

// Addresses implements Addresser.
func (w *addressedWeb) Addresses(_ context.Context, url string) ([]netip.Addr, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lookups++
	if a := w.at[hostOf(siteOf(url))]; len(a) > 0 {
		return a, nil
	}
	return nil, &fetch.Error{URL: url, Class: fetch.DNS}
}

func (w *addressedWeb) Fetch(ctx context.Context, r fetch.Request) (*fetch.Result, error) {
	w.mu.Lock()
	w.asked[r.URL] = append(w.asked[r.URL], append(slices.Clip(r.Addrs), netip.Addr{})[0])
	w.mu.Unlock()
	return w.fakeWeb.Fetch(ctx, r)
}

// site makes a host with the given number of pages, all linked from its first.
func (w *addressedWeb) site(host string, pages int) {
	var links []string
	for i := range pages - 1 {
		links = append(links, fmt.Sprintf("/%d", i))
		w.always(fmt.Sprintf("http://%s/%d", host, i), page())
	}
	w.always("http://"+host+"/", page(links...))
}

// gaps requires that requests to hosts of an address come no closer than d, and
// one at a time. It returns how many there were.
func (w *addressedWeb) gaps(t *testing.T, addr string, d time.Duration) int {
	t.Helper()
	n, last := 0, time.Time{}
	for _, r := range w.requests("") {
		if !slices.Contains(w.at[r.host], netip.MustParseAddr(addr)) {
			continue
		}
		if gap := r.start.Sub(last); n > 0 && gap < d {
			t.Errorf("%s was asked for %v after the last contact with %s", r.url, gap, addr)
		}
		n, last = n+1, r.end
	}
	return n
}

func TestHostsThatShareAnAddressShareItsDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const one, other = "192.0.2.1", "192.0.2.2"
		at, seeds := map[string]string{"x.example": other}, []string{"http://x.example/"}
		for i := range 10 {
			at[fmt.Sprintf("h%d.example", i)] = one
			seeds = append(seeds, fmt.Sprintf("http://h%d.example/", i))
		}
		w := newAddressedWeb(at)
		for host := range at {
			w.site(host, 5)
		}
		fo := frontier.Options{Delay: frontier.FixedDelay(3 * time.Second), GroupDelay: frontier.FixedDelay(time.Second)}
		began := time.Now()
		p := crawl(t, w.fakeWeb, fo, Options{Fetcher: w}, seeds...)
		assert.EqualValues(t, 55, p.Pages)
		assert.Equal(t, 60, w.gaps(t, one, time.Second))
		assert.Equal(t, 6, w.gaps(t, other, 3*time.Second))
		w.checkPolite(t, func(request) time.Duration { return 3 * time.Second })
		assert.Less(t, time.Since(began), 75*time.Second, "60 contacts, a second apart")
		assert.Equal(t, 11, w.lookups, "each host is looked up once")
		for url, addrs := range w.asked {
			for _, a := range addrs {
				assert.Equal(t, w.at[hostOf(siteOf(url))][0], a, "%s", url)
			}
		}
	})
}

// Addresses of one IPv6 network are one machine, unless the options say otherwise.
func TestHostsOfAnIPv6NetworkShareItsDelay(t *testing.T) {
	const hosts, pages = 8, 3
	run := func(t *testing.T, g Groups) (took time.Duration) {
		synctest.Test(t, func(t *testing.T) {
			at, seeds := map[string]string{}, []string(nil)
			for i := range hosts {
				host := fmt.Sprintf("h%d.example", i)
				at[host] = fmt.Sprintf("2001:db8:1:2:%x::%x", i, 7*i+1)
				seeds = append(seeds, "http://"+host+"/")
			}
			w := newAddressedWeb(at)
			for host := range at {
				w.site(host, pages)
			}
			began := time.Now()
			p := crawl(t, w.fakeWeb, frontier.Options{Delay: frontier.FixedDelay(time.Second)}, Options{Fetcher: w, Groups: g}, seeds...)
			took = time.Since(began)
			assert.EqualValues(t, hosts*pages, p.Pages)
			last := time.Time{}
			for _, r := range w.requests("") {
				if took > 20*time.Second {
					assert.GreaterOrEqual(t, r.start.Sub(last), time.Second, "%s", r.url)
				}
				last = r.end
			}
		})
		return took
	}
	assert.Greater(t, run(t, Groups{}), hosts*pages*time.Second, "all of 2001:db8:1:2::/64 are one")
	assert.Less(t, run(t, Groups{IPv6Bits: 128}), 10*time.Second, "each has a clock of its own")
	assert.Less(t, run(t, Groups{IPv6Bits: 80}), 10*time.Second)
}

func TestExemptNetworksMakeNoGroups(t *testing.T) {
	for name, g := range map[string]Groups{
		"exempt": {Exempt: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}},
		"off":    {Off: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newAddressedWeb(map[string]string{"a.example": "192.0.2.1", "b.example": "192.0.2.1"})
				w.site("a.example", 5)
				w.site("b.example", 5)
				began := time.Now()
				crawl(t, w.fakeWeb, frontier.Options{}, Options{Fetcher: w, Groups: g}, "http://a.example/", "http://b.example/")
				assert.Less(t, time.Since(began), 6*time.Second, "side by side")
				w.checkPolite(t, fixedOwed)
			})
		})
	}
}

func TestAddressMayBeContactedSeveralTimesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newAddressedWeb(map[string]string{"a.example": "192.0.2.1", "b.example": "192.0.2.1", "c.example": "192.0.2.1", "x.example": "192.0.2.2", "y.example": "192.0.2.2"})
		var seeds []string
		for host := range w.at {
			w.site(host, 9)
			seeds = append(seeds, "http://"+host+"/")
		}
		f := openFrontier(t, frontier.Options{})
		require.NoError(t, f.SetGroup("192.0.2.2", frontier.GroupSettings{Concurrency: 1}), "an operator's word")
		c := newCrawler(t, f, w.fakeWeb, Options{Fetcher: w, Groups: Groups{Concurrency: 2}})
		_, err := c.Seed(t.Context(), seeds...)
		require.NoError(t, err)
		began := time.Now()
		require.NoError(t, c.Run(t.Context()))
		w.checkPolite(t, fixedOwed)
		assert.Equal(t, 20, w.gaps(t, "192.0.2.2", testDelay))
		took := time.Since(began)
		assert.Less(t, took, 23*time.Second, "30 contacts of three hosts, two at a time, beside 20 of two, one at a time")
		g, ok := inspect.New(f).Group("192.0.2.1")
		require.True(t, ok)
		assert.Equal(t, frontier.GroupSettings{Concurrency: 2}, g.Settings)
	})
}

// A host that an operator assigned to a group is not moved to its address's.
func TestAssignedHostStaysInItsGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newAddressedWeb(map[string]string{"a.example": "192.0.2.1", "b.example": "192.0.2.1"})
		w.site("a.example", 5)
		w.site("b.example", 5)
		f := openFrontier(t, frontier.Options{})
		require.NoError(t, f.Assign("a.example", "friends"))
		var groups []string
		c := newCrawler(t, f, w.fakeWeb, Options{Fetcher: w, OnPage: func(_ context.Context, p *Page) error {
			groups = append(groups, p.Lease.Host+" "+p.Lease.Group)
			return nil
		}, Workers: 1})
		_, err := c.Seed(t.Context(), "http://a.example/", "http://b.example/")
		require.NoError(t, err)
		require.NoError(t, c.Run(t.Context()))
		require.Len(t, groups, 10)
		for _, g := range groups {
			assert.Contains(t, []string{"a.example friends", "b.example 192.0.2.1"}, g)
		}
	})
}

func TestHostWithoutAnAddressFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newAddressedWeb(map[string]string{"a.example": "192.0.2.1"})
		w.site("a.example", 3)
		fo := frontier.Options{Quarantine: frontier.Quarantine{After: 3, Probes: 1}}
		p := crawl(t, w.fakeWeb, fo, Options{Fetcher: w}, "http://a.example/", "http://gone.example/")
		assert.EqualValues(t, 3, p.Pages)
		assert.EqualValues(t, 1, p.Frontier.GivenUp, "robots.txt cannot be had")
		assert.EqualValues(t, 4, p.Frontier.Done[frontier.Failed], "it was asked for three times, and in quarantine once")
		assert.Empty(t, w.requests("http://gone.example"))
	})
}

func TestNextAddressAfterOneThatDoesNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newAddressedWeb(nil)
		first, second := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
		w.at["a.example"] = []netip.Addr{first, second}
		w.always("http://a.example/robots.txt", answer{status: 404})
		w.pages["http://a.example/"] = func(n int) answer {
			if n == 1 {
				return answer{class: fetch.Connect}
			}
			return page()
		}
		p := crawl(t, w.fakeWeb, frontier.Options{}, Options{Fetcher: w}, "http://a.example/")
		assert.EqualValues(t, 1, p.Pages)
		assert.Equal(t, []netip.Addr{first, second}, w.asked["http://a.example/"])
	})
}

// A robots.txt that redirects to a host of a busy address waits for that.
func TestRobotsOfAnotherHostWaitsForItsAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const busy = "192.0.2.9"
		w := newAddressedWeb(map[string]string{"a.example": "192.0.2.1", "b.example": busy, "c.example": busy})
		w.site("a.example", 2)
		w.site("c.example", 4)
		w.always("http://a.example/robots.txt", answer{status: 301, location: "http://b.example/robots.txt"})
		w.always("http://b.example/robots.txt", text("User-agent: *\nDisallow: /0\n"))
		fo := frontier.Options{GroupDelay: frontier.FixedDelay(10 * time.Second)}
		p := crawl(t, w.fakeWeb, fo, Options{Fetcher: w}, "http://c.example/", "http://a.example/")
		assert.EqualValues(t, 5, p.Pages)
		assert.EqualValues(t, 1, p.Denied)
		assert.Equal(t, 6, w.gaps(t, busy, 10*time.Second))
	})
}

func TestFailureOf(t *testing.T) {
	of := func(c fetch.Class) error { return &fetch.Error{Class: c} }
	for _, x := range []struct {
		status int
		err    error
		want   frontier.Failure
	}{
		{429, nil, frontier.FailureTooMany}, {503, nil, frontier.FailureUnavailable}, {500, nil, frontier.FailureServer},
		{599, nil, frontier.FailureServer}, {408, nil, frontier.FailureTimeout}, {425, nil, frontier.FailureOther},
		{503, of(fetch.Cut), frontier.FailureUnavailable}, {429, of(fetch.Decode), frontier.FailureTooMany},
		{0, of(fetch.DNS), frontier.FailureDNS}, {0, of(fetch.Connect), frontier.FailureConnect}, {0, of(fetch.TLS), frontier.FailureConnect},
		{0, of(fetch.Cut), frontier.FailureConnect}, {200, of(fetch.Cut), frontier.FailureOther},
		{0, of(fetch.Timeout), frontier.FailureTimeout}, {200, of(fetch.Timeout), frontier.FailureTimeout},
		{0, of(fetch.Protocol), frontier.FailureOther}, {200, of(fetch.Decode), frontier.FailureOther},
	} {
		assert.Equal(t, x.want, failureOf(&fetch.Result{Status: x.status}, x.err), "%d, %v", x.status, x.err)
	}
}

func TestFailuresAreToldToTheFrontier(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb()
		w.always("http://a.example/robots.txt", answer{status: 404})
		w.always("http://a.example/", answer{status: 429})
		var kinds []frontier.Failure
		crawl(t, w, frontier.Options{Retry: frontier.Retries(2, time.Second)}, Options{
			OnDone: func(_ frontier.Lease, o frontier.Outcome) {
				if o.Result == frontier.Failed {
					kinds = append(kinds, o.Failure)
				}
			},
		}, "http://a.example/")
		require.Equal(t, []frontier.Failure{frontier.FailureTooMany, frontier.FailureTooMany}, kinds)
	})
}

// someSilent is an addressedWeb whose dead addresses accept no connection.
type someSilent struct {
	*addressedWeb
	dead map[netip.Addr]bool

	tries map[netip.Addr]int // guarded by mu
}

// Fetch implements Fetcher as fetch.Fetcher does.
func (w *someSilent) Fetch(ctx context.Context, r fetch.Request) (*fetch.Result, error) {
	var failed []netip.Addr
	fail := func(err error) (*fetch.Result, error) {
		now := time.Now()
		return &fetch.Result{URL: r.URL, Started: now, Ended: now, Failed: failed}, err
	}
	for i, a := range r.Addrs {
		if i > 0 {
			if err := r.Contact(a); err != nil {
				return fail(&fetch.Error{URL: r.URL, Err: err})
			}
		}
		w.mu.Lock()
		w.tries[a]++
		w.mu.Unlock()
		if w.dead[a] {
			failed = append(failed, a)
			continue
		}
		r.Addrs = r.Addrs[i:]
		res, err := w.addressedWeb.Fetch(ctx, r)
		res.Remote, res.Failed = netip.AddrPortFrom(a, 80), failed
		return res, err
	}
	return fail(&fetch.Error{URL: r.URL, Class: fetch.Connect})
}

// gapsAt requires that contacts with the address that was really asked come no
// closer than d.
func (w *someSilent) gapsAt(t *testing.T, addr netip.Addr, d time.Duration) (n int) {
	t.Helper()
	last := time.Time{}
	at := map[string]int{}
	for _, r := range w.requests("") {
		where := w.asked[r.url][at[r.url]]
		at[r.url]++
		if where != addr {
			continue
		}
		if gap := r.start.Sub(last); n > 0 && gap < d {
			t.Errorf("%s was asked for %v after the last contact with %s", r.url, gap, addr)
		}
		n, last = n+1, r.end
	}
	return n
}

// A host's second address is shared with others: it is polite to them together, and
// nothing fails because the first does not answer.
func TestTheAddressThatAnswersIsTheOneToBePoliteTo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dead, shared := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
		w := &someSilent{addressedWeb: newAddressedWeb(nil), dead: map[netip.Addr]bool{dead: true}, tries: map[netip.Addr]int{}}
		w.at["b.example"], w.at["c.example"] = []netip.Addr{shared}, []netip.Addr{shared}
		var seeds []string
		for i := range 5 {
			host := fmt.Sprintf("a%d.example", i)
			w.at[host] = []netip.Addr{dead, shared}
		}
		for host := range w.at {
			w.site(host, 6)
			seeds = append(seeds, "http://"+host+"/")
		}
		fo := frontier.Options{GroupDelay: frontier.FixedDelay(3 * time.Second)}
		p := crawl(t, w.fakeWeb, fo, Options{Fetcher: w}, seeds...)
		assert.EqualValues(t, 42, p.Pages)
		assert.Zero(t, p.Frontier.Done[frontier.Failed], "all addresses are tried within an attempt")
		assert.Zero(t, p.Unreachable)
		assert.Equal(t, 49, w.gapsAt(t, shared, 3*time.Second))
		assert.LessOrEqual(t, w.tries[dead], 10, "which address answers is remembered")
	})
}

// Two dead addresses that others keep busy end in a failure, not in hand-backs without end.
func TestNoAddressAnswersAndEachIsBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, two := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
		w := &someSilent{addressedWeb: newAddressedWeb(nil), dead: map[netip.Addr]bool{}, tries: map[netip.Addr]int{}}
		d1, d2 := one.Next().Next(), two.Next().Next()
		w.dead[d1], w.dead[d2] = true, true
		w.at["dead.example"] = []netip.Addr{d1, d2}
		w.at["x.example"], w.at["y.example"] = []netip.Addr{d1}, []netip.Addr{d2} // they keep both busy
		w.site("dead.example", 1)
		fo := frontier.Options{GroupDelay: frontier.FixedDelay(20 * time.Second), Retry: frontier.Retries(2, time.Second), Quarantine: frontier.Quarantine{After: 2, Probes: 1}}
		w.at["z.example"] = []netip.Addr{two.Prev().Prev().Prev().Prev()} // the network is there
		w.site("z.example", 1)
		p := crawl(t, w.fakeWeb, fo, Options{Fetcher: w}, "http://z.example/", "http://dead.example/", "http://x.example/", "http://y.example/")
		assert.EqualValues(t, 1, p.Pages)
		assert.LessOrEqual(t, w.tries[d1]+w.tries[d2], 20)
	})
}
