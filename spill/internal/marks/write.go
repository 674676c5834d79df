// This file writes runs, in bounded memory whatever their size.

package marks

import (
	"encoding/binary"
	"errors"
	"hash/crc32"

	"github.com/seed-7440039f/frontier/spill/internal/kv"
	"github.com/seed-7440039f/frontier/spill/internal/wire"
	"github.com/seed-7440039f/frontier/storage"
)

const streamBuffer = 64 << 10

// stream writes consecutive bytes of a file in large pieces.
type stream struct {
	f   kv.FileWriter
	at  int64 // where buf goes
	buf []byte
	sum uint32 // of everything written so far
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
	s.sum = crc32.Update(s.sum, wire.Castagnoli, s.buf)
	_, err := s.f.WriteAt(s.buf, s.at)
	s.at += int64(len(s.buf))
	s.buf = s.buf[:0]
	return err
}

// Writer writes one run of marks that are added in ascending order.
type Writer struct {
	ID     uint32
	f      kv.FileWriter
	pages  stream
	blocks stream
	filter filterWriter
	foot   Footer

	page   [PageSize]byte
	inPage int // marks in page
	hi     uint64
	lo     uint32 // the last mark
	index  []byte
}

// Create begins a run of at most limit marks.
func Create(db kv.Files, id uint32, limit uint64) (*Writer, error) {
	pages := PagesFor(limit)
	if pages >= 1<<32 {
		return nil, errors.New("too many marks for one run")
	}
	w := &Writer{ID: id}
	w.foot = Footer{ID: id, Blocks: FilterBlocks(limit), FilterAt: pages * PageSize}
	size := w.foot.IndexAt() + pages*IndexEntry + footerLen
	f, err := db.CreateFile(NameOf(id), int64(size))
	if err != nil {
		return nil, err
	}
	w.f = f
	w.pages.f = f
	w.blocks.f, w.blocks.at = f, int64(w.foot.FilterAt)
	w.filter = filterWriter{out: &w.blocks, n: w.foot.Blocks}
	w.index = make([]byte, 0, pages*IndexEntry)
	return w, nil
}

// Add appends a mark. One that equals the last is left out.
func (w *Writer) Add(hi uint64, lo uint32) error {
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
	if w.inPage == PageMarks {
		return w.endPage()
	}
	return nil
}

// AddAll sorts marks and adds them.
func (w *Writer) AddAll(ms []storage.Mark) error {
	sortMarks(ms)
	for i := range ms {
		if err := w.Add(splitMark(ms[i][:])); err != nil {
			return err
		}
	}
	return nil
}

// Sync makes everything added so far survive a loss of power.
func (w *Writer) Sync() error { return w.f.Sync() }

func (w *Writer) endPage() error {
	if w.inPage == 0 {
		return nil
	}
	clear(w.page[pageHead+w.inPage*markLen:])
	closePage(w.ID, w.foot.pages, w.inPage, w.page[:])
	w.foot.pageSums = crc32.Update(w.foot.pageSums, wire.Castagnoli, w.page[:4])
	w.foot.pages++
	w.inPage = 0
	return w.pages.write(w.page[:])
}

// Finish completes the file, makes it survive a loss of power, and closes it. After an error the
// caller must call Abandon.
func (w *Writer) Finish(level uint8) (Ref, error) {
	if err := w.endPage(); err != nil {
		return Ref{}, err
	}
	if err := w.pages.flush(); err != nil {
		return Ref{}, err
	}
	if err := w.filter.end(); err != nil {
		return Ref{}, err
	}
	w.foot.filter = w.blocks.sum
	w.foot.index = crc32.Checksum(w.index, wire.Castagnoli)
	end := w.foot.append(w.index)
	if _, err := w.f.WriteAt(end, int64(w.foot.IndexAt())); err != nil {
		return Ref{}, err
	}
	if err := w.f.Sync(); err != nil {
		return Ref{}, err
	}
	f := w.f
	w.f = nil
	if err := f.Close(); err != nil {
		return Ref{}, err
	}
	sum := binary.BigEndian.Uint32(end[len(end)-4:])
	return Ref{ID: w.ID, Level: level, Count: w.foot.marks, Sum: sum}, nil
}

// Abandon closes the file and removes it.
func (w *Writer) Abandon(db kv.Files) error {
	var err error
	if w.f != nil {
		err = w.f.Close()
	}
	return errors.Join(err, db.RemoveFiles(NameOf(w.ID)))
}
