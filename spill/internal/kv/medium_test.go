// This file tracks which part of the files of values is on the medium, and removes the rest: a loss
// of power in the second life of a store, or in any later one.

package kv

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// medium is what was synced of the files that are watched, and what fails.
type medium struct {
	has      map[string]int64 // of a file of values: number of bytes
	room     int              // bytes until a write is cut; below 0: none is
	failures int              // syncs that fail next
	failed   bool             // one has failed: the content of the medium is unknown
}

func newMedium() *medium { return &medium{has: map[string]int64{}, room: -1} }

func (m *medium) open(dir string, small bool) (*Badger, error) {
	c := Config{
		Memory: 64 << 20, Small: small, Logger: slog.New(slog.DiscardHandler), Life: apart, Last: []byte("z"),
		sizes: tiny, flush: m.flush, write: m.write,
	}
	return OpenBadger(dir, c)
}

func (m *medium) flush(f *os.File) error {
	if m.failures > 0 {
		m.failures--
		m.failed = true
		return &fs.PathError{Op: "sync", Path: f.Name(), Err: syscall.EIO}
	}
	info, err := f.Stat()
	if err == nil {
		m.has[filepath.Base(f.Name())] = info.Size()
	}
	return err
}

func (m *medium) write(f *os.File, p []byte, at int64) (int, error) {
	if at == 0 {
		m.has[filepath.Base(f.Name())] = 0 // one of that name was removed
	}
	if m.room < 0 || len(p) <= m.room {
		m.room -= min(len(p), max(m.room, 0))
		return f.WriteAt(p, at)
	}
	n, err := f.WriteAt(p[:m.room], at)
	return n, errors.Join(err, &fs.PathError{Op: "write", Path: f.Name(), Err: syscall.ENOSPC})
}

// powerLoss cuts the files of values of a folder to what the medium has, or a part more.
func (m *medium) powerLoss(t testing.TB, dir string, part func(n int64) int64) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(dir, blobFolder))
	require.NoError(t, err)
	for _, e := range entries {
		info, err := e.Info()
		require.NoError(t, err)
		has := m.has[e.Name()]
		has += part(info.Size() - has)
		require.NoError(t, os.Truncate(filepath.Join(dir, blobFolder, e.Name()), has))
		m.has[e.Name()] = has // what a store finds when it is opened after it
	}
	restarted(t, dir)
}

func none(int64) int64 { return 0 }

// What a process wrote and did not sync is not on the medium because the next one has
// opened the store, made tables of its logs, and synced what it wrote itself.
func TestPowerLossAfterADeath(t *testing.T) {
	m := newMedium()
	dir := t.TempDir()
	db, err := m.open(dir, false)
	require.NoError(t, err)
	c := content{}
	put := func(k string, n int) {
		c.write(t, db, func(set func(string, []byte), _ func(string)) { set(k, random(n)) })
		db.Confirm(uint64(len(c)))
	}
	put("b1", 3000)
	put("l1", 3000)
	died := copyFolder(t, dir)
	require.NoError(t, db.Close())
	db, err = m.open(died, false)
	require.NoError(t, err)
	put("b2", 300)
	require.NoError(t, db.Sync())
	left := copyFolder(t, died)
	require.NoError(t, db.Close())
	m.powerLoss(t, left, none)
	db, err = m.open(left, false)
	require.NoError(t, err)
	c.check(t, db)
	require.NoError(t, db.Close())
}

// Before a file is removed the medium has what was written before, and the note that it has.
func TestRemovalComesAfterItsNote(t *testing.T) {
	m := newMedium()
	dir := t.TempDir()
	db, err := m.open(dir, false)
	require.NoError(t, err)
	var synced []byte // content of the note on the medium
	flush := func(f *os.File) error {
		if filepath.Base(f.Name()) == confirmedName {
			b, err := os.ReadFile(f.Name())
			require.NoError(t, err)
			synced = b
		}
		return m.flush(f)
	}
	db.confirmed.flush, db.blobs.flush = flush, flush
	onMedium := func() uint64 {
		at := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(at, confirmedName), synced, 0o666))
		return readConfirmed(at).durable.version
	}
	c := content{}
	removed := 0
	for range 20 {
		c.write(t, db, func(set func(string, []byte), _ func(string)) { set("l1", random(3000)) })
		db.Confirm(uint64(len(c)))
		before, err := os.ReadDir(filepath.Join(dir, blobFolder))
		require.NoError(t, err)
		version := db.version.Load()
		require.NoError(t, db.Reclaim(always))
		if after, err := os.ReadDir(filepath.Join(dir, blobFolder)); len(after) < len(before) {
			require.NoError(t, err)
			require.GreaterOrEqual(t, onMedium(), version, "a file of values is gone")
			synced = nil
			removed++
		}
	}
	require.Positive(t, removed)
	w, err := db.CreateFile("marks/1", 1)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	c.write(t, db, func(set func(string, []byte), _ func(string)) { set("i1", random(10)) })
	require.NoError(t, db.RemoveFiles("marks/1"))
	require.GreaterOrEqual(t, onMedium(), db.version.Load(), "a file beside the values is gone")
	require.NoFileExists(t, filepath.Join(dir, "marks", "1"))
	require.NoError(t, db.Close())
}

// Two syncs may overlap. What is written behind both is on the medium by neither.
func TestSyncsOverlap(t *testing.T) {
	m := newMedium()
	dir := t.TempDir()
	db, err := m.open(dir, false)
	require.NoError(t, err)
	c := content{}
	put := func(k string, n int) {
		c.write(t, db, func(set func(string, []byte), _ func(string)) { set(k, random(n)) })
		db.Confirm(uint64(len(c)))
	}
	put("b1", 3000)
	db.blobs.flush = func(f *os.File) error {
		db.blobs.flush = m.flush
		err := m.flush(f)
		put("b2", 300)
		db.turn.Lock()
		assert.NoError(t, db.blobs.syncNew()) // as a write does that fills a table
		db.turn.Unlock()
		put("b3", 1000)
		return err
	}
	require.NoError(t, db.Sync())
	require.NoError(t, db.Sync())
	left := copyFolder(t, dir)
	require.NoError(t, db.Close())
	m.powerLoss(t, left, none)
	db, err = m.open(left, false)
	require.NoError(t, err)
	c.check(t, db)
	require.NoError(t, db.Close())
}

// Whatever write is cut, whatever sync fails, and whenever the process dies or power is
// lost: the store opens; a death costs nothing that was acknowledged; a loss of power
// costs the latest writes at most, and none of those before a Sync that returned.
func TestFaultsAndDeaths(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		m := newMedium()
		dir := t.TempDir()
		small := rapid.Bool().Draw(r, "small")
		db, err := m.open(dir, small)
		require.NoError(r, err)
		history := []content{{}} // after each write that was acknowledged, and how the folder began
		synced := 0              // so much of it is on the medium
		number := uint64(0)
		again := func(died string, powerLost bool) {
			require.NoError(r, db.Close())
			dir = died
			db, err = m.open(dir, small)
			require.NoError(r, err)
			if !powerLost {
				history[len(history)-1].check(t, db)
				return
			}
			now := content{}
			require.NoError(r, db.Iterate([]byte{0}, []byte{255}, func(k []byte, value func() ([]byte, error)) error {
				v, err := value()
				now[string(k)] = append([]byte(nil), v...)
				return err
			}))
			for i := len(history) - 1; ; i-- {
				require.GreaterOrEqual(r, i, synced, "of %d states the first %d were on the medium", len(history), synced)
				if maps.EqualFunc(now, history[i], func(a, b []byte) bool { return string(a) == string(b) }) {
					history, synced = []content{now}, 0
					return
				}
			}
		}
		defer func() { require.NoError(t, db.Close()) }()
		steps := map[string]func(*rapid.T){
			"write": func(r *rapid.T) {
				for range rapid.IntRange(1, 30).Draw(r, "writes") {
					m.room, m.failures = -1, 0
					switch rapid.IntRange(0, 5).Draw(r, "fault") {
					case 0:
						m.room = rapid.IntRange(0, 6000).Draw(r, "room")
					case 1:
						m.failures = rapid.IntRange(0, 2).Draw(r, "failures")
					}
					next := maps.Clone(history[len(history)-1])
					var b Batch
					for range rapid.IntRange(1, 5).Draw(r, "keys") {
						k := rapid.StringMatching("[bli][0-9]").Draw(r, "key")
						if rapid.IntRange(0, 3).Draw(r, "delete") == 0 {
							b.Delete([]byte(k))
							delete(next, k)
							continue
						}
						v := random(rapid.SampledFrom([]int{10, 300, 1000, 2500}).Draw(r, "size"))
						b.Set([]byte(k), v)
						next[k] = v
					}
					if db.Write(&b, false) == nil {
						history = append(history, next)
						number++
						db.Confirm(number)
					}
					m.room, m.failures = -1, 0
				}
			},
			"sync": func(r *rapid.T) {
				if rapid.IntRange(0, 5).Draw(r, "fault") == 0 {
					m.failures = 1
				}
				if err := db.Sync(); err == nil {
					synced = len(history) - 1
				}
				m.failures = 0
			},
			"reclaim": func(r *rapid.T) {
				_ = db.Reclaim(always) // it says so if a sync has failed
			},
			"death": func(*rapid.T) { again(copyFolder(t, dir), false) },
			"power": func(r *rapid.T) {
				if m.failed {
					return // what a medium has that failed is not known
				}
				left := copyFolder(t, dir)
				m.powerLoss(t, left, func(n int64) int64 { return rapid.Int64Range(0, n).Draw(r, "part") })
				again(left, true)
			},
		}
		names := slices.Sorted(maps.Keys(steps))
		for range rapid.IntRange(1, 8).Draw(r, "steps") {
			steps[rapid.SampledFrom(names).Draw(r, "step")](r)
		}
	})
}

// Every write is cut at every byte, and then the process dies.
func TestWritesCutAtEachByte(t *testing.T) {
	m := newMedium()
	dir := t.TempDir()
	db, err := m.open(dir, false)
	require.NoError(t, err)
	c := content{}
	c.write(t, db, func(set func(string, []byte), _ func(string)) { set("b0", random(300)) })
	value := random(300)
	for cut := range 306 {
		var b Batch
		b.Set(fmt.Append(nil, "b1"), value)
		m.room = cut
		err := db.Write(&b, false)
		m.room = -1
		require.Equal(t, int64(cut) < entryLen(2, 300), err != nil, "cut at %d", cut)
		if err == nil {
			c["b1"] = value
		} else {
			require.ErrorIs(t, err, syscall.ENOSPC)
		}
		if cut%2 == 0 { // another one takes its place
			c.write(t, db, func(set func(string, []byte), _ func(string)) { set("b2", random(256+cut%7)) })
		}
		if cut%17 == 0 {
			died := copyFolder(t, dir)
			require.NoError(t, db.Close())
			dir = died
			db, err = m.open(dir, false)
			require.NoError(t, err)
		}
		c.check(t, db)
	}
	require.NoError(t, db.Close())
}
