//go:build !linux

package frontier_test

import "time"

func cpuTime() time.Duration { return 0 }
func residentMemory() int64  { return 0 }
