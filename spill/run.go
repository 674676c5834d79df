// This file lays out a run: a file of marks, sorted, written once.
//
//	pages    of 4 KiB, each: crc 4 | id 4 | number 4 | count 4 | marks of 12, ascending | zeros
//	filter   from filterAt on: blocks of 64
//	index    the first 8 bytes of each page's first mark
//	footer   "marks" 0 0, format 1 | id 4 | pages 4 | marks 8 | blocks 8 | filterAt 8 |
//	         crc of the pages' crcs 4 | crc of the filter 4 | of the index 4 | of the footer 4
//
// A page tells the run's id and its own number, so that one in a wrong place is
// found. The footer's crc stands for the whole content: the state keeps it, and
// so an older file of the same name is found.
// Numbers are big-endian, but for the words of filter blocks.

package spill

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/seed-7440039f/frontier"
)

const (
	markLen    = len(frontier.Mark{})
	pageSize   = 4 << 10
	pageHead   = 16
	pageMarks  = (pageSize - pageHead) / markLen
	footerLen  = 56
	runFolder  = "marks"
	runMagic   = "marks\x00\x00"
	indexEntry = 8
)

var (
	errFooter  = errors.New("footer is malformed")
	errSize    = errors.New("file has the wrong size")
	errNoRun   = errors.New("file is missing")
	errPlace   = errors.New("it is another page")
	errForeign = errors.New("file is not the one that the state names")
)

// runRef names a run in the state.
type runRef struct {
	id    uint32 // of the file
	level uint8  // how often its marks were merged
	count uint64 // marks
	sum   uint32 // crc of the footer
}

func runName(id uint32) string { return fmt.Sprintf("%s/%08x", runFolder, id) }

// runID returns the id in a name that runName made.
func runID(name string) (id uint32, ok bool) {
	_, err := fmt.Sscanf(name, runFolder+"/%08x", &id)
	return id, err == nil && name == runName(id)
}

// splitMark returns a mark as numbers that sort as it does.
func splitMark(m []byte) (hi uint64, lo uint32) {
	return binary.BigEndian.Uint64(m), binary.BigEndian.Uint32(m[8:])
}

func joinMark(hi uint64, lo uint32) (m frontier.Mark) {
	binary.BigEndian.PutUint64(m[:], hi)
	binary.BigEndian.PutUint32(m[8:], lo)
	return m
}

func pagesFor(marks uint64) uint64 { return (marks + uint64(pageMarks) - 1) / uint64(pageMarks) }

// closePage fills the head of a page.
func closePage(id, number uint32, marks int, page []byte) {
	binary.BigEndian.PutUint32(page[4:], id)
	binary.BigEndian.PutUint32(page[8:], number)
	binary.BigEndian.PutUint32(page[12:], uint32(marks))
	binary.BigEndian.PutUint32(page, crc32.Checksum(page[4:], castagnoli))
}

// openPage returns the marks of a page, which alias it.
func openPage(id, number uint32, page []byte) ([]byte, error) {
	if binary.BigEndian.Uint32(page) != crc32.Checksum(page[4:], castagnoli) {
		return nil, fmt.Errorf("page %d: %w", number, errChecksum)
	}
	n := binary.BigEndian.Uint32(page[12:])
	if binary.BigEndian.Uint32(page[4:]) != id || binary.BigEndian.Uint32(page[8:]) != number || n == 0 || n > uint32(pageMarks) {
		return nil, fmt.Errorf("page %d: %w", number, errPlace)
	}
	return page[pageHead : pageHead+int(n)*markLen], nil
}

// inPage tells whether a mark is among those of a page.
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

// footer is the end of a run's file.
type footer struct {
	id       uint32
	pages    uint32
	marks    uint64
	blocks   uint64 // of the filter
	filterAt uint64
	pageSums uint32
	filter   uint32 // checksums
	index    uint32
}

func (t *footer) append(dst []byte) []byte {
	start := len(dst)
	dst = append(append(dst, runMagic...), format)
	dst = binary.BigEndian.AppendUint32(dst, t.id)
	dst = binary.BigEndian.AppendUint32(dst, t.pages)
	dst = binary.BigEndian.AppendUint64(dst, t.marks)
	dst = binary.BigEndian.AppendUint64(dst, t.blocks)
	dst = binary.BigEndian.AppendUint64(dst, t.filterAt)
	dst = binary.BigEndian.AppendUint32(dst, t.pageSums)
	dst = binary.BigEndian.AppendUint32(dst, t.filter)
	dst = binary.BigEndian.AppendUint32(dst, t.index)
	return binary.BigEndian.AppendUint32(dst, crc32.Checksum(dst[start:], castagnoli))
}

// indexAt is where the index begins.
func (t *footer) indexAt() uint64 { return t.filterAt + t.blocks*filterBlock }

// readFooter decodes the footer of a file of size bytes, and sees to it that
// what it says fits in there. It returns the footer's checksum, too.
func readFooter(b []byte, size int64) (t footer, sum uint32, err error) {
	if len(b) != footerLen || string(b[:len(runMagic)]) != runMagic || b[len(runMagic)] != format {
		return t, 0, errFooter
	}
	sum = binary.BigEndian.Uint32(b[footerLen-4:])
	if sum != crc32.Checksum(b[:footerLen-4], castagnoli) {
		return t, 0, errChecksum
	}
	t.id = binary.BigEndian.Uint32(b[8:])
	t.pages = binary.BigEndian.Uint32(b[12:])
	t.marks = binary.BigEndian.Uint64(b[16:])
	t.blocks = binary.BigEndian.Uint64(b[24:])
	t.filterAt = binary.BigEndian.Uint64(b[32:])
	t.pageSums = binary.BigEndian.Uint32(b[40:])
	t.filter = binary.BigEndian.Uint32(b[44:])
	t.index = binary.BigEndian.Uint32(b[48:])
	whole := uint64(size)
	switch {
	case t.marks == 0 || t.pages == 0 || pagesFor(t.marks) != uint64(t.pages):
		return t, 0, errFooter
	case t.blocks == 0 || t.blocks > filterLimit || t.blocks%foldMultiple != 0:
		return t, 0, errFooter
	case t.filterAt > whole || t.filterAt < uint64(t.pages)*pageSize:
		return t, 0, errFooter
	case t.indexAt()+uint64(t.pages)*indexEntry+footerLen != whole:
		return t, 0, errSize
	}
	return t, sum, nil
}
