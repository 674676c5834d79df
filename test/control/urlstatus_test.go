package control

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/internal/hook"
	"github.com/seed-7440039f/frontier/selector"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/test/harness"
	"github.com/stretchr/testify/require"
)

// A URL is followed through its life, in memory and on disk.
func TestStatusFollowsAURL(t *testing.T) {
	for _, moved := range []bool{false, true} {
		t.Run(fmt.Sprintf("moved=%v", moved), func(t *testing.T) {
			harness.InBothWorlds(t, frontier.Options{Priorities: 3, Selector: selector.Strict(), Delay: frontier.FixedDelay(0), Retry: frontier.Retries(2, time.Hour)}, func(t *testing.T, w *harness.World) {
				move := func() {
					if moved && w.Machine != nil {
						require.NoError(t, hook.Of(w.F).MoveNow(true))
					}
				}
				const url = "http://a.example/1"
				w.IsState(inspect.URLUnknown, url)
				w.Add("http://a.example/0")
				_, err := w.F.Add(context.Background(), frontier.Entry{URL: url, Depth: 1, Meta: []byte("m")})
				require.NoError(t, err)
				move()
				want := inspect.Status{State: inspect.URLWaiting, Host: "a.example", Priority: 2, Attempt: 1, Entry: frontier.Entry{URL: url, Depth: 1, Meta: []byte("m")}}
				require.Equal(t, want, w.Status(url))
				s, err := inspect.New(w.F).Status(context.Background(), frontier.Entry{URL: url, Crawl: 1})
				require.NoError(t, err)
				require.Equal(t, inspect.URLUnknown, s.State, "in another crawl")
				w.IsState(inspect.URLUnknown, "http://a.example/")
				w.IsState(inspect.URLUnknown, "http://b.example/1")
				var l frontier.Lease
				for l.Entry.URL != url {
					l = w.Next()
					if l.Entry.URL != url {
						require.NoError(t, w.F.Done(l, frontier.Outcome{}))
					}
				}
				move()
				want.State, want.Until = inspect.URLLeased, l.Deadline
				require.Equal(t, want, w.Status(url))
				require.NoError(t, w.F.Done(l, frontier.Outcome{Result: frontier.Failed}))
				move()
				got := w.Status(url)
				require.Equal(t, harness.Dawn.Add(time.Hour).UnixMilli(), got.Until.UnixMilli())
				require.Equal(t, inspect.URLScheduled.String(), got.State.String())
				require.Equal(t, 2, got.Attempt)
				require.Equal(t, url, got.Entry.URL)
				w.IsState(inspect.URLKnown, "http://a.example/0")
				w.Until(time.Hour)
				w.Fetched(w.NextIs(time.Hour, url), 0, frontier.Outcome{})
				move()
				w.IsState(inspect.URLKnown, url)
				require.Equal(t, inspect.Status{State: inspect.URLKnown, Host: "a.example"}, w.Status(url))
			})
		})
	}
}

func TestStatusErrors(t *testing.T) {
	w := harness.NewStoredWorld(t, frontier.Options{}, spill.Options{})
	_, err := inspect.New(w.F).Status(context.Background(), frontier.Entry{URL: "no url"})
	require.Error(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = inspect.New(w.F).Status(ctx, frontier.Entry{URL: "http://a.example/"})
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, w.F.Close())
	_, err = inspect.New(w.F).Status(context.Background(), frontier.Entry{URL: "http://a.example/"})
	require.ErrorIs(t, err, frontier.ErrClosed)
}

func TestStatusWithoutDedup(t *testing.T) {
	w := harness.NewWorld(t, frontier.Options{NoDedup: true})
	w.Add("http://a.example/")
	w.IsState(inspect.URLWaiting, "http://a.example/")
	w.Fetched(w.Next(), 0, frontier.Outcome{})
	w.IsState(inspect.URLUnknown, "http://a.example/")
}

// A URL that is never done never counts as done while workers take, fail and hand
// back it and its neighbours, and moves come in between.
func TestStatusMissesNothing(t *testing.T) {
	f := openReal(t, frontier.Options{Delay: frontier.FixedDelay(0), HostConcurrency: 4, Retry: frontier.Retries(1<<20, time.Millisecond)})
	const n = 300
	var es []frontier.Entry
	for i := range n {
		es = append(es, frontier.Entry{URL: fmt.Sprintf("http://a.example/%d", i)})
	}
	_, err := f.Add(context.Background(), es...)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for k := range 4 {
		all.Go(func() {
			for i := k; ; i++ {
				l, err := f.Next(ctx)
				if err != nil {
					return
				}
				o := frontier.Outcome{Result: frontier.Failed}
				if i%3 == 0 {
					o.Result = frontier.Requeue
				}
				require.NoError(t, f.Done(l, o))
			}
		})
	}
	all.Go(func() {
		for ctx.Err() == nil {
			require.NoError(t, hook.Of(f).MoveNow(true))
		}
	})
	states := map[inspect.URLState]int{}
	for i := range 300 {
		s, err := inspect.New(f).Status(ctx, frontier.Entry{URL: fmt.Sprintf("http://a.example/%d", i%n)})
		require.NoError(t, err)
		states[s.State]++
	}
	cancel()
	all.Wait()
	require.Zero(t, states[inspect.URLKnown]+states[inspect.URLUnknown], "%v", states)
}

func openReal(t *testing.T, o frontier.Options) *frontier.Frontier {
	t.Helper()
	db, err := spill.Open(t.TempDir(), spill.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	o.Spill = db
	f, err := frontier.Open(context.Background(), o)
	require.NoError(t, err)
	t.Cleanup(func() { harness.Ended(t, f) })
	return f
}
