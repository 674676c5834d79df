// This file tests deletion: what is gone, what stays, when, and that it lasts.

package frontier_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/spill/spilltest"
	"github.com/stretchr/testify/require"
)

var deleteOptions = frontier.Options{Delay: frontier.FixedDelay(time.Second), Retry: frontier.Retries(3, time.Second)}

// deleted deletes a scope and requires that so many URLs were found.
func (w *world) deleted(want int, s frontier.Scope) {
	w.Helper()
	n, err := w.f.Delete(context.Background(), s)
	require.NoError(w, err)
	require.EqualValues(w, want, n, "deleted of %v", s)
}

// leaseAll takes and ends leases until the crawl is over and returns their URLs.
func (w *world) leaseAll() (urls []string) {
	w.Helper()
	for {
		l, at, err := w.tryNext()
		switch {
		case err == nil:
			urls = append(urls, l.Entry.URL)
			require.NoError(w, w.f.Done(l, frontier.Outcome{}))
		case at.After(w.clk.Now()):
			w.clk.Set(at)
		default:
			require.ErrorIs(w, err, frontier.ErrExhausted)
			return urls
		}
	}
}

func TestDeleteContainsWhatTheScopeDoes(t *testing.T) {
	urls := []string{"http://a.example/1", "http://b.a.example/1", "http://b.a.example/2", "http://xa.example/1", "http://127.0.0.1/", "http://other.test/"}
	for _, x := range []struct {
		scope frontier.Scope
		left  []string
	}{
		{frontier.Host("a.example"), urls[1:]},
		{frontier.Domain("a.example"), urls[3:]},
		{frontier.Domain("example"), urls[4:]},
		{frontier.Host("127.0.0.1"), append(urls[:4:4], urls[5])},
		{frontier.Domain("0.1"), urls},
		{frontier.Host("nobody.example"), urls},
		{frontier.All(), nil},
	} {
		t.Run(x.scope.String(), func(t *testing.T) {
			inBothWorlds(t, deleteOptions, func(t *testing.T, w *world) {
				w.add(urls...)
				w.deleted(len(urls)-len(x.left), x.scope)
				require.EqualValues(t, len(x.left), w.f.Stats().Waiting)
				require.EqualValues(t, len(urls)-len(x.left), w.f.Stats().Deleted)
				n, err := w.f.Add(context.Background(), frontier.Entry{URL: urls[0]})
				require.NoError(t, err)
				require.Zero(t, n, "what was deleted is known still")
				require.ElementsMatch(t, x.left, w.leaseAll())
			})
		})
	}
}

func TestDeleteIsForWhatCameBefore(t *testing.T) {
	inBothWorlds(t, deleteOptions, func(t *testing.T, w *world) {
		w.add("http://a.example/1", "http://a.example/2")
		w.deleted(2, frontier.Domain("example"))
		w.add("http://a.example/3")
		n, err := w.f.Add(context.Background(), frontier.Entry{URL: "http://a.example/1", Force: true})
		require.NoError(t, err)
		require.Equal(t, 1, n)
		require.Equal(t, []string{"http://a.example/3", "http://a.example/1"}, w.leaseAll())
	})
}

func TestDeleteLeavesClocks(t *testing.T) {
	inBothWorlds(t, deleteOptions, func(t *testing.T, w *world) {
		w.add("http://a.example/1", "http://a.example/2")
		w.fetched(w.nextIs(0, "http://a.example/1"), 0, frontier.Outcome{CrawlDelay: 5 * time.Second})
		w.deleted(1, frontier.Host("a.example"))
		w.add("http://a.example/3")
		w.nextIs(5*time.Second, "http://a.example/3")
	})
}

// A URL that is leased keeps its slot, and does not come again whatever becomes
// of it.
func TestDeleteOfLeasedURL(t *testing.T) {
	for name, end := range map[string]func(*world, frontier.Lease){
		"done":    func(w *world, l frontier.Lease) { w.fetched(l, 0, frontier.Outcome{}) },
		"failed":  func(w *world, l frontier.Lease) { w.fetched(l, 0, frontier.Outcome{Result: frontier.Failed}) },
		"requeue": func(w *world, l frontier.Lease) { w.fetched(l, 0, frontier.Outcome{Result: frontier.Requeue}) },
		"again": func(w *world, l frontier.Lease) {
			w.fetched(l, 0, frontier.Outcome{Next: w.clk.Now().Add(time.Hour)})
		},
		"expired": func(w *world, l frontier.Lease) { w.clk.Advance(time.Hour) },
		"handed back": func(w *world, l frontier.Lease) {
			l, err := w.f.HandBack(l)
			require.NoError(w, err)
			w.fetched(l, 0, frontier.Outcome{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBothWorlds(t, deleteOptions, func(t *testing.T, w *world) {
				w.add("http://a.example/1", "http://a.example/2")
				l := w.next()
				w.deleted(1, frontier.Host("a.example"))
				require.EqualValues(t, 1, w.f.Stats().Leased)
				w.add("http://a.example/3")
				_, _, err := w.tryNext()
				require.ErrorIs(t, err, frontier.ErrNotDue, "its slot is taken")
				end(w, l)
				require.Equal(t, []string{"http://a.example/3"}, w.leaseAll())
			})
		})
	}
}

func TestDeleteOfLeasedURLThatIsForced(t *testing.T) {
	inBothWorlds(t, deleteOptions, func(t *testing.T, w *world) {
		force := func(url string) {
			n, err := w.f.Add(context.Background(), frontier.Entry{URL: url, Force: true})
			require.NoError(t, err)
			require.Equal(t, 1, n)
		}
		w.add("http://a.example/1", "http://b.example/1")
		a, b := w.next(), w.next()
		force(a.Entry.URL)
		w.deleted(0, frontier.Domain("example"))
		force(b.Entry.URL)
		w.fetched(a, 0, frontier.Outcome{})
		w.fetched(b, 0, frontier.Outcome{})
		require.Equal(t, []string{b.Entry.URL}, w.leaseAll(), "what was forced since comes again")
	})
}

func TestDeleteOfScheduledURLs(t *testing.T) {
	inBothWorlds(t, deleteOptions, func(t *testing.T, w *world) {
		var entries []frontier.Entry
		for i := range 3000 {
			host := []string{"a.example", "b.test"}[i%2]
			entries = append(entries, frontier.Entry{URL: fmt.Sprintf("http://%s/%d", host, i), NotBefore: dawn.Add(time.Duration(i*7%3000) * time.Minute)})
		}
		_, err := w.f.Add(context.Background(), entries...)
		require.NoError(t, err)
		for i := range 20 { // some in memory, most on disk
			if w.machine != nil && i == 10 {
				require.NoError(t, w.f.MoveNow(true))
			}
			w.clk.Advance(time.Minute)
		}
		n, err := w.f.Delete(context.Background(), frontier.Domain("a.example"))
		require.NoError(t, err)
		if w.machine == nil {
			require.EqualValues(t, 1500, n)
		}
		w.f.ReadTimed()
		require.EqualValues(t, 1500, w.f.Stats().Deleted)
		require.EqualValues(t, 1500, w.f.Stats().Waiting+w.f.Stats().Scheduled)
		for _, url := range w.leaseAll() {
			require.Contains(t, url, "b.test")
		}
		require.EqualValues(t, 1500, w.f.Stats().HandedOut)
	})
}

func TestDeleteCrawl(t *testing.T) {
	inBothWorlds(t, deleteOptions, func(t *testing.T, w *world) {
		var entries []frontier.Entry
		for i := range 40 {
			entries = append(entries, frontier.Entry{URL: fmt.Sprintf("http://%d.example/%d", i%3, i), Crawl: uint32(i % 2), Depth: i % 4})
		}
		_, err := w.f.Add(context.Background(), entries...)
		require.NoError(t, err)
		n, err := w.f.DeleteCrawl(context.Background(), 1)
		require.NoError(t, err)
		require.EqualValues(t, 20, n)
		require.NoError(t, w.f.Check())
		require.Len(t, w.leaseAll(), 20)
	})
}

// onDisk is a world with n URLs of each of some hosts, in blocks and not in
// memory.
func onDisk(t *testing.T, n int, hosts ...string) *world {
	w := newStoredWorld(t, deleteOptions, spill.Options{})
	for _, h := range hosts {
		var urls []string
		for i := range n {
			urls = append(urls, fmt.Sprintf("http://%s/%d", h, i))
		}
		w.add(urls...)
	}
	require.NoError(t, w.f.MoveNow(true))
	return w
}

func TestDeleteOnDisk(t *testing.T) {
	w := onDisk(t, 1000, "a.example", "b.example", "c.test")
	w.deleted(2000, frontier.Domain("example"))
	w.add("http://a.example/new")
	require.NoError(t, w.f.Check())
	require.Len(t, w.leaseAll(), 1001)
}

// What was deleted stays so: whether the process ends before the sweep or after,
// before the records move or after.
func TestDeleteLasts(t *testing.T) {
	for name, end := range map[string]func(*world) *world{
		"killed": (*world).killed,
		"closed": func(w *world) *world { w.reopen(); return w },
		"moved, killed": func(w *world) *world {
			require.NoError(w, w.f.MoveNow(true))
			return w.killed()
		},
		"killed, moved, killed": func(w *world) *world {
			w = w.killed()
			require.NoError(w, w.f.MoveNow(true))
			return w.killed()
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := onDisk(t, 100, "a.example", "b.example", "c.test")
			w.add("http://a.example/log", "http://c.test/log")
			leased := w.next()
			require.Equal(t, "http://a.example/0", leased.Entry.URL)
			w.deleted(200, frontier.Domain("example"))
			w.add("http://a.example/new")
			w = end(w)
			w.add("http://b.example/new")
			w.f.Sweep()
			require.EqualValues(t, 103, w.f.Stats().Waiting)
			require.Len(t, w.leaseAll(), 103)
		})
	}
}

// A deletion is dropped when nothing is left that it concerns, and no sooner: not
// while a lease has a dead URL that would come back.
func TestDeletionsAreDropped(t *testing.T) {
	w := onDisk(t, 10, "a.example", "b.test")
	l := w.next()
	require.Equal(t, "a.example", l.Host)
	w.deleted(9, frontier.Host("a.example"))
	require.NoError(t, w.f.MoveNow(true))
	require.Equal(t, 1, w.f.Deletions(), "a lease has one of its URLs")
	w = w.killed()
	w.f.Sweep()
	require.EqualValues(t, 10, w.f.Stats().Waiting)
	require.Equal(t, 1, w.f.Deletions())
	require.NoError(t, w.f.MoveNow(true))
	require.Zero(t, w.f.Deletions())
	w = w.killed()
	require.Zero(t, w.f.Deletions())
	require.Len(t, w.leaseAll(), 10)
}

func TestDeleteWithBadInput(t *testing.T) {
	w := newWorld(t, deleteOptions)
	w.add("http://a.example/")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := w.f.Delete(ctx, frontier.All())
	require.ErrorIs(t, err, context.Canceled)
	_, err = w.f.Delete(context.Background(), frontier.Host(""))
	require.ErrorContains(t, err, "0 bytes")
	_, err = w.f.Delete(context.Background(), frontier.Domain(string(make([]byte, 256))))
	require.ErrorContains(t, err, "256 bytes")
	require.Len(t, w.leaseAll(), 1, "nothing has changed")
	f := w.f
	require.NoError(t, f.Close())
	_, err = f.Delete(context.Background(), frontier.All())
	require.ErrorIs(t, err, frontier.ErrClosed)
	_, err = f.DeleteCrawl(context.Background(), 1)
	require.ErrorIs(t, err, frontier.ErrClosed)
}

// The end of a lease that failed to become durable does not bring a deleted URL
// back.
func TestDeletedURLWhoseEndFails(t *testing.T) {
	w := newStoredWorld(t, deleteOptions, spill.Options{})
	w.add("http://a.example/1", "http://b.example/1")
	l := w.next()
	w.deleted(0, frontier.Host(l.Host))
	require.NoError(t, w.f.MoveNow(true))
	require.EqualValues(t, 1, w.f.Stats().Waiting)
	w.machine.Faults.FailNth(spilltest.Write, 1, errDisk)
	require.ErrorIs(t, w.f.Done(l, frontier.Outcome{}), errDisk)
	w.f.Sweep()
	require.NoError(t, w.f.Check())
	require.EqualValues(t, 1, w.f.Stats().Waiting)
	require.Equal(t, []string{"http://b.example/1"}, w.leaseAll())
}

// A lease that ends while a deletion of its URL is on its way to disk has nothing
// that comes again, whichever is written first.
func TestDeleteMeetsTheEndOfALease(t *testing.T) {
	for name, order := range map[string]func(done, deletion func() *call) []*call{
		"behind it":      func(done, deletion func() *call) []*call { return []*call{deletion(), done()} },
		"in front of it": func(done, deletion func() *call) []*call { return []*call{done(), deletion()} },
	} {
		for _, group := range []int{0, 1} {
			t.Run(fmt.Sprintf("%s, %d writes between", name, group), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newStoredWorld(t, deleteOptions, spill.Options{})
					w.add("http://a.example/1", "http://b.example/1")
					l := w.next()
					gate := make(chan struct{})
					w.machine.Faults.Before(spilltest.Write, 1, func() { <-gate })
					calls := []*call{}
					if group == 0 { // both in one write, behind another one
						calls = append(calls, start(func() (frontier.Lease, error) {
							_, err := w.f.Add(t.Context(), frontier.Entry{URL: "http://b.example/2"})
							return frontier.Lease{}, err
						}))
						require.True(t, calls[0].waits())
					}
					calls = append(calls, order(
						func() *call {
							return start(func() (frontier.Lease, error) {
								return l, w.f.Done(l, frontier.Outcome{Result: frontier.Failed})
							})
						},
						func() *call {
							return start(func() (frontier.Lease, error) {
								_, err := w.f.Delete(t.Context(), frontier.Host(l.Host))
								return frontier.Lease{}, err
							})
						})...)
					for _, c := range calls {
						require.True(t, c.waits())
					}
					close(gate)
					for _, c := range calls {
						require.False(t, c.waits())
						require.NoError(t, c.err)
					}
					for _, url := range w.killed().leaseAll() {
						require.NotEqual(t, l.Entry.URL, url)
					}
					for _, url := range w.leaseAll() {
						require.NotEqual(t, l.Entry.URL, url)
					}
				})
			})
		}
	}
}

func TestDeleteOfPausedHosts(t *testing.T) {
	inBothWorlds(t, deleteOptions, func(t *testing.T, w *world) {
		w.add(urlsOf("a.example", 3)...)
		w.add(urlsOf("b.test", 2)...)
		require.NoError(t, w.f.Pause(frontier.All()))
		w.held(5)
		w.deleted(3, frontier.Domain("example"))
		w.held(2)
		require.NoError(t, w.f.Resume(frontier.All()))
		require.Len(t, w.leaseAll(), 2)
	})
}

// A URL that was deleted while it was leased, forced, and deleted again is gone.
func TestDeleteOfLeasedURLTwice(t *testing.T) {
	inBothWorlds(t, deleteOptions, func(t *testing.T, w *world) {
		w.add("http://a.example/1")
		l := w.next()
		w.deleted(0, frontier.All())
		n, err := w.f.Add(context.Background(), frontier.Entry{URL: l.Entry.URL, Force: true})
		require.NoError(t, err)
		require.Equal(t, 1, n)
		w.deleted(0, frontier.All())
		w.fetched(l, 0, frontier.Outcome{})
		require.Empty(t, w.leaseAll())
	})
}

// A hand-out sees by itself that a URL was deleted, before anybody has swept. It
// leaves the host to the sweep, which finds what is alive there.
func TestDeletedURLsAreNotHandedOut(t *testing.T) {
	for name, move := range map[string]func(*world){
		"in memory":         func(*world) {},
		"on disk":           func(w *world) { require.NoError(w, w.f.MoveNow(true)) },
		"in memory, blocks": func(w *world) { require.NoError(w, w.f.MoveNow(false)) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newStoredWorld(t, deleteOptions, spill.Options{})
			w.add(urlsOf("a.example", 100)...)
			w.add(urlsOf("b.test", 3)...)
			move(w)
			sweep := w.f.Doom(frontier.Domain("example"))
			w.add("http://a.example/new")
			for n := 0; n < 3; {
				l, at, err := w.tryNext()
				if err != nil {
					w.clk.Set(at)
					continue
				}
				require.Equal(t, "b.test", l.Host)
				w.fetched(l, 0, frontier.Outcome{})
				n++
			}
			_, at, err := w.tryNext()
			require.ErrorIs(t, err, frontier.ErrNotDue)
			require.Equal(t, w.clk.Now().Add(ms), at, "the sweep will have found something")
			require.Zero(t, w.f.Stats().Deleted, "hand-outs take nothing out")
			require.NoError(t, w.f.Check())
			sweep()
			require.Equal(t, []string{"http://a.example/new"}, w.leaseAll())
			require.EqualValues(t, 100, w.f.Stats().Deleted)
		})
	}
}

// A host that is left to a sweep which has been there comes back when it ends.
func TestHostLeftToASweepThatHasBeenThere(t *testing.T) {
	inBothWorlds(t, deleteOptions, func(t *testing.T, w *world) {
		w.add(urlsOf("a.example", 3)...)
		w.add(urlsOf("b.test", 2)...)
		sweep := w.f.Doom(frontier.Host("b.test"))
		w.f.LayAside("a.example")
		sweep()
		require.NoError(t, w.f.Check())
		require.ElementsMatch(t, urlsOf("a.example", 3), w.leaseAll())
	})
}

// A crawl that was deleted keeps no turn of the others, however much of it there is,
// and has its own again when it was swept.
func TestDeletedCrawlHasNoTurns(t *testing.T) {
	inBothWorlds(t, deleteOptions, func(t *testing.T, w *world) {
		w.inCrawl(1, "shared.example/old", 100)
		w.inCrawl(2, "shared.example/other", 3)
		sweep := w.f.DoomCrawl(1)
		w.inCrawl(1, "shared.example/new", 2)
		for n := 0; n < 3; {
			l, at, err := w.tryNext()
			if err != nil {
				w.clk.Set(at)
				continue
			}
			require.EqualValues(t, 2, l.Entry.Crawl)
			w.fetched(l, 0, frontier.Outcome{})
			n++
		}
		_, _, err := w.tryNext()
		require.ErrorIs(t, err, frontier.ErrNotDue)
		require.NoError(t, w.f.Check())
		sweep()
		require.Len(t, w.leaseAll(), 2)
		require.EqualValues(t, 100, w.f.Stats().Deleted)
	})
}

// A URL that is being read when it is deleted is not handed out.
func TestDeletedURLThatIsBeingRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := onDisk(t, 40, "a.example")
		s := &station{world: w}
		gate := make(chan struct{})
		w.machine.Faults.Before(spilltest.Read, 1, func() { <-gate })
		next := s.startNext(t.Context())
		require.True(t, next.waits())
		deletion := start(func() (frontier.Lease, error) {
			_, err := w.f.Delete(t.Context(), frontier.Host("a.example"))
			return frontier.Lease{}, err
		})
		require.True(t, deletion.waits(), "for the read")
		w.add("http://a.example/new")
		close(gate)
		require.False(t, deletion.waits())
		require.NoError(t, deletion.err)
		require.False(t, next.waits())
		require.NoError(t, next.err)
		require.Equal(t, "http://a.example/new", next.lease.Entry.URL)
	})
}
