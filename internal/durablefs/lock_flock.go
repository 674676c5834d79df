//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

// This file locks a folder, where there is flock.

package durablefs

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// Lock holds a folder for this process until the file is closed, or the process dies. The error
// wraps ErrLocked while another holds it.
func Lock(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = fmt.Errorf("%w: %s", ErrLocked, dir)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
