// This file ends the contexts of calls: before them, while they wait, and at random
// moments among thousands of others.

package conformance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/internal/hook"
	"github.com/seed-7440039f/frontier/internal/lab/trycount"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/spill/spilltest"
	"github.com/seed-7440039f/frontier/storage"
	"github.com/seed-7440039f/frontier/test/harness"
	"github.com/seed-7440039f/frontier/transfer"
)

// Each call whose context has ended says so, and does nothing.
func TestContextThatHasEnded(t *testing.T) {
	harness.InBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(0)}, func(t *testing.T, w *harness.World) {
		w.Add("http://a.example/1", "http://b.example/1")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		calls := map[string]func() error{
			"Add":               func() error { _, err := w.F.Add(ctx, frontier.Entry{URL: "http://a.example/2"}); return err },
			"CrawlNow":          func() error { _, err := w.F.CrawlNow(ctx, frontier.Entry{URL: "http://a.example/1"}); return err },
			"Next":              func() error { _, err := w.F.Next(ctx); return err },
			"Contact":           func() error { _, err := w.F.Contact(ctx, "a.example"); return err },
			"Delete":            func() error { _, err := w.F.Delete(ctx, scope.All()); return err },
			"Delete of a crawl": func() error { _, err := w.F.Delete(ctx, scope.Crawl(0)); return err },
			"Status": func() error {
				_, err := inspect.New(w.F).Status(ctx, frontier.Entry{URL: "http://a.example/1"})
				return err
			},
			"Upcoming": func() error { _, err := inspect.New(w.F).Upcoming(ctx, 3, true); return err },
			"Export":   func() error { return transfer.Export(ctx, w.F, io.Discard, transfer.ExportOptions{}) },
			"Import": func() error {
				_, err := transfer.Import(ctx, w.F, strings.NewReader("http://a.example/3\n"), transfer.ImportOptions{})
				return err
			},
			"Leases": func() (got error) {
				for _, err := range w.F.Leases(ctx) {
					got = err
				}
				return got
			},
			"Scan": func() (got error) {
				for _, err := range inspect.New(w.F).Scan(ctx, scope.All()) {
					got = err
				}
				return got
			},
			"URLs": func() (got error) {
				for _, err := range inspect.New(w.F).URLs(ctx, scope.All(), "") {
					got = err
				}
				return got
			},
		}
		before := w.F.Stats()
		for name, call := range calls {
			require.ErrorIs(t, call(), context.Canceled, name)
		}
		after := w.F.Stats()
		require.Equal(t, []int64{before.Waiting, before.Leased, before.Known, before.HandedOut}, []int64{after.Waiting, after.Leased, after.Known, after.HandedOut})
		w.Fetched(w.Next(), 0, frontier.Outcome{})
		w.Fetched(w.Next(), 0, frontier.Outcome{})
		w.Over()
	})
}

// Each waiting call ends with its context, and the others continue.
func TestContextThatEndsWhileACallWaits(t *testing.T) {
	for _, store := range []bool{false, true} {
		t.Run(map[bool]string{false: "in memory", true: "on a store"}[store], func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := frontier.Options{Delay: frontier.FixedDelay(time.Hour), KeepOpen: true, LeaseTime: 700 * time.Hour}
				if store {
					o.Spill = spilltest.OpenMemory(t, spill.Options{}).Store
				}
				f := harness.Opened(t, o)
				_, err := f.Add(t.Context(), frontier.Entry{URL: "http://a.example/1"}, frontier.Entry{URL: "http://a.example/2"})
				require.NoError(t, err)
				l, err := f.Next(t.Context())
				require.NoError(t, err)
				contact := func(ctx context.Context) (frontier.Lease, error) { return f.Contact(ctx, "a.example") }
				for name, fn := range map[string]func(context.Context) (frontier.Lease, error){
					"Next":    f.Next,
					"Contact": contact,
					"Leases": func(ctx context.Context) (l frontier.Lease, err error) {
						for l, err = range f.Leases(ctx) {
						}
						return l, err
					},
				} {
					ctx, cancel := context.WithCancel(t.Context())
					ends := harness.Start(func() (frontier.Lease, error) { return fn(ctx) })
					stays := harness.Start(func() (frontier.Lease, error) { return contact(t.Context()) })
					require.True(t, ends.Waits(), name)
					cancel()
					require.False(t, ends.Waits(), name)
					require.ErrorIs(t, ends.Err, context.Canceled, name)
					require.True(t, stays.Waits(), "%s: it is nobody else's end", name)
					require.NoError(t, f.Done(l, harness.Requeue))
					require.False(t, stays.Waits())
					require.NoError(t, stays.Err)
					l = stays.Lease
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				begun := time.Now()
				require.ErrorIs(t, f.Drain(ctx), context.DeadlineExceeded)
				require.Equal(t, time.Minute, time.Since(begun))
				require.NoError(t, f.Done(l, harness.Requeue))
				require.NoError(t, f.Drain(t.Context()))
			})
		})
	}
}

// unsteady is a store whose calls take a random time.
type unsteady struct {
	storage.Spill
	mu   sync.Mutex
	rand *rand.Rand
}

func (s *unsteady) takeTime() {
	s.mu.Lock()
	d := time.Duration(s.rand.IntN(300)) * time.Microsecond
	s.mu.Unlock()
	time.Sleep(d)
}

func (s *unsteady) Commit(b *storage.Batch) error { s.takeTime(); return s.Spill.Commit(b) }

func (s *unsteady) Load(p storage.Part, want uint32, fn func(int, storage.Record)) error {
	s.takeTime()
	return s.Spill.Load(p, want, fn)
}

func (s *unsteady) Known(ms []storage.Mark, known []bool) error {
	s.takeTime()
	return s.Spill.Known(ms, known)
}

func (s *unsteady) Row(key string) ([]byte, bool, error) { s.takeTime(); return s.Spill.Row(key) }

// account is what callers know of their URLs.
type account struct {
	mu    sync.Mutex
	state map[string]string // "added", "unsure", "leased", "done"
	hosts map[string]bool   // leased
}

func (a *account) set(url, state string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.state[url] = state
}

// leased records that a URL was handed out that was neither leased nor done.
func (a *account) leased(t assert.TestingT, l frontier.Lease) {
	a.mu.Lock()
	defer a.mu.Unlock()
	assert.False(t, a.hosts[l.Host], "%s is leased", l.Host)
	a.hosts[l.Host] = true
	if l.Entry.URL != "" {
		assert.NotEqual(t, "done", a.state[l.Entry.URL], "%s", l.Entry.URL)
		a.state[l.Entry.URL] = "leased"
	}
}

func (a *account) ends(l frontier.Lease, done bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.hosts, l.Host)
	if l.Entry.URL != "" && done {
		a.state[l.Entry.URL] = "done"
	}
}

// Thousands of goroutines whose contexts end at random moments: what a call acknowledged holds,
// what it did not has not happened or is found, and no call waits forever.
func TestThousandsOfCallsThatAreCancelled(t *testing.T) {
	for _, store := range []bool{false, true} {
		t.Run(map[bool]string{false: "in memory", true: "on a store"}[store], func(t *testing.T) {
			r, n := harness.NewRand(t), trycount.Of(t)
			goroutines := 3000
			if harness.RaceEnabled {
				goroutines = 500
			}
			synctest.Test(t, func(t *testing.T) {
				o := frontier.Options{Delay: frontier.FixedDelay(time.Millisecond)}
				if store {
					o.Spill = &unsteady{Spill: spilltest.OpenMemory(t, spill.Options{}).Store, rand: rand.New(rand.NewPCG(r.Uint64(), 2))}
				}
				f := harness.Opened(t, o)
				a := &account{state: map[string]string{}, hosts: map[string]bool{}}
				var all sync.WaitGroup
				for id := range goroutines {
					c := &canceller{t: t, f: f, account: a, rand: rand.New(rand.NewPCG(r.Uint64(), 3)), id: id}
					all.Go(c.work)
				}
				if store {
					all.Go(func() {
						for range 5 {
							time.Sleep(time.Millisecond)
							assert.NoError(t, hook.Of(f).MoveNow(true))
						}
					})
				}
				all.Wait()
				n.Tried(goroutines)
				for l, err := range f.Leases(t.Context()) {
					require.NoError(t, err)
					a.leased(t, l)
					require.NoError(t, f.Done(l, frontier.Outcome{}))
					a.ends(l, true)
				}
				for u, state := range a.state {
					if state != "done" && state != "unsure" {
						n.Lost(1)
						t.Errorf("%s was %s and is lost", u, state)
					}
				}
			})
		})
	}
}

// canceller makes a few calls whose contexts end at random moments.
type canceller struct {
	*account
	t    *testing.T
	f    *frontier.Frontier
	rand *rand.Rand
	id   int
}

func (c *canceller) work() {
	for i := range 3 {
		time.Sleep(time.Duration(c.rand.IntN(5000)) * time.Microsecond)
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(c.rand.IntN(2000))*time.Microsecond)
		switch c.rand.IntN(8) {
		case 0, 1, 2:
			c.add(ctx, i)
		case 3, 4, 5:
			c.fetch(ctx, i, c.f.Next)
		case 6:
			host := fmt.Sprintf("h%d.example", c.rand.IntN(40))
			c.fetch(ctx, i, func(ctx context.Context) (frontier.Lease, error) { return c.f.Contact(ctx, host) })
		default:
			c.look(ctx)
		}
		cancel()
	}
}

func (c *canceller) url(i, k int) string {
	return fmt.Sprintf("http://h%d.example/%d/%d/%d", c.rand.IntN(40), c.id, i, k)
}

func (c *canceller) add(ctx context.Context, i int) {
	var entries []frontier.Entry
	for k := range 1 + c.rand.IntN(4) {
		u := c.url(i, k)
		entries = append(entries, frontier.Entry{URL: u})
		c.set(u, "unsure")
	}
	n, err := c.f.Add(ctx, entries...)
	if err != nil {
		assert.ErrorIs(c.t, err, context.DeadlineExceeded)
		assert.Zero(c.t, n)
		return
	}
	assert.Equal(c.t, len(entries), n)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range entries {
		if c.state[e.URL] == "unsure" { // otherwise it was leased already
			c.state[e.URL] = "added"
		}
	}
}

func (c *canceller) fetch(ctx context.Context, i int, next func(context.Context) (frontier.Lease, error)) {
	l, err := next(ctx)
	if err != nil {
		assert.True(c.t, errors.Is(err, context.DeadlineExceeded) || errors.Is(err, frontier.ErrExhausted), "%v", err)
		return
	}
	c.leased(c.t, l)
	time.Sleep(time.Duration(c.rand.IntN(200)) * time.Microsecond)
	var o frontier.Outcome
	if c.rand.IntN(3) == 0 {
		o = harness.Requeue
	} else if c.rand.IntN(3) == 0 {
		u := c.url(i, 9)
		o.Add = []frontier.Entry{{URL: u}}
		c.set(u, "added")
	}
	c.ends(l, o.Result != frontier.Requeue)
	assert.NoError(c.t, c.f.Done(l, o))
}

func (c *canceller) look(ctx context.Context) {
	var err error
	switch c.rand.IntN(4) {
	case 0:
		_, err = inspect.New(c.f).Host(ctx, "h1.example")
	case 1:
		_, err = inspect.New(c.f).Status(ctx, frontier.Entry{URL: "http://h1.example/1/1/1"})
	case 2:
		_, err = inspect.New(c.f).Upcoming(ctx, 5, true)
	default:
		for _, e := range inspect.New(c.f).URLs(ctx, scope.Host("h2.example"), "") {
			err = e
		}
	}
	assert.True(c.t, err == nil || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, frontier.ErrUnknownHost), "%v", err)
}
