// This file crawls on a volume that is really full, in a name space of its own
// where the test may mount one.

package durability

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/internal/lab/trycount"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/test/harness"
	"github.com/stretchr/testify/require"
)

var (
	fullDisk   = flag.String("frontier.full-disk", "", "be the process that mounts a small volume here and fills it")
	fullRounds = flag.Int("frontier.full-rounds", 1, "how often TestFullDisk fills it under load")
)

const volumeBytes = 48 << 20

// onSmallVolume runs the test in a process of its own, which may mount a volume, and
// reports whether this is it.
func onSmallVolume(t *testing.T) (dir string, here bool) {
	t.Helper()
	if *fullDisk != "" {
		require.NoError(t, syscall.Mount("tmpfs", *fullDisk, "tmpfs", 0, fmt.Sprintf("size=%d", volumeBytes)))
		return *fullDisk, true
	}
	args := []string{"-test.run=^" + t.Name() + "$", "-test.v", "-frontier.full-disk=" + t.TempDir()}
	flag.Visit(func(f *flag.Flag) {
		if strings.HasPrefix(f.Name, "frontier.") {
			args = append(args, fmt.Sprintf("-%s=%s", f.Name, f.Value))
		}
	})
	cmd := exec.Command(os.Args[0], args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWUSER, UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}, GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}}
	if os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Start()
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EACCES) || errors.Is(err, syscall.ENOSPC) {
		t.Skipf("no volume can be mounted here; it takes root or user name spaces: %v", err)
	}
	require.NoError(t, err)
	err = cmd.Wait()
	t.Log(out.String())
	require.NoError(t, err)
	return "", false
}

// fillUp takes all space of the volume except the given bytes, and returns a function that frees
// it.
func fillUp(t testing.TB, dir string, but uint64) func() {
	t.Helper()
	f, err := os.CreateTemp(dir, "ballast")
	require.NoError(t, err)
	chunk := make([]byte, 64<<10)
	for {
		var st syscall.Statfs_t
		require.NoError(t, syscall.Statfs(dir, &st))
		if free := st.Bavail * uint64(st.Bsize); free <= but {
			break
		} else if free-but < uint64(len(chunk)) {
			chunk = chunk[:free-but]
		}
		if _, err := f.Write(chunk); errors.Is(err, syscall.ENOSPC) {
			break
		}
	}
	return func() {
		require.NoError(t, f.Close())
		require.NoError(t, os.Remove(f.Name()))
	}
}

// A volume with less space than the reserve: Add reports it, accepted URLs are served, and with
// space the crawl continues.
func TestNearlyFullDisk(t *testing.T) {
	dir, here := onSmallVolume(t)
	if !here {
		return
	}
	db, err := spill.Open(filepath.Join(dir, "store"), spill.Options{MemoryBudget: 64 << 20, DiskReserve: 8 << 20})
	require.NoError(t, err)
	f, err := frontier.Open(t.Context(), frontier.Options{Spill: db, Delay: frontier.FixedDelay(0)})
	require.NoError(t, err)
	defer func() {
		harness.Ended(t, f)
		require.NoError(t, db.Close())
	}()
	rnd := harness.NewRand(t)
	n, want := 0, map[string]bool{}
	add := func() error {
		var es []frontier.Entry
		for range 100 {
			n++
			meta := make([]byte, 200) // which cannot be compressed
			for i := range meta {
				meta[i] = byte(rnd.Uint32())
			}
			es = append(es, frontier.Entry{URL: fmt.Sprintf("http://h%d.example/%d", n%7, n), Meta: meta})
		}
		_, err := f.Add(t.Context(), es...)
		if err == nil {
			for _, e := range es {
				want[e.URL] = true
			}
		}
		return err
	}
	visit := func() {
		l, _, err := f.TryNext()
		require.NoError(t, err)
		require.True(t, want[l.Entry.URL], l.Entry.URL)
		delete(want, l.Entry.URL)
		require.NoError(t, f.Done(l, frontier.Outcome{}))
	}
	for range 3 {
		require.NoError(t, add())
		empty := fillUp(t, dir, 4<<20)
		for range 100 { // the next few are allowed still
			if err = add(); err != nil {
				break
			}
		}
		require.ErrorIs(t, err, syscall.ENOSPC)
		for range 50 {
			visit()
		}
		require.ErrorIs(t, add(), syscall.ENOSPC)
		require.NoError(t, f.Check())
		empty()
		require.NoError(t, add())
	}
	for len(want) > 0 {
		visit()
	}
	_, _, err = f.TryNext()
	require.ErrorIs(t, err, frontier.ErrExhausted)
}

// A volume without a free byte, because another process took the reserve: the process continues
// with errors, or is killed by the system where the engine writes to mapped files. What was
// acknowledged is there when there is space again, and the crawl continues.
func TestFullDisk(t *testing.T) {
	dir, here := onSmallVolume(t)
	if !here {
		return
	}
	rnd := harness.NewRand(t)
	tries := trycount.Of(t)
	died := 0
	for range *fullRounds {
		store := filepath.Join(dir, "store")
		r := newReport()
		for range 3 { // and goes on with the same store
			c := startCrash(t, store, "full", r.first)
			r.listen(t, c, 1+rnd.IntN(1000))
			empty := fillUp(t, dir, 0)
			for range 500 {
				line, err := c.in.ReadString('\n')
				if errors.Is(err, io.EOF) {
					died++
					break
				}
				require.NoError(t, err)
				r.hear(t, line)
			}
			empty()
			r.stop(t, c)
			left := copyFolder(t, store)
			r.clone().holds(t, left)
			require.NoError(t, os.RemoveAll(left))
			tries.Tried(1)
		}
		require.NoError(t, os.RemoveAll(store))
	}
	t.Logf("%d times without a byte left, of which the process died in %d", 3**fullRounds, died)
}
