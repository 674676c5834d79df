// This file pins the layout of runs, looks marks up in them, and damages them.

package marks

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"testing"

	"github.com/seed-7440039f/frontier/spill/internal/kv"
	"github.com/seed-7440039f/frontier/spill/internal/kvtest"
	"github.com/seed-7440039f/frontier/spill/internal/wire"
	"github.com/seed-7440039f/frontier/storage"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

const (
	goldenRunHead   = "f377de4f000000070000000000000154000e805dc951df8de5b4fe410021184385ab57ebd24f976e"
	goldenRunIndex  = "000e805dc951df8d535b9617be986b04aa98f1d904f118f8"
	goldenRunFooter = "6d61726b73000001000000070000000300000000000003e800000000000000240000000000003000f45c361e486e3ba57f0c91ad5d9b0d57"
	goldenRunSum    = 0xd612c62e
)

// writtenRun makes a run of ms, which it sorts, on db.
func writtenRun(t require.TestingT, db kv.DB, id uint32, ms []storage.Mark) *Run {
	w, err := Create(db, id, uint64(len(ms)))
	require.NoError(t, err)
	require.NoError(t, w.AddAll(ms))
	ref, err := w.Finish(0)
	require.NoError(t, err)
	r, err := Open(db, ref, 1)
	require.NoError(t, err)
	return r
}

// contentOf returns the bytes of a file.
func contentOf(t require.TestingT, db kv.DB, name string) []byte {
	f, err := db.OpenFile(name)
	require.NoError(t, err)
	b := make([]byte, f.Size())
	_, err = f.ReadAt(b, 0)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	return b
}

// uniform returns n different, uniformly distributed marks, like those of a frontier.
func uniform(seed uint32, n int) []storage.Mark {
	ms := make([]storage.Mark, n)
	for i := range ms {
		h := uint64(seed)<<32 | uint64(i)
		for j := range ms[i] {
			h ^= h >> 29
			h *= 0xbf58476d1ce4e5b9
			h ^= h >> 32
			ms[i][j] = byte(h)
		}
	}
	return ms
}

// A change of these bytes needs a new Version and a way to read the old ones.
func TestRunFormatIsPinned(t *testing.T) {
	db := kvtest.NewDisk()
	ms := uniform(1, 1000)
	r := writtenRun(t, db, 7, ms)
	require.NoError(t, r.f.Close())
	assert.Equal(t, "marks/00000007", r.Name())
	b := contentOf(t, db, r.Name())
	assert.Equal(t, goldenRunHead, hex.EncodeToString(b[:40]), "first page")
	assert.Equal(t, goldenRunIndex, hex.EncodeToString(b[len(b)-footerLen-3*IndexEntry:len(b)-footerLen]), "index")
	assert.Equal(t, goldenRunFooter, hex.EncodeToString(b[len(b)-footerLen:]), "footer")
	assert.EqualValues(t, goldenRunSum, crc32.Checksum(b, wire.Castagnoli), "whole file")
}

// drawMarks draws marks, many of which share their first bytes.
func drawMarks(rt *rapid.T) []storage.Mark {
	if rapid.Bool().Draw(rt, "uniform") {
		return uniform(rapid.Uint32().Draw(rt, "seed"), rapid.IntRange(1, 3000).Draw(rt, "n"))
	}
	ms := make([]storage.Mark, rapid.IntRange(1, 2000).Draw(rt, "n"))
	heads, tails := rapid.IntRange(1, 5).Draw(rt, "heads"), rapid.IntRange(1, 1000).Draw(rt, "tails")
	for i := range ms {
		ms[i][0] = byte(i % heads * 60)
		ms[i][10], ms[i][11] = byte(i%tails>>8), byte(i%tails)
	}
	return ms
}

// What a run says of its marks, and of others, is what a set says; folding its
// filter changes nothing.
func TestRunKnowsItsMarks(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		ms := drawMarks(rt)
		in := map[storage.Mark]bool{}
		for _, m := range ms {
			in[m] = true
		}
		db := kvtest.NewDisk()
		r := writtenRun(rt, db, 1, slices.Clone(ms))
		defer r.f.Close()
		require.EqualValues(rt, len(in), r.Count)
		var err error
		r.Filter, err = r.loadFilter(rapid.IntRange(1, MaxFold).Draw(rt, "fold"))
		require.NoError(rt, err)

		c := newCursor(r.File)
		var before storage.Mark
		n := 0
		for {
			page, err := c.fill()
			require.NoError(rt, err)
			if page == nil {
				break
			}
			for ; len(page) > 0; page = page[markLen:] {
				m := storage.Mark(page[:markLen])
				require.True(rt, in[m])
				require.True(rt, n == 0 || bytes.Compare(before[:], m[:]) < 0)
				before = m
				n++
			}
		}
		require.Equal(rt, len(in), n)

		ask := slices.Clone(ms)
		for i, m := range ms {
			m[i%markLen] ^= byte(1 << (i % 8))
			ask = append(ask, m)
		}
		known := make([]bool, len(ask))
		require.NoError(rt, new(inquiry).ask([]*Run{r}, ask, known))
		for i, m := range ask {
			require.Equal(rt, in[m], known[i], "mark %x", m)
		}
	})
}

// Filters let through what is said of them, folded or not.
func TestFilterIsWorthItsMemory(t *testing.T) {
	const n = 200_000
	r := writtenRun(t, kvtest.NewDisk(), 1, uniform(1, n))
	defer r.f.Close()
	others := uniform(2, n)
	for fold := 1; fold <= MaxFold; fold++ {
		f, err := r.loadFilter(fold)
		require.NoError(t, err)
		through := 0
		for _, m := range others {
			if f.has(splitMark(m[:])) {
				through++
			}
		}
		assert.InEpsilon(t, float64(passes[fold])/1e6, float64(through)/n, 0.15, "fold %d", fold)
		f.free()
	}
}

// readWhole reads all marks of a run.
func readWhole(db kv.DB, ref Ref) error {
	r, err := Open(db, ref, 1)
	if err != nil {
		return err
	}
	defer r.f.Close()
	c := newCursor(r.File)
	for {
		if page, err := c.fill(); page == nil {
			return err
		}
	}
}

// No flipped bit, lost end or exchanged page of a run goes unnoticed, and neither
// does another run in its place.
func TestDamagedRunIsReported(t *testing.T) {
	db := kvtest.NewDisk()
	r := writtenRun(t, db, 3, uniform(1, 1000))
	require.NoError(t, r.f.Close())
	ref := r.Ref
	good := contentOf(t, db, r.Name())
	damaged := func(what string, fn func(b []byte) []byte) {
		t.Helper()
		db.Damage(func(_, _ []byte) []byte { return fn(bytes.Clone(good)) })
		var ce *storage.CorruptError
		require.ErrorAs(t, readWhole(db, ref), &ce, what)
		assert.Equal(t, r.Name(), string(ce.Key))
	}
	step := max(1, len(good)/3000)
	for at := 0; at < len(good); at += step {
		damaged(fmt.Sprint("flipped at ", at), func(b []byte) []byte { b[at] ^= 1 << (at % 8); return b })
	}
	for at := len(good) - footerLen; at < len(good); at++ {
		damaged(fmt.Sprint("flipped at ", at), func(b []byte) []byte { b[at] ^= 1; return b })
	}
	for _, n := range []int{0, 1, footerLen - 1, footerLen, PageSize, len(good) - 1} {
		damaged(fmt.Sprint("cut to ", n), func(b []byte) []byte { return b[:n] })
	}
	damaged("zeros", func(b []byte) []byte { clear(b); return b })
	damaged("exchanged pages", func(b []byte) []byte {
		copy(b, good[PageSize:2*PageSize])
		copy(b[PageSize:], good[:PageSize])
		return b
	})
	damaged("gone", func(b []byte) []byte { return nil })

	db.Damage(func(_, _ []byte) []byte { return nil })
	other := writtenRun(t, db, 3, uniform(2, 1000)) // of the same id and size
	require.NoError(t, other.f.Close())
	require.NoError(t, readWhole(db, other.Ref))
	var ce *storage.CorruptError
	require.ErrorAs(t, readWhole(db, ref), &ce)
	require.ErrorIs(t, ce, errForeign)
}

// Whatever a file says it holds, no more is allocated than fits into it.
func FuzzRun(f *testing.F) {
	db := kvtest.NewDisk()
	r := writtenRun(f, db, 1, uniform(1, 400))
	good := contentOf(f, db, r.Name())
	f.Add(good[len(good)-footerLen+8:len(good)-4], uint16(len(good)))
	f.Fuzz(func(t *testing.T, says []byte, size uint16) {
		foot := append([]byte(runMagic), wire.Version)
		foot = append(append(foot, says...), make([]byte, footerLen)...)[:footerLen-4]
		sum := crc32.Checksum(foot, wire.Castagnoli)
		foot = binary.BigEndian.AppendUint32(foot, sum)
		b := append(bytes.Clone(good), make([]byte, 1<<16)...)[:max(int(size), footerLen)]
		copy(b[len(b)-footerLen:], foot)
		db := kvtest.NewDisk()
		w, err := db.CreateFile(NameOf(1), 0)
		require.NoError(t, err)
		_, err = w.WriteAt(b, 0)
		require.NoError(t, err)
		require.NoError(t, w.Close())
		said, _, err := readFooter(foot, int64(len(b)))
		if err == nil {
			require.LessOrEqual(t, said.IndexAt(), uint64(len(b)))
			require.LessOrEqual(t, uint64(said.pages)*PageSize, uint64(len(b)))
		}
		err = readWhole(db, Ref{ID: said.ID, Count: said.marks, Sum: sum})
		var ce *storage.CorruptError
		require.True(t, err == nil || errors.As(err, &ce), "%v", err)
	})
}

func TestSortMarks(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		ms := drawMarks(rt)
		want := slices.Clone(ms)
		slices.SortFunc(want, func(a, b storage.Mark) int { return slices.Compare(a[:], b[:]) })
		sortMarks(ms)
		require.Equal(rt, want, ms)
	})
}
