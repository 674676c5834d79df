// This file lets the disk fail under a frontier, and damages what it stored.

package durability

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/internal/hook"
	"github.com/seed-7440039f/frontier/internal/lab/trycount"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/spill/spilltest"
	"github.com/seed-7440039f/frontier/test/harness"
	"github.com/stretchr/testify/require"
)

// While nothing can be written, existing URLs are handed out, and are handed out again later.
func TestDiskThatStaysBroken(t *testing.T) {
	w := harness.NewStoredWorld(t, frontier.Options{Delay: frontier.FixedDelay(0)}, spill.Options{})
	w.Add(harness.UrlsOf("a.example", 3)...)
	harness.Ended(t, w.F)
	broken, err := frontier.Open(t.Context(), w.Options)
	require.NoError(t, err)
	w.F = broken
	w.Machine.Faults.FailFrom(spilltest.Write, 1, harness.ErrDisk)
	for range 5 {
		n, err := w.F.Add(t.Context(), frontier.Entry{URL: "http://b.example/"})
		require.ErrorIs(t, err, harness.ErrDisk)
		require.Zero(t, n)
		l := w.NextIs(0, "http://a.example/1")
		require.ErrorIs(t, w.F.Done(l, frontier.Outcome{Add: harness.EntriesOf("c.example", 2)}), harness.ErrDisk)
		require.ErrorIs(t, hook.Of(w.F).MoveNow(true), harness.ErrDisk)
		require.NoError(t, w.F.Check())
	}
	require.EqualValues(t, 3, w.F.Stats().Known)
	require.ErrorIs(t, w.F.Close(), harness.ErrDisk)
	require.ErrorIs(t, w.F.Close(), harness.ErrDisk, "the same answer again")
	w.Machine.Faults.Heal()
	w.Open()
	require.Equal(t, harness.UrlsOf("a.example", 3), w.Rest())
}

// What waited behind a failed write fails with it, and comes again in its order.
func TestFailedCommitKeepsTheOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := harness.NewStoredWorld(t, frontier.Options{Delay: frontier.FixedDelay(0)}, spill.Options{})
		s := &harness.Station{World: w}
		w.Add(harness.UrlsOf("a.example", 5)...)
		gate := make(chan struct{})
		w.Machine.Faults.Before(spilltest.Write, 1, func() { <-gate })
		w.Machine.Faults.FailNth(spilltest.Write, 1, harness.ErrDisk)
		var calls []*harness.Call
		for i := range 3 {
			l := <-nextOf(s)
			require.Equal(t, harness.UrlsOf("a.example", 5)[i], l.Entry.URL)
			calls = append(calls, harness.Start(func() (frontier.Lease, error) { return l, w.F.Done(l, frontier.Outcome{}) }))
		}
		calls = append(calls, harness.Start(func() (l frontier.Lease, err error) {
			_, err = w.F.Add(t.Context(), frontier.Entry{URL: "http://b.example/"})
			return l, err
		}))
		for _, c := range calls {
			require.True(t, c.Waits())
		}
		close(gate)
		for _, c := range calls {
			require.False(t, c.Waits())
			require.ErrorIs(t, c.Err, harness.ErrDisk)
		}
		w.Add("http://b.example/")
		require.Equal(t, append(harness.UrlsOf("a.example", 5), "http://b.example/"), w.Rest())
	})
}

// nextOf is TryNext without waiting for commits.
func nextOf(s *harness.Station) <-chan frontier.Lease {
	c := make(chan frontier.Lease, 1)
	l, _, err := s.F.TryNext()
	require.NoError(s, err)
	c <- l
	return c
}

// A crawl delay that was learned by a Done whose commit failed is not forgotten.
func TestFailedCommitKeepsWhatWasLearned(t *testing.T) {
	w := harness.NewStoredWorld(t, frontier.Options{}, spill.Options{}) // after a crash: 30 s
	w.Add(harness.UrlsOf("a.example", 4)...)
	l := w.NextIs(0, "http://a.example/1")
	w.Machine.Faults.FailNth(spilltest.Write, 1, harness.ErrDisk)
	require.ErrorIs(t, w.F.Done(l, frontier.Outcome{CrawlDelay: 20 * time.Second}), harness.ErrDisk)
	w.Fetched(w.NextIs(20*time.Second, "http://a.example/1"), 0, frontier.Outcome{})
	w = w.Killed()
	w.Fetched(w.NextIs(50*time.Second, "http://a.example/2"), 0, frontier.Outcome{})
	w.NextIs(70*time.Second, "http://a.example/3")
}

// A Next that has the only URL taken away while it reads waits again, and can be
// ended.
func TestURLMovedWhileItIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := harness.NewStoredWorld(t, frontier.Options{}, spill.Options{})
		s := &harness.Station{World: w}
		moved := func() {
			require.NoError(t, hook.Of(w.F).MoveNow(true))
			w.Machine.Faults.Before(spilltest.Read, 1, func() {
				n, err := w.F.Add(context.Background(), frontier.Entry{URL: "http://a.example/", Force: true, NotBefore: w.Clock.Now().Add(time.Hour)})
				require.NoError(t, err)
				require.Equal(t, 1, n)
			})
		}
		w.Add("http://a.example/")
		moved()
		_, at, err := w.F.TryNext()
		require.ErrorIs(t, err, frontier.ErrNotDue)
		require.Equal(t, time.Hour, at.Sub(harness.Dawn))

		w.Until(time.Hour)
		w.F.Stats()
		moved()
		ctx, cancel := context.WithCancel(t.Context())
		c := s.StartNext(ctx)
		require.True(t, c.Waits())
		cancel()
		require.False(t, c.Waits())
		require.ErrorIs(t, c.Err, context.Canceled)

		w.Until(2 * time.Hour)
		w.F.Stats()
		moved()
		c = s.StartNext(t.Context())
		require.True(t, c.Waits())
		w.Until(3 * time.Hour)
		require.False(t, c.Waits())
		require.NoError(t, c.Err)
		require.Equal(t, "http://a.example/", c.Lease.Entry.URL)
	})
}

func TestDamagedBlockIsReportedAndTheOthersServed(t *testing.T) {
	for name, damage := range map[string]func([]byte) []byte{
		"flipped": func(v []byte) []byte { v[len(v)/2] ^= 4; return v },
		"cut":     func(v []byte) []byte { return v[:len(v)-1] },
		"missing": func([]byte) []byte { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			w := harness.NewStoredWorld(t, frontier.Options{Delay: frontier.FixedDelay(0)}, spill.Options{})
			want := []string{}
			for i := range 4 {
				urls := harness.UrlsOf(fmt.Sprintf("h%d.example", i), 100)
				want = append(want, urls...)
				w.Add(urls...)
				require.NoError(t, hook.Of(w.F).MoveNow(true))
			}
			keys := harness.BlockKeys(w.Machine)
			require.Len(t, keys, 4)
			var was []byte
			w.Machine.Damage(func(k, v []byte) []byte {
				if string(k) == keys[1] {
					was = bytes.Clone(v)
					return damage(v)
				}
				return v
			})
			got := []string{}
			reports := 0
			for {
				l, err := w.F.Next(t.Context())
				var ce *frontier.CorruptError
				if errors.As(err, &ce) {
					require.Equal(t, keys[1], string(ce.Key))
					require.Empty(t, l)
					reports++
					continue
				}
				if errors.Is(err, frontier.ErrExhausted) {
					break
				}
				require.NoError(t, err)
				got = append(got, l.Entry.URL)
				require.NoError(t, w.F.Done(l, frontier.Outcome{}))
			}
			require.Len(t, got, 300)
			for _, u := range got {
				require.False(t, strings.Contains(u, "h1."))
			}
			require.EqualValues(t, 100, w.F.Stats().Unreadable)
			require.Positive(t, reports)
			if name == "missing" {
				return // nothing to repair
			}
			require.Contains(t, harness.BlockKeys(w.Machine), keys[1], "the evidence is gone")

			// Once the block is repaired its URLs come.
			harness.Ended(t, w.F)
			w.Machine.Damage(func(k, v []byte) []byte {
				if string(k) == keys[1] {
					return was
				}
				return v
			})
			w.Open()
			got = append(got, w.Rest()...)
			slices.Sort(got)
			slices.Sort(want)
			require.Equal(t, want, got)
		})
	}
}

// A read that fails, but not by damage, costs that call only.
func TestReadFaultIsPassing(t *testing.T) {
	w := harness.NewStoredWorld(t, frontier.Options{Delay: frontier.FixedDelay(0)}, spill.Options{})
	w.Add(harness.UrlsOf("a.example", 50)...)
	require.NoError(t, hook.Of(w.F).MoveNow(true))
	w.Machine.Faults.FailNth(spilltest.Read, 1, harness.ErrDisk)
	_, err := w.F.Next(t.Context())
	require.ErrorIs(t, err, harness.ErrDisk)
	require.NoError(t, w.F.Check())
	require.Zero(t, w.F.Stats().Unreadable)
	n, err := w.F.Add(t.Context(), frontier.Entry{URL: "http://a.example/50", Force: true})
	require.NoError(t, err)
	require.Equal(t, 1, n)
	w.Add(harness.UrlsOf("b.example", 50)...)
	require.NoError(t, hook.Of(w.F).MoveNow(true))
	w.Machine.Faults.FailNth(spilltest.Read, 1, harness.ErrDisk)
	_, err = w.F.Add(t.Context(), frontier.Entry{URL: "http://b.example/49", Force: true})
	require.ErrorIs(t, err, harness.ErrDisk)
	require.ElementsMatch(t, append(harness.UrlsOf("a.example", 50), harness.UrlsOf("b.example", 50)...), w.Rest())
}

// With Sync, what was acknowledged survives a loss of power.
func TestPowerLoss(t *testing.T) {
	w := harness.NewStoredWorld(t, frontier.Options{Delay: frontier.FixedDelay(0)}, spill.Options{Sync: true})
	g := &ledger{TB: t, w: w, in: map[string]bool{}, out: map[string]bool{}, maybe: map[string]bool{}, n: trycount.Of(t)}
	lost := func() {
		t.Helper()
		for kept := 0; kept <= w.Machine.Disk.Unsynced(); kept++ {
			x := w.On(w.Machine.PowerLoss(t, kept))
			g.shows(x.Rest())
		}
	}
	g.add(g.fresh(30))
	lost()
	for i := range 10 {
		g.visit(frontier.Outcome{})
		lost()
		if i%4 == 3 {
			g.move()
			lost()
		}
	}
}
