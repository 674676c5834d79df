//go:build unix

package main

import (
	"io/fs"
	"syscall"
)

// allocated is how much of a file is on disk: some are sparse.
func allocated(info fs.FileInfo) int64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return s.Blocks * 512
	}
	return info.Size()
}
