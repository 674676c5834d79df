package load

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/spill"
)

// While the disk is behind, calls wait for it. They are not refused because more came during a round than it
// moved: what came can be moved by the next.
func TestABurstWaitsForTheDisk(t *testing.T) {
	if testing.Short() {
		t.Skip("1.3 million URLs: -short")
	}
	s, err := spill.Open(t.TempDir(), spill.Options{MemoryBudget: 64 << 20})
	require.NoError(t, err)
	f, err := frontier.Open(t.Context(), frontier.Options{Spill: s, MemoryBudget: 128 << 20})
	require.NoError(t, err)
	const callers, calls, urls, hosts = 64, 20, 1000, 1000
	var all sync.WaitGroup
	for w := range callers {
		all.Go(func() {
			for k := range calls {
				entries := make([]frontier.Entry, urls)
				for i := range entries {
					entries[i].URL = fmt.Sprintf("http://h%d.example/%d/%d/%d", i%hosts, w, k, i)
				}
				if _, err := f.Add(context.Background(), entries...); !assert.NoError(t, err) {
					return
				}
			}
		})
	}
	all.Wait()
	if !t.Failed() {
		require.EqualValues(t, callers*calls*urls, f.Stats().Waiting)
	}
	require.NoError(t, f.Check())
	require.NoError(t, f.Close())
	require.NoError(t, s.Close())
}
