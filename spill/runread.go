// This file opens runs and reads their pages.

package spill

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"io/fs"
	"sync"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/spill/internal/kv"
)

// run is an open run. It never changes: one with another filter is another run,
// of the same file.
type run struct {
	*runFile
	filter  *filter        // nil while there is no memory for it
	readers sync.WaitGroup // of lists; none joins once the run is out of the list
}

// runFile is the open file of a run.
type runFile struct {
	runRef
	f     kv.FileReader
	foot  footer
	index []uint64 // first 8 bytes of each page

	pins    int  // guarded by markSet.mu; snapshots that read the file
	retired bool // guarded by markSet.mu; the last of them closes and removes it
}

// name is the run's file, and what reports of damage call it.
func (r *runFile) name() string { return runName(r.id) }

func (r *runFile) corrupt(err error) error {
	return &frontier.CorruptError{Key: []byte(r.name()), File: r.name(), Err: err}
}

// bytes is the memory that the run takes.
func (r *run) bytes() int64 { return int64(len(r.index))*indexEntry + r.filter.bytes() }

// openRun opens the run that ref names and reads its index and its filter,
// folded fold times.
func openRun(db kv.DB, ref runRef, fold int) (*run, error) {
	r := &runFile{runRef: ref}
	f, err := db.OpenFile(r.name())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, r.corrupt(errNoRun)
	}
	if err != nil {
		return nil, err
	}
	r.f = f
	if err := r.load(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	filter, err := r.loadFilter(fold)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &run{runFile: r, filter: filter}, nil
}

// close gives up what the run has. Nobody may use it any more.
func (r *run) close() error {
	r.filter.free()
	return r.f.Close()
}

// load reads footer and index.
func (r *runFile) load() error {
	size := r.f.Size()
	if size < footerLen {
		return r.corrupt(errSize)
	}
	var end [footerLen]byte
	if err := r.readAt(end[:], size-footerLen); err != nil {
		return err
	}
	foot, sum, err := readFooter(end[:], size)
	if err != nil {
		return r.corrupt(err)
	}
	if foot.id != r.id || foot.marks != r.count || sum != r.sum {
		return r.corrupt(errForeign)
	}
	r.foot = foot
	b := make([]byte, int(r.foot.pages)*indexEntry)
	if err := r.readAt(b, int64(r.foot.indexAt())); err != nil {
		return err
	}
	if crc32.Checksum(b, castagnoli) != r.foot.index {
		return r.corrupt(errChecksum)
	}
	r.index = make([]uint64, r.foot.pages)
	for i := range r.index {
		r.index[i] = binary.BigEndian.Uint64(b[i*indexEntry:])
	}
	return nil
}

// loadFilter reads the filter, folded fold times.
func (r *runFile) loadFilter(fold int) (*filter, error) {
	f := newFilter(r.foot.blocks, fold)
	err := r.fill(f)
	if err != nil {
		f.free()
		return nil, err
	}
	return f, nil
}

func (r *runFile) fill(f *filter) error {
	sum := uint32(0)
	buf := make([]byte, min(streamBuffer, r.foot.blocks*filterBlock))
	for at := uint64(0); at < r.foot.blocks; {
		n := min(uint64(len(buf))/filterBlock, r.foot.blocks-at)
		b := buf[:n*filterBlock]
		if err := r.readAt(b, int64(r.foot.filterAt+at*filterBlock)); err != nil {
			return err
		}
		sum = crc32.Update(sum, castagnoli, b)
		f.merge(at, b)
		at += n
	}
	if sum != r.foot.filter {
		return r.corrupt(errChecksum)
	}
	return nil
}

// readAt fills b. A file that ends too early is damaged.
func (r *runFile) readAt(b []byte, at int64) error {
	n, err := r.f.ReadAt(b, at)
	switch {
	case n == len(b):
		return nil
	case errors.Is(err, io.EOF):
		return r.corrupt(errSize)
	}
	return err
}

// page reads a page into buf and returns its marks, which alias buf.
func (r *runFile) page(number uint32, buf []byte) ([]byte, error) {
	if err := r.readAt(buf[:pageSize], int64(number)*pageSize); err != nil {
		return nil, err
	}
	marks, err := openPage(r.id, number, buf[:pageSize])
	if err != nil {
		return nil, r.corrupt(err)
	}
	return marks, nil
}

// pageOf returns the last page that begins with hi or before, and whether there
// is one. Marks are uniform, so the search begins where hi should be.
func (r *runFile) pageOf(hi uint64) (uint32, bool) {
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
	r    *runFile
	next uint32 // page to read next
	buf  []byte // pages, read together
	left []byte // of buf
	page []byte // marks that follow, of the current page
	hi   uint64
	lo   uint32 // the current mark
}

// streamPages is how many pages a cursor reads at once.
const streamPages = streamBuffer / pageSize

func newCursor(r *runFile) *cursor { return &cursor{r: r} }

// fill returns the marks of the next page, none at the end.
func (c *cursor) fill() ([]byte, error) {
	if len(c.left) == 0 {
		n := min(streamPages, int(c.r.foot.pages-c.next))
		if n == 0 {
			return nil, nil
		}
		if c.buf == nil {
			c.buf = make([]byte, n*pageSize)
		}
		c.left = c.buf[:n*pageSize]
		if err := c.r.readAt(c.left, int64(c.next)*pageSize); err != nil {
			return nil, err
		}
	}
	marks, err := openPage(c.r.id, c.next, c.left[:pageSize])
	if err != nil {
		return nil, c.r.corrupt(err)
	}
	c.left = c.left[pageSize:]
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
