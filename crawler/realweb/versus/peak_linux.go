// This file measures the memory of a process on Linux.

package main

import (
	"os"
	"syscall"
)

// peak returns the peak resident memory of a process that has ended, in bytes.
func peak(s *os.ProcessState) int64 {
	if u, ok := s.SysUsage().(*syscall.Rusage); ok {
		return u.Maxrss << 10
	}
	return 0
}
