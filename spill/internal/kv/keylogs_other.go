// This file is for systems where a log cannot be made before badger makes it: there an open file
// cannot be removed, or an empty one is an error.

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

// syncElsewhere syncs badger's mapping and the file.
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
