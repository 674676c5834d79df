package dump

import (
	"io"

	"github.com/seed-7440039f/frontier/internal/tempfile"
)

// Twice is a source of lines that is read twice: in place if it can seek, otherwise through a
// temporary file.
type Twice struct {
	r    io.Reader
	seek io.Seeker
	from int64          // where r stood
	file *tempfile.File // nil: r seeks
}

// ReadTwice prepares for reading r twice, with a temporary file in dir if r cannot seek.
// Close must follow.
func ReadTwice(r io.Reader, dir string) (*Twice, error) {
	if s, ok := r.(io.Seeker); ok {
		if from, err := s.Seek(0, io.SeekCurrent); err == nil { // a Seeker that fails cannot be read in place
			return &Twice{r: r, seek: s, from: from}, nil
		}
	}
	file, err := tempfile.Create(dir, "frontier-import-*")
	if err != nil {
		return nil, err
	}
	return &Twice{r: r, seek: file, file: file}, nil
}

// First returns what is read first, to its end.
func (t *Twice) First() io.Reader {
	if t.file == nil {
		return t.r
	}
	return io.TeeReader(t.r, t.file)
}

// Again returns the same from its beginning.
func (t *Twice) Again() (io.Reader, error) {
	if _, err := t.seek.Seek(t.from, io.SeekStart); err != nil {
		return nil, err
	}
	if t.file == nil {
		return t.r, nil
	}
	return t.file, nil
}

// Close removes the temporary file.
func (t *Twice) Close() {
	if t.file != nil {
		_ = t.file.Close()
	}
}
