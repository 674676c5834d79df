// This file stands in where no file may be there before badger makes it: elsewhere a
// file that is open cannot be removed, or an empty one is a fault.

//go:build !linux

package kv

import (
	"errors"
	"os"

	"github.com/dgraph-io/badger/v4"
)

func keepOpen(string) (*os.File, error) { return nil, nil }

func reserve(*os.File, int64) error { return nil }

func reserveAhead(*os.File, int64) error { return nil }

func makeAhead(string, int64) (*os.File, error) { return nil, nil }

// syncElsewhere syncs what badger has mapped, and the file.
func syncElsewhere(path string, db *badger.DB) error {
	if err := db.Sync(); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
