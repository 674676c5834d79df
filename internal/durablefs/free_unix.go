// This file reads the free space of a Unix volume.

//go:build linux || darwin

package durablefs

import "golang.org/x/sys/unix"

// Free returns how many bytes the volume of a folder has left for this process, and
// whether that is known.
func Free(path string) (uint64, bool) {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return 0, false
	}
	return st.Bavail * uint64(st.Bsize), true
}
