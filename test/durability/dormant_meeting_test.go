// This file tests hosts that leave memory while other calls, failing disks and
// crashes meet them.

package durability

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/internal/hook"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/spill/spilltest"
	"github.com/seed-7440039f/frontier/storage"
	"github.com/seed-7440039f/frontier/test/harness"
)

// A row that cannot be read: the call that needs it fails, and changes nothing.
func TestUnreadableRowOfADormantHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := harness.NewStoredWorld(t, frontier.Options{KeepOpen: true, LeaseTime: time.Minute}, spill.Options{})
		w.Add("http://seed.example/1", "http://seed.example/2")
		late, err := w.F.Contact(context.Background(), "a.example")
		require.NoError(t, err)
		w.Clock.Advance(time.Hour)
		w.Learns("a.example")
		w.Add("http://x.example/") // the rows of what was before are in the engine now
		fault := func() { w.Machine.Faults.FailNth(spilltest.Read, 1, harness.ErrDisk) }
		before := w.F.Stats()

		fault()
		n, err := w.F.Add(context.Background(), frontier.Entry{URL: "http://b.example/"}, frontier.Entry{URL: "http://a.example/1"})
		require.ErrorIs(t, err, harness.ErrDisk)
		require.Zero(t, n)
		fault()
		_, err = w.F.Contact(context.Background(), "a.example")
		require.ErrorIs(t, err, harness.ErrDisk)
		fault()
		err = w.F.Done(late, frontier.Outcome{})
		require.ErrorIs(t, err, frontier.ErrNotLeased)
		require.ErrorIs(t, err, harness.ErrDisk)
		require.Equal(t, before, w.F.Stats())

		l := w.Next()
		fault()
		require.ErrorIs(t, w.F.Done(l, frontier.Outcome{Add: []frontier.Entry{{URL: "http://b.example/"}, {URL: "http://a.example/1"}}}), harness.ErrDisk)
		require.Equal(t, before.Known, w.F.Stats().Known)
		require.NoError(t, w.F.Check())

		w.Clock.Advance(time.Hour)
		for range 2 {
			w.Fetched(w.Next(), 0, frontier.Outcome{})
		}
		w.IsSlow("a.example")
	})
}

// Nothing is read of the host of a known URL.
func TestKnownURLOfADormantHost(t *testing.T) {
	w := harness.NewStoredWorld(t, frontier.Options{KeepOpen: true}, spill.Options{})
	w.Add("http://a.example/1")
	w.Fetched(w.Next(), 0, frontier.Outcome{CrawlDelay: harness.Slow})
	w.Clock.Advance(time.Hour)
	w.Asleep()
	w.Add("http://b.example/1") // the row is in the engine now
	w.Machine.Faults.FailNth(spilltest.Read, 1, harness.ErrDisk)
	n, err := w.F.Add(context.Background(), frontier.Entry{URL: "http://a.example/1"})
	require.NoError(t, err)
	require.Zero(t, n)
	_, err = w.F.Add(context.Background(), frontier.Entry{URL: "http://a.example/2"})
	require.ErrorIs(t, err, harness.ErrDisk)
	w.Next()
	w.IsSlow("a.example")
}

// Damage on disk is reported.
func TestDamagedRowOfADormantHost(t *testing.T) {
	w := harness.NewStoredWorld(t, frontier.Options{KeepOpen: true}, spill.Options{})
	w.Learns("a.example")
	w.Add("http://x.example/") // writes what is due
	w.Machine.Damage(func(k, v []byte) []byte {
		if len(k) > 7 && string(k[5:7]) == "h:" {
			return v[:1]
		}
		return v
	})
	var ce *frontier.CorruptError
	_, err := w.F.Add(context.Background(), frontier.Entry{URL: "http://a.example/"})
	require.ErrorAs(t, err, &ce)
	require.Equal(t, "h:a.example", string(ce.Key))
}

// rowHook is a Spill that calls fn after each Row.
type rowHook struct {
	storage.Spill
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
	for name, call := range map[string]func(*harness.World) (frontier.Lease, error){
		"Contact": func(w *harness.World) (frontier.Lease, error) {
			w.Add(harness.UrlsOf("a.example", 1)...)
			return w.F.Contact(context.Background(), "a.example")
		},
		"Add": func(w *harness.World) (frontier.Lease, error) {
			w.Add(harness.UrlsOf("a.example", 2)...)
			return w.Next(), nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := harness.NewStoredWorld(t, frontier.Options{KeepOpen: true, Delay: frontier.FixedDelay(0)}, spill.Options{})
			require.NoError(t, w.F.Close())
			h := &rowHook{Spill: w.Machine.Store}
			w.Options.Spill = h
			w.Open()
			w.Learns("a.example")
			read := 0
			if name == "Contact" {
				w.Add("http://a.example/0") // resident: the Contact needs no row
				w.Fetched(w.Next(), 0, frontier.Outcome{})
				w.Clock.Advance(time.Hour)
				w.Asleep()
			}
			require.Zero(t, w.F.Stats().Hosts)
			h.fn = func() {
				read++
				l, err := w.F.Contact(context.Background(), "a.example")
				require.NoError(t, err)
				require.NoError(t, w.F.Done(l, frontier.Outcome{CrawlDelay: time.Minute}))
				w.Clock.Advance(time.Hour)
				w.Asleep()
				require.Zero(t, w.F.Stats().Hosts)
			}
			l, err := call(w)
			require.NoError(t, err)
			require.Equal(t, 1, read)
			due := w.At() + time.Minute
			require.NoError(t, w.F.Done(l, frontier.Outcome{}))
			l = w.Next()
			require.Equal(t, due, w.At(), "what it learned meanwhile is forgotten")
			require.NoError(t, w.F.Done(l, frontier.Outcome{}))
		})
	}
}

// The same if the call has nothing to do with the host any more: its URL was
// admitted meanwhile.
func TestHostThatComesAndGoesWithTheURLOfAnAdd(t *testing.T) {
	w, commits := harness.HookedWorld(t, frontier.Options{KeepOpen: true, Delay: frontier.FixedDelay(0)})
	require.NoError(t, w.F.Close())
	h := &rowHook{Spill: commits}
	w.Options.Spill = h
	w.Open()
	w.Learns("a.example")
	h.fn = func() {
		w.Add("http://a.example/1")
		w.Fetched(w.Next(), 0, frontier.Outcome{CrawlDelay: time.Minute})
		w.Clock.Advance(time.Hour)
		w.Asleep()
		require.False(t, hook.Of(w.F).Resident("a.example"))
		commits.Set(func(*storage.Batch) error {
			require.False(t, hook.Of(w.F).Resident("a.example"), "with what was read before it came and went")
			return nil
		}, nil)
	}
	n, err := w.F.Add(context.Background(), frontier.Entry{URL: "http://a.example/1"}, frontier.Entry{URL: "http://b.example/"})
	require.NoError(t, err)
	require.Equal(t, 1, n)
	commits.Set(nil, nil)
	w.Fetched(w.Next(), 0, frontier.Outcome{})
	due := w.At()
	w.Add("http://a.example/2", "http://a.example/3")
	w.Fetched(w.NextIs(due, "http://a.example/2"), 0, frontier.Outcome{})
	w.NextIs(due+time.Minute, "http://a.example/3")
}

// gated makes each commit wait for a send on the channel that it returns, which is
// the error of that commit.
func gated(store *harness.Hooked) chan error {
	gate := make(chan error)
	store.Set(func(*storage.Batch) error { return <-gate }, nil)
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
		{"while it departs, and the commit fails", true, harness.ErrDisk},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, store := harness.HookedWorld(t, frontier.Options{KeepOpen: true, Delay: frontier.FixedDelay(0)})
				l, err := w.F.Contact(context.Background(), "a.example")
				require.NoError(t, err)
				require.NoError(t, w.F.Done(l, frontier.Outcome{CrawlDelay: harness.Slow}))
				gate := gated(store)
				other := harness.Start(func() (l frontier.Lease, err error) {
					return l, w.F.UpdateRule(scope.Host("x.example"), func(r *frontier.Rule) { r.Delay = frontier.FixedDelay(0) })
				})
				if c.departing {
					w.Clock.Advance(time.Hour)
					w.Asleep()
				}
				a := harness.Start(func() (l frontier.Lease, err error) {
					_, err = w.F.Add(context.Background(), harness.EntriesOf("a.example", 2)...)
					return l, err
				})
				w.Clock.Advance(time.Hour)
				w.Asleep()
				gate <- nil
				require.False(t, other.Waits())
				require.True(t, a.Waits())
				w.Asleep()
				require.True(t, hook.Of(w.F).Resident("a.example"))
				gate <- c.err
				require.False(t, a.Waits())
				require.ErrorIs(t, a.Err, c.err)
				store.Set(nil, nil)
				if c.err != nil {
					w.Asleep()
					require.False(t, hook.Of(w.F).Resident("a.example"))
					w.Add(harness.UrlsOf("a.example", 2)...)
				}
				due := w.At()
				w.Fetched(w.NextIs(due, "http://a.example/1"), 0, frontier.Outcome{})
				w.NextIs(due+harness.Slow, "http://a.example/2")
			})
		})
	}
}

// A host whose row is on its way to disk stays until it has arrived, even if it
// may be contacted at once.
func TestHostWhoseRowIsOnItsWayStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, store := harness.HookedWorld(t, frontier.Options{KeepOpen: true, Delay: frontier.FixedDelay(0), LeaseTime: 2 * time.Hour})
		l, err := w.F.Contact(context.Background(), "a.example")
		require.NoError(t, err)
		ended := w.Clock.Now()
		w.Clock.Advance(time.Hour)
		gate := gated(store)
		d := harness.Start(func() (frontier.Lease, error) {
			return l, w.F.Done(l, frontier.Outcome{CrawlDelay: harness.Slow, Ended: ended})
		})
		require.True(t, d.Waits())
		w.Asleep()
		require.True(t, hook.Of(w.F).Resident("a.example"))
		gate <- nil
		require.False(t, d.Waits())
		require.NoError(t, d.Err)
		store.Set(nil, nil)
		w.Asleep()
		require.False(t, hook.Of(w.F).Resident("a.example"))
		w.IsSlow("a.example")
	})
}

// While a Force looks for a URL on disk its host may leave.
func TestHostThatLeavesWhileAForceReads(t *testing.T) {
	w, store := harness.HookedWorld(t, frontier.Options{KeepOpen: true, Delay: frontier.FixedDelay(0)})
	w.Add("http://a.example/1")
	w.Fetched(w.Next(), 0, frontier.Outcome{CrawlDelay: harness.Slow})
	w.Clock.Advance(time.Hour)
	w.Asleep()
	w.Add("http://a.example/2")
	require.NoError(t, hook.Of(w.F).MoveNow(true))
	left := false
	store.Set(nil, func() {
		store.Set(nil, nil)
		w.Fetched(w.Next(), 0, frontier.Outcome{})
		w.Clock.Advance(time.Hour)
		w.Asleep()
		left = !hook.Of(w.F).Resident("a.example")
	})
	n, err := w.F.Add(context.Background(), frontier.Entry{URL: "http://a.example/1", Force: true})
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.True(t, left)
	due := w.At()
	w.Add("http://a.example/3")
	w.Fetched(w.NextIs(due, "http://a.example/1"), 0, frontier.Outcome{})
	w.NextIs(due+harness.Slow, "http://a.example/3")
}

// A host that waits for a scheduled URL stays.
func TestHostOfAScheduledURLStays(t *testing.T) {
	w := harness.NewStoredWorld(t, frontier.Options{KeepOpen: true}, spill.Options{})
	w.Learns("a.example")
	at := w.At() + 48*time.Hour
	n, err := w.F.Add(context.Background(), frontier.Entry{URL: "http://a.example/later", NotBefore: harness.Dawn.Add(at)})
	require.NoError(t, err)
	require.Equal(t, 1, n)
	w.Clock.Advance(time.Hour)
	w.Asleep()
	require.NoError(t, w.F.Check())
	w.Fetched(w.NextIs(at, "http://a.example/later"), 0, frontier.Outcome{})
	w.Add("http://a.example/then")
	w.NextIs(at+harness.Slow, "http://a.example/then")
}

// A host whose row could not be written stays until it is.
func TestHostWhoseRowWasNotWrittenStays(t *testing.T) {
	w := harness.NewStoredWorld(t, frontier.Options{KeepOpen: true}, spill.Options{})
	l, err := w.F.Contact(context.Background(), "a.example")
	require.NoError(t, err)
	w.Machine.Faults.FailNth(spilltest.Write, 1, harness.ErrDisk)
	require.ErrorIs(t, w.F.Done(l, frontier.Outcome{CrawlDelay: harness.Slow}), harness.ErrDisk)
	w.Clock.Advance(time.Hour)
	w.Asleep()
	require.EqualValues(t, 1, w.F.Stats().Hosts)
	w.Machine.Faults.FailNth(spilltest.Write, 1, harness.ErrDisk)
	_, err = w.F.Add(context.Background(), frontier.Entry{URL: "http://b.example/"})
	require.ErrorIs(t, err, harness.ErrDisk)
	w.Asleep()
	require.NoError(t, w.F.Check())
	require.EqualValues(t, 1, w.F.Stats().Hosts)
	w.Add("http://b.example/") // its batch has the row, too
	w.Fetched(w.Next(), 0, frontier.Outcome{})
	w.Clock.Advance(time.Hour)
	w.Asleep()
	require.Zero(t, w.F.Stats().Hosts)
	w.IsSlow("a.example")
}

// What could not be written at its time is written when the frontier is closed.
func TestClosingWritesWhatWasLearned(t *testing.T) {
	w := harness.NewStoredWorld(t, frontier.Options{KeepOpen: true}, spill.Options{})
	l, err := w.F.Contact(context.Background(), "a.example")
	require.NoError(t, err)
	w.Machine.Faults.FailNth(spilltest.Write, 1, harness.ErrDisk)
	require.ErrorIs(t, w.F.Done(l, frontier.Outcome{CrawlDelay: harness.Slow}), harness.ErrDisk)
	w.Clock.Advance(time.Hour)
	w.Reopen()
	w.IsSlow("a.example")
}
