// Package spool holds a document that is written once and read any number of times, from memory or,
// if it is long, from a temporary file. It corresponds to Mercator's RewindInputStream.
//
//	b := spool.New(spool.Options{Memory: 1 << 20})
//	defer b.Close()
//	_, err := io.Copy(b, response.Body)
//	links, err := link.Extract(b.Reader(), ...)
//	_, err = io.Copy(archive, b.Reader()) // from its start again
//
// The name of the file contains nothing of a URL. Where the system allows it, the file has no name
// while it is in use, so that a crash leaves nothing behind.
package spool

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/seed-7440039f/frontier/internal/tempfile"
)

// Options say where a Body is kept. The zero value works.
type Options struct {
	// Memory is the size in bytes up to which a document is kept in memory; a longer one is stored
	// in a file. Zero means 1 MiB.
	Memory int
	// Dir is the folder for files. Empty means os.TempDir.
	Dir string
}

// Body is a document. A nil *Body is an empty one. One goroutine writes it; then several may read
// it until Close, each with a separate Reader.
type Body struct {
	opts   Options
	buf    []byte
	file   *tempfile.File
	size   int64
	closed bool
	until  context.Context // nil: no limit
	cut    atomic.Bool     // a read came too late
}

// ErrClosed is returned by the use of a Body after Close.
var ErrClosed = errors.New("spool: body is closed")

// New returns an empty Body.
func New(o Options) *Body {
	o.Memory = cmp.Or(max(0, o.Memory), 1<<20)
	return &Body{opts: o}
}

// Of returns a Body of bytes that are already in memory; it keeps them.
func Of(p []byte) *Body { return &Body{buf: p, size: int64(len(p))} }

// Grow allocates space for n more bytes, as far as they are kept in memory.
func (b *Body) Grow(n int) {
	if n = min(n, b.opts.Memory) - len(b.buf); b.file == nil && n > cap(b.buf)-len(b.buf) {
		b.buf = append(make([]byte, 0, len(b.buf)+n), b.buf...)
	}
}

// Write appends p. Errors come from the temporary file.
func (b *Body) Write(p []byte) (int, error) {
	if b.closed {
		return 0, ErrClosed
	}
	if b.file == nil && len(b.buf)+len(p) > b.opts.Memory {
		if err := b.spill(); err != nil {
			return 0, err
		}
	}
	n := len(p)
	var err error
	if b.file == nil {
		b.buf = append(b.buf, p...)
	} else if n, err = b.file.Write(p); err != nil {
		err = fmt.Errorf("spool: %w", err)
	}
	b.size += int64(n)
	return n, err
}

// spill moves the document from memory to a file.
func (b *Body) spill() error {
	f, err := tempfile.Create(b.opts.Dir, "rewind-*")
	if err != nil {
		return fmt.Errorf("spool: %w", err)
	}
	if _, err := f.Write(b.buf); err != nil {
		_ = f.Close()
		return fmt.Errorf("spool: %w", err)
	}
	b.file, b.buf = f, nil
	return nil
}

// Size returns the number of bytes written.
func (b *Body) Size() int64 {
	if b == nil {
		return 0
	}
	return b.size
}

// InMemory reports whether Bytes costs nothing.
func (b *Body) InMemory() bool { return b == nil || b.file == nil }

// Until makes reads fail with ctx's error once ctx has ended, so that a long document holds no caller up;
// context.Background lifts this. It must not be called during a read.
func (b *Body) Until(ctx context.Context) {
	if b != nil {
		b.until = ctx
	}
}

// Cut reports whether a read failed because of Until.
func (b *Body) Cut() bool { return b != nil && b.cut.Load() }

// Reader reads the document from its start.
func (b *Body) Reader() *io.SectionReader { return io.NewSectionReader(b, 0, b.Size()) }

// ReadAt implements io.ReaderAt.
func (b *Body) ReadAt(p []byte, off int64) (int, error) {
	switch {
	case b == nil:
		return 0, io.EOF
	case b.closed:
		return 0, ErrClosed
	case b.until != nil && b.until.Err() != nil:
		b.cut.Store(true)
		return 0, b.until.Err()
	case b.file != nil:
		return b.file.ReadAt(p, off)
	}
	return bytes.NewReader(b.buf).ReadAt(p, off)
}

// Head returns up to n bytes from the start, for detecting the type of a document.
func (b *Body) Head(n int) []byte {
	if b == nil {
		return nil
	}
	if b.file == nil {
		return b.buf[:min(n, len(b.buf))]
	}
	p := make([]byte, min(int64(n), b.size))
	n, _ = b.ReadAt(p, 0)
	return p[:n]
}

// Bytes returns the whole document, which must not be changed. A document in a file is read into
// memory.
func (b *Body) Bytes() ([]byte, error) {
	switch {
	case b == nil:
		return nil, nil
	case b.closed:
		return nil, ErrClosed
	case b.file == nil:
		return b.buf, nil
	}
	p := make([]byte, b.size)
	_, err := io.ReadFull(b.Reader(), p)
	return p, err
}

// Truncate drops all but the first n bytes.
func (b *Body) Truncate(n int64) error {
	switch {
	case n >= b.Size():
		return nil
	case b.file == nil:
		b.buf = b.buf[:n]
	default:
		if err := b.file.Truncate(n); err != nil {
			return fmt.Errorf("spool: %w", err)
		}
		if _, err := b.file.Seek(n, io.SeekStart); err != nil {
			return fmt.Errorf("spool: %w", err)
		}
	}
	b.size = n
	return nil
}

// Close releases memory and file. Closing again does nothing.
func (b *Body) Close() error {
	if b == nil || b.closed {
		return nil
	}
	b.closed, b.buf = true, nil
	if b.file == nil {
		return nil
	}
	err := b.file.Close()
	b.file = nil
	return err
}
