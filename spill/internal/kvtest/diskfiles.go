// This file implements the files of a Disk.
//
// Every write makes a new image and leaves the old one unchanged, so that snapshots can share images.

package kvtest

import (
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/seed-7440039f/frontier/spill/internal/kv"
)

// Fate is what a loss of power does to files that were not synced.
type Fate int

// The fates. What was synced before is left in any case.
const (
	FilesLost Fate = iota // nothing else remains of them
	FilesCut              // half of their bytes are left
	FilesKept
)

// image is the content of a file.
type image struct {
	now     []byte // what a reader sees
	synced  []byte // what a loss of power leaves, if durable
	durable bool
}

func survivors(files map[string]image, fate Fate) map[string]image {
	left := map[string]image{}
	for name, f := range files {
		switch {
		case fate == FilesKept:
		case fate == FilesCut && !f.durable:
			f.now = f.now[:len(f.now)/2]
		case f.durable:
			f.now = f.synced
		default:
			continue
		}
		left[name] = image{now: f.now, synced: f.now, durable: true}
	}
	return left
}

// CreateFile is for the store.
func (d *Disk) CreateFile(name string, _ int64) (kv.FileWriter, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.open[name] > 0 {
		return nil, fmt.Errorf("kv: create %s: it is open", name)
	}
	d.open[name]++
	d.files[name] = image{}
	return &diskFile{d: d, name: name}, nil
}

// OpenFile is for the store.
func (d *Disk) OpenFile(name string) (kv.FileReader, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f, ok := d.files[name]
	if !ok {
		return nil, fmt.Errorf("kv: open %s: %w", name, fs.ErrNotExist)
	}
	d.open[name]++
	return &diskFile{d: d, name: name, size: int64(len(f.now))}, nil
}

// RemoveFiles is called by the store. As on Windows, an open file cannot be removed.
func (d *Disk) RemoveFiles(names ...string) error {
	if err := d.Sync(); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, name := range names {
		if d.open[name] > 0 {
			return fmt.Errorf("kv: remove %s: it is open", name)
		}
		delete(d.files, name)
	}
	return nil
}

// ListFiles is for the store.
func (d *Disk) ListFiles(folder string) ([]string, error) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	var names []string
	for name := range d.files {
		if strings.HasPrefix(name, folder+"/") {
			names = append(names, name)
		}
	}
	return names, nil
}

// OpenFiles is how many files are open.
func (d *Disk) OpenFiles() (n int) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	for _, k := range d.open {
		n += k
	}
	return n
}

// diskFile is an open file, being written or read.
type diskFile struct {
	d      *Disk
	name   string
	size   int64
	closed bool
}

// WriteAt is for the store.
func (f *diskFile) WriteAt(p []byte, off int64) (int, error) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	im := f.d.files[f.name]
	now := make([]byte, max(len(im.now), int(off)+len(p)))
	copy(now, im.now)
	copy(now[off:], p)
	im.now = now
	f.d.files[f.name] = im
	return len(p), nil
}

// ReadAt is for the store.
func (f *diskFile) ReadAt(p []byte, off int64) (int, error) {
	f.d.mu.RLock()
	defer f.d.mu.RUnlock()
	now := f.d.files[f.name].now
	if off >= int64(len(now)) {
		return 0, io.EOF
	}
	n := copy(p, now[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// Sync is for the store.
func (f *diskFile) Sync() error {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	im := f.d.files[f.name]
	im.synced, im.durable = im.now, true
	f.d.files[f.name] = im
	return nil
}

// Size is for the store.
func (f *diskFile) Size() int64 { return f.size }

// Close is for the store.
func (f *diskFile) Close() error {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if f.closed {
		return fmt.Errorf("kv: close %s: %w", f.name, fs.ErrClosed)
	}
	f.closed = true
	f.d.open[f.name]--
	return nil
}
