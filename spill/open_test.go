// This file opens real folders: good ones, wrong ones, and those of a process
// that was killed.

package spill_test

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/dgraph-io/badger/v4"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/storage"
	"github.com/stretchr/testify/require"
)

// small keeps the tests' mapped files small.
var small = spill.Options{MemoryBudget: 64 << 20, DiskReserve: 1}

func open(t testing.TB, dir string, o spill.Options) *spill.Store {
	t.Helper()
	s, err := spill.Open(dir, o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func TestFolderKeepsEverything(t *testing.T) {
	for _, sync := range []bool{false, true} {
		t.Run(fmt.Sprintf("sync=%t", sync), func(t *testing.T) {
			o := small
			o.Sync = sync
			dir := filepath.Join(t.TempDir(), "new", "folder")
			s := open(t, dir, o)
			m := start(t, 2, s)
			for range 3 {
				script(m, func(step string, err error) { require.NoError(t, err, step) })
				require.NoError(t, s.Release())
				require.NoError(t, m.holds(s), "same store")
				require.NoError(t, s.Close())
				s = open(t, dir, o)
				m.reboot(t, s)
			}
			require.NoError(t, m.commit(2000, 0)) // large enough for the value log
			require.NoError(t, s.Close())
			require.NoError(t, m.holds(open(t, dir, o)))
		})
	}
}

func TestFolderInUse(t *testing.T) {
	dir := t.TempDir()
	open(t, dir, small)
	_, err := spill.Open(dir, small)
	require.ErrorIs(t, err, storage.ErrInUse)
	require.ErrorContains(t, err, dir)
	require.ErrorContains(t, err, "in this process")
	require.NotContains(t, err.Error(), "nother process is using")
}

func TestWrongFolders(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, []byte("x"), 0o600))
	_, err := spill.Open(file, small)
	require.ErrorContains(t, err, file+" is not a folder")

	_, err = spill.Open(filepath.Dir(file), small)
	require.ErrorContains(t, err, "has no MANIFEST")
	kept, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "x", string(kept))

	_, err = spill.Open("", small)
	require.Error(t, err)

	if runtime.GOOS != "windows" && os.Getuid() != 0 {
		dir := t.TempDir()
		require.NoError(t, os.Chmod(dir, 0o500))
		_, err = spill.Open(dir, small)
		require.ErrorContains(t, err, dir+" cannot be written")
	}
}

func TestForeignBadger(t *testing.T) {
	dir := t.TempDir()
	edit(t, dir, "theirs", []byte("x"))
	_, err := spill.Open(dir, small)
	require.ErrorContains(t, err, "something else")
}

func TestNewerVersionIsRefused(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, open(t, dir, small).Close())
	edit(t, dir, "\xff\xff\xff\xffV", []byte{spill.Version + 7})
	_, err := spill.Open(dir, small)
	require.ErrorIs(t, err, storage.ErrVersion)
	require.ErrorContains(t, err, "version "+strconv.Itoa(spill.Version+7))
	require.ErrorContains(t, err, "knows "+strconv.Itoa(spill.Version))
}

// edit writes a key behind the store's back.
func edit(t *testing.T, dir, key string, value []byte) {
	t.Helper()
	db, err := badger.Open(badger.DefaultOptions(dir).WithLogger(nil).WithMemTableSize(1 << 20).WithValueLogFileSize(1 << 20).WithValueThreshold(1 << 10))
	require.NoError(t, err)
	require.NoError(t, db.Update(func(txn *badger.Txn) error { return txn.Set([]byte(key), value) }))
	require.NoError(t, db.Close())
}

func TestFullVolume(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, small)
	m := start(t, 2, s)
	require.NoError(t, m.commit(500, 0))
	require.NoError(t, s.Close())

	full := small
	full.DiskReserve = 1 << 60
	s = open(t, dir, full)
	m.reboot(t, s)
	require.ErrorIs(t, m.commit(500, 0), syscall.ENOSPC)
	require.NoError(t, m.commit(0, 10), "finishing needs no space")
	require.NoError(t, s.Close())
	require.NoError(t, m.holds(open(t, dir, small)))
}

// childDir names the folder in which a child process of the test works until it is killed.
const childDir = "SPILL_TEST_CHILD"

// A process that is killed leaves what it had committed.
func TestKill(t *testing.T) {
	if dir := os.Getenv(childDir); dir != "" {
		child(t, dir)
		return
	}
	dir := t.TempDir()
	for round := range 3 {
		cmd := exec.Command(os.Args[0], "-test.run=^TestKill$")
		cmd.Env = append(os.Environ(), childDir+"="+dir)
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		acked, lines := 0, bufio.NewScanner(out)
		for acked < (round+1)*400 && lines.Scan() {
			if n, ok := strings.CutPrefix(lines.Text(), "acked "); ok {
				acked, err = strconv.Atoi(n)
				require.NoError(t, err)
			}
		}
		require.NoError(t, cmd.Process.Kill())
		_ = cmd.Wait() // killed: it has nothing more to say

		left := listing(t, dir)
		view, err := spill.OpenView(dir, small)
		require.NoError(t, err)
		seen, lastSeen := everything(t, view)
		require.NoError(t, view.Close())
		require.Equal(t, left, listing(t, dir), "a look has changed it")

		s := open(t, dir, small)
		seqs, last := everything(t, s)
		require.Equal(t, seqs, seen)
		require.Equal(t, last, lastSeen)
		require.GreaterOrEqual(t, last, acked)
		for seq := 1; seq <= acked; seq++ {
			require.Contains(t, seqs, uint64(seq), "round %d", round)
		}
		require.NoError(t, s.Close())
	}
}

// child commits one record after the other, moving them now and then, and reports
// what it has committed.
func child(t *testing.T, dir string) {
	s := open(t, dir, small)
	_, last := everything(t, s)
	var fresh []storage.Record
	var marks []storage.Mark
	require.NoError(t, s.Release())
	r := newReplay()
	require.NoError(t, s.Recover(t.Context(), r))
	var id uint64
	for _, b := range r.batches {
		id = b.ID
		for _, a := range b.Admit {
			fresh, marks = append(fresh, a.Record), append(marks, a.Mark)
		}
	}
	q := storage.Queue{Host: "h.example", Priority: 1}
	for gen, n := uint32(1), last+1; ; n++ {
		id++
		rec := storage.Record{Seq: uint64(n), Body: []byte(strings.Repeat("body", n%3000))}
		require.NoError(t, s.Commit(&storage.Batch{ID: id, Admit: []storage.Admission{{Queue: q, Record: rec, Mark: markOf(rec.Seq), HasMark: true}}}))
		fresh, marks = append(fresh, rec), append(marks, markOf(rec.Seq))
		fmt.Println("acked", n)
		if n%50 == 0 {
			_, err := s.Pack(gen, []storage.Run{{Queue: q, Records: fresh}})
			require.NoError(t, err)
			require.NoError(t, s.PackMarks(gen, marks))
			require.NoError(t, s.Checkpoint(&storage.Checkpoint{Gen: gen, Through: id}))
			gen++
			fresh, marks = fresh[:0], marks[:0]
		}
	}
}

func markOf(seq uint64) (m storage.Mark) {
	binary.BigEndian.PutUint64(m[:], seq*0x9e3779b97f4a7c15)
	binary.BigEndian.PutUint32(m[8:], uint32(seq))
	return m
}

// everything returns the sequence numbers in a store, and the highest. The marks
// of those in blocks are known, the others' are not.
func everything(t *testing.T, s *spill.Store) (map[uint64]bool, int) {
	t.Helper()
	r := newReplay()
	require.NoError(t, s.Recover(t.Context(), r))
	seqs, last := map[uint64]bool{}, uint64(0)
	add := func(seq uint64, inBlock bool) {
		require.False(t, seqs[seq], "record %d is there twice", seq)
		seqs[seq], last = true, max(last, seq)
		known := []bool{false}
		require.NoError(t, s.Known([]storage.Mark{markOf(seq)}, known))
		require.Equal(t, inBlock, known[0], "record %d is known", seq)
	}
	for _, p := range r.parts {
		require.NoError(t, s.Load(p, 1<<p.Count-1, func(_ int, rec storage.Record) { add(rec.Seq, true) }))
	}
	for _, b := range r.batches {
		for _, a := range b.Admit {
			add(a.Seq, false)
		}
	}
	return seqs, int(last)
}
