// This file reads runs that may be damaged.

package marks

import (
	"errors"

	"github.com/seed-7440039f/frontier/spill/internal/kv"
	"github.com/seed-7440039f/frontier/storage"
)

// RefOf returns the reference to a run according to its file. Its number of marks is 0 if the file
// cannot be read.
func RefOf(db interface {
	OpenFile(string) (kv.FileReader, error)
}, id uint32) Ref {
	ref := Ref{ID: id}
	f, err := db.OpenFile(NameOf(id))
	if err != nil {
		return ref
	}
	defer f.Close()
	var end [footerLen]byte
	if _, err := f.ReadAt(end[:], max(0, f.Size()-footerLen)); err != nil {
		return ref
	}
	if foot, sum, err := readFooter(end[:], f.Size()); err == nil {
		ref.Count, ref.Sum = foot.marks, sum
	}
	return ref
}

// Verify reads a whole file and returns an error if it is damaged.
func Verify(f kv.FileReader, ref Ref) error {
	r := &File{Ref: ref, f: f}
	if err := r.load(); err != nil {
		return err
	}
	filter, err := r.loadFilter(1)
	filter.free()
	if err != nil {
		return err
	}
	for c := newCursor(r); ; {
		if page, err := c.fill(); err != nil || page == nil {
			return err
		}
	}
}

// Salvage returns the marks of the intact pages, and an error for the others.
func Salvage(f kv.FileReader, id uint32) (ms []storage.Mark, damage, err error) {
	page := make([]byte, PageSize)
	for n := uint32(0); int64(n+1)*PageSize <= f.Size(); n++ {
		if _, err := f.ReadAt(page, int64(n)*PageSize); err != nil {
			return nil, nil, err
		}
		marks, err := openPage(id, n, page)
		if err != nil {
			damage = errors.Join(damage, err)
			continue
		}
		ms = appendMarks(ms, marks)
	}
	return ms, damage, nil
}

// appendMarks appends the marks of a page.
func appendMarks(ms []storage.Mark, page []byte) []storage.Mark {
	for ; len(page) > 0; page = page[markLen:] {
		ms = append(ms, storage.Mark(page[:markLen]))
	}
	return ms
}
