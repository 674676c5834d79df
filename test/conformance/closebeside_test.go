// This file closes frontiers while something else is in progress, each background goroutine and
// each kind of call once: while it waits for the disk, and while every disk operation is slow.

package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/event"
	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/internal/hook"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/storage"
	"github.com/seed-7440039f/frontier/test/harness"
	"github.com/seed-7440039f/frontier/transfer"
)

// gatedSpill is a Spill some of whose calls wait, or all of whose calls take time.
type gatedSpill struct {
	storage.Spill
	mu      sync.Mutex
	at      string // the call that waits; guarded by mu
	pass    int    // number of them that go through before; guarded by mu
	gate    chan struct{}
	reached bool
	fails   error         // of the call that waited
	each    time.Duration // that every call takes
	lease   frontier.Lease
	closing bool
	mood    func(call string) error // asked after the gate, if set
}

func (s *gatedSpill) hold(call string, pass int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at, s.pass, s.gate = call, pass, make(chan struct{})
}

func (s *gatedSpill) open() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gate != nil {
		close(s.gate)
		s.at, s.gate = "", nil
	}
}

func (s *gatedSpill) isReached() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reached
}

func (s *gatedSpill) enter(call string) error {
	s.mu.Lock()
	gate, d := s.gate, s.each
	if s.at != call {
		gate = nil
	} else if s.pass > 0 {
		s.pass--
		gate = nil
	}
	var err error
	if gate != nil {
		s.reached, err = true, s.fails
	}
	s.mu.Unlock()
	if gate != nil {
		<-gate
	}
	if d > 0 {
		time.Sleep(d)
	}
	if s.mood != nil && err == nil {
		err = s.mood(call)
	}
	return err
}

func (s *gatedSpill) Recover(ctx context.Context, r storage.Recovery) error {
	if err := s.enter("Recover"); err != nil {
		return err
	}
	return s.Spill.Recover(ctx, r)
}

func (s *gatedSpill) Commit(b *storage.Batch) error {
	if err := s.enter("Commit"); err != nil {
		return err
	}
	return s.Spill.Commit(b)
}

func (s *gatedSpill) Pack(gen uint32, runs []storage.Run) ([][]storage.Part, error) {
	if err := s.enter("Pack"); err != nil {
		return nil, err
	}
	return s.Spill.Pack(gen, runs)
}

func (s *gatedSpill) PackTimed(gen uint32, rs []storage.TimedRecord) ([]storage.TimedBlock, error) {
	if err := s.enter("PackTimed"); err != nil {
		return nil, err
	}
	return s.Spill.PackTimed(gen, rs)
}

func (s *gatedSpill) PackMarks(gen uint32, ms []storage.Mark) error {
	if err := s.enter("PackMarks"); err != nil {
		return err
	}
	return s.Spill.PackMarks(gen, ms)
}

func (s *gatedSpill) Load(p storage.Part, want uint32, fn func(int, storage.Record)) error {
	if err := s.enter("Load"); err != nil {
		return err
	}
	return s.Spill.Load(p, want, fn)
}

func (s *gatedSpill) LoadTimed(block uint32, from int, fn func(int, storage.TimedRecord) bool) error {
	if err := s.enter("LoadTimed"); err != nil {
		return err
	}
	return s.Spill.LoadTimed(block, from, fn)
}

func (s *gatedSpill) Known(ms []storage.Mark, known []bool) error {
	if err := s.enter("Known"); err != nil {
		return err
	}
	return s.Spill.Known(ms, known)
}

func (s *gatedSpill) Recall(fn func([]storage.Mark) bool) error {
	if err := s.enter("Recall"); err != nil {
		return err
	}
	return s.Spill.Recall(fn)
}

func (s *gatedSpill) Row(key string) ([]byte, bool, error) {
	if err := s.enter("Row"); err != nil {
		return nil, false, err
	}
	return s.Spill.Row(key)
}

func (s *gatedSpill) Snapshot() (storage.Snapshot, error) {
	if err := s.enter("Snapshot"); err != nil {
		return nil, err
	}
	x, err := s.Spill.Snapshot()
	return gatedSnapshot{x, s}, err
}

func (s *gatedSpill) Checkpoint(c *storage.Checkpoint) error {
	if err := s.enter("Checkpoint"); err != nil {
		return err
	}
	return s.Spill.Checkpoint(c)
}

type gatedSnapshot struct {
	storage.Snapshot
	s *gatedSpill
}

func (x gatedSnapshot) Records(fn func(uint32, int, *storage.TimedRecord) error) error {
	if err := x.s.enter("Records"); err != nil {
		return err
	}
	return x.Snapshot.Records(fn)
}

// user makes calls of other code wait, as the Spill's do.
func (s *gatedSpill) user() { _ = s.enter("user") }

// beside is an activity during which a frontier is closed.
type beside struct {
	name  string
	holds string // the call of the Spill, or "user", that it waits in
	pass  int    // number of such calls that go through before
	opts  func(*frontier.Options, *gatedSpill)
	ready func(*testing.T, *harness.World)
	goes  func(*testing.T, *harness.World) // in a goroutine of its own
}

// askedRetry is a RetryPolicy that calls a function.
type askedRetry func()

func (f askedRetry) Retry(frontier.Entry, int, frontier.Outcome) (time.Duration, bool) {
	f()
	return 0, true
}

func inBlocks(t *testing.T, w *harness.World) {
	w.AddMany("a.example", 200)
	w.AddMany("b.example", 200)
	require.NoError(t, hook.Of(w.F).MoveNow(true))
}

func scheduled(t *testing.T, w *harness.World) {
	for i := range 40 {
		w.Soon(fmt.Sprintf("http://h%d.example/", i), time.Duration(10+i)*time.Hour)
	}
	require.NoError(t, hook.Of(w.F).MoveNow(true))
}

// dying leaves a host whose next failed probe is the last.
func dying(t *testing.T, w *harness.World) {
	w.AddMany("dead.example", 200)
	require.NoError(t, hook.Of(w.F).MoveNow(true))
	for range 4 {
		require.NoError(t, w.F.Done(w.Next(), harness.Failing(frontier.FailureConnect)))
	}
	w.Options.Spill.(*gatedSpill).lease = w.Next()
}

func dies(_ *testing.T, w *harness.World) {
	_ = w.F.Done(w.Options.Spill.(*gatedSpill).lease, harness.Failing(frontier.FailureConnect))
}

func givesHostsUp(o *frontier.Options, _ *gatedSpill) {
	o.Delay, o.Backoff = frontier.FixedDelay(time.Second), harness.ExactBackoff
	o.Quarantine = frontier.Quarantine{After: 3, Probes: 2}
}

func tries(t *testing.T, w *harness.World) {
	_, _, err := w.F.TryNext()
	saysItIsClosed(t, err)
}

// saysItIsClosed requires that a call has an error meant for its caller, not the Spill's error for
// a user that has released it.
func saysItIsClosed(t *testing.T, err error) {
	if err != nil && !errors.Is(err, harness.ErrDisk) && !errors.Is(err, frontier.ErrNotDue) {
		assert.ErrorIs(t, err, frontier.ErrClosed)
	}
}

func adds(entries ...frontier.Entry) func(*testing.T, *harness.World) {
	return func(t *testing.T, w *harness.World) {
		_, err := w.F.Add(context.Background(), entries...)
		saysItIsClosed(t, err)
	}
}

var besides = []beside{
	{name: "the committer", holds: "Commit", goes: adds(harness.EntriesOf("c.example", 3)...)},
	{name: "Done", holds: "Commit", ready: inBlocks, goes: func(t *testing.T, w *harness.World) {
		l, _, _ := w.F.TryNext()
		err := w.F.Done(l, frontier.Outcome{Add: harness.EntriesOf("c.example", 3)})
		saysItIsClosed(t, err)
	}},
	{name: "Done asks for marks", holds: "Known", ready: inBlocks, goes: func(t *testing.T, w *harness.World) {
		l, _, _ := w.F.TryNext()
		err := w.F.Done(l, frontier.Outcome{Add: harness.EntriesOf("c.example", 3)})
		saysItIsClosed(t, err)
	}},
	{name: "Done with a forced outlink", holds: "Load", pass: 1, ready: inBlocks, goes: func(t *testing.T, w *harness.World) {
		l, _, _ := w.F.TryNext()
		err := w.F.Done(l, frontier.Outcome{Add: []frontier.Entry{{URL: "http://b.example/150", Force: true}}})
		saysItIsClosed(t, err)
	}},
	{name: "the mover packs", holds: "Pack", ready: func(t *testing.T, w *harness.World) { w.AddMany("a.example", 200) }, goes: moves},
	{name: "the mover packs scheduled URLs", holds: "PackTimed", ready: func(t *testing.T, w *harness.World) {
		w.Soon("http://a.example/", time.Hour)
	}, goes: moves},
	{name: "the mover packs marks", holds: "PackMarks", ready: inBlocks, goes: func(t *testing.T, w *harness.World) {
		adds(harness.EntriesOf("c.example", 3)...)(t, w)
		moves(t, w)
	}},
	{name: "the mover writes what a checkpoint needs", holds: "Commit", ready: inBlocks, goes: moves},
	{name: "the mover checkpoints", holds: "Checkpoint", ready: inBlocks, goes: moves},
	{name: "TryNext reads", holds: "Load", ready: inBlocks, goes: tries},
	{name: "Next reads", holds: "Load", ready: inBlocks, goes: func(t *testing.T, w *harness.World) {
		_, err := w.F.Next(context.Background())
		saysItIsClosed(t, err)
	}},
	{name: "Contact reads a host", holds: "Row", ready: remembered, goes: func(t *testing.T, w *harness.World) {
		_, err := w.F.Contact(context.Background(), "a.example")
		saysItIsClosed(t, err)
	}},
	{name: "Add reads a host", holds: "Row", ready: remembered, goes: adds(frontier.Entry{URL: "http://a.example/new"})},
	{name: "Add asks for marks", holds: "Known", ready: inBlocks, goes: adds(harness.EntriesOf("a.example", 300)...)},
	{name: "Add forces", holds: "Load", ready: inBlocks, goes: adds(frontier.Entry{URL: "http://a.example/150", Force: true})},
	{name: "CrawlNow", holds: "Load", ready: inBlocks, goes: func(t *testing.T, w *harness.World) {
		_, err := w.F.CrawlNow(context.Background(), frontier.Entry{URL: "http://a.example/150"})
		saysItIsClosed(t, err)
	}},
	{name: "the reader reads ahead", holds: "LoadTimed", ready: scheduled, goes: func(t *testing.T, w *harness.World) {
		w.Until(10 * time.Hour)
		tries(t, w)
	}},
	{name: "the reader reads for a waiting Next", holds: "LoadTimed", ready: scheduled, goes: func(t *testing.T, w *harness.World) {
		go func() { _, _ = w.F.Next(context.Background()) }()
		time.Sleep(time.Nanosecond)
		w.Until(10 * time.Hour)
	}},
	{name: "hints are looked for on disk", holds: "LoadTimed", ready: scheduled, goes: hinted},
	{name: "a hint on disk is answered", holds: "Commit", pass: 1, ready: scheduled, goes: hinted},
	{name: "a hint in memory is answered", holds: "Commit", pass: 1, ready: func(t *testing.T, w *harness.World) {
		w.Soon("http://h7.example/", 17*time.Hour)
	}, goes: hinted},
	{name: "a lost host is read", holds: "Load", opts: givesHostsUp, ready: dying, goes: dies},
	{name: "a lost host's URLs are ended", holds: "Commit", pass: 1, opts: givesHostsUp, ready: dying, goes: dies},
	{name: "OnGiveUp", holds: "user", opts: func(o *frontier.Options, s *gatedSpill) {
		givesHostsUp(o, s)
		o.OnGiveUp = func(frontier.Entry, frontier.Outcome) { s.user() }
	}, ready: dying, goes: dies},
	{name: "OnEvent", holds: "user", opts: func(o *frontier.Options, s *gatedSpill) {
		o.OnEvent = func(event.Event) { s.user() }
	}, goes: func(t *testing.T, w *harness.World) { _ = w.F.Pause(scope.Host("a.example")) }},
	{name: "a lease expires", holds: "user", opts: func(o *frontier.Options, s *gatedSpill) {
		o.Retry = askedRetry(s.user)
	}, ready: inBlocks, goes: func(t *testing.T, w *harness.World) {
		tries(t, w)
		w.Until(time.Hour)
		_ = w.F.Stats()
	}},
	{name: "a lease expires by the timer", holds: "Commit", ready: inBlocks, goes: func(t *testing.T, w *harness.World) {
		tries(t, w)
		tries(t, w)
		go func() { _, _ = w.F.Next(context.Background()) }()
		time.Sleep(time.Nanosecond)
		w.Until(time.Hour)
	}},
	{name: "Delete", holds: "Commit", ready: inBlocks, goes: func(t *testing.T, w *harness.World) {
		_, err := w.F.Delete(context.Background(), scope.Host("a.example"))
		saysItIsClosed(t, err)
	}},
	{name: "a deletion waits for a read", holds: "Load", ready: inBlocks, goes: func(t *testing.T, w *harness.World) {
		go tries(t, w)
		time.Sleep(time.Nanosecond)
		_, _ = w.F.Delete(context.Background(), scope.All())
	}},
	{name: "a rule is written", holds: "Commit", goes: func(t *testing.T, w *harness.World) {
		saysItIsClosed(t, w.F.Pause(scope.Domain("example")))
	}},
	{name: "Forget", holds: "Row", ready: remembered, goes: func(t *testing.T, w *harness.World) { saysItIsClosed(t, w.F.Forget("a.example")) }},
	{name: "an export takes a snapshot", holds: "Snapshot", ready: inBlocks, goes: exports},
	{name: "an export reads", holds: "Records", ready: inBlocks, goes: exports},
	{name: "an import writes", holds: "Commit", goes: func(t *testing.T, w *harness.World) {
		var b bytes.Buffer
		from := harness.NewStoredWorld(t, frontier.Options{}, spill.Options{})
		from.AddMany("a.example", 100)
		require.NoError(t, transfer.Export(context.Background(), from.F, &b, transfer.ExportOptions{}))
		_, _ = transfer.Import(context.Background(), w.F, &b, transfer.ImportOptions{})
	}},
	{name: "URLs are listed", holds: "Load", ready: inBlocks, goes: func(t *testing.T, w *harness.World) {
		for _, err := range inspect.New(w.F).URLs(context.Background(), scope.All(), "") {
			saysItIsClosed(t, err)
		}
	}},
	{name: "a URL is looked for", holds: "Load", ready: inBlocks, goes: func(t *testing.T, w *harness.World) {
		_, err := inspect.New(w.F).Status(context.Background(), frontier.Entry{URL: "http://a.example/150"})
		saysItIsClosed(t, err)
	}},
	{name: "a view reads", holds: "Load", ready: inBlocks, goes: func(t *testing.T, w *harness.World) {
		_, err := inspect.New(w.F).Upcoming(context.Background(), 3, true)
		saysItIsClosed(t, err)
	}},
	{name: "a host is looked at", holds: "Row", ready: remembered, goes: func(t *testing.T, w *harness.World) {
		_, err := inspect.New(w.F).Host(context.Background(), "a.example")
		saysItIsClosed(t, err)
	}},
	{name: "Drain", holds: "Load", ready: inBlocks, goes: func(t *testing.T, w *harness.World) {
		go tries(t, w)
		time.Sleep(time.Nanosecond)
		_ = w.F.Drain(context.Background())
	}},
}

func moves(_ *testing.T, w *harness.World) { _ = hook.Of(w.F).MoveNow(true) }

func exports(t *testing.T, w *harness.World) {
	saysItIsClosed(t, transfer.Export(context.Background(), w.F, io.Discard, transfer.ExportOptions{}))
}

func hinted(t *testing.T, w *harness.World) {
	adds(frontier.Entry{URL: "http://h7.example/", Hint: true, Weight: 3, NotBefore: harness.Dawn.Add(time.Hour)})(t, w)
	hook.Of(w.F).Sweep()
}

// remembered leaves something of a host with the store only.
func remembered(t *testing.T, w *harness.World) {
	w.Learns("a.example")
	w.Add("http://b.example/1")
}

// world opens what the case needs.
func (b *beside) world(t *testing.T) (*harness.World, *gatedSpill) {
	s := &gatedSpill{}
	o := frontier.Options{Delay: frontier.FixedDelay(0), KeepOpen: true}
	if b.opts != nil {
		b.opts(&o, s)
	}
	w := harness.NewStoredWorld(t, o, spill.Options{})
	require.NoError(t, w.F.Close())
	s.Spill, w.Options.Spill = w.Machine.Store, s
	f, err := frontier.Open(t.Context(), w.Options)
	require.NoError(t, err)
	w.F = f
	t.Cleanup(func() {
		s.open()
		if !s.closing {
			_ = f.Close()
		}
	})
	if b.ready != nil {
		b.ready(t, w)
	}
	return w, s
}

// left requires that the store opens and is whole.
func (b *beside) left(t *testing.T, w *harness.World, s *gatedSpill) {
	s.fails, s.each = nil, 0
	w.Options.OnEvent, w.Options.OnGiveUp, w.Options.Retry = nil, nil, nil
	f, err := frontier.Open(t.Context(), w.Options)
	require.NoError(t, err)
	harness.Ended(t, f)
}

// Close returns as soon as the call does that everything else waits for.
func TestCloseBesideWhatWaits(t *testing.T) {
	for _, b := range besides {
		for _, fails := range []error{nil, harness.ErrDisk} {
			if fails != nil && b.holds == "user" {
				continue
			}
			t.Run(fmt.Sprintf("%s/%v", b.name, fails), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w, s := b.world(t)
					s.fails = fails
					s.hold(b.holds, b.pass)
					goes := harness.Start(func() (l frontier.Lease, err error) { b.goes(t, w); return })
					time.Sleep(time.Millisecond)
					synctest.Wait()
					require.True(t, s.isReached(), "nothing waits")
					s.closing = true
					closed := harness.Start(func() (l frontier.Lease, err error) { return l, w.F.Close() })
					s.open()
					time.Sleep(time.Minute)
					require.False(t, closed.Waits(), "Close hangs")
					require.False(t, goes.Waits(), "what went on beside it hangs")
					if closed.Err != nil {
						require.ErrorIs(t, closed.Err, harness.ErrDisk)
					}
					b.left(t, w, s)
				})
			})
		}
	}
}

// Close returns while every call of the disk takes its time, whenever it is called.
func TestCloseBesideASlowDisk(t *testing.T) {
	for _, b := range besides {
		t.Run(b.name, func(t *testing.T) {
			for after := range 14 {
				synctest.Test(t, func(t *testing.T) {
					w, s := b.world(t)
					s.each = 5 * time.Millisecond
					goes := harness.Start(func() (l frontier.Lease, err error) { b.goes(t, w); return })
					time.Sleep(time.Duration(after) * 2 * time.Millisecond)
					s.closing = true
					closed := harness.Start(func() (l frontier.Lease, err error) { return l, w.F.Close() })
					time.Sleep(time.Minute)
					require.False(t, closed.Waits(), "Close hangs")
					require.False(t, goes.Waits(), "what went on beside it hangs")
					if closed.Err != nil {
						require.False(t, errors.Is(closed.Err, harness.ErrDisk))
					}
					b.left(t, w, s)
				})
			}
		})
	}
}
