// This file opens what spill.Repair salvaged.

package durability

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/internal/hook"
	"github.com/seed-7440039f/frontier/internal/lab/trycount"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/simclock"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/test/harness"
	"github.com/stretchr/testify/require"
)

var repairOptions = spill.Options{MemoryBudget: 64 << 20, DiskReserve: 1}

// A frontier on a repaired store passes all checks, hands out what is left, each
// URL once and in order, and leaves every host alone first.
func TestRepairedStore(t *testing.T) {
	rnd := harness.NewRand(t)
	tries := trycount.Of(t)
	clk := simclock.New(harness.Dawn)
	open := func(dir string) (*frontier.Frontier, *spill.Store) {
		db, err := spill.Open(dir, repairOptions)
		require.NoError(t, err)
		f, err := frontier.Open(t.Context(), frontier.Options{Spill: db, Clock: clk, Delay: frontier.FixedDelay(time.Minute)})
		require.NoError(t, err)
		return f, db
	}
	dir := filepath.Join(t.TempDir(), "store")
	f, db := open(dir)
	const hosts, each = 30, 40
	for i := range each {
		for h := range hosts {
			u := crashURL{h, i}
			_, err := f.Add(t.Context(), frontier.Entry{URL: "http://" + u.host() + "/" + strings.TrimPrefix(u.entry().URL, "http://"+u.host()+"/")})
			require.NoError(t, err)
		}
		if i == each/2 {
			require.NoError(t, hook.Of(f).MoveNow(true))
		}
	}
	require.NoError(t, f.Pause(scope.Host(crashURL{3, 3}.host())))
	require.NoError(t, f.Close())
	require.NoError(t, db.Close())

	for n := range 12 {
		bad, good := copyFolder(t, dir), filepath.Join(t.TempDir(), "good")
		if n > 0 { // the first is whole
			garble(t, rnd, bad)
		}
		x, err := spill.Repair(t.Context(), bad, good, repairOptions)
		require.NoError(t, err)
		f, db := open(good)
		opened := clk.Now()
		require.NoError(t, f.Check())
		if n == 0 {
			require.Empty(t, x.Lost)
			require.Len(t, rest(t, f, clk, opened), hosts*each-2)
		} else {
			require.LessOrEqual(t, len(rest(t, f, clk, opened)), hosts*each)
		}
		require.NoError(t, f.Check())
		require.NoError(t, f.Close())
		require.NoError(t, db.Close())
		require.NoError(t, os.RemoveAll(bad))
		require.NoError(t, os.RemoveAll(good))
		tries.Tried(1)
	}
}

// rest takes everything that a frontier hands out.
func rest(t testing.TB, f *frontier.Frontier, clk *simclock.Clock, opened time.Time) map[crashURL]bool {
	t.Helper()
	seen, last := map[crashURL]bool{}, map[string]int{}
	for {
		l, at, err := f.TryNext()
		switch {
		case errors.Is(err, frontier.ErrExhausted):
			return seen
		case errors.Is(err, frontier.ErrNotDue):
			clk.Set(at)
			continue
		}
		require.NoError(t, err)
		u := urlOf(l.Entry)
		require.False(t, seen[u], "%v comes twice", u)
		require.False(t, clk.Now().Before(opened.Add(time.Minute)), "%s is contacted at once", l.Host)
		require.True(t, seen[u] || last[l.Host] <= u.n, "%v is out of order", u)
		seen[u], last[l.Host] = true, u.n
		require.NoError(t, f.Done(l, frontier.Outcome{}))
	}
}

// garble damages one file of a store, of those with URLs.
func garble(t testing.TB, rnd *rand.Rand, dir string) {
	t.Helper()
	var names []string
	require.NoError(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() && (strings.Contains(path, "blobs") || strings.HasSuffix(path, ".sst") || strings.Contains(path, "marks")) {
			names = append(names, path)
		}
		return err
	}))
	name := names[rnd.IntN(len(names))]
	b, err := os.ReadFile(name)
	require.NoError(t, err)
	at := rnd.IntN(len(b))
	for i := at; i < min(len(b), at+50); i++ {
		b[i] ^= byte(1 + rnd.IntN(255))
	}
	require.NoError(t, os.WriteFile(name, b, 0o600))
}
