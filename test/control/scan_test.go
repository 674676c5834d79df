package control

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/internal/hook"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/test/harness"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// scanned are the URLs that Scan yields. None comes twice, and a scope has those of its hosts or crawl.
func scanned(tb testing.TB, f *frontier.Frontier) map[string]inspect.StoredURL {
	all := scannedOf(tb, f, scope.All())
	require.Equal(tb, all, scannedOf(tb, f, scope.Domain("example")))
	of := map[scope.Scope]map[string]inspect.StoredURL{scope.Host("h2.example"): {}, scope.Domain("h3.example"): {}, scope.Crawl(1): {}}
	for url, u := range all {
		for s, some := range of {
			if s == scope.Host(u.Host) || s == scope.Domain(u.Host) || s == scope.Crawl(u.Entry.Crawl) {
				some[url] = u
			}
		}
	}
	for s, want := range of {
		require.Equal(tb, want, scannedOf(tb, f, s), "%v", s)
	}
	return all
}

func scannedOf(tb testing.TB, f *frontier.Frontier, s scope.Scope) map[string]inspect.StoredURL {
	all := map[string]inspect.StoredURL{}
	for u, err := range inspect.New(f).Scan(context.Background(), s) {
		require.NoError(tb, err)
		require.NotContains(tb, all, u.Entry.URL)
		all[u.Entry.URL] = u
	}
	return all
}

// Whatever was done, Scan yields what is held and nothing else, and of what waits it
// says the same as URLs.
func TestScanYieldsWhatIsHeld(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		o := frontier.Options{Delay: frontier.FixedDelay(0), Priorities: 2, Retry: frontier.Retries(100, 0)} // no URL is given up
		w := harness.NewWorld(t, o)
		if rapid.Bool().Draw(r, "stored") {
			w = harness.NewStoredWorld(t, o, spill.Options{})
		}
		held := map[string]bool{}
		due := map[string]time.Time{}
		n := 0
		for range rapid.IntRange(1, 60).Draw(r, "steps") {
			switch rapid.IntRange(0, 9).Draw(r, "step") {
			case 0, 1, 2:
				n++
				e := frontier.Entry{URL: fmt.Sprintf("http://h%d.example/%d", n%5, n), Depth: n % 2, Crawl: uint32(n % 3), Meta: []byte{byte(n)}}
				if rapid.Bool().Draw(r, "later") {
					e.NotBefore = w.Clock.Now().Add(time.Duration(rapid.IntRange(1, 10_000_000).Draw(r, "in")) * time.Second).UTC()
					due[e.URL] = e.NotBefore
				}
				_, err := w.F.Add(context.Background(), e)
				require.NoError(t, err)
				held[e.URL] = true
			case 3, 4, 5:
				l, _, err := w.F.TryNext()
				if err != nil {
					continue
				}
				switch rapid.IntRange(0, 2).Draw(r, "end") {
				case 0:
					require.NoError(t, w.F.Done(l, frontier.Outcome{Result: frontier.Changed}))
					delete(held, l.Entry.URL)
				case 1:
					due[l.Entry.URL] = w.Clock.Now().Add(time.Hour).UTC()
					require.NoError(t, w.F.Done(l, frontier.Outcome{Result: frontier.PutOff, Next: due[l.Entry.URL]}))
				}
			case 6:
				host := fmt.Sprintf("h%d.example", rapid.IntRange(0, 4).Draw(r, "host"))
				_, err := w.F.Delete(context.Background(), scope.Host(host))
				require.NoError(t, err)
				for u := range held {
					if name, _ := frontier.HostName(u); name == host {
						delete(held, u)
					}
				}
			case 7:
				if w.Machine != nil {
					require.NoError(t, hook.Of(w.F).MoveNow(rapid.Bool().Draw(r, "evict")))
				}
			case 8:
				w.Clock.Advance(time.Duration(rapid.IntRange(1, 10_000).Draw(r, "seconds")) * time.Second)
			}
		}
		w.F.Stats() // leases that ended are known by now
		require.NoError(t, hook.Of(w.F).CommitNow())
		got := scanned(t, w.F)
		require.Len(t, got, len(held))
		for url := range held {
			u, ok := got[url]
			require.True(t, ok, url)
			host, _ := frontier.HostName(url)
			require.Equal(t, host, u.Host)
			if !u.Entry.NotBefore.IsZero() {
				require.True(t, u.Entry.NotBefore.Equal(due[url]), "%s: %v, not %v", url, u.Entry.NotBefore, due[url])
			}
		}
		for u, err := range inspect.New(w.F).URLs(context.Background(), scope.All(), "") {
			require.NoError(t, err)
			s := got[u.Entry.URL]
			s.Entry.NotBefore = time.Time{}
			require.Equal(t, inspect.StoredURL{Entry: u.Entry, Host: u.Host, Priority: u.Priority, Attempt: u.Attempt, History: u.History}, s)
		}
	})
}

func TestScanEnds(t *testing.T) {
	harness.InBothWorlds(t, frontier.Options{}, func(t *testing.T, w *harness.World) {
		require.Empty(t, scanned(t, w.F))
		w.Add(harness.UrlsOf("a.example", 1000)...)
		n := 0
		for _, err := range inspect.New(w.F).Scan(t.Context(), scope.All()) { // its caller has seen enough
			require.NoError(t, err)
			if n++; n == 300 {
				break
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var last error
		for _, err := range inspect.New(w.F).Scan(ctx, scope.All()) {
			cancel()
			last = err
		}
		require.ErrorIs(t, last, context.Canceled)
		require.Len(t, scanned(t, w.F), 1000)
	})
}
