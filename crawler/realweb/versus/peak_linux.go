// This file asks Linux how much memory a process had.

package main

import (
	"os"
	"syscall"
)

// peak is the most resident memory of a process that has ended, in bytes.
func peak(s *os.ProcessState) int64 {
	if u, ok := s.SysUsage().(*syscall.Rusage); ok {
		return u.Maxrss << 10
	}
	return 0
}
