// This file fills and empties a Badger whose values lie apart, and looks at its
// folder.

package kv

import (
	"bytes"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/dgraph-io/badger/v4"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// tiny makes files small enough for tests.
var tiny = sizes{file: 64 << 10, brief: 16 << 10, waste: 1 << 10, scan: 8 << 10, move: 16 << 10}

// apart lets keys that begin with b or l lie apart.
func apart(key []byte) Life {
	switch key[0] {
	case 'b':
		return Brief
	case 'l':
		return Lasting
	}
	return Inline
}

func openApart(t testing.TB, dir string, sync bool) *Badger {
	t.Helper()
	db, err := OpenBadger(dir, Config{
		Memory: 64 << 20, Sync: sync, Logger: slog.New(slog.DiscardHandler),
		Life: apart, Last: []byte("z"), sizes: tiny,
	})
	require.NoError(t, err)
	return db
}

func always() bool { return true }

// content is what a DB should hold.
type content map[string][]byte

func (c content) check(t testing.TB, db DB) {
	t.Helper()
	got := content{}
	require.NoError(t, db.Iterate([]byte{0}, []byte{255}, func(k []byte, value func() ([]byte, error)) error {
		v, err := value()
		got[string(k)] = bytes.Clone(v)
		return err
	}))
	require.Equal(t, len(c), len(got))
	for k, want := range c {
		require.True(t, bytes.Equal(want, got[k]), "iterated: %q", k)
		found, err := db.Get([]byte(k), func(v []byte) error {
			require.True(t, bytes.Equal(want, v), "got: %q", k)
			return nil
		})
		require.NoError(t, err)
		require.True(t, found, k)
	}
}

// write applies the batch that fn makes to both.
func (c content) write(t testing.TB, db DB, fn func(set func(k string, v []byte), del func(k string))) {
	t.Helper()
	var b Batch
	fn(func(k string, v []byte) {
		b.Set([]byte(k), v)
		c[k] = v
	}, func(k string) {
		b.Delete([]byte(k))
		delete(c, k)
	})
	require.NoError(t, db.Write(&b, false))
}

func random(n int) []byte {
	v := make([]byte, n)
	for i := range v {
		v[i] = byte(rand.Uint32())
	}
	return v
}

// onDisk returns how many files and bytes of values a folder has.
func onDisk(t testing.TB, dir string) (files int, size int64) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(filepath.Join(dir, blobFolder), func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		i, err := e.Info()
		files, size = files+1, size+i.Size()
		return err
	}))
	return files, size
}

func TestSpaceComesBack(t *testing.T) {
	for _, sync := range []bool{false, true} {
		t.Run(fmt.Sprintf("sync=%t", sync), func(t *testing.T) {
			dir := t.TempDir()
			db := openApart(t, dir, sync)
			c := content{}
			for i := range 100 {
				c.write(t, db, func(set func(string, []byte), _ func(string)) {
					for j := range 10 {
						set(fmt.Sprintf("l%d/%d", i, j), random(1000+i))
						set(fmt.Sprintf("b%d/%d", i, j), random(500))
						set(fmt.Sprintf("i%d/%d", i, j), random(100))
					}
				})
			}
			_, full := onDisk(t, dir)
			require.False(t, db.Wasteful())

			for i := range 100 { // two thirds of each file
				c.write(t, db, func(_ func(string, []byte), del func(string)) {
					for j := range 10 {
						del(fmt.Sprintf("b%d/%d", i, j))
						if (i+j)%3 > 0 {
							del(fmt.Sprintf("l%d/%d", i, j))
						}
					}
				})
			}
			require.True(t, db.Wasteful())
			require.NoError(t, db.Reclaim(always))
			require.False(t, db.Wasteful())
			_, left := onDisk(t, dir)
			assert.Less(t, left, full*2/3/3+2*tiny.file, "of %d", full)
			c.check(t, db)

			for i := range 100 {
				c.write(t, db, func(_ func(string, []byte), del func(string)) {
					for j := range 10 {
						del(fmt.Sprintf("l%d/%d", i, j))
						del(fmt.Sprintf("i%d/%d", i, j))
					}
				})
			}
			reclaim(t, db)
			files, left := onDisk(t, dir)
			assert.Zero(t, files, "%d bytes left", left)
			c.check(t, db)
			require.NoError(t, db.Close())
		})
	}
}

// What a process wrote is counted by the next, which may find it of no use.
func TestSpaceComesBackAfterReopening(t *testing.T) {
	dir := t.TempDir()
	c := content{}
	for range 40 { // each leaves a small file
		db := openApart(t, dir, false)
		c.write(t, db, func(set func(string, []byte), _ func(string)) {
			for range 4 {
				set(fmt.Sprintf("l%d", len(c)), random(1000))
			}
		})
		require.NoError(t, db.Close())
	}
	files, _ := onDisk(t, dir)
	require.Equal(t, 40, files)
	db := openApart(t, dir, false)
	require.True(t, db.Wasteful(), "nobody knows")
	require.NoError(t, db.Reclaim(always))
	files, _ = onDisk(t, dir)
	assert.LessOrEqual(t, files, smallBlobs+4, "small files are merged")
	c.check(t, db)
	c.write(t, db, func(_ func(string, []byte), del func(string)) {
		for k := range maps.Clone(c) {
			del(k)
		}
	})
	require.NoError(t, db.Close())
	db = openApart(t, dir, false)
	reclaim(t, db)
	files, _ = onDisk(t, dir)
	assert.Zero(t, files)
	require.NoError(t, db.Close())
}

// Random lives of a store against a map; Reclaim ends at any step, and each step
// may be the last of the process.
func TestBlobsModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "")
		require.NoError(rt, err)
		c := content{}
		db := openApart(t, dir, false)
		key := rapid.Custom(func(rt *rapid.T) string {
			return rapid.SampledFrom([]string{"b", "l", "i"}).Draw(rt, "life") + rapid.StringMatching("[a-h][a-h]").Draw(rt, "key")
		})
		rt.Repeat(map[string]func(*rapid.T){
			"write": func(rt *rapid.T) {
				c.write(t, db, func(set func(string, []byte), del func(string)) {
					for range rapid.IntRange(1, 30).Draw(rt, "ops") {
						if rapid.Bool().Draw(rt, "delete") {
							del(key.Draw(rt, "key"))
						} else {
							set(key.Draw(rt, "key"), random(rapid.SampledFrom([]int{0, 10, 300, 5000}).Draw(rt, "len")))
						}
					}
				})
			},
			"reclaim": func(rt *rapid.T) {
				steps := rapid.IntRange(1, 20).Draw(rt, "steps")
				require.NoError(rt, db.Reclaim(func() bool { steps--; return steps > 0 }))
			},
			"kill": func(rt *rapid.T) {
				if rapid.IntRange(0, 9).Draw(rt, "rarely") > 0 {
					return
				}
				image := copyFolder(t, dir)
				require.NoError(rt, db.Close())
				dir = image
				db = openApart(t, dir, false)
			},
			"": func(*rapid.T) { c.check(t, db) },
		})
		reclaim(t, db)
		c.check(t, db)
		checkCounts(t, db)
		require.NoError(rt, db.Close())
	})
}

// checkCounts compares what is counted with what a survey finds.
func checkCounts(t testing.TB, db *Badger) {
	t.Helper()
	had := map[uint32]int64{}
	for _, f := range db.blobs.all() {
		had[f.id] = f.live
	}
	db.counted = false
	require.NoError(t, db.survey(always))
	for _, f := range db.blobs.all() {
		require.Equal(t, f.live, had[f.id], "file %d of %d bytes", f.id, f.size.Load())
	}
}

// copyFolder returns what a death of the process would leave now.
func copyFolder(t testing.TB, dir string) string {
	t.Helper()
	for {
		to := t.TempDir()
		before := names(t, dir)
		err := os.CopyFS(to, os.DirFS(dir))
		if !slices.Equal(before, names(t, dir)) {
			continue // badger was writing a table: the copy is not of one moment
		}
		require.NoError(t, err)
		require.NoError(t, os.Remove(filepath.Join(to, "LOCK")))
		return to
	}
}

// names returns the names of the files in a folder, and what the manifest says.
func names(t testing.TB, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	manifest, err := os.ReadFile(filepath.Join(dir, badger.ManifestFilename))
	require.NoError(t, err)
	return append(names, string(manifest))
}

// reclaim repeats until everything is done: a table may still have to be written.
func reclaim(t testing.TB, db *Badger) {
	t.Helper()
	for first := true; first || db.Wasteful(); first = false {
		require.NoError(t, db.Reclaim(always))
	}
}
