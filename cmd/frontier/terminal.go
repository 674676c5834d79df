// This file distinguishes terminals from files and pipes.

package main

import (
	"os"

	"github.com/charmbracelet/x/term"
)

// isTerminal reports whether a stream is a terminal.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(f.Fd())
}

// columnsOf returns a terminal's width.
func columnsOf(stream any) int {
	if f, ok := stream.(*os.File); ok {
		if width, _, err := term.GetSize(f.Fd()); err == nil && width > 0 {
			return width
		}
	}
	return 80
}

// canMove reports whether the stream is a terminal that can move its cursor.
func canMove(stream any) bool { return isTerminal(stream) && os.Getenv("TERM") != "dumb" }
