// This file writes runs, in bounded memory whatever their size.

package spill

import (
	"encoding/binary"
	"errors"
	"hash/crc32"

	"github.com/seed-7440039f/frontier/spill/internal/kv"
)

const streamBuffer = 64 << 10

// stream writes consecutive bytes of a file in large pieces.
type stream struct {
	f   kv.FileWriter
	at  int64 // where buf goes
	buf []byte
	sum uint32 // of all that was written
}

func (s *stream) write(p []byte) error {
	if len(s.buf)+len(p) > streamBuffer {
		if err := s.flush(); err != nil {
			return err
		}
	}
	s.buf = append(s.buf, p...)
	return nil
}

func (s *stream) flush() error {
	if len(s.buf) == 0 {
		return nil
	}
	s.sum = crc32.Update(s.sum, castagnoli, s.buf)
	_, err := s.f.WriteAt(s.buf, s.at)
	s.at += int64(len(s.buf))
	s.buf = s.buf[:0]
	return err
}

// runWriter makes one run of marks that come in ascending order.
type runWriter struct {
	id     uint32
	f      kv.FileWriter
	pages  stream
	blocks stream
	filter filterWriter
	foot   footer

	page   [pageSize]byte
	inPage int // marks in page
	hi     uint64
	lo     uint32 // the last mark
	index  []byte
}

// newRunWriter begins a run of at most limit marks.
func newRunWriter(db kv.DB, id uint32, limit uint64) (*runWriter, error) {
	pages := pagesFor(limit)
	if pages >= 1<<32 {
		return nil, errors.New("too many marks for one run")
	}
	w := &runWriter{id: id}
	w.foot = footer{id: id, blocks: filterBlocks(limit), filterAt: pages * pageSize}
	size := w.foot.indexAt() + pages*indexEntry + footerLen
	f, err := db.CreateFile(runName(id), int64(size))
	if err != nil {
		return nil, err
	}
	w.f = f
	w.pages.f = f
	w.blocks.f, w.blocks.at = f, int64(w.foot.filterAt)
	w.filter = filterWriter{out: &w.blocks, n: w.foot.blocks}
	w.index = make([]byte, 0, pages*indexEntry)
	return w, nil
}

// add appends a mark. One that equals the last is left out.
func (w *runWriter) add(hi uint64, lo uint32) error {
	if w.foot.marks > 0 && hi == w.hi && lo == w.lo {
		return nil
	}
	w.hi, w.lo = hi, lo
	if w.inPage == 0 {
		w.index = binary.BigEndian.AppendUint64(w.index, hi)
	}
	at := w.page[pageHead+w.inPage*markLen:]
	binary.BigEndian.PutUint64(at, hi)
	binary.BigEndian.PutUint32(at[8:], lo)
	w.inPage++
	w.foot.marks++
	if err := w.filter.add(hi, lo); err != nil {
		return err
	}
	if w.inPage == pageMarks {
		return w.endPage()
	}
	return nil
}

func (w *runWriter) endPage() error {
	if w.inPage == 0 {
		return nil
	}
	clear(w.page[pageHead+w.inPage*markLen:])
	closePage(w.id, w.foot.pages, w.inPage, w.page[:])
	w.foot.pageSums = crc32.Update(w.foot.pageSums, castagnoli, w.page[:4])
	w.foot.pages++
	w.inPage = 0
	return w.pages.write(w.page[:])
}

// finish completes the file, which then survives a loss of power, and closes it.
// After an error abandon must be called.
func (w *runWriter) finish(level uint8) (runRef, error) {
	if err := w.endPage(); err != nil {
		return runRef{}, err
	}
	if err := w.pages.flush(); err != nil {
		return runRef{}, err
	}
	if err := w.filter.end(); err != nil {
		return runRef{}, err
	}
	w.foot.filter = w.blocks.sum
	w.foot.index = crc32.Checksum(w.index, castagnoli)
	end := w.foot.append(w.index)
	if _, err := w.f.WriteAt(end, int64(w.foot.indexAt())); err != nil {
		return runRef{}, err
	}
	if err := w.f.Sync(); err != nil {
		return runRef{}, err
	}
	f := w.f
	w.f = nil
	if err := f.Close(); err != nil {
		return runRef{}, err
	}
	sum := binary.BigEndian.Uint32(end[len(end)-4:])
	return runRef{id: w.id, level: level, count: w.foot.marks, sum: sum}, nil
}

// abandon closes the file and removes it.
func (w *runWriter) abandon(db kv.DB) error {
	var err error
	if w.f != nil {
		err = w.f.Close()
	}
	return errors.Join(err, db.RemoveFile(runName(w.id)))
}
