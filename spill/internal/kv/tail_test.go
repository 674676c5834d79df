// This file tears the ends of logs as a loss of power does, and cuts off what is left.

package kv

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dgraph-io/badger/v4"
	"github.com/seed-7440039f/frontier/spill/internal/badgerfiles"
	"github.com/seed-7440039f/frontier/spill/internal/wire"
	"github.com/stretchr/testify/require"
)

// torn is a folder without sync whose process died: keys 0 to 9 were synced, 10 to 29
// came later. Values lie apart.
func torn(t *testing.T) (dir string, open func(*testing.T, string) (*Badger, error)) {
	t.Helper()
	c := Config{Memory: 64 << 20, Logger: slog.New(slog.DiscardHandler), Life: func(k []byte) Life {
		if k[0] == 'k' {
			return Lasting
		}
		return Inline
	}, Whole: func(k, v []byte) bool { return bytes.Equal(v, tornValue(k)) }}
	open = func(t *testing.T, dir string) (*Badger, error) { return OpenBadger(dir, c) }
	dir = t.TempDir()
	d, err := open(t, dir)
	require.NoError(t, err)
	for i := range 30 {
		if i == 10 {
			require.NoError(t, d.Sync())
		}
		var b Batch
		k := fmt.Appendf(nil, "k%02d", i)
		b.Set(k, tornValue(k))
		b.Set(fmt.Appendf(nil, "n%02d", i), []byte("x"))
		require.NoError(t, d.Write(&b, false))
		d.Confirm(uint64(i + 1))
	}
	to := copyFolder(t, dir)
	require.NoError(t, d.Close())
	return to, open
}

func tornValue(k []byte) []byte { return bytes.Repeat(k, 200) }

// copied copies a folder that is not in use.
func copied(t *testing.T, from string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy")
	require.NoError(t, os.CopyFS(to, os.DirFS(from)))
	return to
}

// restarted has a folder as if the machine had been started again.
func restarted(t testing.TB, dir string) {
	t.Helper()
	path := filepath.Join(dir, confirmedName)
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	for s := b; len(s) >= slotLen; s = s[slotLen:] {
		s[5]++
		binary.BigEndian.PutUint32(s, crc32.Checksum(s[4:slotUsed], wire.Castagnoli))
	}
	require.NoError(t, os.WriteFile(path, b, 0o600))
}

// onlyFile returns the file of a folder that matches, which must be large enough.
func onlyFile(t *testing.T, dir, pattern string) (path string, data []byte) {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, pattern))
	require.NoError(t, err)
	for _, path := range all {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		if len(data) > badgerfiles.LogHead && !allZero(data[badgerfiles.LogHead:]) {
			return path, data
		}
	}
	t.Fatalf("no %s in %s", pattern, dir)
	return "", nil
}

// tear garbles the place where key i is, in the log or in the file of values.
func tear(t *testing.T, dir, pattern string, i int) {
	t.Helper()
	path, data := onlyFile(t, dir, pattern)
	at := bytes.Index(data, fmt.Appendf(nil, "k%02d", i))
	require.Positive(t, at)
	copy(data[at:], make([]byte, 40))
	require.NoError(t, os.WriteFile(path, data, 0o600))
}

func TestLatestWritesThatWereTornAreCut(t *testing.T) {
	for _, where := range []string{"*.mem", "blobs/*.lasting"} {
		t.Run(strings.Trim(where, "*./"), func(t *testing.T) {
			dir, open := torn(t)
			for i := 10; i < 30; i += 6 {
				dir := copied(t, dir)
				tear(t, dir, where, i)
				restarted(t, dir)
				d, err := open(t, dir)
				require.NoError(t, err, "torn at %d", i)
				require.EqualValues(t, 10, d.Confirmed())
				for j := range 30 {
					k := fmt.Appendf(nil, "k%02d", j)
					found, err := d.Get(k, func(v []byte) error {
						require.Equal(t, tornValue(k), v)
						return nil
					})
					require.NoError(t, err)
					require.Equal(t, j < i, found, "key %d, torn at %d", j, i)
					also, err := d.Get(fmt.Appendf(nil, "n%02d", j), func([]byte) error { return nil })
					require.NoError(t, err)
					require.Equal(t, found, also, "a transaction is there wholly or not at all")
				}
				require.NoError(t, d.Close())
			}
		})
	}
}

// A value whose file was removed after a later transaction had deleted or moved it is no reason to
// cut the log, whatever the note of what is on the medium says.
func TestLogIsNotCutForWhatWasRemovedLater(t *testing.T) {
	dir := t.TempDir()
	c := Config{
		Memory: 64 << 20, Logger: slog.New(slog.DiscardHandler), Life: apart, Last: []byte("z"), sizes: sizes{file: 1, brief: 1, waste: 1, scan: 1, move: 1},
		Whole: func(_, v []byte) bool { return len(v) > 0 && !allZero(v) },
		Needs: func(k, v []byte) []string {
			if string(k) != "zs" {
				return nil
			}
			return []string{string(v)}
		},
	}
	d, err := OpenBadger(dir, c)
	require.NoError(t, err)
	put := func(k, v string) {
		var b Batch
		b.Set([]byte(k), []byte(v))
		if v == "" {
			b = Batch{Ops: []Op{{Key: []byte(k)}}}
		}
		require.NoError(t, d.Write(&b, false))
		d.Confirm(d.version.Load())
	}
	long := func(of string) string { return strings.Repeat(of, 400) }
	put("l0", long("table"))
	require.NoError(t, d.Close())
	d, err = OpenBadger(dir, c)
	require.NoError(t, err)
	before := noted{last: d.confirmed.last(), durable: d.confirmed.last()}
	put("l1", long("deleted"))
	put("l2", long("replaced"))
	put("zs", "marks/00000001")
	put("l3", long("stays"))
	put("l0", "")
	put("l1", "")
	put("l2", long("again"))
	put("zs", "marks/00000002")
	put("l4", long("stays"))
	put("l5", long("torn"))
	put("l6", long("behind it"))
	died := copyFolder(t, dir)
	require.NoError(t, d.Close())
	require.NoError(t, os.MkdirAll(filepath.Join(died, "marks"), 0o777))
	require.NoError(t, os.WriteFile(filepath.Join(died, "marks", "00000002"), nil, 0o666))
	for _, v := range []string{"table", "deleted", "replaced"} { // Reclaim removed them
		path, _ := onlyHolding(t, died, v)
		require.NoError(t, os.Remove(path))
	}
	path, data := onlyHolding(t, died, "torn")
	require.NoError(t, os.WriteFile(path, make([]byte, len(data)), 0o666))
	stale, err := openConfirmed(died, Config{flush: (*os.File).Sync}, before) // its page had not reached the medium
	require.NoError(t, err)
	require.NoError(t, stale.close())
	restarted(t, died)
	d, err = OpenBadger(died, c)
	require.NoError(t, err)
	defer d.Close()
	content{"l2": []byte(long("again")), "l3": []byte(long("stays")), "l4": []byte(long("stays")), "zs": []byte("marks/00000002")}.check(t, d)
}

// onlyHolding returns the file of values that holds something.
func onlyHolding(t *testing.T, dir, what string) (path string, data []byte) {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, blobFolder, "*"))
	require.NoError(t, err)
	for _, path := range all {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		if bytes.Contains(data, []byte(what+what)) {
			return path, data
		}
	}
	t.Fatalf("no file of values holds %q", what)
	return "", nil
}

// What had been synced is damage, and so is everything without a loss of power.
func TestDamageIsNotTakenForALossOfPower(t *testing.T) {
	dir, open := torn(t)
	tear(t, dir, "*.mem", 15)
	_, err := open(t, copied(t, dir))
	require.ErrorIs(t, err, ErrDamaged, "the process died, the machine did not")
	tear(t, dir, "*.mem", 5)
	restarted(t, dir)
	_, err = open(t, dir)
	require.ErrorIs(t, err, ErrDamaged, "that was synced")
}

// Before a log is cut the store tries whether it can recover from what is left. If it cannot, the
// folder stays as it was.
func TestNothingIsCutIfTheRestCannotBeOpened(t *testing.T) {
	dir, _ := torn(t)
	tear(t, dir, "*.mem", 20)
	restarted(t, dir)
	before := filesOf(t, os.DirFS(dir))
	boom := errors.New("boom")
	tried := 0
	c := Config{Memory: 64 << 20, Logger: slog.New(slog.DiscardHandler), Rehearse: func(db DB) error {
		tried++
		for i := range 30 {
			found, err := db.Get(fmt.Appendf(nil, "n%02d", i), func([]byte) error { return nil })
			require.NoError(t, err)
			require.Equal(t, i < 20, found, "key %d", i)
		}
		return errors.Join(boom, db.Close())
	}}
	_, err := OpenBadger(dir, c)
	require.ErrorIs(t, err, boom)
	require.Equal(t, 1, tried)
	require.Equal(t, before, filesOf(t, os.DirFS(dir)))
	boom = nil
	db, err := OpenBadger(dir, c)
	require.NoError(t, err)
	require.Equal(t, 2, tried)
	require.NoDirExists(t, filepath.Join(dir, rehearsal))
	found, err := db.Get([]byte("n20"), func([]byte) error { return nil })
	require.NoError(t, err)
	require.False(t, found)
	require.NoError(t, db.Close())
}

// filesOf returns the files of a folder, and what they hold.
func filesOf(t *testing.T, dir fs.FS) map[string]string {
	t.Helper()
	files := map[string]string{}
	require.NoError(t, fs.WalkDir(dir, ".", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := fs.ReadFile(dir, path)
		files[path] = string(b)
		return err
	}))
	return files
}

// A log that lost its end makes those behind it worthless.
func TestLogsBehindATornOneAreCut(t *testing.T) {
	dir := t.TempDir()
	c := Config{Memory: 64 << 20, Small: true, Logger: slog.New(slog.DiscardHandler)}
	d, err := OpenBadger(dir, c)
	require.NoError(t, err)
	pin := d.db.NewTransaction(false) // keeps the logs
	defer pin.Discard()
	it := pin.NewIterator(badger.IteratorOptions{})
	var images []string
	for i := 0; len(images) == 0; i++ {
		var b Batch
		b.Set(fmt.Appendf(nil, "key %05d", i), make([]byte, 200))
		require.NoError(t, d.Write(&b, false))
		if d.turn.Lock(); len(d.logs.logs) > 1 && d.logs.entries > 10 {
			images = append(images, copyFolder(t, dir))
		}
		d.turn.Unlock()
	}
	it.Close()
	require.NoError(t, d.Close())
	left := images[0]
	// Neither the first log's table nor its name in the manifest reached the medium.
	names, err := filepath.Glob(filepath.Join(left, "*.mem"))
	require.NoError(t, err)
	sortKeyLogs(names)
	_, data := onlyFile(t, left, filepath.Base(names[0]))
	clear(data[len(data)/8:])
	require.NoError(t, os.WriteFile(names[0], data, 0o600))
	x := inspector{dir: left, lost: true}
	for _, n := range names {
		x.names = append(x.names, filepath.Base(n))
	}
	require.NoError(t, x.keyLogs())
	require.Equal(t, filepath.Base(names[0]), x.tail.log)
	require.Contains(t, x.tail.gone, filepath.Base(names[1]))
	require.NoError(t, x.tail.cut(left))
	info, err := os.Stat(names[0])
	require.NoError(t, err)
	require.Equal(t, x.tail.end, info.Size())
	require.NoFileExists(t, names[1])
}
