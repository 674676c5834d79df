// This file is for systems where the free space of a volume is unknown.

//go:build !linux && !darwin && !windows

package durablefs

// Free returns how many bytes the volume of a folder has left for this process, and whether that is
// known.
func Free(string) (uint64, bool) { return 0, false }
