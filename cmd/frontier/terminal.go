// This file tells terminals from files and pipes.

package main

import (
	"os"

	"github.com/charmbracelet/x/term"
)

// isTerminal tells whether a person is at the other end of a stream.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(f.Fd())
}

// columnsOf is how many columns a terminal has.
func columnsOf(f *os.File) int {
	if width, _, err := term.GetSize(f.Fd()); err == nil && width > 0 {
		return width
	}
	return 80
}
