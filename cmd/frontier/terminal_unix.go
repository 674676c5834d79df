//go:build unix

package main

import (
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

// isTerminal tells whether a person reads a file.
func isTerminal(f *os.File) bool {
	_, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	return err == nil
}

// sizeOf is how many columns and lines a terminal has.
func sizeOf(f *os.File) (width, height int) {
	if s, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ); err == nil && s.Col > 0 && s.Row > 0 {
		return int(s.Col), int(s.Row)
	}
	return 80, 24
}

func notifyResize(c chan os.Signal) { signal.Notify(c, unix.SIGWINCH) }
