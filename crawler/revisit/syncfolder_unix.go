//go:build !windows

// This file makes the names of a folder durable.

package revisit

import (
	"errors"
	"os"
)

func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
