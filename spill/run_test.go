// This file pins the layout of runs, looks marks up in them, and damages them.

package spill

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/spill/internal/kv"
)

// writtenRun makes a run of ms, which it sorts, on db.
func writtenRun(t require.TestingT, db kv.DB, id uint32, ms []frontier.Mark) *run {
	s := &Store{db: db}
	s.marks.lastID.Store(id - 1)
	r, err := s.writeRun(ms)
	require.NoError(t, err)
	return r
}

// content returns the bytes of a file.
func content(t require.TestingT, db kv.DB, name string) []byte {
	f, err := db.OpenFile(name)
	require.NoError(t, err)
	b := make([]byte, f.Size())
	_, err = f.ReadAt(b, 0)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	return b
}

// spread returns n different marks that are uniform, like those of a frontier.
func spread(seed uint32, n int) []frontier.Mark {
	ms := make([]frontier.Mark, n)
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
	db := kv.NewDisk()
	ms := spread(1, 1000)
	r := writtenRun(t, db, 7, ms)
	require.NoError(t, r.f.Close())
	assert.Equal(t, "marks/00000007", r.name())
	b := content(t, db, r.name())
	assert.Equal(t, goldenRunHead, hex.EncodeToString(b[:40]), "first page")
	assert.Equal(t, goldenRunIndex, hex.EncodeToString(b[len(b)-footerLen-3*indexEntry:len(b)-footerLen]), "index")
	assert.Equal(t, goldenRunFooter, hex.EncodeToString(b[len(b)-footerLen:]), "footer")
	assert.EqualValues(t, goldenRunSum, crc32.Checksum(b, castagnoli), "whole file")
}

// drawMarks draws marks many of which share their first bytes.
func drawMarks(rt *rapid.T) []frontier.Mark {
	if rapid.Bool().Draw(rt, "uniform") {
		return spread(rapid.Uint32().Draw(rt, "seed"), rapid.IntRange(1, 3000).Draw(rt, "n"))
	}
	ms := make([]frontier.Mark, rapid.IntRange(1, 2000).Draw(rt, "n"))
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
		in := map[frontier.Mark]bool{}
		for _, m := range ms {
			in[m] = true
		}
		db := kv.NewDisk()
		r := writtenRun(rt, db, 1, slices.Clone(ms))
		defer r.f.Close()
		require.EqualValues(rt, len(in), r.count)
		var err error
		r.filter, err = r.loadFilter(rapid.IntRange(1, maxFold).Draw(rt, "fold"))
		require.NoError(rt, err)

		c := newCursor(r.runFile)
		var before frontier.Mark
		n := 0
		for {
			page, err := c.fill()
			require.NoError(rt, err)
			if page == nil {
				break
			}
			for ; len(page) > 0; page = page[markLen:] {
				m := frontier.Mark(page[:markLen])
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
		require.NoError(rt, new(inquiry).ask([]*run{r}, ask, known))
		for i, m := range ask {
			require.Equal(rt, in[m], known[i], "mark %x", m)
		}
	})
}

// Filters let through what is said of them, folded or not.
func TestFilterIsWorthItsMemory(t *testing.T) {
	const n = 200_000
	r := writtenRun(t, kv.NewDisk(), 1, spread(1, n))
	defer r.f.Close()
	others := spread(2, n)
	for fold := 1; fold <= maxFold; fold++ {
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

// readWhole reads all that a run has.
func readWhole(db kv.DB, ref runRef) error {
	r, err := openRun(db, ref, 1)
	if err != nil {
		return err
	}
	defer r.f.Close()
	c := newCursor(r.runFile)
	for {
		if page, err := c.fill(); page == nil {
			return err
		}
	}
}

// No flipped bit, lost end or exchanged page of a run goes unnoticed, and neither
// does another run in its place.
func TestDamagedRunIsReported(t *testing.T) {
	db := kv.NewDisk()
	r := writtenRun(t, db, 3, spread(1, 1000))
	require.NoError(t, r.f.Close())
	ref := r.runRef
	good := content(t, db, r.name())
	damaged := func(what string, fn func(b []byte) []byte) {
		t.Helper()
		db.Damage(func(_, _ []byte) []byte { return fn(bytes.Clone(good)) })
		var ce *frontier.CorruptError
		require.ErrorAs(t, readWhole(db, ref), &ce, what)
		assert.Equal(t, r.name(), string(ce.Key))
	}
	step := max(1, len(good)/3000)
	for at := 0; at < len(good); at += step {
		damaged(fmt.Sprint("flipped at ", at), func(b []byte) []byte { b[at] ^= 1 << (at % 8); return b })
	}
	for at := len(good) - footerLen; at < len(good); at++ {
		damaged(fmt.Sprint("flipped at ", at), func(b []byte) []byte { b[at] ^= 1; return b })
	}
	for _, n := range []int{0, 1, footerLen - 1, footerLen, pageSize, len(good) - 1} {
		damaged(fmt.Sprint("cut to ", n), func(b []byte) []byte { return b[:n] })
	}
	damaged("zeros", func(b []byte) []byte { clear(b); return b })
	damaged("exchanged pages", func(b []byte) []byte {
		copy(b, good[pageSize:2*pageSize])
		copy(b[pageSize:], good[:pageSize])
		return b
	})
	damaged("gone", func(b []byte) []byte { return nil })

	db.Damage(func(_, _ []byte) []byte { return nil })
	other := writtenRun(t, db, 3, spread(2, 1000)) // of the same id and size
	require.NoError(t, other.f.Close())
	require.NoError(t, readWhole(db, other.runRef))
	var ce *frontier.CorruptError
	require.ErrorAs(t, readWhole(db, ref), &ce)
	require.ErrorIs(t, ce, errForeign)
}

// Whatever a file says it holds, no more is allocated than fits into it.
func FuzzRun(f *testing.F) {
	db := kv.NewDisk()
	r := writtenRun(f, db, 1, spread(1, 400))
	good := content(f, db, r.name())
	f.Add(good[len(good)-footerLen+8:len(good)-4], uint16(len(good)))
	f.Fuzz(func(t *testing.T, says []byte, size uint16) {
		foot := append([]byte(runMagic), format)
		foot = append(append(foot, says...), make([]byte, footerLen)...)[:footerLen-4]
		sum := crc32.Checksum(foot, castagnoli)
		foot = binary.BigEndian.AppendUint32(foot, sum)
		b := append(bytes.Clone(good), make([]byte, 1<<16)...)[:max(int(size), footerLen)]
		copy(b[len(b)-footerLen:], foot)
		db := kv.NewDisk()
		w, err := db.CreateFile(runName(1), 0)
		require.NoError(t, err)
		_, err = w.WriteAt(b, 0)
		require.NoError(t, err)
		require.NoError(t, w.Close())
		said, _, err := readFooter(foot, int64(len(b)))
		if err == nil {
			require.LessOrEqual(t, said.indexAt(), uint64(len(b)))
			require.LessOrEqual(t, uint64(said.pages)*pageSize, uint64(len(b)))
		}
		err = readWhole(db, runRef{id: said.id, count: said.marks, sum: sum})
		var ce *frontier.CorruptError
		require.True(t, err == nil || errors.As(err, &ce), "%v", err)
	})
}

// WriteRun writes a file of marks that no state names.
func WriteRun(t *testing.T, dir string, id uint32, ms []frontier.Mark) {
	t.Helper()
	disk := kv.NewDisk()
	sortMarks(ms)
	w, err := newRunWriter(disk, id, uint64(len(ms)))
	require.NoError(t, err)
	for i := range ms {
		require.NoError(t, w.add(splitMark(ms[i][:])))
	}
	_, err = w.finish(1)
	require.NoError(t, err)
	f, err := disk.OpenFile(runName(id))
	require.NoError(t, err)
	b := make([]byte, f.Size())
	_, err = f.ReadAt(b, 0)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.NoError(t, os.WriteFile(filepath.Join(dir, filepath.FromSlash(runName(id))), b, 0o666))
}
