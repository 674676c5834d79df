// This file copies a large store, and logs what that costs.

package load

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/internal/hook"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/test/harness"
	"github.com/stretchr/testify/require"
)

// The memory that a copy takes does not grow with the store: with -frontier.long that has
// more than 1 GB, and the copy may take 32 MiB.
func TestCopyOfMany(t *testing.T) {
	n := 20_000
	if *harness.Long {
		n = 12_000_000
	}
	dir := t.TempDir()
	store := filepath.Join(dir, "store")
	db, err := spill.Open(store, spill.Options{})
	require.NoError(t, err)
	f, err := frontier.Open(t.Context(), frontier.Options{Spill: db})
	require.NoError(t, err)
	r := rand.New(rand.NewPCG(1, 2))
	es := make([]frontier.Entry, 0, 1000)
	for i := range n {
		es = append(es, frontier.Entry{URL: fmt.Sprintf("http://host%d.example/%016x%016x%016x%016x", r.IntN(max(n/20, 1)), r.Uint64(), r.Uint64(), r.Uint64(), r.Uint64())})
		if len(es) == cap(es) || i == n-1 {
			_, err := f.Add(t.Context(), es...)
			require.NoError(t, err)
			es = es[:0]
		}
	}
	require.NoError(t, hook.Of(f).MoveNow(true))
	debug.FreeOSMemory()
	at, before, p := time.Now(), harness.ResidentMemory(), new(peak).watch()
	copied := filepath.Join(dir, "copy")
	require.NoError(t, db.CopyTo(t.Context(), copied))
	took := time.Since(at)
	p.stop.Store(true)
	size := folderBytes(t, store)
	t.Logf("%d URLs, %d MB: copied in %v; anonymous memory %d MiB at first, at most %d MiB", n, size/1e6, took.Round(time.Millisecond), before>>20, p.most.Load()>>20)
	if *harness.Long {
		require.Greater(t, size, int64(1e9))
		require.Less(t, p.most.Load()-before, int64(32<<20))
	}
	require.NoError(t, f.Close())
	require.NoError(t, db.Close())

	db, err = spill.Open(copied, spill.Options{})
	require.NoError(t, err)
	f, err = frontier.Open(t.Context(), frontier.Options{Spill: db})
	require.NoError(t, err)
	require.EqualValues(t, n, f.Stats().Waiting)
	require.NoError(t, f.Check())
	require.NoError(t, f.Close())
	require.NoError(t, db.Close())
}

// folderBytes is what the files of a folder hold.
func folderBytes(t testing.TB, dir string) (size int64) {
	require.NoError(t, filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if os.IsNotExist(err) || err == nil && d.IsDir() {
			return nil
		}
		if err != nil {
			return err
		}
		if info, err := d.Info(); err == nil { // or it was removed meanwhile
			size += info.Size()
		}
		return nil
	}))
	return size
}
