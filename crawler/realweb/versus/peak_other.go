//go:build !linux

// This file replaces peak_linux.go on systems where memory is not measured.

package main

import "os"

func peak(*os.ProcessState) int64 { return 0 }
