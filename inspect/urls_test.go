package inspect_test

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/internal/hook"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/selector"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/test/harness"
)

func TestURLsListsWhatWaits(t *testing.T) {
	harness.InBothWorlds(t, frontier.Options{Priorities: 3, Delay: frontier.FixedDelay(0)}, func(t *testing.T, w *harness.World) {
		add := func(e frontier.Entry) {
			_, err := w.F.Add(context.Background(), e)
			require.NoError(t, err)
		}
		add(frontier.Entry{URL: "http://b.example/1", Depth: 2, Weight: 3, Meta: []byte("meta"), Crawl: 7})
		add(frontier.Entry{URL: "http://b.example/2"})
		add(frontier.Entry{URL: "http://b.example/later", NotBefore: harness.Dawn.Add(time.Hour)})
		add(frontier.Entry{URL: "http://www.a.example/"})
		add(frontier.Entry{URL: "http://a.example/"})
		for range 2 {
			require.Equal(t, []string{"http://a.example/", "http://www.a.example/", "http://b.example/1", "http://b.example/2"}, w.Listed(scope.All(), ""))
			require.Equal(t, []string{"http://a.example/", "http://www.a.example/"}, w.Listed(scope.Domain("a.example"), ""))
			require.Equal(t, []string{"http://a.example/"}, w.Listed(scope.Host("a.example"), ""))
			require.Empty(t, w.Listed(scope.Host("nobody.example"), ""))
			if w.Machine != nil {
				require.NoError(t, hook.Of(w.F).MoveNow(true))
			}
		}
		for u, err := range inspect.New(w.F).URLs(context.Background(), scope.Host("b.example"), "") {
			require.NoError(t, err)
			require.Equal(t, frontier.Entry{URL: "http://b.example/1", Depth: 2, Weight: 3, Meta: []byte("meta"), Crawl: 7}, u.Entry)
			require.Equal(t, "b.example", u.Host)
			require.Equal(t, 1, u.Priority)
			require.Equal(t, 1, u.Attempt)
			require.Equal(t, []string{"http://b.example/2"}, w.Listed(scope.All(), u.Cursor()))
			require.Empty(t, w.Listed(scope.Host("a.example"), u.Cursor()))
			break
		}
		l := w.Next()
		require.NotContains(t, w.Listed(scope.All(), ""), l.Entry.URL, "a leased one does not wait")
	})
}

func TestURLsErrors(t *testing.T) {
	w := harness.NewWorld(t, frontier.Options{})
	w.Add("http://a.example/")
	first := func(ctx context.Context, after string) error {
		for _, err := range inspect.New(w.F).URLs(ctx, scope.All(), after) {
			return err
		}
		return nil
	}
	for _, bad := range []string{"!", "AA", "AAA!", "____________________", "GARBAGE"} {
		require.ErrorContains(t, first(context.Background(), bad), "malformed cursor", bad)
	}
	for _, err := range inspect.New(w.F).URLs(context.Background(), scope.Host(""), "") {
		require.ErrorContains(t, err, "scope")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	require.ErrorIs(t, first(ctx, ""), context.Canceled)
	require.NoError(t, w.F.Close())
	require.ErrorIs(t, first(context.Background(), ""), frontier.ErrClosed)
}

// Pages of a listing, while others add, take, finish, fail, move and restart: what
// waits all the while comes exactly once, and in one order.
func TestURLsIsStable(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		o := frontier.Options{Priorities: 3, Delay: frontier.FixedDelay(0), Selector: selector.BiasedRandom(1)}
		var w *harness.World
		if stored := rapid.Bool().Draw(r, "stored"); stored {
			w = harness.NewStoredWorld(t, o, spill.Options{})
		} else {
			w = harness.NewWorld(t, o)
		}
		waits := map[string]bool{}
		url := 0
		add := func(n int) {
			var es []frontier.Entry
			for range n {
				url++
				h := rapid.IntRange(0, 3).Draw(r, "host")
				e := frontier.Entry{URL: fmt.Sprintf("http://h%d.example/%d", h, url), Depth: rapid.IntRange(0, 2).Draw(r, "depth"), Crawl: uint32(rapid.IntRange(0, 1).Draw(r, "crawl"))}
				if rapid.IntRange(0, 5).Draw(r, "later") == 0 {
					e.NotBefore = w.Clock.Now().Add(time.Duration(rapid.IntRange(1, 20).Draw(r, "wait")) * time.Second)
				} else {
					waits[e.URL] = true
				}
				es = append(es, e)
			}
			_, err := w.F.Add(context.Background(), es...)
			require.NoError(t, err)
		}
		var out []frontier.Lease
		step := func() {
			switch rapid.IntRange(0, 8).Draw(r, "step") {
			case 0, 1:
				add(rapid.IntRange(1, 80).Draw(r, "n"))
			case 2, 3:
				if l, _, err := w.TryNext(); err == nil {
					delete(waits, l.Entry.URL)
					out = append(out, l)
				}
			case 4:
				if len(out) > 0 {
					res := rapid.SampledFrom([]frontier.Result{frontier.Visited, frontier.Failed, frontier.Requeue}).Draw(r, "result")
					require.NoError(t, w.F.Done(out[0], frontier.Outcome{Result: res}))
					out = out[1:]
				}
			case 5, 6:
				if w.Machine != nil {
					require.NoError(t, hook.Of(w.F).MoveNow(rapid.Bool().Draw(r, "evict")))
				}
			case 7:
				w.Clock.Advance(time.Duration(rapid.IntRange(1, 10).Draw(r, "pass")) * time.Second)
				w.F.Stats()
			default:
				if w.Machine == nil {
					return
				}
				if rapid.Bool().Draw(r, "kill") {
					w, out = w.Killed(), nil
				} else {
					for _, l := range out {
						require.NoError(t, w.F.Done(l, frontier.Outcome{}))
					}
					out = nil
					w.Reopen()
				}
			}
		}
		for range rapid.IntRange(1, 10).Draw(r, "before") {
			step()
		}
		always := map[string]bool{}
		for u := range waits {
			always[u] = true
		}
		counts := map[string]int{}
		var hosts []string
		cursor := ""
		for more := true; more; {
			more = false
			n := rapid.IntRange(1, 40).Draw(r, "page")
			for u, err := range inspect.New(w.F).URLs(context.Background(), scope.All(), cursor) {
				require.NoError(t, err)
				counts[u.Entry.URL]++
				hosts = append(hosts, u.Host)
				cursor = u.Cursor()
				if n--; n == 0 {
					more = true
					break
				}
			}
			step()
		}
		require.True(t, sort.StringsAreSorted(hosts))
		for u := range always {
			if waits[u] {
				require.Equal(t, 1, counts[u], u)
			}
		}
	})
}

// A host with many URLs is listed whole, from pages and at once, while workers take
// from it.
func TestURLsOfALargeHost(t *testing.T) {
	w := harness.NewStoredWorld(t, frontier.Options{Priorities: 2, Delay: frontier.FixedDelay(0)}, spill.Options{})
	const n = 5000
	var es []frontier.Entry
	for i := range n {
		es = append(es, frontier.Entry{URL: fmt.Sprintf("http://a.example/%d", i), Depth: i % 2})
	}
	for _, part := range [][]frontier.Entry{es[:2000], es[2000:4000], es[4000:]} {
		_, err := w.F.Add(context.Background(), part...)
		require.NoError(t, err)
		if len(part) == 2000 {
			require.NoError(t, hook.Of(w.F).MoveNow(true))
		}
	}
	taken := map[string]bool{}
	for range 3 {
		seen, cursor, order := map[string]bool{}, "", -1
		for done := false; !done; {
			done = true
			page := 0
			for u, err := range inspect.New(w.F).URLs(context.Background(), scope.All(), cursor) {
				require.NoError(t, err)
				require.False(t, seen[u.Entry.URL])
				seen[u.Entry.URL] = true
				i := 0
				_, err := fmt.Sscanf(u.Entry.URL, "http://a.example/%d", &i)
				require.NoError(t, err)
				require.Greater(t, i, order)
				order, cursor = i, u.Cursor()
				if page++; page == 700 {
					done = false
					break
				}
			}
			l := w.Next()
			taken[l.Entry.URL] = true
			require.NoError(t, w.F.Done(l, frontier.Outcome{}))
		}
		for _, e := range es {
			require.True(t, seen[e.URL] || taken[e.URL], e.URL)
		}
	}
}

func TestURLsReportsDamage(t *testing.T) {
	w := harness.NewStoredWorld(t, frontier.Options{}, spill.Options{})
	var want []string
	for _, host := range []string{"a.example", "b.example"} {
		want = harness.UrlsOf(host, 40)
		w.Add(want...)
		require.NoError(t, hook.Of(w.F).MoveNow(true))
	}
	keys := harness.BlockKeys(w.Machine)
	w.Machine.Damage(func(k, v []byte) []byte {
		if string(k) == keys[0] {
			v[len(v)/2] ^= 4
		}
		return v
	})
	var got []string
	faults := 0
	for u, err := range inspect.New(w.F).URLs(context.Background(), scope.All(), "") {
		var corrupt *frontier.CorruptError
		if errors.As(err, &corrupt) {
			faults++
			continue
		}
		require.NoError(t, err)
		got = append(got, u.Entry.URL)
	}
	require.Positive(t, faults)
	require.Equal(t, want, got)
}

// Whatever happens between the steps of a walk, it meets all that waits meanwhile,
// and what it lists comes once.
func TestWalkMeetsWhatStays(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		o := harness.Quantum(rapid.IntRange(1, 40).Draw(r, "quantum"), frontier.Options{Priorities: 2, Delay: frontier.FixedDelay(0), HostConcurrency: 3})
		w := harness.NewWorld(t, o)
		if rapid.Bool().Draw(r, "stored") {
			w = harness.NewStoredWorld(t, o, spill.Options{})
		}
		url := 0
		waits := map[string]bool{}
		add := func() {
			var es []frontier.Entry
			for range rapid.IntRange(1, 60).Draw(r, "n") {
				url++
				e := frontier.Entry{URL: fmt.Sprintf("http://a.example/%d", url), Depth: rapid.IntRange(0, 1).Draw(r, "depth")}
				es = append(es, e)
				waits[e.URL] = true
			}
			_, err := w.F.Add(context.Background(), es...)
			require.NoError(t, err)
		}
		var out []frontier.Lease
		op := func() {
			switch rapid.IntRange(0, 7).Draw(r, "op") {
			case 0:
				add()
			case 1, 2, 3:
				for range rapid.IntRange(1, 40).Draw(r, "takes") {
					l, _, err := w.TryNext()
					if err != nil {
						break
					}
					if delete(waits, l.Entry.URL); rapid.IntRange(0, 9).Draw(r, "keep") == 0 {
						out = append(out, l)
						continue
					}
					res := rapid.SampledFrom([]frontier.Result{frontier.Visited, frontier.Requeue}).Draw(r, "result")
					require.NoError(t, w.F.Done(l, frontier.Outcome{Result: res}))
				}
			case 4:
				for _, l := range out {
					require.NoError(t, w.F.Done(l, frontier.Outcome{Result: frontier.Requeue}))
				}
				out = nil
			case 5:
				if url > 0 {
					u := fmt.Sprintf("http://a.example/%d", rapid.IntRange(1, url).Draw(r, "forced"))
					delete(waits, u)
					_, err := w.F.Add(context.Background(), frontier.Entry{URL: u, Force: true})
					require.NoError(t, err)
				}
			default:
				if w.Machine != nil {
					require.NoError(t, hook.Of(w.F).MoveNow(rapid.Bool().Draw(r, "evict")))
				}
			}
		}
		add()
		for range rapid.IntRange(0, 6).Draw(r, "before") {
			op()
		}
		if !hook.Of(w.F).Resident("a.example") {
			return
		}
		always := map[string]bool{}
		for u := range waits {
			always[u] = true
		}
		ops := rapid.IntRange(0, 12).Draw(r, "ops")
		urls, err := inspect.New(w.F).WalkURLs("a.example", rapid.IntRange(1, 30).Draw(r, "steps"), func() {
			if ops--; ops >= 0 {
				op()
			}
		})
		require.NoError(t, err)
		counts := map[string]int{}
		for _, u := range urls {
			counts[u]++
		}
		for u := range always {
			if waits[u] {
				require.Equal(t, 1, counts[u], u)
			}
		}
		require.NoError(t, w.F.Check())
	})
}

// What was deleted is neither listed nor counted as waiting, whether or not it was found
// yet; what is added afterwards is.
func TestViewsOfDeletedURLs(t *testing.T) {
	for _, moved := range []bool{false, true} {
		t.Run(fmt.Sprintf("moved=%v", moved), func(t *testing.T) {
			harness.InBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(time.Second)}, func(t *testing.T, w *harness.World) {
				w.Add(harness.UrlsOf("a.example", 50)...)
				w.Add(harness.UrlsOf("b.example", 2)...)
				_, err := w.F.Add(context.Background(), frontier.Entry{URL: "http://a.example/later", NotBefore: harness.Dawn.Add(time.Hour)})
				require.NoError(t, err)
				if moved && w.Machine != nil {
					require.NoError(t, hook.Of(w.F).MoveNow(true))
				}
				_, err = w.F.Delete(context.Background(), scope.Host("a.example"))
				require.NoError(t, err)
				require.Equal(t, harness.UrlsOf("b.example", 2), w.Listed(scope.All(), ""))
				w.IsState(inspect.URLKnown, "http://a.example/1")
				w.IsState(inspect.URLKnown, "http://a.example/later")
				w.Add("http://a.example/new")
				require.Equal(t, []string{"http://a.example/new"}, w.Listed(scope.Host("a.example"), ""))
				w.IsState(inspect.URLWaiting, "http://a.example/new")
			})
		})
	}
}
