// This file maps the page of confirm.go.

package kv

import (
	"encoding/binary"
	"encoding/hex"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

func mapPage(f *os.File, n int) ([]byte, error) {
	return unix.Mmap(int(f.Fd()), 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
}

func unmapPage(page []byte) error {
	if page == nil {
		return nil
	}
	return unix.Munmap(page)
}

// bootID identifies the current run of the machine, and the current mount of a folder's volume:
// within it, what a process wrote cannot be lost.
func bootID(dir string) (id [bootLen]byte, ok bool) {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	text := strings.ReplaceAll(strings.TrimSpace(string(b)), "-", "")
	if err != nil || len(text) != 4*bootLen/2 {
		return id, false
	}
	if _, err := hex.Decode(id[:bootLen/2], []byte(text[:bootLen])); err != nil { // half of it is enough
		return id, false
	}
	var st unix.Statx_t
	const unique = 0x4000 // of all mounts until the machine stops; older kernels return the other one
	if err := unix.Statx(unix.AT_FDCWD, dir, 0, unix.STATX_MNT_ID|unique, &st); err == nil {
		binary.BigEndian.PutUint64(id[bootLen/2:], st.Mnt_id)
	}
	return id, true
}
