//go:build !linux

package harness

import "time"

// CPUTime is not known here.
func CPUTime() time.Duration { return 0 }

// ResidentMemory is not known here.
func ResidentMemory() int64 { return 0 }
