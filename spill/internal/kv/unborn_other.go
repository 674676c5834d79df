// This file is for systems where badger's lock cannot be held in addition to badger.

//go:build !linux && !darwin

package kv

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

func alone(_ string, fn func() error) (bool, error) { return true, fn() }

func removeUnborn(string) error { return nil }

// share only checks whether a process uses the folder: badger's lock is a file that cannot be
// opened meanwhile.
func share(dir string) (unlock func() error, err error) {
	f, err := os.Open(filepath.Join(dir, "LOCK"))
	if errors.Is(err, fs.ErrNotExist) {
		return func() error { return nil }, nil
	}
	if err != nil {
		return nil, errors.Join(inUse(dir), err)
	}
	return f.Close, nil
}
