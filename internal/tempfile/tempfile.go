// Package tempfile makes temporary files that a process leaves nowhere, also when it is killed.
package tempfile

import (
	"errors"
	"os"
)

// File is a temporary file.
type File struct {
	*os.File
	named bool
}

// Create makes one in dir; empty means os.TempDir. The file loses its name at once where the system lets an open
// file go; elsewhere Close removes it.
func Create(dir, pattern string) (*File, error) {
	f, err := os.CreateTemp(dir, pattern)
	if err != nil {
		return nil, err
	}
	return &File{f, os.Remove(f.Name()) != nil}, nil
}

// Close ends the file.
func (f *File) Close() error {
	err := f.File.Close()
	if f.named {
		err = errors.Join(err, os.Remove(f.Name()))
	}
	return err
}
