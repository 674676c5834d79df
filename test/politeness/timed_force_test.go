// This file tests what a Force makes of a scheduled URL that is on disk.

package politeness

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/internal/hook"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/spill/spilltest"
	"github.com/seed-7440039f/frontier/storage"
	"github.com/seed-7440039f/frontier/test/harness"
	"github.com/stretchr/testify/require"
)

// A Force of a URL that waits for its time on disk moves it: it comes once.
func TestForceOfAURLOnDisk(t *testing.T) {
	const url = "http://a.example/"
	later := func(d time.Duration) frontier.Entry {
		return frontier.Entry{URL: url, NotBefore: harness.Dawn.Add(d), Force: true}
	}
	now := frontier.Entry{URL: url, Force: true}
	for _, c := range []struct {
		name string
		ops  []frontier.Entry
		want []time.Duration
	}{
		{"to now", []frontier.Entry{now}, []time.Duration{0}},
		{"to an earlier time", []frontier.Entry{later(24 * time.Hour)}, []time.Duration{24 * time.Hour}},
		{"to a later time", []frontier.Entry{later(60 * 24 * time.Hour)}, []time.Duration{60 * 24 * time.Hour}},
		{"twice", []frontier.Entry{later(60 * 24 * time.Hour), later(40 * 24 * time.Hour)}, []time.Duration{40 * 24 * time.Hour}},
		{"later and now", []frontier.Entry{later(60 * 24 * time.Hour), now}, []time.Duration{0}},
		{"now and later", []frontier.Entry{now, later(60 * 24 * time.Hour)}, []time.Duration{60 * 24 * time.Hour}},
	} {
		for _, between := range []string{"nothing", "move", "reopen", "kill", "move and kill"} {
			for _, others := range []int{0, 10_000} { // more than are looked through at once
				t.Run(fmt.Sprintf("%s/%s/others=%d", c.name, between, others), func(t *testing.T) {
					w := harness.NewStoredWorld(t, frontier.Options{Delay: frontier.FixedDelay(0)}, spill.Options{})
					n, err := w.F.Add(context.Background(), frontier.Entry{URL: url, NotBefore: harness.Dawn.Add(30 * 24 * time.Hour)})
					require.NoError(t, err)
					require.Equal(t, 1, n)
					require.NoError(t, hook.Of(w.F).MoveNow(true))
					if others > 0 {
						w.Later(others, 7, 90*24*time.Hour, 91*24*time.Hour)
					}
					for _, e := range c.ops {
						n, err := w.F.Add(context.Background(), e)
						require.NoError(t, err)
						require.Equal(t, 1, n)
						switch between {
						case "move":
							require.NoError(t, hook.Of(w.F).MoveNow(true))
						case "reopen":
							w.Reopen()
						case "kill":
							w = w.Killed()
						case "move and kill":
							require.NoError(t, hook.Of(w.F).MoveNow(true))
							w = w.Killed()
						}
					}
					hold := time.Duration(0)
					for _, at := range c.want {
						l := w.Comes(max(at, hold), url)
						require.NoError(t, w.F.Done(l, harness.Requeue))
						l = w.Next()
						require.Equal(t, url, l.Entry.URL)
						require.NoError(t, w.F.Done(l, frontier.Outcome{Next: harness.Dawn.Add(80 * 24 * time.Hour)}))
					}
					require.NoError(t, hook.Of(w.F).MoveNow(true))
					w.Fetched(w.Comes(80*24*time.Hour, url), 0, frontier.Outcome{})
					if others == 0 {
						w.Over()
						return
					}
					w.NothingUntil(90 * 24 * time.Hour)
					require.EqualValues(t, others, w.Left())
				})
			}
		}
	}
}

// A note is forgotten when no block is left to which it may apply.
func TestNotesOfForcesAreDropped(t *testing.T) {
	w := harness.NewStoredWorld(t, frontier.Options{Delay: frontier.FixedDelay(0)}, spill.Options{})
	w.Later(20_000, 100, 10*24*time.Hour, 11*24*time.Hour)
	quiet := w.F.Stats().MemoryBytes
	for i := range 1000 {
		_, err := w.F.Add(context.Background(), frontier.Entry{URL: fmt.Sprintf("http://h%d.example/%d/%d-%d", i%100, 10*24*time.Hour, i, 20_000), Force: true})
		require.NoError(t, err)
	}
	w = w.Killed()
	require.EqualValues(t, 21_000, w.Left())
	w.Until(12 * 24 * time.Hour)
	seen := map[string]int{}
	for _, u := range w.Rest() {
		seen[u]++
	}
	require.Len(t, seen, 20_000)
	for u, n := range seen {
		require.Equal(t, 1, n, u)
	}
	require.NoError(t, hook.Of(w.F).MoveNow(true)) // drops the notes
	require.NoError(t, hook.Of(w.F).MoveNow(true)) // and their rows
	rows := 0
	w.Machine.Kill(t).Damage(func(k, v []byte) []byte {
		if len(k) > 7 && k[4] == 'R' && string(k[5:7]) == "x:" {
			rows++
		}
		return v
	})
	require.LessOrEqual(t, rows, 1000)
	w.Add("http://z.example/")
	w = w.Killed() // applies what the last commit did to rows
	rows = 0
	w.Machine.Kill(t).Damage(func(k, v []byte) []byte {
		if len(k) > 7 && k[4] == 'R' && string(k[5:7]) == "x:" {
			rows++
		}
		return v
	})
	require.Zero(t, rows)
	require.Less(t, w.F.Stats().MemoryBytes, quiet+1<<20)
}

// Workers, forces, moves and time run concurrently: no URL is ever there twice.
func TestRecrawlWithForcesAndMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n, workers = 400, 8
		r := harness.NewRand(t)
		m := spilltest.OpenMemory(t, spill.Options{})
		w := &harness.World{TB: t, Machine: m, Options: frontier.Options{Spill: m.Store, Delay: frontier.FixedDelay(50 * time.Millisecond), Retry: frontier.Retries(1, 0)}}
		w.Open()
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		url := func(i int) string { return fmt.Sprintf("http://h%d.example/%d", i%40, i) }
		var entries []frontier.Entry
		for i := range n {
			entries = append(entries, frontier.Entry{URL: url(i)})
		}
		_, err := w.F.Add(ctx, entries...)
		require.NoError(t, err)
		var mu sync.Mutex // guards r, out and visits
		out, visits := map[string]bool{}, 0
		draw := func(n int) int { mu.Lock(); defer mu.Unlock(); return r.IntN(n) }
		var all sync.WaitGroup
		for range workers {
			all.Go(func() {
				for {
					l, err := w.F.Next(ctx)
					if err != nil {
						return
					}
					mu.Lock()
					twice := out[l.Entry.URL]
					out[l.Entry.URL] = true
					visits++
					mu.Unlock()
					if twice {
						t.Errorf("%s is leased twice", l.Entry.URL)
					}
					time.Sleep(time.Duration(draw(300)) * time.Millisecond)
					mu.Lock()
					delete(out, l.Entry.URL)
					mu.Unlock()
					o := frontier.Outcome{Next: time.Now().Add(time.Duration(1+draw(7200)) * time.Second)}
					if draw(10) == 0 {
						o = harness.Requeue
					}
					if err := w.F.Done(l, o); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Go(func() {
			for ctx.Err() == nil {
				time.Sleep(time.Duration(1+draw(60)) * time.Second)
				e := frontier.Entry{URL: url(draw(n)), Force: true}
				if draw(3) == 0 {
					e.NotBefore = time.Now().Add(time.Duration(draw(7200)) * time.Second)
				}
				if _, err := w.F.Add(ctx, e); err != nil && ctx.Err() == nil {
					t.Error(err)
				}
			}
		})
		all.Go(func() {
			for ctx.Err() == nil {
				time.Sleep(time.Duration(1+draw(900)) * time.Second)
				if err := hook.Of(w.F).MoveNow(draw(2) == 0); err != nil {
					t.Error(err)
				}
			}
		})
		time.Sleep(24 * time.Hour)
		stop()
		all.Wait()
		require.NoError(t, w.F.Check())
		w.Reopen()
		require.Greater(t, visits, 10*n)
		seen := map[string]bool{}
		for range n {
			l, err := w.F.Next(t.Context())
			require.NoError(t, err)
			require.False(t, seen[l.Entry.URL], "%s is there twice", l.Entry.URL)
			seen[l.Entry.URL] = true
			require.NoError(t, w.F.Done(l, frontier.Outcome{}))
		}
		_, err = w.F.Next(t.Context())
		require.ErrorIs(t, err, frontier.ErrExhausted)
	})
}

// A round that failed leaves a URL in a block that is dropped after a crash: then
// it is in the log again, and superseded all the same.
func TestForceBetweenAFailedRoundAndACrash(t *testing.T) {
	for n := 1; ; n++ {
		w := harness.NewStoredWorld(t, frontier.Options{Delay: frontier.FixedDelay(0)}, spill.Options{})
		_, err := w.F.Add(context.Background(), frontier.Entry{URL: "http://a.example/", NotBefore: harness.Dawn.Add(24 * time.Hour)})
		require.NoError(t, err)
		w.Machine.Faults.FailNth(spilltest.Write, n, harness.ErrDisk)
		if hook.Of(w.F).MoveNow(true) == nil {
			require.Greater(t, n, 3)
			return
		}
		w.Machine.Faults.Heal()
		_, err = w.F.Add(context.Background(), frontier.Entry{URL: "http://a.example/", Force: true})
		require.NoError(t, err)
		for range 2 {
			w = w.Killed()
			require.EqualValues(t, 1, w.Left())
		}
		require.NoError(t, hook.Of(w.F).MoveNow(true))
		w.Fetched(w.Next(), 0, frontier.Outcome{})
		w.Over()
		w = w.Killed()
		w.Over()
	}
}

// While a Force is on its way to disk it is undecided whether the URL that it replaces counts: it
// is not handed out.
func TestForceMeetsTheTimeOfItsURL(t *testing.T) {
	for _, fails := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			const url = "http://a.example/"
			w, h := harness.HookedWorld(t, frontier.Options{Delay: frontier.FixedDelay(0)})
			_, err := w.F.Add(context.Background(), frontier.Entry{URL: url, NotBefore: harness.Dawn.Add(24 * time.Hour), Meta: []byte("old")})
			require.NoError(t, err)
			require.NoError(t, hook.Of(w.F).MoveNow(true))
			gate := make(chan struct{})
			h.Set(func(*storage.Batch) error {
				<-gate
				if fails {
					return harness.ErrDisk
				}
				return nil
			}, nil)
			forced := make(chan error, 1)
			go func() {
				_, err := w.F.Add(context.Background(), frontier.Entry{URL: url, Force: true, Meta: []byte("new")})
				forced <- err
			}()
			synctest.Wait()
			w.Until(24 * time.Hour)
			c := harness.Start(func() (frontier.Lease, error) { l, _, err := w.F.TryNext(); return l, err })
			require.True(t, c.Waits())
			close(gate)
			h.Set(nil, nil)
			<-c.Over
			require.NoError(t, c.Err)
			want := "new"
			if err := <-forced; fails {
				require.ErrorIs(t, err, harness.ErrDisk)
				want = "old"
			}
			require.Equal(t, want, string(c.Lease.Entry.Meta))
			w.Fetched(c.Lease, 0, frontier.Outcome{})
			w.Over()
		})
	}
}

// A crawl does not wait for the times of URLs that were all forced to come now.
func TestCrawlIsOverOnceAllThatIsScheduledWasForced(t *testing.T) {
	const n = 8000
	w := harness.NewStoredWorld(t, frontier.Options{Delay: frontier.FixedDelay(0)}, spill.Options{})
	w.Later(n, 10, 30*24*time.Hour, 31*24*time.Hour)
	require.NoError(t, hook.Of(w.F).MoveNow(true))
	var entries []frontier.Entry
	for i := range n {
		entries = append(entries, frontier.Entry{URL: fmt.Sprintf("http://h%d.example/%d/%d-%d", i%10, 30*24*time.Hour, i, n), Force: true})
	}
	_, err := w.F.Add(context.Background(), entries...)
	require.NoError(t, err)
	done := 0
	require.Eventually(t, func() bool { // blocks are looked through meanwhile; the clock stands still
		for {
			l, _, err := w.F.TryNext()
			if err != nil {
				return errors.Is(err, frontier.ErrExhausted)
			}
			w.Fetched(l, 0, frontier.Outcome{})
			done++
		}
	}, 2*time.Minute, time.Millisecond)
	require.Equal(t, n, done)
}

// A note is kept for a block that could not be read: it may be readable again.
func TestNoteOutlivesADamagedBlock(t *testing.T) {
	w := harness.NewStoredWorld(t, frontier.Options{Delay: frontier.FixedDelay(0)}, spill.Options{})
	w.Later(20_000, 1, 24*time.Hour, 2*24*time.Hour) // more than are looked through at once
	flip := func() {
		w.Machine.Damage(func(k, v []byte) []byte {
			if k[4] == 'T' {
				v[len(v)/2] ^= 1
			}
			return v
		})
	}
	flip()
	url := fmt.Sprintf("http://h0.example/%d/0-20000", 24*time.Hour)
	_, err := w.F.Add(context.Background(), frontier.Entry{URL: url, Force: true})
	require.NoError(t, err)
	w.Fetched(w.NextIs(0, url), 0, frontier.Outcome{})
	w.Until(3 * 24 * time.Hour)
	for ce := new(frontier.CorruptError); ; {
		if _, _, err = w.F.TryNext(); !errors.As(err, &ce) {
			break
		}
	}
	require.ErrorIs(t, err, frontier.ErrExhausted)
	for range 3 {
		require.NoError(t, hook.Of(w.F).MoveNow(true))
	}
	flip()
	w = w.Killed()
	urls := w.Rest()
	require.Len(t, urls, 19_999)
	require.NotContains(t, urls, url)
}

// What a Force that met a lease admitted comes after the Done of that lease or, if it is lost, of
// the next: after a clean Close and after a crash, once.
func TestForceThatMetALeaseSurvives(t *testing.T) {
	for name, end := range map[string]func(*harness.World) *harness.World{
		"closed": func(w *harness.World) *harness.World { w.Reopen(); return w },
		"killed": (*harness.World).Killed,
		"moved and killed": func(w *harness.World) *harness.World {
			w.OnDisk()
			return w.Killed()
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := harness.NewStoredWorld(t, frontier.Options{Delay: frontier.FixedDelay(time.Second)}, spill.Options{})
			w.Add("http://a.example/1")
			w.Next()
			for _, meta := range []string{"first", "second"} {
				n, err := w.F.Add(t.Context(), frontier.Entry{URL: "http://a.example/1", Force: true, Meta: []byte(meta), NotBefore: harness.Dawn.Add(time.Hour)})
				require.NoError(t, err)
				require.Equal(t, 1, n)
			}
			w = end(end(w))
			l := w.Next()
			require.Empty(t, l.Entry.Meta)
			w.Fetched(l, time.Second, frontier.Outcome{})
			w = end(w)
			l = w.NextIs(time.Hour, "http://a.example/1")
			require.Equal(t, "second", string(l.Entry.Meta))
			w.Fetched(l, time.Second, frontier.Outcome{})
			w.Over()
			w = end(w)
			w.Over()
		})
	}
}
