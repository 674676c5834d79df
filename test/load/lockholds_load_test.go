// This file measures how long the lock is held: by deletions, pauses and listings of
// many hosts while workers crawl, by large commits, many crawls, and one large group.

package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/internal/hook"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/test/harness"
	"github.com/seed-7440039f/frontier/transfer"
)

// A domain of many hosts is listed, paused, let go and deleted while 16 workers
// crawl. Each URL is handed out or deleted in the end. With the tag frontierholds the
// test logs how long the lock was held meanwhile, in CPU time:
//
//	go test -tags frontierholds -run TestHoldsUnderLoad -v ./test/load
//	go test -tags frontierholds -run TestHoldsUnderLoad -v -timeout 1h ./test/load -frontier.long
func TestHoldsUnderLoad(t *testing.T) {
	hosts, urls, others := 2_000, 20_000, 10_000
	if holdsWatched {
		hosts, urls, others = 100_000, 1_000_000, 300_000
	}
	if *harness.Long {
		hosts, urls, others = 1_000_000, 3_000_000, 1_000_000
	}
	for _, store := range []string{"in memory", "on a store"} {
		t.Run(store, func(t *testing.T) {
			o := frontier.Options{Delay: frontier.FixedDelay(0), KeepOpen: true, Count: true, MemoryBudget: 3 << 30}
			if store == "on a store" {
				db, err := spill.Open(t.TempDir(), spill.Options{})
				require.NoError(t, err)
				defer func() { require.NoError(t, db.Close()) }()
				o.Spill, o.MemoryBudget = db, 0
			}
			holds := watchHolds()
			f, err := frontier.Open(t.Context(), o)
			require.NoError(t, err)
			defer harness.Ended(t, f)
			l := holdsLoad{t: t, f: f, holds: holds, urls: int64(urls), others: int64(others)}
			l.fill(hosts, store == "on a store")
			l.crawl()
		})
	}
}

type holdsLoad struct {
	t            *testing.T
	f            *frontier.Frontier
	holds        *holds
	urls, others int64
	store        bool
	gone, kept   atomic.Int64
	phase        atomic.Pointer[harness.Waits] // of Next of other hosts, now
}

func (l *holdsLoad) tell(what string) { l.t.Logf("%s: %s", what, l.holds.take()) }

func (l *holdsLoad) fill(hosts int, store bool) {
	var batch []frontier.Entry
	add := func(n int64, domain string) {
		for i := range n {
			batch = append(batch, frontier.Entry{URL: fmt.Sprintf("http://h%d.%s.example/%d", int(i)%hosts, domain, i)})
			if len(batch) == 1000 || i == n-1 {
				_, err := l.f.Add(l.t.Context(), batch...)
				require.NoError(l.t, err)
				batch = batch[:0]
			}
		}
	}
	add(l.urls, "gone")
	add(l.others, "kept")
	l.tell("Add, 1,000 at a time")
	if store {
		require.NoError(l.t, hook.Of(l.f).MoveNow(false))
		l.tell("moving to disk")
	}
}

func (l *holdsLoad) crawl() {
	ctx, cancel := context.WithCancel(l.t.Context())
	var before harness.Waits
	l.phase.Store(&before)
	var workers sync.WaitGroup
	defer workers.Wait()
	defer cancel()
	for range 16 {
		workers.Go(func() {
			for l.step(ctx) {
			}
		})
	}
	for l.gone.Load() < l.urls/100 {
		time.Sleep(time.Millisecond)
	}
	l.tell("Next and Done")
	l.control(ctx)
	for l.kept.Load() < l.others {
		time.Sleep(time.Millisecond)
	}
	cancel()
	workers.Wait()
	l.tell("the rest")
	s := l.f.Stats()
	require.Zero(l.t, s.Waiting+s.Leased)
	require.EqualValues(l.t, l.urls+l.others, s.Deleted+l.gone.Load()+l.kept.Load(), "each URL was handed out or deleted")
}

// step takes a URL and reports it.
func (l *holdsLoad) step(ctx context.Context) bool {
	start, phase := time.Now(), l.phase.Load()
	x, err := l.f.Next(ctx)
	if errors.Is(err, context.Canceled) || !assert.NoError(l.t, err) {
		return false
	}
	n := &l.gone
	if strings.HasSuffix(x.Host, ".kept.example") {
		phase.Since(start)
		n = &l.kept
	}
	assert.NoError(l.t, l.f.Done(x, frontier.Outcome{}))
	n.Add(1)
	return true
}

// control does with a domain what can be done.
func (l *holdsLoad) control(ctx context.Context) {
	t, f, s := l.t, l.f, scope.Domain("gone.example")
	list := func(ctx context.Context) error {
		n := 0
		for u, err := range inspect.New(f).URLs(ctx, s, "") {
			if err != nil {
				return err
			}
			if n++; n == 20_000 || u.Entry.URL == "" {
				break
			}
		}
		n = 0
		for range inspect.New(f).Hosts(s, "") {
			if n++; n == 20_000 {
				break
			}
		}
		return nil
	}
	for _, x := range []struct {
		what string
		do   func() error
	}{
		{"listing", func() error { return list(ctx) }},
		{"pausing", func() error { return f.Pause(s) }},
		{"listing while paused", func() error { return list(ctx) }},
		{"the largest", func() error {
			inspect.New(f).Largest(20)
			_, err := inspect.New(f).Upcoming(t.Context(), 20, false)
			return err
		}},
		{"resuming", func() error { return f.Resume(s) }},
		{"deleting", func() error { _, err := f.Delete(ctx, s); return err }},
	} {
		var w harness.Waits
		l.phase.Store(&w)
		start := time.Now()
		require.NoError(t, x.do())
		took := time.Since(start)
		if x.what != "deleting" {
			for from := l.gone.Load() + l.kept.Load(); took < time.Second && l.gone.Load()+l.kept.Load() < from+l.others/20; took = time.Since(start) {
				time.Sleep(time.Millisecond) // what comes of it
			}
		}
		var rest harness.Waits
		l.phase.Store(&rest)
		l.tell(fmt.Sprintf("%s, in %v", x.what, took))
		t.Logf("Next of others meanwhile: %v", &w)
	}
}

// All URLs are of one host, some of them scheduled, and whatever looks for them is
// called. Each is there in the end; see TestHoldsUnderLoad for how long the lock was
// held.
func TestHoldsOfOneHost(t *testing.T) {
	n := 3_000
	if holdsWatched {
		n = 300_000
	}
	for _, store := range []string{"in memory", "on a store"} {
		t.Run(store, func(t *testing.T) {
			o := harness.Quantum(1, frontier.Options{Delay: frontier.FixedDelay(0), KeepOpen: true, MemoryBudget: 1 << 30})
			if store == "on a store" {
				db, err := spill.Open(t.TempDir(), spill.Options{})
				require.NoError(t, err)
				defer func() { require.NoError(t, db.Close()) }()
				o.Spill = db
			}
			holds := watchHolds()
			f, err := frontier.Open(t.Context(), o)
			require.NoError(t, err)
			defer harness.Ended(t, f)
			l := holdsLoad{t: t, f: f, holds: holds, store: o.Spill != nil}
			l.fillOne(n)
			l.searchOne(n)
		})
	}
}

func (l *holdsLoad) fillOne(n int) {
	later := time.Now().Add(24 * time.Hour)
	for i := 0; i < n; i += 1000 {
		var batch []frontier.Entry
		for j := i; j < i+1000; j++ {
			e := frontier.Entry{URL: fmt.Sprintf("http://one.example/%d", j)}
			if j%3 == 0 {
				e.NotBefore = later
			}
			batch = append(batch, e)
		}
		_, err := l.f.Add(l.t.Context(), batch...)
		require.NoError(l.t, err)
	}
	_, err := l.f.Add(l.t.Context(), frontier.Entry{URL: "http://two.example/"})
	require.NoError(l.t, err)
	l.tell("Add, 1,000 at a time")
}

func (l *holdsLoad) searchOne(n int) {
	t, f, ctx := l.t, l.f, l.t.Context()
	force := func(i int) func() error {
		return func() error {
			_, err := f.Add(ctx, frontier.Entry{URL: fmt.Sprintf("http://one.example/%d", i), Force: true})
			return err
		}
	}
	list := func() error {
		for _, err := range inspect.New(f).URLs(ctx, scope.All(), "") {
			if err != nil {
				return err
			}
		}
		return nil
	}
	visits := func() error {
		for range 2_000 {
			x, err := f.Next(ctx)
			if err != nil {
				return err
			}
			if err := f.Done(x, frontier.Outcome{Result: frontier.Requeue}); err != nil {
				return err
			}
		}
		return nil
	}
	for _, x := range []struct {
		what string
		do   func() error
	}{
		{"forcing one that waits", force(n - 1)},
		{"forcing one that is scheduled", force(n - 3)},
		{"listing", list},
		{"Next and Done", visits},
		{"moving to disk", func() error { return hook.Of(f).MoveNow(true) }},
		{"Next and Done, what is safe on disk leaves memory", visits},
		{"forcing one that waits on disk", force(n - 2)},
		{"listing from disk", list},
		{"Status", func() error {
			_, err := inspect.New(f).Status(ctx, frontier.Entry{URL: fmt.Sprintf("http://one.example/%d", n-5)})
			return err
		}},
		{"pausing and resuming", func() error {
			return errors.Join(f.Pause(scope.All()), visitsNothing(ctx, f), f.Resume(scope.All()))
		}},
		{"exporting", func() error { return transfer.Export(ctx, f, io.Discard, transfer.ExportOptions{}) }},
		{"deleting", func() error { _, err := f.Delete(ctx, scope.Host("one.example")); return err }},
	} {
		if strings.Contains(x.what, "disk") && !l.store {
			continue
		}
		start := time.Now()
		require.NoError(t, x.do())
		l.tell(fmt.Sprintf("%s, in %v", x.what, time.Since(start)))
	}
	require.EqualValues(t, 1, f.Stats().Waiting)
	require.True(t, l.store || f.Stats().Scheduled == 0, "on a store they are looked for later")
}

// visitsNothing lets the frontier find out that nothing may be handed out.
func visitsNothing(ctx context.Context, f *frontier.Frontier) error {
	if _, _, err := f.TryNext(); !errors.Is(err, frontier.ErrNotDue) {
		return fmt.Errorf("a paused frontier: %w", err)
	}
	return ctx.Err()
}

// Many callers of Add, and many workers whose pages have many new links, share commits;
// see TestHoldsUnderLoad for how long the lock was held.
func TestHoldsOfLargeCommits(t *testing.T) {
	callers, adds, workers, pages := 4, 2, 10, 40
	if holdsWatched {
		callers, adds, workers, pages = 64, 10, 500, 5_000
	}
	db, err := spill.Open(t.TempDir(), spill.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	holds := watchHolds()
	f, err := frontier.Open(t.Context(), frontier.Options{Spill: db, Delay: frontier.FixedDelay(0), KeepOpen: true, MemoryBudget: 1 << 30})
	require.NoError(t, err)
	defer harness.Ended(t, f)
	l := holdsLoad{t: t, f: f, holds: holds}
	links := func(name string, n int) []frontier.Entry {
		entries := make([]frontier.Entry, n)
		for i := range entries {
			entries[i] = frontier.Entry{URL: fmt.Sprintf("http://h%d.example/%s/%d", i, name, i)}
		}
		return entries
	}
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			for j := range adds {
				n, err := f.Add(t.Context(), links(fmt.Sprintf("a%d-%d", i, j), 1000)...)
				assert.NoError(t, err)
				assert.Equal(t, 1000, n)
			}
		})
	}
	all.Wait()
	l.tell(fmt.Sprintf("%d callers of Add with 1,000 URLs", callers))
	var done atomic.Int64
	for range workers {
		all.Go(func() {
			for n := done.Add(1); n <= int64(pages); n = done.Add(1) {
				x, err := f.Next(t.Context())
				if assert.NoError(t, err) {
					assert.NoError(t, f.Done(x, frontier.Outcome{Add: links(fmt.Sprintf("d%d", n), 100)}))
				}
			}
		})
	}
	all.Wait()
	l.tell(fmt.Sprintf("%d workers, Done with 100 new links", workers))
	require.EqualValues(t, callers*adds*1000+pages*99, f.Stats().Waiting)
	require.NoError(t, hook.Of(f).MoveNow(true))
	l.tell("moving to disk")
}

// One host has URLs in many crawls; see TestHoldsUnderLoad for how long the lock was held.
func TestHoldsOfManyCrawls(t *testing.T) {
	crawls := 50
	if holdsWatched {
		crawls = 10_000
	}
	holds := watchHolds()
	f, err := frontier.Open(t.Context(), frontier.Options{Delay: frontier.FixedDelay(0), KeepOpen: true, MemoryBudget: 1 << 30})
	require.NoError(t, err)
	defer harness.Ended(t, f)
	l := holdsLoad{t: t, f: f, holds: holds}
	for i := range crawls {
		_, err := f.Add(t.Context(), frontier.Entry{URL: "http://one.example/", Crawl: uint32(i)})
		require.NoError(t, err)
	}
	l.tell("Add")
	start := time.Now()
	for range min(crawls, 100) {
		x, err := f.Next(t.Context())
		require.NoError(t, err)
		require.NoError(t, f.Done(x, frontier.Outcome{}))
	}
	l.tell(fmt.Sprintf("%d of Next and Done in %v", min(crawls, 100), time.Since(start)))
	require.EqualValues(t, crawls-min(crawls, 100), f.Stats().Waiting)
}

// All hosts are in one group, and all are bound when the first of them is looked
// for; see TestHoldsUnderLoad for how long the lock was held.
func TestHoldsOfOneGroup(t *testing.T) {
	n := 500
	if holdsWatched {
		n = 100_000
	}
	holds := watchHolds()
	f, err := frontier.Open(t.Context(), frontier.Options{
		Delay: frontier.FixedDelay(0), GroupDelay: frontier.FixedDelay(time.Millisecond), MemoryBudget: 1 << 30,
	})
	require.NoError(t, err)
	defer harness.Ended(t, f)
	l := holdsLoad{t: t, f: f, holds: holds}
	name := func(i int) string { return fmt.Sprintf("h%d.example", i) }
	for i := 0; i < n; i += 500 {
		var batch []frontier.Entry
		for j := range 500 {
			batch = append(batch, frontier.Entry{URL: "http://" + name(i+j) + "/"})
		}
		_, err := f.Add(t.Context(), batch...)
		require.NoError(t, err)
	}
	l.tell("Add")
	for i := range n {
		require.NoError(t, f.Assign(name(i), "g"))
	}
	l.tell("Assign")
	x, err := f.Next(t.Context())
	require.NoError(t, err)
	l.tell("the first Next")
	require.Equal(t, "g", x.Group)
	_, _, err = f.TryNext()
	require.ErrorIs(t, err, frontier.ErrNotDue)
	l.tell("binding all others, in vain")
	require.NoError(t, f.Done(x, frontier.Outcome{}))
	for range n/10 - 1 {
		x, err := f.Next(t.Context())
		require.NoError(t, err)
		require.NoError(t, f.Done(x, frontier.Outcome{}))
	}
	l.tell("Next and Done")
	require.NoError(t, f.SetGroup("g", frontier.GroupSettings{Concurrency: 1000}))
	for range n / 10 {
		x, err := f.Next(t.Context())
		require.NoError(t, err)
		require.NoError(t, f.Join(&x, "other"+x.Host))
		require.NoError(t, f.Done(x, frontier.Outcome{}))
	}
	l.tell("a thousand slots, Join")
	require.EqualValues(t, n-n/5, f.Stats().Waiting)
}
