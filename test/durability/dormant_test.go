// This file tests that hosts that have nothing to do leave memory, and come back
// as they were.

package durability

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/internal/hook"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/simclock"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/spill/spilltest"
	"github.com/seed-7440039f/frontier/storage"
	"github.com/seed-7440039f/frontier/test/harness"
)

func TestDormantHostsLeaveMemory(t *testing.T) {
	n := 5_000
	if *harness.Long {
		n = 100_000
	}
	w := harness.NewStoredWorld(t, frontier.Options{KeepOpen: true}, spill.Options{})
	w.Learns("first.example")
	before := w.F.Stats()
	require.Zero(t, before.Hosts)
	hosts := make([]string, n)
	for i := range hosts {
		hosts[i] = harness.DormantHost(i)
	}
	w.Learns(hosts...)
	after := w.F.Stats()
	require.Zero(t, after.Hosts)
	t.Logf("%d hosts: %d bytes before, %d after", n, before.MemoryBytes, after.MemoryBytes)
	require.Less(t, after.MemoryBytes-before.MemoryBytes, int64(256<<10+8*n))
	require.NoError(t, w.F.Check())
	w.IsSlow(hosts[1])
	w.IsSlow(hosts[n-1])

	w.Reopen()
	require.LessOrEqual(t, w.F.Stats().Hosts, int64(2), "hosts that were contacted last")
	w.Clock.Advance(time.Hour)
	w.IsSlow(hosts[2])

	w.Clock.Advance(time.Hour)
	w = w.Killed()
	require.LessOrEqual(t, w.F.Stats().Hosts, int64(3), "hosts in the log")
	w.Clock.Advance(time.Hour)
	w.IsSlow(hosts[3])
	w.IsSlow(hosts[1])
}

// Without a Spill there is nowhere to go.
func TestHostsWithoutASpillStay(t *testing.T) {
	w := harness.NewWorld(t, frontier.Options{KeepOpen: true})
	w.Learns(harness.DormantHost(1), harness.DormantHost(2))
	require.EqualValues(t, 2, w.F.Stats().Hosts)
	w.IsSlow(harness.DormantHost(1))
}

// What names a dormant host finds it as it was.
func TestDormantHostsComeBack(t *testing.T) {
	const h = "a.example"
	for name, back := range map[string]func(t *testing.T, w *harness.World){
		"by Add": func(t *testing.T, w *harness.World) { w.Add(harness.UrlsOf(h, 2)...) },
		"by an Add of many": func(t *testing.T, w *harness.World) {
			var urls []string
			for i := range 20 {
				urls = append(urls, harness.UrlsOf(harness.DormantHost(i), 2)...)
			}
			urls = append(urls, harness.UrlsOf(h, 2)...)
			w.Add(urls...)
			for range 20 {
				l := w.Next()
				require.NotEqual(t, h, l.Host)
				w.Fetched(l, 0, frontier.Outcome{RetryAfter: time.Hour})
			}
		},
		"by Force": func(t *testing.T, w *harness.World) {
			for _, u := range harness.UrlsOf(h, 2) {
				n, err := w.F.Add(context.Background(), frontier.Entry{URL: u, Force: true})
				require.NoError(t, err)
				require.Equal(t, 1, n)
			}
		},
		"by outlinks": func(t *testing.T, w *harness.World) {
			w.Add("http://seed.example/")
			w.Fetched(w.Next(), 0, frontier.Outcome{Add: harness.EntriesOf(h, 2)})
		},
		"by forced outlinks": func(t *testing.T, w *harness.World) {
			w.Add("http://seed.example/")
			out := harness.EntriesOf(h, 2)
			out[0].Force, out[1].Force = true, true
			w.Fetched(w.Next(), 0, frontier.Outcome{Add: out})
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := harness.NewStoredWorld(t, harness.Quantum(1, frontier.Options{KeepOpen: true}), spill.Options{})
			if name == "by Force" || name == "by forced outlinks" { // they are known
				w.Add(harness.UrlsOf(h, 2)...)
				for range 2 {
					w.Fetched(w.Next(), 0, frontier.Outcome{})
				}
			}
			w.Learns(h)
			require.Zero(t, w.F.Stats().Hosts)
			back(t, w)
			due := w.At()
			w.Fetched(w.NextIs(due, "http://"+h+"/1"), 0, frontier.Outcome{})
			w.Fetched(w.NextIs(due+harness.Slow, "http://"+h+"/2"), 0, frontier.Outcome{})
		})
	}
	t.Run("by Contact", func(t *testing.T) {
		w := harness.NewStoredWorld(t, frontier.Options{KeepOpen: true}, spill.Options{})
		w.Learns(h)
		l, err := w.F.Contact(context.Background(), h)
		require.NoError(t, err)
		w.Add(harness.UrlsOf(h, 1)...)
		due := w.At()
		require.NoError(t, w.F.Done(l, frontier.Outcome{}))
		w.NextIs(due+harness.Slow, "http://"+h+"/1")
	})
	t.Run("by a late Done", func(t *testing.T) {
		w := harness.NewStoredWorld(t, frontier.Options{KeepOpen: true, LeaseTime: time.Minute}, spill.Options{})
		w.Learns(h)
		l, err := w.F.Contact(context.Background(), h)
		require.NoError(t, err)
		w.Clock.Advance(time.Hour)
		w.Asleep()
		require.Zero(t, w.F.Stats().Hosts)
		due := w.At()
		require.ErrorIs(t, w.F.Done(l, frontier.Outcome{Duration: time.Millisecond}), frontier.ErrNotLeased)
		w.Add(harness.UrlsOf(h, 2)...)
		w.Fetched(w.NextIs(due+harness.Slow, "http://"+h+"/1"), 0, frontier.Outcome{})
		w.NextIs(due+2*harness.Slow, "http://"+h+"/2")
	})
}

// A group lasts as long as what else is known of a host.
func TestDormantHostsComeBackToTheirGroup(t *testing.T) {
	w := harness.NewStoredWorld(t, frontier.Options{KeepOpen: true}, spill.Options{})
	for _, h := range []string{"a.example", "b.example"} {
		w.Add(harness.UrlsOf(h, 1)...)
		l := w.Next()
		require.NoError(t, w.F.Join(&l, "g"))
		w.Fetched(l, 0, frontier.Outcome{CrawlDelay: harness.Slow})
		w.Clock.Advance(time.Hour)
	}
	w.Asleep()
	require.Zero(t, w.F.Stats().Hosts)
	w.Add("http://a.example/x", "http://b.example/x")
	require.Equal(t, "g", harness.GroupOf(w.F, "a.example"))
	w.Next()
	_, _, err := w.TryNext()
	require.ErrorIs(t, err, frontier.ErrNotDue, "the group has one slot")
}

// After a crash a host is held for its Crawl-delay whenever it comes back, and
// for what its rule says.
func TestDormantHostsAreHeldAfterACrash(t *testing.T) {
	for _, clean := range []bool{false, true} {
		t.Run(fmt.Sprintf("closed since: %v", clean), func(t *testing.T) {
			w := harness.NewStoredWorld(t, frontier.Options{KeepOpen: true, Delay: frontier.FixedDelay(time.Second)}, spill.Options{})
			for _, h := range []string{"a.example", "b.example"} {
				l, err := w.F.Contact(context.Background(), h)
				require.NoError(t, err)
				require.NoError(t, w.F.Done(l, frontier.Outcome{CrawlDelay: time.Minute}))
			}
			require.NoError(t, w.F.UpdateRule(scope.Host("b.example"), func(r *frontier.Rule) { r.Delay = frontier.FixedDelay(2 * time.Minute) }))
			w.Clock.Advance(time.Hour)
			w.Asleep()
			w = w.Killed()
			opened := w.At()
			require.Zero(t, w.F.Stats().Hosts)
			w.Clock.Advance(10 * time.Second)
			if clean {
				w.Reopen()
			}
			w.Clock.Advance(10 * time.Second)
			w.Add("http://a.example/", "http://b.example/", "http://c.example/")
			w.NextIs(opened+20*time.Second, "http://c.example/")
			w.NextIs(opened+time.Minute, "http://a.example/")
			w.NextIs(opened+2*time.Minute, "http://b.example/")
		})
	}
}

// A host that takes its Crawl-delay back leaves no row.
func TestRowsOfHostsWithoutACrawlDelayAreDeleted(t *testing.T) {
	w := harness.NewStoredWorld(t, frontier.Options{KeepOpen: true}, spill.Options{})
	rows := w.HostRows
	w.Learns("a.example", "b.example")
	w.Add("http://c.example/", "http://d.example/") // writes what is due
	w.Add("http://e.example/")
	require.Equal(t, 2, rows())
	l, err := w.F.Contact(context.Background(), "a.example")
	require.NoError(t, err)
	require.NoError(t, w.F.Done(l, frontier.Outcome{CrawlDelay: frontier.NoCrawlDelay}))
	w.Clock.Advance(time.Hour)
	w.Asleep()
	for i := range 3 {
		w.Add(fmt.Sprintf("http://f%d.example/", i))
	}
	require.Equal(t, 1, rows())
	require.NoError(t, w.F.Check())
}

// Closing soon after a crash need not write what every host is owed because of
// the crash.
func TestClosingAfterACrashWritesNoRowPerHost(t *testing.T) {
	w := harness.NewStoredWorld(t, frontier.Options{KeepOpen: true}, spill.Options{})
	for i := range 50 {
		w.Add(harness.UrlsOf(harness.DormantHost(i), 1)...)
	}
	w = w.Killed()
	opened := w.At()
	w.Clock.Advance(time.Second)
	w.Reopen()
	require.Zero(t, w.HostRows())
	w.Next()
	require.Equal(t, opened+30*time.Second, w.At())
}

// Times that have passed leave no rows, also of hosts that are not in memory.
func TestRowsOfThePastAreDeletedAtOpening(t *testing.T) {
	w := harness.NewStoredWorld(t, frontier.Options{KeepOpen: true, Delay: frontier.FixedDelay(time.Hour)}, spill.Options{})
	for i := range 50 {
		w.Add(harness.UrlsOf(harness.DormantHost(i), 1)...)
	}
	for range 50 {
		w.Fetched(w.Next(), 0, frontier.Outcome{})
	}
	require.NoError(t, hook.Of(w.F).MoveNow(true))
	w.Reopen()
	require.Equal(t, 50, w.HostRows())
	w.Reopen()
	require.Zero(t, w.F.Stats().Hosts)
	require.Equal(t, 50, w.HostRows())
	w.Add(harness.UrlsOf(harness.DormantHost(0), 2)[1])
	w.NextIs(time.Hour, "http://"+harness.DormantHost(0)+"/2")
	w.Clock.Advance(time.Hour)
	w.Reopen()
	w.Reopen()
	require.LessOrEqual(t, w.HostRows(), 1, "of the host that was leased")
}

// heapHook is a Spill that calls fn when all was replayed, and the frontier still
// has what it kept for that.
type heapHook struct {
	storage.Spill
	fn func()
}

func (s heapHook) Recover(ctx context.Context, r storage.Recovery) error {
	defer s.fn()
	return s.Spill.Recover(ctx, r)
}

func heapInUse() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Opening a store takes no memory for hosts that have nothing to do, not even for
// a moment.
func TestOpeningDoesNotHoldDormantHosts(t *testing.T) {
	const n = 200_000
	w := &harness.World{TB: t, Clock: simclock.New(harness.Dawn), Options: frontier.Options{KeepOpen: true}, Machine: spilltest.OpenMemory(t, spill.Options{})}
	w.Options.Clock = w.Clock
	harness.FillWithDormant(t, w.Machine.Store, n)
	before := heapInUse()
	var during int64
	w.Options.Spill = heapHook{w.Machine.Store, func() { during = heapInUse() }}
	w.Open()
	require.Less(t, during-before, int64(8*n), "bytes of Go's heap")
	s := w.F.Stats()
	t.Logf("%d bytes of Go's heap, %d by Stats", during-before, s.MemoryBytes)
	require.Zero(t, s.Hosts)
	require.Less(t, s.MemoryBytes, int64(8*n))
	w.IsSlow(harness.DormantHost(n / 2))
}

func TestDormantHostsOnBadger(t *testing.T) {
	dir := t.TempDir()
	w := &harness.World{TB: t, Clock: simclock.New(harness.Dawn), Options: frontier.Options{KeepOpen: true}}
	w.Options.Clock = w.Clock
	open := func(dir string) *spill.Store {
		s, err := spill.Open(dir, spill.Options{MemoryBudget: 64 << 20})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		w.Options.Spill = s
		w.Open()
		return s
	}
	s := open(dir)
	w.Learns("a.example", "b.example", "c.example")
	require.Zero(t, w.F.Stats().Hosts)
	w.IsSlow("a.example")
	harness.Ended(t, w.F)
	require.NoError(t, s.Close())
	open(dir)
	w.Clock.Advance(time.Hour)
	w.IsSlow("b.example")
	w.Clock.Advance(time.Hour)
	w.Asleep()

	left := t.TempDir() // what the death of the process leaves
	require.NoError(t, os.CopyFS(left, os.DirFS(dir)))
	open(left)
	w.Clock.Advance(time.Hour)
	w.IsSlow("a.example")
	w.IsSlow("c.example")
}
