package harness

import (
	"bytes"
	"fmt"
	"os"
	"syscall"
	"time"
)

// CPUTime is how long the process has run on all cores.
func CPUTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// ResidentMemory is how much of the process's memory is its own, files mapped
// into it excepted.
func ResidentMemory() int64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	var kB int64
	if _, after, ok := bytes.Cut(status, []byte("RssAnon:")); ok {
		if _, err := fmt.Sscan(string(after), &kB); err != nil {
			return 0
		}
	}
	return kB << 10
}
