package fleet

import (
	"syscall"
	"time"
	"unsafe"
)

const clockBoottime = 7 // CLOCK_BOOTTIME

// sinceBoot is a clock that cannot be set and goes on while the machine is suspended: a node that
// wakes up must find that its right has ended.
func sinceBoot() time.Duration {
	var t syscall.Timespec
	if _, _, err := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, clockBoottime, uintptr(unsafe.Pointer(&t)), 0); err != 0 {
		return time.Since(began)
	}
	return time.Duration(t.Nano())
}
