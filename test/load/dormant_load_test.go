// This file brings hosts back while others leave, as fast as it can.

package load

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/internal/hook"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/test/harness"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Many workers, and hosts that are mostly idle: whatever call brings a host back, its Crawl-delay
// holds.
func TestDormantHostsUnderLoad(t *testing.T) {
	const hosts, workers = 30, 8
	leases := 2_000
	if *harness.Long {
		leases = 50_000
	}
	w := harness.NewStoredWorld(t, frontier.Options{KeepOpen: true, Delay: frontier.FixedDelay(0), LeaseTime: 30 * 24 * time.Hour}, spill.Options{})
	var (
		mu    sync.Mutex
		freed = map[string]time.Time{} // hosts that learned, and when they may be contacted again
		taken int
		urls  int
	)
	contacted := func(l frontier.Lease) { // and Done
		mu.Lock()
		assert.False(t, l.LeasedAt.Before(freed[l.Host]), "%s is contacted %v early", l.Host, freed[l.Host].Sub(l.LeasedAt))
		o := frontier.Outcome{}
		if _, ok := freed[l.Host]; !ok {
			o.CrawlDelay = harness.Slow
		}
		taken++
		urls++
		if taken%3 > 0 || l.ContactOnly() {
			o.Add = []frontier.Entry{{URL: fmt.Sprintf("http://%s/%d", harness.DormantHost(urls*7%hosts), urls), Force: urls%5 == 0}}
		}
		freed[l.Host] = w.Clock.Now().Add(harness.Slow)
		mu.Unlock()
		assert.NoError(t, w.F.Done(l, o))
	}
	enough := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return taken >= leases
	}
	var wg sync.WaitGroup
	for i := range workers {
		wg.Go(func() {
			for n := 0; !enough(); n++ {
				switch {
				case i == 0 && n%4 == 0:
					mu.Lock()
					urls++
					url := fmt.Sprintf("http://%s/%d", harness.DormantHost(n%hosts), urls)
					mu.Unlock()
					_, err := w.F.Add(context.Background(), frontier.Entry{URL: url}, frontier.Entry{URL: "http://" + harness.DormantHost(n*11%hosts) + "/again", Force: true})
					assert.NoError(t, err)
				case i == 1 && n%4 == 0:
					ctx, cancel := context.WithCancel(context.Background())
					go func() { w.Clock.Advance(harness.Slow); runtime.Gosched(); w.F.Stats(); cancel() }()
					if l, err := w.F.Contact(ctx, harness.DormantHost(n*5%hosts)); err == nil {
						contacted(l)
					}
					cancel()
				case i == 2 && n%64 == 0:
					assert.NoError(t, hook.Of(w.F).MoveNow(n%128 == 0))
				}
				l, _, err := w.F.TryNext()
				if err == nil {
					contacted(l)
					continue
				}
				assert.ErrorIs(t, err, frontier.ErrNotDue)
				w.Clock.Advance(harness.Slow / 4)
				w.F.Stats()
			}
		})
	}
	wg.Wait()
	w.Clock.Advance(time.Hour)
	require.NoError(t, w.F.Check())
	w.Options.KeepOpen = false
	w = w.Killed()
	w.Rest()
	w.Clock.Advance(time.Hour)
	for i := range hosts {
		w.IsSlow(harness.DormantHost(i))
	}
}
