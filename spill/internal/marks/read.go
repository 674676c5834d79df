// This file opens runs and reads their pages.

package marks

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"io/fs"
	"sync"

	"github.com/seed-7440039f/frontier/spill/internal/kv"
	"github.com/seed-7440039f/frontier/spill/internal/wire"
	"github.com/seed-7440039f/frontier/storage"
)

// Run is an open run. It never changes: a run with another filter is a new Run of the same file.
type Run struct {
	*File
	Filter  *filter        // nil while there is no memory for it
	readers sync.WaitGroup // of lists; none joins once the run is out of the list
}

// File is the open file of a run.
type File struct {
	Ref
	f     kv.FileReader
	foot  Footer
	index []uint64 // first 8 bytes of each page

	pins    int  // guarded by Set.mu; snapshots that read the file
	retired bool // guarded by Set.mu; the last user closes and removes the file
}

// Name returns the name of the run's file, which is also used in reports of damage.
func (r *File) Name() string { return NameOf(r.ID) }

func (r *File) corrupt(err error) error {
	return &storage.CorruptError{Key: []byte(r.Name()), File: r.Name(), Err: err}
}

// bytes returns the memory of the run in bytes.
func (r *Run) bytes() int64 { return int64(len(r.index))*IndexEntry + r.Filter.Bytes() }

// Open opens the run that ref names and reads its index and its filter, folded fold times.
func Open(db kv.Files, ref Ref, fold int) (*Run, error) {
	r, err := OpenFile(db, ref)
	if err != nil {
		return nil, err
	}
	filter, err := r.loadFilter(fold)
	if err != nil {
		return nil, errors.Join(err, r.CloseFile())
	}
	return &Run{File: r, Filter: filter}, nil
}

// OpenFile opens the file that ref names and reads its index.
func OpenFile(db kv.Files, ref Ref) (*File, error) {
	r := &File{Ref: ref}
	f, err := db.OpenFile(r.Name())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, r.corrupt(ErrNoRun)
	}
	if err != nil {
		return nil, err
	}
	r.f = f
	if err := r.load(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return r, nil
}

// CloseFile closes the file, which must have no readers.
func (r *File) CloseFile() error { return r.f.Close() }

// Close frees the filter and closes the file, which must have no readers.
func (r *Run) Close() error {
	r.Filter.free()
	return r.CloseFile()
}

// load reads footer and index.
func (r *File) load() error {
	size := r.f.Size()
	if size < footerLen {
		return r.corrupt(ErrSize)
	}
	var end [footerLen]byte
	if err := r.readAt(end[:], size-footerLen); err != nil {
		return err
	}
	foot, sum, err := readFooter(end[:], size)
	if err != nil {
		return r.corrupt(err)
	}
	if foot.ID != r.ID || foot.marks != r.Count || sum != r.Sum {
		return r.corrupt(errForeign)
	}
	r.foot = foot
	b := make([]byte, int(r.foot.pages)*IndexEntry)
	if err := r.readAt(b, int64(r.foot.IndexAt())); err != nil {
		return err
	}
	if crc32.Checksum(b, wire.Castagnoli) != r.foot.index {
		return r.corrupt(wire.ErrChecksum)
	}
	r.index = make([]uint64, r.foot.pages)
	for i := range r.index {
		r.index[i] = binary.BigEndian.Uint64(b[i*IndexEntry:])
	}
	return nil
}

// loadFilter reads the filter, folded fold times.
func (r *File) loadFilter(fold int) (*filter, error) {
	f := newFilter(r.foot.Blocks, fold)
	err := r.fill(f)
	if err != nil {
		f.free()
		return nil, err
	}
	return f, nil
}

func (r *File) fill(f *filter) error {
	sum := uint32(0)
	buf := make([]byte, min(streamBuffer, r.foot.Blocks*filterBlock))
	for at := uint64(0); at < r.foot.Blocks; {
		n := min(uint64(len(buf))/filterBlock, r.foot.Blocks-at)
		b := buf[:n*filterBlock]
		if err := r.readAt(b, int64(r.foot.FilterAt+at*filterBlock)); err != nil {
			return err
		}
		sum = crc32.Update(sum, wire.Castagnoli, b)
		f.merge(at, b)
		at += n
	}
	if sum != r.foot.filter {
		return r.corrupt(wire.ErrChecksum)
	}
	return nil
}

// readAt fills b. A file that is too short is damaged.
func (r *File) readAt(b []byte, at int64) error {
	n, err := r.f.ReadAt(b, at)
	switch {
	case n == len(b):
		return nil
	case errors.Is(err, io.EOF):
		return r.corrupt(ErrSize)
	}
	return err
}

// page reads a page into buf and returns its marks, which alias buf.
func (r *File) page(number uint32, buf []byte) ([]byte, error) {
	if err := r.readAt(buf[:PageSize], int64(number)*PageSize); err != nil {
		return nil, err
	}
	marks, err := openPage(r.ID, number, buf[:PageSize])
	if err != nil {
		return nil, r.corrupt(err)
	}
	return marks, nil
}

// pageOf returns the last page that begins with hi or before, and whether there
// is one. Marks are uniform, so the search begins where hi should be.
func (r *File) pageOf(hi uint64) (uint32, bool) {
	x := r.index
	a, b := 0, len(x) // x[a-1] <= hi < x[b], where there are such
	guess := int(blockOf(hi, uint64(len(x))))
	if x[guess] <= hi {
		a = guess + 1
		for step := 1; a+step < b; step *= 2 {
			if x[a+step] > hi {
				b = a + step
				break
			}
			a += step + 1
		}
	} else {
		b = guess
		for step := 1; b-step > a; step *= 2 {
			if x[b-step] <= hi {
				a = b - step + 1
				break
			}
			b -= step
		}
	}
	for a < b {
		mid := int(uint(a+b) / 2)
		if x[mid] <= hi {
			a = mid + 1
		} else {
			b = mid
		}
	}
	return uint32(a - 1), a > 0
}

// cursor walks through the marks of a run, in order.
type cursor struct {
	r    *File
	next uint32 // page to read next
	buf  []byte // pages, read together
	left []byte // of buf
	page []byte // marks that follow, of the current page
	hi   uint64
	lo   uint32 // the current mark
}

// streamPages is how many pages a cursor reads at once.
const streamPages = streamBuffer / PageSize

func newCursor(r *File) *cursor { return &cursor{r: r} }

// fill returns the marks of the next page; none at the end.
func (c *cursor) fill() ([]byte, error) {
	if len(c.left) == 0 {
		n := min(streamPages, int(c.r.foot.pages-c.next))
		if n == 0 {
			return nil, nil
		}
		if c.buf == nil {
			c.buf = make([]byte, n*PageSize)
		}
		c.left = c.buf[:n*PageSize]
		if err := c.r.readAt(c.left, int64(c.next)*PageSize); err != nil {
			return nil, err
		}
	}
	marks, err := openPage(c.r.ID, c.next, c.left[:PageSize])
	if err != nil {
		return nil, c.r.corrupt(err)
	}
	c.left = c.left[PageSize:]
	c.next++
	return marks, nil
}

// advance goes to the next mark, if there is one.
func (c *cursor) advance() (ok bool, err error) {
	if len(c.page) == 0 {
		if c.page, err = c.fill(); len(c.page) == 0 {
			return false, err
		}
	}
	c.hi, c.lo = splitMark(c.page)
	c.page = c.page[markLen:]
	return true, nil
}
