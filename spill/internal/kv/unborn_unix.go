// This file removes files that badger was about to make when the process died: badger treats an
// empty file as an error, and would never open the folder again.

//go:build linux || darwin

package kv

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// alone calls fn while it holds badger's lock. It returns false if another process uses the folder.
func alone(dir string, fn func() error) (bool, error) {
	d, err := os.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return true, err
	}
	defer d.Close()
	if unix.Flock(int(d.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		return false, nil
	}
	return true, fn()
}

// share prevents other processes from opening a folder, without writing to it, until the returned
// function is called. Any number of processes may share a folder.
func share(dir string) (unlock func() error, err error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if unix.Flock(int(d.Fd()), unix.LOCK_SH|unix.LOCK_NB) != nil {
		return nil, errors.Join(ErrInUse, d.Close())
	}
	return d.Close, nil
}

// removeUnborn does so.
func removeUnborn(dir string) error {
	entries, err := os.ReadDir(dir)
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
