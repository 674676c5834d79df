//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

// This file replaces lock_flock.go on systems without flock.

package warc

import "os"

// lockFolder locks nothing here.
func lockFolder(dir string) (*os.File, error) { return os.Open(dir) }
