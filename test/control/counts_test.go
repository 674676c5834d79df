// This file tests the numbers of URLs of each host within a crawl.

package control

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/internal/hook"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/storage"
	"github.com/seed-7440039f/frontier/test/harness"
	"github.com/stretchr/testify/require"
)

// queue returns the numbers of a host within a crawl.
func queue(t *testing.T, w *harness.World, host string, crawl uint32) inspect.Counts {
	t.Helper()
	x, ok, err := inspect.New(w.F).Counts(host, crawl)
	require.NoError(t, err)
	require.Equal(t, ok, x != inspect.Counts{})
	return x
}

// Queues are counted in all states, in memory and on disk, through reopenings, a Force, and a Delete,
// also if their hosts are not in memory.
func TestQueuesAreCounted(t *testing.T) {
	o := keepOptions
	o.Count = true
	w := harness.NewStoredWorld(t, o, spill.Options{})
	ctx := context.Background()
	var es []frontier.Entry
	for i := range 3000 {
		e := frontier.Entry{URL: fmt.Sprintf("http://h%d.example/%d", i%10, i), Crawl: uint32(i % 2)}
		switch i / 1000 {
		case 0:
			e.Finished = true
		case 1:
			e.NotBefore = w.Clock.Now().Add(time.Duration(i) * time.Minute)
		}
		es = append(es, e)
	}
	_, err := w.F.Add(ctx, es...)
	require.NoError(t, err)
	all := inspect.Counts{Waiting: 100, Scheduled: 100, Finished: 100}
	for _, settle := range []func(){func() {}, func() { w.Moves(true) }, w.Reopen} {
		settle()
		var hosts []string
		for host, x := range inspect.New(w.F).Queues(1, "") {
			hosts = append(hosts, host)
			require.Equal(t, all, x)
		}
		require.Equal(t, []string{"h1.example", "h3.example", "h5.example", "h7.example", "h9.example"}, hosts)
		require.Equal(t, all, queue(t, w, "h2.example", 0))
		require.Zero(t, queue(t, w, "h2.example", 1))
		s, ok := inspect.New(w.F).Crawl(1)
		require.True(t, ok)
		require.Equal(t, []int64{500, 500, 500}, []int64{s.Waiting, s.Scheduled, s.Finished})
	}
	for host := range inspect.New(w.F).Queues(1, "h5.example") {
		require.Equal(t, "h7.example", host)
		break
	}

	for _, e := range []frontier.Entry{{URL: "http://h2.example/2", Force: true}, {URL: "http://h2.example/1002", Force: true, Finished: true}} {
		_, err = w.F.Add(ctx, e)
		require.NoError(t, err)
	}
	require.Equal(t, inspect.Counts{Waiting: 101, Scheduled: 99, Finished: 100}, queue(t, w, "h2.example", 0))
	_, err = w.F.Delete(ctx, scope.Host("h3.example"))
	require.NoError(t, err)
	require.Zero(t, queue(t, w, "h3.example", 1))
	_, err = w.F.Delete(ctx, scope.Crawl(0))
	require.NoError(t, err)
	for host := range inspect.New(w.F).Queues(0, "") {
		require.Fail(t, "a host is left", host)
	}
	w.Reopen()
	hook.Of(w.F).Sweep()
	require.Zero(t, queue(t, w, "h3.example", 1))
	require.Zero(t, queue(t, w, "h2.example", 0))
	require.Equal(t, all, queue(t, w, "h5.example", 1))
	w.Add("http://h2.example/again")
	require.Equal(t, inspect.Counts{Waiting: 1}, queue(t, w, "h2.example", 0))
}

func TestQueuesAreNotCountedUnasked(t *testing.T) {
	w := harness.NewWorld(t, keepOptions)
	w.Add("http://a.example/")
	_, _, err := inspect.New(w.F).Counts("a.example", 0)
	require.ErrorContains(t, err, "Options.Count is not set")
	for range inspect.New(w.F).Queues(0, "") {
		require.Fail(t, "a queue")
	}
}

// A URL counts as leased until the end of its lease is on the disk, and as what it becomes once its
// deadline has passed: at no moment is it nowhere.
func TestAURLCountsWhileItsEndIsOnItsWay(t *testing.T) {
	w, h := harness.HookedWorld(t, frontier.Options{Delay: frontier.FixedDelay(0), LeaseTime: time.Minute, Count: true, Keep: true, Retry: frontier.Retries(9, 0)})
	w.Add("http://a.example/1")
	leased, waits, finished := inspect.Counts{Leased: 1}, inspect.Counts{Waiting: 1}, inspect.Counts{Finished: 1}
	counted := func(want inspect.Counts, pending int64) {
		t.Helper()
		x, _, err := inspect.New(w.F).Counts("a.example", 0)
		require.NoError(t, err)
		require.Equal(t, want, x)
		c, ok := inspect.New(w.F).Crawl(0)
		require.True(t, ok)
		require.Equal(t, want, inspect.Counts{Waiting: c.Waiting, Leased: c.Leased, Finished: c.Finished})
		require.Equal(t, pending, w.F.Stats().Pending)
	}
	for _, x := range []struct {
		fails         bool
		end           func(frontier.Lease)
		pending, want inspect.Counts
	}{
		{false, func(frontier.Lease) { w.Clock.Advance(time.Minute); w.F.Stats() }, waits, waits},
		{true, func(l frontier.Lease) { _ = w.F.Done(l, frontier.Outcome{}) }, leased, waits},
		{false, func(l frontier.Lease) { _ = w.F.Done(l, frontier.Outcome{}) }, leased, finished},
	} {
		l := w.Next()
		counted(leased, 0)
		reached, gate := make(chan struct{}), make(chan struct{})
		open := sync.OnceFunc(func() { close(gate) })
		t.Cleanup(open)
		once := sync.OnceFunc(func() { close(reached); <-gate })
		h.Set(func(*storage.Batch) error {
			once()
			if x.fails {
				return harness.ErrDisk
			}
			return nil
		}, nil)
		ended := make(chan struct{})
		go func() { defer close(ended); x.end(l) }()
		<-reached
		counted(x.pending, 1)
		open()
		<-ended
		require.Eventually(t, func() bool { return w.F.Stats().Pending == 0 }, 10*time.Second, time.Millisecond)
		h.Set(nil, nil)
		counted(x.want, 0)
	}
}

// finished adds n hosts with a finished URL each.
func finished(t *testing.T, w *harness.World, from, n int) {
	t.Helper()
	w.AddEach(func(yield func(frontier.Entry) bool) {
		for i := from; i < from+n; i++ {
			yield(frontier.Entry{URL: fmt.Sprintf("http://h%05d.example/", i), Finished: true})
		}
	})
	w.Moves(true)
}

// The numbers of hosts that are done take no memory: with Count it is what it is without.
func TestWhatIsDoneTakesNoMemory(t *testing.T) {
	var bytes [2]int64
	for try := range 8 { // the least of four: tables grow a little with chance
		i := try % 2
		o := keepOptions
		o.Count = i == 1
		w := harness.NewStoredWorld(t, o, spill.Options{})
		finished(t, w, 0, 10_000)
		finished(t, w, 10_000, 10_000)
		s := w.F.Stats()
		require.EqualValues(t, 20_000, s.Finished)
		require.Zero(t, s.Hosts)
		if bytes[i] == 0 || s.MemoryBytes < bytes[i] {
			bytes[i] = s.MemoryBytes
		}
		if o.Count {
			c, _ := inspect.New(w.F).Crawl(0)
			require.EqualValues(t, []int64{20_000, 20_000, 0}, []int64{c.Finished, c.Hosts, c.ActiveHosts})
		}
	}
	require.InDelta(t, bytes[0], bytes[1], 5_000, "bytes, with 20,000 hosts")
}

// rowsRead counts the rows that a frontier reads in ranges, and one by one.
type rowsRead struct {
	storage.Spill
	ranges, single atomic.Int64
}

func (r *rowsRead) Rows(prefix, from string, fn func(string, []byte) bool) error {
	return r.Spill.Rows(prefix, from, func(key string, value []byte) bool {
		r.ranges.Add(1)
		return fn(key, value)
	})
}

func (r *rowsRead) Row(key string) ([]byte, bool, error) {
	r.single.Add(1)
	return r.Spill.Row(key)
}

// A page of queues, the numbers of one host, and deleting its URLs, read what they return: not what there is.
func TestAPageOfQueuesReadsNoMore(t *testing.T) {
	o := keepOptions
	o.Count = true
	w := harness.NewStoredWorld(t, o, spill.Options{})
	require.NoError(t, w.F.Close())
	reads := &rowsRead{Spill: w.Machine.Store}
	w.Options.Spill = reads
	w.Open()
	finished(t, w, 0, 10_000)
	for _, after := range []string{"", "h05000.example", "h09950.example"} {
		reads.ranges.Store(0)
		n := 0
		for range inspect.New(w.F).Queues(0, after) {
			if n++; n == 100 {
				break
			}
		}
		require.LessOrEqual(t, reads.ranges.Load(), int64(3*n+16), "after %q", after)
	}
	reads.ranges.Store(0)
	reads.single.Store(0)
	require.Equal(t, inspect.Counts{Finished: 1}, queue(t, w, "h00007.example", 0))
	require.EqualValues(t, 1, reads.single.Load())
	_, err := w.F.DeleteWith(context.Background(), frontier.DeleteOptions{Scope: scope.Host("h00007.example"), Forget: true})
	require.NoError(t, err)
	require.Zero(t, queue(t, w, "h00007.example", 0))
	require.LessOrEqual(t, reads.ranges.Load(), int64(2))
	c, _ := inspect.New(w.F).Crawl(0)
	require.EqualValues(t, 9_999, c.Hosts)
}

// What a frontier without Count changes, the next one with it has counted; opening again counts nothing.
func TestQueuesAreCountedAnew(t *testing.T) {
	o := keepOptions
	o.Count = true
	w := harness.NewStoredWorld(t, o, spill.Options{})
	finished(t, w, 0, 1_000)
	reopen := func(count bool) int64 {
		require.NoError(t, w.F.Close())
		reads := &rowsRead{Spill: w.Machine.Store}
		w.Options.Count, w.Options.Spill = count, reads
		w.Open()
		return reads.ranges.Load()
	}
	require.Zero(t, reopen(true))
	reopen(false)
	finished(t, w, 1_000, 1_000)
	_, err := w.F.Delete(context.Background(), scope.Host("h00003.example"))
	require.NoError(t, err)
	w.Add("http://h00004.example/waits")
	require.Positive(t, reopen(true))
	require.Zero(t, queue(t, w, "h00003.example", 0))
	require.Equal(t, inspect.Counts{Waiting: 1, Finished: 1}, queue(t, w, "h00004.example", 0))
	n := 0
	for range inspect.New(w.F).Queues(0, "") {
		n++
	}
	require.Equal(t, 1_999, n)
	require.Zero(t, reopen(true))
	require.Equal(t, inspect.Counts{Waiting: 1, Finished: 1}, queue(t, w, "h00004.example", 0))
}
