package kv

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Whatever is written to badger's value log has space on the volume before it is, also
// in a file that was just begun, and one value that is longer than a file.
func TestValueLogHasSpace(t *testing.T) {
	dir := t.TempDir()
	d := pressed(t, dir)
	defer func() { require.NoError(t, d.Close()) }()
	for i, n := range []int{3000, 400_000, 400_000, 400_000, 3000, 1 << 20, 3000} {
		var b Batch
		b.Set(fmt.Appendf(nil, "%d", i), bytes.Repeat([]byte{1}, n))
		require.NoError(t, d.Write(&b, false))
		require.Positive(t, d.values.id)
		var st syscall.Stat_t
		require.NoError(t, syscall.Stat(filepath.Join(dir, valueLogName(d.values.id)), &st))
		if st.Size >= 2*valueLog { // else it is full, and what was left was given back
			require.GreaterOrEqual(t, st.Blocks*512, int64(2*valueLog), "value %d", i)
		}
	}
	require.Greater(t, d.values.id, 1)
	last, err := os.Stat(filepath.Join(dir, valueLogName(d.values.id)))
	require.NoError(t, err)
	require.Positive(t, last.Size())
}

// valued is a DB without sync whose value log has many values, few of which are live. more writes
// them again.
func valued(t *testing.T, flush func(*os.File) error) (d *Badger, dir string, more func()) {
	t.Helper()
	dir = t.TempDir()
	d, err := OpenBadger(dir, Config{Memory: 64 << 20, Small: true, Logger: slog.New(slog.DiscardHandler), flush: flush})
	require.NoError(t, err)
	set := func(k string, i int) {
		var b Batch
		b.Set([]byte(k), bytes.Repeat([]byte{byte(i)}, 100_000))
		require.NoError(t, d.Write(&b, false))
	}
	more = func() {
		for i := range 40 {
			set(fmt.Sprintf("key %d", i%10), i)
		}
	}
	set("first", 77)
	more()
	require.NoError(t, d.Sync())
	require.NoError(t, d.db.Flatten(2)) // badger knows now what is of no use
	return d, dir, more
}

func inFile1(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, valueLogName(1)))
	return err == nil
}

func requireMoved(t *testing.T, d *Badger) {
	t.Helper()
	found, err := d.Get([]byte("first"), func(v []byte) error {
		require.Equal(t, bytes.Repeat([]byte{77}, 100_000), v)
		return nil
	})
	require.NoError(t, err)
	require.True(t, found)
	for i := range 10 {
		found, err := d.Get(fmt.Appendf(nil, "key %d", i), func(v []byte) error {
			require.Equal(t, bytes.Repeat([]byte{byte(30 + i)}, 100_000), v)
			return nil
		})
		require.NoError(t, err)
		require.True(t, found)
	}
}

// What badger moves when it collects its value log is no damage after a loss of power,
// and hides no write that came later.
func TestValuesThatWereMovedSurviveALossOfPower(t *testing.T) {
	d, dir, more := valued(t, nil)
	for end := time.Now().Add(time.Minute); inFile1(dir); more() {
		require.NoError(t, d.collectLog())
		require.True(t, time.Now().Before(end))
	}
	more()
	var b Batch
	b.Set([]byte("later"), []byte("x"))
	require.NoError(t, d.Write(&b, false))
	require.NoError(t, d.Sync())
	to := copyFolder(t, dir)
	require.NoError(t, d.Close())
	restarted(t, to)
	d, err := OpenBadger(to, Config{Memory: 64 << 20, Small: true, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	requireMoved(t, d)
	found, err := d.Get([]byte("later"), func([]byte) error { return nil })
	require.NoError(t, err)
	require.True(t, found)
	require.NoError(t, d.Close())
}

// What badger has left of its value log is synced as well.
func TestAllOfTheValueLogIsSynced(t *testing.T) {
	var mu sync.Mutex
	synced := map[string]bool{}
	d, _, _ := valued(t, func(f *os.File) error {
		mu.Lock()
		defer mu.Unlock()
		synced[filepath.Base(f.Name())] = true
		return f.Sync()
	})
	d.values.mu.Lock()
	last := d.values.id
	d.values.mu.Unlock()
	require.Greater(t, last, 2)
	for id := 1; id < last; id++ {
		require.True(t, synced[valueLogName(id)], "file %d of %d", id, last)
	}
	require.NoError(t, d.Close())
}

// A file of the value log stays as long as what moved out of it is not on the medium.
func TestValueLogStaysUntilItsValuesAreSynced(t *testing.T) {
	d, dir, more := valued(t, nil)
	broken := errors.New("broken")
	for end := time.Now().Add(time.Minute); ; more() {
		d.turn.Lock()
		log := d.logs.logs[len(d.logs.logs)-1]
		log.fault = broken
		d.turn.Unlock()
		err := d.collectLog()
		if err != nil {
			require.ErrorIs(t, err, broken)
			break
		}
		require.True(t, time.Now().Before(end))
		log.fault = nil
	}
	require.True(t, inFile1(dir))
	require.NoError(t, d.Close())
}
