package control

import (
	"context"
	"fmt"
	"slices"
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

func hostsOf(infos []inspect.Host) (names []string) {
	for _, x := range infos {
		names = append(names, x.Host)
	}
	return names
}

func TestUpcomingIsInOrderOfTime(t *testing.T) {
	harness.InBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(0)}, func(t *testing.T, w *harness.World) {
		require.Empty(t, w.Upcoming(5))
		waits := map[string]time.Duration{
			"a.example": 3 * time.Second, "b.example": time.Second, "c.example": time.Hour, "d.example": 2 * time.Second, "e.example": time.Millisecond,
		}
		for name := range waits {
			w.Add("http://"+name+"/1", "http://"+name+"/2")
		}
		for range len(waits) {
			l := w.NextAt(0)
			require.NoError(t, w.F.Done(l, frontier.Outcome{RetryAfter: waits[l.Host]}))
		}
		want := []string{"e.example", "b.example", "d.example", "a.example", "c.example"}
		for n := range 7 {
			require.Equal(t, want[:min(n, 5)], append([]string{}, hostsOf(w.Upcoming(n))...))
		}
		require.Empty(t, w.Upcoming(-1))
		require.Equal(t, harness.Dawn.Add(time.Hour).UnixNano(), w.Upcoming(5)[4].Due.UnixNano())
	})
}

// The walk of the heaps agrees with sorting all hosts.
func TestUpcomingAgreesWithHost(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := harness.NewWorld(t, harness.ParkAfter(20*time.Second, frontier.Options{Delay: frontier.FixedDelay(0), GroupDelay: frontier.FixedDelay(2 * time.Second)}))
		hosts := rapid.IntRange(1, 40).Draw(r, "hosts")
		for i := range hosts {
			w.Add(fmt.Sprintf("http://h%d.example/1", i), fmt.Sprintf("http://h%d.example/2", i), fmt.Sprintf("http://h%d.example/3", i))
		}
		for range hosts {
			l, _, err := w.F.TryNext()
			if err != nil {
				break
			}
			if g := rapid.IntRange(0, 3).Draw(r, "group"); g > 0 && w.F.Join(&l, fmt.Sprint(g)) != nil {
				require.NoError(t, w.F.Done(l, frontier.Outcome{Result: frontier.Requeue, Uncontacted: true}))
				continue
			}
			wait := time.Duration(rapid.IntRange(0, 60_000).Draw(r, "wait")) * time.Millisecond
			require.NoError(t, w.F.Done(l, frontier.Outcome{RetryAfter: wait}))
		}
		due := func(x inspect.Host) time.Time {
			return time.Unix(0, max(x.Due.UnixNano(), x.GroupDue.UnixNano(), harness.Dawn.UnixNano()))
		}
		var all []inspect.Host
		for i := range hosts {
			if x, err := inspect.New(w.F).Host(context.Background(), fmt.Sprintf("h%d.example", i)); err == nil && x.Waiting > 0 {
				all = append(all, x)
			}
		}
		slices.SortStableFunc(all, func(a, b inspect.Host) int { return due(a).Compare(due(b)) })
		n := rapid.IntRange(1, 50).Draw(r, "n")
		got := w.Upcoming(n)
		require.Len(t, got, min(n, len(all)))
		for i, x := range got {
			require.Equal(t, due(all[i]).UnixNano(), due(x).UnixNano(), "%d: %v", i, x.Host)
		}
	})
}

func TestUpcomingURLs(t *testing.T) {
	harness.InBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(time.Second), Priorities: 3}, func(t *testing.T, w *harness.World) {
		w.Add("http://late.example/1", "http://late.example/2")
		w.Fetched(w.NextAt(0), 0, frontier.Outcome{})
		for i, name := range []string{"low", "middle", "high"} {
			_, err := w.F.Add(context.Background(),
				frontier.Entry{URL: "http://" + name + ".example/first", Depth: 2 - i, Meta: []byte(name), Crawl: uint32(i)},
				frontier.Entry{URL: "http://" + name + ".example/second", Depth: 2 - i, Crawl: uint32(i)})
			require.NoError(t, err)
		}
		if w.Machine != nil {
			require.NoError(t, hook.Of(w.F).MoveNow(true)) // they are on disk
		}
		got, err := inspect.New(w.F).Upcoming(context.Background(), 10, true)
		require.NoError(t, err)
		require.Len(t, got, 4)
		for i, name := range []string{"high", "middle", "low"} {
			require.Equal(t, name+".example", got[i].Host.Host)
			require.Equal(t, "http://"+name+".example/first", got[i].Entry.URL)
			require.Equal(t, 3-i, got[i].Priority)
			require.False(t, got[i].Due.After(w.Clock.Now()))
		}
		require.Equal(t, inspect.Upcoming{
			Host: got[3].Host, Priority: 3, Entry: frontier.Entry{URL: "http://late.example/2"}, Due: got[3].Due,
		}, got[3])
		require.Equal(t, "late.example", got[3].Host.Host)
		require.Equal(t, harness.Dawn.Add(time.Second).UnixNano(), got[3].Due.UnixNano())
		got, err = inspect.New(w.F).Upcoming(context.Background(), 2, true)
		require.NoError(t, err)
		require.Len(t, got, 2)
		require.Equal(t, []byte("middle"), got[1].Entry.Meta)
		require.Equal(t, uint32(1), got[1].Entry.Crawl)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_, err = inspect.New(w.F).Upcoming(ctx, 2, true)
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, int64(7), w.F.Stats().Waiting, "nothing was taken")
	})
}

func TestViewsOfClosedFrontier(t *testing.T) {
	w := harness.NewStoredWorld(t, frontier.Options{}, spill.Options{})
	w.Add("http://a.example/")
	require.NoError(t, w.F.Close())
	_, err := inspect.New(w.F).Upcoming(context.Background(), 1, false)
	require.ErrorIs(t, err, frontier.ErrClosed)
}

func TestHostsAreInDomainOrder(t *testing.T) {
	harness.InBothWorlds(t, frontier.Options{}, func(t *testing.T, w *harness.World) {
		var all []string
		for i := range 100 { // more than are described at once
			all = append(all, fmt.Sprintf("h%03d.b.example", i))
		}
		all = append(all, "c.example", "127.0.0.1", "a.example", "example", "www.a.example", "b.org", "xa.example")
		for _, name := range all {
			w.Add("http://" + name + "/")
		}
		want := append([]string{"127.0.0.1", "example", "a.example", "www.a.example"}, all[:100]...)
		want = append(want, "c.example", "xa.example", "b.org")
		list := func(s scope.Scope, after string) (names []string) {
			for x := range inspect.New(w.F).Hosts(s, after) {
				require.Equal(t, int64(1), x.Waiting)
				names = append(names, x.Host)
			}
			return names
		}
		require.Equal(t, want, list(scope.All(), ""))
		require.Equal(t, want[2:], list(scope.All(), "example"))
		require.Equal(t, want[5:], list(scope.All(), "h000.b.example"))
		require.Equal(t, want[104:], list(scope.All(), "bb.example"), "from a host that is not known")
		require.Equal(t, want[2:4], list(scope.Domain("a.example"), ""))
		require.Equal(t, want[3:4], list(scope.Domain("a.example"), "a.example"))
		require.Equal(t, want[2:3], list(scope.Host("a.example"), ""))
		require.Empty(t, list(scope.Host("a.example"), "a.example"))
		require.Empty(t, list(scope.Domain("nobody.example"), ""))
		for x := range inspect.New(w.F).Hosts(scope.All(), "") {
			require.Equal(t, want[0], x.Host)
			break
		}
	})
}

// Hosts that stay are listed once, whatever others do meanwhile, including the one listed last.
func TestHostsWhileTheyComeAndGo(t *testing.T) {
	w := harness.NewWorld(t, frontier.Options{Delay: frontier.FixedDelay(0)})
	for i := range 200 {
		w.Add(fmt.Sprintf("http://h%03d.example/", i))
	}
	seen := map[string]int{}
	i := 0
	for x := range inspect.New(w.F).Hosts(scope.All(), "") {
		seen[x.Host]++
		if i++; i <= 60 {
			w.Fetched(w.NextAt(0), 0, frontier.Outcome{}) // one of them goes
			w.Add(fmt.Sprintf("http://new%03d.example/", i))
		}
	}
	for x := range inspect.New(w.F).Hosts(scope.All(), "") {
		if x.Host[0] == 'h' {
			require.Equal(t, 1, seen[x.Host], x.Host)
		}
	}
}

// Blocked hosts are listed under the end of the block, or of their delay if that is later; paused
// ones are not listed.
func TestUpcomingOfBlockedHosts(t *testing.T) {
	harness.InBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(10 * time.Second)}, func(t *testing.T, w *harness.World) {
		for _, h := range []string{"a", "b", "c", "d"} {
			w.Add(harness.UrlsOf(h+".example", 2)...)
			w.Fetched(w.NextAt(0), 0, frontier.Outcome{})
		}
		require.NoError(t, w.F.BlockUntil(scope.Host("a.example"), harness.Dawn.Add(time.Hour)))
		require.NoError(t, w.F.BlockUntil(scope.Host("b.example"), harness.Dawn.Add(time.Second)))
		require.NoError(t, w.F.BlockUntil(scope.Host("c.example"), harness.Dawn.Add(time.Minute)))
		require.NoError(t, w.F.Pause(scope.Host("d.example")))
		require.Equal(t, []string{"b.example", "c.example", "a.example"}, hostsOf(w.Upcoming(9)))
		require.Equal(t, []string{"b.example", "c.example"}, hostsOf(w.Upcoming(2)))
		w.Why("d.example", inspect.ReasonPaused, 0)
		w.Why("a.example", inspect.ReasonBlocked, time.Hour)
		w.Why("b.example", inspect.ReasonDelay, 10*time.Second)
	})
}

func TestPausedCrawlIsAReason(t *testing.T) {
	harness.InBothWorlds(t, frontier.Options{}, func(t *testing.T, w *harness.World) {
		_, err := w.F.Add(context.Background(), frontier.Entry{URL: "http://a.example/", Crawl: 3})
		require.NoError(t, err)
		require.NoError(t, w.F.UpdateRule(scope.Crawl(3), func(r *frontier.Rule) { *r = frontier.Rule{Paused: scope.On} }))
		w.Why("a.example", inspect.ReasonPaused, 0)
		w.Add("http://a.example/")
		w.Why("a.example", inspect.ReasonBackQueue, 0)
	})
}
