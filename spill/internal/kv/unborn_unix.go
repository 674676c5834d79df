// This file removes files that badger was about to make when the process died: it
// takes an empty one for a fault, and would never open the folder again.

//go:build linux || darwin

package kv

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// prepare does so, after inspect has found nothing wrong, unless another process
// has the folder, which may be making a file just now. It holds the lock that
// badger will take.
func prepare(dir string, inspect func() error) error {
	d, err := os.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer d.Close()
	if unix.Flock(int(d.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		return nil // badger will say so
	}
	if err := inspect(); err != nil {
		return err
	}
	entries, err := d.ReadDir(-1)
	for _, e := range entries {
		if ext := filepath.Ext(e.Name()); ext != ".mem" && ext != ".vlog" {
			continue
		}
		if i, gone := e.Info(); gone == nil && i.Size() == 0 {
			err = errors.Join(err, os.Remove(filepath.Join(dir, e.Name())))
		}
	}
	return err
}
