// This file tests that hosts that have nothing to do leave memory, and come back
// as they were.

package frontier_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/internal/simclock"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/spill/spilltest"
	"github.com/stretchr/testify/require"
)

const slow = 7*time.Second + 3*ms // a Crawl-delay

func dormantHost(i int) string { return fmt.Sprintf("h%d.example", i) }

// learns lets the frontier learn the Crawl-delay of hosts, and leaves them alone
// until their times have passed.
func (w *world) learns(hosts ...string) {
	w.Helper()
	w.clk.Advance(time.Hour)
	for _, h := range hosts {
		l, err := w.f.Contact(context.Background(), h)
		require.NoError(w, err)
		require.NoError(w, w.f.Done(l, frontier.Outcome{CrawlDelay: slow}))
	}
	w.clk.Advance(time.Hour)
	w.asleep()
}

// asleep waits until all hosts have left that may.
func (w *world) asleep() {
	w.Helper()
	for n := int64(-1); n != w.f.Stats().Hosts; w.f.Stats() {
		n = w.f.Stats().Hosts
	}
}

// hostRows counts the rows of hosts on the disk. The last batch's may be missing.
func (w *world) hostRows() (found int) {
	w.machine.Damage(func(k, v []byte) []byte {
		if len(k) > 7 && string(k[5:7]) == "h:" {
			found++
		}
		return v
	})
	return found
}

// isSlow requires that the host's Crawl-delay is known to the nanosecond. The
// host must be new or known to be due.
func (w *world) isSlow(host string) {
	w.Helper()
	due := w.at()
	first, second := fmt.Sprintf("http://%s/%d/1", host, due), fmt.Sprintf("http://%s/%d/2", host, due)
	w.add(first, second)
	w.fetched(w.nextIs(due, first), 0, frontier.Outcome{})
	w.fetched(w.nextIs(due+slow, second), 0, frontier.Outcome{})
}

func TestDormantHostsLeaveMemory(t *testing.T) {
	n := 5_000
	if *long {
		n = 100_000
	}
	w := newStoredWorld(t, frontier.Options{KeepOpen: true}, spill.Options{})
	w.learns("first.example")
	before := w.f.Stats()
	require.Zero(t, before.Hosts)
	hosts := make([]string, n)
	for i := range hosts {
		hosts[i] = dormantHost(i)
	}
	w.learns(hosts...)
	after := w.f.Stats()
	require.Zero(t, after.Hosts)
	t.Logf("%d hosts: %d bytes before, %d after", n, before.MemoryBytes, after.MemoryBytes)
	require.Less(t, after.MemoryBytes-before.MemoryBytes, int64(256<<10+8*n))
	require.NoError(t, w.f.Check())
	w.isSlow(hosts[1])
	w.isSlow(hosts[n-1])

	w.reopen()
	require.LessOrEqual(t, w.f.Stats().Hosts, int64(2), "hosts that were contacted last")
	w.clk.Advance(time.Hour)
	w.isSlow(hosts[2])

	w.clk.Advance(time.Hour)
	w = w.killed()
	require.LessOrEqual(t, w.f.Stats().Hosts, int64(3), "hosts in the log")
	w.clk.Advance(time.Hour)
	w.isSlow(hosts[3])
	w.isSlow(hosts[1])
}

// Without a Spill there is nowhere to go.
func TestHostsWithoutASpillStay(t *testing.T) {
	w := newWorld(t, frontier.Options{KeepOpen: true})
	w.learns(dormantHost(1), dormantHost(2))
	require.EqualValues(t, 2, w.f.Stats().Hosts)
	w.isSlow(dormantHost(1))
}

// What names a dormant host finds it as it was.
func TestDormantHostsComeBack(t *testing.T) {
	const h = "a.example"
	for name, back := range map[string]func(t *testing.T, w *world){
		"by Add": func(t *testing.T, w *world) { w.add(urlsOf(h, 2)...) },
		"by an Add of many": func(t *testing.T, w *world) {
			var urls []string
			for i := range 20 {
				urls = append(urls, urlsOf(dormantHost(i), 2)...)
			}
			urls = append(urls, urlsOf(h, 2)...)
			w.add(urls...)
			for range 20 {
				l := w.next()
				require.NotEqual(t, h, l.Host)
				w.fetched(l, 0, frontier.Outcome{RetryAfter: time.Hour})
			}
		},
		"by Force": func(t *testing.T, w *world) {
			for _, u := range urlsOf(h, 2) {
				n, err := w.f.Add(bg, frontier.Entry{URL: u, Force: true})
				require.NoError(t, err)
				require.Equal(t, 1, n)
			}
		},
		"by outlinks": func(t *testing.T, w *world) {
			w.add("http://seed.example/")
			w.fetched(w.next(), 0, frontier.Outcome{Add: entriesOf(h, 2)})
		},
		"by forced outlinks": func(t *testing.T, w *world) {
			w.add("http://seed.example/")
			out := entriesOf(h, 2)
			out[0].Force, out[1].Force = true, true
			w.fetched(w.next(), 0, frontier.Outcome{Add: out})
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newStoredWorld(t, frontier.Options{KeepOpen: true, Quantum: 1}, spill.Options{})
			if name == "by Force" || name == "by forced outlinks" { // they are known
				w.add(urlsOf(h, 2)...)
				for range 2 {
					w.fetched(w.next(), 0, frontier.Outcome{})
				}
			}
			w.learns(h)
			require.Zero(t, w.f.Stats().Hosts)
			back(t, w)
			due := w.at()
			w.fetched(w.nextIs(due, "http://"+h+"/1"), 0, frontier.Outcome{})
			w.fetched(w.nextIs(due+slow, "http://"+h+"/2"), 0, frontier.Outcome{})
		})
	}
	t.Run("by Contact", func(t *testing.T) {
		w := newStoredWorld(t, frontier.Options{KeepOpen: true}, spill.Options{})
		w.learns(h)
		l, err := w.f.Contact(bg, h)
		require.NoError(t, err)
		w.add(urlsOf(h, 1)...)
		due := w.at()
		require.NoError(t, w.f.Done(l, frontier.Outcome{}))
		w.nextIs(due+slow, "http://"+h+"/1")
	})
	t.Run("by a late Done", func(t *testing.T) {
		w := newStoredWorld(t, frontier.Options{KeepOpen: true, LeaseTime: time.Minute}, spill.Options{})
		w.learns(h)
		l, err := w.f.Contact(bg, h)
		require.NoError(t, err)
		w.clk.Advance(time.Hour)
		w.asleep()
		require.Zero(t, w.f.Stats().Hosts)
		due := w.at()
		require.ErrorIs(t, w.f.Done(l, frontier.Outcome{Duration: ms}), frontier.ErrNotLeased)
		w.add(urlsOf(h, 2)...)
		w.fetched(w.nextIs(due+slow, "http://"+h+"/1"), 0, frontier.Outcome{})
		w.nextIs(due+2*slow, "http://"+h+"/2")
	})
}

// A group lasts as long as what else is known of a host.
func TestDormantHostsComeBackToTheirGroup(t *testing.T) {
	w := newStoredWorld(t, frontier.Options{KeepOpen: true}, spill.Options{})
	for _, h := range []string{"a.example", "b.example"} {
		w.add(urlsOf(h, 1)...)
		l := w.next()
		require.NoError(t, w.f.Join(&l, "g"))
		w.fetched(l, 0, frontier.Outcome{CrawlDelay: slow})
		w.clk.Advance(time.Hour)
	}
	w.asleep()
	require.Zero(t, w.f.Stats().Hosts)
	w.add("http://a.example/x", "http://b.example/x")
	require.Equal(t, "g", w.f.GroupOf("a.example"))
	w.next()
	_, _, err := w.tryNext()
	require.ErrorIs(t, err, frontier.ErrNotDue, "the group has one slot")
}

// After a crash a host is held for its Crawl-delay whenever it comes back, and
// for what its rule says.
func TestDormantHostsAreHeldAfterACrash(t *testing.T) {
	for _, clean := range []bool{false, true} {
		t.Run(fmt.Sprintf("closed since: %v", clean), func(t *testing.T) {
			w := newStoredWorld(t, frontier.Options{KeepOpen: true, Delay: frontier.FixedDelay(time.Second)}, spill.Options{})
			for _, h := range []string{"a.example", "b.example"} {
				l, err := w.f.Contact(bg, h)
				require.NoError(t, err)
				require.NoError(t, w.f.Done(l, frontier.Outcome{CrawlDelay: time.Minute}))
			}
			require.NoError(t, w.f.SetDelay(frontier.Host("b.example"), frontier.FixedDelay(2*time.Minute)))
			w.clk.Advance(time.Hour)
			w.asleep()
			w = w.killed()
			opened := w.at()
			require.Zero(t, w.f.Stats().Hosts)
			w.clk.Advance(10 * time.Second)
			if clean {
				w.reopen()
			}
			w.clk.Advance(10 * time.Second)
			w.add("http://a.example/", "http://b.example/", "http://c.example/")
			w.nextIs(opened+20*time.Second, "http://c.example/")
			w.nextIs(opened+time.Minute, "http://a.example/")
			w.nextIs(opened+2*time.Minute, "http://b.example/")
		})
	}
}

// A host that takes its Crawl-delay back leaves no row.
func TestRowsOfHostsWithoutACrawlDelayAreDeleted(t *testing.T) {
	w := newStoredWorld(t, frontier.Options{KeepOpen: true}, spill.Options{})
	rows := w.hostRows
	w.learns("a.example", "b.example")
	w.add("http://c.example/", "http://d.example/") // writes what is due
	w.add("http://e.example/")
	require.Equal(t, 2, rows())
	l, err := w.f.Contact(bg, "a.example")
	require.NoError(t, err)
	require.NoError(t, w.f.Done(l, frontier.Outcome{CrawlDelay: frontier.NoCrawlDelay}))
	w.clk.Advance(time.Hour)
	w.asleep()
	for i := range 3 {
		w.add(fmt.Sprintf("http://f%d.example/", i))
	}
	require.Equal(t, 1, rows())
	require.NoError(t, w.f.Check())
}

// Closing soon after a crash need not write what every host is owed because of
// the crash.
func TestClosingAfterACrashWritesNoRowPerHost(t *testing.T) {
	w := newStoredWorld(t, frontier.Options{KeepOpen: true}, spill.Options{})
	for i := range 50 {
		w.add(urlsOf(dormantHost(i), 1)...)
	}
	w = w.killed()
	opened := w.at()
	w.clk.Advance(time.Second)
	w.reopen()
	require.Zero(t, w.hostRows())
	w.next()
	require.Equal(t, opened+30*time.Second, w.at())
}

// Times that have passed leave no rows, also of hosts that are not in memory.
func TestRowsOfThePastAreDeletedAtOpening(t *testing.T) {
	w := newStoredWorld(t, frontier.Options{KeepOpen: true, Delay: frontier.FixedDelay(time.Hour)}, spill.Options{})
	for i := range 50 {
		w.add(urlsOf(dormantHost(i), 1)...)
	}
	for range 50 {
		w.fetched(w.next(), 0, frontier.Outcome{})
	}
	require.NoError(t, w.f.MoveNow(true))
	w.reopen()
	require.Equal(t, 50, w.hostRows())
	w.reopen()
	require.Zero(t, w.f.Stats().Hosts)
	require.Equal(t, 50, w.hostRows())
	w.add(urlsOf(dormantHost(0), 2)[1])
	w.nextIs(time.Hour, "http://"+dormantHost(0)+"/2")
	w.clk.Advance(time.Hour)
	w.reopen()
	w.reopen()
	require.LessOrEqual(t, w.hostRows(), 1, "of the host that was leased")
}

// heapHook is a Spill that calls fn when all was replayed, and the frontier still
// has what it kept for that.
type heapHook struct {
	frontier.Spill
	fn func()
}

func (s heapHook) Recover(ctx context.Context, r frontier.Recovery) error {
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
	w := &world{TB: t, clk: simclock.New(dawn), opts: frontier.Options{KeepOpen: true}, machine: spilltest.OpenMemory(t, spill.Options{})}
	w.opts.Clock = w.clk
	fillWithDormant(t, w.machine.Store, n)
	before := heapInUse()
	var during int64
	w.opts.Spill = heapHook{w.machine.Store, func() { during = heapInUse() }}
	w.open()
	require.Less(t, during-before, int64(8*n), "bytes of Go's heap")
	s := w.f.Stats()
	t.Logf("%d bytes of Go's heap, %d by Stats", during-before, s.MemoryBytes)
	require.Zero(t, s.Hosts)
	require.Less(t, s.MemoryBytes, int64(8*n))
	w.isSlow(dormantHost(n / 2))
}

func TestDormantHostsOnBadger(t *testing.T) {
	dir := t.TempDir()
	w := &world{TB: t, clk: simclock.New(dawn), opts: frontier.Options{KeepOpen: true}}
	w.opts.Clock = w.clk
	open := func(dir string) *spill.Store {
		s, err := spill.Open(dir, spill.Options{MemoryBudget: 64 << 20})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		w.opts.Spill = s
		w.open()
		return s
	}
	s := open(dir)
	w.learns("a.example", "b.example", "c.example")
	require.Zero(t, w.f.Stats().Hosts)
	w.isSlow("a.example")
	ended(t, w.f)
	require.NoError(t, s.Close())
	open(dir)
	w.clk.Advance(time.Hour)
	w.isSlow("b.example")
	w.clk.Advance(time.Hour)
	w.asleep()

	left := t.TempDir() // what the death of the process leaves
	require.NoError(t, os.CopyFS(left, os.DirFS(dir)))
	open(left)
	w.clk.Advance(time.Hour)
	w.isSlow("a.example")
	w.isSlow("c.example")
}
