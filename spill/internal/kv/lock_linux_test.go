// This file tests that a folder opens while other goroutines start processes, which have copies of all
// descriptors for a moment.

package kv

import (
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// copyOf duplicates a descriptor of this process's that is open on folder dir.
func copyOf(t *testing.T, dir string) *os.File {
	fds, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	for _, fd := range fds {
		if at, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && at == dir {
			n, err := strconv.Atoi(fd.Name())
			require.NoError(t, err)
			n, err = unix.Dup(n)
			require.NoError(t, err)
			return os.NewFile(uintptr(n), dir)
		}
	}
	require.Fail(t, "no descriptor is open on "+dir)
	return nil
}

func TestACopiedDescriptorKeepsNoLock(t *testing.T) {
	dir := t.TempDir()
	var kept *os.File
	free, err := alone(dir, func() error {
		kept = copyOf(t, dir)
		return nil
	})
	require.NoError(t, err)
	require.True(t, free)
	defer kept.Close()
	d, err := os.Open(dir)
	require.NoError(t, err)
	defer d.Close()
	require.NoError(t, unix.Flock(int(d.Fd()), unix.LOCK_EX|unix.LOCK_NB), "alone returned, and its lock is still there")
}

func TestALockOfAMomentIsWaitedFor(t *testing.T) {
	dir := t.TempDir()
	d, err := os.Open(dir)
	require.NoError(t, err)
	require.NoError(t, unix.Flock(int(d.Fd()), unix.LOCK_EX|unix.LOCK_NB))
	time.AfterFunc(lockPatience/10, func() { d.Close() })
	free, err := alone(dir, func() error { return nil })
	require.NoError(t, err)
	require.True(t, free)

	held, err := os.Open(dir)
	require.NoError(t, err)
	defer held.Close()
	require.NoError(t, unix.Flock(int(held.Fd()), unix.LOCK_EX|unix.LOCK_NB))
	free, err = alone(dir, func() error { return nil })
	require.NoError(t, err)
	require.False(t, free)
}
