// This file asks Linux for the memory of a process, and for short queues.

package main

import (
	"errors"
	"net"
	"os"
	"syscall"
)

// peak returns the peak resident memory of a process that has ended, in bytes.
func peak(s *os.ProcessState) int64 {
	if u, ok := s.SysUsage().(*syscall.Rusage); ok {
		return u.Maxrss << 10
	}
	return 0
}

// noQueue limits a listener's queue to one connection.
func noQueue(l *net.TCPListener) error {
	raw, err := l.SyscallConn()
	if err != nil {
		return err
	}
	var fault error
	err = raw.Control(func(fd uintptr) { fault = syscall.Listen(int(fd), 0) })
	return errors.Join(err, fault)
}
