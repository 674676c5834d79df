// This file calls everything on a disk that answers no more, and ends it: by the
// context of the call, or by that of CloseContext where there is none.

package frontier_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/stretchr/testify/require"
)

// stuck is a call that waits for the disk.
type stuck struct {
	name  string
	holds string // the call of the Spill that it waits in
	ready func(*testing.T, *world)
	calls func(context.Context, *world) error
	own   bool // its context ends it
	given bool // it is handed over by then: whether it is committed is not known
}

func leasedOne(t *testing.T, w *world) {
	inBlocks(t, w)
	w.opts.Spill.(*gatedSpill).lease = w.next()
}

func leaseIn(w *world) frontier.Lease { return w.opts.Spill.(*gatedSpill).lease }

var stuckCalls = []stuck{
	{name: "Add", holds: "Commit", own: true, given: true, calls: func(ctx context.Context, w *world) error {
		_, err := w.f.Add(ctx, entriesOf("c.example", 3)...)
		return err
	}},
	{name: "Add asks for marks", holds: "Known", own: true, ready: inBlocks, calls: func(ctx context.Context, w *world) error {
		_, err := w.f.Add(ctx, entriesOf("c.example", 3)...)
		return err
	}},
	{name: "Add reads a host", holds: "Row", own: true, ready: remembered, calls: func(ctx context.Context, w *world) error {
		_, err := w.f.Add(ctx, frontier.Entry{URL: "http://a.example/new"})
		return err
	}},
	{name: "Add forces", holds: "Load", own: true, ready: inBlocks, calls: func(ctx context.Context, w *world) error {
		_, err := w.f.Add(ctx, frontier.Entry{URL: "http://a.example/150", Force: true})
		return err
	}},
	{name: "CrawlNow", holds: "Load", own: true, ready: inBlocks, calls: func(ctx context.Context, w *world) error {
		_, err := w.f.CrawlNow(ctx, frontier.Entry{URL: "http://a.example/150"})
		return err
	}},
	{name: "Done", holds: "Commit", own: true, given: true, ready: leasedOne, calls: func(ctx context.Context, w *world) error {
		return w.f.DoneContext(ctx, leaseIn(w), frontier.Outcome{})
	}},
	{name: "Done asks for marks", holds: "Known", own: true, ready: leasedOne, calls: func(ctx context.Context, w *world) error {
		return w.f.DoneContext(ctx, leaseIn(w), frontier.Outcome{Add: entriesOf("c.example", 3)})
	}},
	{name: "Done without a context", holds: "Commit", given: true, ready: leasedOne, calls: func(_ context.Context, w *world) error {
		return w.f.Done(leaseIn(w), frontier.Outcome{})
	}},
	{name: "Next", holds: "Load", own: true, ready: inBlocks, calls: func(ctx context.Context, w *world) error {
		_, err := w.f.Next(ctx)
		return err
	}},
	{name: "TryNext", holds: "Load", ready: inBlocks, calls: func(_ context.Context, w *world) error {
		_, _, err := w.f.TryNext()
		return err
	}},
	{name: "TryNext reads what is due", holds: "LoadTimed", ready: scheduled, calls: func(_ context.Context, w *world) error {
		w.until(10 * time.Hour)
		_, _, err := w.f.TryNext()
		return err
	}},
	{name: "Contact", holds: "Row", own: true, ready: remembered, calls: func(ctx context.Context, w *world) error {
		_, err := w.f.Contact(ctx, "a.example")
		return err
	}},
	{name: "Delete", holds: "Commit", own: true, given: true, calls: func(ctx context.Context, w *world) error {
		_, err := w.f.Delete(ctx, frontier.All())
		return err
	}},
	{name: "Pause", holds: "Commit", given: true, calls: func(_ context.Context, w *world) error { return w.f.Pause(frontier.All()) }},
	{name: "SetCrawl", holds: "Commit", given: true, calls: func(_ context.Context, w *world) error {
		return w.f.SetCrawl(3, frontier.CrawlSettings{Paused: true})
	}},
	{name: "SetGroup", holds: "Commit", given: true, calls: func(_ context.Context, w *world) error {
		return w.f.SetGroup("g", frontier.GroupSettings{Concurrency: 2})
	}},
	{name: "Assign", holds: "Row", ready: remembered, calls: func(_ context.Context, w *world) error { return w.f.Assign("a.example", "g") }},
	{name: "Forget", holds: "Row", ready: remembered, calls: func(_ context.Context, w *world) error { return w.f.Forget("a.example") }},
	{name: "Host", holds: "Row", own: true, ready: remembered, calls: func(ctx context.Context, w *world) error {
		_, err := w.f.Host(ctx, "a.example")
		return err
	}},
	{name: "Status", holds: "Load", own: true, ready: inBlocks, calls: func(ctx context.Context, w *world) error {
		_, err := w.f.Status(ctx, 0, "http://a.example/150")
		return err
	}},
	{name: "Status of what is scheduled", holds: "LoadTimed", own: true, ready: scheduled, calls: func(ctx context.Context, w *world) error {
		_, err := w.f.Status(ctx, 0, "http://h3.example/")
		return err
	}},
	{name: "PeekDue", holds: "Load", own: true, ready: inBlocks, calls: func(ctx context.Context, w *world) error {
		_, err := w.f.PeekDue(ctx, 3)
		return err
	}},
	{name: "URLs", holds: "Load", own: true, ready: inBlocks, calls: func(ctx context.Context, w *world) error {
		for _, err := range w.f.URLs(ctx, frontier.All(), "") {
			if err != nil {
				return err
			}
		}
		return errors.New("all are listed")
	}},
	{name: "Export", holds: "Records", own: true, ready: inBlocks, calls: func(ctx context.Context, w *world) error {
		return w.f.Export(ctx, io.Discard, frontier.ExportOptions{})
	}},
	{name: "Import", holds: "Commit", own: true, calls: func(ctx context.Context, w *world) error {
		_, err := w.f.Import(ctx, strings.NewReader(`{"url":"http://a.example/"}`+"\n"), frontier.ImportOptions{})
		return err
	}},
	{name: "Drain", holds: "Load", own: true, ready: func(t *testing.T, w *world) {
		inBlocks(t, w)
		w.next()
	}, calls: func(ctx context.Context, w *world) error {
		go func() { _, _ = w.f.Next(ctx) }()
		time.Sleep(time.Nanosecond)
		return w.f.Drain(ctx)
	}},
}

// After the end of its context no call waits for the disk. What was handed over is
// committed when the disk answers, or comes back; nothing is lost either way.
func TestStuckDiskEndsWithTheContext(t *testing.T) {
	for _, c := range stuckCalls {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := beside{ready: c.ready}
				w, s := b.world(t)
				urls := w.f.Stats().Waiting + w.f.Stats().Leased + w.f.Stats().Scheduled
				s.hold(c.holds, 0)
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				waits := start(func() (l frontier.Lease, err error) { return l, c.calls(ctx, w) })
				require.True(t, waits.waits())
				require.True(t, s.isReached(), "nothing waits")
				closing, stop := context.WithCancel(context.Background())
				defer stop()
				s.closing = true
				var closed *call
				if c.own {
					cancel()
				} else {
					closed = start(func() (l frontier.Lease, err error) { return l, w.f.CloseContext(closing) })
					stop()
				}
				time.Sleep(2 * time.Second)
				require.False(t, waits.waits(), "it hangs")
				if c.own {
					require.ErrorIs(t, waits.err, context.Canceled)
				} else {
					require.ErrorIs(t, waits.err, frontier.ErrClosed)
					require.False(t, closed.waits())
					if closed.err != nil {
						require.ErrorIs(t, closed.err, frontier.ErrUnsettled)
						require.ErrorIs(t, closed.err, context.Canceled)
					}
				}
				require.Equal(t, c.given, errors.Is(waits.err, frontier.ErrUnsettled), "%v", waits.err)
				s.open()
				time.Sleep(2 * time.Second)
				if c.own && c.name != "Drain" {
					require.NoError(t, w.f.Check())
					x := w.f.Stats()
					require.Zero(t, x.Leased*int64(btoi(!strings.HasPrefix(c.name, "Done asks"))), "a lease was handed to nobody")
					if c.name == "Done asks for marks" {
						require.NoError(t, w.f.Done(leaseIn(w), frontier.Outcome{}), "the lease is out as before")
						urls--
					}
					if c.name == "Done" {
						urls--
					}
					if c.name != "Delete" {
						x = w.f.Stats()
						require.GreaterOrEqual(t, x.Waiting+x.Scheduled, urls)
					}
				}
				require.NoError(t, w.f.Close())
				b.left(t, w, s)
			})
		})
	}
}

// Close ends with its context while the disk is stuck, and can be waited for again.
func TestCloseOnAStuckDisk(t *testing.T) {
	for _, holds := range []string{"Commit", "Pack", "Checkpoint"} {
		t.Run(holds, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := beside{ready: func(_ *testing.T, w *world) { w.addMany("a.example", 200) }}
				w, s := b.world(t)
				s.hold(holds, 0)
				goes := start(func() (l frontier.Lease, err error) { return l, w.f.MoveNow(true) })
				require.True(t, s.isReached())
				s.closing = true
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				defer cancel()
				closed := start(func() (l frontier.Lease, err error) { return l, w.f.CloseContext(ctx) })
				forever := start(func() (l frontier.Lease, err error) { return l, w.f.Close() })
				if holds == "Commit" || holds == "Checkpoint" {
					require.True(t, closed.waits())
				}
				time.Sleep(time.Minute)
				require.False(t, closed.waits())
				if closed.err != nil {
					require.ErrorIs(t, closed.err, context.DeadlineExceeded)
				}
				_, err := w.f.Add(context.Background(), frontier.Entry{URL: "http://b.example/"})
				require.ErrorIs(t, err, frontier.ErrClosed)
				s.open()
				require.False(t, forever.waits())
				require.NoError(t, forever.err)
				require.False(t, goes.waits())
				b.left(t, w, s)
			})
		})
	}
}

// Open ends with its context, too, and the store is free when it has answered.
func TestOpenOnAStuckDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newStoredWorld(t, frontier.Options{}, spill.Options{})
		w.addMany("a.example", 20)
		require.NoError(t, w.f.Close())
		s := &gatedSpill{Spill: w.machine.Store}
		w.opts.Spill = s
		s.hold("Recover", 0)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_, err := frontier.Open(ctx, w.opts)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		s.open()
		synctest.Wait()
		f, err := frontier.Open(context.Background(), w.opts)
		require.NoError(t, err)
		require.EqualValues(t, 20, f.Stats().Waiting)
		ended(t, f)
	})
}

// A writer is not written to any more when Export has returned.
func TestExportLeavesItsWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := beside{ready: inBlocks}
		w, s := b.world(t)
		s.hold("Records", 0)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		var out bytes.Buffer
		require.ErrorIs(t, w.f.Export(ctx, &out, frontier.ExportOptions{}), context.DeadlineExceeded)
		n := out.Len()
		s.open()
		time.Sleep(time.Second)
		require.Equal(t, n, out.Len(), out.String())
	})
}
