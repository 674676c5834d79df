//go:build unix

package main

import "syscall"

// supported says whether processes can be stopped and continued here.
const supported = true

var (
	freeze = syscall.SIGSTOP
	thaw   = syscall.SIGCONT
	finish = syscall.SIGTERM
	kill   = syscall.SIGKILL
)
