//go:build !linux

package main

import "os"

func mapFile(name string) ([]byte, error) { return os.ReadFile(name) }
