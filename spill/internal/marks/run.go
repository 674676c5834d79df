// This file lays out a run: a file of marks, sorted, written once.
//
//	pages    of 4 KiB, each: crc 4 | id 4 | number 4 | count 4 | marks of 12, ascending | zeros
//	filter   from filterAt on: blocks of 64
//	index    the first 8 bytes of each page's first mark
//	footer   "marks" 0 0, format 1 | id 4 | pages 4 | marks 8 | blocks 8 | filterAt 8 |
//	         crc of the pages' crcs 4 | crc of the filter 4 | of the index 4 | of the footer 4
//
// A page has the run's id and its own number, so that one in a wrong place is found. The footer's crc
// stands for the whole content: the state keeps it, and so an older file of the same name is found.
// Numbers are big-endian, but for the words of filter blocks.

package marks

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/seed-7440039f/frontier/spill/internal/wire"
	"github.com/seed-7440039f/frontier/storage"
)

const (
	Folder     = "marks" // of the files
	PageSize   = 4 << 10 // bytes
	PageMarks  = (PageSize - pageHead) / markLen
	IndexEntry = 8 // bytes of the index for each page

	markLen   = len(storage.Mark{})
	pageHead  = 16
	footerLen = 56
	runMagic  = "marks\x00\x00"
)

// What is wrong with a file.
var (
	ErrFooter  = errors.New("footer is malformed")
	ErrSize    = errors.New("file has the wrong size")
	ErrNoRun   = errors.New("file is missing")
	errPlace   = errors.New("it is another page")
	errForeign = errors.New("file is not the one that the state names")
)

// Ref names a run in the state.
type Ref struct {
	ID    uint32 // of the file
	Level uint8  // how often its marks were merged
	Count uint64 // marks
	Sum   uint32 // crc of the footer
}

// NameOf returns the name of the file with a number.
func NameOf(id uint32) string { return fmt.Sprintf("%s/%08x", Folder, id) }

// IDOf returns the id in a name that NameOf made.
func IDOf(name string) (id uint32, ok bool) {
	_, err := fmt.Sscanf(name, Folder+"/%08x", &id)
	return id, err == nil && name == NameOf(id)
}

// splitMark returns a mark as numbers that sort as it does.
func splitMark(m []byte) (hi uint64, lo uint32) {
	return binary.BigEndian.Uint64(m), binary.BigEndian.Uint32(m[8:])
}

// JoinMark undoes splitMark.
func JoinMark(hi uint64, lo uint32) (m storage.Mark) {
	binary.BigEndian.PutUint64(m[:], hi)
	binary.BigEndian.PutUint32(m[8:], lo)
	return m
}

// PagesFor returns the number of pages of a run.
func PagesFor(marks uint64) uint64 { return (marks + uint64(PageMarks) - 1) / uint64(PageMarks) }

// closePage fills the head of a page.
func closePage(id, number uint32, marks int, page []byte) {
	binary.BigEndian.PutUint32(page[4:], id)
	binary.BigEndian.PutUint32(page[8:], number)
	binary.BigEndian.PutUint32(page[12:], uint32(marks))
	binary.BigEndian.PutUint32(page, crc32.Checksum(page[4:], wire.Castagnoli))
}

// openPage returns the marks of a page, which alias it.
func openPage(id, number uint32, page []byte) ([]byte, error) {
	if binary.BigEndian.Uint32(page) != crc32.Checksum(page[4:], wire.Castagnoli) {
		return nil, fmt.Errorf("page %d: %w", number, wire.ErrChecksum)
	}
	n := binary.BigEndian.Uint32(page[12:])
	if binary.BigEndian.Uint32(page[4:]) != id || binary.BigEndian.Uint32(page[8:]) != number || n == 0 || n > uint32(PageMarks) {
		return nil, fmt.Errorf("page %d: %w", number, errPlace)
	}
	return page[pageHead : pageHead+int(n)*markLen], nil
}

// inPage reports whether a mark is among those of a page.
func inPage(marks []byte, hi uint64, lo uint32) bool {
	a, b := 0, len(marks)/markLen
	for a < b {
		mid := int(uint(a+b) / 2)
		h, l := splitMark(marks[mid*markLen:])
		switch {
		case h < hi || h == hi && l < lo:
			a = mid + 1
		case h == hi && l == lo:
			return true
		default:
			b = mid
		}
	}
	return false
}

// Footer is the end of a run's file.
type Footer struct {
	ID       uint32
	pages    uint32
	marks    uint64
	Blocks   uint64 // of the filter
	FilterAt uint64
	pageSums uint32
	filter   uint32 // checksums
	index    uint32
}

func (t *Footer) append(dst []byte) []byte {
	start := len(dst)
	dst = append(append(dst, runMagic...), wire.Version)
	dst = binary.BigEndian.AppendUint32(dst, t.ID)
	dst = binary.BigEndian.AppendUint32(dst, t.pages)
	dst = binary.BigEndian.AppendUint64(dst, t.marks)
	dst = binary.BigEndian.AppendUint64(dst, t.Blocks)
	dst = binary.BigEndian.AppendUint64(dst, t.FilterAt)
	dst = binary.BigEndian.AppendUint32(dst, t.pageSums)
	dst = binary.BigEndian.AppendUint32(dst, t.filter)
	dst = binary.BigEndian.AppendUint32(dst, t.index)
	return binary.BigEndian.AppendUint32(dst, crc32.Checksum(dst[start:], wire.Castagnoli))
}

// IndexAt is where the index begins.
func (t *Footer) IndexAt() uint64 { return t.FilterAt + t.Blocks*filterBlock }

// readFooter decodes the footer of a file of size bytes, and checks that its contents are
// consistent with that size. It also returns the footer's checksum.
func readFooter(b []byte, size int64) (t Footer, sum uint32, err error) {
	if len(b) != footerLen || string(b[:len(runMagic)]) != runMagic || b[len(runMagic)] != wire.Version {
		return t, 0, ErrFooter
	}
	sum = binary.BigEndian.Uint32(b[footerLen-4:])
	if sum != crc32.Checksum(b[:footerLen-4], wire.Castagnoli) {
		return t, 0, wire.ErrChecksum
	}
	t.ID = binary.BigEndian.Uint32(b[8:])
	t.pages = binary.BigEndian.Uint32(b[12:])
	t.marks = binary.BigEndian.Uint64(b[16:])
	t.Blocks = binary.BigEndian.Uint64(b[24:])
	t.FilterAt = binary.BigEndian.Uint64(b[32:])
	t.pageSums = binary.BigEndian.Uint32(b[40:])
	t.filter = binary.BigEndian.Uint32(b[44:])
	t.index = binary.BigEndian.Uint32(b[48:])
	whole := uint64(size)
	switch {
	case t.marks == 0 || t.pages == 0 || PagesFor(t.marks) != uint64(t.pages):
		return t, 0, ErrFooter
	case t.Blocks == 0 || t.Blocks > filterLimit || t.Blocks%foldMultiple != 0:
		return t, 0, ErrFooter
	case t.FilterAt > whole || t.FilterAt < uint64(t.pages)*PageSize:
		return t, 0, ErrFooter
	case t.IndexAt()+uint64(t.pages)*IndexEntry+footerLen != whole:
		return t, 0, ErrSize
	}
	return t, sum, nil
}
