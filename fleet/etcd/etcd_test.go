package etcd

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier/fleet/enginetest"
)

func TestEngine(t *testing.T) { enginetest.Test(t, enginetest.StartOf(Start)) }

// Logs of many partitions grow in common writes.
func TestAppendsAreWrittenTogether(t *testing.T) {
	e, err := Start(t.Context(), Options{Fleet: "test", Node: "a", Peers: map[string]string{"a": enginetest.FreePort(t)}, Dir: t.TempDir()})
	require.NoError(t, err)
	defer e.Close()
	const partitions, records = 12, 30
	first, err := e.Put(t.Context(), "first", nil, 0)
	require.NoError(t, err)
	var wg sync.WaitGroup
	for p := range partitions {
		wg.Go(func() {
			for last := range uint64(records) {
				if _, err := e.Append(t.Context(), p, last, []byte("r")); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	last, err := e.Put(t.Context(), "last", nil, 0)
	require.NoError(t, err)
	t.Logf("%d records in %d writes", partitions*records, last-first-1)
	require.Less(t, last-first-1, uint64(partitions*records))
}

// What was on its way to a leader that ends is lost. Its writers try again as soon as there is another one.
func TestALeaderEnds(t *testing.T) {
	x := enginetest.StartOf(Start).Three(t)
	all := [3]*Engine{}
	for i, e := range x.All {
		all[i] = e.(*Engine)
	}
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
	require.Less(t, slices.Max(took), 9500*time.Millisecond) // 4 s on a quiet machine, and 10 s without another attempt
}
