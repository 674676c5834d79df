//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

// This file locks a folder, where there is flock.

package warc

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// lockFolder holds a folder for this process until the file is closed, or the process
// dies.
func lockFolder(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = fmt.Errorf("%w: %s", ErrInUse, dir)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
