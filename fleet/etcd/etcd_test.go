package etcd

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier/fleet"
)

// freePort returns an unused address of loopback, below the ports that systems give to outgoing
// connections: servers get theirs again after a while.
func freePort(t *testing.T) string {
	for range 1000 {
		if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 12000+rand.IntN(20000))); err == nil {
			defer l.Close()
			return l.Addr().String()
		}
	}
	t.Fatal("no port is free")
	return ""
}

// three starts three servers on loopback.
func three(t *testing.T) (all *[3]*Engine, options [3]Options) {
	all = &[3]*Engine{}
	peers := map[string]string{}
	for i := range all {
		peers[fmt.Sprint("n", i)] = freePort(t)
	}
	dir := t.TempDir()
	var wg sync.WaitGroup
	for i := range all {
		options[i] = Options{Fleet: "test", Node: fmt.Sprint("n", i), Peers: peers, Dir: filepath.Join(dir, fmt.Sprint(i))}
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			e, err := Start(ctx, options[i])
			if err != nil {
				t.Error(err)
				return
			}
			all[i] = e
		})
	}
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
	t.Cleanup(func() {
		for _, e := range all {
			if e != nil {
				require.NoError(t, e.Close())
			}
		}
	})
	return all, options
}

// Writes are compared, in order, and survive a server.
func TestContract(t *testing.T) {
	all, _ := three(t)
	ctx := t.Context()
	a, b, c := all[0], all[1], all[2]

	e, err := b.Get(ctx, "k")
	require.NoError(t, err)
	require.Zero(t, e.Revision)
	one, err := a.Put(ctx, "k", []byte("1"), 0)
	require.NoError(t, err)
	_, err = b.Put(ctx, "k", []byte("2"), 0)
	require.ErrorIs(t, err, fleet.ErrConflict)
	e, err = c.Get(ctx, "k")
	require.NoError(t, err)
	require.Equal(t, fleet.Entry{Key: "k", Value: []byte("1"), Revision: one}, e)

	seen := make(chan fleet.Entry, 10)
	watching, stop := context.WithCancel(ctx)
	ended := make(chan error)
	go func() {
		ended <- c.Watch(watching, func(all []fleet.Entry) {
			for _, e := range all {
				seen <- e
			}
		})
	}()
	require.Equal(t, one, (<-seen).Revision)
	two, err := b.Put(ctx, "k", []byte("2"), one)
	require.NoError(t, err)
	require.Greater(t, two, one)
	require.Equal(t, fleet.Entry{Key: "k", Value: []byte("2"), Revision: two}, <-seen)
	stop()
	require.ErrorIs(t, <-ended, context.Canceled)

	var last uint64
	for i := range 40 {
		n, err := all[i%3].Append(ctx, 7, last, fmt.Appendf(nil, "r%d", i))
		require.NoError(t, err)
		require.Greater(t, n, last)
		_, err = a.Append(ctx, 7, last, []byte("late"))
		require.ErrorIs(t, err, fleet.ErrConflict)
		last = n
	}
	n, data, err := b.Last(ctx, 7)
	require.NoError(t, err)
	require.Equal(t, last, n)
	require.Equal(t, "r39", string(data))
	read := func(after, through uint64) (got []string) {
		require.NoError(t, c.Read(ctx, 7, after, through, func(_ uint64, b []byte) error { got = append(got, string(b)); return nil }))
		return got
	}
	require.Len(t, read(0, last), 40)
	require.Equal(t, []string{"r38", "r39"}, read(last-2, last))
	require.NoError(t, a.Purge(ctx, 7, last))
	require.Empty(t, read(0, last))
	n, data, err = b.Last(ctx, 7)
	require.NoError(t, err)
	require.Equal(t, last, n)
	require.Nil(t, data)
	_, err = a.Append(ctx, 7, 1, []byte("late")) // of an owner before what was purged
	require.ErrorIs(t, err, fleet.ErrConflict)

	require.NoError(t, a.Close())
	all[0] = nil
	for data = nil; string(data) != "on"; _, data, _ = c.Last(ctx, 7) { // an attempt may have been successful without an answer
		_, _ = c.Append(ctx, 7, last, []byte("on"))
	}
}

// Logs of many partitions grow in common writes: each append counts by itself, whatever becomes of the others.
func TestAppendsOfManyPartitions(t *testing.T) {
	all, _ := three(t)
	const partitions, records = 12, 30
	first, err := all[0].Put(t.Context(), "first", nil, 0)
	require.NoError(t, err)
	var wg sync.WaitGroup
	var won [partitions][records + 1]atomic.Int32
	for p := range partitions {
		for rival := range 2 { // each record has two writers, and one of them must win
			wg.Go(func() {
				for last := range uint64(records) {
					n, err := all[p%2].Append(t.Context(), p, last, fmt.Appendf(nil, "%d of %d", last+1, rival))
					if err == nil {
						won[p][n].Add(1)
					} else if !errors.Is(err, fleet.ErrConflict) {
						t.Error(err)
						return
					}
					for n < last+1 && t.Context().Err() == nil { // the other has written it, or will have
						n, _, _ = all[2].Last(t.Context(), p)
					}
				}
			})
		}
	}
	wg.Wait()
	for p := range partitions {
		n := 0
		require.NoError(t, all[2].Read(t.Context(), p, 0, records, func(number uint64, _ []byte) error {
			n++
			require.EqualValues(t, n, number)
			require.EqualValues(t, 1, won[p][number].Load(), "record %d of %d", number, p)
			return nil
		}))
		require.Equal(t, records, n)
	}
	last, err := all[0].Put(t.Context(), "last", nil, 0)
	require.NoError(t, err)
	t.Logf("%d records in %d writes", partitions*records, last-first-1)
	require.Less(t, last-first-1, uint64(partitions*records))
}

func TestPortsAreChecked(t *testing.T) {
	for _, at := range []string{"127.0.0.1:65536", "127.0.0.1:0", "127.0.0.1:x", "127.0.0.1", ":1"} {
		_, err := Start(t.Context(), Options{Fleet: "test", Node: "a", Peers: map[string]string{"a": at}, Dir: t.TempDir()})
		require.ErrorContains(t, err, "want HOST:PORT", at)
	}
}

// What was on its way to a leader that ends is lost. Its writers try again as soon as there is another one.
func TestALeaderEnds(t *testing.T) {
	all, _ := three(t)
	leads := slices.IndexFunc(all[:], func(e *Engine) bool { return e.server.Server.Leader() == e.server.Server.MemberID() })
	require.GreaterOrEqual(t, leads, 0)
	follower := all[(leads+1)%3]
	var ended atomic.Bool
	took := make([]time.Duration, 32)
	var wg sync.WaitGroup
	for i := range took {
		wg.Go(func() { // until it has written without the leader
			for key := fmt.Sprint("k", i); ; key += "+" {
				began, after := time.Now(), ended.Load()
				for {
					if _, err := follower.Put(t.Context(), key, []byte("v"), 0); err == nil || t.Context().Err() != nil {
						break
					}
					if e, _ := follower.Get(t.Context(), key); e.Revision > 0 { // an attempt before was successful
						break
					}
				}
				if took[i] = max(took[i], time.Since(began)); after || t.Context().Err() != nil {
					return
				}
			}
		})
	}
	time.Sleep(200 * time.Millisecond)
	all[leads].server.Server.HardStop()
	ended.Store(true)
	wg.Wait()
	t.Logf("the longest write took %v", slices.Max(took))
	require.Less(t, slices.Max(took), 8*time.Second) // 4 s, and 10 s without another attempt
}
