// This file tests that hosts that have nothing to do leave memory, and come back
// as they were.

package frontier_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-7440039f/frontier"
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
	rows := func() (found int) {
		w.machine.Damage(func(k, v []byte) []byte {
			if len(k) > 7 && string(k[5:7]) == "h:" {
				found++
			}
			return v
		})
		return found
	}
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

// A row that cannot be read: the call that needs it fails, and changes nothing.
func TestUnreadableRowOfADormantHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newStoredWorld(t, frontier.Options{KeepOpen: true, LeaseTime: time.Minute}, spill.Options{})
		w.add("http://seed.example/1", "http://seed.example/2")
		late, err := w.f.Contact(bg, "a.example")
		require.NoError(t, err)
		w.clk.Advance(time.Hour)
		w.learns("a.example")
		w.add("http://x.example/") // the rows of what was before are in the engine now
		fault := func() { w.machine.Faults.FailNth(spilltest.Read, 1, errDisk) }
		before := w.f.Stats()

		fault()
		n, err := w.f.Add(bg, frontier.Entry{URL: "http://b.example/"}, frontier.Entry{URL: "http://a.example/1"})
		require.ErrorIs(t, err, errDisk)
		require.Zero(t, n)
		fault()
		_, err = w.f.Contact(bg, "a.example")
		require.ErrorIs(t, err, errDisk)
		fault()
		err = w.f.Done(late, frontier.Outcome{})
		require.ErrorIs(t, err, frontier.ErrNotLeased)
		require.ErrorIs(t, err, errDisk)
		require.Equal(t, before, w.f.Stats())

		l := w.next()
		fault()
		require.ErrorIs(t, w.f.Done(l, frontier.Outcome{Add: []frontier.Entry{{URL: "http://b.example/"}, {URL: "http://a.example/1"}}}), errDisk)
		require.Equal(t, before.Known, w.f.Stats().Known)
		require.NoError(t, w.f.Check())

		w.clk.Advance(time.Hour)
		for range 2 {
			w.fetched(w.next(), 0, frontier.Outcome{})
		}
		w.isSlow("a.example")
	})
}

// What was damaged on disk is told.
func TestDamagedRowOfADormantHost(t *testing.T) {
	w := newStoredWorld(t, frontier.Options{KeepOpen: true}, spill.Options{})
	w.learns("a.example")
	w.add("http://x.example/") // writes what is due
	w.machine.Damage(func(k, v []byte) []byte {
		if len(k) > 7 && string(k[5:7]) == "h:" {
			return v[:1]
		}
		return v
	})
	var ce *frontier.CorruptError
	_, err := w.f.Add(bg, frontier.Entry{URL: "http://a.example/"})
	require.ErrorAs(t, err, &ce)
	require.Equal(t, "h:a.example", string(ce.Key))
}

// rowHook is a Spill that calls fn after each Row.
type rowHook struct {
	frontier.Spill
	fn func()
}

func (s *rowHook) Row(key string) ([]byte, bool, error) {
	v, found, err := s.Spill.Row(key)
	if fn := s.fn; fn != nil {
		s.fn = nil
		fn()
	}
	return v, found, err
}

// A host that comes back, learns and leaves while another call reads its row is
// not given the old state.
func TestHostThatComesAndGoesWhileItsRowIsRead(t *testing.T) {
	for name, call := range map[string]func(*world) (frontier.Lease, error){
		"Contact": func(w *world) (frontier.Lease, error) {
			w.add(urlsOf("a.example", 1)...)
			return w.f.Contact(bg, "a.example")
		},
		"Add": func(w *world) (frontier.Lease, error) {
			w.add(urlsOf("a.example", 2)...)
			return w.next(), nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newStoredWorld(t, frontier.Options{KeepOpen: true, Delay: frontier.FixedDelay(0)}, spill.Options{})
			require.NoError(t, w.f.Close())
			h := &rowHook{Spill: w.machine.Store}
			w.opts.Spill = h
			w.open()
			w.learns("a.example")
			read := 0
			if name == "Contact" {
				w.add("http://a.example/0") // resident: the Contact needs no row
				w.fetched(w.next(), 0, frontier.Outcome{})
				w.clk.Advance(time.Hour)
				w.asleep()
			}
			require.Zero(t, w.f.Stats().Hosts)
			h.fn = func() {
				read++
				l, err := w.f.Contact(bg, "a.example")
				require.NoError(t, err)
				require.NoError(t, w.f.Done(l, frontier.Outcome{CrawlDelay: time.Minute}))
				w.clk.Advance(time.Hour)
				w.asleep()
				require.Zero(t, w.f.Stats().Hosts)
			}
			l, err := call(w)
			require.NoError(t, err)
			require.Equal(t, 1, read)
			due := w.at() + time.Minute
			require.NoError(t, w.f.Done(l, frontier.Outcome{}))
			l = w.next()
			require.Equal(t, due, w.at(), "what it learned meanwhile is forgotten")
			require.NoError(t, w.f.Done(l, frontier.Outcome{}))
		})
	}
}

// A host that an Add names does not leave before that Add is committed, also if
// its commit fails.
func TestHostNamedByAnAddDoesNotLeave(t *testing.T) {
	for _, fails := range []bool{false, true} {
		t.Run(fmt.Sprintf("the commit fails: %v", fails), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, hook := hookedWorld(t, frontier.Options{KeepOpen: true, Delay: frontier.FixedDelay(0)})
				l, err := w.f.Contact(bg, "a.example")
				require.NoError(t, err)
				require.NoError(t, w.f.Done(l, frontier.Outcome{CrawlDelay: slow}))
				gate := make(chan struct{})
				hook.set(func(*frontier.Batch) error {
					<-gate
					if fails {
						return errors.New("disk full")
					}
					return nil
				}, nil)
				a := start(func() (l frontier.Lease, err error) { // the host is idling
					_, err = w.f.Add(bg, entriesOf("a.example", 2)...)
					return l, err
				})
				require.True(t, a.waits())
				w.clk.Advance(time.Hour)
				w.asleep()
				require.EqualValues(t, 1, w.f.Stats().Hosts)
				b := start(func() (l frontier.Lease, err error) { // it is departing
					_, err = w.f.Add(bg, frontier.Entry{URL: "http://a.example/3"})
					return l, err
				})
				require.True(t, b.waits())
				close(gate)
				require.False(t, a.waits())
				require.False(t, b.waits())
				hook.set(nil, nil)
				w.asleep()
				if fails {
					require.Error(t, a.err)
					require.Error(t, b.err)
					require.Zero(t, w.f.Stats().Hosts)
					w.isSlow("a.example")
					return
				}
				due := w.at()
				for i := range 3 {
					w.fetched(w.nextIs(due+time.Duration(i)*slow, fmt.Sprintf("http://a.example/%d", i+1)), 0, frontier.Outcome{})
				}
			})
		})
	}
}

// A host whose row could not be written stays until it is.
func TestHostWhoseRowWasNotWrittenStays(t *testing.T) {
	w := newStoredWorld(t, frontier.Options{KeepOpen: true}, spill.Options{})
	l, err := w.f.Contact(bg, "a.example")
	require.NoError(t, err)
	w.machine.Faults.FailNth(spilltest.Write, 1, errDisk)
	require.ErrorIs(t, w.f.Done(l, frontier.Outcome{CrawlDelay: slow}), errDisk)
	w.clk.Advance(time.Hour)
	w.asleep()
	require.EqualValues(t, 1, w.f.Stats().Hosts)
	w.machine.Faults.FailNth(spilltest.Write, 1, errDisk)
	_, err = w.f.Add(bg, frontier.Entry{URL: "http://b.example/"})
	require.ErrorIs(t, err, errDisk)
	w.asleep()
	require.NoError(t, w.f.Check())
	require.EqualValues(t, 1, w.f.Stats().Hosts)
	w.add("http://b.example/") // its batch has the row, too
	w.fetched(w.next(), 0, frontier.Outcome{})
	w.clk.Advance(time.Hour)
	w.asleep()
	require.Zero(t, w.f.Stats().Hosts)
	w.isSlow("a.example")
}
