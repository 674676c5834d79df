// This file gives this program a network of its own, in which it may make others.

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
)

// inside in the environment says that this process has a network of its own, which ends with it.
const inside = "FRONTIER_FAULTS_INSIDE"

// noLinks is the exit status of the process inside if it may not make networks.
const noLinks = 3

// enter runs this program again, with a network, mounts and processes of its own, which end with it. It returns
// the links there, and here the exit status. The error says why neither is possible on this system.
func enter(ctx context.Context, o options) (l *links, status int, err error) {
	if os.Getenv(inside) != "" {
		err := errors.Join(syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""), syscall.Mount("tmpfs", "/run", "tmpfs", 0, "")) // for the names of networks
		if err == nil {
			l, err = newLinks(nodeCount)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(noLinks)
		}
		return l, 0, nil
	}
	self, err := os.Executable()
	if err != nil {
		return nil, 0, err
	}
	runtime.LockOSThread() // the end of this thread would end the process inside
	cmd := exec.CommandContext(ctx, self, append(os.Args[1:], "-keep", o.keep, "-binary", o.binary)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(finish) }
	cmd.Env = append(os.Environ(), inside+"=1")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	a := &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID, Pdeathsig: syscall.SIGTERM}
	if os.Getuid() != 0 {
		a.Cloneflags |= syscall.CLONE_NEWUSER
		a.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		a.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	cmd.SysProcAttr = a
	err = cmd.Run()
	if ended := cmd.ProcessState; ended != nil && ended.ExitCode() != noLinks {
		return nil, ended.ExitCode(), nil
	}
	return nil, 0, fmt.Errorf("networks cannot be made here: %w", err)
}
