//go:build unix

package main

import (
	"io/fs"
	"syscall"
)

// allocated returns a file's bytes on disk: sparse files have fewer than their size.
func allocated(info fs.FileInfo) int64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return s.Blocks * 512
	}
	return info.Size()
}
