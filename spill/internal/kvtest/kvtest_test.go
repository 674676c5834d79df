// This file holds both engines to the same contract.

package kvtest

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier/spill/internal/kv"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/seed-7440039f/frontier/spill/internal/kv.(*Badger).lost"))
}

func engines(t *testing.T, fn func(t *testing.T, db kv.DB)) {
	t.Run("disk", func(t *testing.T) { fn(t, NewDisk()) })
	t.Run("badger", func(t *testing.T) {
		db, err := kv.OpenBadger(t.TempDir(), kv.Config{Memory: 64 << 20, Logger: slog.New(slog.DiscardHandler)})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, db.Close()) })
		fn(t, db)
	})
}

func keys(t *testing.T, db kv.DB, from, to string) string {
	t.Helper()
	var got []string
	require.NoError(t, db.Iterate([]byte(from), []byte(to), func(k []byte, value func() ([]byte, error)) error {
		v, err := value()
		got = append(got, fmt.Sprintf("%s=%.3s", k, v))
		return err
	}))
	return strings.Join(got, " ")
}

func TestEngines(t *testing.T) {
	engines(t, func(t *testing.T, db kv.DB) {
		large := []byte(strings.Repeat("L", 128<<10))
		var b kv.Batch
		b.Set([]byte("b"), []byte("1"))
		b.Set([]byte("a"), large)
		b.Set([]byte("c"), nil)
		b.Delete([]byte("never"))
		require.NoError(t, db.Write(&b, true))
		assert.Equal(t, "a=LLL b=1 c=", keys(t, db, "", "z"))

		b.Reset()
		b.Set([]byte("d"), []byte("first"))
		b.Set([]byte("d"), []byte("second"))
		b.Set([]byte("b"), []byte("x"))
		b.Delete([]byte("b"))
		require.NoError(t, db.Write(&b, false))
		assert.Equal(t, "a=LLL c= d=sec", keys(t, db, "", "z"))
		assert.Equal(t, "c=", keys(t, db, "b", "d"), "from is in, to is not")

		found, err := db.Get([]byte("a"), func(v []byte) error { assert.Equal(t, large, v); return nil })
		require.NoError(t, err)
		assert.True(t, found)
		found, err = db.Get([]byte("b"), func([]byte) error { return nil })
		require.NoError(t, err)
		assert.False(t, found)
		mine := errors.New("mine")
		_, err = db.Get([]byte("a"), func([]byte) error { return mine })
		require.Equal(t, mine, err)
		require.Equal(t, kv.ErrStop, db.Iterate([]byte("a"), []byte("z"), func([]byte, func() ([]byte, error)) error { return kv.ErrStop }))
		require.NoError(t, db.Reclaim(func() bool { return true }))
	})
}

// What Fits accepts, Write takes in one transaction.
func TestFitsTellsTheTruth(t *testing.T) {
	engines(t, func(t *testing.T, db kv.DB) {
		for _, size := range []int{1, 100, (64 << 10) - 1, (64 << 10) + 1} {
			var b, last kv.Batch
			for i := range 200_000 / (1 + size/100) {
				b.Set(fmt.Appendf(nil, "%d/%d", size, i), make([]byte, size))
				if !db.Fits(&b) {
					break
				}
				last = b
			}
			require.NoError(t, db.Write(&last, false), "%d values of %d bytes", len(last.Ops), size)
		}
	})
}

func TestFaulty(t *testing.T) {
	boom := errors.New("boom")
	f := &Faulty{DB: NewDisk()}
	put := func(k string) error {
		var b kv.Batch
		b.Set([]byte(k), []byte(k))
		return f.Write(&b, true)
	}
	f.FailNth(Write, 2, boom)
	require.NoError(t, put("a"))
	require.ErrorIs(t, put("b"), boom)
	require.NoError(t, put("c"))
	f.FailNth(Sync, 1, boom)
	require.ErrorIs(t, put("d"), boom)
	assert.Equal(t, "a=a c=c d=d", keys(t, f, "a", "z"))
	f.FailFrom(Write, 1, boom)
	require.ErrorIs(t, put("e"), boom)
	require.ErrorIs(t, put("e"), boom)
	f.Heal()
	ran := false
	f.Before(Write, 1, func() { ran = true })
	require.NoError(t, put("e"))
	assert.True(t, ran)
}

func TestPowerLossKeepsAPrefix(t *testing.T) {
	d := NewDisk()
	for i, sync := range []bool{true, false, false} {
		var b kv.Batch
		b.Set([]byte{byte('a' + i)}, []byte("x"))
		require.NoError(t, d.Write(&b, sync))
	}
	assert.Equal(t, 2, d.Unsynced())
	assert.Equal(t, "a=x", keys(t, d.PowerLoss(0, FilesLost), "a", "z"))
	assert.Equal(t, "a=x b=x", keys(t, d.PowerLoss(1, FilesLost), "a", "z"))
	assert.Equal(t, "a=x b=x c=x", keys(t, d.Copy(), "a", "z"))
}

func TestFiles(t *testing.T) {
	engines(t, func(t *testing.T, db kv.DB) {
		names, err := db.ListFiles("new")
		require.NoError(t, err)
		require.Empty(t, names)
		_, err = db.OpenFile("new/a")
		require.ErrorIs(t, err, fs.ErrNotExist)
		require.NoError(t, db.RemoveFiles("new/a"))

		write := func(name, text string) {
			w, err := db.CreateFile(name, int64(len(text)))
			require.NoError(t, err)
			_, err = w.WriteAt([]byte(text[1:]), 1) // in any order
			require.NoError(t, err)
			_, err = w.WriteAt([]byte(text[:1]), 0)
			require.NoError(t, err)
			require.NoError(t, w.Sync())
			require.NoError(t, w.Close())
		}
		write("new/a", "something longer")
		write("new/a", "short")
		write("new/b", "other")
		names, err = db.ListFiles("new")
		require.NoError(t, err)
		require.ElementsMatch(t, []string{"new/a", "new/b"}, names)

		r, err := db.OpenFile("new/a")
		require.NoError(t, err)
		require.EqualValues(t, 5, r.Size())
		b := make([]byte, 3)
		n, err := r.ReadAt(b, 1)
		require.NoError(t, err)
		require.Equal(t, "hor", string(b[:n]))
		n, err = r.ReadAt(b, 3)
		require.ErrorIs(t, err, io.EOF)
		require.Equal(t, "rt", string(b[:n]))
		_, err = r.ReadAt(b, 9)
		require.ErrorIs(t, err, io.EOF)
		require.NoError(t, r.Close())
		require.NoError(t, db.RemoveFiles("new/a"))
		_, err = db.OpenFile("new/a")
		require.ErrorIs(t, err, fs.ErrNotExist)
	})
}

func TestPowerLossOfFiles(t *testing.T) {
	d := NewDisk()
	w, err := d.CreateFile("f/synced", 0)
	require.NoError(t, err)
	_, err = w.WriteAt([]byte("abcd"), 0)
	require.NoError(t, err)
	require.NoError(t, w.Sync())
	_, err = w.WriteAt([]byte("efgh"), 4)
	require.NoError(t, err)
	other, err := d.CreateFile("f/other", 0)
	require.NoError(t, err)
	_, err = other.WriteAt([]byte("1234"), 0)
	require.NoError(t, err)
	require.Error(t, d.RemoveFiles("f/other"), "it is open")
	for fate, want := range map[Fate]map[string]string{
		FilesLost: {"f/synced": "abcd"},
		FilesCut:  {"f/synced": "abcd", "f/other": "12"},
		FilesKept: {"f/synced": "abcdefgh", "f/other": "1234"},
	} {
		left := d.PowerLoss(0, fate)
		got := map[string]string{}
		left.Damage(func(name, v []byte) []byte { got[string(name)] = string(v); return v })
		assert.Equal(t, want, got)
		require.NoError(t, left.RemoveFiles("f/other"), "nobody has it open after a loss of power")
	}
	require.NoError(t, w.Close())
	require.NoError(t, other.Close())
	require.NoError(t, d.RemoveFiles("f/other"))
	require.Zero(t, d.OpenFiles())
}

func TestFaultyFiles(t *testing.T) {
	boom := errors.New("boom")
	f := &Faulty{DB: NewDisk()}
	f.FailNth(Open, 1, boom)
	_, err := f.CreateFile("f/a", 0)
	require.ErrorIs(t, err, boom)
	w, err := f.CreateFile("f/a", 0)
	require.NoError(t, err)
	f.FailNth(Write, 1, boom)
	_, err = w.WriteAt([]byte("x"), 0)
	require.ErrorIs(t, err, boom)
	f.FailNth(Write, 1, fmt.Errorf("torn: %w", io.ErrShortWrite))
	n, err := w.WriteAt([]byte("abcd"), 0)
	require.ErrorIs(t, err, io.ErrShortWrite)
	require.Equal(t, 2, n)
	f.FailNth(Sync, 1, boom)
	require.ErrorIs(t, w.Sync(), boom)
	require.NoError(t, w.Close())
	f.FailNth(Open, 1, boom)
	_, err = f.OpenFile("f/a")
	require.ErrorIs(t, err, boom)
	f.FailNth(Read, 1, boom)
	r, err := f.OpenFile("f/a")
	require.NoError(t, err)
	_, err = r.ReadAt(make([]byte, 1), 0)
	require.ErrorIs(t, err, boom)
	f.FailNth(Read, 1, io.ErrUnexpectedEOF)
	b := make([]byte, 2)
	n, err = r.ReadAt(b, 0)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.Equal(t, 1, n)
	require.EqualValues(t, 2, r.Size(), "half of four bytes")
	_, err = r.ReadAt(b, 0)
	require.NoError(t, err)
	require.Equal(t, "ab", string(b))
	require.NoError(t, r.Close())
	f.FailNth(Write, 1, boom)
	require.ErrorIs(t, f.RemoveFiles("f/a"), boom)
}
