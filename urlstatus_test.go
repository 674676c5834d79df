package frontier_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/stretchr/testify/require"
)

func (w *world) status(url string) frontier.URLStatus {
	w.Helper()
	s, err := w.f.Status(context.Background(), 0, url)
	require.NoError(w, err)
	return s
}

func (w *world) isState(want frontier.URLState, url string) {
	w.Helper()
	require.Equal(w, want.String(), w.status(url).State.String(), url)
}

// A URL is followed through its life, in memory and on disk.
func TestStatusFollowsAURL(t *testing.T) {
	for _, moved := range []bool{false, true} {
		t.Run(fmt.Sprintf("moved=%v", moved), func(t *testing.T) {
			inBothWorlds(t, frontier.Options{Priorities: 3, Selector: frontier.Strict(), Delay: frontier.FixedDelay(0), Retry: frontier.Retries(2, time.Hour)}, func(t *testing.T, w *world) {
				move := func() {
					if moved && w.machine != nil {
						require.NoError(t, w.f.MoveNow(true))
					}
				}
				const url = "http://a.example/1"
				w.isState(frontier.URLUnknown, url)
				w.add("http://a.example/0")
				_, err := w.f.Add(context.Background(), frontier.Entry{URL: url, Depth: 1, Meta: []byte("m")})
				require.NoError(t, err)
				move()
				want := frontier.URLStatus{State: frontier.URLWaiting, Host: "a.example", Priority: 2, Attempt: 1, Entry: frontier.Entry{URL: url, Depth: 1, Meta: []byte("m")}}
				require.Equal(t, want, w.status(url))
				s, err := w.f.Status(context.Background(), 1, url)
				require.NoError(t, err)
				require.Equal(t, frontier.URLUnknown, s.State, "in another crawl")
				w.isState(frontier.URLUnknown, "http://a.example/")
				w.isState(frontier.URLUnknown, "http://b.example/1")
				var l frontier.Lease
				for l.Entry.URL != url {
					l = w.next()
					if l.Entry.URL != url {
						require.NoError(t, w.f.Done(l, frontier.Outcome{}))
					}
				}
				move()
				want.State, want.Until = frontier.URLLeased, l.Deadline
				require.Equal(t, want, w.status(url))
				require.NoError(t, w.f.Done(l, frontier.Outcome{Result: frontier.Failed}))
				move()
				got := w.status(url)
				require.Equal(t, dawn.Add(time.Hour).UnixMilli(), got.Until.UnixMilli())
				require.Equal(t, frontier.URLScheduled.String(), got.State.String())
				require.Equal(t, 2, got.Attempt)
				require.Equal(t, url, got.Entry.URL)
				w.isState(frontier.URLKnown, "http://a.example/0")
				w.until(time.Hour)
				w.fetched(w.nextIs(time.Hour, url), 0, frontier.Outcome{})
				move()
				w.isState(frontier.URLKnown, url)
				require.Equal(t, frontier.URLStatus{State: frontier.URLKnown, Host: "a.example"}, w.status(url))
			})
		})
	}
}

func TestStatusErrors(t *testing.T) {
	w := newStoredWorld(t, frontier.Options{}, spill.Options{})
	_, err := w.f.Status(context.Background(), 0, "no url")
	require.Error(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = w.f.Status(ctx, 0, "http://a.example/")
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, w.f.Close())
	_, err = w.f.Status(context.Background(), 0, "http://a.example/")
	require.ErrorIs(t, err, frontier.ErrClosed)
}

func TestStatusWithoutDedup(t *testing.T) {
	w := newWorld(t, frontier.Options{NoDedup: true})
	w.add("http://a.example/")
	w.isState(frontier.URLWaiting, "http://a.example/")
	w.fetched(w.next(), 0, frontier.Outcome{})
	w.isState(frontier.URLUnknown, "http://a.example/")
}

// A URL that is never done is never told to be, while workers take, fail and hand
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
			require.NoError(t, f.MoveNow(true))
		}
	})
	states := map[frontier.URLState]int{}
	for i := range 300 {
		s, err := f.Status(ctx, 0, fmt.Sprintf("http://a.example/%d", i%n))
		require.NoError(t, err)
		states[s.State]++
	}
	cancel()
	all.Wait()
	require.Zero(t, states[frontier.URLKnown]+states[frontier.URLUnknown], "%v", states)
}

func openReal(t *testing.T, o frontier.Options) *frontier.Frontier {
	t.Helper()
	db, err := spill.Open(t.TempDir(), spill.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	o.Spill = db
	f, err := frontier.Open(context.Background(), o)
	require.NoError(t, err)
	t.Cleanup(func() { ended(t, f) })
	return f
}
