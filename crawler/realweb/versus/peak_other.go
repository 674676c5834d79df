//go:build !linux

// This file stands in where memory is not measured.

package main

import "os"

func peak(*os.ProcessState) int64 { return 0 }
