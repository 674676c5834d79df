// This file keeps files in folders beside badger's own.
//
// It respects the reserve of the volume, as badger.go does: a file that fills the volume would
// crash badger, not its own writer.

package kv

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/seed-7440039f/frontier/internal/durablefs"
)

const smallFile = 16 << 10 // made even when space is short

// folder is the Files of a Badger.
type folder struct {
	path    string
	reserve uint64 // bytes of the volume that stay free
}

// space fails unless size bytes can be written without touching the reserve.
func (d *folder) space(size int64) error {
	if err := durablefs.Space(d.path, uint64(size), d.reserve); err != nil {
		return fmt.Errorf("kv: %w", err)
	}
	return nil
}

func (d *folder) file(name string) string { return filepath.Join(d.path, filepath.FromSlash(name)) }

// CreateFile is for the store.
func (d *folder) CreateFile(name string, size int64) (FileWriter, error) {
	w := &fileWriter{in: d, unchecked: smallFile}
	if size > smallFile {
		if err := d.space(size); err != nil {
			return nil, err
		}
		w.unchecked = checkEvery
	}
	f, err := create(d.file(name))
	if errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(filepath.Dir(d.file(name)), 0o777); err != nil {
			return nil, err
		}
		w.newFolder = true
		f, err = create(d.file(name))
	}
	if err != nil {
		return nil, err
	}
	w.f = f
	return w, nil
}

func create(name string) (*os.File, error) {
	return os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o666)
}

// OpenFile is for the store.
func (d *folder) OpenFile(name string) (FileReader, error) {
	f, err := os.Open(d.file(name))
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &fileReader{f, info.Size()}, nil
}

// ListFiles is for the store.
func (d *folder) ListFiles(folder string) ([]string, error) {
	entries, err := os.ReadDir(d.file(folder))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		names = append(names, path.Join(folder, e.Name()))
	}
	return names, nil
}

type fileWriter struct {
	in        *folder
	f         *os.File
	unchecked int  // bytes that may be written before the next look at the free space
	newFolder bool // the folder was made for this file
}

// WriteAt is for the store.
func (w *fileWriter) WriteAt(p []byte, off int64) (int, error) {
	if len(p) > w.unchecked {
		if err := w.in.space(int64(len(p))); err != nil {
			return 0, err
		}
		w.unchecked = max(checkEvery, len(p))
	}
	w.unchecked -= len(p)
	return w.f.WriteAt(p, off)
}

// Sync is for the store.
func (w *fileWriter) Sync() error {
	if err := w.f.Sync(); err != nil {
		return err
	}
	if err := durablefs.SyncFolder(filepath.Dir(w.f.Name())); err != nil || !w.newFolder {
		return err
	}
	return durablefs.SyncFolder(w.in.path)
}

// Close is for the store.
func (w *fileWriter) Close() error { return w.f.Close() }

type fileReader struct {
	*os.File
	size int64
}

// Size is for the store.
func (r *fileReader) Size() int64 { return r.size }
