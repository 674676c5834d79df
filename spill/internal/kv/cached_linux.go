// This file reads what the page cache has.

package kv

import (
	"os"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// uncachedReads is set when the kernel or a file system does not offer reads that do not wait.
var uncachedReads atomic.Bool

// readCached fills p from offset at, and reports whether that was possible without waiting for the
// disk.
func readCached(f *os.File, p []byte, at int64) bool {
	if uncachedReads.Load() {
		return false
	}
	n, err := unix.Preadv2(int(f.Fd()), [][]byte{p}, at, unix.RWF_NOWAIT)
	switch err {
	case unix.ENOSYS, unix.EOPNOTSUPP:
		uncachedReads.Store(true)
	}
	return err == nil && n == len(p)
}
