// This file reads blocks without waiting for the disk.

package spill_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/seed-7440039f/frontier/storage"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// peeks reports whether the file system of a folder says that a read must wait.
func peeks(t *testing.T, dir string) bool {
	name := filepath.Join(dir, "probe")
	require.NoError(t, os.WriteFile(name, []byte("x"), 0o600))
	f, err := os.Open(name)
	require.NoError(t, err)
	defer f.Close()
	n, err := unix.Preadv2(int(f.Fd()), [][]byte{make([]byte, 1)}, 0, unix.RWF_NOWAIT)
	return n == 1 && err == nil
}

// What was packed, or read once since the store is in use, is in the page cache and can be had
// without the engine; the rest cannot. What Peek gives is what Load gives.
func TestPeek(t *testing.T) {
	dir := t.TempDir()
	if !peeks(t, t.TempDir()) {
		t.Skip("the file system has no reads that do not wait")
	}
	s := open(t, dir, small)
	require.NoError(t, s.Recover(t.Context(), newReplay()))
	var runs []storage.Run
	for h := range 1000 { // more blocks than are kept decompressed
		r := storage.Run{Queue: storage.Queue{Host: fmt.Sprintf("h%d.example", h), Priority: 1}}
		for i := range 20 {
			r.Records = append(r.Records, storage.Record{Seq: uint64(h*100 + i + 1), Body: fmt.Appendf(nil, "http://h%d.example/%d/%064d", h, i, h^i)})
		}
		runs = append(runs, r)
	}
	byRun, err := s.Pack(1, runs)
	require.NoError(t, err)
	var parts []storage.Part
	blocks := map[uint32]bool{}
	for _, ps := range byRun {
		for _, p := range ps {
			parts, blocks[p.Block] = append(parts, p), true
		}
	}
	require.Greater(t, len(blocks), 256)
	read := func(p storage.Part, with func(storage.Part, uint32, func(int, storage.Record)) bool) (got []string, ok bool) {
		ok = with(p, 1<<p.Count-1, func(i int, r storage.Record) { got = append(got, fmt.Sprint(i, r.Seq, string(r.Body))) })
		return got, ok
	}
	load := func(p storage.Part, want uint32, fn func(int, storage.Record)) bool {
		return s.Load(p, want, fn) == nil
	}
	all := func() (peeked int) {
		for _, p := range parts {
			got, ok := read(p, s.Peek)
			want, loads := read(p, load)
			require.True(t, loads)
			if ok {
				require.Equal(t, want, got)
				peeked++
			}
		}
		return peeked
	}
	require.Equal(t, len(parts), all(), "it was just written")
	require.NoError(t, s.Checkpoint(&storage.Checkpoint{Gen: 1}))
	was := s.Footprint()
	require.NoError(t, s.Release())
	_, ok := read(parts[0], s.Peek)
	require.False(t, ok, "the store is not in use")
	require.NoError(t, s.Recover(t.Context(), newReplay()))
	require.Less(t, s.Footprint(), was, "the places take memory")
	peeked := all()
	require.Less(t, peeked, len(parts), "where the blocks lie is not known")
	require.Greater(t, peeked, len(parts)/2, "but for the first part of each")
	require.Equal(t, len(parts), all())
}
