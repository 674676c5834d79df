// This file takes from a process that crawls what the engine below it needs, for
// some seconds: descriptors, a folder that can be written, space to the last byte.
// Calls fail meanwhile; the process does not, and nothing is lost.

package durability

import (
	"errors"
	"flag"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier/internal/lab/trycount"
	"github.com/seed-7440039f/frontier/test/harness"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

var belowEpisodes = flag.Int("frontier.below-episodes", 1, "how often each test of what is below the engine takes it away")

// below takes something from a process until give is called.
type below func(t *testing.T, c *crawl, store string) (give func())

// episodes lets a process crawl, takes something from it, gives it back, and kills it.
func episodes(t *testing.T, dir string, lines int, take below) {
	t.Helper()
	rnd := harness.NewRand(t)
	tries := trycount.Of(t)
	store := filepath.Join(dir, "store")
	r := newReport()
	for n := 0; n < *belowEpisodes; {
		c := startCrash(t, store, "tables", r.first)
		for range 3 { // of one life
			if n++; n > *belowEpisodes {
				break
			}
			r.listen(t, c, 1+rnd.IntN(lines))
			give := take(t, c, store)
			r.hearFor(t, c, time.Duration(1+rnd.IntN(2000))*time.Millisecond)
			if rnd.IntN(4) == 0 { // and is killed while it lacks it
				r.stop(t, c)
				give()
				c = startCrash(t, store, "tables", r.first)
			} else {
				give()
			}
			// It continues, within the second in which the engine retries.
			added := len(r.added)
			for end := time.Now().Add(time.Minute); len(r.added) == added; {
				if r.ended {
					r.stop(t, c)
					c = startCrash(t, store, "tables", r.first)
				}
				require.True(t, time.Now().Before(end), "nothing is added a minute later")
				r.hearFor(t, c, 100*time.Millisecond)
			}
			tries.Tried(1)
		}
		r.stop(t, c)
		left := copyFolder(t, store)
		r.clone().holds(t, left)
		require.NoError(t, os.RemoveAll(left))
	}
	t.Logf("%d episodes; %d URLs acknowledged, none lost, none twice", *belowEpisodes, len(r.added))
}

// hearFor returns the output of a process during the given time, if any.
func (r *report) hearFor(t testing.TB, c *crawl, d time.Duration) {
	t.Helper()
	require.NoError(t, c.pipe.SetReadDeadline(time.Now().Add(d)))
	defer func() { require.NoError(t, c.pipe.SetReadDeadline(time.Time{})) }()
	for {
		line, err := c.in.ReadString('\n')
		c.part += line
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return
		}
		require.False(t, errors.Is(err, io.EOF), "the process ended by itself")
		require.NoError(t, err)
		line, c.part = c.part, ""
		r.hear(t, line)
	}
}

// TestWithoutDescriptors lets no process open a file.
func TestWithoutDescriptors(t *testing.T) {
	episodes(t, t.TempDir(), 2000, func(t *testing.T, c *crawl, _ string) func() {
		var old unix.Rlimit
		require.NoError(t, unix.Prlimit(c.Process.Pid, unix.RLIMIT_NOFILE, nil, &old))
		limit := old
		limit.Cur = 3
		require.NoError(t, unix.Prlimit(c.Process.Pid, unix.RLIMIT_NOFILE, &limit, nil))
		return func() {
			if err := unix.Prlimit(c.Process.Pid, unix.RLIMIT_NOFILE, &old, nil); err != unix.ESRCH { // it was killed while it lacked them
				require.NoError(t, err)
			}
		}
	})
}

// TestFoldersThatCannotBeWritten lets no file be made or removed, as on a volume that
// became read-only; files that are open can be written still.
func TestFoldersThatCannotBeWritten(t *testing.T) {
	dir := t.TempDir()
	change := func(t *testing.T, how, dir string) error {
		return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err != nil || !e.IsDir() {
				return nil // it was removed meanwhile
			}
			return exec.Command("chattr", how, path).Run()
		})
	}
	if err := change(t, "+i", dir); err != nil {
		t.Skipf("no folder can be made immutable here; it takes root: %v", err)
	}
	require.NoError(t, change(t, "-i", dir))
	t.Cleanup(func() { _ = change(t, "-i", dir) })
	episodes(t, dir, 2000, func(t *testing.T, _ *crawl, store string) func() {
		require.NoError(t, change(t, "+i", store))
		return func() { require.NoError(t, change(t, "-i", store)) }
	})
}

// TestLastByte has others take all of the volume, again and again. They leave the engine
// the moment that a table takes that it has begun to write: nothing else can.
func TestLastByte(t *testing.T) {
	dir, here := onSmallVolume(t)
	if !here {
		return
	}
	episodes(t, dir, 1000, func(t *testing.T, _ *crawl, store string) func() {
		most := fillUp(t, dir, 100<<10) // less, and no table is begun
		time.Sleep(300 * time.Millisecond)
		for range 1000 { // or a program reads a log that is a table
			if logsWithKeys(t, store) <= 1 {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		rest := fillUp(t, dir, 0)
		return func() { most(); rest() }
	})
}

// logsWithKeys is how many logs of keys are not yet tables; the last never is.
func logsWithKeys(t *testing.T, store string) (n int) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(store, "*.mem"))
	require.NoError(t, err)
	for _, name := range names {
		if info, err := os.Stat(name); err == nil && info.Size() > 0 {
			n++
		}
	}
	return n
}
