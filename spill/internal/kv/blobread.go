// This file reads blobs, and removes them when they are no longer read.

package kv

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// hold returns a file for reading, or nil if there is none. The caller ends with f.use.RUnlock.
func (b *blobs) hold(id uint32) *blob {
	b.mu.RLock()
	defer b.mu.RUnlock()
	f := b.files[id]
	if f != nil {
		f.use.RLock()
	}
	return f
}

// buffers are for values that are read.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// read returns n bytes from at on, in buf if they fit.
func (f *blob) read(buf []byte, at, n int64) ([]byte, error) {
	if size := f.size.Load(); at+n > size {
		return nil, fmt.Errorf("%w: %s has %d bytes, want %d", ErrDamaged, filepath.Base(f.file.Name()), size, at+n)
	}
	if int64(cap(buf)) < n {
		buf = make([]byte, n)
	}
	buf = buf[:n]
	if got, err := f.file.ReadAt(buf, at); int64(got) < n {
		if errors.Is(err, io.EOF) { // it was cut short since it was opened
			err = fmt.Errorf("%w: %w", ErrDamaged, err)
		}
		return nil, err
	}
	return buf, nil
}

// peek is read without waiting for the disk. It reports whether the bytes are in memory.
func (f *blob) peek(buf []byte, at, n int64) ([]byte, bool) {
	if at+n > f.size.Load() {
		return buf, false
	}
	if int64(cap(buf)) < n {
		buf = make([]byte, n)
	}
	return buf[:n], readCached(f.file, buf[:n], at)
}

// window reads adjacent values with few calls. The zero value with blobs set has read nothing.
type window struct {
	blobs *blobs
	file  uint32
	at    int64
	buf   []byte
}

const windowLen = 128 << 10

// value returns the value at a place. It is valid until the next call.
func (w *window) value(p place) (_ []byte, err error) {
	from := int64(p.at) - w.at
	if w.file == p.file && from >= 0 && from+int64(p.n) <= int64(len(w.buf)) {
		return w.buf[from:][:p.n], nil
	}
	f := w.blobs.hold(p.file)
	if f == nil {
		return nil, errNoBlob(p.file)
	}
	defer f.use.RUnlock()
	n := max(int64(p.n), min(windowLen, f.size.Load()-int64(p.at)))
	w.file = 0
	if w.buf, err = f.read(w.buf, int64(p.at), n); err != nil {
		return nil, err
	}
	w.file, w.at = p.file, int64(p.at)
	return w.buf[:p.n], nil
}

func errNoBlob(id uint32) error {
	return fmt.Errorf("%w: file %d of values is missing", ErrDamaged, id)
}

// pin keeps files from being removed; unpin ends that.
func (b *blobs) pin() {
	b.mu.Lock()
	b.pins++
	b.mu.Unlock()
}

func (b *blobs) unpin() {
	b.mu.Lock()
	b.pins--
	var gone []*blob
	if b.pins == 0 {
		gone, b.gone = b.gone, nil
		for _, f := range gone {
			delete(b.files, f.id)
		}
	}
	b.mu.Unlock()
	for _, f := range gone {
		_ = f.remove() // an unused file is found again at the next opening
	}
}

// drop removes a file, now or after the last snapshot ends.
func (b *blobs) drop(f *blob) error {
	b.mu.Lock()
	if b.pins > 0 {
		f.dropped = true
		b.gone = append(b.gone, f)
		b.mu.Unlock()
		return nil
	}
	delete(b.files, f.id)
	b.mu.Unlock()
	return f.remove()
}

// forget removes a file that will be dropped from the data guarded by Badger.turn.
func (b *blobs) forget(f *blob) {
	if b.filling[f.life] == f {
		b.filling[f.life] = nil
	}
	b.synced(f)
}

// all returns the files, except dropped ones.
func (b *blobs) all() []*blob {
	b.mu.RLock()
	defer b.mu.RUnlock()
	all := make([]*blob, 0, len(b.files))
	for _, f := range b.files {
		if !f.dropped {
			all = append(all, f)
		}
	}
	return all
}

func (f *blob) remove() error {
	f.use.Lock()
	defer f.use.Unlock()
	return errors.Join(f.file.Close(), os.Remove(f.file.Name()))
}

// readBlobs opens the files of values of a folder.
func readBlobs(dir string) (*blobs, error) {
	b := &blobs{path: filepath.Join(dir, blobFolder), files: map[uint32]*blob{}, next: 1}
	names, err := os.ReadDir(b.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, n := range names {
		f, err := openBlob(b.path, n.Name())
		if err != nil {
			return nil, errors.Join(err, b.close())
		}
		if f != nil {
			b.files[f.id] = f
			b.next = max(b.next, f.id+1)
		}
	}
	return b, nil
}
