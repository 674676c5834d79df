//go:build !unix

package main

import "os"

// isTerminal says no: what is printed is lines.
func isTerminal(*os.File) bool { return false }

func sizeOf(*os.File) (width, height int) { return 80, 24 }

func notifyResize(chan os.Signal) {}
