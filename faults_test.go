// This file lets the disk fail under a frontier, and damages what it stored.

package frontier_test

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
	"github.com/seed-7440039f/frontier/internal/tally"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/spill/spilltest"
	"github.com/stretchr/testify/require"
)

var errDisk = errors.New("disk fault")

// While nothing can be written, what is there is handed out, and comes again.
func TestDiskThatStaysBroken(t *testing.T) {
	w := newStoredWorld(t, frontier.Options{Delay: frontier.FixedDelay(0)}, spill.Options{})
	w.add(urlsOf("a.example", 3)...)
	ended(t, w.f)
	broken, err := frontier.Open(t.Context(), w.opts)
	require.NoError(t, err)
	w.f = broken
	w.machine.Faults.FailFrom(spilltest.Write, 1, errDisk)
	for range 5 {
		n, err := w.f.Add(t.Context(), frontier.Entry{URL: "http://b.example/"})
		require.ErrorIs(t, err, errDisk)
		require.Zero(t, n)
		l := w.nextIs(0, "http://a.example/1")
		require.ErrorIs(t, w.f.Done(l, frontier.Outcome{Add: entriesOf("c.example", 2)}), errDisk)
		require.ErrorIs(t, w.f.MoveNow(true), errDisk)
		require.NoError(t, w.f.Check())
	}
	require.EqualValues(t, 3, w.f.Stats().Known)
	require.ErrorIs(t, w.f.Close(), errDisk)
	require.ErrorIs(t, w.f.Close(), errDisk, "the same answer again")
	w.machine.Faults.Heal()
	w.open()
	require.Equal(t, urlsOf("a.example", 3), w.rest())
}

// What waited behind a failed write fails with it, and comes again in its order.
func TestFailedCommitKeepsTheOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newStoredWorld(t, frontier.Options{Delay: frontier.FixedDelay(0)}, spill.Options{})
		s := &station{world: w}
		w.add(urlsOf("a.example", 5)...)
		gate := make(chan struct{})
		w.machine.Faults.Before(spilltest.Write, 1, func() { <-gate })
		w.machine.Faults.FailNth(spilltest.Write, 1, errDisk)
		var calls []*call
		for i := range 3 {
			l := <-nextOf(s)
			require.Equal(t, urlsOf("a.example", 5)[i], l.Entry.URL)
			calls = append(calls, start(func() (frontier.Lease, error) { return l, w.f.Done(l, frontier.Outcome{}) }))
		}
		calls = append(calls, start(func() (l frontier.Lease, err error) {
			_, err = w.f.Add(t.Context(), frontier.Entry{URL: "http://b.example/"})
			return l, err
		}))
		for _, c := range calls {
			require.True(t, c.waits())
		}
		close(gate)
		for _, c := range calls {
			require.False(t, c.waits())
			require.ErrorIs(t, c.err, errDisk)
		}
		w.add("http://b.example/")
		require.Equal(t, append(urlsOf("a.example", 5), "http://b.example/"), w.rest())
	})
}

// nextOf is TryNext without waiting for commits.
func nextOf(s *station) <-chan frontier.Lease {
	c := make(chan frontier.Lease, 1)
	l, _, err := s.f.TryNext()
	require.NoError(s, err)
	c <- l
	return c
}

// A crawl delay that was learned by a Done whose commit failed is not forgotten.
func TestFailedCommitKeepsWhatWasLearned(t *testing.T) {
	w := newStoredWorld(t, frontier.Options{}, spill.Options{}) // after a crash: 30 s
	w.add(urlsOf("a.example", 4)...)
	l := w.nextIs(0, "http://a.example/1")
	w.machine.Faults.FailNth(spilltest.Write, 1, errDisk)
	require.ErrorIs(t, w.f.Done(l, frontier.Outcome{CrawlDelay: 20 * time.Second}), errDisk)
	w.fetched(w.nextIs(20*time.Second, "http://a.example/1"), 0, frontier.Outcome{})
	w = w.killed()
	w.fetched(w.nextIs(50*time.Second, "http://a.example/2"), 0, frontier.Outcome{})
	w.nextIs(70*time.Second, "http://a.example/3")
}

// A Next that has the only URL taken away while it reads waits again, and can be
// ended.
func TestURLMovedWhileItIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newStoredWorld(t, frontier.Options{}, spill.Options{})
		s := &station{world: w}
		moved := func() {
			require.NoError(t, w.f.MoveNow(true))
			w.machine.Faults.Before(spilltest.Read, 1, func() {
				n, err := w.f.Add(context.Background(), frontier.Entry{URL: "http://a.example/", Force: true, NotBefore: w.clk.Now().Add(time.Hour)})
				require.NoError(t, err)
				require.Equal(t, 1, n)
			})
		}
		w.add("http://a.example/")
		moved()
		_, at, err := w.f.TryNext()
		require.ErrorIs(t, err, frontier.ErrNotDue)
		require.Equal(t, time.Hour, at.Sub(dawn))

		w.until(time.Hour)
		w.f.Stats()
		moved()
		ctx, cancel := context.WithCancel(t.Context())
		c := s.startNext(ctx)
		require.True(t, c.waits())
		cancel()
		require.False(t, c.waits())
		require.ErrorIs(t, c.err, context.Canceled)

		w.until(2 * time.Hour)
		w.f.Stats()
		moved()
		c = s.startNext(t.Context())
		require.True(t, c.waits())
		w.until(3 * time.Hour)
		require.False(t, c.waits())
		require.NoError(t, c.err)
		require.Equal(t, "http://a.example/", c.lease.Entry.URL)
	})
}

// blockKeys lists the keys of the blocks on a machine's disk, in order.
func blockKeys(m *spilltest.Machine) (keys []string) {
	m.Damage(func(k, v []byte) []byte {
		if len(k) > 4 && k[4] == 'B' {
			keys = append(keys, string(k))
		}
		return v
	})
	slices.Sort(keys)
	return keys
}

func TestDamagedBlockIsReportedAndTheOthersServed(t *testing.T) {
	for name, damage := range map[string]func([]byte) []byte{
		"flipped": func(v []byte) []byte { v[len(v)/2] ^= 4; return v },
		"cut":     func(v []byte) []byte { return v[:len(v)-1] },
		"missing": func([]byte) []byte { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			w := newStoredWorld(t, frontier.Options{Delay: frontier.FixedDelay(0)}, spill.Options{})
			want := []string{}
			for i := range 4 {
				urls := urlsOf(fmt.Sprintf("h%d.example", i), 100)
				want = append(want, urls...)
				w.add(urls...)
				require.NoError(t, w.f.MoveNow(true))
			}
			keys := blockKeys(w.machine)
			require.Len(t, keys, 4)
			var was []byte
			w.machine.Damage(func(k, v []byte) []byte {
				if string(k) == keys[1] {
					was = bytes.Clone(v)
					return damage(v)
				}
				return v
			})
			got := []string{}
			reports := 0
			for {
				l, err := w.f.Next(t.Context())
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
				require.NoError(t, w.f.Done(l, frontier.Outcome{}))
			}
			require.Len(t, got, 300)
			for _, u := range got {
				require.False(t, strings.Contains(u, "h1."))
			}
			require.EqualValues(t, 100, w.f.Stats().Unreadable)
			require.Positive(t, reports)
			if name == "missing" {
				return // nothing to repair
			}
			require.Contains(t, blockKeys(w.machine), keys[1], "the evidence is gone")

			// Once the block is repaired its URLs come.
			ended(t, w.f)
			w.machine.Damage(func(k, v []byte) []byte {
				if string(k) == keys[1] {
					return was
				}
				return v
			})
			w.open()
			got = append(got, w.rest()...)
			slices.Sort(got)
			slices.Sort(want)
			require.Equal(t, want, got)
		})
	}
}

// A read that fails, but not by damage, costs that call only.
func TestReadFaultIsPassing(t *testing.T) {
	w := newStoredWorld(t, frontier.Options{Delay: frontier.FixedDelay(0)}, spill.Options{})
	w.add(urlsOf("a.example", 50)...)
	require.NoError(t, w.f.MoveNow(true))
	w.machine.Faults.FailNth(spilltest.Read, 1, errDisk)
	_, err := w.f.Next(t.Context())
	require.ErrorIs(t, err, errDisk)
	require.NoError(t, w.f.Check())
	require.Zero(t, w.f.Stats().Unreadable)
	n, err := w.f.Add(t.Context(), frontier.Entry{URL: "http://a.example/50", Force: true})
	require.NoError(t, err)
	require.Equal(t, 1, n)
	w.add(urlsOf("b.example", 50)...)
	require.NoError(t, w.f.MoveNow(true))
	w.machine.Faults.FailNth(spilltest.Read, 1, errDisk)
	_, err = w.f.Add(t.Context(), frontier.Entry{URL: "http://b.example/49", Force: true})
	require.ErrorIs(t, err, errDisk)
	require.ElementsMatch(t, append(urlsOf("a.example", 50), urlsOf("b.example", 50)...), w.rest())
}

// With Sync, what was acknowledged survives a loss of power.
func TestPowerLoss(t *testing.T) {
	w := newStoredWorld(t, frontier.Options{Delay: frontier.FixedDelay(0)}, spill.Options{Sync: true})
	g := &ledger{TB: t, w: w, in: map[string]bool{}, out: map[string]bool{}, maybe: map[string]bool{}, n: tally.Of(t)}
	lost := func() {
		t.Helper()
		for kept := 0; kept <= w.machine.Disk.Unsynced(); kept++ {
			x := w.on(w.machine.PowerLoss(t, kept))
			g.shows(x.rest())
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
