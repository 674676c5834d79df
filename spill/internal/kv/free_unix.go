// This file asks a Unix volume for its free space.

//go:build linux || darwin

package kv

import "golang.org/x/sys/unix"

func freeSpace(path string) (uint64, bool) {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return 0, false
	}
	return st.Bavail * uint64(st.Bsize), true
}
