// This file keeps books of what a frontier acknowledged while its store fails.

package durability

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/internal/hook"
	"github.com/seed-7440039f/frontier/internal/lab/trycount"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/test/harness"
	"github.com/seed-7440039f/frontier/transfer"
)

// ledger is what a caller knows of its URLs, from what calls returned.
type ledger struct {
	testing.TB
	w     *harness.World
	n     *trycount.Counter
	in    map[string]bool // admitted and not finished
	out   map[string]bool // finished
	maybe map[string]bool // of a call that failed and was not repeated yet
	next  int
	later int // scheduled for days later: a Delete finds them when it has returned
}

// failed reports whether a call failed, and requires that it was the disk.
func (g *ledger) failed(err error) bool {
	g.Helper()
	if err != nil {
		require.ErrorIs(g, err, harness.ErrDisk)
		g.survives()
	}
	return err != nil
}

// survives requires that the death of the process now would lose nothing that was
// acknowledged, and bring nothing back that was finished.
func (g *ledger) survives() {
	g.Helper()
	m := g.w.Machine.Kill(g)
	o := g.w.Options
	o.Spill = m.Store
	f, err := frontier.Open(context.Background(), o)
	require.NoError(g, err)
	w := &harness.World{TB: g, F: f, Clock: g.w.Clock, Options: o, Machine: m}
	g.shows(w.Rest())
	harness.Ended(g, f)
}

// shows compares URLs that came out with what must.
func (g *ledger) shows(urls []string) {
	g.Helper()
	got := map[string]bool{}
	for _, u := range urls {
		if got[u] || !g.in[u] && !g.maybe[u] {
			g.n.Duplicated(1)
			require.Fail(g, "a URL came twice, or after its Done", u)
		}
		got[u] = true
	}
	for u := range g.in {
		if !got[u] && !g.maybe[u] {
			g.n.Lost(1)
			require.Fail(g, "a URL is lost", u)
		}
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
	n, err := g.w.F.Add(context.Background(), entries...)
	if g.failed(err) {
		require.Zero(g, n)
		n, err = g.w.F.Add(context.Background(), entries...)
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
	hook.Of(g.w.F).Sweep()     // else a deletion may have what comes first
	hook.Of(g.w.F).ReadTimed() // else a Delete may find later what is due now
	l, _, err := g.w.TryNext()
	if g.failed(err) {
		l, _, err = g.w.TryNext()
	}
	require.NoError(g, err)
	require.True(g, g.in[l.Entry.URL], "%s came, which was not in", l.Entry.URL)
	o.Add = g.fresh(2)
	g.maybe[l.Entry.URL], g.maybe[o.Add[0].URL], g.maybe[o.Add[1].URL] = true, true, true
	ends := o.Result != frontier.Requeue && o.Next.IsZero()
	switch err := g.w.F.Done(l, o); {
	case g.failed(err) && strings.Contains(err.Error(), "outlinks"): // the completion was recorded
		g.add(o.Add)
	case err != nil:
		again, _, err := g.w.TryNext()
		require.NoError(g, err)
		for again.Entry.URL != l.Entry.URL { // another host's turn
			require.NoError(g, g.w.F.Done(again, harness.Requeue))
			again, _, err = g.w.TryNext()
			require.NoError(g, err)
		}
		require.Equal(g, l.Attempt, again.Attempt)
		require.NoError(g, g.w.F.Done(again, o))
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
	_, err := g.w.F.Delete(context.Background(), scope.Host(host))
	if g.failed(err) {
		n, err := g.w.F.Delete(context.Background(), scope.Host(host))
		require.NoError(g, err)
		require.InDelta(g, len(gone), n, float64(g.later), "a Delete that failed has changed nothing")
	}
	for _, u := range gone {
		delete(g.in, u)
		delete(g.maybe, u)
		g.out[u] = true
	}
}

func (g *ledger) move() {
	g.Helper()
	if g.failed(hook.Of(g.w.F).MoveNow(true)) {
		require.NoError(g, hook.Of(g.w.F).MoveNow(true))
	}
}

func (g *ledger) open() {
	g.Helper()
	f, err := frontier.Open(context.Background(), g.w.Options)
	if g.failed(err) {
		require.Nil(g, f)
		f, err = frontier.Open(context.Background(), g.w.Options)
	}
	require.NoError(g, err)
	g.w.F = f
}

func (g *ledger) reopen() {
	g.Helper()
	require.NoError(g, g.w.F.Check())
	_ = g.failed(g.w.F.Close())
	g.open()
	g.w.Clock.Advance(time.Minute)
}

// reboot closes the store, too. As after an open that failed, it is opened again.
func (g *ledger) reboot() {
	g.Helper()
	_ = g.failed(g.w.F.Close())
	m := g.w.Machine
	_ = g.failed(m.Store.Close())
	store, err := spill.OpenOn(m.Faults, spill.Options{})
	if g.failed(err) {
		store, err = spill.OpenOn(m.Faults, spill.Options{})
	}
	require.NoError(g, err)
	g.Cleanup(func() { require.NoError(g, store.Close()) })
	m.Store = store
	if b, ok := g.w.Options.Spill.(*brittle); ok {
		b.Spill = store
	} else {
		g.w.Options.Spill = store
	}
	g.open()
	g.w.Clock.Advance(time.Minute)
}

// learns learns something of a host without URLs, and lets it leave memory.
func (g *ledger) learns(host string) {
	g.Helper()
	contact := func() error {
		g.w.Clock.Advance(time.Minute)
		l, err := g.w.F.Contact(context.Background(), host)
		if err != nil {
			return err
		}
		return g.w.F.Done(l, frontier.Outcome{CrawlDelay: time.Second})
	}
	if g.failed(contact()) {
		require.NoError(g, contact())
	}
	g.w.Clock.Advance(time.Hour)
	g.w.Asleep()
}

// look makes all calls that read the store, during the crawl. Failed calls are repeated.
func (g *ledger) look() {
	g.Helper()
	ctx := context.Background()
	for _, call := range []func() error{
		func() error { _, err := inspect.New(g.w.F).Host(ctx, "h0.example"); return err },
		func() error { // of one that left memory
			_, err := inspect.New(g.w.F).Host(ctx, "asleep.example")
			if errors.Is(err, frontier.ErrUnknownHost) {
				return nil
			}
			return err
		},
		func() error {
			_, err := inspect.New(g.w.F).Status(ctx, frontier.Entry{URL: "http://h0.example/3"})
			return err
		},
		func() error { _, err := inspect.New(g.w.F).Upcoming(ctx, 3, true); return err },
		func() error { return transfer.Export(ctx, g.w.F, io.Discard, transfer.ExportOptions{}) },
		func() error {
			for _, err := range inspect.New(g.w.F).URLs(ctx, scope.All(), "") {
				if err != nil {
					return err
				}
			}
			return nil
		},
		func() error { return g.w.F.Pause(scope.Host("idle.example")) },
		func() error { return g.w.F.Resume(scope.Host("idle.example")) },
		func() error { return g.w.F.Forget("h2.example") },
	} {
		if g.failed(call()) {
			require.NoError(g, call())
		}
	}
}

// life is a short life of a frontier, with everything that uses the disk.
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
	g.visit(frontier.Outcome{Next: g.w.Clock.Now().Add(30 * time.Second)})
	g.visit(frontier.Outcome{Result: frontier.Requeue, CrawlDelay: time.Millisecond})
	g.delete("h1.example")
	for range 3 {
		g.visit(frontier.Outcome{Next: g.w.Clock.Now().Add(48 * time.Hour)})
		g.later++
	}
	g.look()
	g.move()
	g.look()
	g.w.Clock.Advance(time.Minute)
	g.visit(frontier.Outcome{})
	g.add(g.fresh(6))
	g.delete("h2.example")
	g.reopen()
	for range 3 {
		g.visit(frontier.Outcome{})
	}
	g.move()
	g.reopen()
	g.add(g.fresh(6))
	g.learns("asleep.example")
	g.look()
	g.reboot()
	g.visit(frontier.Outcome{})
	g.survives()
}
