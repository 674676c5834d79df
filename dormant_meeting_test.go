// This file tests hosts that leave memory while other calls, failing disks and
// crashes meet them.

package frontier_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/spill/spilltest"
	"github.com/stretchr/testify/require"
)

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

// Nothing is read of the host of a known URL.
func TestKnownURLOfADormantHost(t *testing.T) {
	w := newStoredWorld(t, frontier.Options{KeepOpen: true}, spill.Options{})
	w.add("http://a.example/1")
	w.fetched(w.next(), 0, frontier.Outcome{CrawlDelay: slow})
	w.clk.Advance(time.Hour)
	w.asleep()
	w.add("http://b.example/1") // the row is in the engine now
	w.machine.Faults.FailNth(spilltest.Read, 1, errDisk)
	n, err := w.f.Add(bg, frontier.Entry{URL: "http://a.example/1"})
	require.NoError(t, err)
	require.Zero(t, n)
	_, err = w.f.Add(bg, frontier.Entry{URL: "http://a.example/2"})
	require.ErrorIs(t, err, errDisk)
	w.next()
	w.isSlow("a.example")
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

// The same if the call has nothing to do with the host any more: its URL was
// admitted meanwhile.
func TestHostThatComesAndGoesWithTheURLOfAnAdd(t *testing.T) {
	w, commits := hookedWorld(t, frontier.Options{KeepOpen: true, Delay: frontier.FixedDelay(0)})
	require.NoError(t, w.f.Close())
	h := &rowHook{Spill: commits}
	w.opts.Spill = h
	w.open()
	w.learns("a.example")
	h.fn = func() {
		w.add("http://a.example/1")
		w.fetched(w.next(), 0, frontier.Outcome{CrawlDelay: time.Minute})
		w.clk.Advance(time.Hour)
		w.asleep()
		require.False(t, w.f.Resident("a.example"))
		commits.set(func(*frontier.Batch) error {
			require.False(t, w.f.Resident("a.example"), "with what was read before it came and went")
			return nil
		}, nil)
	}
	n, err := w.f.Add(bg, frontier.Entry{URL: "http://a.example/1"}, frontier.Entry{URL: "http://b.example/"})
	require.NoError(t, err)
	require.Equal(t, 1, n)
	commits.set(nil, nil)
	w.fetched(w.next(), 0, frontier.Outcome{})
	due := w.at()
	w.add("http://a.example/2", "http://a.example/3")
	w.fetched(w.nextIs(due, "http://a.example/2"), 0, frontier.Outcome{})
	w.nextIs(due+time.Minute, "http://a.example/3")
}

// gated makes each commit wait for a send on the channel that it returns, which is
// the error of that commit.
func gated(hook *hooked) chan error {
	gate := make(chan error)
	hook.set(func(*frontier.Batch) error { return <-gate }, nil)
	return gate
}

// A host that an Add names does not leave before that Add is committed, also if
// its commit fails.
func TestHostNamedByAnAddDoesNotLeave(t *testing.T) {
	for _, c := range []struct {
		name      string
		departing bool // else its time has not passed yet
		err       error
	}{
		{"while it idles", false, nil},
		{"while it departs", true, nil},
		{"while it departs, and the commit fails", true, errDisk},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, hook := hookedWorld(t, frontier.Options{KeepOpen: true, Delay: frontier.FixedDelay(0)})
				l, err := w.f.Contact(bg, "a.example")
				require.NoError(t, err)
				require.NoError(t, w.f.Done(l, frontier.Outcome{CrawlDelay: slow}))
				gate := gated(hook)
				other := start(func() (l frontier.Lease, err error) {
					return l, w.f.SetDelay(frontier.Host("x.example"), frontier.FixedDelay(0))
				})
				if c.departing {
					w.clk.Advance(time.Hour)
					w.asleep()
				}
				a := start(func() (l frontier.Lease, err error) {
					_, err = w.f.Add(bg, entriesOf("a.example", 2)...)
					return l, err
				})
				w.clk.Advance(time.Hour)
				w.asleep()
				gate <- nil
				require.False(t, other.waits())
				require.True(t, a.waits())
				w.asleep()
				require.True(t, w.f.Resident("a.example"))
				gate <- c.err
				require.False(t, a.waits())
				require.ErrorIs(t, a.err, c.err)
				hook.set(nil, nil)
				if c.err != nil {
					w.asleep()
					require.False(t, w.f.Resident("a.example"))
					w.add(urlsOf("a.example", 2)...)
				}
				due := w.at()
				w.fetched(w.nextIs(due, "http://a.example/1"), 0, frontier.Outcome{})
				w.nextIs(due+slow, "http://a.example/2")
			})
		})
	}
}

// A host whose row is on its way to disk stays until it has arrived, even if it
// may be contacted at once.
func TestHostWhoseRowIsOnItsWayStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, hook := hookedWorld(t, frontier.Options{KeepOpen: true, Delay: frontier.FixedDelay(0), LeaseTime: 2 * time.Hour})
		l, err := w.f.Contact(bg, "a.example")
		require.NoError(t, err)
		ended := w.clk.Now()
		w.clk.Advance(time.Hour)
		gate := gated(hook)
		d := start(func() (frontier.Lease, error) {
			return l, w.f.Done(l, frontier.Outcome{CrawlDelay: slow, Ended: ended})
		})
		require.True(t, d.waits())
		w.asleep()
		require.True(t, w.f.Resident("a.example"))
		gate <- nil
		require.False(t, d.waits())
		require.NoError(t, d.err)
		hook.set(nil, nil)
		w.asleep()
		require.False(t, w.f.Resident("a.example"))
		w.isSlow("a.example")
	})
}

// While a Force looks for a URL on disk its host may leave.
func TestHostThatLeavesWhileAForceReads(t *testing.T) {
	w, hook := hookedWorld(t, frontier.Options{KeepOpen: true, Delay: frontier.FixedDelay(0)})
	w.add("http://a.example/1")
	w.fetched(w.next(), 0, frontier.Outcome{CrawlDelay: slow})
	w.clk.Advance(time.Hour)
	w.asleep()
	w.add("http://a.example/2")
	require.NoError(t, w.f.MoveNow(true))
	left := false
	hook.set(nil, func() {
		hook.set(nil, nil)
		w.fetched(w.next(), 0, frontier.Outcome{})
		w.clk.Advance(time.Hour)
		w.asleep()
		left = !w.f.Resident("a.example")
	})
	n, err := w.f.Add(bg, frontier.Entry{URL: "http://a.example/1", Force: true})
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.True(t, left)
	due := w.at()
	w.add("http://a.example/3")
	w.fetched(w.nextIs(due, "http://a.example/1"), 0, frontier.Outcome{})
	w.nextIs(due+slow, "http://a.example/3")
}

// A host that waits for a scheduled URL stays.
func TestHostOfAScheduledURLStays(t *testing.T) {
	w := newStoredWorld(t, frontier.Options{KeepOpen: true}, spill.Options{})
	w.learns("a.example")
	at := w.at() + 48*time.Hour
	n, err := w.f.Add(bg, frontier.Entry{URL: "http://a.example/later", NotBefore: dawn.Add(at)})
	require.NoError(t, err)
	require.Equal(t, 1, n)
	w.clk.Advance(time.Hour)
	w.asleep()
	require.NoError(t, w.f.Check())
	w.fetched(w.nextIs(at, "http://a.example/later"), 0, frontier.Outcome{})
	w.add("http://a.example/then")
	w.nextIs(at+slow, "http://a.example/then")
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

// What could not be written at its time is written when the frontier is closed.
func TestClosingWritesWhatWasLearned(t *testing.T) {
	w := newStoredWorld(t, frontier.Options{KeepOpen: true}, spill.Options{})
	l, err := w.f.Contact(bg, "a.example")
	require.NoError(t, err)
	w.machine.Faults.FailNth(spilltest.Write, 1, errDisk)
	require.ErrorIs(t, w.f.Done(l, frontier.Outcome{CrawlDelay: slow}), errDisk)
	w.clk.Advance(time.Hour)
	w.reopen()
	w.isSlow("a.example")
}
