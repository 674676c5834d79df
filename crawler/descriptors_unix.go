//go:build unix

package crawler

import (
	"math"

	"golang.org/x/sys/unix"
)

// descriptors returns how many files and connections this process may have open.
func descriptors() int {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return math.MaxInt
	}
	return int(min(uint64(limit.Cur), math.MaxInt32))
}
