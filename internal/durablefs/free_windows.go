// This file reads the free space of a Windows volume.

package durablefs

import "golang.org/x/sys/windows"

// Free returns how many bytes the volume of a folder has left for this process, and
// whether that is known.
func Free(path string) (uint64, bool) {
	p, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return 0, false
	}
	var free uint64
	if err := windows.GetDiskFreeSpaceEx(p, &free, nil, nil); err != nil {
		return 0, false
	}
	return free, true
}
