// This file takes from badger what it needs: descriptors, space, a folder that can be
// written, and memory behind files; and looks that calls fail, and nothing else does.

package kv

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dgraph-io/badger/v4"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier/storage"
	"golang.org/x/sys/unix"
)

// pressed is a DB that begins another table after a few writes.
func pressed(t *testing.T, dir string) *Badger {
	t.Helper()
	d, err := OpenBadger(dir, Config{Memory: 64 << 20, Small: true, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	return d
}

// fillTable writes keys until there are n more tables, or a write fails. It returns how many were
// written.
func fillTable(d *Badger, from, tables int) (to int, err error) {
	d.turn.Lock()
	end := d.logs.logs[len(d.logs.logs)-1].id + tables
	d.turn.Unlock()
	for n := from; ; n++ {
		var b Batch
		b.Set(fmt.Appendf(nil, "key %06d", n), make([]byte, 300))
		if err := d.Write(&b, false); err != nil {
			return n, err
		}
		d.turn.Lock()
		there := d.logs.logs[len(d.logs.logs)-1].id >= end
		d.turn.Unlock()
		if there {
			return n + 1, nil
		}
	}
}

func requireKeys(t *testing.T, d *Badger, n int) {
	t.Helper()
	for i := range n {
		found, err := d.Get(fmt.Appendf(nil, "key %06d", i), func([]byte) error { return nil })
		require.NoError(t, err)
		require.True(t, found, "key %d of %d", i, n)
	}
}

// takeFiles takes all descriptors of the process except the given number.
func takeFiles(t *testing.T, but int) (give func()) {
	t.Helper()
	var old unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &old))
	limit := old
	limit.Cur = 256
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: limit.Cur, Max: limit.Max}))
	var held []*os.File
	for {
		f, err := os.Open("/dev/null")
		if err != nil {
			require.ErrorIs(t, err, syscall.EMFILE)
			break
		}
		held = append(held, f)
	}
	for range but {
		require.NoError(t, held[0].Close())
		held = held[1:]
	}
	return func() {
		for _, f := range held {
			require.NoError(t, f.Close())
		}
		held = nil
		require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: old.Cur, Max: old.Max}))
	}
}

// Without descriptors writes fail where badger would need some, and continue when there are some
// again.
func TestWithoutDescriptors(t *testing.T) {
	dir := t.TempDir()
	d := pressed(t, dir)
	n := 0
	for range 3 {
		give := takeFiles(t, 0)
		var err error
		for range 20 {
			if n, err = fillTable(d, n, 1); err != nil {
				break
			}
		}
		give()
		require.ErrorIs(t, err, syscall.EMFILE)
		require.Nil(t, d.down.Load())
		n, err = fillTable(d, n, 1)
		require.NoError(t, err)
	}
	requireKeys(t, d, n)
	require.NoError(t, d.Close())
	d = pressed(t, dir)
	requireKeys(t, d, n)
	require.NoError(t, d.Close())

	give := takeFiles(t, 12)
	_, err := OpenBadger(dir, Config{Memory: 64 << 20, Small: true, Logger: slog.New(slog.DiscardHandler)})
	give()
	require.ErrorIs(t, err, syscall.EMFILE, "opening takes more")
}

// A folder in which nothing can be made any more: calls fail, and Close ends.
func TestFolderThatCannotBeWritten(t *testing.T) {
	dir := t.TempDir()
	if out, err := exec.Command("chattr", "+i", dir).CombinedOutput(); err != nil {
		t.Skipf("no folder can be made immutable here; it takes root: %s", out)
	}
	immutable := func(how string) { require.NoError(t, exec.Command("chattr", how, dir).Run()) }
	immutable("-i")
	defer immutable("-i")
	d := pressed(t, dir)
	n, err := fillTable(d, 0, 2)
	require.NoError(t, err)
	immutable("+i")
	begun := time.Now()
	for range 50 {
		var err error
		if n, err = fillTable(d, n, 1); err != nil {
			break
		}
	}
	_, err = fillTable(d, n, 50)
	require.ErrorIs(t, err, syscall.EPERM)
	require.Less(t, time.Since(begun), time.Minute)
	require.Nil(t, d.down.Load())
	immutable("-i")
	require.Eventually(t, func() bool { // badger tries again each second
		n, err = fillTable(d, n, 2)
		return err == nil
	}, time.Minute, 100*time.Millisecond)
	requireKeys(t, d, n)
	require.NoError(t, d.Close())
	d = pressed(t, dir)
	requireKeys(t, d, n)
	require.NoError(t, d.Close())
}

// After an internal error of badger every call fails, even concurrent reads, and what was written
// is there when the folder is opened again.
func TestNothingTouchesBadgerAfterItFailed(t *testing.T) {
	dir := t.TempDir()
	d := pressed(t, dir)
	n, err := fillTable(d, 0, 3)
	require.NoError(t, err)
	d.turn.Lock()
	next := d.logs.logs[len(d.logs.logs)-1].id + 1
	require.NoError(t, d.logs.close())
	// A folder in the place of the next log: badger cannot make it.
	require.NoError(t, os.Mkdir(filepath.Join(dir, keyLogName(next)), 0o700))
	d.turn.Unlock()
	ctx, stop := context.WithCancel(t.Context())
	read := make(chan error, 1)
	go func() {
		for ctx.Err() == nil {
			if _, err := d.Get([]byte("key 000000"), func([]byte) error { return nil }); err != nil {
				read <- err
				return
			}
		}
		read <- nil
	}()
	var down *downError
	for {
		var b Batch
		b.Set(fmt.Appendf(nil, "key %06d", n), make([]byte, 300))
		txn := d.db.NewTransaction(true)
		require.NoError(t, txn.Set(b.Ops[0].Key, b.Ops[0].Value))
		d.turn.Lock()
		err := txn.Commit()
		if err != nil {
			err = d.fail(err)
		}
		d.turn.Unlock()
		txn.Discard()
		if err != nil {
			require.ErrorAs(t, err, &down)
			break
		}
		n++
	}
	require.ErrorAs(t, <-read, &down)
	stop()
	var b Batch
	b.Set([]byte("k"), []byte("v"))
	require.ErrorAs(t, d.Write(&b, true), &down)
	require.ErrorIs(t, d.Write(&b, false), storage.ErrReopen)
	require.ErrorAs(t, d.Sync(), &down)
	require.ErrorAs(t, d.Reclaim(func() bool { return true }), &down)
	require.ErrorAs(t, d.Iterate(nil, []byte("z"), nil), &down)
	_, err = d.Snapshot()
	require.ErrorAs(t, err, &down)
	require.NoError(t, d.Close())
	require.NoError(t, os.Remove(filepath.Join(dir, keyLogName(next))))
	d = pressed(t, dir)
	requireKeys(t, d, n)
	require.NoError(t, d.Close())
}

// Memory that cannot be read is an error; a panic of the caller continues.
func TestFaultsOfMemoryAreErrors(t *testing.T) {
	d := pressed(t, t.TempDir())
	defer func() { require.NoError(t, d.Close()) }()
	var b Batch
	b.Set([]byte("k"), []byte("v"))
	require.NoError(t, d.Write(&b, false))
	require.PanicsWithValue(t, "theirs", func() { _, _ = d.Get([]byte("k"), func([]byte) error { panic("theirs") }) })
	require.Panics(t, func() {
		_, _ = d.Get([]byte("k"), func([]byte) error {
			var none *Badger
			none.sync = true
			return nil
		})
	})
	require.Nil(t, d.down.Load())
	f, err := os.Create(filepath.Join(t.TempDir(), "f"))
	require.NoError(t, err)
	require.NoError(t, f.Truncate(4096))
	page, err := unix.Mmap(int(f.Fd()), 0, 4096, unix.PROT_READ, unix.MAP_SHARED)
	require.NoError(t, err)
	require.NoError(t, f.Truncate(0))
	require.NoError(t, f.Close())
	_, err = d.Get([]byte("k"), func([]byte) error { return fmt.Errorf("read %d", page[0]) })
	var down *downError
	require.ErrorAs(t, err, &down)
}

// What this package reads in badger's words is still what badger says. The sync of its
// value log, and what it says before it writes a table, can be had in no other way.
func TestWordsOfBadger(t *testing.T) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/dgraph-io/badger/v4").Output()
	require.NoError(t, err)
	dir := strings.TrimSpace(string(out))
	for _, w := range [][2]string{
		{"value.go", `vlog.opt.Errorf("Error while curlf sync: %v\n", err)`},
		{"levels.go", `s.kv.opt.Debugf("[%d] LOG Compact. Added %d keys.`},
		{"levels.go", `s.kv.opt.Debugf("Discard stats: %v", discardStats)`},
		{"levels.go", `s.kv.opt.Debugf("[Compactor: %d] Compaction for level: %d DONE"`},
	} {
		text, err := os.ReadFile(filepath.Join(dir, w[0]))
		require.NoError(t, err)
		require.Contains(t, string(text), w[1], "badger's words changed: see logger and gate")
	}
	require.Contains(t, "[%d] LOG Compact. Added %d keys.", beforeTable)
	require.Contains(t, "Discard stats: %v", afterRange)
	require.Contains(t, "Compaction for level: %d DONE", afterCompacted)
}

// A wrong file of statistics has badger search for ever.
func TestStatisticsAreDroppedIfDamaged(t *testing.T) {
	dir := t.TempDir()
	d := pressed(t, dir)
	require.NoError(t, d.Close())
	for _, damage := range [][]byte{
		[]byte(strings.Repeat("\xa5", 64)),
		{0, 0, 0, 0, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0},
	} {
		f, err := os.OpenFile(filepath.Join(dir, hintsName), os.O_RDWR, 0)
		require.NoError(t, err)
		_, err = f.WriteAt(damage, 0)
		require.NoError(t, errors.Join(err, f.Close()))
		require.False(t, hintsAreGood(dir))
		d := pressed(t, dir)
		require.ErrorIs(t, d.db.RunValueLogGC(0.5), badger.ErrNoRewrite)
		require.NoError(t, d.Close())
		require.True(t, hintsAreGood(dir))
	}
	require.NoError(t, os.Truncate(filepath.Join(dir, hintsName), 4096))
	require.NoError(t, pressed(t, dir).Close())
}
