// This file maps the page of confirm.go.

package kv

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

func mapPage(f *os.File, n int) ([]byte, error) {
	return unix.Mmap(int(f.Fd()), 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
}

func unmapPage(page []byte) error { return unix.Munmap(page) }

// bootID names the time since the machine started.
func bootID() (id [bootLen]byte, ok bool) {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	text := strings.ReplaceAll(strings.TrimSpace(string(b)), "-", "")
	if err != nil || len(text) != 2*bootLen {
		return id, false
	}
	copy(id[:], text) // half of it is enough
	return id, true
}
