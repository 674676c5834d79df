// This file removes files that badger was about to make when the process died: badger treats an
// empty file as an error, and would never open the folder again.

//go:build linux || darwin

package kv

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// lockPatience is how long lock tries.
const lockPatience = 200 * time.Millisecond

// lock locks an open folder, as badger does. A process that another goroutine starts has copies of
// all descriptors from its fork to its exec, and so keeps locks that were given back by closing a
// folder. So lock tries for a moment before it fails.
func lock(d *os.File, how int) error {
	for end := time.Now().Add(lockPatience); ; time.Sleep(time.Millisecond) {
		if err := unix.Flock(int(d.Fd()), how|unix.LOCK_NB); err == nil || time.Now().After(end) {
			return err
		}
	}
}

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
	if lock(d, unix.LOCK_EX) != nil {
		return false, nil
	}
	return true, errors.Join(fn(), unix.Flock(int(d.Fd()), unix.LOCK_UN)) // badger's turn, even if a copy of d is still open
}

// share prevents other processes from opening a folder, without writing to it, until the returned
// function is called. Any number of processes may share a folder.
func share(dir string) (unlock func() error, err error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if lock(d, unix.LOCK_SH) != nil {
		return nil, errors.Join(inUse(dir), d.Close())
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
