// This file makes every call on a disk that has stopped answering, and ends it: by the context of
// the call, or by that of CloseContext if it has none.

package conformance

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/internal/hook"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/test/harness"
	"github.com/seed-7440039f/frontier/transfer"
)

// stuck is a call that waits for the disk.
type stuck struct {
	name  string
	holds string // the call of the Spill that it waits in
	ready func(*testing.T, *harness.World)
	calls func(context.Context, *harness.World) error
	own   bool // its context ends it
	given bool // it is handed over by then: whether it is committed is not known
}

func leasedOne(t *testing.T, w *harness.World) {
	inBlocks(t, w)
	w.Options.Spill.(*gatedSpill).lease = w.Next()
}

func leaseIn(w *harness.World) frontier.Lease { return w.Options.Spill.(*gatedSpill).lease }

var stuckCalls = []stuck{
	{name: "Add", holds: "Commit", own: true, given: true, calls: func(ctx context.Context, w *harness.World) error {
		_, err := w.F.Add(ctx, harness.EntriesOf("c.example", 3)...)
		return err
	}},
	{name: "Add asks for marks", holds: "Known", own: true, ready: inBlocks, calls: func(ctx context.Context, w *harness.World) error {
		_, err := w.F.Add(ctx, harness.EntriesOf("c.example", 3)...)
		return err
	}},
	{name: "Add reads a host", holds: "Row", own: true, ready: remembered, calls: func(ctx context.Context, w *harness.World) error {
		_, err := w.F.Add(ctx, frontier.Entry{URL: "http://a.example/new"})
		return err
	}},
	{name: "Add forces", holds: "Load", own: true, ready: inBlocks, calls: func(ctx context.Context, w *harness.World) error {
		_, err := w.F.Add(ctx, frontier.Entry{URL: "http://a.example/150", Force: true})
		return err
	}},
	{name: "CrawlNow", holds: "Load", own: true, ready: inBlocks, calls: func(ctx context.Context, w *harness.World) error {
		_, err := w.F.CrawlNow(ctx, frontier.Entry{URL: "http://a.example/150"})
		return err
	}},
	{name: "Done", holds: "Commit", own: true, given: true, ready: leasedOne, calls: func(ctx context.Context, w *harness.World) error {
		_, err := w.F.DoneContext(ctx, leaseIn(w), frontier.Outcome{})
		return err
	}},
	{name: "DoneAll", holds: "Commit", own: true, given: true, ready: leasedOne, calls: func(ctx context.Context, w *harness.World) error {
		return w.F.DoneAll(ctx, []frontier.End{{Lease: leaseIn(w)}})[0].Err
	}},
	{name: "DoneAll asks for marks", holds: "Known", own: true, ready: leasedOne, calls: func(ctx context.Context, w *harness.World) error {
		return w.F.DoneAll(ctx, []frontier.End{{Lease: leaseIn(w), Outcome: frontier.Outcome{Add: harness.EntriesOf("c.example", 3)}}})[0].Err
	}},
	{name: "Done asks for marks", holds: "Known", own: true, ready: leasedOne, calls: func(ctx context.Context, w *harness.World) error {
		_, err := w.F.DoneContext(ctx, leaseIn(w), frontier.Outcome{Add: harness.EntriesOf("c.example", 3)})
		return err
	}},
	{name: "Done without a context", holds: "Commit", given: true, ready: leasedOne, calls: func(_ context.Context, w *harness.World) error {
		return w.F.Done(leaseIn(w), frontier.Outcome{})
	}},
	{name: "Next", holds: "Load", own: true, ready: inBlocks, calls: func(ctx context.Context, w *harness.World) error {
		_, err := w.F.Next(ctx)
		return err
	}},
	{name: "TryNext", holds: "Load", ready: inBlocks, calls: func(_ context.Context, w *harness.World) error {
		_, _, err := w.F.TryNext()
		return err
	}},
	{name: "TryNext reads what is due", holds: "LoadTimed", ready: scheduled, calls: func(_ context.Context, w *harness.World) error {
		w.Until(10 * time.Hour)
		_, _, err := w.F.TryNext()
		return err
	}},
	{name: "Contact", holds: "Row", own: true, ready: remembered, calls: func(ctx context.Context, w *harness.World) error {
		_, err := w.F.Contact(ctx, "a.example")
		return err
	}},
	{name: "Delete", holds: "Commit", own: true, given: true, calls: func(ctx context.Context, w *harness.World) error {
		_, err := w.F.Delete(ctx, scope.All())
		return err
	}},
	{name: "Pause", holds: "Commit", given: true, calls: func(_ context.Context, w *harness.World) error { return w.F.Pause(scope.All()) }},
	{name: "SetCrawl", holds: "Commit", given: true, calls: func(_ context.Context, w *harness.World) error {
		return w.F.UpdateRule(scope.Crawl(3), func(r *frontier.Rule) { *r = frontier.Rule{Paused: scope.On} })
	}},
	{name: "SetGroup", holds: "Commit", given: true, calls: func(_ context.Context, w *harness.World) error {
		return w.F.SetGroup("g", frontier.GroupSettings{Concurrency: 2})
	}},
	{name: "Assign", holds: "Row", ready: remembered, calls: func(_ context.Context, w *harness.World) error { return w.F.Assign("a.example", "g") }},
	{name: "Forget", holds: "Row", ready: remembered, calls: func(_ context.Context, w *harness.World) error { return w.F.Forget("a.example") }},
	{name: "Host", holds: "Row", own: true, ready: remembered, calls: func(ctx context.Context, w *harness.World) error {
		_, err := inspect.New(w.F).Host(ctx, "a.example")
		return err
	}},
	{name: "Status", holds: "Load", own: true, ready: inBlocks, calls: func(ctx context.Context, w *harness.World) error {
		_, err := inspect.New(w.F).Status(ctx, frontier.Entry{URL: "http://a.example/150"})
		return err
	}},
	{name: "Status of what is scheduled", holds: "LoadTimed", own: true, ready: scheduled, calls: func(ctx context.Context, w *harness.World) error {
		_, err := inspect.New(w.F).Status(ctx, frontier.Entry{URL: "http://h3.example/"})
		return err
	}},
	{name: "Upcoming", holds: "Load", own: true, ready: inBlocks, calls: func(ctx context.Context, w *harness.World) error {
		_, err := inspect.New(w.F).Upcoming(ctx, 3, true)
		return err
	}},
	{name: "URLs", holds: "Load", own: true, ready: inBlocks, calls: func(ctx context.Context, w *harness.World) error {
		for _, err := range inspect.New(w.F).URLs(ctx, scope.All(), "") {
			if err != nil {
				return err
			}
		}
		return errors.New("all are listed")
	}},
	{name: "Scan", holds: "Records", own: true, ready: inBlocks, calls: func(ctx context.Context, w *harness.World) error {
		for _, err := range inspect.New(w.F).Scan(ctx, scope.All()) {
			if err != nil {
				return err
			}
		}
		return errors.New("all were read")
	}},
	{name: "Export", holds: "Records", own: true, ready: inBlocks, calls: func(ctx context.Context, w *harness.World) error {
		return transfer.Export(ctx, w.F, io.Discard, transfer.ExportOptions{})
	}},
	{name: "Import", holds: "Commit", own: true, calls: func(ctx context.Context, w *harness.World) error {
		_, err := transfer.Import(ctx, w.F, strings.NewReader(`{"url":"http://a.example/"}`+"\n"), transfer.ImportOptions{})
		return err
	}},
	{name: "Drain", holds: "Load", own: true, ready: func(t *testing.T, w *harness.World) {
		inBlocks(t, w)
		w.Next()
	}, calls: func(ctx context.Context, w *harness.World) error {
		go func() { _, _ = w.F.Next(ctx) }()
		time.Sleep(time.Nanosecond)
		return w.F.Drain(ctx)
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
				urls := w.F.Stats().Waiting + w.F.Stats().Leased + w.F.Stats().Scheduled
				s.hold(c.holds, 0)
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				waits := harness.Start(func() (l frontier.Lease, err error) { return l, c.calls(ctx, w) })
				require.True(t, waits.Waits())
				require.True(t, s.isReached(), "nothing waits")
				closing, stop := context.WithCancel(context.Background())
				defer stop()
				s.closing = true
				var closed *harness.Call
				if c.own {
					cancel()
				} else {
					closed = harness.Start(func() (l frontier.Lease, err error) { return l, w.F.CloseContext(closing) })
					stop()
				}
				time.Sleep(2 * time.Second)
				require.False(t, waits.Waits(), "it hangs")
				if c.own {
					require.ErrorIs(t, waits.Err, context.Canceled)
				} else {
					require.ErrorIs(t, waits.Err, frontier.ErrClosed)
					require.False(t, closed.Waits())
					if closed.Err != nil {
						require.ErrorIs(t, closed.Err, frontier.ErrUnsettled)
						require.ErrorIs(t, closed.Err, context.Canceled)
					}
				}
				require.Equal(t, c.given, errors.Is(waits.Err, frontier.ErrUnsettled), "%v", waits.Err)
				s.open()
				time.Sleep(2 * time.Second)
				if c.own && c.name != "Drain" {
					require.NoError(t, w.F.Check())
					x := w.F.Stats()
					done, asks := strings.HasPrefix(c.name, "Done"), strings.HasSuffix(c.name, "asks for marks")
					require.Zero(t, x.Leased*int64(harness.Btoi(!done || !asks)), "a lease is out that no caller has")
					if done && asks {
						require.NoError(t, w.F.Done(leaseIn(w), frontier.Outcome{}), "the lease is out as before")
						urls--
					}
					if done && !asks {
						urls--
					}
					if c.name != "Delete" {
						x = w.F.Stats()
						require.GreaterOrEqual(t, x.Waiting+x.Scheduled, urls)
					}
				}
				require.NoError(t, w.F.Close())
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
				b := beside{ready: func(_ *testing.T, w *harness.World) { w.AddMany("a.example", 200) }}
				w, s := b.world(t)
				s.hold(holds, 0)
				goes := harness.Start(func() (l frontier.Lease, err error) { return l, hook.Of(w.F).MoveNow(true) })
				require.True(t, s.isReached())
				s.closing = true
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				defer cancel()
				closed := harness.Start(func() (l frontier.Lease, err error) { return l, w.F.CloseContext(ctx) })
				forever := harness.Start(func() (l frontier.Lease, err error) { return l, w.F.Close() })
				if holds == "Commit" || holds == "Checkpoint" {
					require.True(t, closed.Waits())
				}
				time.Sleep(time.Minute)
				require.False(t, closed.Waits())
				if closed.Err != nil {
					require.ErrorIs(t, closed.Err, context.DeadlineExceeded)
				}
				_, err := w.F.Add(context.Background(), frontier.Entry{URL: "http://b.example/"})
				require.ErrorIs(t, err, frontier.ErrClosed)
				s.open()
				require.False(t, forever.Waits())
				require.NoError(t, forever.Err)
				require.False(t, goes.Waits())
				b.left(t, w, s)
			})
		})
	}
}

// Open ends with its context, too, and the store is free when it has answered.
func TestOpenOnAStuckDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := harness.NewStoredWorld(t, frontier.Options{}, spill.Options{})
		w.AddMany("a.example", 20)
		require.NoError(t, w.F.Close())
		s := &gatedSpill{Spill: w.Machine.Store}
		w.Options.Spill = s
		s.hold("Recover", 0)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_, err := frontier.Open(ctx, w.Options)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		s.open()
		synctest.Wait()
		f, err := frontier.Open(context.Background(), w.Options)
		require.NoError(t, err)
		require.EqualValues(t, 20, f.Stats().Waiting)
		harness.Ended(t, f)
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
		require.ErrorIs(t, transfer.Export(ctx, w.F, &out, transfer.ExportOptions{}), context.DeadlineExceeded)
		n := out.Len()
		s.open()
		time.Sleep(time.Second)
		require.Equal(t, n, out.Len(), out.String())
	})
}
