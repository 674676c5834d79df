// This file collects what is of no use while others read and write, the process
// dies, or the disk fails.

package kv

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Readers and writers continue while values are moved and files are removed.
func TestReclaimBesideOthers(t *testing.T) {
	db := openApart(t, t.TempDir(), false)
	value := func(k string, n int) []byte { return bytes.Repeat([]byte(k), n) }
	var mu sync.Mutex
	there := map[string]int{}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	run := func(fn func(r *rand.Rand)) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			r := rand.New(rand.NewPCG(1, 1))
			for {
				select {
				case <-stop:
					return
				default:
					fn(r)
				}
			}
		}()
	}
	right := func(k, v []byte) error {
		if len(v)%len(k) != 0 || !bytes.Equal(v, value(string(k), len(v)/len(k))) {
			return fmt.Errorf("%q has the value of another", k)
		}
		return nil
	}
	for range 2 {
		run(func(r *rand.Rand) {
			k := fmt.Appendf(nil, "l%04d", r.IntN(1000))
			_, err := db.Get(k, func(v []byte) error { return right(k, v) })
			assert.NoError(t, err)
		})
	}
	run(func(*rand.Rand) {
		assert.NoError(t, db.Iterate([]byte("l"), []byte("m"), func(k []byte, value func() ([]byte, error)) error {
			v, err := value()
			if err != nil {
				return err
			}
			return right(k, v)
		}))
	})
	run(func(*rand.Rand) { assert.NoError(t, db.Reclaim(always)) })
	r := rand.New(rand.NewPCG(2, 2))
	for range 500 {
		var b Batch
		mu.Lock()
		for range 10 {
			k := fmt.Sprintf("l%04d", r.IntN(1000))
			if there[k] > 0 {
				b.Delete([]byte(k))
				delete(there, k)
			} else {
				there[k] = 60 + r.IntN(100)
				b.Set([]byte(k), value(k, there[k]))
			}
		}
		mu.Unlock()
		require.NoError(t, db.Write(&b, false))
	}
	close(stop)
	wg.Wait()
	c := content{}
	for k, n := range there {
		c[k] = value(k, n)
	}
	c.check(t, db)
	checkCounts(t, db)
	require.NoError(t, db.Close())
}

// thinned returns a DB with few of the values that were written, and what it holds.
func thinned(t *testing.T) (*Badger, content) {
	db, c := openApart(t, t.TempDir(), false), content{}
	for i := range 30 {
		c.write(t, db, func(set func(string, []byte), _ func(string)) { set(fmt.Sprintf("l%02d", i), random(3000)) })
	}
	c.write(t, db, func(_ func(string, []byte), del func(string)) {
		for i := range 30 {
			if i%3 > 0 {
				del(fmt.Sprintf("l%02d", i))
			}
		}
	})
	return db, c
}

// Who knows where a value lay, and comes late, is sent to where it lies now.
func TestValueMovedWhileItIsSought(t *testing.T) {
	db, c := thinned(t)
	key := []byte("l03")
	txn := db.db.NewTransaction(false)
	old, found, err := placeOf(txn, key)
	txn.Discard()
	require.NoError(t, err)
	require.True(t, found)
	reclaim(t, db)
	again, err := db.getApart(key, old, func([]byte) error { return errors.New("nothing is there") })
	require.NoError(t, err)
	require.True(t, again)
	c.check(t, db)
	require.NoError(t, db.Close())
}

// An iteration sees what was there when it began, though all of it is deleted or
// moved meanwhile; its files go when it ends.
func TestIterationKeepsItsFiles(t *testing.T) {
	db, c := thinned(t)
	was := maps.Clone(c)
	got := content{}
	require.NoError(t, db.Iterate([]byte("l"), []byte("m"), func(k []byte, value func() ([]byte, error)) error {
		if len(got) == 0 {
			c.write(t, db, func(_ func(string, []byte), del func(string)) {
				for k := range was {
					del(k)
				}
			})
			reclaim(t, db)
		}
		v, err := value()
		got[string(k)] = bytes.Clone(v)
		return err
	}))
	require.Equal(t, was, got)
	files, _ := onDisk(t, db.path)
	require.Zero(t, files)
	require.NoError(t, db.Close())
}

// A process may die between any two steps of a collection.
func TestDeathWhileReclaiming(t *testing.T) {
	dir := t.TempDir()
	db := openApart(t, dir, false)
	c := content{}
	for i := range 60 {
		c.write(t, db, func(set func(string, []byte), _ func(string)) {
			for j := range 10 {
				set(fmt.Sprintf("l%d/%d", i, j), random(1000))
			}
		})
	}
	for i := range 60 {
		c.write(t, db, func(_ func(string, []byte), del func(string)) {
			for j := range 10 {
				if (i+j)%3 > 0 {
					del(fmt.Sprintf("l%d/%d", i, j))
				}
			}
		})
	}
	var images []string
	require.NoError(t, db.Reclaim(func() bool {
		images = append(images, copyFolder(t, dir))
		return true
	}))
	require.Greater(t, len(images), 20)
	require.NoError(t, db.Close())
	for i, image := range images {
		if i%9 > 0 {
			continue
		}
		db := openApart(t, image, false)
		c.check(t, db)
		reclaim(t, db)
		c.check(t, db)
		_, size := onDisk(t, image)
		assert.Less(t, size, int64(60*10/3*1000*3/2+2*tiny.file))
		require.NoError(t, db.Close())
	}
}

// Damage is distinguished from missing values, and its file is never removed.
func TestDamagedFilesStay(t *testing.T) {
	dir := t.TempDir()
	db := openApart(t, dir, false)
	c := content{}
	for i := range 60 {
		c.write(t, db, func(set func(string, []byte), _ func(string)) { set(fmt.Sprintf("l%02d", i), random(1000)) })
	}
	require.NoError(t, db.Close())
	name := filepath.Join(dir, blobFolder, "00000001.lasting")
	raw, err := os.ReadFile(name)
	require.NoError(t, err)
	copy(raw[30_000:], bytes.Repeat([]byte{0xff}, 2000)) // no entry begins there any more
	require.NoError(t, os.WriteFile(name, raw[:50_000], 0o600))

	db = openApart(t, dir, false)
	found, err := db.Get([]byte("l59"), func([]byte) error { return nil })
	require.True(t, found)
	require.ErrorIs(t, err, ErrDamaged)
	err = db.Iterate([]byte("l55"), []byte("l59"), func(_ []byte, value func() ([]byte, error)) error {
		_, err := value()
		return err
	})
	require.ErrorIs(t, err, ErrDamaged)
	c.write(t, db, func(_ func(string, []byte), del func(string)) {
		for i := range 60 {
			if i%3 > 0 {
				del(fmt.Sprintf("l%02d", i))
			}
		}
	})
	require.NoError(t, db.Reclaim(always))
	require.False(t, db.Wasteful(), "nothing can be done")
	require.FileExists(t, name)
	for i := 0; i < 27; i += 3 {
		k := fmt.Sprintf("l%02d", i)
		_, err := db.Get([]byte(k), func(v []byte) error { assert.Equal(t, c[k], v); return nil })
		require.NoError(t, err)
	}
	require.NoError(t, db.Close())

	require.NoError(t, os.Remove(name))
	db = openApart(t, dir, false)
	found, err = db.Get([]byte("l33"), func([]byte) error { return nil })
	require.True(t, found)
	require.ErrorIs(t, err, ErrDamaged)
	require.ErrorContains(t, err, "file 1 of values is missing")
	require.NoError(t, db.Close())
}

// A sync that fails fails the Write that wanted it. If it may have cost what
// others wrote before, so do all later ones.
func TestFailedSyncOfValues(t *testing.T) {
	for _, before := range []bool{false, true} {
		t.Run(fmt.Sprintf("before=%t", before), func(t *testing.T) {
			db := openApart(t, t.TempDir(), true)
			write := func(k string, sync bool) error {
				var b Batch
				b.Set([]byte(k), random(1000))
				return db.Write(&b, sync)
			}
			require.NoError(t, write("l1", true))
			if before {
				require.NoError(t, write("l2", false))
			}
			f := db.blobs.filling[Lasting]
			broken := errors.New("broken")
			db.blobs.flush = func(*os.File) error { return broken }
			require.ErrorIs(t, write("l3", true), broken)
			db.blobs.flush = (*os.File).Sync
			err := write("l4", true)
			if before {
				require.ErrorIs(t, err, broken)
				require.NoError(t, write("b1", false))
			} else {
				require.NoError(t, err)
				require.NotSame(t, f, db.blobs.filling[Lasting])
			}
			require.NoError(t, db.Close())
		})
	}
}

// A failed write is counted anew, whatever became of it.
func TestFailedWriteIsCounted(t *testing.T) {
	db := openApart(t, t.TempDir(), false)
	c := content{}
	c.write(t, db, func(set func(string, []byte), _ func(string)) { set("l1", random(5000)) })
	var b Batch
	for i := range 100_000 {
		b.Set(fmt.Appendf(nil, "l%d", i), nil)
	}
	b.Set([]byte("l1"), random(5000))
	require.Error(t, db.Write(&b, false), "too large for one transaction")
	require.True(t, db.Wasteful())
	require.NoError(t, db.Reclaim(always))
	checkCounts(t, db)
	c.check(t, db)
	require.NoError(t, db.Close())
}

// A process may die while badger makes a file.
func TestUnbornFiles(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("badger's lock cannot be held beside it")
	}
	dir := t.TempDir()
	db := openApart(t, dir, false)
	c := content{}
	c.write(t, db, func(set func(string, []byte), _ func(string)) { set("l1", random(500)) })
	require.NoError(t, db.Close())
	for _, name := range []string{"00077.mem", "000078.vlog"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	db = openApart(t, dir, false)
	c.check(t, db)
	require.NoError(t, db.Close())
}

func TestReclaimEndsWhenTold(t *testing.T) {
	db := openApart(t, t.TempDir(), false)
	c := content{}
	c.write(t, db, func(set func(string, []byte), _ func(string)) {
		for i := range 30 {
			set(fmt.Sprint("l", i), random(3000))
		}
	})
	c.write(t, db, func(_ func(string, []byte), del func(string)) {
		for i := range 29 {
			del(fmt.Sprint("l", i))
		}
	})
	calls := 0
	require.NoError(t, db.Reclaim(func() bool { calls++; return false }))
	assert.Equal(t, 1, calls)
	assert.True(t, db.Wasteful(), "there is more to do")
	require.NoError(t, db.Close())
}

// Values are not moved to where they may be lost.
func TestFailedSyncOfMovedValues(t *testing.T) {
	db := openApart(t, t.TempDir(), false)
	c := content{}
	c.write(t, db, func(set func(string, []byte), _ func(string)) {
		for i := range 20 {
			set(fmt.Sprint("l", i), random(3000))
		}
	})
	c.write(t, db, func(_ func(string, []byte), del func(string)) {
		for i := range 15 {
			del(fmt.Sprint("l", i))
		}
	})
	broken := errors.New("broken")
	db.blobs.flush = func(*os.File) error { return broken }
	require.ErrorIs(t, db.Reclaim(always), broken)
	require.True(t, db.Wasteful())
	c.check(t, db)
	suspect := db.blobs.filling[moved].file
	db.blobs.flush = func(f *os.File) error {
		require.NotSame(t, suspect, f, "a sync that succeeds there proves nothing")
		return f.Sync()
	}
	require.NoError(t, db.Reclaim(always))
	require.False(t, db.Wasteful())
	c.check(t, db)
	checkCounts(t, db)
	require.NoError(t, db.Close())
}
