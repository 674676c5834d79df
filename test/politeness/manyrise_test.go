// This file tests that all URLs of a large host rise that deserve it.

package politeness

import (
	"fmt"
	"testing"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/internal/hook"
	"github.com/seed-7440039f/frontier/test/harness"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// When a third of a host's URLs have been noted, one search moves them, whether they are in memory or on disk.
func TestManyRiseAtOnce(t *testing.T) {
	const urls = 30_000
	rising(t, frontier.Options{}, func(t *testing.T, w *harness.World) {
		add := func(step int) {
			var es []frontier.Entry
			for i := 0; i < urls; i += step {
				es = append(es, frontier.Entry{URL: fmt.Sprintf("http://a.example/%d", i)})
			}
			_, err := w.F.Add(t.Context(), es...)
			require.NoError(t, err)
			hook.Of(w.F).Sweep()
		}
		add(1)
		w.OnDisk()
		add(3)
		r := w.F.Stats()
		assert.Greater(t, r.Risen, int64(urls/3*95/100), "a few may be missed that move to disk meanwhile")
		assert.EqualValues(t, 1, r.Walks)
		assert.LessOrEqual(t, r.Walked, int64(urls))
	})
}
