// This file lets the disk fail under a frontier, at each call in turn.

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
	"github.com/seed-7440039f/frontier/internal/simclock"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/spill/spilltest"
	"github.com/stretchr/testify/require"
)

var errDisk = errors.New("disk fault")

// ledger is what a caller knows of its URLs, from what calls returned.
type ledger struct {
	testing.TB
	w     *world
	in    map[string]bool // admitted and not finished
	out   map[string]bool // finished
	maybe map[string]bool // of a call that failed and was not repeated yet
	next  int
}

// failed reports whether a call failed, and requires that it was the disk.
func (g *ledger) failed(err error) bool {
	g.Helper()
	if err != nil {
		require.ErrorIs(g, err, errDisk)
		g.survives()
	}
	return err != nil
}

// survives requires that the death of the process now would lose nothing that was
// acknowledged, and bring nothing back that was finished.
func (g *ledger) survives() {
	g.Helper()
	m := g.w.machine.Kill(g)
	o := g.w.opts
	o.Spill = m.Store
	f, err := frontier.Open(context.Background(), o)
	require.NoError(g, err)
	w := &world{TB: g, f: f, clk: g.w.clk, opts: o, machine: m}
	g.shows(w.rest())
	ended(g, f)
}

// shows compares URLs that came out with what must.
func (g *ledger) shows(urls []string) {
	g.Helper()
	got := map[string]bool{}
	for _, u := range urls {
		require.False(g, got[u], "%s came twice", u)
		got[u] = true
		require.True(g, g.in[u] || g.maybe[u], "%s was finished, or never added", u)
	}
	for u := range g.in {
		require.True(g, got[u] || g.maybe[u], "%s is lost", u)
	}
}

func (g *ledger) fresh(n int) (out []frontier.Entry) {
	for range n {
		g.next++
		out = append(out, frontier.Entry{URL: fmt.Sprintf("http://h%d.example/%d", g.next%3, g.next), Meta: []byte("meta")})
	}
	return out
}

// add adds entries until it works.
func (g *ledger) add(entries []frontier.Entry) {
	g.Helper()
	for _, e := range entries {
		g.maybe[e.URL] = true
	}
	n, err := g.w.f.Add(context.Background(), entries...)
	if g.failed(err) {
		require.Zero(g, n)
		n, err = g.w.f.Add(context.Background(), entries...)
		require.NoError(g, err)
	}
	require.Equal(g, len(entries), n, "a URL of a failed Add is not known")
	for _, e := range entries {
		delete(g.maybe, e.URL)
		g.in[e.URL] = true
	}
}

// visit takes a URL, and finishes it with outlinks.
func (g *ledger) visit(o frontier.Outcome) {
	g.Helper()
	l, _, err := g.w.tryNext()
	if g.failed(err) {
		l, _, err = g.w.tryNext()
	}
	require.NoError(g, err)
	require.True(g, g.in[l.Entry.URL])
	o.Add = g.fresh(2)
	g.maybe[l.Entry.URL], g.maybe[o.Add[0].URL], g.maybe[o.Add[1].URL] = true, true, true
	ends := o.Result != frontier.Requeue && o.Next.IsZero()
	switch err := g.w.f.Done(l, o); {
	case g.failed(err) && strings.Contains(err.Error(), "outlinks"): // the completion was recorded
		g.add(o.Add)
	case err != nil:
		again, _, err := g.w.tryNext()
		require.NoError(g, err)
		for again.Entry.URL != l.Entry.URL { // another host's turn
			require.NoError(g, g.w.f.Done(again, requeue))
			again, _, err = g.w.tryNext()
			require.NoError(g, err)
		}
		require.Equal(g, l.Attempt, again.Attempt)
		require.NoError(g, g.w.f.Done(again, o))
	}
	delete(g.maybe, l.Entry.URL)
	if ends {
		delete(g.in, l.Entry.URL)
		g.out[l.Entry.URL] = true
	}
	for _, e := range o.Add {
		delete(g.maybe, e.URL)
		g.in[e.URL] = true
	}
}

// delete deletes what there is of a host until it works.
func (g *ledger) delete(host string) {
	g.Helper()
	var gone []string
	for u := range g.in {
		if strings.HasPrefix(u, "http://"+host+"/") {
			gone = append(gone, u)
			g.maybe[u] = true
		}
	}
	_, err := g.w.f.Delete(context.Background(), frontier.Host(host))
	if g.failed(err) {
		n, err := g.w.f.Delete(context.Background(), frontier.Host(host))
		require.NoError(g, err)
		require.EqualValues(g, len(gone), n, "a Delete that failed has changed nothing")
	}
	for _, u := range gone {
		delete(g.in, u)
		delete(g.maybe, u)
		g.out[u] = true
	}
}

func (g *ledger) move() {
	g.Helper()
	if g.failed(g.w.f.MoveNow(true)) {
		require.NoError(g, g.w.f.MoveNow(true))
	}
}

func (g *ledger) open() {
	g.Helper()
	f, err := frontier.Open(context.Background(), g.w.opts)
	if g.failed(err) {
		require.Nil(g, f)
		f, err = frontier.Open(context.Background(), g.w.opts)
	}
	require.NoError(g, err)
	g.w.f = f
}

func (g *ledger) reopen() {
	g.Helper()
	require.NoError(g, g.w.f.Check())
	_ = g.failed(g.w.f.Close())
	g.open()
	g.w.clk.Advance(time.Minute)
}

// life is a short life of a frontier, with all that touches the disk.
func (g *ledger) life() {
	g.Helper()
	g.open()
	g.add(g.fresh(40))
	for range 3 {
		g.visit(frontier.Outcome{})
	}
	g.move()
	for i := range 6 {
		g.visit(frontier.Outcome{Result: frontier.Result(i)})
	}
	g.add(g.fresh(40))
	g.visit(frontier.Outcome{Next: g.w.clk.Now().Add(30 * time.Second)})
	g.visit(frontier.Outcome{Result: frontier.Requeue, CrawlDelay: ms})
	g.delete("h1.example")
	g.move()
	g.w.clk.Advance(time.Minute)
	g.visit(frontier.Outcome{})
	g.add(g.fresh(6))
	g.delete("h2.example")
	g.reopen()
	for range 3 {
		g.visit(frontier.Outcome{})
	}
	g.move()
	g.reopen()
	g.survives()
}

// Whichever call to the disk fails: its caller is told, nothing acknowledged is
// lost, what failed can be repeated, nothing hangs.
func TestFailureOfEachDiskCall(t *testing.T) {
	for _, c := range []struct {
		name  string
		point spilltest.Point
		burst int
	}{
		{"write", spilltest.Write, 1}, {"sync", spilltest.Sync, 1}, {"read", spilltest.Read, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			n, hit := 1, true
			for ; hit; n++ {
				synctest.Test(t, func(t *testing.T) {
					m := spilltest.OpenMemory(t, spill.Options{})
					clk := simclock.New(dawn)
					g := &ledger{TB: t, in: map[string]bool{}, out: map[string]bool{}, maybe: map[string]bool{}, w: &world{
						TB: t, clk: clk, machine: m, opts: frontier.Options{
							Clock: clk, Spill: m.Store, Delay: frontier.FixedDelay(0), Retry: frontier.Retries(1, 0),
						},
					}}
					m.Faults.FailNth(c.point, n, errDisk)
					before := m.Faults.Calls(c.point)
					g.life()
					hit = m.Faults.Calls(c.point)-before >= n
					m.Faults.Heal()
					g.shows(g.w.rest())
					ended(t, g.w.f)
				})
				if t.Failed() {
					t.Fatalf("with call %d failing", n)
				}
			}
			t.Logf("%d calls", n-2)
			require.Greater(t, n, 5)
		})
	}
}

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
	g := &ledger{TB: t, w: w, in: map[string]bool{}, out: map[string]bool{}, maybe: map[string]bool{}}
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
