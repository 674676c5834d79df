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
func columnsOf(stream any) int {
	if f, ok := stream.(*os.File); ok {
		if width, _, err := term.GetSize(f.Fd()); err == nil && width > 0 {
			return width
		}
	}
	return 80
}

// canMove tells whether the cursor can be moved on what is written to.
func canMove(stream any) bool { return isTerminal(stream) && os.Getenv("TERM") != "dumb" }
