//go:build (amd64 || arm64 || riscv64 || loong64 || ppc64le) && !race

// This file allocates memory from Linux. Package syscall has no mremap, and its Munmap refuses
// memory that mremap has moved, so all calls are made here.

package offheap

import (
	"os"
	"syscall"
	"unsafe"
)

const (
	mremapMayMove = 1
	noFile        = ^uintptr(0)
)

var pageSize = uintptr(os.Getpagesize())

// sysMap returns n zeroed bytes at the start of a page, or nil.
func sysMap(n int) []byte {
	addr, _, errno := syscall.Syscall6(syscall.SYS_MMAP, 0, uintptr(n),
		syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE|syscall.MAP_NORESERVE, noFile, 0)
	if errno != 0 {
		return nil
	}
	return bytesAt(addr, n)
}

func sysUnmap(b []byte) {
	if _, _, errno := syscall.Syscall(syscall.SYS_MUNMAP, address(b), uintptr(len(b)), 0); errno != 0 {
		panic("offheap: munmap: " + errno.Error()) // it was not ours
	}
}

// sysResize moves b to a place with n bytes, without copying. It returns nil if that is not possible.
func sysResize(b []byte, n int) []byte {
	addr, _, errno := syscall.Syscall6(syscall.SYS_MREMAP, address(b), uintptr(len(b)), uintptr(n), mremapMayMove, 0, 0)
	if errno != 0 {
		return nil
	}
	return bytesAt(addr, n)
}

// sysDiscard zeroes b; its whole pages take no memory afterwards.
func sysDiscard(b []byte) {
	from := (address(b)+pageSize-1)&^(pageSize-1) - address(b)
	to := (address(b)+uintptr(len(b)))&^(pageSize-1) - address(b)
	if from < to && to <= uintptr(len(b)) {
		pages := b[from:to]
		if _, _, errno := syscall.Syscall(syscall.SYS_MADVISE, address(pages), uintptr(len(pages)), syscall.MADV_DONTNEED); errno == 0 {
			clear(b[:from])
			clear(b[to:])
			return
		}
	}
	clear(b)
}

func address(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

func bytesAt(addr uintptr, n int) []byte {
	p := *(*unsafe.Pointer)(unsafe.Pointer(&addr)) // not memory of Go's, so it does not move
	return unsafe.Slice((*byte)(p), n)
}
