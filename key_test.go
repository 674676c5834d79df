// This file tests that nobody outside can choose URLs and hosts that collide.

package frontier

import (
	"testing"

	"github.com/seed-7440039f/frontier/storage"
	"github.com/stretchr/testify/require"
)

// Two frontiers see the same URLs and hosts as different fingerprints and hashes.
func TestFingerprintsAreKeyed(t *testing.T) {
	const url, host = "http://a.example/", "a.example"
	marks, hashes := map[storage.Mark]bool{}, map[uint64]bool{}
	for range 8 {
		f, err := Open(t.Context(), Options{})
		require.NoError(t, err)
		require.NotZero(t, f.sched.key[0])
		require.NotZero(t, f.sched.key[1])
		require.NotEqual(t, f.markOf(0, url), f.markOf(1, url), "crawls do not share marks")
		marks[f.markOf(0, url)] = true
		hashes[f.hostHash(host)] = true
		require.NoError(t, f.Check())
		require.NoError(t, f.Close())
	}
	require.Len(t, marks, 8)
	require.Len(t, hashes, 8)
}
