// This file verifies that the frontier's lock is never held during I/O, or while the user's code
// runs.

package model

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/event"
	"github.com/seed-7440039f/frontier/internal/hook"
	"github.com/seed-7440039f/frontier/internal/lab/trycount"
	"github.com/seed-7440039f/frontier/storage"
	"github.com/seed-7440039f/frontier/test/harness"
)

// lockWatch looks, whenever the frontier calls something of its user's, whether
// that happens with the lock held. The clock and the selector may be called so.
type lockWatch struct {
	f     atomic.Pointer[frontier.Frontier]
	mu    sync.Mutex
	held  map[string]bool // calls that found the lock held
	calls map[string]int
}

func newLockWatch() *lockWatch { return &lockWatch{held: map[string]bool{}, calls: map[string]int{}} }

func (w *lockWatch) called(what string) {
	f := w.f.Load()
	w.mu.Lock()
	known := w.held[what]
	w.mu.Unlock()
	if f == nil || known {
		return // not opened yet, or nothing new
	}
	free := hook.Of(f).LockComesFree()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls[what]++
	if !free && !w.held[what] {
		w.held[what] = true
		buf := make([]byte, 8<<10)
		fmt.Printf("%s is called with the lock held:\n%s\n", what, buf[:runtime.Stack(buf, false)])
	}
}

// found names the calls that found the lock held.
func (w *lockWatch) found() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Sorted(maps.Keys(w.held))
}

func (w *lockWatch) count(what string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.calls[what]
}

// watched returns options with every callback under watch.
func (w *lockWatch) watched(o frontier.Options) frontier.Options {
	o.Prioritizer = watchedPrioritizer{frontier.ByDepth(o.Priorities), w}
	o.Delay = watchedDelay{o.Delay, w, "Delay"}
	o.GroupDelay = watchedDelay{o.Delay, w, "GroupDelay"}
	o.Retry = watchedRetry{o.Retry, w}
	o.Scheduler = watchedScheduler{w}
	o.HostKey = func(url string) (string, error) { w.called("HostKey"); return frontier.HostName(url) }
	o.OnGiveUp = func(frontier.Entry, frontier.Outcome) { w.called("OnGiveUp") }
	o.OnEvent = func(event.Event) { w.called("OnEvent") }
	o.Logger = slog.New(watchedHandler{w})
	if o.Spill != nil {
		o.Spill = &watchedSpill{o.Spill, w}
	}
	return o
}

type watchedPrioritizer struct {
	frontier.Prioritizer
	w *lockWatch
}

func (p watchedPrioritizer) Priority(e frontier.Entry, h frontier.History) int {
	p.w.called("Prioritizer")
	return p.Prioritizer.Priority(e, h)
}

type watchedDelay struct {
	frontier.DelayPolicy
	w    *lockWatch
	name string
}

func (d watchedDelay) Delay(name string, o frontier.Outcome) time.Duration {
	d.w.called(d.name)
	return d.DelayPolicy.Delay(name, o)
}

func (d watchedDelay) Max() time.Duration {
	d.w.called(d.name + ".Max")
	return d.DelayPolicy.Max()
}

type watchedRetry struct {
	frontier.RetryPolicy
	w *lockWatch
}

func (r watchedRetry) Retry(e frontier.Entry, n int, o frontier.Outcome) (time.Duration, bool) {
	r.w.called("Retry")
	return r.RetryPolicy.Retry(e, n, o)
}

type watchedScheduler struct{ w *lockWatch }

func (s watchedScheduler) Next(frontier.Visit) (time.Time, frontier.State) {
	s.w.called("Scheduler")
	return time.Time{}, frontier.State{}
}

func (s watchedScheduler) Recheck(frontier.Entry, string, frontier.History, time.Time) (time.Time, frontier.State) {
	s.w.called("Recheck")
	return time.Time{}, frontier.State{}
}

type watchedHandler struct{ w *lockWatch }

func (h watchedHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h watchedHandler) Handle(context.Context, slog.Record) error { h.w.called("Logger"); return nil }

func (h watchedHandler) WithAttrs([]slog.Attr) slog.Handler { return h }

func (h watchedHandler) WithGroup(string) slog.Handler { return h }

// watchedSpill watches the calls of a store, and what is called back from them.
type watchedSpill struct {
	storage.Spill
	w *lockWatch
}

func (s *watchedSpill) Commit(b *storage.Batch) error {
	s.w.called("Spill.Commit")
	return s.Spill.Commit(b)
}

func (s *watchedSpill) Pack(gen uint32, runs []storage.Run) ([][]storage.Part, error) {
	s.w.called("Spill.Pack")
	return s.Spill.Pack(gen, runs)
}

func (s *watchedSpill) PackTimed(gen uint32, rs []storage.TimedRecord) ([]storage.TimedBlock, error) {
	s.w.called("Spill.PackTimed")
	return s.Spill.PackTimed(gen, rs)
}

func (s *watchedSpill) PackMarks(gen uint32, ms []storage.Mark) error {
	s.w.called("Spill.PackMarks")
	return s.Spill.PackMarks(gen, ms)
}

func (s *watchedSpill) Load(p storage.Part, want uint32, fn func(int, storage.Record)) error {
	s.w.called("Spill.Load")
	return s.Spill.Load(p, want, fn)
}

func (s *watchedSpill) LoadTimed(block uint32, from int, fn func(int, storage.TimedRecord) bool) error {
	s.w.called("Spill.LoadTimed")
	return s.Spill.LoadTimed(block, from, fn)
}

func (s *watchedSpill) Known(ms []storage.Mark, known []bool) error {
	s.w.called("Spill.Known")
	return s.Spill.Known(ms, known)
}

func (s *watchedSpill) Recall(fn func([]storage.Mark) bool) error {
	s.w.called("Spill.Recall")
	return s.Spill.Recall(fn)
}

func (s *watchedSpill) Row(key string) ([]byte, bool, error) {
	s.w.called("Spill.Row")
	return s.Spill.Row(key)
}

func (s *watchedSpill) Rows(prefix, from string, fn func(string, []byte) bool) error {
	s.w.called("Spill.Rows")
	return s.Spill.Rows(prefix, from, fn)
}

func (s *watchedSpill) Snapshot() (storage.Snapshot, error) {
	s.w.called("Spill.Snapshot")
	return s.Spill.Snapshot()
}

func (s *watchedSpill) Checkpoint(c *storage.Checkpoint) error {
	s.w.called("Spill.Checkpoint")
	return s.Spill.Checkpoint(c)
}

func (s *watchedSpill) Footprint() int64 {
	s.w.called("Spill.Footprint")
	return s.Spill.Footprint()
}

func (s *watchedSpill) Release() error {
	s.w.called("Spill.Release")
	return s.Spill.Release()
}

// givesUp lets a URL fail, by Done and by its deadline, until it is given up.
func givesUp(t *testing.T, w *lockWatch) {
	w.f.Store(nil)
	x := harness.NewWorld(t, w.watched(frontier.Options{Priorities: 1, Delay: frontier.FixedDelay(0), Retry: frontier.Retries(1, 0), LeaseTime: time.Second}))
	w.f.Store(x.F)
	x.Add("http://a.example/", "http://b.example/")
	x.Fetched(x.Next(), 0, frontier.Outcome{Result: frontier.Failed})
	x.Next()
	x.Until(2 * time.Second)
	x.Over()
	require.EqualValues(t, 2, x.F.Stats().GivenUp)
	require.Empty(t, w.found())
}

// The random operations of the model call every method that there is.
func TestLockIsNotHeldOverIOAndCallbacks(t *testing.T) {
	for _, durable := range []bool{false, true} {
		t.Run(map[bool]string{false: "in memory", true: "on a store"}[durable], func(t *testing.T) {
			n := trycount.Of(t)
			w := newLockWatch()
			rapid.Check(t, func(rt *rapid.T) {
				runWatchedModel(t, rt, durable, w)
				n.Tried(1)
				require.Empty(rt, w.found())
			})
			givesUp(t, w)
			want := []string{"Prioritizer", "Delay", "GroupDelay", "Retry", "Scheduler", "HostKey", "OnGiveUp", "OnEvent", "Logger"}
			if durable {
				want = append(want, "Spill.Commit", "Spill.Pack", "Spill.PackTimed", "Spill.PackMarks", "Spill.Load", "Spill.LoadTimed",
					"Spill.Known", "Spill.Row", "Spill.Snapshot", "Spill.Checkpoint", "Spill.Footprint", "Spill.Release")
			}
			for _, what := range want {
				require.Positive(t, w.count(what), "%s is never called", what)
			}
		})
	}
}
