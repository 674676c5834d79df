// This file tests deletion: what is gone, what stays, when, and that it lasts.

package frontier_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/internal/hook"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/spill/spilltest"
	"github.com/seed-7440039f/frontier/test/harness"
)

var deleteOptions = frontier.Options{Delay: frontier.FixedDelay(time.Second), Retry: frontier.Retries(3, time.Second)}

func TestDeleteContainsWhatTheScopeDoes(t *testing.T) {
	urls := []string{"http://a.example/1", "http://b.a.example/1", "http://b.a.example/2", "http://xa.example/1", "http://127.0.0.1/", "http://other.test/"}
	for _, x := range []struct {
		scope scope.Scope
		left  []string
	}{
		{scope.Host("a.example"), urls[1:]},
		{scope.Domain("a.example"), urls[3:]},
		{scope.Domain("example"), urls[4:]},
		{scope.Host("127.0.0.1"), append(urls[:4:4], urls[5])},
		{scope.Domain("0.1"), urls},
		{scope.Host("nobody.example"), urls},
		{scope.All(), nil},
	} {
		t.Run(x.scope.String(), func(t *testing.T) {
			harness.InBothWorlds(t, deleteOptions, func(t *testing.T, w *harness.World) {
				w.Add(urls...)
				w.Deleted(len(urls)-len(x.left), x.scope)
				require.EqualValues(t, len(x.left), w.F.Stats().Waiting)
				require.EqualValues(t, len(urls)-len(x.left), w.F.Stats().Deleted)
				n, err := w.F.Add(context.Background(), frontier.Entry{URL: urls[0]})
				require.NoError(t, err)
				require.Zero(t, n, "what was deleted is known still")
				require.ElementsMatch(t, x.left, w.LeaseAll())
			})
		})
	}
}

func TestDeleteIsForWhatCameBefore(t *testing.T) {
	harness.InBothWorlds(t, deleteOptions, func(t *testing.T, w *harness.World) {
		w.Add("http://a.example/1", "http://a.example/2")
		w.Deleted(2, scope.Domain("example"))
		w.Add("http://a.example/3")
		n, err := w.F.Add(context.Background(), frontier.Entry{URL: "http://a.example/1", Force: true})
		require.NoError(t, err)
		require.Equal(t, 1, n)
		require.Equal(t, []string{"http://a.example/3", "http://a.example/1"}, w.LeaseAll())
	})
}

func TestDeleteLeavesClocks(t *testing.T) {
	harness.InBothWorlds(t, deleteOptions, func(t *testing.T, w *harness.World) {
		w.Add("http://a.example/1", "http://a.example/2")
		w.Fetched(w.NextIs(0, "http://a.example/1"), 0, frontier.Outcome{CrawlDelay: 5 * time.Second})
		w.Deleted(1, scope.Host("a.example"))
		w.Add("http://a.example/3")
		w.NextIs(5*time.Second, "http://a.example/3")
	})
}

// A URL that is leased keeps its slot, and does not come again whatever becomes
// of it.
func TestDeleteOfLeasedURL(t *testing.T) {
	for name, end := range map[string]func(*harness.World, frontier.Lease){
		"done":    func(w *harness.World, l frontier.Lease) { w.Fetched(l, 0, frontier.Outcome{}) },
		"failed":  func(w *harness.World, l frontier.Lease) { w.Fetched(l, 0, frontier.Outcome{Result: frontier.Failed}) },
		"requeue": func(w *harness.World, l frontier.Lease) { w.Fetched(l, 0, frontier.Outcome{Result: frontier.Requeue}) },
		"again": func(w *harness.World, l frontier.Lease) {
			w.Fetched(l, 0, frontier.Outcome{Next: w.Clock.Now().Add(time.Hour)})
		},
		"expired": func(w *harness.World, l frontier.Lease) { w.Clock.Advance(time.Hour) },
		"handed back": func(w *harness.World, l frontier.Lease) {
			l, err := w.F.HandBack(l)
			require.NoError(w, err)
			w.Fetched(l, 0, frontier.Outcome{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			harness.InBothWorlds(t, deleteOptions, func(t *testing.T, w *harness.World) {
				w.Add("http://a.example/1", "http://a.example/2")
				l := w.Next()
				w.Deleted(1, scope.Host("a.example"))
				require.EqualValues(t, 1, w.F.Stats().Leased)
				w.Add("http://a.example/3")
				_, _, err := w.TryNext()
				require.ErrorIs(t, err, frontier.ErrNotDue, "its slot is taken")
				end(w, l)
				require.Equal(t, []string{"http://a.example/3"}, w.LeaseAll())
			})
		})
	}
}

func TestDeleteOfLeasedURLThatIsForced(t *testing.T) {
	harness.InBothWorlds(t, deleteOptions, func(t *testing.T, w *harness.World) {
		force := func(url string) {
			n, err := w.F.Add(context.Background(), frontier.Entry{URL: url, Force: true})
			require.NoError(t, err)
			require.Equal(t, 1, n)
		}
		w.Add("http://a.example/1", "http://b.example/1")
		a, b := w.Next(), w.Next()
		force(a.Entry.URL)
		w.Deleted(0, scope.Domain("example"))
		force(b.Entry.URL)
		w.Fetched(a, 0, frontier.Outcome{})
		w.Fetched(b, 0, frontier.Outcome{})
		require.Equal(t, []string{b.Entry.URL}, w.LeaseAll(), "what was forced since comes again")
	})
}

func TestDeleteOfScheduledURLs(t *testing.T) {
	harness.InBothWorlds(t, deleteOptions, func(t *testing.T, w *harness.World) {
		var entries []frontier.Entry
		for i := range 3000 {
			host := []string{"a.example", "b.test"}[i%2]
			entries = append(entries, frontier.Entry{URL: fmt.Sprintf("http://%s/%d", host, i), NotBefore: harness.Dawn.Add(time.Duration(i*7%3000) * time.Minute)})
		}
		_, err := w.F.Add(context.Background(), entries...)
		require.NoError(t, err)
		for i := range 20 { // some in memory, most on disk
			if w.Machine != nil && i == 10 {
				require.NoError(t, hook.Of(w.F).MoveNow(true))
			}
			w.Clock.Advance(time.Minute)
		}
		n, err := w.F.Delete(context.Background(), scope.Domain("a.example"))
		require.NoError(t, err)
		if w.Machine == nil {
			require.EqualValues(t, 1500, n)
		}
		hook.Of(w.F).ReadTimed()
		require.EqualValues(t, 1500, w.F.Stats().Deleted)
		require.EqualValues(t, 1500, w.F.Stats().Waiting+w.F.Stats().Scheduled)
		for _, url := range w.LeaseAll() {
			require.Contains(t, url, "b.test")
		}
		require.EqualValues(t, 1500, w.F.Stats().HandedOut)
	})
}

func TestDeleteOfACrawl(t *testing.T) {
	harness.InBothWorlds(t, deleteOptions, func(t *testing.T, w *harness.World) {
		var entries []frontier.Entry
		for i := range 40 {
			entries = append(entries, frontier.Entry{URL: fmt.Sprintf("http://%d.example/%d", i%3, i), Crawl: uint32(i % 2), Depth: i % 4})
		}
		_, err := w.F.Add(context.Background(), entries...)
		require.NoError(t, err)
		n, err := w.F.Delete(context.Background(), scope.Crawl(1))
		require.NoError(t, err)
		require.EqualValues(t, 20, n)
		require.NoError(t, w.F.Check())
		require.Len(t, w.LeaseAll(), 20)
	})
}

// onDisk is a world with n URLs of each of some hosts, in blocks and not in
// memory.
func onDisk(t *testing.T, n int, hosts ...string) *harness.World {
	w := harness.NewStoredWorld(t, deleteOptions, spill.Options{})
	for _, h := range hosts {
		var urls []string
		for i := range n {
			urls = append(urls, fmt.Sprintf("http://%s/%d", h, i))
		}
		w.Add(urls...)
	}
	require.NoError(t, hook.Of(w.F).MoveNow(true))
	return w
}

func TestDeleteOnDisk(t *testing.T) {
	w := onDisk(t, 1000, "a.example", "b.example", "c.test")
	w.Deleted(2000, scope.Domain("example"))
	w.Add("http://a.example/new")
	require.NoError(t, w.F.Check())
	require.Len(t, w.LeaseAll(), 1001)
}

// What was deleted stays so: whether the process ends before the sweep or after,
// before the records move or after.
func TestDeleteLasts(t *testing.T) {
	for name, end := range map[string]func(*harness.World) *harness.World{
		"killed": (*harness.World).Killed,
		"closed": func(w *harness.World) *harness.World { w.Reopen(); return w },
		"moved, killed": func(w *harness.World) *harness.World {
			require.NoError(w, hook.Of(w.F).MoveNow(true))
			return w.Killed()
		},
		"killed, moved, killed": func(w *harness.World) *harness.World {
			w = w.Killed()
			require.NoError(w, hook.Of(w.F).MoveNow(true))
			return w.Killed()
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := onDisk(t, 100, "a.example", "b.example", "c.test")
			w.Add("http://a.example/log", "http://c.test/log")
			leased := w.Next()
			require.Equal(t, "http://a.example/0", leased.Entry.URL)
			w.Deleted(200, scope.Domain("example"))
			w.Add("http://a.example/new")
			w = end(w)
			w.Add("http://b.example/new")
			hook.Of(w.F).Sweep()
			require.EqualValues(t, 103, w.F.Stats().Waiting)
			require.Len(t, w.LeaseAll(), 103)
		})
	}
}

// A deletion is dropped when nothing is left that it concerns, and no sooner: not
// while a lease has a dead URL that would come back.
func TestDeletionsAreDropped(t *testing.T) {
	w := onDisk(t, 10, "a.example", "b.test")
	l := w.Next()
	require.Equal(t, "a.example", l.Host)
	w.Deleted(9, scope.Host("a.example"))
	require.NoError(t, hook.Of(w.F).MoveNow(true))
	require.Equal(t, 1, w.F.Deletions(), "a lease has one of its URLs")
	w = w.Killed()
	hook.Of(w.F).Sweep()
	require.EqualValues(t, 10, w.F.Stats().Waiting)
	require.Equal(t, 1, w.F.Deletions())
	require.NoError(t, hook.Of(w.F).MoveNow(true))
	require.Zero(t, w.F.Deletions())
	w = w.Killed()
	require.Zero(t, w.F.Deletions())
	require.Len(t, w.LeaseAll(), 10)
}

func TestDeleteWithBadInput(t *testing.T) {
	w := harness.NewWorld(t, deleteOptions)
	w.Add("http://a.example/")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := w.F.Delete(ctx, scope.All())
	require.ErrorIs(t, err, context.Canceled)
	_, err = w.F.Delete(context.Background(), scope.Host(""))
	require.ErrorContains(t, err, "0 bytes")
	_, err = w.F.Delete(context.Background(), scope.Domain(string(make([]byte, 256))))
	require.ErrorContains(t, err, "256 bytes")
	require.Len(t, w.LeaseAll(), 1, "nothing has changed")
	f := w.F
	require.NoError(t, f.Close())
	_, err = f.Delete(context.Background(), scope.All())
	require.ErrorIs(t, err, frontier.ErrClosed)
	_, err = f.Delete(context.Background(), scope.Crawl(1))
	require.ErrorIs(t, err, frontier.ErrClosed)
}

// The end of a lease that failed to become durable does not bring a deleted URL
// back.
func TestDeletedURLWhoseEndFails(t *testing.T) {
	w := harness.NewStoredWorld(t, deleteOptions, spill.Options{})
	w.Add("http://a.example/1", "http://b.example/1")
	l := w.Next()
	w.Deleted(0, scope.Host(l.Host))
	require.NoError(t, hook.Of(w.F).MoveNow(true))
	require.EqualValues(t, 1, w.F.Stats().Waiting)
	w.Machine.Faults.FailNth(spilltest.Write, 1, harness.ErrDisk)
	require.ErrorIs(t, w.F.Done(l, frontier.Outcome{}), harness.ErrDisk)
	hook.Of(w.F).Sweep()
	require.NoError(t, w.F.Check())
	require.EqualValues(t, 1, w.F.Stats().Waiting)
	require.Equal(t, []string{"http://b.example/1"}, w.LeaseAll())
}

// A lease that ends while a deletion of its URL is on its way to disk has nothing
// that comes again, whichever is written first.
func TestDeleteMeetsTheEndOfALease(t *testing.T) {
	for name, order := range map[string]func(done, deletion func() *harness.Call) []*harness.Call{
		"behind it":      func(done, deletion func() *harness.Call) []*harness.Call { return []*harness.Call{deletion(), done()} },
		"in front of it": func(done, deletion func() *harness.Call) []*harness.Call { return []*harness.Call{done(), deletion()} },
	} {
		for _, group := range []int{0, 1} {
			t.Run(fmt.Sprintf("%s, %d writes between", name, group), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := harness.NewStoredWorld(t, deleteOptions, spill.Options{})
					w.Add("http://a.example/1", "http://b.example/1")
					l := w.Next()
					gate := make(chan struct{})
					w.Machine.Faults.Before(spilltest.Write, 1, func() { <-gate })
					calls := []*harness.Call{}
					if group == 0 { // both in one write, behind another one
						calls = append(calls, harness.Start(func() (frontier.Lease, error) {
							_, err := w.F.Add(t.Context(), frontier.Entry{URL: "http://b.example/2"})
							return frontier.Lease{}, err
						}))
						require.True(t, calls[0].Waits())
					}
					calls = append(calls, order(
						func() *harness.Call {
							return harness.Start(func() (frontier.Lease, error) {
								return l, w.F.Done(l, frontier.Outcome{Result: frontier.Failed})
							})
						},
						func() *harness.Call {
							return harness.Start(func() (frontier.Lease, error) {
								_, err := w.F.Delete(t.Context(), scope.Host(l.Host))
								return frontier.Lease{}, err
							})
						})...)
					for _, c := range calls {
						require.True(t, c.Waits())
					}
					close(gate)
					for _, c := range calls {
						require.False(t, c.Waits())
						require.NoError(t, c.Err)
					}
					for _, url := range w.Killed().LeaseAll() {
						require.NotEqual(t, l.Entry.URL, url)
					}
					for _, url := range w.LeaseAll() {
						require.NotEqual(t, l.Entry.URL, url)
					}
				})
			})
		}
	}
}

func TestDeleteOfPausedHosts(t *testing.T) {
	harness.InBothWorlds(t, deleteOptions, func(t *testing.T, w *harness.World) {
		w.Add(harness.UrlsOf("a.example", 3)...)
		w.Add(harness.UrlsOf("b.test", 2)...)
		require.NoError(t, w.F.Pause(scope.All()))
		w.Held(5)
		w.Deleted(3, scope.Domain("example"))
		w.Held(2)
		require.NoError(t, w.F.Resume(scope.All()))
		require.Len(t, w.LeaseAll(), 2)
	})
}

// A URL that was deleted while it was leased, forced, and deleted again is gone.
func TestDeleteOfLeasedURLTwice(t *testing.T) {
	harness.InBothWorlds(t, deleteOptions, func(t *testing.T, w *harness.World) {
		w.Add("http://a.example/1")
		l := w.Next()
		w.Deleted(0, scope.All())
		n, err := w.F.Add(context.Background(), frontier.Entry{URL: l.Entry.URL, Force: true})
		require.NoError(t, err)
		require.Equal(t, 1, n)
		w.Deleted(0, scope.All())
		w.Fetched(l, 0, frontier.Outcome{})
		require.Empty(t, w.LeaseAll())
	})
}

// A sweep takes what was deleted, and nothing that came since.
func TestURLBehindADeletedOne(t *testing.T) {
	harness.InBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(0)}, func(t *testing.T, w *harness.World) {
		w.Add("http://a.example/1")
		sweep := w.F.DeleteUnswept(scope.Host("a.example"))
		w.Add("http://a.example/2")
		sweep()
		hook.Of(w.F).Sweep()
		l := w.Next()
		require.Equal(t, "http://a.example/2", l.Entry.URL)
		w.Fetched(l, 0, frontier.Outcome{})
		w.Over()
	})
}

// A hand-out sees by itself that a URL was deleted, before anybody has swept. It
// leaves the host to the sweep, which finds what is alive there.
func TestDeletedURLsAreNotHandedOut(t *testing.T) {
	for name, move := range map[string]func(*harness.World){
		"in memory":         func(*harness.World) {},
		"on disk":           func(w *harness.World) { require.NoError(w, hook.Of(w.F).MoveNow(true)) },
		"in memory, blocks": func(w *harness.World) { require.NoError(w, hook.Of(w.F).MoveNow(false)) },
	} {
		t.Run(name, func(t *testing.T) {
			w := harness.NewStoredWorld(t, deleteOptions, spill.Options{})
			w.Add(harness.UrlsOf("a.example", 100)...)
			w.Add(harness.UrlsOf("b.test", 3)...)
			move(w)
			sweep := w.F.DeleteUnswept(scope.Domain("example"))
			w.Add("http://a.example/new")
			for n := 0; n < 3; {
				l, at, err := w.TryNext()
				if err != nil {
					w.Clock.Set(at)
					continue
				}
				require.Equal(t, "b.test", l.Host)
				w.Fetched(l, 0, frontier.Outcome{})
				n++
			}
			_, at, err := w.TryNext()
			require.ErrorIs(t, err, frontier.ErrNotDue)
			require.Equal(t, w.Clock.Now().Add(time.Millisecond), at, "the sweep will have found something")
			require.Zero(t, w.F.Stats().Deleted, "hand-outs take nothing out")
			require.NoError(t, w.F.Check())
			sweep()
			require.Equal(t, []string{"http://a.example/new"}, w.LeaseAll())
			require.EqualValues(t, 100, w.F.Stats().Deleted)
		})
	}
}

// A deletion elsewhere lays no host aside whose next URLs are finished on disk.
func TestDeletionLaysNoOtherHostAside(t *testing.T) {
	w := harness.NewStoredWorld(t, deleteOptions, spill.Options{})
	for i := range 2 { // in a block each
		w.Add(fmt.Sprintf("http://a.example/%d", i), fmt.Sprintf("http://b.test/%d", i))
		require.NoError(t, hook.Of(w.F).MoveNow(true))
	}
	w.Fetched(w.NextIs(0, "http://a.example/0"), 0, frontier.Outcome{})
	w.Reopen()
	w.Clock.Advance(time.Hour)
	sweep := w.F.DeleteUnswept(scope.Host("b.test"))
	l, _, err := w.TryNext()
	require.NoError(t, err)
	require.Equal(t, "http://a.example/1", l.Entry.URL)
	w.Fetched(l, 0, frontier.Outcome{})
	sweep()
	w.Over()
}

// A host that is left to a sweep which has been there comes back when it ends.
func TestHostLeftToASweepThatHasBeenThere(t *testing.T) {
	harness.InBothWorlds(t, deleteOptions, func(t *testing.T, w *harness.World) {
		w.Add(harness.UrlsOf("a.example", 3)...)
		w.Add(harness.UrlsOf("b.test", 2)...)
		sweep := w.F.DeleteUnswept(scope.Host("b.test"))
		w.F.LayAside("a.example")
		sweep()
		require.NoError(t, w.F.Check())
		require.ElementsMatch(t, harness.UrlsOf("a.example", 3), w.LeaseAll())
	})
}

// A crawl that was deleted keeps no turn of the others, however much of it there is,
// and has its own again when it was swept.
func TestDeletedCrawlHasNoTurns(t *testing.T) {
	harness.InBothWorlds(t, deleteOptions, func(t *testing.T, w *harness.World) {
		w.InCrawl(1, "shared.example/old", 100)
		w.InCrawl(2, "shared.example/other", 3)
		sweep := w.F.DeleteCrawlUnswept(1)
		w.InCrawl(1, "shared.example/new", 2)
		for n := 0; n < 3; {
			l, at, err := w.TryNext()
			if err != nil {
				w.Clock.Set(at)
				continue
			}
			require.EqualValues(t, 2, l.Entry.Crawl)
			w.Fetched(l, 0, frontier.Outcome{})
			n++
		}
		_, _, err := w.TryNext()
		require.ErrorIs(t, err, frontier.ErrNotDue)
		require.NoError(t, w.F.Check())
		sweep()
		require.Len(t, w.LeaseAll(), 2)
		require.EqualValues(t, 100, w.F.Stats().Deleted)
	})
}

// A URL that is being read when it is deleted is not handed out.
func TestDeletedURLThatIsBeingRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := onDisk(t, 40, "a.example")
		s := &harness.Station{World: w}
		gate := make(chan struct{})
		w.Machine.Faults.Before(spilltest.Read, 1, func() { <-gate })
		next := s.StartNext(t.Context())
		require.True(t, next.Waits())
		deletion := harness.Start(func() (frontier.Lease, error) {
			_, err := w.F.Delete(t.Context(), scope.Host("a.example"))
			return frontier.Lease{}, err
		})
		require.True(t, deletion.Waits(), "for the read")
		w.Add("http://a.example/new")
		close(gate)
		require.False(t, deletion.Waits())
		require.NoError(t, deletion.Err)
		require.False(t, next.Waits())
		require.NoError(t, next.Err)
		require.Equal(t, "http://a.example/new", next.Lease.Entry.URL)
	})
}
